//! The steps that each mechanism predicts for a series.

use std::collections::{BTreeMap, BTreeSet};

use super::{Case, LEAST, Place};
use crate::mechanism::catalogue::{cpu_work, kernel_work};
use crate::mechanism::cpu::Blocking;
use crate::mechanism::{Kernel, LayerSizes, Mechanism, excess};
use crate::network::{Direction, Network, Operation};
use crate::settings::EngineName;
use crate::store::LayerRow;

/// All predictions for one series.
pub(super) struct Predictions {
    /// By mechanism and place, the work at each batch size.
    works: Vec<Work>,
    /// By layer and direction, its share of the step time at each batch size.
    shares: BTreeMap<(String, String), BTreeMap<i64, f64>>,
    pub timed: bool,
    pub unknown: Vec<String>,
}

struct Work {
    mechanism: Mechanism,
    layer: String,
    direction: String,
    amounts: Amounts,
}

enum Amounts {
    /// Work whose growth is a step's size.
    Sized(BTreeMap<i64, f64>),
    /// The algorithm's name; a change has no size.
    Named(BTreeMap<i64, String>),
}

/// Of a case from its layers; nothing where the layers or the network are not known.
pub(super) fn of(case: &Case, layers: &[LayerRow]) -> Predictions {
    let rows: Vec<&LayerRow> = layers.iter().filter(|row| case.series.cells.contains(&row.cell)).collect();
    let timed = rows.iter().any(|row| row.device_time_s.is_some());
    let mut predictions = Predictions { works: Vec::new(), shares: shares(case, &rows), timed, unknown: Vec::new() };
    let places: BTreeSet<(&str, &str)> = rows.iter().map(|row| (row.layer.as_str(), row.direction.as_str())).collect();
    for (layer, direction) in places {
        let own: Vec<&LayerRow> =
            rows.iter().copied().filter(|row| row.layer == layer && row.direction == direction).collect();
        predictions.works.extend(works(case, &own));
    }
    if let Some(setup) = &case.setup {
        predictions.unknown = unknown(setup.network, &predictions.works);
    }
    predictions
}

/// Layers with weights of which no mechanism predicts any work.
fn unknown(network: &Network, works: &[Work]) -> Vec<String> {
    let sized = |name: &str| works.iter().any(|w| w.layer == name && matches!(w.amounts, Amounts::Sized(_)));
    let layers =
        network.layers.iter().filter(|layer| matches!(layer.operation, Operation::Conv2d(_) | Operation::Dense(_)));
    layers.filter(|layer| !sized(&layer.name)).map(|layer| layer.name.clone()).collect()
}

/// Each layer's part of the step time: measured, or the part of the arithmetic that it has.
fn shares(case: &Case, rows: &[&LayerRow]) -> BTreeMap<(String, String), BTreeMap<i64, f64>> {
    let mut flops: BTreeMap<i64, f64> = BTreeMap::new();
    rows.iter().for_each(|row| *flops.entry(row.batch_size).or_default() += row.flops);
    let seconds_per_unit = case.series.seconds_per_unit().unwrap_or(f64::NAN);
    let level = |batch: i64| {
        case.findings.points.iter().find(|point| point.x == batch as f64).map(|point| point.fit * seconds_per_unit)
    };
    let mut shares: BTreeMap<(String, String), BTreeMap<i64, f64>> = BTreeMap::new();
    for row in rows {
        let share = match row.device_time_s {
            Some(time) => level(row.batch_size).map(|level| time / level),
            None => flops.get(&row.batch_size).map(|all| row.flops / all),
        };
        let place = shares.entry((row.layer.clone(), row.direction.clone())).or_default();
        place.extend(share.filter(|share| share.is_finite()).map(|share| (row.batch_size, share.min(1.0))));
    }
    shares
}

