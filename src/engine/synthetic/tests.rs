use std::sync::Arc;

use super::*;
use crate::network::{Network, Shape};

fn workload(batch_size: usize) -> Workload {
    let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 1).unwrap());
    Workload { network, batch_size, settings: Settings::default() }
}

fn times(truth: &Truth, batch_size: usize, steps: usize) -> Vec<f64> {
    let mut engine = SyntheticEngine::new(truth.clone()).unwrap();
    let mut step = engine.prepare(&workload(batch_size)).unwrap();
    (0..steps).map(|_| step.run().unwrap().step_s).collect()
}

#[test]
fn without_noise_the_times_are_the_formula() {
    // By hand: 10 + 20 x 1 + 5 (after 16) + (20 - 12) x 0.5 = 39 ms; at 12 only 10 + 12 = 22 ms.
    let truth = Truth { jumps: vec![(16, 0.005), (32, 0.1)], kinks: vec![(12, 0.0005)], ..Truth::default() };
    assert!(times(&truth, 20, 3).iter().all(|time| (time - 0.039).abs() < 1e-15));
    assert!(times(&truth, 12, 3).iter().all(|time| (time - 0.022).abs() < 1e-15));
}

#[test]
fn the_same_seed_gives_the_same_times_and_another_seed_others() {
    let noisy = |seed| Truth { noise: Noise { relative_sd: 0.02, ..Noise::default() }, seed, ..Truth::default() };
    assert_eq!(times(&noisy(1), 8, 50), times(&noisy(1), 8, 50));
    assert_ne!(times(&noisy(1), 8, 50), times(&noisy(2), 8, 50));
}

#[test]
fn noise_has_the_spread_it_was_given() {
    let truth = Truth { noise: Noise { relative_sd: 0.02, ..Noise::default() }, ..Truth::default() };
    let n = 20_000;
    let relative: Vec<f64> = times(&truth, 10, n).iter().map(|time| time / 0.020 - 1.0).collect();
    let mean = relative.iter().sum::<f64>() / n as f64;
    let sd = (relative.iter().map(|r| r * r).sum::<f64>() / n as f64).sqrt();
    // Four standard errors: 0.02 / sqrt n, and 0.02 / sqrt(2 n).
    assert!(mean.abs() < 0.00057 && (sd - 0.02).abs() < 0.0004, "{mean} {sd}");
}

#[test]
fn heavy_tails_reach_farther_than_normal_ones() {
    let share = |heavy_tail_share| {
        let noise = Noise { relative_sd: 0.02, heavy_tail_share, ..Noise::default() };
        let truth = Truth { noise, ..Truth::default() };
        let times = times(&truth, 10, 20_000);
        times.iter().filter(|time| (*time / 0.020 - 1.0).abs() > 0.08).count() as f64 / 20_000.0
    };
    // P(|t| > 4) with 3 degrees of freedom: 2 * scipy.stats.t.sf(4, 3) = 0.02801; normal: 6.3e-5.
    assert!((share(1.0) - 0.02801).abs() < 0.005, "{}", share(1.0));
    assert!(share(0.0) < 0.0005);
}

#[test]
fn outliers_have_their_share_and_size() {
    let noise = Noise { outlier_share: 0.05, outlier_size: 2.0, ..Noise::default() };
    let times = times(&Truth { noise, ..Truth::default() }, 10, 20_000);
    let slow = times.iter().filter(|time| (*time - 0.060).abs() < 1e-12).count() as f64 / 20_000.0;
    // Four standard errors: sqrt(0.05 * 0.95 / n) = 0.0015.
    assert!((slow - 0.05).abs() < 0.006, "{slow}");
}

#[test]
fn drift_approaches_its_amplitude_over_all_steps_of_the_engine() {
    let drift = Drift { relative_amplitude: 0.1, time_constant_steps: 10.0 };
    let mut engine = SyntheticEngine::new(disturbed(Disturbance { drift, ..Disturbance::default() })).unwrap();
    let mut first = engine.prepare(&workload(10)).unwrap();
    assert_eq!(first.run().unwrap().step_s, 0.020);
    for _ in 0..9 {
        first.run().unwrap();
    }
    let mut second = engine.prepare(&workload(10)).unwrap();
    // Step 10 is one time constant: 1 - 1/e = 0.6321206.
    assert!((second.run().unwrap().step_s - 0.020 * 1.06321206).abs() < 1e-9);
}

#[test]
fn only_a_device_clock_gives_device_times() {
    let truth = Truth { device_clock: true, ..Truth::default() };
    let run = |truth: Truth| SyntheticEngine::new(truth).unwrap().prepare(&workload(1)).unwrap().run().unwrap();
    assert_eq!(run(truth).gpu_s, Some(0.011));
    let times = run(Truth::default());
    assert!(times.gpu_s.is_none() && times.loss.is_none() && times.forward_s.is_none());
}

#[test]
fn a_truth_that_cannot_be_is_refused() {
    let noise = Noise { outlier_share: 1.5, ..Noise::default() };
    assert!(SyntheticEngine::new(Truth { noise, ..Truth::default() }).is_err());
    let mut engine = SyntheticEngine::new(Truth { jumps: vec![(4, -1.0)], ..Truth::default() }).unwrap();
    assert!(engine.prepare(&workload(4)).is_ok());
    assert!(engine.prepare(&workload(5)).is_err());
}

fn disturbed(disturbance: Disturbance) -> Truth {
    Truth { disturbance, ..Truth::default() }
}

