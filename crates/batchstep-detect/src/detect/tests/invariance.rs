//! What must not change an answer: the unit of either axis, the order of the rows, a jitter far below the noise.

use super::*;
use crate::shapes::Family;

/// Places and directions of the jumps.
fn answer(observations: &[Observation]) -> Vec<(f64, bool)> {
    let findings = detect(observations, &Settings { resamples: 0, ..Settings::default() });
    findings.jumps.iter().map(|jump| (jump.after, jump.size > 0.0)).collect()
}

/// Series of several shapes, of one and of more values at each x.
fn series() -> Vec<(String, Vec<Observation>)> {
    let shapes = ["line", "kinks", "staircase", "mixture", "switches", "waves of a rate", "matrix sizes", "sawtooth"];
    let families: Vec<Family> = Family::all().filter(|family| shapes.contains(&family.name)).collect();
    assert_eq!(families.len(), shapes.len());
    let of = |family: &Family, seed| (format!("{} {seed}", family.name), family.series(seed).observations);
    families.iter().flat_map(|family| (0..6).map(|seed| of(family, seed)).collect::<Vec<_>>()).collect()
}

#[test]
#[ignore = "slow"]
fn the_units_of_both_axes_and_the_order_of_the_rows_do_not_matter() {
    for (name, observations) in series() {
        let own = answer(&observations);
        for factor in [1000.0, 1.0 / 7.0] {
            let scaled: Vec<_> = observations.iter().map(|o| Observation { y: o.y * factor, ..*o }).collect();
            assert_eq!(answer(&scaled), own, "{name}, y times {factor}");
        }
        let wide: Vec<_> = observations.iter().map(|o| Observation { x: o.x * 8.0, ..*o }).collect();
        let found: Vec<(f64, bool)> = answer(&wide).into_iter().map(|(x, up)| (x / 8.0, up)).collect();
        assert_eq!(found, own, "{name}, x times 8");
        let mut shuffled = observations.clone();
        Rng::new(5).shuffle(&mut shuffled);
        assert_eq!(answer(&shuffled), own, "{name}, shuffled");
    }
}

#[test]
#[ignore = "slow"]
fn a_jitter_far_below_the_noise_does_not_matter() {
    let mut unlike = Vec::new();
    for (name, observations) in series() {
        let mut rng = Rng::new(6);
        let jittered: Vec<_> =
            observations.iter().map(|o| Observation { y: o.y * (1.0 + 1e-5 * rng.normal()), ..*o }).collect();
        if answer(&jittered) != answer(&observations) {
            unlike.push(name);
        }
    }
    assert!(unlike.is_empty(), "{unlike:?}");
}

/// A rate of 1 / y is the same measurement as a time of y.
#[test]
#[ignore = "slow"]
fn a_time_and_its_rate_have_the_same_jumps() {
    for (name, observations) in series() {
        let rates: Vec<_> = observations.iter().map(|o| Observation { y: 1.0 / o.y, ..*o }).collect();
        let [of_times, of_rates] = [&observations, &rates].map(|one| found(one).jumps);
        assert_eq!(of_times.len(), of_rates.len(), "{name}");
        for (time, rate) in of_times.iter().zip(&of_rates) {
            assert_eq!(time.after, rate.after, "{name}");
            assert!(((1.0 + time.relative) * (1.0 + rate.relative) - 1.0).abs() < 1e-6, "{name}: {time:?} {rate:?}");
            assert!(time.low.signum() == -rate.high.signum(), "{name}: {time:?} {rate:?}");
            assert!((time.p_value - rate.p_value).abs() < 1e-6, "{name}: {time:?} {rate:?}");
        }
    }
}

/// Four values that scatter by 35 % on each side of a rise to forty times: the rate after it may be zero as far as its interval says.
#[test]
fn an_interval_of_a_rate_that_reaches_zero_is_one_of_a_time_that_is_finite() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let level = |x: f64| (1.0 + 0.02 * x) * if x > 20.0 { 8.0 } else { 0.2 };
        let values = (1..=40).flat_map(|x| [f64::from(x); 4]);
        let steps: Vec<_> = values.map(|x| Observation::new(x, level(x) * (0.35 * rng.normal()).exp())).collect();
        let found = found(&steps);
        for jump in &found.jumps {
            assert!(
                0.0 < jump.low && jump.low < jump.size && jump.size < jump.high && jump.high < 1000.0,
                "{seed}: {jump:?}"
            );
        }
        assert!(found.detectable.is_none_or(|share| share < 1e3), "{seed}: {:?}", found.detectable);
    }
}

/// On a line that passes a tick or two, each tick looks like a jump.
#[test]
fn the_ticks_of_a_clock_are_no_jumps() {
    for slope in [0.02, 0.2, 1.0] {
        for seed in 0..10 {
            let mut rng = Rng::new(seed);
            let level = 30.0 + 300.0 * rng.uniform();
            let ticks = |x: f64, rng: &mut Rng| (level + slope * x + 0.1 * rng.normal()).round();
            let steps: Vec<_> =
                (1..=70).map(f64::from).map(|x| Observation::new(x, 1e-3 * ticks(x, &mut rng))).collect();
            assert_eq!(answer(&steps), [], "slope {slope}, seed {seed}");
        }
    }
}

/// Rounded to a thirtieth of the median, many changes to a model gain exactly the same, and sizes are whole units: nothing may depend on the last
/// digit.
#[test]
#[ignore = "slow"]
fn of_rounded_values_neither_the_unit_nor_a_jitter_matters() {
    let mut unlike = Vec::new();
    for (name, observations) in series() {
        let mut ys: Vec<f64> = observations.iter().map(|o| o.y).collect();
        let unit = crate::stats::quantile::median(&mut ys) / 30.0;
        let rounded = |factor: f64, jitter: f64| -> Vec<Observation> {
            let mut rng = Rng::new(7);
            let y = |o: &Observation, rng: &mut Rng| {
                (o.y / unit).round().max(1.0) * unit * factor * (1.0 + jitter * rng.normal())
            };
            observations.iter().map(|o| Observation { y: y(o, &mut rng), ..*o }).collect()
        };
        let own = answer(&rounded(1.0, 0.0));
        let others = [rounded(1000.0, 0.0), rounded(1.0 / 7.0, 0.0), rounded(1.0, 1e-5)];
        if others.iter().any(|other| answer(other) != own) {
            unlike.push(name);
        }
    }
    assert!(unlike.is_empty(), "{unlike:?}");
}

/// A value far below a tick is a value, not zero.
#[test]
fn a_value_far_below_the_tick_does_not_make_the_answer_infinite() {
    let ticks = |x: u32| if x == 5 { 1e-9 } else { f64::from(20 + x / 3 + if x > 30 { 9 } else { 0 }) };
    let findings = found(&(1..=60).map(|x| Observation::new(f64::from(x), ticks(x))).collect::<Vec<_>>());
    assert!(findings.points.iter().all(|point| point.fit.is_finite()));
    assert_eq!(afters(&findings), [30.0]);
}
