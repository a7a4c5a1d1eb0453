//! Which mechanisms predict a step at each jump, and the verdict on each.

use serde_json::{Value, json};

use super::copying::{copying_json, sentences};
use super::entries::{position, positions};
use super::json::early;
use super::{Block, Column, Document, Table};
use crate::analysis::mechanisms::formulas::Mechanism;
use crate::analysis::mechanisms::{AffectedLayer, Answers, Candidate, Intervention, PeriodAnswer, Verdict};
use crate::analysis::{Analysed, distinct};
use crate::units::human;
use crate::words::{shortened, summary};

const VERSION: u32 = 1;

/// Layers named in a line.
const MOST_LAYERS: usize = 3;

/// The answers for one series; a sentence where it has no jump.
pub fn explanation(found: &Analysed, answers: &Answers) -> Document {
    laid_out(found, answers, remarks(answers), true)
}

/// The same without layers, formulas, and what they predict elsewhere.
pub fn brief_explanation(found: &Analysed, answers: &Answers) -> Document {
    let remarks = remarks(answers).into_iter().filter(|(subject, _)| OUTCOMES.contains(subject));
    laid_out(found, answers, remarks.collect(), false)
}

/// Remarks that say what was shown.
const OUTCOMES: [&str; 3] = ["Changed", "PCIe", "Copies"];

/// The heading of the column of layers.
const LAYERS: &str = "layers, with their share of the step";

