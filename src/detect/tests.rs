//! The detector as a whole, on simulated series with a known truth.

use super::*;
use crate::stats::bootstrap::Rng;

/// A simulated measurement: a curve over x, repeated with multiplicative noise.
struct Simulation {
    xs: Vec<f64>,
    reps: usize,
    noise: f64,
    seed: u64,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        Self { xs: (1..=70).map(f64::from).collect(), reps: 12, noise: 0.01, seed }
    }

    fn reps(self, reps: usize) -> Self {
        Self { reps, ..self }
    }

    fn noise(self, noise: f64) -> Self {
        Self { noise, ..self }
    }

    /// Observations without order.
    fn of(&self, curve: impl Fn(f64) -> f64) -> Vec<Observation> {
        let mut rng = Rng::new(self.seed);
        let one = |x: f64, rng: &mut Rng| Observation::new(x, curve(x) * (self.noise * rng.normal()).exp());
        self.xs.iter().flat_map(|&x| vec![x; self.reps]).map(|x| one(x, &mut rng)).collect()
    }
}

/// Step time of a plain network: a launch cost and a cost per sample.
fn line(x: f64) -> f64 {
    0.010 + 0.0008 * x
}

/// The line with a jump of `share` of the level after each of `at`.
fn jumping(share: f64, at: &[f64]) -> impl Fn(f64) -> f64 {
    move |x| line(x) + at.iter().filter(|k| x > **k).map(|k| share * line(*k)).sum::<f64>()
}

fn found(observations: &[Observation]) -> Findings {
    detect(observations, &Settings::default())
}

fn afters(findings: &Findings) -> Vec<f64> {
    findings.jumps.iter().map(|j| j.after).collect()
}

#[test]
fn straight_lines_seldom_raise_an_alarm() {
    // The promise is 1 % per series; 3 % of 300 leaves room for chance (binomial, p < 0.004).
    let alarms = (0..300)
        .filter(|&seed| {
            let noise = [0.002, 0.01, 0.03][seed as usize % 3];
            let reps = [1, 5, 12][seed as usize / 3 % 3];
            !found(&Simulation::new(seed).noise(noise).reps(reps).of(line)).jumps.is_empty()
        })
        .count();
    assert!(alarms <= 9, "{alarms} of 300");
}

#[test]
fn p_values_of_jump_free_series_are_conservative() {
    let smallest = |seed: u64| {
        let (noise, reps) = ([0.002, 0.01, 0.03][seed as usize % 3], [1, 3, 12][seed as usize / 3 % 3]);
        let simulation = Simulation::new(9000 + seed).noise(noise).reps(reps);
        let findings = match seed % 4 {
            0 => found(&simulation.of(|x| 0.01 + 0.002 * x.powf(0.7))),
            1 => found(&simulation.of(|x| 0.02 + 0.001 * (x - 30.0).max(0.0))),
            _ => found(&simulation.of(line)),
        };
        let jumps = findings.jumps.iter().map(|j| j.p_value);
        jumps.chain(findings.rejected.iter().map(|c| c.p_value)).fold(1.0, f64::min)
    };
    let p: Vec<f64> = (0..400).map(smallest).collect();
    for level in [0.01, 0.05, 0.2, 0.5] {
        let below = p.iter().filter(|p| **p <= level).count() as f64;
        // Two and a half standard deviations of the binomial are left to chance.
        let chance = 2.5 * (400.0 * level * (1.0 - level)).sqrt();
        assert!(below <= 400.0 * level + chance, "{below} of 400 at {level}");
    }
}

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
    // 95 % of 150, give or take two and a half standard deviations of the binomial
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

/// Observations in a random order over the run, slowed by `drift` of the run's progress (0 to 1).
fn in_shuffled_order(seed: u64, curve: impl Fn(f64) -> f64, drift: impl Fn(f64) -> f64) -> Vec<Observation> {
    let mut rng = Rng::new(seed);
    let mut plan: Vec<f64> = (1..=70).flat_map(|x| [f64::from(x); 12]).collect();
    rng.shuffle(&mut plan);
    let total = plan.len() as f64;
    let one = |(order, x): (usize, &f64)| {
        let y = curve(*x) * (0.005 * rng.normal()).exp() * (1.0 + drift(order as f64 / total));
        Observation { order: Some(order as f64), ..Observation::new(*x, y) }
    };
    plan.iter().enumerate().map(one).collect()
}

