//! Long series of single values.

use super::Family;
use super::curve::{Curve, Term};
use super::draw::Draw;
use super::noise::Noise;
use super::sketch::{Sketch, spaced};

pub(super) const FAMILIES: &[Family] = &[Family { name: "long, single values", with_quiet: true, draw: long }];

/// 600 to 2,048 points, with a jump about every forty; without: a curve with a few bends.
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
        let wanted = count / draw.whole(30, 90);
        for at in draw.places(wanted, 8, count - 10, 7) {
            let share = sketch.noise.sd * draw.ratio(7.0, 20.0);
            sketch.step(at, share * draw.one_of(&[1.0, -1.0]));
        }
    }
    sketch
}
