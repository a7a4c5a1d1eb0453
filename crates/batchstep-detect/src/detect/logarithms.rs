//! Descriptions by logarithms, and findings of y over x from those of ln y over ln x.

use super::findings::Findings;
use crate::stats::quantile::median;

/// Gaps grow with x if the middle one of the last third is this many times that of the first.
const GROWING: f64 = 4.0;

/// The logarithms of ascending `x` whose gaps grow with them, as those of doubled sizes do; `None` for others.
pub(super) fn of(x: &[f64]) -> Option<Vec<f64>> {
    let gaps: Vec<f64> = x.windows(2).map(|x| x[1] - x[0]).collect();
    let third = gaps.len().div_ceil(3);
    let middle = |gaps: &[f64]| median(&mut gaps.to_vec());
    let grow = || middle(&gaps[gaps.len() - third..]) >= GROWING * middle(&gaps[..third]);
    (x[0] > 0.0 && grow()).then(|| x.iter().map(|x| x.ln()).collect())
}

impl Findings {
    /// Makes those of y over `x` of those of ln y over ln x. Sizes are shares of the trend at the next x: that at the last x before may be half of it.
    pub(super) fn raise(&mut self, x: &[f64]) {
        let logarithms: Vec<f64> = self.points.iter().map(|point| point.x).collect();
        let place = |at: f64| logarithms.partition_point(|own| *own < at).min(x.len() - 1);
        let fit: Vec<f64> = self.points.iter().map(|point| point.fit).collect();
        let trend = |after: usize, size: f64| fit[(after + 1).min(fit.len() - 1)] / size.exp();
        self.points.iter_mut().zip(x).for_each(|(point, x)| point.x = *x);
        for jump in &mut self.jumps {
            let level = trend(place(jump.after), jump.size);
            [jump.after, jump.after_low, jump.after_high] =
                [jump.after, jump.after_low, jump.after_high].map(|at| x[place(at)]);
            jump.relative = jump.size.exp_m1();
            [jump.size, jump.low, jump.high] = [jump.size, jump.low, jump.high].map(|size| level * size.exp_m1());
        }
        // The logarithm of a straight line bends.
        self.kinks.clear();
        for candidate in &mut self.rejected {
            let after = place(candidate.after);
            candidate.size = trend(after, candidate.size) * candidate.size.exp_m1();
            candidate.after = x[after];
        }
        self.detectable = self.detectable.map(f64::exp_m1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::findings::{Jump, Point};

    #[test]
    fn sizes_that_grow_by_factors_are_told_from_even_ones() {
        let of = |x: &[u32]| of(&x.iter().map(|x| f64::from(*x)).collect::<Vec<_>>()).is_some();
        assert!(of(&[1, 2, 4, 8, 16, 32, 64, 128]) && of(&[8, 12, 16, 24, 32, 48, 64, 96, 128]));
        assert!(of(&[1, 2, 3, 4, 5, 6, 7, 8, 16, 32, 64, 128]));
        assert!(!of(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 40]) && !of(&[0, 1, 2, 4, 8, 16, 32, 64]));
        assert!(!of(&[256, 512, 768, 1024, 1280, 1536, 1792, 2048]));
    }

    /// y = x up to 2, and half as much again from there on: at 4 the trend is 4 and the curve 6.
    #[test]
    fn shares_become_sizes() {
        let x = [1.0, 2.0, 4.0, 8.0];
        let point =
            |(x, fit): (&f64, f64)| Point { x: x.ln(), count: 1, center: fit, low: fit, high: fit, fit, off: false };
        let points = x.iter().zip([1.0, 2.0, 6.0, 24.0]).map(point).collect();
        let [size, low, high] = [1.5f64, 1.25, 2.0].map(f64::ln);
        let jump = Jump { low, high, ..Jump::planted(2f64.ln(), size, size) };
        let mut found = Findings { points, jumps: vec![jump], ..Findings::default() };
        found.raise(&x);
        assert_eq!(found.points.iter().map(|point| point.x).collect::<Vec<_>>(), x);
        let jump = &found.jumps[0];
        let near = |one: f64, other: f64| (one - other).abs() < 1e-12;
        assert!(jump.after == 2.0 && near(jump.relative, 0.5), "{jump:?}");
        assert!(near(jump.size, 2.0) && near(jump.low, 1.0) && near(jump.high, 4.0), "{jump:?}");
    }
}
