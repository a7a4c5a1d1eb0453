use super::cells::Blocks;
use super::*;
use crate::detect::Observation;
use crate::random::Rng;

/// A run of `cells` cells, `blocks` blocks of 5 steps; step time 10 ms + 1 ms per example times `factor`.
fn run(rng: &mut Rng, cells: u32, blocks: u32, factor: impl Fn(u32) -> f64) -> Vec<Series> {
    let mut measurements = Vec::new();
    for block in 0..blocks {
        for x in 1..=cells {
            let visit = 1.0 + 0.01 * rng.normal();
            for _ in 0..5 {
                let y = (0.010 + 0.001 * f64::from(x)) * factor(x) * visit * (1.0 + 0.003 * rng.normal());
                let observation = Observation { block: Some(block), ..Observation::new(x.into(), y) };
                measurements.push(observation.into());
            }
        }
    }
    vec![Series::planted(Vec::new(), measurements)]
}

#[test]
fn equal_runs_are_rarely_found_different() {
    let mut rng = Rng::new(5);
    let alarms = (0..1000)
        .filter(|_| {
            let (a, b) = (run(&mut rng, 8, 6, |_| 1.0), run(&mut rng, 8, 6, |_| 1.0));
            let found = compare(&a[0], &b[0], &Rules::default());
            found.cells.iter().any(|cell| matches!(cell.decision, Decision::Faster | Decision::Slower))
        })
        .count();
    // Stated: at most 5 % of comparisons; three standard deviations of a count of 50 above it are 71.
    assert!(alarms <= 71, "{alarms} of 1000 equal runs were found different");
}

/// On a machine that gets 1 % slower with every block; `hour` says how many blocks it has run before a run's.
fn on_a_drifting_machine(rng: &mut Rng, blocks: u32, hour: impl Fn(u32) -> f64, factor: f64) -> Vec<Series> {
    let mut series = run(rng, 8, blocks, |_| factor);
    for seen in series[0].measurements.iter_mut().map(|one| &mut one.observation) {
        seen.y *= 1.0 + 0.01 * hour(seen.block.unwrap_or(0));
    }
    series
}

#[test]
fn in_turns_a_machine_that_gets_slower_is_not_taken_for_slower_code() {
    let mut rng = Rng::new(8);
    let turns = Rules { design: Design::InTurns, ..Rules::default() };
    let (mut one_after_the_other, mut in_turns) = (0, 0);
    let named = |found: &Comparison| found.count(Decision::Slower) + found.count(Decision::Faster) > 0;
    for _ in 0..300 {
        let mut measured = |hour: fn(u32) -> f64| on_a_drifting_machine(&mut rng, 8, hour, 1.0);
        let (first, after) = (measured(f64::from), measured(|block| f64::from(block + 8)));
        one_after_the_other += usize::from(named(&compare(&first[0], &after[0], &Rules::default())));
        // A B, B A, A B, ...: within a round one is half a block later than the other, by turns.
        let first = measured(|round| 2.0 * f64::from(round) + f64::from(round % 2));
        let second = measured(|round| 2.0 * f64::from(round) + f64::from(1 - round % 2));
        in_turns += usize::from(named(&compare(&first[0], &second[0], &turns)));
    }
    // Stated: at most 5 %, 15 of 300; three standard deviations of such a count are 11.
    assert!(in_turns <= 26, "{in_turns} of 300 equal pairs in turns were found different");
    assert!(one_after_the_other > 250, "{one_after_the_other} of 300: this machine would not need turns");
    let first = on_a_drifting_machine(&mut rng, 8, |round| 2.0 * f64::from(round), 1.0);
    let slower = on_a_drifting_machine(&mut rng, 8, |round| 2.0 * f64::from(round) + 0.1, 1.1);
    assert_eq!(compare(&first[0], &slower[0], &turns).count(Decision::Slower), 8);
}

