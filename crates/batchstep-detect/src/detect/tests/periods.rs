//! Staircases and periods.

use super::{Simulation, afters, found, jumping, line};
use crate::random::Rng;

#[test]
fn a_staircase_and_its_period_are_found() {
    for period in [3.0, 8.0, 16.0] {
        let findings = found(&Simulation::new(21).noise(0.006).of(|x| 0.01 + 0.004 * (x / period).ceil()));
        let steps: Vec<f64> = (1..70).map(f64::from).filter(|k| k % period == 0.0).collect();
        assert_eq!(afters(&findings), steps);
        let proven = findings.period.expect("a period");
        assert_eq!((proven.value, proven.explains.len()), (period, steps.len()));
        assert!(proven.p_value < 0.01);
    }
}

#[test]
fn unequal_jumps_at_multiples_have_a_period_too() {
    let heights = [0.002, 0.006, 0.003, 0.008];
    let findings = found(&Simulation::new(30).of(|x| {
        line(x) + heights.iter().zip([16.0, 32.0, 48.0, 64.0]).filter(|(_, k)| x > *k).map(|(h, _)| h).sum::<f64>()
    }));
    assert_eq!(afters(&findings), [16.0, 32.0, 48.0, 64.0]);
    assert_eq!(findings.period.map(|p| p.value), Some(16.0));
}

/// Like dense layers on a CPU: steps of the same height at 16, 48 and 64, and half of it at 32, before which one batch
/// size is fast.
#[test]
fn a_staircase_with_a_lower_step_beside_a_fast_point_is_found() {
    for seed in 60..70 {
        let findings = found(&Simulation::new(seed).noise(0.004).of(|x| {
            let jumps = [(16.0, 0.1), (32.0, 0.045), (48.0, 0.1), (64.0, 0.1)].iter().filter(|(k, _)| x > *k);
            0.22 + 0.013 * x + jumps.map(|(_, height)| height).sum::<f64>() - if x == 32.0 { 0.04 } else { 0.0 }
        }));
        assert_eq!(afters(&findings), [16.0, 32.0, 48.0, 64.0], "{seed}");
        assert_eq!(findings.period.map(|p| p.value), Some(16.0), "{seed}");
    }
}

/// The same curve with all of these batch sizes a little fast: it must not be described as rising before them and
/// falling back there.
#[test]
fn steps_after_fast_points_are_not_before_them() {
    for seed in 80..90 {
        let findings = found(&Simulation::new(seed).noise(0.004).of(|x| {
            let jumps = [(16.0, 0.1), (32.0, 0.045), (48.0, 0.1), (64.0, 0.1)].iter().filter(|(k, _)| x > *k);
            let fast = [(16.0, 0.005), (32.0, 0.05), (48.0, 0.01), (64.0, 0.007)].iter().filter(|(k, _)| x == *k);
            0.22 + 0.013 * x + jumps.map(|(_, height)| height).sum::<f64>() - fast.map(|(_, by)| by).sum::<f64>()
        }));
        assert_eq!(afters(&findings), [16.0, 32.0, 48.0, 64.0], "{seed}");
    }
}

#[test]
fn a_period_may_have_an_offset() {
    let findings = found(&Simulation::new(35).noise(0.006).of(jumping(0.08, &[5.0, 21.0, 37.0, 53.0])));
    assert_eq!(afters(&findings), [5.0, 21.0, 37.0, 53.0]);
    let period = findings.period.expect("a period");
    assert_eq!((period.value, period.explains), (16.0, vec![5.0, 21.0, 37.0, 53.0]));
    assert!(found(&Simulation::new(36).noise(0.006).of(jumping(0.08, &[5.0, 21.0, 34.0, 53.0]))).period.is_none());
}

#[test]
fn short_segments_with_unequal_steps_are_found_one_by_one() {
    let mut rng = Rng::new(77);
    let heights: Vec<f64> = (0..18).map(|_| 0.004 * (0.7 + 0.6 * rng.uniform())).collect();
    let risen = |x: f64| heights.iter().take(((x - 1.0) / 4.0).floor() as usize).sum::<f64>();
    let findings = found(&Simulation::new(33).noise(0.004).of(|x| 0.01 + risen(x)));
    let steps: Vec<f64> = (1..18).map(|k| f64::from(4 * k)).collect();
    assert_eq!(afters(&findings), steps);
    assert_eq!(findings.period.map(|p| p.value), Some(4.0));
}

