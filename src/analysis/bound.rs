//! The size of a jump of quantities that are never negative.

use crate::detect::{Findings, Jump, Point};

/// No positive quantity falls by more than all of it. A trend that is drawn on across a steep curve can say so; such a jump is then measured
/// between the sizes beside it.
pub(super) fn falls(findings: &mut Findings) {
    let Findings { points, jumps, .. } = findings;
    if !points.iter().any(|point| point.center <= 0.0) {
        let is_all = |jump: &&mut Jump| jump.relative <= -1.0 || jump.size < 0.0 && -jump.low >= level(jump);
        jumps.iter_mut().filter(is_all).for_each(|jump| measure(jump, points));
    }
}

/// The fit at a jump.
fn level(jump: &Jump) -> f64 {
    if jump.relative == 0.0 { f64::INFINITY } else { jump.size / jump.relative }
}

fn measure(jump: &mut Jump, points: &[Point]) {
    let Some(next) = points.iter().position(|point| point.x > jump.after).filter(|next| *next > 0) else { return };
    let (before, after) = (&points[next - 1], &points[next]);
    let (low, high) = (jump.low / jump.size, jump.high / jump.size);
    if jump.relative <= -1.0 {
        jump.size = after.center - before.center;
        jump.relative = jump.size / before.center;
        // As wide as it was, for its size.
        (jump.low, jump.high) = (low * jump.size, high * jump.size);
    }
    jump.low = jump.low.max(-before.center).min(jump.size);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_rate_falls_by_more_than_all_of_it() {
        let point =
            |x: f64, center: f64| Point { x, count: 1, center, low: center, high: center, fit: center, off: false };
        let jump =
            |size: f64, relative: f64| Jump { low: 1.5 * size, high: 0.5 * size, ..Jump::planted(8.0, size, relative) };
        let points = vec![point(4.0, 2.0), point(8.0, 4.0), point(16.0, 1.0)];
        let mut found = Findings {
            points,
            jumps: vec![jump(-5.0, -1.25), jump(2.0, 1.5), jump(-1.0, -0.25)],
            ..Findings::default()
        };
        falls(&mut found);
        let [fell, rose, little] = &found.jumps[..] else { panic!("three jumps") };
        assert_eq!((fell.size, fell.relative), (-3.0, -0.75));
        assert!(fell.low >= -4.0 && fell.low <= fell.size && fell.high >= fell.size, "{fell:?}");
        assert_eq!((rose.relative, little.relative, little.low), (1.5, -0.25, -1.5));
    }
}
