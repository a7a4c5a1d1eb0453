//! No input causes a panic.

use super::{Simulation, found, line};
use crate::detect::{Note, Observation, Settings, detect};
use crate::random::Rng;

#[test]
fn bad_input_is_counted_and_never_panics() {
    assert_eq!(found(&[]).notes, [Note::TooFewPoints { count: 0 }]);
    let few: Vec<Observation> = (0..7).map(|i| Observation::new(f64::from(i), 1.0)).collect();
    assert_eq!(found(&few).notes, [Note::TooFewPoints { count: 7 }]);
    let mut spoiled = Simulation::new(1).of(line);
    spoiled[5].y = f64::NAN;
    spoiled[90].y = -1.0;
    spoiled[200].x = f64::INFINITY;
    assert!(found(&spoiled).notes.contains(&Note::Dropped { count: 3 }));
}

/// Powers of two from 1 to 2^30, of which the smallest gap is less than a billionth of the range, are even on a logarithmic scale, for which zero
/// has no place; a line that grows by e^20.
#[test]
fn what_spans_too_much_to_be_one_curve_is_not_judged() {
    let of = |xs: Vec<f64>, curve: fn(f64) -> f64| {
        let findings = found(&Simulation { xs, ..Simulation::new(1).reps(3) }.of(curve));
        let wide = findings.notes.iter().find(|note| matches!(note, Note::TooWide { .. })).cloned();
        assert_eq!((findings.is_judged(), findings.jumps.len()), (wide.is_none(), 0));
        wide
    };
    let powers = |most: i32| (0..=most).map(|power| 2f64.powi(power)).collect::<Vec<f64>>();
    let slow = |x: f64| 1e-5 + 1e-12 * x;
    assert_eq!(of(powers(30), slow), None);
    assert_eq!(of([vec![0.0], powers(30)].concat(), slow), Some(Note::TooWide { sizes: true }));
    assert_eq!(of(powers(10), slow), None);
    assert_eq!(of((0..=20).map(f64::from).collect(), f64::exp), Some(Note::TooWide { sizes: false }));
}

#[test]
fn arbitrary_numbers_never_panic() {
    let odd = [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, 1e300, 1e-300, f64::MIN_POSITIVE, f64::MAX, 0.1, 7.0];
    for seed in 0..150 {
        let mut rng = Rng::new(seed);
        let n = 8 + rng.below(40);
        let wild = rng.below(3);
        let pick =
            |rng: &mut Rng| if wild == 0 || rng.below(4) == 0 { odd[rng.below(odd.len())] } else { rng.uniform() };
        let observations: Vec<Observation> = (0..n)
            .map(|i| Observation {
                x: if wild == 2 { i as f64 } else { pick(&mut rng) },
                y: pick(&mut rng),
                order: (wild != 1).then(|| pick(&mut rng)),
                block: None,
                clock_hz: Some(pick(&mut rng)),
                node: (wild == 1).then_some(i as u32 % 3),
            })
            .collect();
        let settings = Settings { resamples: 20, ..Settings::default() };
        let findings = detect(&observations, &settings);
        assert!(findings.jumps.iter().all(|j| j.size.is_finite() && j.p_value >= 0.0), "{seed}");
    }
}