#[test]
fn a_long_staircase_is_found_whole() {
    let mut simulation = Simulation::new(24).noise(0.003).reps(3);
    simulation.xs = (1..=600).map(f64::from).collect();
    let findings = found(&simulation.of(|x| 0.01 + 0.002 * (x / 40.0).ceil()));
    let steps: Vec<f64> = (1..15).map(|k| f64::from(40 * k)).collect();
    assert_eq!(afters(&findings), steps);
    assert_eq!(findings.period.map(|p| p.value), Some(40.0));
}

#[test]
fn two_jumps_at_multiples_of_half_the_range_have_a_period() {
    let findings = found(&Simulation::new(37).noise(0.006).of(jumping(0.08, &[32.0, 64.0])));
    assert_eq!(afters(&findings), [32.0, 64.0]);
    let period = findings.period.expect("a period");
    assert!(period.value == 32.0 && (0.002..0.0021).contains(&period.p_value), "{period:?}");
    assert!(found(&Simulation::new(37).noise(0.006).of(jumping(0.08, &[28.0, 56.0]))).period.is_none());
}

/// Three dense layers on a CPU jump after 16, 32 and 64 and not after 48. A staircase explains the three with one term; it must not add the
/// fourth.
#[test]
fn a_staircase_does_not_grow_a_missing_member() {
    let (mut invented, mut seen) = (0, 0);
    for seed in 0..60 {
        let noise = [0.005, 0.01, 0.02][seed as usize % 3];
        let found = found(&Simulation::new(seed).noise(noise).of(jumping(0.06, &[16.0, 32.0, 64.0])));
        invented += usize::from(afters(&found).contains(&48.0));
        seen += afters(&found).iter().filter(|after| [16.0, 32.0, 64.0].contains(*after)).count();
    }
    assert_eq!(invented, 0);
    assert!(seen >= 170, "{seen} of 180");
}

/// The heights of a measured run: three dense layers whose products take vectors of 16 examples and tiles of 6. The
/// small steps of period 6 are near the noise of a point. Without the staircase as one term, disturbed points replaced
/// them and absorbed the step after 16.
#[test]
fn a_weak_staircase_does_not_hide_the_steps_of_a_stronger_one() {
    let heights = [22e-6, 110e-6, 130e-6, 210e-6];
    let whole = |x: f64, period: f64| ((x - 1.0) / period).floor();
    let risen = |x: f64| heights.iter().take(whole(x, 16.0) as usize).sum::<f64>();
    let curve = |x: f64| 280e-6 + 16.5e-6 * x + 17.5e-6 * whole(x, 6.0) + risen(x);
    let (mut strong, mut weak, mut others, mut named) = (0, 0, 0, 0);
    for seed in 0..40 {
        let findings = found(&Simulation::new(seed).noise(0.015).of(curve));
        named += usize::from(findings.period.as_ref().is_some_and(|period| period.value == 16.0));
        let afters = afters(&findings);
        strong += afters.iter().filter(|after| *after % 16.0 == 0.0).count();
        weak += afters.iter().filter(|after| *after % 6.0 == 0.0).count();
        others += afters.iter().filter(|after| *after % 16.0 != 0.0 && *after % 6.0 != 0.0).count();
    }
    assert!(strong >= 155 && others == 0, "{strong} of 160, {others} others");
    assert!(weak >= 250, "{weak} of 440");
    // The reported period is that of the larger steps.
    assert_eq!(named, 40);
}

/// Steps every 66 on a grid of 8: a period of 64 has more of them at the wrong place than it may move by one disturbed point each.
#[test]
fn a_period_between_two_sizes_is_not_rounded_to_one_of_them() {
    let mut right = 0;
    for seed in 0..20 {
        let mut simulation = Simulation::new(seed).noise(0.01).reps(5);
        simulation.xs = (1..=64).map(|i| 8.0 * f64::from(i)).collect();
        let found = found(&simulation.of(|x| 1.0 + 0.01 * x + 0.8 * (x / 66.0).ceil()));
        right += usize::from(afters(&found) == [64.0, 128.0, 192.0, 264.0, 328.0, 392.0, 456.0]);
    }
    assert!(right >= 18, "{right} of 20");
}
