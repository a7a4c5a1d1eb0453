//! The p-value of a whole series: uniform where there is no jump.

use super::{Simulation, jumping, line};
use crate::detect::{Observation, Settings, detect};
use crate::random::Rng;

fn p_value(observations: &[Observation], seed: u64) -> f64 {
    let settings = Settings { seed, ..Settings::default() };
    detect(observations, &settings).p_value.expect("draws were asked for")
}

/// A jump-free series of one of four curves and three kinds of noise, with one, three or twelve repetitions.
fn jump_free(seed: u64) -> Vec<Observation> {
    let mut rng = Rng::new(70_000 + seed);
    let (kind, reps) = (seed / 4 % 3, [1, 3, 12][(seed / 12 % 3) as usize]);
    let noise = [0.003, 0.01, 0.03][(seed / 36 % 3) as usize];
    let curve = |x: f64| match seed % 4 {
        0 => line(x),
        1 => 0.01 + 0.002 * x.powf(0.7),
        2 => 0.02 + 0.001 * (x - 30.0).max(0.0),
        _ => line(x) + if x % 2.0 == 1.0 { 0.003 } else { 0.0 },
    };
    let mut error = || match kind {
        0 => rng.normal(),
        1 => rng.student(),
        // skewed, like waiting times
        _ => -(1.0 - rng.uniform()).ln() - 1.0,
    };
    let xs = (1..=70).flat_map(|x| vec![f64::from(x); reps]);
    xs.map(|x| Observation::new(x, curve(x) * (noise * error()).exp())).collect()
}

#[test]
#[ignore = "slow"]
fn p_values_of_jump_free_series_are_uniform() {
    const COUNT: usize = 540;
    let mut found: Vec<f64> = (0..COUNT as u64).map(|seed| p_value(&jump_free(seed), seed)).collect();
    found.sort_by(f64::total_cmp);
    let count = COUNT as f64;
    let distance = |(i, p): (usize, &f64)| (p - i as f64 / count).abs().max((p - (i + 1) as f64 / count).abs());
    let farthest = found.iter().enumerate().map(distance).fold(0.0, f64::max);
    // Kolmogorov's distribution: 1.63 / sqrt(n) is exceeded by chance in 1 % of samples.
    assert!(farthest < 1.63 / count.sqrt(), "{farthest}");
    for level in [0.01, 0.05, 0.1, 0.2, 0.5] {
        let below = found.iter().filter(|p| **p <= level).count() as f64;
        // Two and a half standard deviations of the binomial are allowed for chance.
        let chance = 2.5 * (count * level * (1.0 - level)).sqrt();
        assert!((below - count * level).abs() <= chance, "{below} of {count} at {level}");
    }
}

#[test]
fn a_jump_makes_the_series_unlikely_to_be_free_of_one() {
    let observations = Simulation::new(4).of(jumping(0.05, &[30.0]));
    let findings = detect(&observations, &Settings::default());
    assert_eq!(findings.p_value, findings.jumps.iter().map(|jump| jump.p_value).reduce(f64::min));
    // A jump that is too small to be reported still counts as evidence.
    let small = (0..20).filter(|&seed| p_value(&Simulation::new(seed).of(jumping(0.015, &[30.0])), 1) < 0.05).count();
    assert!(small >= 12, "{small} of 20");
}

#[test]
fn a_series_that_was_not_drawn_for_has_no_p_value() {
    let settings = Settings { resamples: 0, ..Settings::default() };
    assert_eq!(detect(&Simulation::new(1).of(line), &settings).p_value, None);
    assert_eq!(detect(&Simulation::new(1).of(line)[..12], &Settings::default()).p_value, None);
    // Without noise there is no evidence of a jump.
    assert_eq!(detect(&Simulation::new(0).noise(0.0).of(line), &Settings::default()).p_value, Some(1.0));
}