#[test]
fn drift_in_shuffled_order_makes_no_jumps_and_is_taken_out() {
    let alarms = (0..40)
        .filter(|&seed| {
            let heat = |t: f64| 0.08 * (1.0 - (-t / 0.2).exp());
            let throttle = |t: f64| if t > 0.55 { 0.06 } else { 0.0 };
            let observations = if seed % 2 == 0 {
                in_shuffled_order(seed, line, heat)
            } else {
                in_shuffled_order(seed, line, throttle)
            };
            let findings = found(&observations);
            assert!(findings.notes.iter().any(|n| matches!(n, Note::DriftRemoved { .. })), "{:?}", findings.notes);
            let spread: f64 = findings.points.iter().map(|p| (p.high / p.low).ln()).sum::<f64>() / 70.0;
            assert!(spread < 3.0 * 2.0 * 1.96 * 0.005 / 12f64.sqrt(), "drift is left in the errors: {spread}");
            !findings.jumps.is_empty()
        })
        .count();
    assert!(alarms <= 1, "{alarms} of 40");
}

#[test]
fn a_jump_is_found_under_drift() {
    let observations = in_shuffled_order(5, jumping(0.03, &[32.0]), |t| 0.08 * t);
    assert_eq!(afters(&found(&observations)), [32.0]);
}

#[test]
fn a_steady_run_is_left_alone() {
    let findings = found(&in_shuffled_order(6, line, |_| 0.0));
    assert!(findings.notes.is_empty(), "{:?}", findings.notes);
}

#[test]
fn measuring_in_order_of_x_is_noted_as_confounded() {
    let mut observations = Simulation::new(4).of(line);
    for (order, o) in observations.iter_mut().enumerate() {
        o.order = Some(order as f64);
    }
    assert!(found(&observations).notes.contains(&Note::OrderConfounded));
    assert!(found(&Simulation::new(4).of(line)).notes.contains(&Note::OrderUnknown));
}

#[test]
fn blocks_stand_in_for_order() {
    let mut observations = Simulation::new(12).of(jumping(0.05, &[30.0]));
    for (i, o) in observations.iter_mut().enumerate() {
        let block = (i % 12) as u32;
        o.block = Some(block);
        o.y *= 1.0 + 0.04 * f64::from(block % 3);
    }
    let findings = found(&observations);
    assert_eq!(afters(&findings), [30.0]);
    assert!(findings.notes.iter().any(|n| matches!(n, Note::DriftRemoved { .. })));
}

#[test]
fn a_single_bad_point_is_not_a_jump() {
    let findings = found(&Simulation::new(2).of(|x| line(x) * if x == 37.0 { 1.2 } else { 1.0 }));
    assert!(findings.jumps.is_empty(), "{:?}", findings.jumps);
    let off: Vec<f64> = findings.points.iter().filter(|p| p.off).map(|p| p.x).collect();
    assert_eq!(off, [37.0]);
}

#[test]
fn a_kink_is_not_a_jump() {
    let findings = found(&Simulation::new(9).noise(0.005).of(|x| 0.02 + 0.001 * (x - 30.0).max(0.0)));
    assert!(findings.jumps.is_empty(), "{:?}", findings.jumps);
    assert_eq!(findings.kinks.len(), 1, "{:?}", findings.kinks);
    let kink = &findings.kinks[0];
    assert!((kink.at - 30.0).abs() <= 1.0);
    assert!(kink.slope_before.abs() < 5e-5 && (kink.slope_after - 0.001).abs() < 5e-5, "{kink:?}");
}

#[test]
fn smooth_curves_have_no_jumps() {
    let curves: [fn(f64) -> f64; 4] = [
        |x| 0.01 + 0.002 * x.powf(0.7),
        |x| 0.01 + 0.0005 * x.powf(1.3),
        |x| 0.01 + 0.001 * (1.0 + ((x - 20.0) / 3.0).exp()).ln(),
        |x| 0.02 + 0.0005 * x + 0.01 * (-x / 4.0).exp(),
    ];
    for (i, curve) in curves.iter().enumerate() {
        for seed in 0..5 {
            let findings = found(&Simulation::new(seed).noise(0.006).of(curve));
            assert!(findings.jumps.is_empty(), "curve {i}, seed {seed}: {:?}", findings.jumps);
        }
    }
}

#[test]
fn teeth_are_not_jumps() {
    for seed in 0..5 {
        let findings = found(&Simulation::new(seed).of(|x| line(x) + if x % 2.0 == 1.0 { 0.003 } else { 0.0 }));
        assert!(findings.jumps.is_empty(), "{:?}", findings.jumps);
    }
}

