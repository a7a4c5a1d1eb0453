//! What was found in one series, as a table with its explanations.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::style::Look;
use super::{Block, Column, Document, Style, Table};
use crate::analysis::slow::Speed;
use crate::analysis::{Analysed, Series, Size, TimeOrRate, slow};
use crate::detect::{
    Candidate, FEWEST_POINTS, Findings, Jump, Kink, Note, Period, Point, Rejection, Verdict, coincidences, unexplained,
};
use crate::stats::quantile::median;
use crate::units::human;
use crate::words::{self, COARSE, Repeated, places, seen_between, shortened, summary};

#[derive(Clone, Copy, Debug)]
pub struct JumpTable<'a> {
    pub label: &'a str,
    pub found: &'a Analysed,
    /// The share of false alarms of the machine's A/A runs, where there are any.
    pub aa_rate: Option<f64>,
}

/// The most changes that are listed.
const CHANGES: usize = 5;
/// Neighbouring changes on each side whose median is the usual change there; and the share of the largest change below which a change is
/// not shown.
const BESIDE: usize = 2;
const SMALL: f64 = 0.1;

/// How often a series without a jump shows one.
fn explain_alarms(findings: &Findings) -> String {
    match findings.alarm_rate {
        Some(rate) => {
            let [low, high] = rate.interval().map(|share| format!("{:.2}", 100.0 * share));
            let simulated = human::count(u64::from(rate.series));
            let share = 100.0 * rate.share();
            format!(
                "{share:.2} % of {simulated} simulated series of this kind show a false jump (95 % interval {low} to {high} %); other curves may show more"
            )
        }
        None => "how often a series without a jump shows one is not known here".to_owned(),
    }
}

/// The largest changes between neighbouring sizes: slopes on logarithmic scales, less the median slope of the neighbouring boundaries.
fn changes(findings: &Findings) -> Option<String> {
    let slope = |pair: &[Point]| {
        let [a, b] = pair else { return None };
        let slope = (b.center / a.center).ln() / (b.x / a.x).ln();
        (a.x > 0.0 && slope.is_finite()).then_some((slope, a.x, b.center / a.center - 1.0))
    };
    let all: Vec<(f64, f64, f64)> = findings.points.windows(2).filter_map(slope).collect();
    let beyond = |at: usize| {
        let beside = at.saturating_sub(BESIDE)..(at + BESIDE + 1).min(all.len());
        let mut others: Vec<f64> = beside.filter(|&other| other != at).map(|other| all[other].0).collect();
        let beyond = all[at].0 - median(&mut others);
        // Between two jumps the slope differs much from its neighbours, but is less steep.
        if beyond * all[at].0 > 0.0 { beyond.abs() } else { 0.0 }
    };
    let mut found: Vec<(f64, usize)> =
        (0..all.len()).map(|at| (beyond(at), at)).filter(|one| one.0.is_finite()).collect();
    found.sort_by(|a, b| b.0.total_cmp(&a.0));
    let largest = found.first()?.0;
    let size = |at: usize| all[at].2.ln_1p().abs();
    let most = found.iter().map(|&(_, at)| size(at)).fold(0.0, f64::max);
    // A steep slope between two sizes that are close is a small change.
    found.retain(|&(beyond, at)| beyond > SMALL * largest && size(at) > SMALL * most);
    found.truncate(CHANGES);
    let text = |&(_, at): &(f64, usize)| {
        format!("{} after {}", human::signed_percent(all[at].2), human::batch_size(all[at].1))
    };
    let listed = human::listed(&found.iter().map(text).collect::<Vec<_>>());
    match found.len() {
        0 => None,
        1 => Some(format!(
            "the change between neighbouring sizes that stands out most from those beside it is {listed}; it is not proven"
        )),
        _ => Some(format!(
            "the changes between neighbouring sizes that stand out most from those beside them are {listed}; none is proven"
        )),
    }
}