fn of_times(times: impl IntoIterator<Item = (i64, Vec<f64>)>) -> Blocks {
    Blocks { times: times.into_iter().collect(), rounding: 0.0 }
}

/// Three rounds at sizes 1 and 2 that take the same whole number of milliseconds each, by size.
fn rounded(times: [f64; 2]) -> Vec<Series> {
    vec![Series::in_blocks(&[], 6, &[1.0, 2.0], |_, x| times[x as usize - 1])]
}

/// Repetitions that agree to the last digit are known to that digit. By hand: the unit is 7 ms, the error of 60 ms against 30 ms is 3.5 / 60 and 3.5 / 30 in quadrature, 0.13, and
/// ln(60 / 30) / 0.13 = 5.3 errors. 37 ms are 1.4 errors from 30 ms.
#[test]
fn times_that_agree_to_the_last_digit_differ_by_more_than_their_rounding() {
    for design in [Design::Separate, Design::InTurns] {
        let rules = Rules { design, ..Rules::default() };
        let decisions = |second: [f64; 2]| -> Vec<Decision> {
            let found = runs(&rounded([0.030, 0.037]), &rounded(second), &rules).expect("compared");
            found.cells.iter().map(|cell| cell.decision).collect()
        };
        assert_eq!(decisions([0.060, 0.067]), [Decision::Slower; 2], "{design:?}");
        assert_eq!(decisions([0.037, 0.044])[0], Decision::Ambiguous, "{design:?}");
    }
}

#[test]
fn rates_are_rates_everywhere() {
    let mut rng = Rng::new(15);
    let mut rate = |factor: f64| {
        let mut series = run(&mut rng, 3, 20, |_| 1.0);
        series[0].kind = TimeOrRate::Rate;
        series[0].measurements.iter_mut().for_each(|one| one.observation.y = factor / one.observation.y);
        series
    };
    let all = [rate(1.0), rate(0.8), rate(1.0)];
    let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 0.02, "{a} {b}");
    let two = runs(&all[0], &all[1], &Rules::default()).expect("compared");
    near(two.cells[0].ratio, 0.8);
    near(two.overall[0].ratio, 0.8);
    assert_eq!((two.cells[0].decision, two.overall[0].decision), (Decision::Slower, Decision::Slower));
    let three = several(&all, &Rules::default()).expect("compared");
    near(three.against_first[0].cells[0].ratio, 0.8);
    near(three.against_first[0].cells[0].first, two.cells[0].first);
    near(three.between[0].overall.ratio, 0.8);
    // Beside each other in one run: the values are rates, the ratio is that of times.
    let beside = compare(&all[0][0], &all[1][0], &Rules::default());
    near(beside.cells[0].first, two.cells[0].first);
    near(beside.cells[0].ratio, 1.25);
}

#[test]
fn rounds_are_compared_by_students_test_of_their_differences() {
    // By hand: the differences 0.8, 0.8, 1.0 have the mean 0.86667 and the error 0.066667, so t is 13; with 2 degrees of freedom p is
    // 1 - t / sqrt(t^2 + 2), and 95 % lie within 4.30265 errors.
    let blocks = |times: [f64; 3]| of_times((0..).zip(times.map(|time| vec![time])));
    let turns = Rules { design: Design::InTurns, ..Rules::default() };
    let found = WelchTest::of(&blocks([0.1, 0.2, 0.4]), &blocks([0.9, 1.0, 1.4]), &turns).expect("rounds");
    assert!((found.p - 0.005_865_15).abs() < 1e-7, "{}", found.p);
    let (apart, half) = (found.second - found.first, found.welch.half(0.025));
    assert!((apart - half - 0.579_82).abs() < 1e-5 && (apart + half - 1.153_51).abs() < 1e-5, "{apart} {half}");
    // A round without a partner is left out, and one round proves nothing.
    let lone = WelchTest::of(&blocks([0.1, 0.2, 0.4]), &of_times([(2, vec![0.5])]), &turns).expect("a round");
    assert_eq!((lone.p, lone.welch.error), (1.0, f64::INFINITY));
    assert!(WelchTest::of(&blocks([0.1, 0.2, 0.4]), &of_times([(7, vec![0.5])]), &turns).is_none());
}

