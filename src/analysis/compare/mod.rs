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
//! In a thousand comparisons of equal runs at most 5 % name a cell (a test below), as long as the machine is equally fast in both. Blocks
//! of one run share its hour: if two runs follow one another, a machine that has become slower looks the same as slower code. A comparison
//! says which it is ([`When`]). With several runs a side ([`sides()`]) runs are the unit, and what differs between them is counted. Runs
//! that were measured in turns ([`Design::InTurns`], [`rounds`]) are compared round by round: with d_r the difference of both in round r, d
//! is the mean of the d_r, and Student's test of their scatter (1908) takes the place of Welch's. A disturbance that lasts longer than a
//! round affects both runs and does not change d_r.
//!
//! Student 1908, The probable error of a mean; Welch 1947, The generalization of Student's problem; Holm 1979, A simple sequentially
//! rejective multiple test procedure; Schuirmann 1987, A comparison of the two one-sided tests procedure (equality needs its own proof).

mod moderated;
mod overall;
pub mod rounds;
mod several;
mod sides;
mod single;
mod when;

use std::collections::{BTreeMap, BTreeSet};

use crate::analysis::{Series, TimeOrRate};
use crate::error::{Error, Result};
use crate::measure::BlockMedian;
use crate::stats::distribution::{t_upper, t_upper_quantile};
use crate::stats::quantile::median;
pub use overall::Overall;
pub use several::{Between, Several, several};
pub use sides::sides;
pub use when::When;

/// What the comparison decides by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The chance that equal runs get even one cell named faster or slower.
    pub alpha: f64,
    /// Ratios this near to 1, relative, are the same.
    pub margin: f64,
    pub design: Design,
}

impl Default for Rules {
    fn default() -> Self {
        Self { alpha: 0.05, margin: 0.01, design: Design::Separate }
    }
}

/// How the blocks of two runs are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Not at all: the error of each run follows from the scatter among its own blocks.
    Separate,
    /// Blocks of the same number are a round, measured one right after the other; the rounds are what is resampled.
    InTurns,
}

/// The decision on one cell of the second run, compared with the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Decision {
    Same,
    Faster,
    Slower,
    Ambiguous,
}

impl Decision {
    /// The decision on logarithms that lie `apart`, with a corrected p-value and half the width of the simultaneous interval.
    fn new(apart: f64, p_value: f64, half: f64, rules: &Rules) -> Self {
        // With a margin, differences within it do not count, even if they are proven.
        match (p_value <= rules.alpha, apart > 0.0) {
            _ if apart.abs() + half <= rules.margin.ln_1p() => Self::Same,
            (true, true) => Self::Slower,
            (true, false) => Self::Faster,
            (false, _) => Self::Ambiguous,
        }
    }

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Same => "SAME",
            Self::Faster => "FASTER",
            Self::Slower => "SLOWER",
            Self::Ambiguous => "AMBIGUOUS",
        }
    }
}

/// One cell that both runs have.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedCell {
    pub group: String,
    pub x: f64,
    /// Step times in the unit of the runs.
    pub first: f64,
    pub second: f64,
    /// `second / first`, and its 95 % interval for this cell, not corrected for the others.
    pub ratio: f64,
    pub low: f64,
    pub high: f64,
    /// How far runs of one side differ here, relative (standard deviation); `None` with one run a side.
    pub between: Option<f64>,
    /// Corrected for all cells of the comparison.
    pub p_value: f64,
    pub decision: Decision,
}

/// How far the runs of one side differ in a series, relative (standard deviations).
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    pub group: String,
    /// As wholes.
    pub whole: f64,
    /// At a single cell, beyond that: the middle of the cells.
    pub cell: f64,
}

/// A whole comparison.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    pub cells: Vec<ComparedCell>,
    /// The series as wholes, where their blocks allow it.
    pub overall: Vec<Overall>,
    /// Cells that only one of the runs has.
    pub unmatched: usize,
    /// Those that only the first has, by series and size; the second cannot be said to be no slower there.
    pub missing: Vec<(String, f64)>,
    pub when: When,
    /// Runs of each side; in turns, the rounds.
    pub runs: [usize; 2],
    /// With several runs a side, for each series.
    pub spread: Vec<Spread>,
    /// For tables with one value for each size: the relative scatter of the ratios among sizes that do not differ.
    pub yardstick: Option<f64>,
}