/// The times, relative to the true ones, of visits of two steps to these batch sizes.
fn visits(truth: Truth, batch_sizes: &[usize]) -> Vec<f64> {
    let mut engine = SyntheticEngine::new(truth.clone()).unwrap();
    let visit = |size: &usize| {
        let mut step = engine.prepare(&workload(*size)).unwrap();
        [step.run().unwrap().step_s / truth.step_s(*size), step.run().unwrap().step_s / truth.step_s(*size)]
    };
    batch_sizes.iter().flat_map(visit).map(|relative| (relative * 1e9).round() / 1e9).collect()
}

#[test]
fn each_disturbance_occurs_when_it_was_planted() {
    let none = Disturbance::default;
    let clock_step = ClockStep { at_step: 3, relative: 0.1 };
    let neighbour = Neighbour { from_step: 1, steps: 2, relative: 0.5 };
    let throttle = Throttle { after: 2, relative: 0.08 };
    for (disturbance, sizes, expected) in [
        (Disturbance { clock_step, ..none() }, [1, 2, 3], [1.0, 1.0, 1.0, 1.1, 1.1, 1.1]),
        (Disturbance { neighbour, ..none() }, [1, 2, 2], [1.0, 1.5, 1.5, 1.0, 1.0, 1.0]),
        (Disturbance { first_visit: 0.2, ..none() }, [1, 2, 1], [1.2, 1.2, 1.2, 1.2, 1.0, 1.0]),
        (Disturbance { throttle, ..none() }, [2, 3, 3], [1.0, 1.0, 1.08, 1.08, 1.08, 1.08]),
    ] {
        assert_eq!(visits(disturbed(disturbance), &sizes), expected, "{disturbance:?}");
    }
}

#[test]
fn a_boosting_device_is_slow_in_its_share_of_the_time_and_stays_in_a_state() {
    let boost = Boost { share: 0.3, relative: 0.04, dwell_steps: 10 };
    let times = times(&disturbed(Disturbance { boost, ..Disturbance::default() }), 10, 40_000);
    let slow: Vec<bool> = times.iter().map(|time| *time > 0.0205).collect();
    let share = slow.iter().filter(|slow| **slow).count() as f64 / 40_000.0;
    // 4,000 stretches: four standard errors are 4 sqrt(0.21 / 4000) = 0.029.
    assert!((share - 0.3).abs() < 0.029, "{share}");
    assert!(slow.chunks(10).all(|stretch| stretch.iter().all(|state| *state == stretch[0])));
}

#[test]
fn noise_between_visits_is_shared_by_the_steps_of_a_visit() {
    let noise = Noise { visit_sd: 0.01, ..Noise::default() };
    let times = visits(Truth { noise, ..Truth::default() }, &[5; 4000]);
    assert!(times.chunks(2).all(|visit| visit[0] == visit[1]));
    let square = times.iter().map(|time| (time - 1.0).powi(2)).sum::<f64>() / 8000.0;
    // Four standard errors of the deviation: 0.01 / sqrt(2 x 4000) x 4 = 0.00045.
    assert!((square.sqrt() - 0.01).abs() < 0.00045, "{}", square.sqrt());
}

#[test]
fn the_clock_falls_where_the_device_is_slower_and_not_where_somebody_else_is_busy() {
    use crate::device::Device;
    let disturbance = Disturbance {
        throttle: Throttle { after: 2, relative: 0.25 },
        neighbour: Neighbour { from_step: 1, steps: 1, relative: 1.0 },
        ..Disturbance::default()
    };
    let clock = Some(Clock { hz: 2e9, relative_sd: 0.0 });
    let mut engine = SyntheticEngine::new(Truth { clock, ..disturbed(disturbance) }).unwrap();
    let mut device = engine.covariates();
    assert_eq!(device.read().cpu_clock_hz, None);
    let mut read = |size| {
        engine.prepare(&workload(size)).unwrap().run().unwrap();
        let read = device.read();
        (read.cpu_clock_hz, read.throttle_reasons)
    };
    assert_eq!(read(2), (Some(2e9), Some("none".into())));
    assert_eq!(read(2), (Some(2e9), Some("none".into())));
    assert_eq!(read(3), (Some(1.6e9), Some("cpu_thermal".into())));
}

#[test]
fn faults_occur_at_their_batch_sizes() {
    let faults = Faults { nan_loss: vec![2], fails: vec![3], hangs: vec![(4, 0.02)], ..Faults::default() };
    let mut engine = SyntheticEngine::new(Truth { faults, ..Truth::default() }).unwrap();
    assert!(engine.prepare(&workload(1)).unwrap().run().unwrap().loss.is_none());
    assert!(engine.prepare(&workload(2)).unwrap().run().unwrap().loss.unwrap().is_nan());
    assert!(engine.prepare(&workload(3)).is_err());
    let watch = std::time::Instant::now();
    engine.prepare(&workload(4)).unwrap().run().unwrap();
    assert!(watch.elapsed().as_secs_f64() >= 0.02);
}

#[test]
fn the_smallest_step_is_the_time_at_batch_size_0_and_moves_no_noise() {
    let truth = Truth { noise: Noise { relative_sd: 0.1, ..Noise::default() }, ..Truth::default() };
    let mut engine = SyntheticEngine::new(truth.clone()).unwrap();
    assert_eq!(engine.smallest_step_s().unwrap(), 0.010);
    let mut step = engine.prepare(&workload(4)).unwrap();
    assert_eq!(step.run().unwrap().step_s, times(&truth, 4, 1)[0]);
}
