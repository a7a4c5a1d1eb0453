//! Two runs, cell by cell: the same, faster, slower, or ambiguous.
//!
//! For a cell with block medians a and b (on the logarithmic scale, so that a difference is a ratio), the difference of their
//! medians has the standard error sqrt(s_a^2 + s_b^2), each s from resampled blocks, and Welch's degrees of freedom (Welch
//! 1947). The p-values of all cells are corrected together by Holm's step-down procedure (1979), so that `alpha` bounds the
//! chance that a comparison of two equal runs names even one cell. A cell is the *same* if the simultaneous interval of its
//! ratio lies within the margin, even if it does not contain 1. A cell that is neither the same nor faster nor slower is
//! *ambiguous*, the default.
//!
//! ```text
//! d = m_b - m_a,   s = sqrt(s_a^2 + s_b^2),   nu = s^4 / (s_a^4 / (n_a - 1) + s_b^4 / (n_b - 1))
//! p = 2 P(T_nu > |d| / s),   corrected for the rank r of p among N cells: max over smaller ranks of (N - r + 1) p
//! same: |d| + t(nu; 1 - alpha / 2 N) s <= ln(1 + margin);   else slower: corrected p <= alpha and d > 0
//! ```
//!
//! There is a separate decision on a series as a whole ([`Overall`]): hundreds of cells with few blocks may each be ambiguous while their
//! geometric mean is proven to be the same, or not.
//!
//! In a thousand comparisons of equal runs at most 5 % name a cell (a test in `tests.rs`), as long as the machine is equally fast in both. Blocks
//! of one run share its hour: if two runs follow one another, a machine that has become slower looks the same as slower code. A comparison
//! says which it is ([`When`]). With several runs a side ([`sides()`]) runs are the unit, and what differs between them is counted. Runs
//! that were measured in turns ([`Design::InTurns`], [`rounds`]) are compared round by round: with d_r the difference of both in round r, d
//! is the mean of the d_r, and Student's test of their scatter (1908) takes the place of Welch's. A disturbance that lasts longer than a
//! round affects both runs and does not change d_r.
//!
//! Student 1908, The probable error of a mean; Welch 1947, The generalization of Student's problem; Holm 1979, A simple sequentially
//! rejective multiple test procedure; Schuirmann 1987, A comparison of the two one-sided tests procedure (equality needs its own proof).

mod cells;
mod common;
mod comparison;
mod difference;
mod moderated;
mod overall;
pub mod rounds;
mod rules;
mod several;
mod sides;
mod single;
#[cfg(test)]
mod tests;
mod welch;
mod when;

use crate::analysis::{Series, TimeOrRate};
use crate::error::Result;
pub use cells::step_names;
use cells::{Cells, cells, conversion, left_out, unit_of};
pub use common::foreseen;
use common::nothing_in_common;
pub use comparison::{ComparedCell, Comparison, Spread};
use difference::{Difference, WelchTest, decided, differences};
pub use overall::Overall;
pub use rules::{Decision, Design, Rules};
pub use several::{Between, Several, several};
pub use sides::sides;
pub use when::When;

/// Compares two runs. They must have cells in common, and their units must be known or equal. Times of the second are converted to the
/// unit of the first.
///
/// # Errors
/// [`crate::error::Kind::Data`] where they do not.
pub fn runs(first: &[Series], second: &[Series], rules: &Rules) -> Result<Comparison> {
    let per_unit = conversion(first, second)?;
    let unit = unit_of([(first, 1.0), (second, per_unit)]);
    let left_out = left_out([first, second]);
    let counts = |column: &str| left_out != Some(column);
    let (a, b) = (cells(first, 1.0, unit, counts), cells(second, per_unit, unit, counts));
    let is_single = |cells: &Cells| cells.values().all(|blocks| blocks.times.len() == 1);
    let are_tables = first.iter().chain(second).all(|series| series.cells.is_empty());
    let found = match are_tables && is_single(&a) && is_single(&b) && rules.design == Design::Separate {
        true => of_single(&a, &b, rules)?,
        false => compared(&a, &b, rules),
    };
    let when = When::of(first, second, rules.design);
    let mut found = Comparison { when, runs: when.runs(), ..found };
    found.in_kind_of(first);
    if found.cells.is_empty() {
        return Err(nothing_in_common("the runs have no cell in common", [a.keys(), b.keys()], rules.design));
    }
    Ok(found)
}

fn of_single(a: &Cells, b: &Cells, rules: &Rules) -> Result<Comparison> {
    let (mut differences, apart) = differences(a, b, 0, rules);
    if differences.is_empty() {
        return Ok(apart);
    }
    let mut values: Vec<&mut WelchTest> = differences.iter_mut().map(|one| &mut one.test).collect();
    let yardstick = Some(single::judge(&mut values)?);
    let mut found = vec![Comparison { yardstick, ..apart }];
    decided(differences, &mut found, rules);
    Ok(found.pop().unwrap_or_default())
}

/// Compares the sizes that two series in the same unit have, whatever they are called. Steps without a block number count as one block each. Ratios are
/// of times, also where the values are rates.
pub fn compare(first: &Series, second: &Series, rules: &Rules) -> Comparison {
    let both = [first, second].map(std::slice::from_ref);
    let unit = unit_of(both.map(|series| (series, 1.0)));
    let [a, b] = both.map(|series| cells(series, 1.0, unit, |_| false));
    let mut found = compared(&a, &b, rules);
    if first.kind == TimeOrRate::Rate {
        let values = found.cells.iter_mut().flat_map(|cell| [&mut cell.first, &mut cell.second]);
        values.for_each(|value| *value = value.recip());
    }
    found
}

fn are_rates(series: &[Series]) -> bool {
    series.iter().any(|series| series.kind == TimeOrRate::Rate)
}

fn compared(a: &Cells, b: &Cells, rules: &Rules) -> Comparison {
    let overall = overall::judge_all(&overall::pairs(a, b, rules.design), rules);
    let found = against(a, std::slice::from_ref(b), rules).pop().unwrap_or_default();
    Comparison { overall, ..found }
}

/// Each of `others` against `first`, cell by cell, with the p-values of all cells of all comparisons corrected together; not as wholes.
fn against(first: &Cells, others: &[Cells], rules: &Rules) -> Vec<Comparison> {
    let mut differences: Vec<Difference> = Vec::new();
    let mut found: Vec<Comparison> = Vec::with_capacity(others.len());
    for (run, other) in others.iter().enumerate() {
        let (own, apart) = difference::differences(first, other, run, rules);
        differences.extend(own);
        found.push(apart);
    }
    decided(differences, &mut found, rules);
    found
}
