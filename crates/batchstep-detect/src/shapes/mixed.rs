//! Plain lines, switches of the algorithm, matrix sizes, and everything at once.

use super::Family;
use super::curve::{Curve, Term};
use super::draw::Draw;
use super::noise::Noise;
use super::sketch::{Sketch, spaced};

pub(super) const FAMILIES: &[Family] = &[
    Family { name: "line", with_quiet: true, draw: line },
    Family { name: "switches", with_quiet: false, draw: switches },
    Family { name: "matrix sizes", with_quiet: true, draw: sizes },
    Family { name: "mixture", with_quiet: true, draw: mixture },
    Family { name: "kernel times", with_quiet: true, draw: kernels },
    Family { name: "bent and disturbed", with_quiet: true, draw: bent },
];

fn line(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(20, 300);
    let level = draw.ratio(1e-5, 0.1);
    let curve = Curve::line(level, level * draw.ratio(0.0005, 0.1));
    let noise = Noise { repetitions: draw.one_of(&[1, 1, 5, 10]), ..Noise::of(draw.one_of(&[0.002, 0.01, 0.03])) };
    let mut sketch = Sketch::whole(count, curve, noise);
    if !quiet {
        sketch.clear_steps(draw, 1 + count / 80, 6);
    }
    sketch
}

/// Another algorithm from some x on: another level and another slope.
fn switches(draw: &mut Draw, _: bool) -> Sketch {
    let count = draw.whole(40, 250);
    let level = draw.ratio(1e-5, 0.1);
    let slope = level * draw.ratio(0.005, 0.05);
    let mut sketch = Sketch::whole(count, Curve::line(level, slope), Noise::of(draw.one_of(&[0.003, 0.006, 0.01])));
    for at in draw.places(1 + count / 80, 9, count - 11, 12) {
        let share = sketch.clear_share(draw, at, 6.0);
        let size = sketch.curve.time_for(sketch.x[at + 1], share);
        let bend = (slope * draw.between(-0.4, 0.6)).clamp(-size.abs() / 4.0, size.abs() / 4.0);
        sketch.curve.terms.push(Term::Step { after: sketch.x[at], size });
        sketch.curve.terms.push(Term::Hinge { at: sketch.x[at + 1], slope: bend });
    }
    sketch
}

/// Multiples of 8, 64 or 128; those of twice or four times as much are faster.
fn sizes(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(32, 256);
    let x = spaced(count, draw.one_of(&[8.0, 64.0, 128.0]));
    let most = x[count - 1];
    let level = draw.ratio(1e-6, 1e-3);
    let exponent = draw.one_of(&[1.0, 2.0, 3.0]);
    let work = Term::Power { scale: level * draw.ratio(2.0, 200.0) / most.powf(exponent), exponent };
    let mut sketch = Sketch::new(x, Curve::line(level, 0.0).with(work), Noise::of(draw.one_of(&[0.003, 0.006, 0.01])));
    if draw.chance(0.6) {
        let (every, slower) = (draw.one_of(&[2, 4]), 1.0 + draw.ratio(0.01, 0.06));
        for (i, off) in sketch.off.iter_mut().enumerate() {
            *off *= if (i + 1) % every == 0 { 1.0 } else { slower };
        }
    }
    if !quiet {
        sketch.clear_steps_at(draw.places(1 + count / 80, 8, count - 9, 10), 8.0, draw);
    }
    sketch
}