impl ComparedCell {
    /// Converts a cell of times per unit of work into a cell of rates, with the same decision.
    fn as_rate(&mut self) {
        (self.first, self.second, self.ratio) = (self.first.recip(), self.second.recip(), self.ratio.recip());
        (self.low, self.high) = (self.high.recip(), self.low.recip());
    }
}

/// The blocks of a cell, on the logarithmic scale.
#[derive(Clone, Default)]
struct Blocks {
    /// By number; steps without a block have negative numbers of their own.
    times: BTreeMap<i64, Vec<f64>>,
    /// How far rounding may have moved a value.
    rounding: f64,
}

type Cells = BTreeMap<Key, Blocks>;

/// What identifies a cell in both runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    group: String,
    /// The batch size's bits, which order and compare as positive numbers do.
    x: u64,
}

/// An estimate's standard error, and the blocks (or runs) that it comes from.
#[derive(Clone, Copy)]
struct Precision {
    error: f64,
    blocks: usize,
}

/// Repetitions whose logarithms scatter by less are alike: what is left is of arithmetic.
const ALIKE: f64 = 1e-12;
/// More degrees of freedom make no difference.
const MANY: f64 = 1e6;

/// The standard error of a difference, and its degrees of freedom.
#[derive(Clone, Copy)]
struct Welch {
    error: f64,
    freedom: f64,
}

/// A cell on its way to a decision.
struct Difference {
    /// Which of the runs that are held against the first.
    run: usize,
    key: Key,
    apart: Apart,
}

/// How far two cells lie apart.
struct Apart {
    first: f64,
    second: f64,
    welch: Welch,
    p: f64,
}

impl Comparison {
    /// The number of cells with a decision.
    pub fn count(&self, decision: Decision) -> usize {
        self.cells.iter().filter(|cell| cell.decision == decision).count()
    }

    /// Whether a difference may come from the run and not from the code, because each side has one.
    pub fn is_of_single_runs(&self) -> bool {
        self.runs == [1, 1] && !matches!(self.when, When::InTurns { .. })
    }

    /// Whether a cell is slower, or with several runs a side a series as a whole, which shows what all its cells have in common.
    pub fn is_slower(&self) -> bool {
        let as_a_whole = || self.overall.iter().any(|one| one.decision == Decision::Slower);
        self.count(Decision::Slower) > 0 || !self.spread.is_empty() && as_a_whole()
    }
}

/// Compares two runs. They must have cells in common, and their units must be known or equal. Times of the second are converted to the
/// unit of the first.
///
/// # Errors
/// [`crate::error::Kind::Data`] where they do not.
pub fn runs(first: &[Series], second: &[Series], rules: &Rules) -> Result<Comparison> {
    let per_unit = conversion(first, second)?;
    let unit = unit_of([(first, 1.0), (second, per_unit)]);
    let (a, b) = (cells(first, 1.0, unit), cells(second, per_unit, unit));
    let is_single = |cells: &Cells| cells.values().all(|blocks| blocks.times.len() == 1);
    let are_tables = first.iter().chain(second).all(|series| series.cells.is_empty() && !series.notes.is_empty());
    let found = match are_tables && is_single(&a) && is_single(&b) && rules.design == Design::Separate {
        true => of_single(&a, &b, rules)?,
        false => compared(&a, &b, rules),
    };
    let when = When::of(first, second, rules.design);
    let runs = if let When::InTurns { rounds } = when { [rounds; 2] } else { [1, 1] };
    let mut found = Comparison { when, runs, ..found };
    if first.iter().any(|series| series.kind == TimeOrRate::Rate) {
        found.cells.iter_mut().for_each(ComparedCell::as_rate);
        found.overall.iter_mut().for_each(Overall::as_rate);
    }
    if found.cells.is_empty() {
        let [a, b] = [first, second].map(named);
        let message = match a == b {
            true => "the runs have no cell in common".to_owned(),
            false => format!("the runs have no cell in common: the first has {a}, the second {b}"),
        };
        return Err(nothing_in_common(&message, rules));
    }
    Ok(found)
}

/// What the series of a run are called, the first few of them.
fn named(run: &[Series]) -> String {
    let names: BTreeSet<String> = run.iter().map(Series::values).filter(|name| !name.is_empty()).collect();
    let more = if names.len() > 3 { ", ..." } else { "" };
    match names.len() {
        0 => "one series without a name".to_owned(),
        _ => names.iter().take(3).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ") + more,
    }
}

