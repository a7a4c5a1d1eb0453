//! How well one method does on series with a known truth.

use super::Labelled;
use super::truth::Change;
use crate::detect::Jump;
use crate::detect::score::{Place, Score};

/// Counts over the series of a family. Distances are in points, whatever the spacing of x.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    pub series: usize,
    /// At the right place.
    pub exact: Score,
    /// At most one point off.
    pub near: Score,
    /// The number of series without a jump, and the number of those in which none was claimed.
    pub quiet: usize,
    pub clean: usize,
    pub claims: usize,
    /// Claims of which no change of the same sign lies within three points, but one of the other sign does.
    pub wrong_signs: usize,
    /// |claimed - true| / |true| of claims at the right place.
    pub size_errors: Vec<f64>,
    /// Those of them whose interval has the true size.
    pub covered: usize,
    pub seconds: f64,
    pub slowest: f64,
}

impl Tally {
    /// Counts the claims on one series, whose detection took `seconds`.
    pub fn take(&mut self, series: &Labelled, claims: &[Jump], seconds: f64) {
        let at: Vec<f64> = claims.iter().map(|claim| index(&series.x, claim.after)).collect();
        self.series += 1;
        let exact = judged(&series.changes, &at, 0.0);
        self.exact = self.exact.plus(exact);
        self.near = self.near.plus(judged(&series.changes, &at, 1.0));
        if series.quiet {
            self.quiet += 1;
            self.clean += usize::from(exact.invented == 0);
        }
        self.claims += claims.len();
        for (claim, &at) in claims.iter().zip(&at) {
            self.wrong_signs += usize::from(has_wrong_sign(&series.changes, at, claim.size));
            let right = series.changes.iter().find(|change| change.required && change.at as f64 == at);
            self.size_errors.extend(right.map(|change| (claim.size / change.size - 1.0).abs()));
            self.covered += usize::from(right.is_some_and(|change| (claim.low..=claim.high).contains(&change.size)));
        }
        self.seconds += seconds;
        self.slowest = self.slowest.max(seconds);
    }

    /// Whether there was any jump to be found. Where not, F1 says nothing.
    pub fn has_jumps(&self) -> bool {
        self.exact.found + self.exact.missed > 0
    }

    /// The share of clean series among those without a jump, where there are any.
    pub fn clean_share(&self) -> Option<f64> {
        (self.quiet > 0).then(|| self.clean as f64 / self.quiet as f64)
    }

    /// The share of intervals that have the true size, among claims at the right place.
    pub fn coverage(&self) -> f64 {
        self.covered as f64 / self.size_errors.len() as f64
    }

    /// Median relative error of the sizes.
    pub fn size_error(&self) -> Option<f64> {
        let mut errors = self.size_errors.clone();
        errors.sort_by(f64::total_cmp);
        errors.get(errors.len() / 2).copied()
    }
}

/// The score of one series. Claims at or next to a change that is not required, and not right otherwise, are dropped; but only at it where it
/// is one of a pattern, which has changes everywhere.
fn judged(changes: &[Change], claimed: &[f64], tolerance: f64) -> Score {
    let place = |change: &Change| Place { first: change.first as f64, last: change.last as f64 };
    let required: Vec<Place> = changes.iter().filter(|change| change.required).map(place).collect();
    let right = |claim: f64, within: f64| required.iter().any(|place| place.distance(claim) <= within);
    let at_pattern = |claim: f64| changes.iter().any(|c| c.pattern && place(c).distance(claim) == 0.0);
    let faint = |claim: f64| changes.iter().any(|c| !c.required && !c.pattern && place(c).distance(claim) <= 1.0);
    let counts = |claim: f64| right(claim, 0.0) || !at_pattern(claim) && (right(claim, tolerance) || !faint(claim));
    let counted: Vec<f64> = claimed.iter().copied().filter(|&claim| counts(claim)).collect();
    Score::of(&counted, &required, tolerance)
}

fn has_wrong_sign(changes: &[Change], at: f64, size: f64) -> bool {
    let near = |change: &&Change| (change.at as f64 - at).abs() <= 3.0;
    let parts = changes.iter().filter(near).flat_map(|change| [change.size, change.largest]);
    let mut parts = parts.peekable();
    parts.peek().is_some() && !parts.any(|part| part.signum() == size.signum())
}

/// The index of the x nearest to a claim.
fn index(x: &[f64], after: f64) -> f64 {
    let right = x.partition_point(|x| *x < after).min(x.len() - 1);
    let left = right.saturating_sub(1);
    (if (x[left] - after).abs() < (x[right] - after).abs() { left } else { right }) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(after: f64, size: f64) -> Jump {
        Jump { high: size + 0.2, ..Jump::planted(after, size, 0.1) }
    }

    fn change(at: usize, size: f64, required: bool) -> Change {
        Change { at, first: at, last: at, size, largest: size, required, pattern: false }
    }

    fn series(changes: Vec<Change>) -> Labelled {
        let x: Vec<f64> = (1..=40).map(|i| 8.0 * f64::from(i)).collect();
        let quiet = changes.is_empty();
        Labelled { family: "a".into(), x, observations: Vec::new(), changes, quiet }
    }

    /// Indices 9 and 19 are after 80 and 160.
    #[test]
    fn a_hand_worked_series() {
        let truth = series(vec![change(9, 2.0, true), change(19, -1.0, true), change(30, 0.1, false)]);
        let claims = [(80.0, 2.2), (168.0, -1.0), (240.0, 0.1), (312.0, 1.0)];
        let mut tally = Tally::default();
        tally.take(&truth, &claims.map(|(after, size)| claim(after, size)), 0.5);
        // 168 is one point off; 240 is next to the faint one; 312 is invented.
        assert_eq!(tally.exact, Score { found: 1, invented: 2, missed: 1 });
        assert_eq!(tally.near, Score { found: 2, invented: 1, missed: 0 });
        assert_eq!((tally.claims, tally.wrong_signs, tally.quiet), (4, 0, 0));
        assert!((tally.size_error().expect("one") - 0.1).abs() < 1e-12);
        // 2.2 to 2.4 does not have the true 2.
        assert_eq!(tally.coverage(), 0.0);
    }

    #[test]
    fn the_sign_is_that_of_a_change_within_three_points() {
        let truth = series(vec![change(9, 2.0, true)]);
        let wrong = |after: f64, size: f64| {
            let mut tally = Tally::default();
            tally.take(&truth, &[claim(after, size)], 0.0);
            tally.wrong_signs
        };
        // Three points before 80 is 56, four are 48.
        assert_eq!([wrong(80.0, 1.0), wrong(80.0, -1.0), wrong(56.0, -1.0), wrong(48.0, -1.0)], [0, 1, 1, 0]);
    }

    #[test]
    fn a_quiet_series_is_clean_without_claims() {
        let mut tally = Tally::default();
        tally.take(&series(Vec::new()), &[], 0.0);
        tally.take(&series(Vec::new()), &[claim(80.0, 1.0)], 0.0);
        assert_eq!((tally.clean_share(), tally.has_jumps(), tally.exact.invented), (Some(0.5), false, 1));
    }
}
