//! Rates: work over time, such as GB/s or TFLOP/s against the size.

use super::Family;
use super::curve::{Curve, Term, Work};
use super::draw::Draw;
use super::noise::Noise;
use super::sketch::{Sketch, log_spaced, spaced};

pub(super) const FAMILIES: &[Family] = &[
    Family { name: "throughput", with_quiet: true, draw: throughput },
    Family { name: "waves of a rate", with_quiet: false, draw: waves },
];

/// Rises with the size to the rate of the device.
fn throughput(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(30, 250);
    let x = if count < 80 && draw.chance(0.4) {
        log_spaced(count, 16.0, 65536.0)
    } else {
        spaced(count, draw.one_of(&[1.0, 8.0, 64.0]))
    };
    let most = x[x.len() - 1];
    let half = most * draw.ratio(0.01, 0.3);
    let peak = draw.ratio(10.0, 3000.0);
    let curve = Curve { work: Some(Work { scale: peak, exponent: 1.0 }), ..Curve::line(half, 1.0) };
    let mut sketch = Sketch::new(x, curve, Noise::of(draw.one_of(&[0.003, 0.01, 0.02])));
    if !quiet {
        let count = sketch.x.len();
        sketch.clear_steps_at(draw.places(1 + count / 80, 8, count - 9, 9), 6.0, draw);
    }
    sketch
}

/// Falls where another wave begins, and rises while it fills.
fn waves(draw: &mut Draw, _: bool) -> Sketch {
    let step = draw.one_of(&[1.0, 8.0, 64.0, 128.0]);
    let period = draw.whole(8, 40);
    let count = (period as f64 * draw.between(3.2, 9.0)) as usize;
    let height = 1.0;
    let fixed = height * draw.ratio(0.05, 1.5);
    let wave = Term::Tiles { period: period as f64 * step, phase: 0.0, height };
    let work = Work { scale: draw.ratio(0.1, 10.0) / step, exponent: 1.0 };
    let curve = Curve { work: Some(work), ..Curve::line(fixed, 0.0) }.with(wave);
    Sketch::new(spaced(count, step), curve, Noise::of(draw.one_of(&[0.002, 0.005, 0.01])))
}
