//! Changes close to each other, and disturbances that look like them.

use super::Family;
use super::curve::{Curve, Term};
use super::draw::Draw;
use super::noise::Noise;
use super::sketch::Sketch;

pub(super) const FAMILIES: &[Family] = &[
    Family { name: "two close changes", with_quiet: true, draw: pairs },
    Family { name: "short blocks", with_quiet: true, draw: short_blocks },
    Family { name: "long blocks", with_quiet: true, draw: long_blocks },
    Family { name: "ramps", with_quiet: true, draw: ramps },
    Family { name: "disturbed stretches", with_quiet: true, draw: disturbed },
];

fn base(draw: &mut Draw, count: usize) -> Sketch {
    let level = draw.ratio(1e-5, 0.1);
    let curve = Curve::line(level, level * draw.ratio(0.0005, 0.05));
    Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.002, 0.005, 0.01])))
}

/// Two changes with one or two points between them, which do not cancel. Without: one or two disturbed points.
fn pairs(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(40, 250);
    let mut sketch = base(draw, count);
    for at in draw.places(1 + count / 100, 12, count - 14, 14) {
        if quiet {
            let (length, factor) = (draw.whole(1, 2), draw.one_of(&[0.7, 0.9, 1.1, 1.3]));
            sketch.disturb(draw, at + 1, length, factor);
            continue;
        }
        let first = draw.one_of(&[-0.5, -0.3, 0.2, 0.4, 0.8]);
        let second = draw.between(0.1, 0.35) * if first < 0.0 { draw.one_of(&[1.0, -0.5]) } else { 1.0 };
        let gap = draw.whole(1, 2);
        sketch.step(at, first);
        sketch.step(at + gap, second);
    }
    sketch
}

/// One to three points at a level of their own between two others. Without: the level returns.
fn short_blocks(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(40, 250);
    let mut sketch = base(draw, count);
    for at in draw.places(1 + count / 80, 12, count - 16, 16) {
        let (length, factor) = (draw.whole(1, 3), 1.0 + draw.between(0.08, 0.5));
        if quiet {
            sketch.disturb(draw, at + 1, length, factor);
            continue;
        }
        sketch.step(at, factor - 1.0);
        let back = if draw.chance(0.5) { draw.between(0.3, 0.55) } else { -draw.between(0.4, 1.0) };
        sketch.step(at + length, -back * (factor - 1.0) / factor);
    }
    sketch
}

/// Six to twenty points at another level, which then returns. Without: single bad points.
fn long_blocks(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(60, 300);
    let mut sketch = base(draw, count);
    if quiet {
        sketch.spikes(draw, 0.04, 0.4);
        return sketch;
    }
    for at in draw.places(1 + count / 100, 8, count - 30, 30) {
        let share = sketch.clear_share(draw, at, 6.0);
        let (last, size) = (at + draw.whole(6, 20), sketch.curve.time_for(sketch.x[at + 1], share));
        sketch.curve.terms.push(Term::Step { after: sketch.x[at], size });
        sketch.curve.terms.push(Term::Step { after: sketch.x[last], size: -size });
    }
    sketch
}

/// A change that takes two or three steps of x. Without: soft bends.
fn ramps(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(40, 250);
    let mut sketch = base(draw, count);
    for at in draw.places(1 + count / 80, 10, count - 12, 12) {
        let (x, steps) = (sketch.x[at], draw.whole(2, 3) as f64);
        let level = sketch.curve.value(x);
        sketch.curve.terms.push(if quiet {
            Term::Soft { at: x, width: draw.between(2.0, 8.0), slope: level * draw.ratio(0.002, 0.03) }
        } else {
            let size = level * draw.ratio(0.08, 0.7) * draw.one_of(&[1.0, 1.0, -0.5]);
            Term::Ramp { after: x, until: x + steps, size }
        });
    }
    sketch
}

/// Three or four points off the curve, which then returns.
fn disturbed(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(40, 300);
    let mut sketch = base(draw, count);
    let places = draw.places(2 + count / 80, 8, count - 12, 14);
    for (i, at) in places.into_iter().enumerate() {
        if i % 2 == 1 && !quiet {
            sketch.clear_step(draw, at, 5.0);
        } else {
            let (length, factor) = (draw.whole(3, 4), draw.one_of(&[0.8, 0.93, 1.05, 1.1, 1.2, 1.5]));
            sketch.disturb(draw, at + 1, length, factor);
        }
    }
    sketch
}
