use super::*;
use crate::random::Rng;

fn sequence(cells: usize, smallest_jump: f64) -> Sequence {
    let cell = |cell: usize| SequenceCell { cell, x: (cell + 1) as f64 };
    Sequence::new((0..cells).map(cell).collect(), smallest_jump, 0.01)
}

/// Visits in randomised blocks with normal noise, as a run would make them: four complete blocks, then those that are wanted.
fn run(sequence: &mut Sequence, seed: u64, noise: f64, level: impl Fn(f64) -> f64, most: usize) -> Vec<VisitTimes> {
    run_with(sequence, seed, |random| noise * random.normal(), level, most)
}

/// The same with other noise.
fn run_with(
    sequence: &mut Sequence,
    seed: u64,
    noise: impl Fn(&mut Rng) -> f64,
    level: impl Fn(f64) -> f64,
    most: usize,
) -> Vec<VisitTimes> {
    let mut random = Rng::new(seed);
    let cells = sequence.cells.len();
    let mut chosen: Vec<usize> = (0..cells).collect();
    let (mut readings, mut looked_at) = (Vec::new(), 0);
    for block in 1.. {
        random.shuffle(&mut chosen);
        for &cell in &chosen {
            let log = level((cell + 1) as f64).ln() + noise(&mut random);
            readings.push(VisitTimes { cell, middle: log, fastest: log });
        }
        if block >= 4 && readings.len() >= looked_at + 35 {
            looked_at = readings.len();
            sequence.look(&readings);
            chosen = sequence.wanted(&mut random).into_iter().collect();
        }
        if chosen.is_empty() || readings.len() > most {
            return readings;
        }
    }
    readings
}

fn line(x: f64) -> f64 {
    0.010 + 0.0008 * x
}

fn jumps(sequence: &Sequence) -> Vec<usize> {
    let places = sequence.decisions.iter().enumerate();
    places.filter(|(_, decision)| **decision == Decision::Jump).map(|(k, _)| k + 1).collect()
}

#[test]
fn a_jump_is_declared_where_it_is_and_visits_gather_there() {
    let (mut found, mut beside, mut elsewhere) = (0, 0, 0);
    for seed in 0..20 {
        let mut sequence = sequence(70, 0.01);
        let level = |x: f64| line(x) * if x > 32.0 { 1.012 } else { 1.0 };
        let readings = run(&mut sequence, seed, 0.01, level, 20_000);
        found += usize::from(jumps(&sequence) == [32]);
        let visits = |cells: std::ops::Range<usize>| readings.iter().filter(|r| cells.contains(&r.cell)).count();
        beside += visits(28..36);
        elsewhere += visits(50..58);
    }
    // The power is 95 %: 17 of 20 or more have a probability of 98 %.
    assert!(found >= 17, "{found} of 20");
    assert!(2 * beside > 3 * elsewhere, "{beside} and {elsewhere} visits");
}

/// A false alarm in one of 100 runs at most; a kink, a start-up curve, or none. `examples/tables/steps_to_decide.rs` counts more.
#[test]
#[ignore = "slow"]
fn curves_without_a_jump_are_ruled_out_everywhere() {
    for (name, level) in [
        ("line", line as fn(f64) -> f64),
        ("kink", |x| line(x) + 0.0008 * (x - 30.0).max(0.0)),
        ("start-up", |x| line(x) + 0.01 * (-x / 6.0).exp()),
    ] {
        let mut alarms = 0;
        for seed in 0..20 {
            let mut sequence = sequence(70, 0.01);
            run(&mut sequence, 1000 + seed, 0.01, level, 20_000);
            alarms += usize::from(!jumps(&sequence).is_empty());
            let open = sequence.count(Decision::Open);
            assert!(open <= 2, "{name}, seed {seed}: {open} boundaries are open");
        }
        assert!(alarms <= 1, "{name}: {alarms} of 20");
    }
}

/// Levels that differ by more than a jump from cell to cell: nothing can be decided, and visits end.
#[test]
fn a_rough_curve_ends_the_visits() {
    let mut sequence = sequence(40, 0.01);
    let rough = |x: f64| line(x) * (1.0 + 0.03 * ((x * 2654435.761).sin()));
    let readings = run(&mut sequence, 5, 0.005, rough, 20_000);
    assert!(readings.len() < 4000, "{}", readings.len());
    let rough = sequence.count(Decision::Rough);
    assert!(rough > 20, "{:?}", sequence.decisions);
}

/// Half of the visits take up to half as long again, as beside another program: with few visits the levels differ from cell to cell. More visits do help.
#[test]
fn disturbed_visits_are_no_rough_curve() {
    for seed in 0..20 {
        let mut sequence = sequence(70, 0.05);
        let noise = |random: &mut Rng| {
            let disturbed = if random.uniform() < 0.5 { 0.5 * random.uniform() } else { 0.0 };
            disturbed + 0.01 * random.normal()
        };
        run_with(&mut sequence, seed, noise, line, 6_000);
        assert_eq!(sequence.count(Decision::Rough), 0, "seed {seed}");
    }
}