/// `layers`: whether the table names them.
fn laid_out(found: &Analysed, answers: &Answers, remarks: Vec<(&'static str, String)>, layers: bool) -> Document {
    let Analysed { series, findings } = found;
    let label = series.label();
    if let Some(early) = answers.early {
        return Block::Heading(format!("{label}: {early}")).into();
    }
    if answers.jumps.is_empty() {
        // Where nothing was searched, silence is no result.
        let why = if findings.is_judged() { "no jump to explain".to_owned() } else { summary(findings) };
        let mut document = Document::from(Block::Heading(format!("{label}: {why}")));
        copies(answers).into_iter().for_each(|(subject, text)| document.remark(subject, text));
        return document;
    }
    let [after, found, predicted_by] = ["after", "found", "predicted"].map(Column::right);
    let [mechanism, verdict_on, of_layers] = ["mechanism", "verdict", LAYERS].map(Column::left);
    let mut table = Table::new([after, found, mechanism, predicted_by, verdict_on, of_layers]);
    for answer in &answers.jumps {
        let (after, found) = (human::batch_size(answer.after), human::signed_percent(answer.relative));
        if answer.candidates.is_empty() {
            table.row([after.as_str(), found.as_str(), "none known predicts a step here", "", "", ""]);
        }
        for (index, candidate) in answer.candidates.iter().enumerate() {
            let once = |text: &str| if index == 0 { text.to_owned() } else { String::new() };
            table.row([
                once(&after),
                once(&found),
                candidate.mechanism.meaning().to_owned(),
                predicted(candidate),
                verdict(&candidate.verdict),
                places(&candidate.places),
            ]);
        }
    }
    table.keep(|heading| layers || heading != LAYERS);
    let mut document = Document::from(Block::Heading(format!("Why {label} jumps")));
    document.remark("Likely", likely(answers));
    document.table(table);
    remarks.into_iter().for_each(|(subject, text)| document.remark(subject, text));
    document
}

/// The mechanism that may make the most jumps, in a sentence: a mechanism that was shown precedes one that is only consistent. `None` where no
/// known one does.
fn likely(answers: &Answers) -> Option<String> {
    let count = |mechanism: Mechanism| {
        let own = answers.jumps.iter().flat_map(|jump| &jump.candidates).filter(|one| one.mechanism == mechanism);
        own.fold((0, 0), |(shown, consistent), candidate| match candidate.verdict {
            Verdict::Shown { .. } => (shown + 1, consistent),
            Verdict::Consistent if candidate.may_make_most => (shown, consistent + 1),
            Verdict::Consistent | Verdict::Contradicted(_) => (shown, consistent),
        })
    };
    // The last of equal ones wins, and those of the table come in the order of `ALL`.
    let counted = Mechanism::ALL.iter().copied().rev().map(|mechanism| (count(mechanism), mechanism));
    let ((shown, consistent), mechanism) = counted.max_by_key(|(counts, _)| *counts)?;
    let (meaning, of) = (mechanism.meaning(), human::counted(answers.jumps.len() as u64, "jump"));
    match (shown, consistent) {
        (0, 0) => goes_with(answers),
        (0, some) => Some(format!("{meaning} (consistent at {some} of {of}; only an intervention would show it)")),
        (some, _) => Some(format!("{meaning} (shown by intervention at {some} of {of})")),
    }
}

/// The setting without which most jumps are gone, the first of equal ones, where no known mechanism predicts them.
pub(super) fn goes_with(answers: &Answers) -> Option<String> {
    let takes_away = answers.interventions.iter().rev().filter(|made| !made.gone.is_empty());
    let Intervention { setting, value, gone, .. } = takes_away.max_by_key(|made| made.gone.len())?;
    let (jumps, are) = if gone.len() == 1 { ("jump", "is") } else { ("jumps", "are") };
    let places = sizes(gone);
    Some(format!("with {setting} = {value}, the {jumps} after {places} {are} gone (shown by intervention)"))
}

/// What became of the jumps in the series that differ in one setting, as remarks.
pub fn interventions(series: &[(String, &Answers)]) -> Document {
    let mut document = Document::default();
    for (label, answers) in series {
        answers.interventions.iter().for_each(|made| document.remark("Shown", format!("{label}: {}", changed(made))));
    }
    document
}

/// [`likely`] of each series that has any, as remarks; series with the same one share it.
pub fn likely_causes(series: &[(String, &Answers)]) -> Document {
    let mut document = Document::default();
    let known: Vec<(&String, String)> =
        series.iter().filter_map(|(label, answers)| Some((label, likely(answers)?))).collect();
    for sentence in distinct(known.iter().map(|(_, sentence)| sentence)) {
        let own: Vec<String> =
            known.iter().filter(|(_, other)| other == sentence).map(|(label, _)| (*label).clone()).collect();
        let of = if series.len() > 1 { format!("{}: ", listed(&own)) } else { String::new() };
        document.remark("Likely", format!("{of}{sentence}"));
    }
    document
}

fn remarks(answers: &Answers) -> Vec<(&'static str, String)> {
    let mut lines: Vec<(&'static str, String)> = Vec::new();
    lines.extend(answers.interventions.iter().map(|made| ("Changed", changed(made))));
    lines.extend(answers.period.iter().map(|period| ("Period", of_period(period))));
    lines.extend(copies(answers));
    for &mechanism in Mechanism::ALL {
        let candidate = answers.jumps.iter().flat_map(|jump| &jump.candidates).find(|c| c.mechanism == mechanism);
        let Some(candidate) = candidate else { continue };
        let (meaning, formula, source) = (mechanism.meaning(), mechanism.formula(), mechanism.source());
        let also = |places: &[f64]| format!("{meaning}: also predicts steps after {}", sizes(places));
        if !candidate.unseen.is_empty() {
            let text = format!("{} that would have been seen, and were not", also(&candidate.unseen));
            lines.push(("Unseen", text));
        }
        if !candidate.unjudged.is_empty() {
            let text = format!("{}{CANNOT_BE_JUDGED}", also(&candidate.unjudged));
            lines.push(("Unjudged", text));
        }
        let label = if mechanism == Mechanism::OwnKernel { "Kernels" } else { "Sizes" };
        lines.extend(details(answers, mechanism).map(|detail| (label, detail)));
        lines.push(("Basis", format!("{meaning}: {formula}; {source}")));
    }
    if !answers.unknown.is_empty() {
        let layers = listed(&answers.unknown);
        lines.push(("Unknown", format!("no formula sizes the work of {layers}{ARE_MEASURED}")));
    }
    if !answers.timed {
        let text = "shares are those of the arithmetic; `layers = true` in [measure] would measure the layers' times";
        lines.push(("Shares", text.to_owned()));
    }
    let meaning = "consistent: the formula has a step just there, and the time is assumed to follow the work; only an intervention shows it";
    lines.push(("Verdict", meaning.to_owned()));
    lines
}

/// Of steps that a mechanism predicts and nobody can judge.
const CANNOT_BE_JUDGED: &str = ", where it cannot be judged whether there is a jump: the curve is disturbed there, or a jump could be neither confirmed \
                                nor ruled out";

/// Of layers without a formula.
const ARE_MEASURED: &str =
    "; the measured steps of its layers are in `batchstep jumps RUN`, where `layers = true` timed them";

/// What the copies of the batch have to do with the jumps, or could have.
fn copies(answers: &Answers) -> Vec<(&'static str, String)> {
    let Some(copying) = &answers.copying else { return Vec::new() };
    // A processor copies within its own memory.
    let subject = if copying.link.is_some() { "PCIe" } else { "Copies" };
    sentences(copying, &answers.interventions).into_iter().map(|said| (subject, said)).collect()
}

fn of_period(period: &PeriodAnswer) -> String {
    let PeriodAnswer { mechanism, jumps, shown, contradicted, unseen, unjudged } = period;
    let places = human::counted(*jumps as u64, "jump");
    let evidence = match (shown, contradicted) {
        (0, 0) => "consistent".to_owned(),
        (shown, 0) => format!("shown by intervention at {shown}"),
        (0, contradicted) => format!("contradicted at {contradicted}"),
        (shown, contradicted) => format!("shown by intervention at {shown}, contradicted at {contradicted}"),
    };
    let counted = |places: &[f64], what: &str| match places.len() {
        0 => String::new(),
        count => format!("; {count} elsewhere {what}"),
    };
    let elsewhere = counted(unseen, "not seen") + &counted(unjudged, "cannot be judged");
    format!("{}: predicts {places} of it; {evidence}{elsewhere}", mechanism.meaning())
}

fn predicted(candidate: &Candidate) -> String {
    match candidate.predicted {
        None => "no size".to_owned(),
        Some(share) if candidate.mechanism.is_bound() => format!("up to {}", human::signed_percent(share)),
        Some(share) => human::signed_percent(share),
    }
}

/// The effect of changing one setting on the jumps: which of them disappear and which stay, whatever their cause.
fn changed(made: &Intervention) -> String {
    let Intervention { setting, value, gone, smaller, stay, larger, unjudged } = made;
    let part = |what: &str, places: &[f64]| (!places.is_empty()).then(|| format!("after {} {what}", sizes(places)));
    let parts = [
        part("gone", gone),
        part("less than half left", smaller),
        part("as before", stay),
        part("larger", larger),
        part("not judged", unjudged),
    ];
    format!("jumps with {setting} = {value}: {}", parts.into_iter().flatten().collect::<Vec<_>>().join("; "))
}

/// The numbers behind a mechanism's steps at the jumps.
fn details(answers: &Answers, mechanism: Mechanism) -> impl Iterator<Item = String> {
    let candidates = answers.jumps.iter().flat_map(|jump| &jump.candidates);
    let places = candidates.filter(move |candidate| candidate.mechanism == mechanism).flat_map(|c| &c.places);
    places.filter_map(|place| place.detail.clone()).take(MOST_LAYERS)
}

/// The first few, and how many more.
fn listed(names: &[String]) -> String {
    human::listed(&shortened(names.iter().cloned(), 8))
}

fn sizes(places: &[f64]) -> String {
    listed(&places.iter().map(|x| human::batch_size(*x)).collect::<Vec<_>>())
}

fn verdict(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Shown { setting, value } => format!("shown by intervention: {setting} = {value}"),
        Verdict::Consistent => verdict.name().to_owned(),
        Verdict::Contradicted(why) => format!("contradicted: {why}"),
    }
}

fn places(places: &[AffectedLayer]) -> String {
    let one = |place: &AffectedLayer| format!("{} {} {}", place.layer, place.direction, human::percent(place.share));
    shortened(places.iter().map(one), MOST_LAYERS).join(", ")
}

/// The document of `batchstep explain`, version 1. Shares and predictions are parts of the step time before the jump; `predicted` is
/// null where a mechanism predicts no size.
pub fn explanation_json<'a>(all: impl Iterator<Item = (&'a Analysed, &'a Answers)>) -> Value {
    json!({"version": VERSION, "series": all.map(series).collect::<Vec<_>>()})
}

