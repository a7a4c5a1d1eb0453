//! Jumps are found where they are.

use super::{Simulation, afters, found, jumping, line};
use crate::detect::Note;

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

#[test]
fn x_may_have_gaps_or_be_spaced_in_ratios() {
    let mut simulation = Simulation::new(17).noise(0.004);
    simulation.xs = (1..=40).map(|i| f64::from(8 * i)).collect();
    assert_eq!(afters(&found(&simulation.of(jumping(0.08, &[160.0])))), [160.0]);
    simulation.xs = (0..36).map(|i| 2f64.powf(f64::from(i) / 4.0).round() + f64::from(i)).collect();
    let k = simulation.xs[20];
    assert_eq!(afters(&found(&simulation.of(jumping(0.15, &[k])))), [k]);
}

#[test]
fn long_series_are_searched_in_reasonable_time() {
    let mut simulation = Simulation::new(23).noise(0.004).reps(2);
    simulation.xs = (1..=1500).map(f64::from).collect();
    let started = std::time::Instant::now();
    let findings = found(&simulation.of(jumping(0.1, &[256.0, 700.0, 1111.0])));
    assert_eq!(afters(&findings), [256.0, 700.0, 1111.0]);
    assert!(started.elapsed().as_secs() < 20, "{:?}", started.elapsed());
}

#[test]
fn the_same_seed_gives_the_same_findings() {
    let observations = Simulation::new(40).of(jumping(0.05, &[33.0]));
    assert_eq!(found(&observations).jumps, found(&observations).jumps);
}
