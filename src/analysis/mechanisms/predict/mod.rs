//! The steps that each mechanism predicts for a series.

mod amounts;
mod memory;
mod threads;

use std::collections::{BTreeMap, BTreeSet};

use self::amounts::{Amounts, LayerAmounts, PredictedStep};
use super::{AffectedLayer, KnownSeries, LEAST, Setup};
use crate::analysis::mechanisms::formulas::catalogue::{cpu_work, kernel_work};
use crate::analysis::mechanisms::formulas::{Family, Kernel, LayerSizes, Mechanism, own};
use crate::engine::cpu::blocking::Blocking;
use crate::network::{Direction, Network, Operation};
use crate::settings::EngineName;
use crate::store::LayerRow;

pub(super) struct Predictions {
    /// By mechanism and place, the work at each batch size.
    works: Vec<LayerAmounts>,
    /// By layer and direction, its share of the step time at each batch size.
    shares: BTreeMap<(String, String), BTreeMap<i64, f64>>,
    pub timed: bool,
    pub unknown: Vec<String>,
}

/// The predictions for a case from its layers; empty where the layers or the network are not known.
pub(super) fn of(case: &KnownSeries, layers: &[LayerRow]) -> Predictions {
    let rows: Vec<&LayerRow> = layers.iter().filter(|row| case.series.cells.contains(&row.cell)).collect();
    let timed = rows.iter().any(|row| row.device_time_s.is_some());
    let mut predictions = Predictions { works: Vec::new(), shares: shares(case, &rows), timed, unknown: Vec::new() };
    let places: BTreeSet<(&str, &str)> = rows.iter().map(|row| (row.layer.as_str(), row.direction.as_str())).collect();
    for (layer, direction) in places {
        let mut own: Vec<&LayerRow> =
            rows.iter().copied().filter(|row| row.layer == layer && row.direction == direction).collect();
        own.sort_by_key(|row| row.batch_size);
        predictions.works.extend(works(case, &own));
    }
    if let Some(setup) = &case.setup {
        predictions.unknown = unknown(setup.network, &predictions.works);
    }
    predictions
}

/// Layers with weights for which no mechanism predicts any work.
fn unknown(network: &Network, works: &[LayerAmounts]) -> Vec<String> {
    let sized = |name: &str| works.iter().any(|w| w.layer == name && matches!(w.amounts, Amounts::Sized(_)));
    let layers =
        network.layers.iter().filter(|layer| matches!(layer.operation, Operation::Conv2d(_) | Operation::Dense(_)));
    layers.filter(|layer| !sized(&layer.name)).map(|layer| layer.name.clone()).collect()
}

/// The step time at each batch size, in seconds.
fn level(case: &KnownSeries, batch: i64) -> Option<f64> {
    let seconds_per_unit = case.series.seconds_per_unit()?;
    let point = case.findings.points.iter().find(|point| point.x == batch as f64)?;
    Some(point.fit * seconds_per_unit)
}

/// Each layer's share of the step time: measured, or its share of the arithmetic.
fn shares(case: &KnownSeries, rows: &[&LayerRow]) -> BTreeMap<(String, String), BTreeMap<i64, f64>> {
    let mut flops: BTreeMap<i64, f64> = BTreeMap::new();
    rows.iter().for_each(|row| *flops.entry(row.batch_size).or_default() += row.flops);
    let mut shares: BTreeMap<(String, String), BTreeMap<i64, f64>> = BTreeMap::new();
    for row in rows {
        let share = match row.device_time_s {
            Some(time) => level(case, row.batch_size).map(|level| time / level),
            None => flops.get(&row.batch_size).map(|all| row.flops / all),
        };
        let place = shares.entry((row.layer.clone(), row.direction.clone())).or_default();
        place.extend(share.filter(|share| share.is_finite()).map(|share| (row.batch_size, share.min(1.0))));
    }
    shares
}