#[test]
fn a_staircase_and_its_period_are_found() {
    for period in [2.0, 3.0, 8.0, 16.0] {
        let findings = found(&Simulation::new(21).noise(0.006).of(|x| 0.01 + 0.004 * (x / period).ceil()));
        let risers: Vec<f64> = (1..70).map(f64::from).filter(|k| k % period == 0.0).collect();
        assert_eq!(afters(&findings), risers);
        let proven = findings.period.expect("a period");
        assert_eq!((proven.value, proven.explains.len()), (period, risers.len()));
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

#[test]
fn a_period_may_have_an_offset() {
    let findings = found(&Simulation::new(35).noise(0.006).of(jumping(0.08, &[5.0, 21.0, 37.0, 53.0])));
    assert_eq!(afters(&findings), [5.0, 21.0, 37.0, 53.0]);
    let period = findings.period.expect("a period");
    assert_eq!((period.value, period.explains), (16.0, vec![5.0, 21.0, 37.0, 53.0]));
    assert!(found(&Simulation::new(36).noise(0.006).of(jumping(0.08, &[5.0, 21.0, 34.0, 53.0]))).period.is_none());
}

#[test]
fn short_treads_with_unequal_risers_are_found_one_by_one() {
    let mut rng = Rng::new(77);
    let heights: Vec<f64> = (0..18).map(|_| 0.004 * (0.7 + 0.6 * rng.uniform())).collect();
    let risen = |x: f64| heights.iter().take(((x - 1.0) / 4.0).floor() as usize).sum::<f64>();
    let findings = found(&Simulation::new(33).noise(0.004).of(|x| 0.01 + risen(x)));
    let risers: Vec<f64> = (1..17).map(|k| f64::from(4 * k)).collect();
    assert_eq!(afters(&findings), risers);
    assert_eq!(findings.period.map(|p| p.value), Some(4.0));
}

#[test]
fn a_wandering_curve_seldom_raises_an_alarm() {
    let alarms = (0..40)
        .filter(|&seed| {
            let mut rng = Rng::new(1000 + seed);
            let mut state = 0.0;
            let walk: Vec<f64> = (0..=70)
                .map(|_| {
                    state = 0.7 * state + 0.015 * rng.normal();
                    state
                })
                .collect();
            let observations = Simulation::new(seed).of(|x| line(x) * (1.0 + walk[x as usize]));
            !found(&observations).jumps.is_empty()
        })
        .count();
    assert!(alarms <= 4, "{alarms} of 40");
}

#[test]
fn one_value_for_each_x_is_enough() {
    let findings = found(&Simulation::new(14).reps(1).noise(0.004).of(jumping(0.06, &[24.0, 48.0])));
    assert_eq!(afters(&findings), [24.0, 48.0]);
    assert!(findings.notes.contains(&Note::NoRepetitions));
}

#[test]
fn a_noiseless_curve_has_its_jumps_to_the_digit() {
    let findings = found(&Simulation::new(0).reps(1).noise(0.0).of(jumping(0.05, &[32.0])));
    assert_eq!(afters(&findings), [32.0]);
    assert!((findings.jumps[0].size / (0.05 * line(32.0)) - 1.0).abs() < 1e-6);
    assert!(found(&Simulation::new(0).reps(3).noise(0.0).of(line)).jumps.is_empty());
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
fn a_long_staircase_is_found_whole() {
    let mut simulation = Simulation::new(24).noise(0.003).reps(3);
    simulation.xs = (1..=600).map(f64::from).collect();
    let findings = found(&simulation.of(|x| 0.01 + 0.002 * (x / 40.0).ceil()));
    let risers: Vec<f64> = (1..15).map(|k| f64::from(40 * k)).collect();
    assert_eq!(afters(&findings), risers);
    assert_eq!(findings.period.map(|p| p.value), Some(40.0));
}

#[test]
fn work_shows_in_cycles_and_a_slow_clock_does_not() {
    // After 20 the clock drops by 10 %: time jumps and cycles do not. After 45 there is more to do at the same clock.
    let mut observations = Simulation::new(31)
        .noise(0.004)
        .of(|x| (line(x) + if x > 45.0 { 0.005 } else { 0.0 }) / if x > 20.0 { 0.9 } else { 1.0 });
    assert!(found(&observations).jumps.iter().all(|j| j.verdict == Verdict::Ambiguous));
    for o in &mut observations {
        o.clock_hz = Some(if o.x > 20.0 { 1.35e9 } else { 1.5e9 });
    }
    let findings = found(&observations);
    assert_eq!(afters(&findings), [20.0, 45.0]);
    let verdicts: Vec<&str> = findings.jumps.iter().map(|j| j.verdict.name()).collect();
    assert_eq!(verdicts, ["clock", "work"]);
}

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
            })
            .collect();
        let settings = Settings { resamples: 20, ..Settings::default() };
        let findings = detect(&observations, &settings);
        assert!(findings.jumps.iter().all(|j| j.size.is_finite() && j.p_value >= 0.0), "{seed}");
    }
}

#[test]
fn weak_candidates_are_told_with_a_reason() {
    let told = (0..30).any(|seed| {
        let findings = found(&Simulation::new(seed).of(jumping(0.012, &[35.0])));
        findings.rejected.iter().any(|c| c.reason.contains("standard errors"))
    });
    assert!(told);
}

#[test]
fn the_same_seed_gives_the_same_findings() {
    let observations = Simulation::new(40).of(jumping(0.05, &[33.0]));
    assert_eq!(found(&observations).jumps, found(&observations).jumps);
}
