//! Shapes of real curves: changes close together, disturbances, ramps, steep starts, rounded times, sawteeth, zigzags.

use super::{Simulation, afters, found, jumping, line};
use crate::detect::unexplained;
use crate::detect::{Findings, Jump, Rejection};
use crate::random::Rng;

/// One value at each of 70 x, with 0.4 % of noise.
fn single(seed: u64) -> Simulation {
    Simulation::new(seed).reps(1).noise(0.004)
}

/// The line with changes by a share of the level after each of `at`.
fn changing<const N: usize>(at: [(f64, f64); N]) -> impl Fn(f64) -> f64 {
    move |x| line(x) + at.iter().filter(|(k, _)| x > *k).map(|(k, share)| share * line(*k)).sum::<f64>()
}

fn directions(findings: &Findings) -> Vec<&'static str> {
    findings.jumps.iter().map(|jump| jump.direction()).collect()
}

#[test]
fn changes_two_points_apart_are_two_jumps() {
    for seed in 0..10 {
        let findings = found(&single(seed).of(changing([(30.0, 0.3), (32.0, -0.5)])));
        assert_eq!((afters(&findings), directions(&findings)), (vec![30.0, 32.0], vec!["up", "down"]), "seed {seed}");
        let findings = found(&single(seed).of(changing([(30.0, -0.4), (33.0, 0.2)])));
        assert_eq!((afters(&findings), directions(&findings)), (vec![30.0, 33.0], vec!["down", "up"]), "seed {seed}");
    }
}

#[test]
fn a_point_between_two_levels_belongs_to_either() {
    for seed in 0..10 {
        let findings = found(&single(seed).of(changing([(30.0, 0.2), (31.0, 0.1)])));
        let places: Vec<[f64; 3]> = findings.jumps.iter().map(|j| [j.after_low, j.after, j.after_high]).collect();
        assert_eq!(places, [[30.0, 30.0, 31.0]], "seed {seed}");
        assert!((findings.jumps[0].size / line(30.0) - 0.3).abs() < 0.03, "seed {seed}");
    }
}

/// It may be two jumps, which are as good a description, or a bend that ends after it; then the change is named.
#[test]
fn a_ramp_over_two_points_is_one_jump_or_has_its_size_in_another_way() {
    let mut one = 0;
    for seed in 0..20 {
        let ramp = |x: f64| line(x) * (1.0 + 0.3 * ((x - 30.0) / 3.0).clamp(0.0, 1.0));
        let findings = found(&single(seed).of(ramp));
        let whole_ramp = |jump: &Jump| jump.after_low == 30.0 && jump.after_high == 32.0;
        one += usize::from(findings.jumps.len() == 1 && whole_ramp(&findings.jumps[0]));
        assert!(findings.jumps.iter().all(|jump| (30.0..=32.0).contains(&jump.after)), "{seed}: {:?}", findings.jumps);
        let jumps = findings.jumps.iter().map(|jump| jump.relative);
        let all: f64 = jumps.chain(unexplained(&findings).iter().map(|one| one.relative)).sum();
        assert!((all - 0.3).abs() < 0.04, "{seed}: {all} {:?}", findings.jumps);
    }
    assert!(one >= 10, "{one} of 20");
}

#[test]
fn up_to_four_disturbed_points_are_no_jump() {
    for seed in 0..20 {
        let (length, share) = (1.0 + (seed % 4) as f64, [0.2, -0.15][seed as usize / 4 % 2]);
        let unequal = |x: f64| if x % 2.0 == 0.0 { 0.8 } else { 1.2 };
        let disturbed =
            |x: f64| line(x) * (1.0 + if x > 30.0 && x <= 30.0 + length { share * unequal(x) } else { 0.0 });
        let findings = found(&single(seed).of(disturbed));
        assert!(findings.jumps.is_empty(), "seed {seed}: {:?}", findings.jumps);
        let off: Vec<f64> = findings.points.iter().filter(|point| point.off).map(|point| point.x).collect();
        assert_eq!(off, (1..=length as u32).map(|i| f64::from(30 + i)).collect::<Vec<_>>(), "seed {seed}");
    }
}

#[test]
fn points_that_agree_are_a_level_and_fewer_suffice_where_the_curve_has_other_jumps() {
    let mut seen = [0; 2];
    for seed in 0..20 {
        let share = [0.8, -0.4][seed as usize % 2];
        let level = |x: f64| line(x) * (1.0 + if x > 30.0 && x <= 34.0 { share } else { 0.0 });
        seen[0] += usize::from(afters(&found(&single(seed).noise(0.004).of(level))) == [30.0, 34.0]);
        let stepped = |x: f64| line(x) * (1.0 + 0.2 * ((x - 1.0) / 14.0).floor());
        let level = |x: f64| stepped(x) * (1.0 + if x > 34.0 && x <= 37.0 { share } else { 0.0 });
        let expected = [14.0, 28.0, 34.0, 37.0, 42.0, 56.0];
        seen[1] += usize::from(afters(&found(&single(seed).noise(0.004).of(level))) == expected);
    }
    assert!(seen.iter().all(|count| *count >= 16), "{seen:?} of 20 each");
}

