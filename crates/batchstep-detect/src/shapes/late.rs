//! Rough series: zigzag, growing, rounded, wandering; and jumps near an end.

use super::Family;
use super::curve::{Curve, Term};
use super::draw::Draw;
use super::noise::{Noise, Tails};
use super::sketch::Sketch;

pub(super) const FAMILIES: &[Family] = &[
    Family { name: "late in a zigzag", with_quiet: true, draw: zigzag },
    Family { name: "growing noise", with_quiet: true, draw: growing },
    Family { name: "near an end", with_quiet: true, draw: near_end },
    Family { name: "few digits", with_quiet: true, draw: rounded },
    Family { name: "heavy tails", with_quiet: true, draw: heavy },
    Family { name: "two states", with_quiet: true, draw: states },
    Family { name: "wandering", with_quiet: true, draw: wandering },
    Family { name: "multiples", with_quiet: true, draw: multiples },
    Family { name: "clock ticks", with_quiet: true, draw: ticks },
];

fn gentle(draw: &mut Draw, count: usize) -> Curve {
    let level = draw.ratio(1e-5, 0.1);
    let rise = level * draw.ratio(0.1, 6.0);
    let exponent = draw.one_of(&[0.7, 1.0, 1.0, 1.3]);
    Curve::line(level, 0.0).with(Term::Power { scale: rise / (count as f64).powf(exponent), exponent })
}

/// A jump of 1 to 3 % in the last third, one in three times four points from the end. Every other point is slower, by the same or by
/// varying amounts that may grow along x, or neighbours have errors of opposite sign. A large jump may come first.
fn zigzag(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(40, 400);
    let (size, kind) = (draw.ratio(0.01, 0.03), draw.whole(0, 2));
    // Where every other point is slower by as much as the curve rises, the zigzag is a staircase of period 2 as well.
    let flat = Curve::line(1e-3, 1e-3 * size * draw.between(0.0, 0.08));
    let curve = if kind == 0 { gentle(draw, count) } else { flat };
    let mut sketch = Sketch::whole(count, curve, Noise::of(size / draw.ratio(4.0, 14.0)));
    match kind {
        0 => sketch.noise.correlation = -draw.between(0.4, 0.75),
        1 => {
            let odd = 1.0 + size * draw.between(0.3, 1.0);
            sketch.off.iter_mut().step_by(2).for_each(|off| *off *= odd);
        }
        _ => {
            // Half of the scatter of the odd points, so that the truth takes it for noise.
            let (amplitude, growth) = (size * draw.between(0.15, 0.4), draw.one_of(&[1.0, 3.0]));
            sketch.noise.sd = sketch.noise.sd.hypot(0.4 * amplitude) / growth;
            sketch.noise.growth = growth;
            for (i, off) in sketch.off.iter_mut().enumerate().step_by(2) {
                let here = amplitude * growth.powf(i as f64 / count as f64 - 1.0);
                *off *= 1.0 + here * draw.between(0.3, 1.7);
            }
        }
    }
    if !quiet {
        let at = if draw.chance(0.33) { count - 5 } else { draw.whole(2 * count / 3, count - 8) };
        sketch.step(at, size * draw.one_of(&[1.0, 1.0, -1.0]));
        if draw.chance(0.4) {
            let early = draw.whole(8, count / 2);
            sketch.step(early, draw.ratio(0.05, 0.4));
        }
    }
    sketch
}

/// Every multiple of a number from 2 to 12 is slower or faster by 1 to 30 %, by about the same share, as sizes that fill a kernel's rows are.
fn multiples(draw: &mut Draw, quiet: bool) -> Sketch {
    let period = draw.whole(2, 12);
    let count = draw.whole(40.max(8 * period), 160);
    let curve = gentle(draw, count);
    let noise = Noise { repetitions: draw.one_of(&[1, 1, 5]), ..Noise::of(draw.one_of(&[0.002, 0.005, 0.01])) };
    let mut sketch = Sketch::whole(count, curve, noise);
    if !quiet {
        sketch.clear_steps(draw, 2, 12);
    }
    let share = draw.ratio(0.01, 0.3) * draw.one_of(&[1.0, 1.0, -0.5]);
    for (x, off) in sketch.x.iter().zip(&mut sketch.off) {
        if x % period as f64 == 0.0 {
            *off *= 1.0 + share;
        }
    }
    sketch
}

/// Relative noise that grows three to ten times along x.
fn growing(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(60, 400);
    let curve = gentle(draw, count);
    let noise = Noise { growth: draw.ratio(3.0, 10.0), ..Noise::of(draw.ratio(0.001, 0.004)) };
    let mut sketch = Sketch::whole(count, curve, noise);
    if !quiet {
        sketch.clear_steps(draw, 3, 12);
    }
    sketch
}

