//! The steps that each mechanism predicts for a series.

mod memory;
mod threads;

use std::collections::{BTreeMap, BTreeSet};

use super::{AffectedLayer, KnownSeries, Setup};
use crate::analysis::mechanisms::formulas::catalogue::{cpu_work, kernel_work};
use crate::analysis::mechanisms::formulas::{Family, Kernel, LayerSizes, Mechanism, own};
use crate::engine::cpu::blocking::Blocking;
use crate::network::{Direction, Network, Operation};
use crate::settings::EngineName;
use crate::store::LayerRow;

pub(super) struct Predictions {
    places: Vec<LayerWorks>,
    pub timed: bool,
    pub unknown: Vec<String>,
}

/// A layer in one direction.
struct LayerWorks {
    layer: String,
    direction: String,
    /// Its share of the step time at each batch size: measured, or its share of the arithmetic.
    shares: BTreeMap<i64, f64>,
    /// Its work at each batch size, as each mechanism counts it.
    works: Vec<(Mechanism, Amounts)>,
}

enum Amounts {
    /// Work whose growth gives the size of a step.
    Sized(BTreeMap<i64, f64>),
    /// The names of what computes the layer, by batch size; a change of name has no size.
    Named(BTreeMap<i64, String>),
    /// Steps that are known as such, by the batch size before them.
    Given(BTreeMap<i64, PredictedStep>),
}

#[derive(Clone, Debug, Default, PartialEq)]
struct PredictedStep {
    /// As a part of the layer's own time.
    excess: Option<f64>,
    /// As a part of the whole step time, at most.
    at_most: Option<f64>,
    /// What a reader should know about it.
    detail: Option<String>,
}

impl Amounts {
    /// The step between two batch sizes, where there is one.
    fn step(&self, after: i64, next: i64) -> Option<PredictedStep> {
        match self {
            Self::Sized(amounts) => {
                let (before, behind) = (amounts.get(&after)?, amounts.get(&next)?);
                // What it grows by beyond growth in proportion to the batch: 0 where it is proportional, 1 where it doubles.
                let excess = behind / before - next as f64 / after as f64;
                (excess > 0.0).then(|| PredictedStep { excess: Some(excess), ..PredictedStep::default() })
            }
            Self::Named(names) => (names.get(&after)? != names.get(&next)?).then(PredictedStep::default),
            Self::Given(steps) => steps.get(&after).cloned(),
        }
    }
}

/// The predictions for a case from its layers; empty where the layers or the network are not known.
pub(super) fn of(case: &KnownSeries, layers: &[LayerRow]) -> Predictions {
    let mut rows: Vec<&LayerRow> = layers.iter().filter(|row| case.series.cells.contains(&row.cell)).collect();
    rows.sort_by_key(|row| row.batch_size);
    let mut flops: BTreeMap<i64, f64> = BTreeMap::new();
    let mut places: BTreeMap<(&str, &str), Vec<&LayerRow>> = BTreeMap::new();
    for &row in &rows {
        *flops.entry(row.batch_size).or_default() += row.flops;
        places.entry((&row.layer, &row.direction)).or_default().push(row);
    }
    let share = |row: &&LayerRow| {
        let share = match row.device_time_s {
            Some(time) => time / level(case, row.batch_size)?,
            None => row.flops / flops[&row.batch_size],
        };
        share.is_finite().then(|| (row.batch_size, share.min(1.0)))
    };
    let place = |((layer, direction), rows): ((&str, &str), Vec<&LayerRow>)| LayerWorks {
        layer: layer.to_owned(),
        direction: direction.to_owned(),
        shares: rows.iter().filter_map(share).collect(),
        works: works(case, layer, &rows),
    };
    let places: Vec<LayerWorks> = places.into_iter().map(place).collect();
    let unknown = case.setup.map(|setup| unknown(setup.network, &places)).unwrap_or_default();
    Predictions { places, timed: rows.iter().any(|row| row.device_time_s.is_some()), unknown }
}