/// One sentence for several such series, with its end.
pub fn too_few_points(series: &[&Findings], style: &Style) -> String {
    let (least, most) = series
        .iter()
        .map(|findings| findings.points.len())
        .fold((FEWEST_POINTS, 0), |(least, most), n| (least.min(n), most.max(n)));
    let sizes = if least == most { least.to_string() } else { format!("{least} to {most}") };
    let number = human::count(series.len() as u64);
    let text = format!(
        "{number} series have too few points to judge a jump: {sizes} each, and at least {FEWEST_POINTS} are needed."
    );
    format!("{}\n", style.wrap(&text, 2))
}

impl JumpTable<'_> {
    /// Heading, table and explanations, each line with its end.
    pub fn render(&self, style: &Style) -> String {
        // Narrow terminals keep what decides: where, how much, what it is.
        let wide = style.width >= 72;
        let hidden: &[&str] = if wide { &[] } else { &["95 % interval", "p", "p nearby"] };
        self.painted(&self.laid_out(hidden, |_| true).render(style), style)
    }

    /// What was found, without how it was found: no column in which all rows agree, no remark on the method.
    pub fn brief(&self, style: &Style) -> String {
        let jumps = &self.found.findings.jumps;
        let wide = style.width >= 72;
        let p: BTreeSet<String> = jumps.iter().map(|jump| human::p_value(jump.p_value)).collect();
        let all_work = jumps.iter().all(|jump| jump.verdict == Some(Verdict::Work));
        let mut hidden = vec!["p nearby"];
        hidden.extend((!wide).then_some("95 % interval"));
        hidden.extend((!wide || p.len() < 2).then_some("p"));
        hidden.extend(all_work.then_some("more work"));
        let findings = self.laid_out(&hidden, |subject| FINDINGS.contains(&subject));
        self.painted(&findings.render(style), style)
    }

    pub fn sentence(&self, style: &Style) -> String {
        Document::from(Block::Heading(self.heading())).render(style)
    }

    /// Everything, not laid out yet.
    pub fn document(&self) -> Document {
        self.laid_out(&[], |_| true)
    }

    /// The table without the hidden columns, and the remarks whose subject is shown.
    fn laid_out(&self, hidden: &[&str], is_shown: impl Fn(&str) -> bool) -> Document {
        let mut document = Document::from(Block::Heading(self.heading()));
        if !self.found.findings.jumps.is_empty() {
            document.table(self.table(hidden));
        }
        let shown = self.remarks().into_iter().filter(|(subject, _)| is_shown(subject));
        shown.for_each(|(subject, line)| document.remark(subject, line));
        document
    }

    fn heading(&self) -> String {
        let sentence = summary(&self.found.findings);
        if self.label.is_empty() { sentence } else { format!("{}: {sentence}", self.label) }
    }

    fn table(&self, hidden: &[&str]) -> Table {
        let jumps = &self.found.findings.jumps;
        let [after, size, relative, p, nearby] = ["after", "size", "relative", "p", "p nearby"].map(Column::right);
        let [interval, more_work] = ["95 % interval", "more work"].map(Column::left);
        let mut table = Table::new([after, size, interval, relative, p, nearby, more_work]);
        let repeated = Repeated::of(&self.found.findings);
        let mut listed = false;
        for jump in jumps {
            match repeated.as_ref().filter(|repeated| repeated.holds(jump)) {
                Some(_) if std::mem::replace(&mut listed, true) => {}
                Some(repeated) => table.row(self.cells_of_all(repeated)),
                None => table.row(self.cells(jump)),
            }
        }
        table.keep(|heading| match heading {
            // Without a clock and without waits there are no verdicts.
            "more work" if jumps.iter().all(|jump| jump.verdict.is_none()) => false,
            "p nearby" if jumps.iter().all(|jump| jump.nearby_p_value.is_none()) => false,
            _ => !hidden.contains(&heading),
        });
        table
    }

    /// The cells of a jump, a text for each column.
    fn cells(&self, jump: &Jump) -> [String; 7] {
        let [first, at, last] = [jump.after_low, jump.after, jump.after_high].map(human::batch_size);
        [
            if first == last { at } else { format!("{at} ({first} to {last})") },
            self.size(jump.size),
            human::range(jump.low, jump.high, &self.found.series.unit),
            human::signed_percent(jump.relative),
            human::p_value(jump.p_value),
            jump.nearby_p_value.map_or(String::new(), human::p_value),
            more_work(jump.verdict),
        ]
    }

    /// All members of a staircase or sawtooth: their median, and from the smallest to the largest.
    fn cells_of_all(&self, repeated: &Repeated) -> [String; 7] {
        let [smallest, median, largest] = repeated.sizes();
        [
            repeated.places(),
            self.size(median),
            human::range(smallest, largest, &self.found.series.unit),
            format!("{} each", human::signed_percent(repeated.relative())),
            human::p_value(repeated.p_value()),
            String::new(),
            more_work(repeated.verdict()),
        ]
    }

    fn size(&self, size: f64) -> String {
        format!("{} {}", if size < 0.0 { DOWN } else { UP }, human::signed(size, &self.found.series.unit))
    }

    /// Everything beside the jumps, as (subject, text). Empty if nothing can be judged: the heading gives the reason.
    fn remarks(&self) -> Vec<(&'static str, String)> {
        let Analysed { series, findings } = self.found;
        let mut lines = Vec::new();
        if !findings.is_judged() {
            return lines;
        }
        if series.kind == TimeOrRate::Rate && !findings.jumps.is_empty() {
            lines.push(("Rate", "these are changes of a rate: where it falls, the work is slower".to_string()));
        }
        if findings.jumps.is_empty() && findings.detectable.is_none_or(|smallest| smallest > COARSE) {
            lines.extend(changes(findings).map(|text| ("Changes", text)));
        }
        if !findings.jumps.is_empty() {
            let text = |changes| format!("{changes} too: no jump, bend or ramp of the model describes it");
            lines.extend(seen_between(findings).map(|changes| ("Changes", text(changes))));
        }
        lines.extend(words::at_the_ends(&unexplained(findings)).into_iter().map(|text| ("Ends", text)));
        for (subject, speed) in [("Slow", Speed::Slow), ("Fast", Speed::Fast)] {
            let found = slow::sizes(findings, series.kind, speed);
            lines.extend(found.map(|found| (subject, words::slow(&found))));
        }
        lines.extend(findings.period.iter().map(|period| ("Period", explain_period(period))));
        lines.extend(findings.period.iter().filter_map(|period| Some(("Test", self.explain_coincidences(period)?))));
        lines.extend(findings.kinks.iter().map(|kink| ("Kink", self.explain_kink(kink))));
        let rejected = findings.rejected.iter().take(REJECTED).map(|candidate| ("Rejected", self.explain(candidate)));
        lines.extend(rejected);
        if findings.rejected.len() > REJECTED {
            let more = human::count((findings.rejected.len() - REJECTED) as u64);
            lines.push(("Rejected", format!("and {more} more candidates")));
        }
        // Where it changes what the times are, it belongs to the answer.
        let subject = |note: &Note| match note {
            Note::Interrupted { sizes, .. } if *sizes > 0 => "Busy",
            _ => "Note",
        };
        lines.extend(findings.notes.iter().map(|note| (subject(note), note.to_string())));
        lines.extend(only_by_the_clock(findings).map(|text| ("Busy", text)));
        lines.extend(findings.p_value.map(|p| ("Chance", explain_chance(p))));
        let control = self.aa_rate.map(|rate| format!("; A/A runs of this machine in {}", human::limit(rate)));
        lines.push(("Alarms", explain_alarms(findings) + &control.unwrap_or_default()));
        lines
    }

    /// What of the hardware the period coincides with, where there is any.
    fn explain_coincidences(&self, period: &Period) -> Option<String> {
        let found = coincidences(period.value, &self.found.series.hardware());
        let value = human::batch_size(period.value);
        (!found.is_empty()).then(|| format!("{value} {}: a coincidence to test, not a cause", human::listed(&found)))
    }

    fn explain_kink(&self, kink: &Kink) -> String {
        let Series { unit, kind, size: Size { item, .. }, .. } = &self.found.series;
        let (before, after) = (kink.slope_before, kink.slope_after);
        let size = |slope: f64| human::quantity(slope.abs(), unit);
        let verb = |slope: f64, up: &'static str, down: &'static str| if slope < 0.0 { down } else { up };
        let change = match kind {
            TimeOrRate::Time if before >= 0.0 && after >= 0.0 => {
                format!("each further {item} takes {} instead of {}", size(after), size(before))
            }
            TimeOrRate::Time => format!(
                "from there on each further {item} {} {}, up to there it {} {}",
                verb(after, "takes", "saves"),
                size(after),
                verb(before, "takes", "saves"),
                size(before)
            ),
            TimeOrRate::Rate => format!(
                "from there on the rate {} by {} with each further {item}, up to there it {} by {}",
                verb(after, "rises", "falls"),
                size(after),
                verb(before, "rises", "falls"),
                size(before)
            ),
        };
        format!("at {}: {change} ({})", human::batch_size(kink.at), human::p_equals(kink.p_value))
    }

    fn explain(&self, candidate: &Candidate) -> String {
        let size = human::signed(candidate.size, &self.found.series.unit);
        let p = human::p_equals(candidate.p_value);
        format!("{size} after {} ({p}): {}", human::batch_size(candidate.after), candidate.reason)
    }

    /// Slower is red, faster is green. Only after the layout: escapes have no width.
    fn painted(&self, table: &str, style: &Style) -> String {
        let (up, down) = match self.found.series.kind {
            TimeOrRate::Time => (Look::Red, Look::Green),
            TimeOrRate::Rate => (Look::Green, Look::Red),
        };
        table.replace(UP, &style.paint(UP, up)).replace(DOWN, &style.paint(DOWN, down))
    }
}