/// The comparison of tables with one value for each size.
fn of_single(a: &Cells, b: &Cells, rules: &Rules) -> Result<Comparison> {
    let (mut differences, apart) = differences(a, b, 0, rules);
    if differences.is_empty() {
        return Ok(apart);
    }
    let mut values: Vec<&mut Apart> = differences.iter_mut().map(|one| &mut one.apart).collect();
    let yardstick = Some(single::judge(&mut values)?);
    let mut found = vec![Comparison { yardstick, ..apart }];
    decided(differences, &mut found, rules);
    Ok(found.pop().unwrap_or_default())
}

fn nothing_in_common(message: &str, rules: &Rules) -> Error {
    match rules.design {
        Design::Separate => Error::data(message).hint("a cell is a model with its settings, and a batch size"),
        Design::InTurns => Error::data(format!("{message} in the same round")).hint(
            "the column `block` numbers the rounds, with the same numbers on both sides; without it, leave `--in-turns` out",
        ),
    }
}

/// An error with the run that it is about.
fn in_its_source(run: &[Series], error: Error) -> Error {
    match run.first() {
        Some(series) => error.at(series.source.clone()),
        None => error,
    }
}

/// The unit of the times of `second`, in units of the times of `first`.
fn conversion(first: &[Series], second: &[Series]) -> Result<f64> {
    let (Some(first), Some(second)) = (first.first(), second.first()) else { return Ok(1.0) };
    if first.kind != second.kind {
        let column = |series: &Series| format!("`{}` is a {}", series.y, series.kind.name());
        let message = format!("{} and {}, which are not compared", column(first), column(second));
        return Err(
            Error::data(message).hint("name columns of one kind with `--y`, or say `--y-kind time` or `--y-kind rate`")
        );
    }
    let (of_first, of_second) = (first.base_unit(), second.base_unit());
    match first.kind {
        _ if first.unit == second.unit => Ok(1.0),
        TimeOrRate::Rate if of_first.name == of_second.name => Ok(of_second.factor / of_first.factor),
        TimeOrRate::Time if first.seconds_per_unit().is_some() && second.seconds_per_unit().is_some() => {
            Ok(of_second.factor / of_first.factor)
        }
        _ => {
            let column = |series: &Series| match series.unit.as_str() {
                "" => format!("`{}`, which names no unit", series.y),
                unit => format!("`{}` in {unit}", series.y),
            };
            Err(Error::data(format!("the values are in columns {} and {}", column(first), column(second)))
                .hint("end the name of the column without a unit in _s, _ms, _us or _ns"))
        }
    }
}

/// Compares the cells that both runs have, with values in the same unit. Steps without a block number count as one block each. Ratios are of times, also
/// where the values are rates.
pub fn compare(first: &[Series], second: &[Series], rules: &Rules) -> Comparison {
    let unit = unit_of([(first, 1.0), (second, 1.0)]);
    let mut found = compared(&cells(first, 1.0, unit), &cells(second, 1.0, unit), rules);
    if first.iter().any(|series| series.kind == TimeOrRate::Rate) {
        let values = found.cells.iter_mut().flat_map(|cell| [&mut cell.first, &mut cell.second]);
        values.for_each(|value| *value = value.recip());
    }
    found
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
        let (own, apart) = self::differences(first, other, run, rules);
        differences.extend(own);
        found.push(apart);
    }
    decided(differences, &mut found, rules);
    found
}

/// The difference of each cell of `first` from the same cell of `other`, and a comparison that has so far only the cells without a
/// counterpart. `run` is the place of `other` among the runs.
fn differences(first: &Cells, other: &Cells, run: usize, rules: &Rules) -> (Vec<Difference>, Comparison) {
    let difference = |(key, blocks): (&Key, &Blocks)| {
        let apart = Apart::of(blocks, other.get(key)?, rules)?;
        Some(Difference { run, key: key.clone(), apart })
    };
    let differences: Vec<Difference> = first.iter().filter_map(difference).collect();
    let unmatched = first.len() + other.len() - 2 * differences.len();
    let both: BTreeSet<&Key> = differences.iter().map(|one| &one.key).collect();
    let missing =
        first.keys().filter(|key| !both.contains(key)).map(|key| (key.group.clone(), f64::from_bits(key.x))).collect();
    (differences, Comparison { unmatched, missing, ..Comparison::default() })
}

