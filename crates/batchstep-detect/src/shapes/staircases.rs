//! Whole tiles, waves and rounds, complete and incomplete.

use super::Family;
use super::curve::{Curve, Term};
use super::draw::Draw;
use super::noise::Noise;
use super::sketch::{Sketch, spaced};

pub(super) const FAMILIES: &[Family] = &[
    Family { name: "staircase", with_quiet: false, draw: whole },
    Family { name: "missing members", with_quiet: false, draw: missing },
    Family { name: "two staircases", with_quiet: false, draw: two },
    Family { name: "jump beside a period", with_quiet: false, draw: beside },
    Family { name: "no period", with_quiet: false, draw: irregular },
    Family { name: "uneven treads", with_quiet: false, draw: treads },
    Family { name: "overshoot", with_quiet: false, draw: overshoot },
    Family { name: "many layers", with_quiet: false, draw: layers },
    Family { name: "sawtooth", with_quiet: true, draw: sawtooth },
];

/// The noise for which a step of this height is `times` as high as the noise at the last point.
fn noise_for(curve: &Curve, height: f64, count: usize, times: f64) -> Noise {
    Noise::of((height / curve.value(count as f64) / times).clamp(5e-4, 0.03))
}

fn whole(draw: &mut Draw, _: bool) -> Sketch {
    let period = draw.one_of(&[3, 4, 6, 8, 12, 16, 20, 32, 82]);
    let count = draw.whole(60, 400).max(3 * period);
    let level = draw.ratio(1e-5, 0.1);
    let height = level * draw.ratio(0.03, 1.0);
    let slope = height / period as f64 * draw.one_of(&[0.0, 0.0, 0.2, 1.0]);
    let curve = Curve::line(level, slope).with(Term::Tiles { period: period as f64, phase: 0.0, height });
    let noise = noise_for(&curve, height, count, draw.ratio(4.0, 20.0));
    Sketch::whole(count, curve, noise)
}

/// A third of the members of a staircase are missing, at least one of the inner ones.
fn missing(draw: &mut Draw, _: bool) -> Sketch {
    let period = draw.one_of(&[8, 16, 16, 32]);
    let members = draw.whole(4, 9);
    let count = period * members + draw.whole(4, period);
    let mut present: Vec<usize> = (1..=members).filter(|_| draw.chance(0.65)).collect();
    let absent = draw.whole(2, members - 1);
    present.retain(|member| *member != absent);
    let (level, slope) = (draw.ratio(1e-4, 0.1), draw.ratio(0.001, 0.02));
    let mut sketch = Sketch::whole(count, Curve::line(level, slope * level), Noise::of(0.0));
    let share = draw.ratio(0.04, 0.3);
    for member in &present {
        sketch.step(member * period - 1, share * draw.ratio(0.8, 1.3));
    }
    sketch.noise =
        Noise { repetitions: draw.one_of(&[1, 3, 5]), ..Noise::of((share / draw.ratio(2.5, 12.0)).min(0.03)) };
    sketch
}

/// A short and a long period that are unrelated.
fn two(draw: &mut Draw, _: bool) -> Sketch {
    let short = draw.one_of(&[6, 8, 8, 10, 16]) as f64;
    let long = draw.one_of(&[54, 82, 82, 108, 132]) as f64;
    let count = (long * draw.between(2.5, 4.5)) as usize;
    let level = draw.ratio(1e-4, 0.1);
    let low = level * draw.ratio(0.05, 0.3);
    let high = low * draw.ratio(0.5, 6.0);
    let curve = Curve::line(level, 0.0)
        .with(Term::Tiles { period: short, phase: 0.0, height: low })
        .with(Term::Tiles { period: long, phase: draw.one_of(&[0.0, 0.0, 20.0]), height: high });
    let noise = noise_for(&curve, low.min(high), count, draw.ratio(5.0, 15.0));
    Sketch::whole(count, curve, noise)
}

/// A staircase and one or two jumps that do not belong to it, three points or more from its members.
fn beside(draw: &mut Draw, _: bool) -> Sketch {
    let period = draw.one_of(&[12, 16, 20, 32]);
    let members = draw.whole(4, 10);
    let count = period * members + draw.whole(4, period);
    let level = draw.ratio(1e-4, 0.1);
    let height = level * draw.ratio(0.05, 0.4);
    let curve = Curve::line(level, 0.0).with(Term::Tiles { period: period as f64, phase: 0.0, height });
    let noise = noise_for(&curve, height, count, draw.ratio(4.0, 15.0));
    let mut sketch = Sketch::whole(count, curve, noise);
    let wanted = draw.whole(1, 2);
    for member in draw.places(wanted, 1, members - 1, 2) {
        let at = member * period - 1 + draw.whole(3, period - 3);
        let size = height * draw.ratio(0.8, 3.0) * draw.one_of(&[1.0, -0.6]);
        sketch.curve.terms.push(Term::Step { after: sketch.x[at], size });
    }
    sketch
}

