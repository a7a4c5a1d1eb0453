//! How the time of a detection grows with the number of points, at a fixed density of jumps.
//!
//! ```text
//! cargo run --release --example detect_cost
//! ```
//!
//! One value at each of n points: jumps every ten and every forty points with a slope of its own between, a staircase of period 16, and a
//! smooth curve. The exponent is the slope of ln(seconds) over ln(n) by least squares.

use std::time::Instant;

use batchstep_detect::detect::{Observation, Settings, detect};
use batchstep_detect::random::Rng;
use batchstep_detect::stats::regression::line;

const SIZES: [usize; 8] = [256, 512, 1024, 2048, 4096, 5000, 8192, 16384];

/// A series of `n` points with noise of half a percent, and the number of its jumps.
type Generator = fn(n: usize) -> (Vec<Observation>, usize);

fn main() {
    let kinds: [(&str, Generator); 4] = [
        ("a jump every 10 points", |n| jumping(n, 10)),
        ("a jump every 40 points", |n| jumping(n, 40)),
        ("a staircase of period 16", |n| of(n, (n - 1) / 16, |x| 1.0 + 0.1 * (x / 16.0).ceil())),
        ("a smooth curve", |n| of(n, 0, |x| 1.0 + 0.01 * x.powf(0.8))),
    ];
    for (name, series) in kinds {
        println!("{name}");
        let mut seconds = Vec::new();
        for n in SIZES {
            let (observations, jumps) = series(n);
            let started = Instant::now();
            let found = detect(&observations, &Settings::default()).jumps.len();
            seconds.push(started.elapsed().as_secs_f64());
            println!("  {n:6} points  {jumps:5} jumps, {found:5} found  {:8.3} s", seconds[seconds.len() - 1]);
        }
        println!("  exponent {:.2}", exponent(&seconds));
    }
}

fn exponent(seconds: &[f64]) -> f64 {
    let logs = |values: &mut dyn Iterator<Item = f64>| values.map(f64::ln).collect::<Vec<f64>>();
    let (x, y) = (logs(&mut SIZES.iter().map(|n| *n as f64)), logs(&mut seconds.iter().copied()));
    line(&x, &y, &[1.0; SIZES.len()]).slope
}

fn of(n: usize, jumps: usize, curve: impl Fn(f64) -> f64) -> (Vec<Observation>, usize) {
    let mut rng = Rng::new(n as u64);
    let one = |x: f64| Observation::new(x, curve(x) * (0.005 * rng.normal()).exp());
    ((1..=n).map(|x| x as f64).map(one).collect(), jumps)
}

/// Jumps of 5 to 15 % up and down, at distances of half to one and a half times `gap`.
fn jumping(n: usize, gap: usize) -> (Vec<Observation>, usize) {
    let mut rng = Rng::new((n * gap) as u64);
    let (mut level, mut slope, mut next, mut jumps) = (1.0, 0.0, 0, 0);
    let mut curve = Vec::new();
    for x in 0..n {
        if x == next {
            let size = 0.05 + 0.1 * rng.uniform();
            level *= if level < 0.5 || level < 5.0 && rng.below(2) == 0 { 1.0 + size } else { 1.0 - size };
            slope = level * 0.004 * (rng.uniform() - 0.5);
            jumps += usize::from(x > 0);
            next += gap / 2 + rng.below(gap + 1);
        }
        level += slope;
        curve.push(level);
    }
    of(n, jumps, |x| curve[x as usize - 1])
}
