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

/// Falls by halves over the first points to a line.
fn steep(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(24, 120);
    let level = draw.ratio(1e-5, 0.1);
    let decay = Term::Decay { scale: level * draw.ratio(1.0, 25.0), from: 1.0, half: draw.between(0.7, 1.2) };
    let curve = Curve::line(level, level * draw.ratio(0.001, 0.05)).with(decay);
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.003, 0.01, 0.02])));
    if !quiet {
        for at in draw.places(1 + count / 60, 13, count - 6, 8) {
            sketch.clear_step(draw, at, 7.0);
        }
    }
    sketch
}

/// A fixed time shared by more and more examples.
fn per_example(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(24, 160);
    let level = draw.ratio(1e-6, 1e-2);
    let shared = Term::Power { scale: level * draw.ratio(2.0, 60.0), exponent: -1.0 };
    let curve = Curve::line(level, 0.0).with(shared);
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.003, 0.01, 0.02])));
    if !quiet {
        for at in draw.places(1 + count / 60, 12, count - 6, 8) {
            sketch.clear_step(draw, at, 7.0);
        }
    }
    sketch
}

/// Many of the first twenty points are disturbed, some of them much.
fn spiky(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(40, 300);
    let level = draw.ratio(1e-5, 0.1);
    let curve = Curve::line(level, level * draw.ratio(0.0005, 0.05));
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.003, 0.006, 0.01])));
    let often = draw.between(0.25, 0.6);
    for off in sketch.off.iter_mut().take(19) {
        if draw.chance(often) {
            *off *= 1.0 + draw.ratio(0.03, 1.2);
        }
    }
    if !quiet {
        for at in draw.places(1 + count / 100, 27, count - 6, 8) {
            sketch.clear_step(draw, at, 7.0);
        }
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
        for at in draw.places(1 + count / 60, 8, count - 6, 8) {
            sketch.clear_step(draw, at, 7.0);
        }
    }
    sketch
}
