//! Jumps are found where they are.

use super::{Simulation, afters, found, jumping, line};
use crate::detect::{Note, Observation, Settings, detect};
use crate::random::Rng;

#[test]
fn a_jump_is_found_where_it_is() {
    let hits = (0..60)
        .filter(|&seed| {
            let k = 8.0 + seed as f64;
            let k = if k > 62.0 { k - 50.0 } else { k };
            afters(&found(&Simulation::new(seed).of(jumping(0.05, &[k])))) == [k]
        })
        .count();
    assert!(hits >= 58, "{hits} of 60");
}

#[test]
fn jumps_go_down_as_well_as_up() {
    let findings = found(
        &Simulation::new(3).of(|x| line(x) + if x > 20.0 { 0.004 } else { 0.0 } - if x > 44.0 { 0.006 } else { 0.0 }),
    );
    assert_eq!(afters(&findings), [20.0, 44.0]);
    assert_eq!((findings.jumps[0].direction(), findings.jumps[1].direction()), ("up", "down"));
    assert!((findings.jumps[0].size - 0.004).abs() < 0.0006, "{}", findings.jumps[0].size);
    assert!((findings.jumps[1].size + 0.006).abs() < 0.0008, "{}", findings.jumps[1].size);
    assert!(findings.jumps.iter().all(|j| j.p_value < 1e-6 && j.low < j.size && j.size < j.high));
}

#[test]
fn one_value_for_each_x_is_enough() {
    let findings = found(&Simulation::new(14).reps(1).noise(0.004).of(jumping(0.06, &[24.0, 48.0])));
    assert_eq!(afters(&findings), [24.0, 48.0]);
    assert!(findings.notes.contains(&Note::NoRepetitions));
}

/// One value in seven is slow by 10 to 60 %, as where another program ran; the jump is by 15 %.
#[test]
fn a_jump_of_single_values_is_found_among_spikes() {
    let found_alone = |seed: u64| {
        let mut observations = Simulation::new(seed).reps(1).noise(0.01).of(jumping(0.15, &[31.0]));
        let mut rng = Rng::new(seed);
        for at in [3, 9, 14, 22, 26, 36, 41, 47, 55, 61] {
            observations[at].y *= 1.1 + 0.5 * rng.uniform();
        }
        afters(&detect(&observations, &Settings::default())) == [31.0]
    };
    let count = (0..40).filter(|&seed| found_alone(seed)).count();
    assert!(count >= 36, "{count} of 40");
}

#[test]
fn x_may_have_gaps_or_be_spaced_in_ratios() {
    let mut simulation = Simulation::new(17).noise(0.004);
    simulation.xs = (1..=40).map(|i| f64::from(8 * i)).collect();
    assert_eq!(afters(&found(&simulation.of(jumping(0.08, &[160.0])))), [160.0]);
    simulation.xs = (0..36).map(|i| 2f64.powf(f64::from(i) / 4.0).round() + f64::from(i)).collect();
    let k = simulation.xs[20];
    assert_eq!(afters(&found(&simulation.of(jumping(0.15, &[k])))), [k]);
}

/// Messages of 8 bytes to 8 gigabytes, each twice the one before: 5 us and a nanosecond for ten bytes, and 30 % more beyond 64 kB, where the curve bends most, as where a
/// protocol changes.
#[test]
fn doubled_sizes_over_thirty_octaves_show_their_jump_and_no_other() {
    let xs: Vec<f64> = (3..=33).map(|power| 2f64.powi(power)).collect();
    let time = |x: f64| 5e-6 + 1e-10 * x;
    let (mut found_there, mut covered) = (0, 0);
    for seed in 0..40 {
        let simulation = || Simulation { xs: xs.clone(), ..Simulation::new(seed).reps(4).noise(0.02) };
        assert_eq!(afters(&found(&simulation().of(time))), Vec::<f64>::new(), "{seed}");
        let jump = found(&simulation().of(|x| time(x) * if x > 65536.0 { 1.3 } else { 1.0 })).jumps;
        found_there += usize::from(matches!(&jump[..], [jump] if jump.after == 65536.0));
        covered +=
            jump.iter().filter(|jump| jump.low < 0.3 * time(131_072.0) && 0.3 * time(131_072.0) < jump.high).count();
    }
    assert!(found_there >= 35 && covered >= 33, "{found_there} found, {covered} intervals with the size, of 40");
}

#[test]
fn long_series_are_searched_in_reasonable_time() {
    let mut simulation = Simulation::new(23).noise(0.004).reps(2);
    simulation.xs = (1..=1500).map(f64::from).collect();
    let started = std::time::Instant::now();
    let findings = found(&simulation.of(jumping(0.1, &[256.0, 700.0, 1111.0])));
    assert_eq!(afters(&findings), [256.0, 700.0, 1111.0]);
    assert!(started.elapsed().as_secs() < 120, "{:?}", started.elapsed());
}

#[test]
fn the_same_seed_gives_the_same_findings() {
    let observations = Simulation::new(40).of(jumping(0.05, &[33.0]));
    assert_eq!(found(&observations).jumps, found(&observations).jumps);
}

/// Tables that people had: a doubling at the last of thirty sizes (ml-explore/mlx PR 3863), where nothing else happens, and the rate of a copy over
/// powers of two, which falls from 270 to 150 after 2^18.
#[test]
fn an_eye_sees_no_jump_beside_a_doubled_end_and_one_where_a_rate_falls() {
    let times = [
        5.033, 4.983, 5.005, 4.996, 4.987, 4.991, 4.992, 4.999, 5.006, 5.015, 5.003, 5.016, 5.006, 5.001, 4.996, 4.985,
        4.976, 4.998, 4.997, 5.004, 5.004, 4.980, 4.989, 4.983, 5.014, 4.997, 5.001, 4.986, 4.980, 9.981,
    ];
    let steps: Vec<_> = (1..).zip(times).map(|(x, y)| Observation::new(f64::from(x), y)).collect();
    assert_eq!(afters(&found(&steps)), Vec::<f64>::new());

    let rates = [1, 2, 4, 8, 16, 31, 60, 110, 180, 240, 270, 150, 152, 151, 153, 152];
    let copies: Vec<_> = (8..).zip(rates).map(|(e, y)| Observation::new(2f64.powi(e), f64::from(y))).collect();
    let findings = detect(&copies, &Settings { is_rate: true, ..Settings::default() });
    assert_eq!(afters(&findings), [262_144.0]);
}

/// Beside a cliff, a change of half a percent of single values may be a state of the machine; where the order of the measurements is known, or by itself, it is a jump.
#[test]
fn of_single_values_a_small_change_beside_a_cliff_is_no_jump() {
    let steps = |cliff: f64, ordered: bool| -> Vec<Observation> {
        let mut rng = Rng::new(4);
        let y = |x: f64| line(x) * if x > 20.0 { 1.005 } else { 1.0 } * if x > 45.0 { cliff } else { 1.0 };
        let of = |x: u32| {
            let (x, order) = (f64::from(x), ordered.then_some(f64::from(x * 37 % 71)));
            Observation { order, ..Observation::new(x, y(x) * (1.0 + 0.0002 * rng.normal())) }
        };
        (1..=70).map(of).collect()
    };
    let of = |cliff, ordered| afters(&found(&steps(cliff, ordered)));
    assert_eq!(of(3.0, false), [45.0]);
    assert_eq!(of(3.0, true), [20.0, 45.0]);
    assert_eq!(of(1.0, false), [20.0]);
}