/// Adds each difference to the comparison of its run, with p-values that are corrected together.
fn decided(mut differences: Vec<Difference>, found: &mut [Comparison], rules: &Rules) {
    differences.sort_by(|a, b| a.apart.p.total_cmp(&b.apart.p));
    let count = differences.len();
    let mut floor = 0.0f64;
    for (rank, difference) in differences.into_iter().enumerate() {
        // Holm: the smallest p-value is multiplied by the number of cells, the next by one less, and none falls below it.
        floor = floor.max((difference.apart.p * (count - rank) as f64).min(1.0));
        found[difference.run].cells.push(judge(difference, floor, count, rules));
    }
    for comparison in found {
        comparison.cells.sort_by(|a, b| a.group.cmp(&b.group).then(a.x.total_cmp(&b.x)));
    }
}

/// With values multiplied by `factor`, which are then multiples of `unit`; of rates their inverse, so that more is slower.
fn cells(series: &[Series], factor: f64, unit: f64) -> Cells {
    let mut cells = Cells::new();
    for series in series {
        let sign = if series.kind == TimeOrRate::Rate { -1.0 } else { 1.0 };
        for (i, seen) in series.observations().into_iter().enumerate().filter(|(_, seen)| seen.y > 0.0) {
            let block = seen.block.map_or(-1 - i as i64, i64::from);
            let key = Key { group: series.values(), x: seen.x.to_bits() };
            let cell = cells.entry(key).or_default();
            cell.times.entry(block).or_default().push(sign * (seen.y * factor).ln());
            cell.rounding = cell.rounding.max(0.5 * unit / (seen.y * factor));
        }
    }
    cells
}

/// The unit to which the values of runs, each multiplied by its factor, are rounded, or more: the smallest difference of any two of them.
fn unit_of<'a>(runs: impl IntoIterator<Item = (&'a [Series], f64)>) -> f64 {
    let of = |(run, factor): (&'a [Series], f64)| {
        run.iter().flat_map(Series::observations).map(move |seen| seen.y * factor).collect::<Vec<_>>()
    };
    let mut values: Vec<f64> = runs.into_iter().flat_map(of).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    let smallest = values.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
    if smallest.is_finite() { smallest } else { 0.0 }
}

impl Apart {
    fn of(a: &Blocks, b: &Blocks, rules: &Rules) -> Option<Self> {
        match rules.design {
            Design::Separate => Self::of_separate(a, b),
            Design::InTurns => Self::of_rounds(a, b),
        }
    }

    /// From the rounds in which both were measured; `None` without any.
    fn of_rounds(a: &Blocks, b: &Blocks) -> Option<Self> {
        let numbered = a.times.iter().filter(|(round, _)| **round >= 0);
        let both = numbered
            .filter_map(|(round, first)| Some([first, b.times.get(round)?].map(|times| median(&mut times.clone()))));
        let (first, second): (Vec<f64>, Vec<f64>) = both.map(|[first, second]| (first, second)).unzip();
        let welch = Welch::paired(&first, &second)?.or_rounded(a.rounding.hypot(b.rounding));
        let (first, second) = (overall::mean(&first), overall::mean(&second));
        Some(Self { first, second, welch, p: welch.two_sided(second - first) })
    }

    fn of_separate(a: &Blocks, b: &Blocks) -> Option<Self> {
        let of = |blocks: &Blocks| BlockMedian::of(&blocks.times.values().cloned().collect::<Vec<_>>());
        let rounding = a.rounding.hypot(b.rounding);
        let (a, b) = (of(a)?, of(b)?);
        let precision = |of: &BlockMedian| Precision { error: of.error, blocks: of.blocks };
        let welch = Welch::of(precision(&a), precision(&b)).or_rounded(rounding);
        let p = welch.two_sided(b.median - a.median);
        Some(Self { first: a.median, second: b.median, welch, p })
    }
}

impl Welch {
    /// Welch 1947; both estimates are independent.
    fn of(a: Precision, b: Precision) -> Self {
        let one = |of: Precision| Self { error: of.error, freedom: (of.blocks.max(2) - 1) as f64 };
        one(a).and(one(b))
    }

