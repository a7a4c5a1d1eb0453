//! A jump of the size that is reported as detectable is detected, and a smaller one is not.

use super::{Simulation, afters, found, jumping, line};
use crate::detect::{Observation, Settings, detect};
use crate::random::Rng;

const RUNS: u64 = 100;

#[test]
#[ignore = "slow"]
fn jumps_of_the_detectable_size_are_found_in_nine_of_ten_series() {
    let settings = Settings { resamples: 0, ..Settings::default() };
    // The dispersion is known if repetitions show all of the noise. It is estimated without repetitions, and if the
    // curve is rougher than its repetitions: there each batch size has its own deviation of 1 %, as large as the noise
    // of one repetition. The places are the ends and the middle of the range for which the size holds: a third of 70
    // points on each side.
    let cases = [1, 3, 6, 12, 24].map(|reps| (reps, 0.0)).into_iter().chain([3, 6, 12, 24].map(|reps| (reps, 0.01)));
    for (reps, roughness) in cases {
        let mut found = [[0; 2]; 3];
        for seed in 0..RUNS {
            let simulation = Simulation::new(1000 + seed).reps(reps);
            let mut random = Rng::new(5000 + seed);
            let own: Vec<f64> = (0..=70).map(|_| 1.0 + roughness * random.normal()).collect();
            let line = |x: f64| line(x) * own[x as usize];
            let size = detect(&simulation.of(line), &settings).detectable.expect("a size");
            for (after, found) in [24.0, 35.0, 46.0].into_iter().zip(&mut found) {
                for (share, found) in [1.0, 0.6].into_iter().zip(found) {
                    let jump = |x: f64| if x > after { share * size * line(after) } else { 0.0 };
                    let findings = detect(&simulation.of(|x| line(x) + jump(x)), &settings);
                    *found += u64::from(findings.jumps.iter().any(|jump| jump.after == after));
                }
            }
        }
        println!(
            "{reps} repetitions, roughness {roughness}, [of the size, of 60 % of it] after 24, 35, 46: {found:?} of {RUNS}"
        );
        assert!(found.iter().all(|[whole, _]| *whole * 10 >= 9 * RUNS), "{reps}, {roughness}: {found:?} of {RUNS}");
        // A size that claimed too little would be found at 60 % as well.
        assert!(found.iter().all(|[_, less]| *less * 2 <= RUNS), "{reps}, {roughness}: {found:?} of {RUNS}");
    }
}

/// Errors that are not normal, or shared by neighbours: a size that holds for normal ones only would be found in 62 to 84 of 100 series.
#[test]
#[ignore = "slow"]
fn the_detectable_size_holds_for_other_errors_too() {
    let settings = Settings { resamples: 0, ..Settings::default() };
    let heavy = |rng: &mut Rng| 0.007 * rng.normal() / (0..3).map(|_| rng.normal().powi(2) / 3.0).sum::<f64>().sqrt();
    let one_sided = |rng: &mut Rng| -0.01 * (1.0 - rng.uniform()).ln();
    let spikes = |rng: &mut Rng| {
        let usual = 0.01 * rng.normal();
        usual + if rng.uniform() < 0.05 { 0.06 + 0.24 * rng.uniform() } else { 0.0 }
    };
    let normal = |rng: &mut Rng| 0.008 * rng.normal();
    let errors: [&dyn Fn(&mut Rng) -> f64; 4] = [&heavy, &one_sided, &spikes, &normal];
    // The last have a correlation of 0.6 between neighbours: what the fit takes of it does not show in its residuals.
    let names = ["heavy tails", "on one side", "spikes", "shared"];
    for ((name, own), (share, least)) in names.iter().zip(errors).zip([(0.0, 78), (0.0, 78), (0.0, 78), (0.6, 65)]) {
        let mut hits = 0;
        for seed in 0..RUNS {
            let series = |seed: u64, jump: f64| -> Vec<Observation> {
                let (mut rng, mut state) = (Rng::new(seed), 0.0);
                let one = |x: u32| {
                    let x = f64::from(x);
                    state = share * state + own(&mut rng);
                    Observation::new(x, (line(x) + if x > 35.0 { jump * line(35.0) } else { 0.0 }) * (1.0 + state))
                };
                (1..=70).map(one).collect()
            };
            let size = detect(&series(seed, 0.0), &settings).detectable.expect("a size");
            let findings = detect(&series(7000 + seed, size), &settings);
            hits += u32::from(findings.jumps.iter().any(|jump| jump.after == 35.0));
        }
        println!("{name}: {hits} of {RUNS}");
        assert!((least..=99).contains(&hits), "{name}: {hits} of {RUNS}");
    }
}

#[test]
fn a_series_that_was_not_searched_has_no_detectable_size() {
    assert_eq!(detect(&Simulation::new(1).of(line)[..12], &Settings::default()).detectable, None);
    // Without noise only the smallest reported jump counts.
    let size = detect(&Simulation::new(0).noise(0.0).of(line), &Settings::default()).detectable.expect("a size");
    assert!((0.003..0.0035).contains(&size), "{size}");
}

/// Every second batch size is faster by 6 %: neighbours differ by as much as a jump is large, and a jump shows all the same.
#[test]
fn jumps_beside_an_alternation_are_found() {
    let curve = |x: f64| jumping(0.08, &[13.0, 36.0])(x) * if x % 2.0 == 0.0 { 0.94 } else { 1.0 };
    for seed in 0..10 {
        let findings = found(&Simulation::new(seed).noise(0.006).of(curve));
        assert_eq!(afters(&findings), [13.0, 36.0], "seed {seed}");
    }
}