/// What the mechanisms say of one layer in one direction.
fn works(case: &Case, rows: &[&LayerRow]) -> Vec<Work> {
    let Some(first) = rows.first() else { return Vec::new() };
    let work = |mechanism, amounts| Work {
        mechanism,
        layer: first.layer.clone(),
        direction: first.direction.clone(),
        amounts,
    };
    let mut works = Vec::new();
    let executed =
        |row: &LayerRow| Some(format!("{}{}", row.algorithm.as_deref()?, row.kernel.as_deref().unwrap_or("")));
    let names: BTreeMap<i64, String> = rows.iter().filter_map(|row| Some((row.batch_size, executed(row)?))).collect();
    if names.values().collect::<BTreeSet<_>>().len() > 1 {
        works.push(work(Mechanism::OtherAlgorithm, Amounts::Named(names)));
    }
    let rounds: BTreeMap<i64, f64> = rows.iter().filter_map(|row| Some((row.batch_size, row.waves?.ceil()))).collect();
    if !rounds.is_empty() {
        works.push(work(Mechanism::Rounds, Amounts::Sized(rounds)));
    }
    let Some(setup) = case.setup else { return works };
    let place = setup.network.layers.iter().position(|layer| layer.name == first.layer);
    let Some(sizes) = place.and_then(|index| LayerSizes::of(setup.network, index)) else { return works };
    let by_mechanism = |of: &dyn Fn(&LayerRow) -> Option<(Mechanism, f64)>| {
        let mut found: BTreeMap<Mechanism, BTreeMap<i64, f64>> = BTreeMap::new();
        for row in rows {
            if let Some((mechanism, amount)) = of(row) {
                found.entry(mechanism).or_default().insert(row.batch_size, amount);
            }
        }
        found
    };
    let batch = |row: &LayerRow| usize::try_from(row.batch_size).unwrap_or(1).max(1);
    let blocking =
        Blocking { batch_padding: setup.settings.batch_padding, product_columns: setup.settings.product_columns };
    let found = match setup.engine {
        EngineName::Cpu => by_mechanism(&|row| {
            let winograd = row.algorithm.as_deref().is_some_and(|name| name.starts_with("winograd"));
            let direction = Direction::ALL.into_iter().find(|direction| direction.name() == row.direction)?;
            cpu_work(&sizes, direction, winograd, batch(row), blocking)
        }),
        // The published grids are those of forward passes alone.
        EngineName::Cudnn | EngineName::Torch if first.direction == "forward" => by_mechanism(&|row| {
            let kernel = Kernel::of(sizes.product, row.kernel.as_deref()?, row.algorithm.as_deref().unwrap_or(""))?;
            Some((Mechanism::of_family(kernel.family()), kernel_work(kernel, &sizes, batch(row))))
        }),
        _ => BTreeMap::new(),
    };
    works.extend(found.into_iter().map(|(mechanism, amounts)| work(mechanism, Amounts::Sized(amounts))));
    works
}

impl Predictions {
    /// The places in which `mechanism` predicts a step between two batch sizes, the largest first, and their sum.
    pub fn step(&self, mechanism: Mechanism, after: f64, next: f64) -> (Vec<Place>, Option<f64>) {
        let (after, next) = (after as i64, next as i64);
        let of_work = |work: &Work| {
            let share = *self.shares.get(&(work.layer.clone(), work.direction.clone()))?.get(&after)?;
            let predicted = match &work.amounts {
                Amounts::Sized(amounts) => {
                    let (before, behind) = (*amounts.get(&after)?, *amounts.get(&next)?);
                    let amount = |batch: usize| if batch as i64 == after { before } else { behind };
                    let excess = excess(&amount, usize::try_from(after).ok()?, usize::try_from(next).ok()?);
                    (excess > 0.0).then_some(Some(share * excess))?
                }
                Amounts::Named(names) => (names.get(&after)? != names.get(&next)?).then_some(None)?,
            };
            Some(Place { layer: work.layer.clone(), direction: work.direction.clone(), share, predicted })
        };
        let mut places: Vec<Place> =
            self.works.iter().filter(|w| w.mechanism == mechanism).filter_map(of_work).collect();
        places.sort_by(|a, b| b.predicted.unwrap_or(b.share).total_cmp(&a.predicted.unwrap_or(a.share)));
        let sizes: Vec<f64> = places.iter().filter_map(|place| place.predicted).collect();
        let sum = (!sizes.is_empty()).then(|| sizes.iter().sum());
        (places, sum)
    }

    /// As [`Predictions::step`]; `None` where it predicts none, or too small a one.
    pub fn candidate(&self, mechanism: Mechanism, after: f64, next: f64) -> Option<(Vec<Place>, Option<f64>)> {
        let (places, sum) = self.step(mechanism, after, next);
        (!places.is_empty() && sum.is_none_or(|sum| sum >= LEAST)).then_some((places, sum))
    }
}
