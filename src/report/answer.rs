//! The answer of a series in a sentence, and what it rests on.

use super::explanation::goes_with;
use crate::analysis::mechanisms::{Answers, Candidate, Verdict};
use crate::detect::{Findings, Jump};
use crate::units::human;
use crate::words::{Repeated, is_too_steep, smallest_seen, summary};

#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub label: &'a str,
    pub findings: &'a Findings,
    /// What was measured and against what, as the axes are called: `Step time`, `Batch size`.
    pub y: &'a str,
    pub x: &'a str,
    pub unit: &'a str,
    /// The grade of the evidence, from [`crate::analysis::Series::origin`].
    pub origin: &'a str,
    pub answers: Option<&'a Answers>,
}

/// A sentence with its grounds.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub sentence: String,
    pub grounds: Vec<Ground>,
}

/// A statement with the grade of its evidence.
#[derive(Clone, Debug, PartialEq)]
pub struct Ground {
    /// `measured here`, `from FILE`, `consistent`, `shown by intervention`, `contradicted`.
    pub grade: String,
    pub text: String,
}

/// Places that a sentence lists.
const MOST_PLACES: usize = 16;

pub fn answer(question: &Question) -> Answer {
    let Question { label, findings, y, x, .. } = question;
    let (y, x) = (y.to_lowercase(), x.to_lowercase());
    let listed = !findings.jumps.is_empty() && findings.jumps.len() <= MOST_PLACES && Repeated::of(findings).is_none();
    let sentence = if listed {
        let places: Vec<String> = findings.jumps.iter().map(|jump| human::batch_size(jump.after)).collect();
        let up = findings.jumps.iter().filter(|jump| jump.size > 0.0).count();
        let verb = match findings.jumps.len() - up {
            0 => "jumps up",
            down if down == findings.jumps.len() => "drops",
            _ => "jumps",
        };
        format!("The {y} of {label} {verb} after {x} {}.", human::listed(&places))
    } else if findings.jumps.is_empty() && is_too_steep(findings) {
        format!("{label}: {}", summary(findings))
    } else if let Some(seen) = findings.open_below().filter(|_| findings.is_judged() && findings.jumps.is_empty()) {
        let seen = human::limit(seen);
        format!(
            "Jumps below {seen} are neither shown nor ruled out in the {y} of {label}; none of {seen} or more was found."
        )
    } else if findings.jumps.is_empty() && findings.is_judged() {
        let seen = |least| format!("; one of {} would have been seen", smallest_seen(findings, least));
        let seen = findings.detectable.map(seen);
        format!("The {y} of {label} has no jump{}.", seen.unwrap_or_default())
    } else {
        let summary = summary(findings);
        format!("{label}: {}.", summary.trim_end_matches('.'))
    };
    Answer { sentence, grounds: grounds(question) }
}

fn grounds(question: &Question) -> Vec<Ground> {
    let Question { findings, unit, answers, origin, .. } = question;
    let mut grounds = Vec::new();
    let measured = |text| Ground { grade: (*origin).to_owned(), text };
    // As a factor: a fall by a quarter is more than a rise by 28 %.
    let factor = |jump: &Jump| jump.relative.ln_1p().abs();
    let largest = findings.jumps.iter().max_by(|a, b| factor(a).total_cmp(&factor(b)));
    if let Some(jump) = largest.filter(|_| Repeated::of(findings).is_none()) {
        grounds.push(measured(size(jump, findings.jumps.len(), unit)));
    }
    if let Some(period) = &findings.period {
        let which = match (period.explains.len(), findings.jumps.len()) {
            (some, all) if some < all => format!("{some} of the {all} jumps"),
            _ => "The jumps".to_owned(),
        };
        let (value, p) = (human::batch_size(period.value), human::p_equals(period.p_value));
        let text = format!("{which} have a period of {value} ({p}).");
        grounds.push(measured(text));
    }
    grounds.extend(answers.iter().flat_map(|answers| mechanisms(answers)));
    let is_known = answers.is_some_and(|answers| answers.jumps.iter().any(|jump| !jump.candidates.is_empty()));
    if let Some(text) = answers.filter(|_| !is_known).and_then(goes_with) {
        let grade = "shown by intervention".to_owned();
        grounds.push(Ground {
            grade,
            text: format!("{}.", human::capitalised(&text.replace(" (shown by intervention)", ""))),
        });
    }
    grounds
}

fn size(jump: &Jump, jumps: usize, unit: &str) -> String {
    let which =
        if jumps > 1 { format!("The largest, after {}:", human::batch_size(jump.after)) } else { "It is".to_owned() };
    format!(
        "{which} {} ({}; 95 % interval {}; {}).",
        human::signed(jump.size, unit),
        human::signed_percent(jump.relative),
        human::range(jump.low, jump.high, unit),
        human::p_equals(jump.p_value)
    )
}

