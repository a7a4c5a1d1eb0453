//! How long the jump detector takes: milliseconds per series, the fastest of three runs, in one thread.
//!
//! `cargo bench --bench detect`

use std::time::Instant;

use batchstep::detect::{Observation, Settings, detect, score::Score};
use batchstep::stats::bootstrap::Rng;

/// A line over 1..=`points` with 20 repetitions and a jump of a tenth of the level after each of `jumps` equal parts.
fn series(points: u32, jumps: u32, noise: f64) -> (Vec<Observation>, Vec<f64>) {
    let mut rng = Rng::new(u64::from(points + jumps));
    let part = points / (jumps + 1);
    let truth: Vec<f64> = (1..=jumps).map(|i| f64::from(i * part - i * i % 5)).collect();
    let level = |x: f64| 10.0 + 20.0 * x / f64::from(points) + truth.iter().filter(|k| x > **k).count() as f64;
    let steps = (1..=points).flat_map(|x| [f64::from(x); 20]);
    (steps.map(|x| Observation::new(x, level(x) * (noise * rng.normal()).exp())).collect(), truth)
}

fn fastest(observations: &[Observation], settings: &Settings) -> f64 {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let started = Instant::now();
        std::hint::black_box(detect(std::hint::black_box(observations), settings));
        best = best.min(started.elapsed().as_secs_f64());
    }
    1e3 * best
}

fn main() {
    println!("{:>7} {:>6} {:>14} {:>18} {:>6}", "points", "jumps", "ms", "ms, 1000 resamples", "F1");
    for (points, jumps) in [(70, 0), (70, 1), (70, 4), (200, 6), (1000, 10), (5000, 10), (5000, 40)] {
        let (observations, truth) = series(points, jumps, 0.01);
        let plain = Settings { resamples: 0, ..Settings::default() };
        let found: Vec<f64> = detect(&observations, &plain).jumps.iter().map(|j| j.after).collect();
        let f1 = Score::of(&found, &truth, 0.0).f1();
        let (without, with) = (fastest(&observations, &plain), fastest(&observations, &Settings::default()));
        println!("{points:>7} {jumps:>6} {without:>14.2} {with:>18.2} {f1:>6.3}");
    }
}
