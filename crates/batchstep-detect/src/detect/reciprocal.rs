//! Findings of y from those of 1 / y or of x / y: a time from a rate, or the reverse.

use super::findings::Findings;

impl Findings {
    /// Makes those of y of those of `times(x)` / y.
    pub(super) fn turn(&mut self, times: impl Fn(f64) -> f64) {
        /// Points on each side of a kink; it is at least four from an end, and three from a jump.
        const BESIDE: usize = 3;
        /// A fall of 1 / y by more than this share is stated as this one: by all of it, y would be infinite.
        const LARGEST: f64 = 0.99;
        let places: Vec<(f64, f64)> = self.points.iter().map(|point| (point.x, point.fit)).collect();
        let fit = |x: f64| places[places.partition_point(|(place, _)| *place < x).min(places.len() - 1)].1;
        // A share of the level of 1 / y as one of y.
        let turned = |relative: f64| (1.0 + relative).max(f64::MIN_POSITIVE.sqrt()).recip() - 1.0;
        for point in &mut self.points {
            let of = |value: f64| times(point.x) / value;
            (point.center, point.low, point.high) = (of(point.center), of(point.high), of(point.low));
            point.fit = of(point.fit);
        }
        for jump in &mut self.jumps {
            // The places may have been moved from the boundary that was fitted.
            let level = jump.size / jump.relative;
            let size = |size: f64| turned(size / level) / level * times(jump.after);
            // Where 1 / y may be zero, y has no upper bound: that is as far above y as the lower one is below, in logarithms.
            let ratio = 1.0 + jump.size / level;
            let lowest = if level + jump.low > 0.0 {
                jump.low
            } else {
                (ratio * ratio / (1.0 + jump.high / level) - 1.0) * level
            };
            (jump.size, jump.low, jump.high) = (size(jump.size), size(jump.high), size(lowest));
            jump.relative = turned(jump.relative);
        }
        for kink in &mut self.kinks {
            // Straight stretches of the reciprocal are bent: the slopes are those next to the kink.
            let slope = |from: usize, to: usize| {
                let [from, to] = [from, to].map(|place| &self.points[place]);
                (to.fit - from.fit) / (to.x - from.x)
            };
            let at =
                self.points.partition_point(|point| point.x < kink.at).clamp(BESIDE, self.points.len() - 1 - BESIDE);
            (kink.slope_before, kink.slope_after) = (slope(at - BESIDE, at), slope(at, at + BESIDE));
        }
        for multiples in &mut self.multiples {
            multiples.relative = turned(multiples.relative);
            multiples.shares.iter_mut().for_each(|share| *share = turned(*share));
        }
        for candidate in &mut self.rejected {
            let level = fit(candidate.after);
            candidate.size = turned(candidate.size / level) / level * times(candidate.after);
        }
        self.detectable = self.detectable.map(|share| share.min(LARGEST)).map(|share| share / (1.0 - share));
    }
}
