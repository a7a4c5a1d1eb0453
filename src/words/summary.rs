//! What was found in a series, in a sentence.

use super::Repeated;
use super::unexplained::between;
use crate::detect::{FEWEST_POINTS, Findings, Note, Point, unexplained};
use crate::units::human;

/// What was found, in a sentence: `4 jumps after 16, 32, 48 and 64; period 16 (p = 0.0004)`. The charts say the same.
pub fn summary(findings: &Findings) -> String {
    if let Some(early) = findings.early {
        return human::capitalised(&format!("{early}."));
    }
    if let Some(reason) = findings.unsearched().and_then(why_unsearched) {
        return format!("No jump was looked for: {reason}.");
    }
    if let Some(repeated) = Repeated::of(findings) {
        let p = human::p_equals(repeated.p_value());
        let others: Vec<f64> = repeated.others(findings).map(|jump| jump.after).collect();
        return match others[..] {
            [] => format!("{} ({p})", repeated.sentence()),
            _ => format!("{}, and one {} ({p})", jumps_after(&others), repeated.text()),
        };
    }
    if findings.jumps.is_empty()
        && findings.is_judged()
        && let Some(changes) = seen_between(findings)
    {
        return format!("No jump is proven, but the curve changes by {changes}.");
    }
    if let Some(seen) = findings.open_below().filter(|_| findings.jumps.is_empty() && !is_too_steep(findings)) {
        let seen = human::limit(seen);
        return format!("Jumps below {seen} are neither shown nor ruled out; none of {seen} or more was found.");
    }
    let period = findings.period.as_ref().map_or(String::new(), |period| {
        format!("; period {} ({})", human::batch_size(period.value), human::p_equals(period.p_value))
    });
    match (findings.jumps.len(), findings.detectable) {
        // Silence about jumps is a result only where one could have been seen.
        (0, _) if findings.points.is_empty() => "Nothing was measured.".to_string(),
        (0, _) if has_too_few_points(findings) => {
            let sizes = human::counted(findings.points.len() as u64, "point");
            format!("Too few points to judge a jump: {sizes}, and at least {FEWEST_POINTS} are needed.")
        }
        (0, _) if is_too_steep(findings) => "No jump can be judged: too few sizes for so steep a curve.".to_string(),
        (0, Some(smallest)) => format!("No jump; one of {} would have been seen.", smallest_seen(findings, smallest)),
        (0, None) => "No jump.".to_string(),
        _ => format!("{}{period}", jumps_after(&findings.jumps.iter().map(|jump| jump.after).collect::<Vec<_>>())),
    }
}

/// `4 jumps after 16, 32, 48 and 64`. More places than 16 are a table, not a sentence.
fn jumps_after(after: &[f64]) -> String {
    let number = human::counted(after.len() as u64, "jump");
    if after.len() > 16 { number } else { format!("{number} after {}", places(after)) }
}

/// `4 % or more between 24 and 47`: the middle third of the points, for which that holds.
pub fn smallest_seen(findings: &Findings, smallest: f64) -> String {
    let seen = format!("{} or more", human::limit(smallest));
    match findings.detectable_between() {
        Some([from, to]) => format!("{seen} between {} and {}", human::batch_size(from), human::batch_size(to)),
        None => seen,
    }
}

/// Why nothing was searched, and what to do.
fn why_unsearched(note: &Note) -> Option<String> {
    match note {
        Note::TooWide { sizes } => {
            let what = if *sizes { "sizes" } else { "values" };
            Some(format!("the {what} span too many orders of magnitude to be one curve; give a part of them"))
        }
        Note::TooManyPoints { count, most } => {
            let [count, most] = [*count, *most].map(|number| human::count(number as u64));
            Some(format!("there are {count} sizes, and this method takes at most {most}"))
        }
        _ => None,
    }
}

/// The changes between the ends that anyone sees and that nothing else names.
pub fn seen_between(findings: &Findings) -> Option<String> {
    let x: Vec<f64> = findings.points.iter().map(|point| point.x).collect();
    between(&unexplained(findings), &x)
}

/// Whether the curve is too steep for its sizes: neighbours differ by more than a jump would have to.
pub fn is_too_steep(findings: &Findings) -> bool {
    let largest = || {
        let change = |pair: &[Point]| (pair[1].center / pair[0].center - 1.0).abs();
        findings.points.windows(2).map(change).fold(0.0, f64::max)
    };
    findings.detectable.is_some_and(|seen| seen > STEEP || seen > COARSE && largest() > SHOULD_SHOW * seen)
}

/// A change between neighbours that is this many times the smallest jump that would have been seen should have shown.
const SHOULD_SHOW: f64 = 2.0;

/// Where only a larger jump would have been seen, the curve is too steep for its sizes.
const STEEP: f64 = 3.0;
/// If only a jump larger than this would have been seen, or it is not known how large, the changes between neighbours are listed.
pub const COARSE: f64 = 0.3;

/// Whether a series has points, but too few to judge a jump.
pub fn has_too_few_points(findings: &Findings) -> bool {
    (1..FEWEST_POINTS).contains(&findings.points.len())
}

/// `16, 32 and 48`.
pub fn places(x: &[f64]) -> String {
    human::listed(&x.iter().map(|&x| human::batch_size(x)).collect::<Vec<_>>())
}