#[test]
fn a_slower_cell_is_found_and_the_others_are_left_alone() {
    let mut rng = Rng::new(6);
    let (a, b) = (run(&mut rng, 20, 20, |_| 1.0), run(&mut rng, 20, 20, |x| if x == 7 { 1.1 } else { 1.0 }));
    let found = compare(&a[0], &b[0], &Rules::default());
    let slower: Vec<f64> = found.cells.iter().filter(|c| c.decision == Decision::Slower).map(|c| c.x).collect();
    assert_eq!(slower, [7.0]);
    assert!(found.cells[6].low < 1.1 && 1.1 < found.cells[6].high, "{:?}", found.cells[6]);
    let back = compare(&b[0], &a[0], &Rules::default());
    assert_eq!(back.cells[6].decision, Decision::Faster);
}

#[test]
fn what_is_proven_to_lie_within_the_margin_is_the_same() {
    let mut rng = Rng::new(6);
    let (a, b) = (run(&mut rng, 4, 60, |_| 1.0), run(&mut rng, 4, 60, |_| 1.03));
    let decisions = |margin: f64| {
        let found = compare(&a[0], &b[0], &Rules { margin, ..Rules::default() });
        found.cells.iter().map(|cell| cell.decision).collect::<Vec<_>>()
    };
    assert_eq!(decisions(0.01), [Decision::Slower; 4]);
    assert_eq!(decisions(0.1), [Decision::Same; 4]);
}

#[test]
fn the_same_needs_precision_and_one_block_proves_nothing() {
    let mut rng = Rng::new(7);
    let (a, b) = (run(&mut rng, 3, 60, |_| 1.0), run(&mut rng, 3, 60, |_| 1.0));
    let wide = Rules { margin: 0.03, ..Rules::default() };
    assert!(compare(&a[0], &b[0], &wide).cells.iter().all(|cell| cell.decision == Decision::Same));
    let narrow = Rules { margin: 1e-4, ..Rules::default() };
    assert!(compare(&a[0], &b[0], &narrow).cells.iter().all(|cell| cell.decision == Decision::Ambiguous));
    let (a, b) = (run(&mut rng, 3, 1, |_| 1.0), run(&mut rng, 4, 1, |_| 2.0));
    let lone = compare(&a[0], &b[0], &Rules::default());
    assert!(lone.cells.iter().all(|cell| cell.decision == Decision::Ambiguous));
    assert_eq!((lone.cells.len(), lone.unmatched), (3, 1));
}

/// One value at each of the sizes 1 to 40, at most 0.2 % off; above 30 times `factor`.
fn of_one_value_each(rng: &mut Rng, factor: f64) -> Vec<Series> {
    let mut value = |x: u32| {
        let more = if x > 30 { factor } else { 1.0 };
        let y = (0.010 + 0.001 * f64::from(x)) * more * (1.0 + 0.002 * (2.0 * rng.uniform() - 1.0));
        Observation::new(x.into(), y).into()
    };
    vec![Series::planted(Vec::new(), (1..=40).map(&mut value).collect())]
}

/// A Parquet file of another program has no notes on how it was read.
#[test]
fn tables_with_one_value_for_each_size_are_judged_whatever_kind_of_file_they_are() {
    let mut rng = Rng::new(16);
    let (first, second) = (of_one_value_each(&mut rng, 1.0), of_one_value_each(&mut rng, 1.1));
    assert!(first[0].notes.is_empty() && first[0].cells.is_empty());
    let found = runs(&first, &second, &Rules::default()).expect("compared");
    let slower: Vec<f64> = found.cells.iter().filter(|c| c.decision == Decision::Slower).map(|c| c.x).collect();
    assert_eq!(slower, (31..=40).map(f64::from).collect::<Vec<_>>());
    assert!(found.yardstick.is_some_and(|scatter| scatter < 0.01), "{:?}", found.yardstick);
}