/// Layers with weights for which no mechanism predicts any work.
fn unknown(network: &Network, places: &[LayerWorks]) -> Vec<String> {
    let is_sized = |place: &LayerWorks| place.works.iter().any(|(_, amounts)| matches!(amounts, Amounts::Sized(_)));
    let sized = |name: &str| places.iter().any(|place| place.layer == name && is_sized(place));
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

/// The work of the layer `name` in one direction by each mechanism. The rows ascend by batch size.
fn works(case: &KnownSeries, name: &str, rows: &[&LayerRow]) -> Vec<(Mechanism, Amounts)> {
    let layer = case.setup.and_then(|setup| setup.network.layers.iter().position(|known| known.name == name));
    let chosen = case.setup.zip(layer).and_then(|(setup, layer)| chosen(&setup, layer, rows));
    let executed = || executed(rows).map(|names| (Mechanism::OtherAlgorithm, names));
    let mut works = Vec::from_iter(chosen.map(|chosen| (Mechanism::OwnKernel, chosen)).or_else(executed));
    let rounds: BTreeMap<i64, f64> = rows.iter().filter_map(|row| Some((row.batch_size, row.waves?.ceil()))).collect();
    if !rounds.is_empty() {
        works.push((Mechanism::Rounds, Amounts::Sized(rounds)));
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
    works.extend(found.into_iter().filter_map(|(mechanism, amounts)| Some((mechanism, amounts?))));
    works.extend(sizes.map(|sizes| sized(&setup, &sizes, rows)).unwrap_or_default());
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
fn chosen<'a>(setup: &Setup, layer: usize, rows: &[&'a LayerRow]) -> Option<Amounts> {
    let named = |row: &&'a LayerRow| {
        let kernel = own::kernel(setup.engine, setup.network, layer, batch(row), setup.settings)?;
        let recorded = row.algorithm.as_deref().filter(|_| row.operation == "conv2d");
        Some((*row, recorded.unwrap_or(kernel)))
    };
    let names: Vec<(&LayerRow, &str)> = rows.iter().filter_map(named).collect();
    let changes = names.windows(2).filter(|pair| pair[0].1 != pair[1].1);
    let step = |pair: &[(&LayerRow, &str)]| {
        let ((before, of_before), (behind, of_behind)) = (pair[0], pair[1]);
        let times = before.device_time_s.zip(behind.device_time_s);
        let times = times.map(|(a, b)| format!("; {:.4} ms, then {:.4} ms", a * 1e3, b * 1e3)).unwrap_or_default();
        let why = own::why(of_behind).map(|why| format!("; {why}")).unwrap_or_default();
        let (layer, direction) = (&before.layer, &before.direction);
        let (at, next) = (before.batch_size, behind.batch_size);
        let detail = format!("{layer} {direction}: {of_before} at {at}, {of_behind} at {next}{times}{why}");
        (at, PredictedStep { detail: Some(detail), ..PredictedStep::default() })
    };
    (!names.is_empty()).then(|| Amounts::Given(changes.map(step).collect()))
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
            let direction = Direction::from_name(&row.direction)?;
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
        let of_place = |place: &LayerWorks| {
            let share = *place.shares.get(&after)?;
            let (_, amounts) = place.works.iter().find(|(of, _)| *of == mechanism)?;
            let step = amounts.step(after, next)?;
            let predicted = step.excess.map(|excess| share * excess).or(step.at_most);
            let (layer, direction) = (place.layer.clone(), place.direction.clone());
            Some(AffectedLayer { layer, direction, share, predicted, detail: step.detail })
        };
        let mut places: Vec<AffectedLayer> = self.places.iter().filter_map(of_place).collect();
        places.sort_by(|a, b| b.predicted.unwrap_or(b.share).total_cmp(&a.predicted.unwrap_or(a.share)));
        let sizes: Vec<f64> = places.iter().filter_map(|place| place.predicted).collect();
        let sum = (!sizes.is_empty()).then(|| sizes.iter().sum());
        (places, sum)
    }
}