/// A kernel against the number of tokens: treads of uneven length in multiples of 8 and then of 16, rounded to microseconds, with slow first
/// points. Without jumps: a kernel that is limited by the memory.
fn kernels(draw: &mut Draw, quiet: bool) -> Sketch {
    let near = draw.whole(48, 128);
    let mut x = spaced(near, 8.0);
    x.extend((1..=draw.whole(20, 128)).map(|i| 8.0 * near as f64 + 16.0 * i as f64));
    let (count, most) = (x.len(), x[x.len() - 1]);
    let level = draw.ratio(2e-5, 1e-3);
    let growth = draw.ratio(0.5, 2.0);
    let noise = Noise { quantum: 1e-6, growth, ..Noise::of(draw.ratio(0.002, 0.008)) };
    let curve = if quiet {
        let turn = draw.between(0.05, 0.6) * most;
        let slope = level * draw.ratio(1.0, 6.0) / most;
        Curve::line(level, 0.0).with(Term::Soft { at: turn, width: 0.1 * turn, slope })
    } else {
        Curve::line(level, level * draw.one_of(&[0.0, 0.1, 0.5]) / most)
    };
    let mut sketch = Sketch::new(x, curve, noise);
    for (i, off) in sketch.off.iter_mut().take(draw.whole(0, 2)).enumerate() {
        *off = 1.0 + draw.ratio(0.03, 0.5) / (i + 1) as f64;
    }
    if !quiet {
        let wanted = draw.whole(4, 14);
        for at in draw.places(wanted, 6, count - 6, 5) {
            let share = draw.ratio(0.05, 0.3);
            sketch.step(at, if draw.chance(0.2) { -0.5 * share } else { share });
        }
    }
    sketch
}

/// A curve that bends, with jumps, disturbed stretches, bad points, and noise that grows.
fn bent(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(60, 300);
    let most = count as f64;
    let level = draw.ratio(1e-5, 0.1);
    let mut curve = Curve::line(level, 0.0);
    let exponent = draw.one_of(&[0.5, 0.7, 1.4, 2.0, 3.0]);
    curve.terms.push(Term::Power { scale: level * draw.ratio(0.5, 20.0) / most.powf(exponent), exponent });
    let at = draw.between(0.2, 0.8) * most;
    let slope = level * draw.ratio(0.2, 4.0) / most;
    curve.terms.push(Term::Soft { at, width: at * draw.ratio(0.03, 0.3), slope });
    let noise = Noise { growth: draw.one_of(&[0.5, 1.0, 3.0]), ..Noise::of(draw.one_of(&[0.002, 0.004, 0.008])) };
    let mut sketch = Sketch::whole(count, curve, noise);
    let places = draw.places(2 + count / 50, 10, count - 12, 14);
    for (i, at) in places.into_iter().enumerate() {
        if i % 2 == 0 && !quiet {
            sketch.clear_step(draw, at, 7.0);
        } else {
            let (length, factor) = (draw.whole(1, 4), draw.one_of(&[0.92, 1.06, 1.15, 1.4]));
            sketch.disturb(draw, at + 1, length, factor);
        }
    }
    sketch.spikes(draw, 0.01, 0.3);
    sketch
}

/// A kink, jumps or a staircase, bad points and a disturbed stretch on one curve.
fn mixture(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(80, 300);
    let level = draw.ratio(1e-5, 0.1);
    let mut curve = Curve::line(level, level * draw.ratio(0.001, 0.02));
    if draw.chance(0.5) {
        curve.terms.push(Term::Decay { scale: level * draw.ratio(0.1, 3.0), from: 1.0, half: draw.between(1.0, 3.0) });
    }
    let kink = draw.whole(10, count - 12);
    if draw.chance(0.6) {
        curve.terms.push(Term::Hinge { at: (kink + 1) as f64, slope: level * draw.ratio(0.003, 0.03) });
    }
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.003, 0.006, 0.01])));
    let places = draw.places(2 + count / 50, 14, count - 14, 14);
    for (i, at) in places.into_iter().enumerate() {
        if kink.abs_diff(at) < 8 {
            continue;
        }
        match i % 3 {
            2 => {
                let (length, factor) = (draw.whole(1, 4), draw.one_of(&[0.9, 1.1, 1.3]));
                sketch.disturb(draw, at + 1, length, factor);
            }
            _ if !quiet => sketch.clear_step(draw, at, 6.0),
            _ => {}
        }
    }
    sketch.spikes(draw, 0.015, 0.3);
    sketch
}