/// Steps of 5 to 15 % after every tenth x, and treads that sag by 2 %: until most are described the curve looks rough.
#[test]
fn cliffs_are_found_however_many_there_are() {
    let (mut seen, mut others) = (0, 0);
    for seed in 0..20 {
        let mut rng = Rng::new(40 + seed);
        let mut level = 1e-3;
        let levels: Vec<f64> = (0..7)
            .map(|_| {
                level *= 1.05 + 0.1 * rng.uniform();
                level
            })
            .collect();
        let curve = |x: f64| levels[((x - 1.0) / 10.0) as usize] * (1.0 + 0.004 * ((x - 1.0) % 10.0 - 4.5).abs());
        let afters = afters(&found(&single(seed).noise(0.006).of(curve)));
        seen += afters.iter().filter(|after| *after % 10.0 == 0.0).count();
        others += afters.iter().filter(|after| *after % 10.0 != 0.0).count();
    }
    assert!(seen >= 116 && others <= 1, "{seen} of 120, {others} others");
}

#[test]
fn a_steep_start_is_no_jump_and_hides_none() {
    for seed in 0..20 {
        let steep = |x: f64| jumping(0.06, &[40.0])(x) + 0.2 * 0.5f64.powf((x - 1.0) / (0.7 + 0.03 * seed as f64));
        assert_eq!(afters(&found(&single(seed).of(steep))), [40.0], "seed {seed}");
        let shared = |x: f64| 0.01 + 0.2 / x;
        assert!(found(&single(seed).of(shared)).jumps.is_empty(), "seed {seed}");
    }
}

#[test]
fn a_jump_beside_a_period_keeps_its_place() {
    for seed in 0..10 {
        let findings = found(&single(seed).of(jumping(0.08, &[10.0, 20.0, 33.0, 40.0, 50.0, 60.0])));
        assert_eq!(afters(&findings), [10.0, 20.0, 33.0, 40.0, 50.0, 60.0], "seed {seed}");
        let period = findings.period.expect("a period");
        assert_eq!((period.value, period.unconfirmed), (10.0, vec![30.0]), "seed {seed}");
    }
}

#[test]
fn two_periods_on_one_curve_do_not_hide_each_other() {
    let mut simulation = single(3).noise(0.002);
    simulation.xs = (1..=200).map(f64::from).collect();
    let findings = found(&simulation.of(|x| 0.01 + 0.001 * (x / 8.0).ceil() + 0.003 * (x / 82.0).ceil()));
    let mut expected: Vec<f64> = (1..25).map(|k| f64::from(8 * k)).chain([82.0, 164.0]).collect();
    expected.sort_by(f64::total_cmp);
    assert_eq!(afters(&findings), expected);
}

#[test]
fn rounded_times_make_no_jumps() {
    let rounded = |seed: u64, unit: f64, jump: f64| {
        let mut observations = single(seed).noise(0.001).of(|x| 0.010 + 0.0001 * x + if x > 35.0 { jump } else { 0.0 });
        observations.iter_mut().for_each(|o| o.y = (o.y / unit).round() * unit);
        found(&observations)
    };
    for seed in 0..10 {
        let findings = rounded(seed, 0.001, 0.0);
        assert!(findings.jumps.is_empty(), "seed {seed}: {:?}", findings.jumps);
        assert_eq!(afters(&rounded(seed, 0.001, 0.005)), [35.0], "seed {seed}");
    }
}

#[test]
fn a_sawtooth_falls_after_each_multiple() {
    for period in [4.0, 8.0] {
        let tooth = |x: f64| 0.02 + 0.0006 * (x - 1.0).rem_euclid(period);
        let findings = found(&single(5).noise(0.002).of(tooth));
        let steps: Vec<f64> = (1..70).map(f64::from).filter(|k| k % period == 0.0).collect();
        assert_eq!(afters(&findings), steps);
        assert!(findings.jumps.iter().all(|jump| jump.size < 0.0));
        assert_eq!(findings.period.map(|period| period.value), Some(period));
    }
}

#[test]
fn every_other_multiple_of_64_may_be_faster() {
    let mut simulation = single(6);
    simulation.xs = (1..=70).map(|i| f64::from(64 * i)).collect();
    let slower = |x: f64| (1e-6 + 1e-9 * x + 2e-16 * x.powi(3)) * if x % 128.0 == 0.0 { 1.0 } else { 1.05 };
    assert!(found(&simulation.of(slower)).jumps.is_empty());
}