/// Jumps at places without a common measure, which a period must not swallow.
fn irregular(draw: &mut Draw, _: bool) -> Sketch {
    let count = draw.whole(60, 300);
    let level = draw.ratio(1e-5, 0.1);
    let curve = Curve::line(level, level * draw.ratio(0.0005, 0.02));
    let noise = Noise { repetitions: draw.one_of(&[1, 1, 3]), ..Noise::of(draw.one_of(&[0.003, 0.01, 0.02])) };
    let mut sketch = Sketch::whole(count, curve, noise);
    let wanted = draw.whole(2, 5);
    sketch.clear_steps_at(draw.places(wanted, 6, count - 8, 7), 5.0, draw);
    sketch
}

/// A matrix product in multiples of 8, of 16 or 64 further on: flat treads of uneven length, most steps up, some down.
fn treads(draw: &mut Draw, _: bool) -> Sketch {
    let near = draw.whole(64, 128);
    let mut x = spaced(near, 8.0);
    let coarser = draw.one_of(&[16.0, 64.0]);
    x.extend((1..=draw.whole(20, 130)).map(|i| 8.0 * near as f64 + coarser * i as f64));
    let level = draw.ratio(1e-5, 1e-2);
    let noise = Noise { growth: draw.ratio(0.5, 2.0), ..Noise::of(draw.ratio(0.002, 0.01)) };
    let count = x.len();
    let mut sketch = Sketch::new(x, Curve::line(level, level * draw.one_of(&[0.0, 1e-5, 1e-4])), noise);
    let wanted = draw.whole(6, 20);
    for at in draw.places(wanted, 4, count - 6, 4) {
        let share = draw.ratio(0.04, 0.35);
        sketch.step(at, if draw.chance(0.25) { -0.5 * share } else { share });
    }
    sketch
}

/// Steps up that settle to a lower level over the next points, beside others that do not.
fn overshoot(draw: &mut Draw, _: bool) -> Sketch {
    let count = draw.whole(80, 300);
    let level = draw.ratio(1e-5, 1e-2);
    let curve = Curve::line(level, level * draw.one_of(&[0.0, 0.001, 0.01]));
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.ratio(0.002, 0.008)));
    let wanted = draw.whole(2, 3 + count / 50);
    for at in draw.places(wanted, 10, count - 12, 14) {
        let share = draw.ratio(0.06, 0.4);
        sketch.step(at, share);
        if draw.chance(0.6) {
            let x = sketch.x[at];
            let size = sketch.curve.value(x) * share * draw.between(0.2, 0.6);
            sketch.curve.terms.push(Term::Settling { after: x, size, half: draw.between(1.5, 5.0) });
        }
    }
    sketch
}

/// Many layers, each with its own tile and its own bend.
fn layers(draw: &mut Draw, _: bool) -> Sketch {
    let count = draw.whole(80, 300);
    let most = count as f64;
    let level = draw.ratio(1e-4, 0.1);
    let mut curve = Curve::line(level, 0.0);
    for _ in 0..draw.whole(4, 10) {
        let period = draw.one_of(&[12.0, 16.0, 20.0, 24.0, 32.0, 41.0, 54.0, 64.0, 82.0, 108.0]);
        let height = level * draw.ratio(0.01, 0.5) * period / most;
        curve.terms.push(Term::Tiles { period, phase: 0.0, height });
        let at = draw.ratio(3.0, 0.8 * most);
        curve.terms.push(Term::Soft { at, width: at * draw.ratio(0.05, 0.4), slope: height / period });
    }
    Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.001, 0.002, 0.005])))
}

/// A pattern of period 2 or 4 over the whole curve, with two jumps that matter. If `quiet`, only the pattern, of period 4.
fn sawtooth(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(100, 800);
    let level = draw.ratio(1e-5, 0.1);
    let height = level * draw.ratio(0.01, 0.1);
    let slope = level * draw.ratio(0.1, 2.0) / count as f64;
    let curve = if !quiet && draw.chance(0.5) {
        Curve::line(level, slope).with(Term::Alternation { height })
    } else {
        let down = Term::Pattern { period: 4.0, phase: 0.0, height: -height };
        Curve::line(level, slope + height / 4.0).with(down)
    };
    let noise = noise_for(&curve, height, count, draw.ratio(5.0, 15.0));
    let mut sketch = Sketch::whole(count, curve, noise);
    if !quiet {
        for at in draw.places(2, 20, count - 22, 40) {
            let share = draw.between(2.5, 6.0) * height / sketch.curve.value(sketch.x[at]);
            sketch.step(at, share.max(10.0 * sketch.noise.sd));
        }
    }
    sketch
}