#[test]
fn an_interval_is_without_bounds_where_nothing_bounds_it() {
    let mut rng = Rng::new(17);
    let (mut first, second) = (of_one_value_each(&mut rng, 1.0), of_one_value_each(&mut rng, 1.1));
    // One block of a run proves nothing.
    first[0].cells.insert(0);
    let found = runs(&first, &second, &Rules::default()).expect("compared");
    assert!(found.cells.iter().all(|cell| (cell.low, cell.high) == (0.0, f64::INFINITY)), "{:?}", found.cells[0]);
    // Nor do runs that all took the same time have another interval than that.
    let same = || [1.0, 1.0].map(|y| vec![Series::planted(Vec::new(), vec![Observation::new(1.0, y).into()])]);
    let found = sides(&same(), &same(), &Rules::default()).expect("compared");
    assert_eq!((found.cells[0].low, found.cells[0].high), (1.0, 1.0));
}

/// A step of the user's own that is called `name`.
fn own_step(rng: &mut Rng, name: &str, factor: f64) -> Vec<Series> {
    let mut series = run(rng, 3, 20, |_| factor);
    series[0].group = vec![("model".to_owned(), name.to_owned())];
    series[0].facts.insert("engine".to_owned(), "python".to_owned());
    series
}

#[test]
fn versions_of_a_step_of_ones_own_are_compared_whatever_their_files_are_called() {
    let mut rng = Rng::new(18);
    let all = [("before", 1.0), ("after", 1.1)].map(|(name, by)| own_step(&mut rng, name, by));
    assert_eq!(step_names(&all), Some(vec!["before", "after"]));
    let [first, second] = [("before", 1.0), ("after", 1.3)]
        .map(|(name, by)| (0..3).map(|_| own_step(&mut rng, name, by)).collect::<Vec<_>>());
    assert_eq!(sides(&first, &second, &Rules::default()).expect("compared").overall[0].decision, Decision::Slower);
    // The same name is a name; of a run of two steps, and of networks, names say what is compared with what.
    assert_eq!(step_names([&all[0], &all[0]]), None);
    let both = [own_step(&mut rng, "before", 1.0), own_step(&mut rng, "other", 1.0)].concat();
    assert_eq!(step_names([&both, &all[1]]), None);
    let mut network = own_step(&mut rng, "vgg16", 1.0);
    network[0].facts.clear();
    let error = runs(&network, &all[1], &Rules::default()).expect_err("refused").to_string();
    assert!(error.contains("`vgg16` against `after`") && error.contains("--group"), "{error}");
}

#[test]
fn what_has_nothing_in_common_is_refused_with_the_reason() {
    let mut rng = Rng::new(19);
    let (few, mut many) = (run(&mut rng, 3, 4, |_| 1.0), run(&mut rng, 8, 4, |_| 1.0));
    many[0].measurements.retain(|one| one.observation.x > 3.0);
    let error = runs(&few, &many, &Rules::default()).expect_err("refused").to_string();
    assert!(error.contains("sizes 1, 2, 3 against 4, 5, 6, ...") && error.contains("same sizes"), "{error}");
    let turns = Rules { design: Design::InTurns, ..Rules::default() };
    let mut later = few.clone();
    later[0].measurements.iter_mut().for_each(|one| one.observation.block = Some(9));
    let error = runs(&few, &later, &turns).expect_err("refused").to_string();
    assert!(error.contains("in the same round") && error.contains("the column `block`"), "{error}");
    let [few, many] = [few, many].map(|run| vec![run.clone(), run]);
    let error = sides(&few, &many, &Rules::default()).expect_err("refused").to_string();
    assert!(error.contains("no cell is in all of the runs: sizes 1, 2, 3 against"), "{error}");
}