fn series((found, answers): (&Analysed, &Answers)) -> Value {
    let jump = |answer: &crate::analysis::mechanisms::JumpCandidates| {
        json!({
            "after": position(answer.after),
            "relative": answer.relative,
            "mechanisms": answer.candidates.iter().map(candidate).collect::<Vec<_>>(),
        })
    };
    let period = |period: &PeriodAnswer| {
        json!({
            "mechanism": period.mechanism.name(),
            "jumps": period.jumps,
            "shown": period.shown,
            "contradicted": period.contradicted,
            "unseen": positions(&period.unseen),
            "unjudged": positions(&period.unjudged),
        })
    };
    let intervention = |made: &Intervention| {
        json!({
            "setting": made.setting,
            "value": made.value,
            "gone": positions(&made.gone),
            "smaller": positions(&made.smaller),
            "stay": positions(&made.stay),
            "larger": positions(&made.larger),
            "unjudged": positions(&made.unjudged),
        })
    };
    json!({
        "source": found.series.source,
        "label": found.series.label(),
        "too_early": answers.early.map(early),
        "shares": if answers.timed { "measured" } else { "arithmetic" },
        "jumps": answers.jumps.iter().map(jump).collect::<Vec<_>>(),
        "period": answers.period.iter().map(period).collect::<Vec<_>>(),
        "interventions": answers.interventions.iter().map(intervention).collect::<Vec<_>>(),
        "unknown_layers": answers.unknown,
        "pcie": answers.copying.as_ref().map(copying_json),
    })
}

