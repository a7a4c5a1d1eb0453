//! Sizes and their intervals.

use super::{Simulation, afters, found, jumping, line};
use crate::detect::Observation;
use crate::random::Rng;

#[test]
fn the_unit_of_y_does_not_matter() {
    let seconds = Simulation::new(8).of(jumping(0.08, &[16.0, 32.0, 48.0]));
    for factor in [1024.0, 1e3, 1e-9] {
        let other: Vec<Observation> = seconds.iter().map(|o| Observation { y: o.y * factor, ..*o }).collect();
        let (a, b) = (found(&seconds), found(&other));
        assert_eq!(afters(&a), afters(&b));
        for (a, b) in a.jumps.iter().zip(&b.jumps) {
            for (a, b) in [(a.size, b.size), (a.low, b.low), (a.high, b.high)] {
                assert!((b / factor / a - 1.0).abs() < 1e-6);
            }
            assert!((a.relative / b.relative - 1.0).abs() < 1e-6);
        }
    }
}

#[test]
fn intervals_cover_the_true_size() {
    let (mut covered, mut all) = (0, 0);
    for seed in 0..150 {
        let findings = found(&Simulation::new(seed).of(jumping(0.06, &[20.0, 45.0])));
        for (jump, truth) in findings.jumps.iter().zip([0.06 * line(20.0), 0.06 * line(45.0)]) {
            all += 1;
            covered += usize::from(jump.low <= truth && truth <= jump.high);
        }
    }
    let share = covered as f64 / all as f64;
    assert!((0.91..=0.99).contains(&share), "{covered} of {all}");
}

#[test]
fn intervals_cover_the_size_of_a_jump_that_brings_another_slope() {
    let (mut covered, mut all) = (0, 0);
    for seed in 0..150 {
        let mut rng = Rng::new(500 + seed);
        let bend = 0.0008 * (0.7 * rng.uniform() - 0.35);
        let (k, size) = (20.0 + rng.below(30) as f64, 0.004);
        let findings =
            found(&Simulation::new(seed).of(|x| line(x) + if x > k { size + bend * (x - k - 1.0) } else { 0.0 }));
        for jump in findings.jumps.iter().filter(|jump| jump.after == k) {
            all += 1;
            covered += usize::from(jump.low <= size && size <= jump.high);
        }
    }
    // 95 % of 150, within two and a half standard deviations of the binomial
    assert!(all > 140 && (0.905..=0.995).contains(&(covered as f64 / all as f64)), "{covered} of {all}");
}

/// Twelve shuffled blocks of two steps each; the jump after 20 has another height in each block.
fn of_unlike_blocks(seed: u64) -> Vec<Observation> {
    let mut rng = Rng::new(seed);
    let mut observations = Vec::new();
    for block in 0..12 {
        let height = 0.003 * (1.0 + 0.2 * rng.normal());
        let mut plan: Vec<f64> = (1..=70).flat_map(|x| [f64::from(x); 2]).collect();
        rng.shuffle(&mut plan);
        for x in plan {
            let y = (line(x) + if x > 20.0 { height } else { 0.0 }) * (0.008 * rng.normal()).exp();
            let order = Some(observations.len() as f64);
            observations.push(Observation { order, block: Some(block), ..Observation::new(x, y) });
        }
    }
    observations
}

#[test]
fn blocks_that_disagree_widen_the_interval() {
    let covers = |observations: &[Observation]| {
        found(observations).jumps.iter().any(|j| j.after == 20.0 && j.low <= 0.003 && 0.003 <= j.high)
    };
    let (mut with, mut without) = (0, 0);
    for seed in 0..60 {
        let mut observations = of_unlike_blocks(seed);
        with += usize::from(covers(&observations));
        observations.iter_mut().for_each(|o| o.block = None);
        without += usize::from(covers(&observations));
    }
    assert!(with >= 50 && without <= 35, "{with} and {without} of 60");
}

#[test]
fn a_noiseless_curve_has_its_jumps_to_the_digit() {
    let findings = found(&Simulation::new(0).reps(1).noise(0.0).of(jumping(0.05, &[32.0])));
    assert_eq!(afters(&findings), [32.0]);
    assert!((findings.jumps[0].size / (0.05 * line(32.0)) - 1.0).abs() < 1e-6);
    assert!(found(&Simulation::new(0).reps(3).noise(0.0).of(line)).jumps.is_empty());
}