/// For each mechanism and verdict the jumps at which it has it; contradicted ones only where nothing else is left.
fn mechanisms(answers: &Answers) -> Vec<Ground> {
    let mut found: Vec<(&Candidate, Vec<String>)> = Vec::new();
    for (answer, candidate) in answers.jumps.iter().flat_map(|a| a.candidates.iter().map(move |c| (a, c))) {
        let alike = |known: &Candidate| known.mechanism == candidate.mechanism && known.verdict == candidate.verdict;
        let after = human::batch_size(answer.after);
        match found.iter_mut().find(|(known, _)| alike(known)) {
            Some((_, places)) => places.push(after),
            None => found.push((candidate, vec![after])),
        }
    }
    let refuted = |candidate: &Candidate| matches!(candidate.verdict, Verdict::Contradicted(_));
    if found.iter().any(|(candidate, _)| !refuted(candidate)) {
        found.retain(|(candidate, _)| !refuted(candidate));
    }
    let ground = |(candidate, places): (&Candidate, Vec<String>)| {
        let places = match places.len() {
            ..=MOST_PLACES => format!("after {}", human::listed(&places)),
            many => format!("after {} sizes", human::count(many as u64)),
        };
        let meaning = candidate.mechanism.meaning();
        let text = match &candidate.verdict {
            Verdict::Shown { setting, value } => {
                format!("Mechanism {places}: {meaning}; with {setting} = {value} the jump is gone or smaller.")
            }
            Verdict::Consistent => {
                format!("Mechanism {places}: {meaning}. Its formula has a step there; nothing more is shown.")
            }
            Verdict::Contradicted(why) => format!("Not the mechanism {places}: {meaning}; {why}."),
        };
        Ground { grade: candidate.verdict.name().to_owned(), text }
    };
    found.into_iter().map(ground).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::{Early, Note, Period, Point};

    fn question(findings: &Findings) -> Question<'_> {
        let (y, x, unit, origin) = ("Step time", "Batch size", "s", "from a.csv");
        Question { label: "vgg16", findings, y, x, unit, origin, answers: None }
    }

    #[test]
    fn the_answer_says_where_and_how_much() {
        let jumps = vec![Jump::planted(16.0, 0.012, 0.083), Jump::planted(32.0, 0.013, 0.05)];
        let period = Period { value: 16.0, p_value: 0.0004, explains: vec![16.0, 32.0], unconfirmed: vec![] };
        let findings = Findings { jumps, period: Some(period), ..Findings::default() };
        let answer = answer(&question(&findings));
        assert_eq!(answer.sentence, "The step time of vgg16 jumps up after batch size 16 and 32.");
        assert!(answer.grounds.iter().all(|ground| ground.grade == "from a.csv"), "{answer:?}");
        let texts: Vec<&str> = answer.grounds.iter().map(|ground| ground.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "The largest, after 16: +12.0 ms (+8.3 %; 95 % interval 12.0 to 12.0 ms; p = 0.001).",
                "The jumps have a period of 16 (p = 0.0004)."
            ]
        );
    }

    #[test]
    fn the_largest_of_a_rise_and_a_fall_is_that_of_the_larger_factor() {
        // By hand: 1 / (1 - 0.25) = 1.33 against 1.28.
        let jumps = vec![Jump::planted(16.0, 0.00199, 0.28), Jump::planted(32.0, -0.003, -0.25)];
        let answer = answer(&question(&Findings { jumps, ..Findings::default() }));
        let said = &answer.grounds[0].text;
        assert!(said.starts_with("The largest, after 32: -3.00 ms (-25 %"), "{said}");
    }

    #[test]
    fn no_jump_is_an_answer_only_with_the_jump_that_would_have_been_seen() {
        let point = |x| Point { x: f64::from(x), count: 5, center: 1.0, low: 1.0, high: 1.0, fit: 1.0, off: false };
        let of = |points: u32| Findings { points: (1..=points).map(point).collect(), ..Findings::default() };
        let open = Findings { detectable: Some(0.42), asked: Some(0.05), ..of(20) };
        for (findings, sentence) in [
            (
                Findings { detectable: Some(0.02), ..of(20) },
                "The step time of vgg16 has no jump; one of 2 % or more between 6 and 15 would have been seen.",
            ),
            (
                open.clone(),
                "Jumps below 42 % are neither shown nor ruled out in the step time of vgg16; none of 42 % or more was found.",
            ),
            (Findings { early: Some(Early { blocks: 1, of: 4 }), ..open.clone() }, "vgg16: Too early: 1 of 4 blocks."),
            (
                Findings { notes: vec![Note::TooWide { sizes: true }], ..open },
                "vgg16: No jump was looked for: the sizes span too many orders of magnitude to be one curve; give a part of them.",
            ),
            (of(3), "vgg16: Too few points to judge a jump: 3 points, and at least 8 are needed."),
        ] {
            assert_eq!(answer(&question(&findings)).sentence, sentence);
        }
    }
}