#[test]
fn a_sequence_that_is_opened_again_decides_from_all_visits() {
    let mut sequence = sequence(40, 0.02);
    let level = |x: f64| line(x) * if x > 20.0 { 1.05 } else { 1.0 };
    let mut readings = run(&mut sequence, 8, 0.005, level, 20_000);
    assert!(jumps(&sequence) == [20] && sequence.wanted(&mut Rng::new(1)).is_empty());
    // As if a disturbance had been taken for a jump.
    sequence.decisions[30] = Decision::Jump;
    sequence.reopen();
    assert_eq!(sequence.wanted(&mut Rng::new(1)).len(), 40);
    let mut random = Rng::new(2);
    readings.extend((0..400).map(|visit| {
        let log = level((visit % 40 + 1) as f64).ln() + 0.005 * random.normal();
        VisitTimes { cell: visit % 40, middle: log, fastest: log }
    }));
    sequence.look(&readings);
    assert_eq!((jumps(&sequence), sequence.count(Decision::Open)), (vec![20], 0));
}

/// Another program occupies a core at the beginning, and each step waits 60 ms for it. Cells that were seen only in that time are visited again.
#[test]
fn cells_seen_only_in_slow_times_are_visited_again() {
    let mut sequence = sequence(70, 0.02);
    let mut random = Rng::new(11);
    let level = |cell: usize| line((cell + 1) as f64) * if cell >= 32 { 1.03 } else { 1.0 };
    let mut readings = Vec::new();
    let mut visit = |cells: &mut dyn Iterator<Item = usize>, slow: f64, readings: &mut Vec<VisitTimes>| {
        for cell in cells {
            let log = (level(cell) + slow).ln() + 0.003 * random.normal();
            readings.push(VisitTimes { cell, middle: log, fastest: log });
        }
    };
    (0..4).for_each(|_| visit(&mut (0..70), 0.060, &mut readings));
    (0..2).for_each(|_| visit(&mut (10..70), 0.0, &mut readings));
    sequence.look(&readings);
    let wanted = sequence.wanted(&mut Rng::new(1));
    assert!((0..10).all(|cell| wanted.contains(&cell)), "{wanted:?}");
    (0..2).for_each(|_| visit(&mut (0..10), 0.0, &mut readings));
    sequence.look(&readings);
    assert_eq!(jumps(&sequence), [32]);
}

#[test]
fn the_same_visits_give_the_same_next_block() {
    let mut first = sequence(70, 0.01);
    let readings = run(&mut first, 3, 0.01, line, 900);
    let again = || {
        let mut sequence = sequence(70, 0.01);
        sequence.look(&readings[..500]);
        sequence.look(&readings);
        (sequence.decisions.clone(), sequence.wanted(&mut Rng::new(9)))
    };
    assert_eq!(again(), again());
}

#[test]
fn the_forecast_of_visits_is_right_within_a_third() {
    // At four blocks of 1 % noise, until jumps of 1 % are ruled out on a straight line.
    let (mut forecast, mut taken) = (0.0, 0.0);
    for seed in 0..10 {
        let mut sequence = sequence(70, 0.01);
        let mut random = Rng::new(500 + seed);
        let noisy = |cell: usize, random: &mut Rng| line((cell + 1) as f64).ln() + 0.01 * random.normal();
        let readings: Vec<VisitTimes> = (0..280)
            .map(|i| (i % 70, noisy(i % 70, &mut random)))
            .map(|(cell, log)| VisitTimes { cell, middle: log, fastest: log })
            .collect();
        sequence.look(&readings);
        forecast += 280.0 + sequence.needed_visits(&|_| 4) as f64;
        taken += run(&mut self::sequence(70, 0.01), 500 + seed, 0.01, line, 20_000).len() as f64;
    }
    assert!((0.67..1.5).contains(&(forecast / taken)), "forecast {forecast}, taken {taken}");
}

/// By hand: levels 1, 1, 1 | 1.1, 1.1, 1.1 with the variance v each. The value of a line through three points at x half a step beyond the last has
/// the variance v (1/3 + 1.5^2 / 2) = 35/24 v, so the gap has 35/12 v.
#[test]
fn the_gap_between_two_lines_by_hand() {
    let variance = 1e-4;
    let level = |log: f64| levels::Level { log, variance, roughness: 0.0 };
    let window = Window {
        left: [3.0, 2.0, 1.0].map(|x| Point { x, level: level(0.0) }).to_vec(),
        right: [4.0, 5.0, 6.0].map(|x| Point { x, level: level(1.1f64.ln()) }).to_vec(),
    };
    let evidence = window.evidence().expect("two lines");
    // The variances of relative values: 1 on the left, 1.1^2 on the right.
    let expected = (35.0 / 24.0 * variance * (1.0 + 1.21)).sqrt();
    assert!((evidence.error() / expected - 1.0).abs() < 1e-9, "{} and {expected}", evidence.error());
    assert!((evidence.z() * evidence.error() - 0.1).abs() < 1e-9);
    // l+ = delta d I - delta^2 I / 2 with d = 0.1 and delta = 0.1: I / 200. l- = -3 I / 200.
    let information = 1.0 / (expected * expected);
    let [up, down] = evidence.lines().ratios(0.1);
    assert!(
        (up / (information / 200.0) - 1.0).abs() < 1e-9 && (down / (-3.0 * information / 200.0) - 1.0).abs() < 1e-9
    );
}
