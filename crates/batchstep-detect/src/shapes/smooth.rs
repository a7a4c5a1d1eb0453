//! Curves that bend.

use super::Family;
use super::curve::{Curve, Term};
use super::draw::Draw;
use super::noise::Noise;
use super::sketch::{Sketch, log_spaced, spaced};

pub(super) const FAMILIES: &[Family] = &[
    Family { name: "cubic", with_quiet: true, draw: cubic },
    Family { name: "power", with_quiet: true, draw: power },
    Family { name: "log-spaced", with_quiet: true, draw: log_sizes },
    Family { name: "kinks", with_quiet: true, draw: kinks },
    Family { name: "many bends", with_quiet: true, draw: bends },
];

/// A product of square matrices on one core: over up to six decades, noisier where it is short.
fn cubic(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(24, 400);
    let x = spaced(count, draw.one_of(&[1.0, 4.0, 8.0, 16.0]));
    let most = x[count - 1];
    let long = draw.ratio(1e-3, 1.0);
    let cube = Term::Power { scale: long / most.powi(3), exponent: 3.0 };
    let square = Term::Power { scale: long * draw.ratio(0.001, 0.3) / most.powi(2), exponent: 2.0 };
    let fixed = long * draw.ratio(1e-6, 1e-2);
    let curve = Curve::line(fixed, 0.0).with(cube).with(square);
    let noise = Noise { growth: draw.one_of(&[0.1, 0.3, 1.0]), ..Noise::of(draw.one_of(&[0.005, 0.01, 0.03])) };
    let mut sketch = Sketch::new(x, curve, noise);
    if !quiet {
        sketch.clear_steps(draw, 1 + count / 100, 10);
    }
    sketch
}

fn power(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(24, 300);
    let most = count as f64;
    let level = draw.ratio(1e-5, 0.1);
    let rise = level * draw.ratio(0.5, 50.0);
    let exponent = draw.one_of(&[0.4, 0.5, 0.7, 1.0, 1.3, 1.5, 2.0, 2.5]);
    let term = if exponent == 1.0 {
        Term::Linearithmic { scale: rise / (most * most.ln()) }
    } else {
        Term::Power { scale: rise / most.powf(exponent), exponent }
    };
    let mut curve = Curve::line(level, 0.0).with(term);
    if draw.chance(0.3) {
        // Out of the cache: steeper over a while, and then as before.
        let (at, width) = (draw.between(0.2, 0.6) * most, draw.between(0.02, 0.06) * most);
        let slope = rise / most * draw.between(0.5, 3.0);
        curve.terms.push(Term::Soft { at, width, slope });
        curve.terms.push(Term::Soft { at: at + draw.between(0.1, 0.3) * most, width, slope: -slope });
    }
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.003, 0.01, 0.02])));
    if !quiet {
        sketch.clear_steps(draw, 1 + count / 80, 8);
    }
    sketch
}

/// Sizes over four decades; constant at first, in proportion later.
fn log_sizes(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(24, 90);
    let x = log_spaced(count, draw.one_of(&[8.0, 16.0, 64.0]), draw.one_of(&[16384.0, 131072.0]));
    let level = draw.ratio(1e-6, 1e-3);
    let turn = draw.ratio(64.0, 4096.0);
    let curve = Curve::line(level, level / turn);
    let noise = Noise { repetitions: draw.one_of(&[1, 1, 3]), ..Noise::of(draw.one_of(&[0.005, 0.01, 0.02])) };
    let mut sketch = Sketch::new(x, curve, noise);
    if !quiet {
        sketch.clear_steps_at(draw.places(draw_count(count), 6, sketch.x.len() - 7, 6), 8.0, draw);
    }
    sketch
}

fn draw_count(points: usize) -> usize {
    1 + points / 30
}

/// Sharp bends: one to three limits, each in force from some x on.
fn kinks(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(50, 300);
    let level = draw.ratio(1e-5, 0.1);
    let mut curve = Curve::line(level, level * draw.one_of(&[0.0, 0.002, 0.01]));
    let wanted = draw.whole(1, 3);
    let bends = draw.places(wanted, 8, count - 9, 12);
    for at in &bends {
        let slope = level * draw.ratio(0.003, 0.1) * draw.one_of(&[1.0, 1.0, -0.3]);
        curve.terms.push(Term::Hinge { at: (at + 1) as f64, slope: slope.max(-0.6 * level / count as f64) });
    }
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.003, 0.006, 0.01])));
    if !quiet {
        for at in draw.places(1 + count / 100, 8, count - 9, 10) {
            if bends.iter().all(|bend| bend.abs_diff(at) >= 8) {
                sketch.clear_step(draw, at, 5.0);
            }
        }
    }
    sketch
}

/// Many layers, each constant at first and growing later: bends everywhere, some of them nearly sharp.
fn bends(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(60, 400);
    let most = count as f64;
    let level = draw.ratio(1e-4, 0.1);
    let mut curve = Curve::line(level, 0.0);
    for _ in 0..draw.whole(5, 16) {
        let at = draw.ratio(3.0, 0.8 * most);
        let slope = level * draw.ratio(0.05, 0.6) / most;
        curve.terms.push(Term::Soft { at, width: at * draw.ratio(0.02, 0.4), slope });
        let exponent = draw.between(0.6, 1.7);
        curve.terms.push(Term::Power { scale: level * draw.ratio(0.02, 0.3) / most.powf(exponent), exponent });
    }
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.001, 0.003, 0.01])));
    if !quiet {
        sketch.clear_steps(draw, 1 + count / 80, 8);
    }
    sketch
}