#[test]
fn a_small_jump_near_the_end_of_a_zigzag_is_found() {
    let count = (0..40)
        .filter(|&seed| {
            let mut rng = Rng::new(900 + seed);
            // a first-order process with correlation -0.6 of neighbours and a standard deviation of 0.4 %
            let mut state = 0.0;
            let mut observations = single(seed).noise(0.0).of(jumping(0.03, &[66.0]));
            for o in &mut observations {
                state = -0.6 * state + 0.8 * 0.004 * rng.normal();
                o.y *= 1.0 + state;
            }
            afters(&found(&observations)) == [66.0]
        })
        .count();
    assert!(count >= 34, "{count} of 40");
}

#[test]
fn noise_that_grows_hides_no_early_jump_and_makes_no_late_one() {
    let (mut hits, mut late) = (0, 0);
    for seed in 0..40 {
        let mut rng = Rng::new(700 + seed);
        let mut observations = single(seed).noise(0.0).of(jumping(0.02, &[15.0]));
        for o in &mut observations {
            o.y *= (0.0015 * 8f64.powf(o.x / 70.0) * rng.normal()).exp();
        }
        let findings = found(&observations);
        hits += usize::from(afters(&findings).contains(&15.0));
        late += usize::from(findings.jumps.iter().any(|jump| jump.after > 20.0));
    }
    assert!(hits >= 33 && late <= 3, "{hits} and {late} of 40");
}

#[test]
fn a_spiky_head_makes_no_jumps() {
    let alarms = (0..60)
        .filter(|&seed| {
            let mut rng = Rng::new(300 + seed);
            let mut observations = single(seed).of(line);
            for o in observations.iter_mut().take(19) {
                o.y *= if rng.uniform() < 0.5 { 1.0 + 0.8 * rng.uniform() } else { 1.0 };
            }
            !found(&observations).jumps.is_empty()
        })
        .count();
    assert!(alarms <= 3, "{alarms} of 60");
}

/// The sign of every reported jump is that of the change from one point to the next, minus the change that the slope
/// causes.
#[test]
#[ignore = "slow"]
fn no_jump_has_another_sign_than_its_points_show() {
    let (mut jumps, mut wrong) = (0, Vec::new());
    for seed in 0..30 {
        let mut rng = Rng::new(seed);
        let (mut level, mut slope, mut next) = (1.0, 0.0, 0);
        let curve: Vec<f64> = (0..=600)
            .map(|x| {
                if x == next {
                    level *= if rng.below(2) == 0 { 1.0 + 0.3 * rng.uniform() } else { 1.0 - 0.3 * rng.uniform() };
                    slope = level * 0.01 * (rng.uniform() - 0.4);
                    next += 2 + rng.below(16);
                }
                level = (level + slope).max(0.1);
                level
            })
            .collect();
        let mut simulation = single(seed);
        simulation.xs = (1..=600).map(f64::from).collect();
        let findings = found(&simulation.of(|x| curve[x as usize]));
        jumps += findings.jumps.len();
        let shown = |after: f64| (curve[after as usize + 1] - curve[after as usize]) / curve[after as usize];
        wrong.extend(
            findings.jumps.iter().filter(|j| j.size * shown(j.after) < 0.0 && shown(j.after).abs() > 0.02).cloned(),
        );
    }
    assert!(jumps > 1000 && wrong.is_empty(), "{} of {jumps}: {wrong:?}", wrong.len());
}

#[test]
fn what_is_no_jump_says_why() {
    let block = |x: f64| line(x) * if x > 30.0 && x <= 34.0 { 1.1 + 0.1 * (x - 32.0) } else { 1.0 };
    let findings = found(&single(1).of(block));
    assert!(findings.jumps.is_empty(), "{:?}", findings.jumps);
    let texts = [
        Rejection::Returns { points: 3 },
        Rejection::TooSteep,
        Rejection::Rough { count: 4 },
        Rejection::Rounded { units: 1.0 },
    ]
    .map(|reason| reason.to_string());
    let expected = [
        "the curve returns after 3 points, which were disturbed",
        "the curve is too steep here to decide",
        "4 other changes nearby are about as large and no jumps",
        "1.0 units of the last digit: rounding makes such steps",
    ];
    assert_eq!(texts, expected);
}

#[test]
fn a_bend_that_only_the_last_points_show_is_no_kink() {
    for seed in 0..10 {
        let curve = |x: f64| line(x) + if x > 68.0 { 0.004 * (x - 68.0) } else { 0.0 };
        let findings = found(&Simulation::new(seed).noise(0.002).of(curve));
        assert!(findings.kinks.iter().all(|kink| kink.at <= 66.0), "seed {seed}: {:?}", findings.kinks);
    }
}

#[test]
fn a_point_on_the_curve_is_not_off_beside_some_that_are() {
    // 31 and 33 are slow by a tenth, 32 between them is as it should be.
    for seed in 0..10 {
        let slow = |x: f64| if x == 31.0 || x == 33.0 { 1.1 } else { 1.0 };
        let findings = found(&Simulation::new(seed).noise(0.002).of(|x| line(x) * slow(x)));
        let off: Vec<f64> = findings.points.iter().filter(|point| point.off).map(|point| point.x).collect();
        assert_eq!(off, [31.0, 33.0], "seed {seed}");
    }
}