/// Three to six points from an end.
fn near_end(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(24, 200);
    let curve = gentle(draw, count);
    let noise = Noise { repetitions: draw.one_of(&[1, 1, 3]), ..Noise::of(draw.one_of(&[0.003, 0.01, 0.02])) };
    let mut sketch = Sketch::whole(count, curve, noise);
    if !quiet {
        let distance = draw.whole(3, 6);
        let at = if draw.chance(0.7) { count - 1 - distance } else { distance - 1 };
        sketch.clear_step(draw, at, 9.0);
    }
    sketch
}

/// Times of two or three digits.
fn rounded(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(40, 400);
    let curve = gentle(draw, count);
    let quantum = curve.value(0.5 * count as f64) / draw.ratio(15.0, 300.0);
    let relative = quantum / curve.value(0.5 * count as f64);
    let noise = Noise { quantum, ..Noise::of(relative * draw.ratio(0.1, 1.5)) };
    let mut sketch = Sketch::whole(count, curve, noise);
    if !quiet {
        for at in draw.places(1 + count / 120, 8, count - 10, 12) {
            let share = (draw.ratio(4.5, 15.0) * quantum / sketch.curve.value(sketch.x[at])).max(8.0 * sketch.noise.sd);
            sketch.step(at, share * draw.one_of(&[1.0, 1.0, -0.7]));
        }
    }
    sketch
}

/// Whole ticks of a clock, printed in a unit of which a tick is no multiple (41.67 ns in ns, sixtieths of a second in ms). The curve rises by 0.03 to 3
/// ticks from point to point, and the noise may be less than a tick.
fn ticks(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(30, 150);
    let (tick, rise, start) = (1e-6, draw.ratio(0.03, 3.0), draw.ratio(10.0, 3000.0));
    let curve = Curve::line(start * tick, rise * tick);
    let level = curve.value(0.5 * count as f64);
    let noise = Noise {
        quantum: tick,
        printed: tick / draw.one_of(&[3.3, 41.67, 52.08, 1000.0, 1e9]),
        repetitions: draw.one_of(&[1, 1, 5]),
        ..Noise::of(tick / level * draw.one_of(&[1e-3, 0.1, 0.4, 1.0]))
    };
    let mut sketch = Sketch::whole(count, curve, noise);
    if !quiet {
        for at in draw.places(1 + count / 120, 8, count - 10, 12) {
            let share = (draw.ratio(5.0, 20.0) * tick / sketch.curve.value(sketch.x[at])).max(8.0 * sketch.noise.sd);
            sketch.step(at, share * draw.one_of(&[1.0, 1.0, -0.7]));
        }
    }
    sketch
}

/// Student's t, and single slow points.
fn heavy(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(40, 300);
    let curve = gentle(draw, count);
    let noise = Noise {
        tails: Tails::Heavy,
        repetitions: draw.one_of(&[1, 1, 5]),
        ..Noise::of(draw.one_of(&[0.003, 0.006, 0.01]))
    };
    let mut sketch = Sketch::whole(count, curve, noise);
    if !quiet {
        sketch.clear_steps_at(draw.places(1 + count / 100, 8, count - 10, 10), 6.0, draw);
    }
    sketch.spikes(draw, 0.03, 0.4);
    sketch
}

/// In the last half, or a part of it, each point is randomly at one of two levels, with at most three in a row at the second level. A jump
/// precedes them.
fn states(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(60, 300);
    let curve = gentle(draw, count);
    let mut sketch = Sketch::whole(count, curve, Noise::of(draw.one_of(&[0.002, 0.005, 0.01])));
    let (from, gap, share) = (draw.whole(count / 2, 3 * count / 4), draw.ratio(0.02, 0.15), draw.between(0.15, 0.35));
    let until = draw.whole(from + 12, count);
    let mut run = 0;
    for off in &mut sketch.off[from..until] {
        run = if run < 3 && draw.chance(share) { run + 1 } else { 0 };
        *off *= if run > 0 { 1.0 + gap } else { 1.0 };
    }
    if !quiet {
        sketch.clear_steps_at(draw.places(1 + count / 150, 8, from - 6, 8), 6.0, draw);
    }
    sketch
}

/// Errors that neighbours share, as where the allocation of memory differs from size to size.
fn wandering(draw: &mut Draw, quiet: bool) -> Sketch {
    let count = draw.whole(60, 300);
    let curve = gentle(draw, count);
    let noise = Noise { correlation: draw.between(0.3, 0.8), ..Noise::of(draw.one_of(&[0.003, 0.006, 0.012])) };
    let mut sketch = Sketch::whole(count, curve, noise);
    if !quiet {
        sketch.clear_steps_at(draw.places(1 + count / 120, 10, count - 12, 14), 8.0, draw);
    }
    sketch
}
