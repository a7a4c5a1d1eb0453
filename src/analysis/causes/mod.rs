//! The cause of a jump: the layers whose times jump where the whole step's time does, and what else changes there - a layer's
//! algorithm, its waves of thread blocks.
//!
//! A layer's step is that of an ordinary least-squares line with one slope and an offset after the jump, through the layer's
//! times at up to [`REACH`] batch sizes on either side, none of them beyond another jump. A layer is named where its step stands
//! out from the scatter around that line: Student's t, corrected by Bonferroni for the number of layers looked at. The times are
//! the shortest of the first ten visits to each cell (`[measure] layers`); they explain jumps that were proven otherwise.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::analysis::{Analysed, Series};
use crate::detect::Jump;
use crate::error::Result;
use crate::os::look;
use crate::stats::distribution::t_upper;
use crate::store::{LayerRow, files, sealed};

/// Batch sizes on either side of a jump from which a layer's step is computed.
pub const REACH: usize = 4;

/// A layer whose step is a smaller part of the jump explains nothing.
const LEAST_SHARE: f64 = 0.01;

/// With more rounds than this, a further round adds less than a tenth to the layer's time.
const FEW_ROUNDS: f64 = 10.0;

/// Significance level of the test for a step in a layer, over all layers of a series together.
const LEVEL: f64 = 0.01;

#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The batch size before the jump, and the next one that was measured.
    pub after: f64,
    pub next: f64,
    /// The size of the jump, in seconds.
    pub size_s: f64,
    /// The layers that step or change there; the largest step first.
    pub layers: Vec<Cause>,
    pub timed: bool,
    /// The step of all layers' times together; `None` where they were not timed, or at too few batch sizes beside the jump.
    pub together: Option<LayerStep>,
}

/// A layer in one direction, on both sides of a jump.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cause {
    pub layer: String,
    pub direction: String,
    /// Its own step; `None` where it was not timed, or does not stand out.
    pub step: Option<LayerStep>,
    pub before: SideExecution,
    #[serde(rename = "after")]
    pub behind: SideExecution,
}

/// How a layer is executed on one side of a jump.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SideExecution {
    pub algorithm: Option<String>,
    pub kernel: Option<String>,
    pub waves: Option<f64>,
}

/// A step of a layer's time, in seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LayerStep {
    pub size_s: f64,
    pub standard_error_s: f64,
    /// The share of the whole jump.
    pub share: f64,
}

impl Cause {
    pub fn changes_algorithm(&self) -> bool {
        self.before.algorithm != self.behind.algorithm
    }

    /// Whether its blocks need one more round on the GPU, or one less, of so few that it can be felt.
    pub fn changes_rounds(&self) -> bool {
        let (Some(before), Some(behind)) = (self.before.waves, self.behind.waves) else { return false };
        before.ceil() != behind.ceil() && before.min(behind).ceil() <= FEW_ROUNDS
    }
}

/// For each series, its jumps, explained as far as `layers` (all layers of the run directory) allow. Series without times and
/// algorithms of layers, such as those of other programs, have no explanations.
pub fn explain(found: &[Analysed], layers: &[LayerRow]) -> Vec<Vec<Explanation>> {
    let of_series = |Analysed { series, findings }: &Analysed| {
        let Some(seconds) = series.seconds_per_unit() else { return Vec::new() };
        let works = works(&layers_of(series, layers));
        let explained = |at: usize| explain_jump(&findings.jumps, at, seconds, &works);
        (0..findings.jumps.len()).filter_map(explained).collect()
    };
    found.iter().map(of_series).collect()
}

/// The jumps of the run in `path`, explained by its stored layers; an empty list for each series of a file of another program,
/// which has none.
///
/// # Errors
/// As [`sealed`].
pub fn of_run(path: &Path, found: &[Analysed]) -> Result<Vec<Vec<Explanation>>> {
    if !look::is_file(&path.join(files::LAYERS))? {
        return Ok(vec![Vec::new(); found.len()]);
    }
    Ok(explain(found, &sealed(&path.join(files::LAYERS))?))
}

/// The layers of the cells of one series. Empty if a batch size represents several cells, as with a grouping that merges
/// settings: their layers may differ, and it would not be known which of them explain the jump.
fn layers_of<'a>(series: &Series, layers: &'a [LayerRow]) -> Vec<&'a LayerRow> {
    let rows: Vec<&LayerRow> = layers.iter().filter(|row| series.cells.contains(&row.cell)).collect();
    let mut cell_of: BTreeMap<i64, i64> = BTreeMap::new();
    let one_each = rows.iter().all(|row| *cell_of.entry(row.batch_size).or_insert(row.cell) == row.cell);
    if one_each { rows } else { Vec::new() }
}

/// A layer in one direction at all batch sizes.
struct LayerOverSizes<'a> {
    layer: &'a str,
    direction: &'a str,
    rows: Vec<&'a LayerRow>,
}

impl LayerOverSizes<'_> {
    fn side(&self, x: f64) -> SideExecution {
        let row = self.rows.iter().find(|row| row.batch_size as f64 == x);
        let of = |row: &&LayerRow| (row.algorithm.clone(), row.kernel.clone(), row.waves);
        let (algorithm, kernel, waves) = row.map(of).unwrap_or_default();
        SideExecution { algorithm, kernel, waves }
    }

    /// Batch sizes and seconds, where it was timed.
    fn times(&self) -> Vec<(f64, f64)> {
        self.rows.iter().filter_map(|row| Some((row.batch_size as f64, row.device_time_s?))).collect()
    }
}

