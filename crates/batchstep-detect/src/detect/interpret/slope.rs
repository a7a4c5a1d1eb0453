//! The slope of the fitted curve on both sides of a kink.
//!
//! The slope of the kink's own term says little if other terms bend the curve as well: next to a decay it can be
//! negative on a rising curve. So the slope is that of all terms together, except single steps and bad points, over
//! some points on each side.

use crate::detect::model::candidates::Term;
use crate::detect::model::fit::Model;

/// The most points of a side: a pattern of period 2, 4 or 8 is equal in both halves or cancels within them.
const POINTS: usize = 16;
/// Steps that are closer together than this are part of the slope that a person sees; other steps are jumps in addition
/// to it.
const CLOSE: f64 = 5.0;

/// The data from which slopes are computed.
pub(crate) struct KinkSlopes<'a> {
    x: &'a [f64],
    /// The fitted curve without bad points and single steps.
    curve: Vec<f64>,
    /// The places of all kinks, ascending.
    kinks: Vec<usize>,
}

impl<'a> KinkSlopes<'a> {
    pub fn new(model: &Model, x: &'a [f64]) -> Self {
        let candidates = model.problem.candidates;
        let keep = |term: Term| match term {
            Term::Hinge(_) | Term::Shape(_) => true,
            Term::Staircase(s) => x.len() as f64 <= CLOSE * candidates.staircases[s].steps.len() as f64,
            _ => false,
        };
        let kinks = model.at(Term::hinge).into_iter().map(|(k, _)| k).collect();
        Self { x, curve: model.fitted(keep), kinks }
    }

    /// The places of the kinks beside that at `k`, or the ends.
    fn beside(&self, k: usize) -> [usize; 2] {
        let before = self.kinks.iter().rev().copied().find(|kink| *kink < k).unwrap_or(0);
        [before, self.kinks.iter().copied().find(|kink| *kink > k).unwrap_or(self.x.len() - 1)]
    }

    /// The slope before the kink at `k`.
    pub fn before(&self, k: usize) -> f64 {
        self.over(self.beside(k)[0].max((k + 1).saturating_sub(POINTS)), k)
    }

    /// The slope after the kink at `k`.
    pub fn after(&self, k: usize) -> f64 {
        self.over(k, self.beside(k)[1].min(k + POINTS - 1))
    }

    /// The most by which a straight line over both stretches beside the kink at `k`, up to their ends, misses the curve there.
    pub fn departure(&self, k: usize) -> f64 {
        let [from, to] = self.beside(k);
        let [left, right] = [self.x[k] - self.x[from], self.x[to] - self.x[k]];
        (self.after(k) - self.before(k)).abs() * left * right / (left + right)
    }

    /// The slope from the mean of the first half of some points to the mean of the other half.
    fn over(&self, first: usize, last: usize) -> f64 {
        let half = (last + 1 - first) / 2;
        if half == 0 {
            return 0.0;
        }
        // Halves of two, four or eight points hold a whole pattern; points left over in the middle belong to neither.
        let half = 1 << half.ilog2();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let across = |values: &[f64]| mean(&values[last + 1 - half..=last]) - mean(&values[first..first + half]);
        across(&self.curve) / across(self.x)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rise of 2 per x with a tooth of 3 at every other one, up to the kink at 20 (index 19), and of 5 from there on.
    #[test]
    fn slopes_are_those_of_the_curve_without_its_teeth() {
        let x: Vec<f64> = (1..=40).map(f64::from).collect();
        let at = |x: &f64| 2.0 * x + 3.0 * (x - 20.0).max(0.0) + 3.0 * (x % 2.0);
        let slopes = KinkSlopes { curve: x.iter().map(at).collect(), kinks: vec![19], x: &x };
        assert!((slopes.before(19) - 2.0).abs() < 1e-12 && (slopes.after(19) - 5.0).abs() < 1e-12);
    }

    /// KinkSlopes 2 and 5, 19 and 20 apart from the ends: the chord from 2 * 1 to 2 * 20 + 5 * 20 misses 40 by 3 * 19 * 20 / 39.
    #[test]
    fn a_kink_departs_from_the_chord_of_its_two_stretches() {
        let x: Vec<f64> = (1..=40).map(f64::from).collect();
        let curve: Vec<f64> = x.iter().map(|x| 2.0 * x + 3.0 * (x - 20.0).max(0.0)).collect();
        let chord = curve[0] + (curve[39] - curve[0]) * 19.0 / 39.0;
        let departure = KinkSlopes { curve: curve.clone(), kinks: vec![19], x: &x }.departure(19);
        assert!((departure - (chord - curve[19])).abs() < 1e-9, "{departure}");
    }

    /// 10 / 2^x falls by 5, 2.5, 1.25, ...; the kinks are after the third and the sixth point. From the first to the third: the means of one
    /// point each, (10 - 2.5) over two x.
    #[test]
    fn slopes_end_at_the_neighbouring_kinks() {
        let x: Vec<f64> = (0..12).map(f64::from).collect();
        let curve = x.iter().map(|x| 10.0 * (-x).exp2()).collect();
        let slopes = KinkSlopes { curve, kinks: vec![2, 5], x: &x };
        assert!((slopes.before(2) + 3.75).abs() < 1e-12);
        // Index 2 to 5: (2.5 + 1.25) / 2 to (0.625 + 0.3125) / 2 over two x.
        assert!((slopes.after(2) - (0.46875 - 1.875) / 2.0).abs() < 1e-12);
        assert_eq!(slopes.after(2), slopes.before(5));
    }
}