/// The work of one layer in one direction by each mechanism. The rows ascend by batch size.
fn works(case: &KnownSeries, rows: &[&LayerRow]) -> Vec<LayerAmounts> {
    let Some(first) = rows.first() else { return Vec::new() };
    let work = |mechanism, amounts| LayerAmounts {
        mechanism,
        layer: first.layer.clone(),
        direction: first.direction.clone(),
        amounts,
    };
    let mut works = Vec::new();
    let layer = case.setup.and_then(|setup| setup.network.layers.iter().position(|known| known.name == first.layer));
    let chosen = case.setup.zip(layer).and_then(|(setup, layer)| chosen(&setup, layer, rows));
    match chosen {
        Some(chosen) => works.push(work(Mechanism::OwnKernel, chosen)),
        None => works.extend(executed(rows).map(|names| work(Mechanism::OtherAlgorithm, names))),
    }
    let rounds: BTreeMap<i64, f64> = rows.iter().filter_map(|row| Some((row.batch_size, row.waves?.ceil()))).collect();
    if !rounds.is_empty() {
        works.push(work(Mechanism::Rounds, Amounts::Sized(rounds)));
    }
    let Some(setup) = case.setup else { return works };
    let level = |batch| level(case, batch);
    let sizes = layer.and_then(|index| LayerSizes::of(setup.network, index));
    let found = [
        (Mechanism::WorkspaceLimit, memory::no_longer_fits(&setup, rows)),
        (Mechanism::CacheOverflow, memory::overflows(&setup, rows, &level)),
        (Mechanism::CpuThreads, layer.and_then(|layer| threads::uneven(&setup, layer, rows))),
        (Mechanism::CpuReadings, sizes.and_then(|sizes| memory::readings(&setup, &sizes, rows, &level))),
    ];
    works.extend(found.into_iter().filter_map(|(mechanism, amounts)| Some(work(mechanism, amounts?))));
    let sized = sizes.map(|sizes| sized(&setup, &sizes, rows)).unwrap_or_default();
    works.extend(sized.into_iter().map(|(mechanism, amounts)| work(mechanism, amounts)));
    works
}

/// The library's algorithm and kernel at each batch size, where they are not the same at all sizes.
fn executed(rows: &[&LayerRow]) -> Option<Amounts> {
    let name = |row: &LayerRow| Some(format!("{}{}", row.algorithm.as_deref()?, row.kernel.as_deref().unwrap_or("")));
    let names: BTreeMap<i64, String> = rows.iter().filter_map(|row| Some((row.batch_size, name(row)?))).collect();
    (names.values().collect::<BTreeSet<_>>().len() > 1).then_some(Amounts::Named(names))
}

/// The kernel that this program itself chooses for a layer; `None` where the choice is not ours. For a convolution it
/// is the recorded one, since the version that measured may have chosen another.
fn chosen(setup: &Setup, layer: usize, rows: &[&LayerRow]) -> Option<Amounts> {
    let at = |row: &&LayerRow| {
        let kernel = own::kernel(setup.engine, setup.network, layer, batch(row), setup.settings)?;
        let recorded = row.algorithm.as_deref().filter(|_| row.operation == "conv2d");
        Some((row.batch_size, recorded.unwrap_or(kernel).to_owned()))
    };
    let names: Vec<(&LayerRow, String)> = rows.iter().filter_map(|row| Some((*row, at(row)?.1))).collect();
    let changes = names.windows(2).filter(|pair| pair[0].1 != pair[1].1);
    let step = |pair: &[(&LayerRow, String)]| {
        let ((before, of_before), (behind, of_behind)) = (&pair[0], &pair[1]);
        let times = before.device_time_s.zip(behind.device_time_s);
        let times = times.map(|(a, b)| format!("; {:.4} ms, then {:.4} ms", a * 1e3, b * 1e3)).unwrap_or_default();
        let why = own::why(of_behind).map(|why| format!("; {why}")).unwrap_or_default();
        let (layer, direction) = (&before.layer, &before.direction);
        let (at, next) = (before.batch_size, behind.batch_size);
        let detail = format!("{layer} {direction}: {of_before} at {at}, {of_behind} at {next}{times}{why}");
        (at, PredictedStep { detail: Some(detail), ..PredictedStep::default() })
    };
    (!names.is_empty()).then(|| Amounts::Passed(changes.map(step).collect()))
}

fn batch(row: &LayerRow) -> usize {
    usize::try_from(row.batch_size).unwrap_or(1).max(1)
}