    /// The error of a sum of independent estimates (Satterthwaite 1946).
    fn and(self, other: Self) -> Self {
        let [va, vb] = [self, other].map(|one| one.error * one.error);
        let freedom = ((va + vb) * (va + vb) / (va * va / self.freedom + vb * vb / other.freedom)).clamp(1.0, MANY);
        Self { error: (va + vb).sqrt(), freedom }
    }

    /// Student's test (1908) of the mean difference between paired estimates: place i of one belongs to place i of the other. `None` without any.
    fn paired(first: &[f64], second: &[f64]) -> Option<Self> {
        let differences: Vec<f64> = first.iter().zip(second).map(|(first, second)| second - first).collect();
        match differences.len() {
            0 => None,
            1 => Some(Self { error: f64::INFINITY, freedom: 1.0 }),
            rounds => Some(Self { error: overall::precision(&differences).error, freedom: (rounds - 1) as f64 }),
        }
    }

    /// Repetitions that agree to the last digit are known to that digit.
    fn or_rounded(self, rounding: f64) -> Self {
        if self.error > ALIKE { self } else { Self { error: rounding, freedom: MANY } }
    }

    /// The two-sided p-value of a difference. Without any spread (or with one block, whose error is infinite) nothing is
    /// proven.
    fn two_sided(self, apart: f64) -> f64 {
        let Self { error, freedom } = self;
        if error.is_finite() && error > 0.0 { (2.0 * t_upper(apart.abs() / error, freedom)).min(1.0) } else { 1.0 }
    }

    /// Half of the interval of a difference that leaves out `tail` on either side.
    fn half(self, tail: f64) -> f64 {
        t_upper_quantile(tail, self.freedom) * self.error
    }
}

fn judge(d: Difference, p_value: f64, count: usize, rules: &Rules) -> ComparedCell {
    let Apart { first, second, welch, .. } = d.apart;
    let apart = second - first;
    let wide = welch.half(0.5 * rules.alpha / count as f64);
    let decision = Decision::new(apart, p_value, wide, rules);
    let alone = welch.half(0.025);
    ComparedCell {
        group: d.key.group,
        x: f64::from_bits(d.key.x),
        first: first.exp(),
        second: second.exp(),
        ratio: apart.exp(),
        low: (apart - alone).exp(),
        high: (apart + alone).exp(),
        between: None,
        p_value,
        decision,
    }
}