/// In the order of the network; a layer that is computed within another one is part of that one.
fn works<'a>(rows: &[&'a LayerRow]) -> Vec<LayerOverSizes<'a>> {
    let mut works: Vec<LayerOverSizes> = Vec::new();
    for &row in rows {
        match works.iter_mut().find(|work| work.layer == row.layer && work.direction == row.direction) {
            Some(work) => work.rows.push(row),
            None => works.push(LayerOverSizes { layer: &row.layer, direction: &row.direction, rows: vec![row] }),
        }
    }
    works.iter_mut().for_each(|work| work.rows.sort_by_key(|row| row.batch_size));
    works.retain(|work| work.rows.iter().any(|row| row.algorithm.is_some() || row.device_time_s.is_some()));
    works
}

fn explain_jump(jumps: &[Jump], at: usize, seconds_per_unit: f64, works: &[LayerOverSizes]) -> Option<Explanation> {
    let jump = &jumps[at];
    let sizes = || works.iter().flat_map(|work| work.rows.iter().map(|row| row.batch_size as f64));
    let next = sizes().filter(|x| *x > jump.after).min_by(f64::total_cmp)?;
    // The line ends where another jump begins.
    let from = jumps.iter().map(|other| other.after).filter(|x| *x < jump.after).fold(f64::NEG_INFINITY, f64::max);
    let to = jumps.iter().map(|other| other.after).filter(|x| *x > jump.after).fold(f64::INFINITY, f64::min);
    let size_s = jump.size * seconds_per_unit;
    let step = |times: Vec<(f64, f64)>| {
        let near = times.into_iter().filter(|(x, _)| *x > from && *x <= to).collect();
        step(near, jump.after).map(|fitted| (LayerStep { share: fitted.0.size_s / size_s, ..fitted.0 }, fitted.1))
    };
    let tests = works.iter().filter(|work| !work.times().is_empty()).count().max(1) as f64;
    let cause = |work: &LayerOverSizes| {
        let stands_out = step(work.times())
            .filter(|(step, p)| p * tests < LEVEL && step.share.abs() >= LEAST_SHARE)
            .map(|(step, _)| step);
        let (layer, direction) = (work.layer.to_owned(), work.direction.to_owned());
        Cause { layer, direction, step: stands_out, before: work.side(jump.after), behind: work.side(next) }
    };
    let mut layers: Vec<Cause> = works.iter().map(cause).collect();
    layers.retain(|cause| cause.step.is_some() || cause.changes_algorithm() || cause.changes_rounds());
    // Untimed layers are ordered by likely weight: another algorithm first, then a change of few rounds.
    let rounds = |cause: &Cause| cause.before.waves.map_or(f64::INFINITY, f64::ceil);
    let weight = |cause: &Cause| cause.step.map_or(0.0, |step| step.size_s.abs());
    layers.sort_by(|a, b| {
        let by_change = b.changes_algorithm().cmp(&a.changes_algorithm());
        weight(b).total_cmp(&weight(a)).then(by_change).then(rounds(a).total_cmp(&rounds(b)))
    });
    let total = total(works);
    let timed = !total.is_empty();
    let together = step(total).map(|(step, _)| step);
    Some(Explanation { after: jump.after, next, size_s, layers, timed, together })
}

/// The sum over all layers, at the batch sizes at which every timed layer was timed.
fn total(works: &[LayerOverSizes]) -> Vec<(f64, f64)> {
    let timed: Vec<Vec<(f64, f64)>> =
        works.iter().map(LayerOverSizes::times).filter(|times| !times.is_empty()).collect();
    let most = timed.iter().max_by_key(|times| times.len());
    let sum = |x: f64| -> Option<f64> {
        timed.iter().map(|times| times.iter().find(|(at, _)| *at == x).map(|(_, time)| time)).sum()
    };
    most.into_iter().flatten().filter_map(|(x, _)| Some((*x, sum(*x)?))).collect()
}

/// The step of a line with one slope on both sides of `after`, and its two-sided p-value. `None` with fewer than four points, or
/// all on one side.
fn step(mut points: Vec<(f64, f64)>, after: f64) -> Option<(LayerStep, f64)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let split = points.partition_point(|(x, _)| *x <= after);
    let (left, right) = (&points[split.saturating_sub(REACH)..split], &points[split..points.len().min(split + REACH)]);
    let freedom = (left.len() + right.len()).checked_sub(3).filter(|freedom| *freedom >= 1)? as f64;
    if left.is_empty() || right.is_empty() {
        return None;
    }
    let mean = |side: &[(f64, f64)], of: fn(&(f64, f64)) -> f64| side.iter().map(of).sum::<f64>() / side.len() as f64;
    let centre = |side: &[(f64, f64)]| (mean(side, |point| point.0), mean(side, |point| point.1));
    let sides = [left, right].map(|side| (side, centre(side)));
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        sides.iter().flat_map(|(side, (x, y))| side.iter().map(move |point| of(point.0 - x, point.1 - y))).sum()
    };
    let spread = sum(&|x, _| x * x);
    let slope = sum(&|x, y| x * y) / spread;
    let scatter = sum(&|x, y| (y - slope * x).powi(2)) / freedom;
    let [(_, (x_left, y_left)), (_, (x_right, y_right))] = sides;
    let size_s = y_right - y_left - slope * (x_right - x_left);
    let leverage = 1.0 / left.len() as f64 + 1.0 / right.len() as f64 + (x_right - x_left).powi(2) / spread;
    let standard_error_s = (scatter * leverage).sqrt();
    let p = if standard_error_s > 0.0 { 2.0 * t_upper(size_s.abs() / standard_error_s, freedom) } else { 0.0 };
    (size_s != 0.0).then_some((LayerStep { size_s, standard_error_s, share: f64::NAN }, p))
}

#[cfg(test)]
mod tests;
