//! The baselines against hand calculations, and on simulated jumps.

use super::*;
use crate::random::Rng;

fn steps(seed: u64, curve: impl Fn(f64) -> f64) -> Vec<Observation> {
    let mut rng = Rng::new(seed);
    let all = (1..=70).flat_map(|x| [f64::from(x); 10]);
    all.map(|x| Observation::new(x, curve(x) * (0.005 * rng.normal()).exp())).collect()
}

#[test]
fn each_finds_a_jump_that_is_beyond_doubt() {
    for baseline in Baseline::ALL {
        let findings = detect(baseline, &steps(1, |x| 0.02 + if x > 30.0 { 0.01 } else { 0.0 }), &Settings::default());
        let afters: Vec<f64> = findings.jumps.iter().map(|j| j.after).collect();
        assert_eq!(afters, [30.0], "{}", baseline.name());
        let jump = &findings.jumps[0];
        assert!(jump.low < 0.01 && 0.01 < jump.high && jump.p_value <= 0.01, "{jump:?}");
        assert_eq!(findings.points.len(), 70);
    }
}

#[test]
fn differences_and_pelt_find_nothing_on_a_straight_line() {
    for baseline in [Baseline::Differences, Baseline::Pelt] {
        let alarms = (0..40)
            .filter(|&seed| {
                !detect(baseline, &steps(seed, |x| 0.02 + 0.0001 * x), &Settings::default()).jumps.is_empty()
            })
            .count();
        assert!(alarms <= 4, "{}: {alarms} of 40", baseline.name());
    }
}

#[test]
fn the_energy_of_a_hand_worked_cut() {
    // 0 0 0 | 1 1 1: mean distance between 1, within 0; energy 2, statistic 9 / 6 * 2 = 3
    assert_eq!(e_divisive::best(&[0.0, 0.0, 0.0, 1.0, 1.0, 1.0]), Some((3, 3.0)));
    // 0 1 2 | 5 6 7: between 5 (all pairs differ by 5 on average), within 4/3 each; energy 10 - 8/3 = 22/3, times 1.5
    let (place, statistic) = e_divisive::best(&[0.0, 1.0, 2.0, 5.0, 6.0, 7.0]).expect("six values");
    assert!(place == 3 && (statistic - 11.0).abs() < 1e-12, "{statistic}");
    assert_eq!(e_divisive::best(&[1.0; 5]), None);
}

#[test]
fn sizes_that_cannot_be_judged_are_reported() {
    for baseline in Baseline::ALL {
        let few: Vec<Observation> = (0..7).map(|i| Observation::new(f64::from(i), 1.0)).collect();
        assert_eq!(detect(baseline, &few, &Settings::default()).notes, [Note::TooFewPoints { count: 7 }]);
        assert!(detect(baseline, &[], &Settings::default()).jumps.is_empty());
    }
    let many: Vec<Observation> = (0..1001).map(|i| Observation::new(f64::from(i), 1.0)).collect();
    let findings = detect(Baseline::EDivisive, &many, &Settings::default());
    assert_eq!(findings.notes, [Note::TooManyPoints { count: 1001, most: 1000 }]);
    assert!(!findings.is_judged());
}