/// The work by the formulas of tiles and padding.
fn sized(setup: &Setup, sizes: &LayerSizes, rows: &[&LayerRow]) -> BTreeMap<Mechanism, Amounts> {
    let blocking = Blocking::from(setup.settings);
    let work = |row: &LayerRow| match setup.engine {
        EngineName::Cpu => {
            let winograd = row.algorithm.as_deref().is_some_and(|name| name.starts_with("winograd"));
            let direction = Direction::ALL.into_iter().find(|direction| direction.name() == row.direction)?;
            cpu_work(sizes, direction, winograd, batch(row), blocking)
        }
        EngineName::Cudnn | EngineName::Torch => {
            let kernel = gpu_kernel(sizes, row)?;
            // The published grids cover only forward passes; an H200 launched those of the gradient of the data for non-fused Winograd.
            let is_known = match row.direction.as_str() {
                "forward" => true,
                "backward_data" => kernel.family() == Family::NonFusedWinograd,
                _ => false,
            };
            is_known.then(|| (Mechanism::of_family(kernel.family()), kernel_work(kernel, sizes, batch(row))))
        }
        _ => None,
    };
    let mut found: BTreeMap<Mechanism, BTreeMap<i64, f64>> = BTreeMap::new();
    for row in rows {
        if let Some((mechanism, amount)) = work(row) {
            found.entry(mechanism).or_default().insert(row.batch_size, amount);
        }
    }
    found.into_iter().map(|(mechanism, amounts)| (mechanism, Amounts::Sized(amounts))).collect()
}

fn gpu_kernel(sizes: &LayerSizes, row: &LayerRow) -> Option<Kernel> {
    let launched = if is_non_fused(row) { NON_FUSED } else { row.algorithm.as_deref().unwrap_or("") };
    Kernel::of(sizes.product, row.kernel.as_deref()?, launched)
}

/// This is part of the names of cuDNN's algorithm and of its transforms.
const NON_FUSED: &str = "winograd_nonfused";

/// Whether a layer was computed by non-fused Winograd. The older calls give the algorithm's name. The engines of the
/// graph API have numbers only; there, it is Winograd in the notes and a plain matrix product as the main kernel. Fused
/// kernels have `winograd` in their own name.
fn is_non_fused(row: &LayerRow) -> bool {
    let has = |text: &Option<String>, part: &str| text.as_deref().is_some_and(|text| text.contains(part));
    let product = has(&row.kernel, "gemm") && !has(&row.kernel, "winograd");
    has(&row.algorithm, NON_FUSED) || has(&row.math_mode, "winograd") && product
}

impl Predictions {
    /// The places in which `mechanism` predicts a step between two batch sizes, the largest first, and their sum.
    pub fn step(&self, mechanism: Mechanism, after: f64, next: f64) -> (Vec<AffectedLayer>, Option<f64>) {
        let (after, next) = (after as i64, next as i64);
        let of_work = |work: &LayerAmounts| {
            let share = *self.shares.get(&(work.layer.clone(), work.direction.clone()))?.get(&after)?;
            let step = work.amounts.step(after, next)?;
            let predicted = step.excess.map(|excess| share * excess).or(step.at_most);
            let (layer, direction) = (work.layer.clone(), work.direction.clone());
            Some(AffectedLayer { layer, direction, share, predicted, detail: step.detail })
        };
        let mut places: Vec<AffectedLayer> =
            self.works.iter().filter(|w| w.mechanism == mechanism).filter_map(of_work).collect();
        places.sort_by(|a, b| b.predicted.unwrap_or(b.share).total_cmp(&a.predicted.unwrap_or(a.share)));
        let sizes: Vec<f64> = places.iter().filter_map(|place| place.predicted).collect();
        let sum = (!sizes.is_empty()).then(|| sizes.iter().sum());
        (places, sum)
    }

    /// Like [`Predictions::step`]; `None` where it predicts no step or too small a one.
    pub fn candidate(&self, mechanism: Mechanism, after: f64, next: f64) -> Option<(Vec<AffectedLayer>, Option<f64>)> {
        let (places, sum) = self.step(mechanism, after, next);
        (!places.is_empty() && sum.is_none_or(|sum| sum >= LEAST)).then_some((places, sum))
    }
}