/// Remarks that say what was found; the others say how, and how far to trust it.
const FINDINGS: [&str; 6] = ["Rate", "Changes", "Ends", "Slow", "Kink", "Busy"];

/// Up to this many rejected candidates are listed one by one.
const REJECTED: usize = 5;
const UP: &str = "▲";
const DOWN: &str = "▼";

fn more_work(verdict: Option<Verdict>) -> String {
    verdict.map_or("", Verdict::more_work).to_owned()
}

/// What the clock shows and other programs made, the largest changes first.
fn only_by_the_clock(findings: &Findings) -> Option<String> {
    let change = |candidate: &Candidate| match candidate.reason {
        Rejection::OtherPrograms { relative } => Some((candidate.after, relative)),
        _ => None,
    };
    let mut changes: Vec<(f64, f64)> = findings.rejected.iter().filter_map(change).collect();
    changes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let text = |(after, relative): &(f64, f64)| {
        format!("{} after {}", human::signed_percent(*relative), human::batch_size(*after))
    };
    let listed = shortened(changes.iter().map(text), BY_THE_CLOCK);
    (!listed.is_empty()).then(|| {
        format!("only by the clock: {}; absent in processor time, so other programs made it", human::listed(&listed))
    })
}

/// At most this number of changes that only the clock shows are listed.
const BY_THE_CLOCK: usize = 3;

fn explain_period(period: &Period) -> String {
    let some = |all: &[f64], what: &str| match all.len() {
        ..17 => places(all),
        many => human::counted(many as u64, what),
    };
    let missing = match period.unconfirmed.len() {
        0 => String::new(),
        _ => format!("; not confirmed after {}", some(&period.unconfirmed, "other place")),
    };
    let (value, p) = (human::batch_size(period.value), human::p_equals(period.p_value));
    format!("{value} ({p}), explains {}{missing}", some(&period.explains, "jump"))
}

fn explain_chance(p: f64) -> String {
    // Simulated series, of which there are not more.
    let share = if p < 0.0001 { "fewer than 0.01 %".to_string() } else { human::limit(p) };
    format!("a change as strong as the strongest here is in {share} of series without a jump ({})", human::p_equals(p))
}
