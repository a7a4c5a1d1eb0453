//! More than two runs: each against the first, cell by cell, and all against each other as wholes.

use super::cells::{Cells, in_its_source, in_one_unit};
use super::common::nothing_in_common;
use super::{Comparison, Overall, Rules, Series, When, against, are_rates, left_out, overall};
use crate::error::Result;

/// Several runs, by their places in the order in which they were given.
#[derive(Clone, Debug, PartialEq)]
pub struct Several {
    /// The second, third, ... run against the first. The p-values of all cells are corrected together, so that of equal runs at most
    /// `alpha` of the comparisons name any cell of any run. Their `overall` is empty: it is in `between`.
    pub against_first: Vec<Comparison>,
    /// Every pair of runs, series by series, corrected for their number together.
    pub between: Vec<Between>,
}

/// A series as a whole, in two of the runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Between {
    pub first: usize,
    pub second: usize,
    pub overall: Overall,
}

/// Compares several runs, of which the first is the baseline.
///
/// # Errors
/// [`crate::error::Kind::Data`] where times are in a unit that is not known, or a run has no cell in common with it; the message
/// names the run's source.
pub fn several(runs: &[Vec<Series>], rules: &Rules) -> Result<Several> {
    let [baseline, ..] = runs else {
        return Ok(Several { against_first: Vec::new(), between: Vec::new() });
    };
    let each: Vec<&[Series]> = runs.iter().map(Vec::as_slice).collect();
    let all = in_one_unit(&each, left_out(runs))?;
    let mut against_first = against(&all[0], &all[1..], rules);
    for ((series, cells), found) in runs[1..].iter().zip(&all[1..]).zip(&mut against_first) {
        if found.cells.is_empty() {
            let message = "this run has no cell in common with the first";
            let error = nothing_in_common(message, [all[0].keys(), cells.keys()], rules.design);
            return Err(in_its_source(series, error));
        }
        found.when = When::of(baseline, series, rules.design);
        found.runs = found.when.runs();
        found.in_kind_of(baseline);
    }
    let mut between = between(&all, rules);
    if are_rates(baseline) {
        between.iter_mut().for_each(|one| one.overall.as_rate());
    }
    Ok(Several { against_first, between })
}

fn between(all: &[Cells], rules: &Rules) -> Vec<Between> {
    let (mut places, mut pairs) = (Vec::new(), Vec::new());
    for (first, a) in all.iter().enumerate() {
        for (second, b) in all.iter().enumerate().skip(first + 1) {
            let found = overall::pairs(a, b, rules.design);
            places.extend(std::iter::repeat_n([first, second], found.len()));
            pairs.extend(found);
        }
    }
    let judged = overall::judge_all(&pairs, rules);
    let mut between: Vec<Between> =
        judged.into_iter().zip(places).map(|(overall, [first, second])| Between { first, second, overall }).collect();
    between.sort_by(|a, b| a.overall.group.cmp(&b.overall.group));
    between
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::compare::{Decision, compare};
    use crate::random::Rng;

    /// `blocks` visits to batch sizes 1 to 6, of 1 ms per example times `factor`, with 1 % of noise.
    fn run(rng: &mut Rng, blocks: u32, factor: f64) -> Vec<Series> {
        let time = |_, x| 0.001 * x * factor * (1.0 + 0.01 * rng.normal());
        vec![Series::in_blocks(&[], blocks, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], time)]
    }

    #[test]
    fn of_equal_runs_at_most_one_comparison_in_twenty_names_a_cell() {
        let mut rng = Rng::new(11);
        let alarms = (0..600)
            .filter(|_| {
                let runs: Vec<_> = (0..4).map(|_| run(&mut rng, 6, 1.0)).collect();
                let found = several(&runs, &Rules::default()).unwrap();
                let mut cells = found.against_first.iter().flat_map(|comparison| &comparison.cells);
                cells.any(|cell| matches!(cell.decision, Decision::Faster | Decision::Slower))
            })
            .count();
        // Stated: at most 5 %, which is 30; three standard deviations of such a count are 16.
        assert!(alarms <= 46, "{alarms} of 600 comparisons of four equal runs named a cell");
    }

    #[test]
    fn of_two_runs_it_is_the_comparison_of_two() {
        let mut rng = Rng::new(13);
        let runs = [run(&mut rng, 8, 1.0), run(&mut rng, 8, 1.05)];
        let found = several(&runs, &Rules::default()).unwrap();
        let two = compare(&runs[0][0], &runs[1][0], &Rules::default());
        assert_eq!(found.against_first[0].cells, two.cells);
        assert_eq!(found.between.iter().map(|one| one.overall.clone()).collect::<Vec<_>>(), two.overall);
    }

    #[test]
    fn a_run_without_a_common_cell_is_named() {
        let mut rng = Rng::new(14);
        let mut runs = [run(&mut rng, 3, 1.0), run(&mut rng, 3, 1.0), run(&mut rng, 3, 1.0)];
        runs[2][0].source = "results/other".into();
        runs[2][0].measurements.iter_mut().for_each(|one| one.observation.x += 100.0);
        let error = several(&runs, &Rules::default()).unwrap_err().to_string();
        assert!(error.starts_with("results/other: ") && error.contains("no cell in common with the first"), "{error}");
    }
}