#[cfg(test)]
mod tests {
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
                let found = compare(&a, &b, &Rules::default());
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
            one_after_the_other += usize::from(named(&compare(&first, &after, &Rules::default())));
            // A B, B A, A B, ...: within a round one is half a block later than the other, by turns.
            let first = measured(|round| 2.0 * f64::from(round) + f64::from(round % 2));
            let second = measured(|round| 2.0 * f64::from(round) + f64::from(1 - round % 2));
            in_turns += usize::from(named(&compare(&first, &second, &turns)));
        }
        // Stated: at most 5 %, 15 of 300; three standard deviations of such a count are 11.
        assert!(in_turns <= 26, "{in_turns} of 300 equal pairs in turns were found different");
        assert!(one_after_the_other > 250, "{one_after_the_other} of 300: this machine would not need turns");
        let first = on_a_drifting_machine(&mut rng, 8, |round| 2.0 * f64::from(round), 1.0);
        let slower = on_a_drifting_machine(&mut rng, 8, |round| 2.0 * f64::from(round) + 0.1, 1.1);
        assert_eq!(compare(&first, &slower, &turns).count(Decision::Slower), 8);
    }

    fn of_times(times: impl IntoIterator<Item = (i64, Vec<f64>)>) -> Blocks {
        Blocks { times: times.into_iter().collect(), rounding: 0.0 }
    }

    /// Three rounds at sizes 1 and 2 that take the same whole number of milliseconds each, by size.
    fn rounded(times: [f64; 2]) -> Vec<Series> {
        let step = |block: u32, x: f64, y: f64| Observation { block: Some(block), ..Observation::new(x, y) }.into();
        let of = |block| [step(block, 1.0, times[0]), step(block, 2.0, times[1])];
        vec![Series::planted(Vec::new(), (0..6).flat_map(of).collect())]
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
        let beside = compare(&all[0], &all[1], &Rules::default());
        near(beside.cells[0].first, two.cells[0].first);
        near(beside.cells[0].ratio, 1.25);
    }

    #[test]
    fn rounds_are_compared_by_students_test_of_their_differences() {
        // By hand: the differences 0.8, 0.8, 1.0 have the mean 0.86667 and the error 0.066667, so t is 13; with 2 degrees of freedom p is
        // 1 - t / sqrt(t^2 + 2), and 95 % lie within 4.30265 errors.
        let blocks = |times: [f64; 3]| of_times((0..).zip(times.map(|time| vec![time])));
        let turns = Rules { design: Design::InTurns, ..Rules::default() };
        let found = Apart::of(&blocks([0.1, 0.2, 0.4]), &blocks([0.9, 1.0, 1.4]), &turns).expect("rounds");
        assert!((found.p - 0.005_865_15).abs() < 1e-7, "{}", found.p);
        let (apart, half) = (found.second - found.first, found.welch.half(0.025));
        assert!((apart - half - 0.579_82).abs() < 1e-5 && (apart + half - 1.153_51).abs() < 1e-5, "{apart} {half}");
        // A round without a partner is left out, and one round proves nothing.
        let lone = Apart::of(&blocks([0.1, 0.2, 0.4]), &of_times([(2, vec![0.5])]), &turns).expect("a round");
        assert_eq!((lone.p, lone.welch.error), (1.0, f64::INFINITY));
        assert!(Apart::of(&blocks([0.1, 0.2, 0.4]), &of_times([(7, vec![0.5])]), &turns).is_none());
    }

    #[test]
    fn times_in_other_units_are_converted_and_a_unit_that_is_not_known_is_asked_for() {
        let mut rng = Rng::new(9);
        let (seconds, mut other) = (run(&mut rng, 3, 20, |_| 1.0), run(&mut rng, 3, 20, |_| 2000.0));
        (other[0].unit, other[0].y) = ("ms".into(), "time_ms".into());
        let found = runs(&seconds, &other, &Rules::default()).expect("compared");
        assert!(found.cells.iter().all(|cell| (cell.ratio - 2.0).abs() < 0.05), "{:?}", found.cells);
        (other[0].unit, other[0].y) = (String::new(), "time".into());
        let error = runs(&seconds, &other, &Rules::default()).unwrap_err().to_string();
        assert!(
            error.contains("`step_time_s` in s and `time`, which names no unit") && error.contains("_ms"),
            "{error}"
        );
    }

    #[test]
    fn a_slower_cell_is_found_and_the_others_are_left_alone() {
        let mut rng = Rng::new(6);
        let (a, b) = (run(&mut rng, 20, 20, |_| 1.0), run(&mut rng, 20, 20, |x| if x == 7 { 1.1 } else { 1.0 }));
        let found = compare(&a, &b, &Rules::default());
        let slower: Vec<f64> = found.cells.iter().filter(|c| c.decision == Decision::Slower).map(|c| c.x).collect();
        assert_eq!(slower, [7.0]);
        assert!(found.cells[6].low < 1.1 && 1.1 < found.cells[6].high, "{:?}", found.cells[6]);
        let back = compare(&b, &a, &Rules::default());
        assert_eq!(back.cells[6].decision, Decision::Faster);
    }

    #[test]
    fn what_is_proven_to_lie_within_the_margin_is_the_same() {
        let mut rng = Rng::new(6);
        let (a, b) = (run(&mut rng, 4, 60, |_| 1.0), run(&mut rng, 4, 60, |_| 1.03));
        let decisions = |margin: f64| {
            let found = compare(&a, &b, &Rules { margin, ..Rules::default() });
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
        assert!(compare(&a, &b, &wide).cells.iter().all(|cell| cell.decision == Decision::Same));
        let narrow = Rules { margin: 1e-4, ..Rules::default() };
        assert!(compare(&a, &b, &narrow).cells.iter().all(|cell| cell.decision == Decision::Ambiguous));
        let (a, b) = (run(&mut rng, 3, 1, |_| 1.0), run(&mut rng, 4, 1, |_| 2.0));
        let lone = compare(&a, &b, &Rules::default());
        assert!(lone.cells.iter().all(|cell| cell.decision == Decision::Ambiguous));
        assert_eq!((lone.cells.len(), lone.unmatched), (3, 1));
    }
}
