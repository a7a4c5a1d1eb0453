//! Long series of single values.

use super::Family;
use super::curve::{Curve, Term};
use super::draw::Draw;
use super::noise::Noise;
use super::sketch::{Sketch, spaced};

pub(super) const FAMILIES: &[Family] = &[Family { name: "long, single values", with_quiet: true, draw: long }];

/// 600 to 2,048 points, with a jump for every 12 to 80; without: a curve with a few bends.
fn long(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(600, 2048);
    let x = spaced(count, draw.one_of(&[1.0, 1.0, 8.0]));
    let most = x[count - 1];
    let level = draw.ratio(1e-5, 0.1);
    let mut curve = Curve::line(level, level * draw.ratio(0.2, 3.0) / most);
    for _ in 0..draw.whole(0, 2) {
        let at = draw.between(0.1, 0.9) * most;
        curve.terms.push(Term::Hinge { at, slope: level * draw.ratio(0.2, 3.0) / most });
    }
    let mut sketch = Sketch::new(x, curve, Noise::of(draw.one_of(&[0.003, 0.006, 0.01])));
    if !quiet {
        let most_times = draw.one_of(&[15.0, 60.0]);
        let wanted = count / draw.one_of(&[12, 14, 20, 40, 80]);
        for at in draw.places(wanted, 8, count - 10, 7) {
            let share = (sketch.noise.sd * draw.ratio(6.0, most_times)).min(0.5);
            sketch.step(at, if draw.chance(0.5) { share } else { -share / (1.0 + share) });
        }
    }
    sketch
}
