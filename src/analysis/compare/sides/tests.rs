mod simulated;

use super::*;

/// A run with one step of `times` at the batch sizes 1, 2, ...
fn run(times: &[f64]) -> Vec<Series> {
    let sizes: Vec<f64> = (1..=times.len()).map(|x| x as f64).collect();
    vec![Series::in_blocks(&[], 1, &sizes, |_, x| times[x as usize - 1])]
}

fn side<const N: usize>(runs: [&[f64]; N]) -> Vec<Vec<Series>> {
    runs.iter().map(|times| run(times)).collect()
}

fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-6, "{found}, expected {expected}");
}

fn four() -> [Vec<Vec<Series>>; 2] {
    let first = side([&[10.0, 20.0, 30.0, 40.0], &[10.2, 20.1, 30.5, 40.6], &[9.9, 20.0, 29.8, 40.1]]);
    let second = side([&[10.1, 21.6, 30.2, 40.2], &[10.3, 21.9, 30.6, 40.5], &[10.2, 21.8, 30.3, 40.9]]);
    [first, second]
}

/// The expected numbers: NumPy and SciPy 1.17. The series is `scipy.stats.ttest_ind(equal_var=False)` of the runs' mean logarithms. The
/// four cells' variances differ by less than chance, so they share their mean, with 12 degrees of freedom; the error of a cell is that of
/// the series and its own in quadrature, by Satterthwaite.
#[test]
fn a_series_is_judged_by_its_runs_and_a_cell_also_by_how_far_it_is_from_the_others() {
    let [first, second] = four();
    let found = sides(&first, &second, &Rules::default()).expect("compared");
    let whole = &found.overall[0];
    near(whole.ratio, 1.029_364_322_8);
    near(whole.low, 1.009_734_316_0);
    near(whole.high, 1.049_375_952_0);
    near(whole.p_value, 0.014_809_687_5);
    assert_eq!((whole.decision, found.runs), (Decision::Slower, [3, 3]));
    let expected = [
        [1.016_657_029_8, 0.997_823_204_2, 1.035_846_342_2],
        [1.086_507_604_4, 1.066_379_779_5, 1.107_015_340_3],
        [1.008_891_694_0, 0.990_201_723_2, 1.027_934_436_4],
        [1.007_452_693_4, 0.988_789_380_4, 1.026_468_274_7],
    ];
    for (cell, [ratio, low, high]) in found.cells.iter().zip(expected) {
        near(cell.ratio, ratio);
        near(cell.low, low);
        near(cell.high, high);
        near(cell.between.expect("known"), 0.009_438_970);
    }
    // By bisection of the rule at the top of `sides.rs` in Python, among four cells; the next among three.
    assert!((found.cells[1].p_value - 0.000_438_16).abs() < 1e-6, "{}", found.cells[1].p_value);
    assert!((found.cells[0].p_value - 0.484_85).abs() < 1e-3, "{}", found.cells[0].p_value);
    let decisions = found.cells.iter().map(|cell| cell.decision).collect::<Vec<_>>();
    assert_eq!(decisions, [Decision::Ambiguous, Decision::Slower, Decision::Ambiguous, Decision::Ambiguous]);
    near(found.spread[0].whole, 0.008_234_264_6);
    near(found.spread[0].cell, 0.005_328_044_5);
    assert!(found.is_slower());
    let back = sides(&second, &first, &Rules::default()).expect("compared");
    assert_eq!(back.cells[1].decision, Decision::Faster);
    assert!(!back.is_slower());
}

/// `ttest_ind` of the logarithms of 1.1, 1.11, 1.08 and 1, 1.02, 0.99, unequal variances.
#[test]
fn a_single_cell_is_compared_by_welchs_test_of_the_runs() {
    let first = side([&[1.0], &[1.02], &[0.99]]);
    let found = sides(&first, &side([&[1.1], &[1.11], &[1.08]]), &Rules::default()).expect("compared");
    let cell = &found.cells[0];
    near(cell.ratio, 1.093_036_549_5);
    near(cell.low, 1.057_383_028_0);
    near(cell.high, 1.129_892_259_4);
    assert!((cell.p_value / 0.001_766_310_8 - 1.0).abs() < 0.002, "{}", cell.p_value);
    assert_eq!((cell.decision, found.overall[0].decision), (Decision::Slower, Decision::Slower));
}

#[test]
fn runs_without_any_scatter_prove_nothing_within_their_rounding() {
    let first = side([&[1.0, 2.0], &[1.0, 2.0], &[1.0, 2.0]]);
    let found = sides(&first, &side([&[1.5, 2.0], &[1.5, 2.0], &[1.5, 2.0]]), &Rules::default()).expect("compared");
    // The only differences are 0.5 and 1, so that the times may be rounded to 0.5.
    assert!(found.cells.iter().all(|cell| cell.p_value > 0.05), "{:?}", found.cells);
    assert!(!found.is_slower());
}

#[test]
fn a_cell_that_a_run_of_the_second_side_lacks_is_missing() {
    let [first, mut second] = four();
    second[1] = run(&[10.3, 21.9, 30.6]);
    let found = sides(&first, &second, &Rules::default()).expect("compared");
    assert_eq!((found.cells.len(), found.unmatched, &found.missing[..]), (3, 1, &[(String::new(), 4.0)][..]));
    // What the first side lacks is not something that the second has lost.
    let back = sides(&second, &first, &Rules::default()).expect("compared");
    assert_eq!((back.cells.len(), back.unmatched, back.missing.len()), (3, 1, 0));
}

#[test]
fn one_run_a_side_is_the_comparison_of_two_and_one_against_several_is_refused() {
    let blocks =
        |factor: f64| vec![vec![Series::in_blocks(&[], 12, &[8.0], |i, _| factor * (1.0 + 0.001 * f64::from(i % 5)))]];
    let found = sides(&blocks(1.0), &blocks(1.1), &Rules::default()).expect("compared");
    assert_eq!(found, runs(&blocks(1.0)[0], &blocks(1.1)[0], &Rules::default()).expect("compared"));
    assert!(found.is_of_single_runs() && found.spread.is_empty());
    let [first, _] = four();
    let error = sides(&first, &first[..1], &Rules::default()).expect_err("refused").to_string();
    assert!(error.contains("one run on a side") && error.contains("three"), "{error}");
}

#[test]
fn rates_and_other_units_are_compared_as_times_are() {
    let [first, mut second] = four();
    let in_seconds = sides(&first, &second, &Rules::default()).expect("compared");
    for series in second.iter_mut().flatten() {
        series.unit = "ms".into();
        series.measurements.iter_mut().for_each(|one| one.observation.y *= 1000.0);
    }
    let found = sides(&first, &second, &Rules::default()).expect("compared");
    near(found.cells[1].ratio, in_seconds.cells[1].ratio);
    let [mut first, mut second] = four();
    for series in first.iter_mut().chain(&mut second).flatten() {
        series.kind = crate::analysis::TimeOrRate::Rate;
    }
    let found = sides(&first, &second, &Rules::default()).expect("compared");
    assert_eq!((found.cells[1].decision, found.overall[0].decision), (Decision::Faster, Decision::Faster));
    near(found.cells[1].ratio, in_seconds.cells[1].ratio);
    near(found.overall[0].high, in_seconds.overall[0].high);
}
