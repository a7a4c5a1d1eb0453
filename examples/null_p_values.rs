//! Are the p-values of series without a jump uniform? Simulated series of several curves and kinds of noise, 70 batch sizes each.
//!
//! ```text
//! cargo run --release --example null_p_values [SERIES]
//! ```
//!
//! For each kind: Kolmogorov and Smirnov's distance of SERIES p-values (400 where not said) from the uniform distribution, and
//! the shares at or below 0.01, 0.05, 0.10 and 0.50. Chance passes a distance of 1.36 / sqrt(SERIES) in 5 % of kinds.

use std::error::Error;

use batchstep::detect::{Observation, Settings, detect};
use batchstep::random::Rng;

type Curve = fn(f64) -> f64;

/// Step times against the batch size, none with a jump.
const CURVES: [(&str, Curve); 8] = [
    ("line", |x| 0.01 + 0.0008 * x),
    ("power 0.7", |x| 0.01 + 0.002 * x.powf(0.7)),
    ("power 1.3", |x| 0.01 + 0.0005 * x.powf(1.3)),
    ("kink", |x| 0.02 + 0.001 * (x - 30.0).max(0.0)),
    ("weak kink", |x| 0.02 + 0.0006 * x + 0.0001 * (x - 30.0).max(0.0)),
    ("soft kink", |x| 0.01 + 0.001 * (1.0 + ((x - 20.0) / 3.0).exp()).ln()),
    ("start-up", |x| 0.02 + 0.0005 * x + 0.01 * (-x / 4.0).exp()),
    ("teeth", |x| 0.01 + 0.0008 * x + if x % 2.0 == 1.0 { 0.003 } else { 0.0 }),
];

#[derive(Clone, Copy)]
enum Noise {
    Normal,
    /// Student's t with three degrees of freedom.
    HeavyTails,
    /// One in twenty is slow by three to nine standard deviations.
    Spikes,
    /// Exponential, as waiting is.
    Skewed,
    /// Six times as large at the largest batch size as at the smallest.
    Growing,
    /// A level of its own, of 2 %, for each block.
    Blocks,
    /// Half of a standard deviation of a first-order process along x, correlation 0.5, shared by all repetitions.
    Correlated,
}

const KINDS: [(&str, Noise, u32); 10] = [
    ("normal", Noise::Normal, 1),
    ("normal", Noise::Normal, 3),
    ("normal", Noise::Normal, 12),
    ("heavy tails", Noise::HeavyTails, 1),
    ("heavy tails", Noise::HeavyTails, 12),
    ("spikes", Noise::Spikes, 3),
    ("skewed", Noise::Skewed, 1),
    ("blocks", Noise::Blocks, 5),
    ("growing", Noise::Growing, 5),
    ("correlated", Noise::Correlated, 12),
];

fn main() -> Result<(), Box<dyn Error>> {
    let count: u64 = std::env::args().nth(1).map_or(Ok(400), |count| count.parse())?;
    println!(
        "{:>11} {:>4} {:>10} {:>6} {:>6} {:>6} {:>6} {:>6}",
        "noise", "reps", "curve", "KS", "0.01", "0.05", "0.10", "0.50"
    );
    for (noise_name, noise, reps) in KINDS {
        let mut all = Vec::new();
        for (curve_name, curve) in CURVES {
            let seed = |i: u64| 1_000_000 * (all.len() as u64 / count.max(1)) + 10_000 * u64::from(reps) + i;
            let settings = |i: u64| Settings { seed: i, ..Settings::default() };
            let found = (0..count).map(|i| detect(&series(curve, noise, reps, seed(i)), &settings(i)));
            let found: Vec<f64> = found.filter_map(|findings| findings.p_value).collect();
            println!("{noise_name:>11} {reps:>4} {curve_name:>10} {}", row(found.clone()));
            all.extend(found);
        }
        println!("{noise_name:>11} {reps:>4} {:>10} {}", "all", row(all));
    }
    Ok(())
}

fn series(curve: Curve, noise: Noise, reps: u32, seed: u64) -> Vec<Observation> {
    let mut rng = Rng::new(0x5eed_0000_0000 + seed);
    let sigma = [0.003, 0.01, 0.03][(seed % 3) as usize];
    let levels: Vec<f64> = (0..reps).map(|_| 0.02 * rng.normal()).collect();
    let (mut process, mut steps) = (0.0, Vec::new());
    for x in (1..=70).map(f64::from) {
        process = 0.5 * process + rng.normal();
        for rep in 0..reps {
            let error = match noise {
                Noise::Normal => sigma * rng.normal(),
                Noise::HeavyTails => sigma * student(&mut rng),
                Noise::Spikes if rng.uniform() < 0.05 => sigma * (3.0 + 6.0 * rng.uniform()),
                Noise::Spikes => sigma * rng.normal(),
                Noise::Skewed => sigma * (-(1.0 - rng.uniform()).ln() - 1.0),
                Noise::Growing => sigma * (0.3 + 1.5 * x / 70.0) * rng.normal(),
                Noise::Blocks => sigma * rng.normal() + levels[rep as usize],
                Noise::Correlated => sigma * (rng.normal() + 0.5 * process),
            };
            let block = matches!(noise, Noise::Blocks).then_some(rep);
            steps.push(Observation { block, ..Observation::new(x, curve(x) * error.exp()) });
        }
    }
    steps
}

fn student(rng: &mut Rng) -> f64 {
    rng.normal() / ((0..3).map(|_| rng.normal().powi(2)).sum::<f64>() / 3.0).sqrt()
}

/// Distance and shares.
fn row(mut found: Vec<f64>) -> String {
    found.sort_by(f64::total_cmp);
    let count = found.len() as f64;
    let distance = |(i, p): (usize, &f64)| (p - i as f64 / count).abs().max((p - (i + 1) as f64 / count).abs());
    let farthest = found.iter().enumerate().map(distance).fold(0.0, f64::max);
    let shares = [0.01, 0.05, 0.1, 0.5].map(|level| found.iter().filter(|p| **p <= level).count() as f64 / count);
    let shares: Vec<String> = shares.iter().map(|share| format!("{share:>6.3}")).collect();
    format!("{farthest:>6.3} {}", shares.join(" "))
}