fn candidate(candidate: &Candidate) -> Value {
    let (setting, why) = match &candidate.verdict {
        Verdict::Shown { setting, value } => (json!({"setting": setting, "value": value}), Value::Null),
        Verdict::Contradicted(why) => (Value::Null, Value::from(why.as_str())),
        Verdict::Consistent => (Value::Null, Value::Null),
    };
    json!({
        "mechanism": candidate.mechanism.name(),
        "meaning": candidate.mechanism.meaning(),
        "verdict": candidate.verdict.name(),
        "intervention": setting,
        "contradiction": why,
        "predicted": candidate.predicted,
        "predicted_is_a_bound": candidate.mechanism.is_bound(),
        "unseen": positions(&candidate.unseen),
        "unjudged": positions(&candidate.unjudged),
        "formula": candidate.mechanism.formula(),
        "source": candidate.mechanism.source(),
        "layers": candidate.places,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Series;
    use crate::analysis::mechanisms::JumpCandidates;
    use crate::detect::{Findings, Note, Point};
    use crate::report::Style;

    fn answers(verdicts: &[&[(Mechanism, Verdict)]]) -> Answers {
        let candidate = |(mechanism, verdict): &(Mechanism, Verdict)| Candidate {
            mechanism: *mechanism,
            places: vec![],
            predicted: None,
            may_make_most: true,
            unseen: vec![],
            unjudged: vec![],
            verdict: verdict.clone(),
        };
        let jump = |(at, candidates): (usize, &&[(Mechanism, Verdict)])| JumpCandidates {
            after: 16.0 * (at + 1) as f64,
            relative: 0.1,
            candidates: candidates.iter().map(candidate).collect(),
        };
        Answers {
            jumps: verdicts.iter().enumerate().map(jump).collect(),
            period: vec![],
            interventions: vec![],
            timed: true,
            unknown: vec![],
            copying: None,
            early: None,
        }
    }

    #[test]
    fn the_likeliest_cause_is_shown_or_else_consistent_at_most_jumps() {
        let [one, other] = [Mechanism::ALL[0], Mechanism::ALL[1]];
        let contradicted = || Verdict::Contradicted("why".into());
        let shown = || Verdict::Shown { setting: "batch_padding".into(), value: "80".into() };
        let consistent = || Verdict::Consistent;
        assert_eq!(likely(&answers(&[&[], &[(one, contradicted())]])), None);
        let most = answers(&[&[(one, consistent()), (other, consistent())], &[(other, consistent())]]);
        let sentence = format!("{} (consistent at 2 of 2 jumps; only an intervention would show it)", other.meaning());
        assert_eq!(likely(&most), Some(sentence.clone()));
        let mut small = most.clone();
        small.jumps.iter_mut().for_each(|jump| jump.candidates.iter_mut().for_each(|one| one.may_make_most = false));
        assert_eq!(likely(&small), None);
        // A mechanism that is large enough at one jump precedes one that is too small at two.
        small.jumps[0].candidates[0].may_make_most = true;
        assert!(likely(&small).is_some_and(|said| said.starts_with(one.meaning())), "{:?}", likely(&small));
        let proven = answers(&[&[(one, shown()), (other, consistent())], &[(other, consistent())]]);
        assert_eq!(likely(&proven), Some(format!("{} (shown by intervention at 1 of 2 jumps)", one.meaning())));
        // Series with the same sentence share it.
        let series = [("a".to_owned(), &most), ("b".to_owned(), &most)];
        let text = likely_causes(&series).render(&Style { color: false, width: 300 });
        assert_eq!(text, format!("  Likely   a and b: {sentence}\n"));
    }

    #[test]
    fn a_series_in_which_nothing_was_searched_says_so_and_why() {
        let said = |findings: &Findings| {
            let series = Series::planted(vec![("model".into(), "mlp".into())], Vec::new());
            let found = Analysed { series, findings: findings.clone() };
            [explanation, brief_explanation].map(|of| of(&found, &answers(&[])).render(&Style::PLAIN))
        };
        let point = |x| Point { x: f64::from(x), count: 1, center: 1.0, low: 1.0, high: 1.0, fit: 1.0, off: false };
        let searched = Findings { points: (1..=20).map(point).collect(), ..Findings::default() };
        assert_eq!(said(&searched), ["mlp: no jump to explain\n"; 2]);
        let wide = Findings { notes: vec![Note::TooWide { sizes: true }], ..searched.clone() };
        let few = Findings { points: searched.points[..3].to_vec(), ..searched };
        let many = "mlp: No jump was looked for: the sizes span too many orders of magnitude to be one curve; give a part of them.\n";
        assert_eq!(said(&wide), [many; 2]);
        let few = said(&few);
        assert!(few[0].starts_with("mlp: Too few points to judge a jump: 3 points, and at least"), "{few:?}");
    }
}
