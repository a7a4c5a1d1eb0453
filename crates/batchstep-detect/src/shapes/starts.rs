//! Curves whose first points are unlike the rest.

use super::Family;
use super::curve::{Curve, Term};
use super::draw::Draw;
use super::noise::Noise;
use super::sketch::Sketch;

pub(super) const FAMILIES: &[Family] = &[
    Family { name: "steep start", with_quiet: true, draw: steep },
    Family { name: "time per example", with_quiet: true, draw: per_example },
    Family { name: "spiky head", with_quiet: true, draw: spiky },
    Family { name: "slow first points", with_quiet: true, draw: slow },
];

/// Falls by about halves over the first points to a line, and then suddenly no more; or by a decay that never quite ends.
fn steep(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(20, 300);
    let level = draw.ratio(1e-5, 0.1);
    let mut curve = Curve::line(level, level * draw.ratio(0.001, 0.05));
    let sudden = draw.chance(0.6);
    if !sudden {
        let half = draw.between(0.7, 1.4);
        curve.terms.push(Term::Decay { scale: level * draw.ratio(1.0, 25.0), from: 1.0, half });
    }
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.003, 0.01, 0.02])));
    if sudden {
        let (length, mut factor) = (draw.whole(3, 5), 1.0);
        for off in sketch.off[..length].iter_mut().rev() {
            factor *= draw.between(1.5, 2.5);
            *off = factor;
        }
    }
    if !quiet {
        sketch.clear_steps_at(draw.places(1 + count / 60, 10, count - 6, 6), 5.0, draw);
    }
    sketch
}

/// A fixed time shared by more and more examples.
fn per_example(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(20, 256);
    let level = draw.ratio(1e-6, 1e-2);
    let shared = Term::Power { scale: level * draw.ratio(2.0, 60.0), exponent: -1.0 };
    let curve = Curve::line(level, 0.0).with(shared);
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.003, 0.01, 0.02])));
    if !quiet {
        sketch.clear_steps_at(draw.places(1 + count / 60, 12, count - 6, 8), 5.0, draw);
    }
    sketch
}

/// Many of the first twenty points are disturbed, some of them much: one by one, in runs of up to four (longer ones are blocks), or by noise
/// that calms down.
fn spiky(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(40, 300);
    let level = draw.ratio(1e-5, 0.1);
    let curve = Curve::line(level, level * draw.ratio(0.0005, 0.05));
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.003, 0.006, 0.01])));
    let (kind, often) = (draw.whole(0, 2), draw.between(0.2, 0.5));
    let (mut run, mut size) = (0, 0.0);
    for (i, off) in sketch.off.iter_mut().take(19).enumerate() {
        match kind {
            0 if draw.chance(often) => *off *= 1.0 + draw.ratio(0.03, 2.0),
            1 => {
                if run == 0 || run >= 4 || draw.chance(0.35) {
                    run = if run > 0 || draw.chance(0.6) { 0 } else { 1 };
                    size = draw.ratio(0.05, 0.8);
                } else {
                    run += 1;
                }
                *off *= if run > 0 { 1.0 + size * draw.between(0.8, 1.2) } else { 1.0 };
            }
            2 => *off *= (draw.normal() * 0.3 * (-(i as f64) / 6.0).exp()).exp(),
            _ => {}
        }
    }
    if !quiet {
        sketch.clear_steps_at(draw.places(1 + count / 100, 27, count - 6, 8), 5.0, draw);
    }
    sketch
}

/// The first point, or the first two, are slow.
fn slow(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(20, 120);
    let level = draw.ratio(1e-5, 0.1);
    let curve = Curve::line(level, level * draw.ratio(0.001, 0.2));
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.003, 0.01, 0.02])));
    let factor = draw.ratio(1.15, 8.0);
    sketch.off[0] = factor;
    if draw.chance(0.5) {
        sketch.off[1] = 1.0 + (factor - 1.0) * draw.between(0.2, 0.6);
    }
    if !quiet {
        sketch.clear_steps_at(draw.places(1 + count / 60, 8, count - 6, 8), 5.0, draw);
    }
    sketch
}
