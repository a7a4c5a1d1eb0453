//! Networks that were not measured on the device: from the layers of those that were.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::known::{Measured, level, slowdown};
use super::{Basis, Row, Series};
use crate::analysis::mechanisms::formulas::own;
use crate::error::Result;
use crate::network::{Cost, Direction, Network, Sides};
use crate::predict::database::Database;
use crate::predict::model::layers::{FEWEST_NETWORKS, LayerWork, StepModel, StepWork};
use crate::settings::{AXES, EngineName, Optimizer, Precision, Settings};
use crate::store::{AxisValues, CollectedCell, CollectedLayer};

/// Batch sizes of one network that are learned from, at most.
const MOST_SIZES: usize = 12;

pub(super) struct Others {
    model: Option<StepModel>,
    networks: usize,
    slowdown: f64,
    engine: EngineName,
}

/// The kinds of an operation in a direction, by its algorithm, if that is also known for networks that were not measured, and by any.
fn kinds(operation: &str, direction: &str, algorithm: Option<&str>) -> [u64; 2] {
    let number = |algorithm: Option<&str>| {
        let mut hasher = DefaultHasher::new();
        (operation, direction, algorithm).hash(&mut hasher);
        hasher.finish()
    };
    [number(algorithm), number(None)]
}

/// Whether the sizes of a layer determine the algorithm by which an engine computes it.
fn is_foretold(engine: EngineName, operation: &str) -> bool {
    engine == EngineName::Cpu && ["conv2d", "depthwise_conv2d"].contains(&operation)
}

fn multiplies(operation: &str) -> bool {
    ["conv2d", "depthwise_conv2d", "dense"].contains(&operation)
}

/// Whether two cells do the same work in the same way, apart from the loss and the optimizer, whose work is counted.
fn comparable(a: &AxisValues, b: &AxisValues) -> bool {
    AXES.iter()
        .enumerate()
        .all(|(place, axis)| ["optimizer", "loss"].contains(&axis.key) || a.get(place) == b.get(place))
}

/// The measured steps of many networks, as work.
pub struct Learned {
    pub steps: Vec<StepWork>,
    /// By their numbers in the steps.
    pub names: Vec<String>,
    slowdown: f64,
}

/// The measured steps of a device with this engine and these settings (the loss and the optimizer may differ), from which a prediction for other networks
/// learns: for an evaluation that leaves some of them out.
///
/// # Errors
/// [`crate::error::Kind::Data`] where the database cannot be read.
pub fn learnable(database: &Database, device: &str, engine: EngineName, axes: &AxisValues) -> Result<Learned> {
    let (mut steps, mut names, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for name in database.networks(device)? {
        let mut cells = database.cells(device, &name)?;
        cells.retain(|cell| cell.engine == engine.name() && comparable(&cell.axes, axes) && level(cell).is_some());
        if cells.is_empty() {
            continue;
        }
        let mut layers = database.layers(device, &name)?;
        layers.retain(|layer| layer.engine == engine.name() && comparable(&layer.axes, axes));
        // For other engines and layers, the algorithm in a network that was not measured is unknown.
        for layer in layers.iter_mut().filter(|layer| !is_foretold(engine, &layer.operation)) {
            layer.algorithm = None;
        }
        steps.extend(of_network(names.len(), &cells, &layers));
        names.push(name);
        all.extend(cells);
    }
    Ok(Learned { steps, names, slowdown: slowdown(all.iter()) })
}

impl Others {
    /// Learns from all networks of the device that were measured with these settings.
    pub fn read(known: &Measured, series: &Series, engine: EngineName) -> Result<Self> {
        let Learned { steps, names, slowdown } = learnable(known.database, known.device, engine, &series.axes(engine))?;
        Ok(Self { model: StepModel::fit(&steps), networks: names.len(), slowdown, engine })
    }

    pub fn rows(&self, series: &Series, known: &Measured) -> std::result::Result<Vec<Row>, String> {
        let Some(model) = &self.model else {
            return Err(format!(
                "`{}` was not measured on {} with the engine {} and these settings, and {} of the {FEWEST_NETWORKS} other networks that a prediction needs were; the database has there: {}",
                series.first().model,
                known.device,
                self.engine,
                self.networks,
                shortened(&known.networks),
            ));
        };
        let row = |cell: &&crate::spec::plan::Cell| {
            let work = self.work(&cell.workload.network, cell.batch_size, &cell.workload.settings);
            let basis = Basis::Layers { networks: model.networks, covered: model.covers(&work) };
            let row = Row::new(known.device, self.engine.name(), series, cell, model.at(&work), basis);
            Row { slowdown: self.slowdown, ..row }
        };
        Ok(series.cells.iter().map(row).collect())
    }

    /// The work of a step of a network that was not measured, from its description.
    fn work(&self, network: &Network, batch: usize, settings: &Settings) -> StepWork {
        let layers = layers_of(network, batch, settings.precision);
        let layers = layers.into_iter().map(|layer| {
            let chosen = || own::kernel(self.engine, network, layer.index, batch, settings);
            let algorithm = is_foretold(self.engine, layer.operation).then(chosen).flatten();
            let [kind, wider] = kinds(layer.operation, layer.direction.name(), algorithm);
            let multiplies = multiplies(layer.operation);
            LayerWork { kind, wider, multiplies, work: layer.work, sides: layer.sides, seconds: None }
        });
        StepWork {
            network: usize::MAX,
            batch: batch as f64,
            layers: layers.collect(),
            update_bytes: update_bytes(network.trainable_count() as f64, settings.optimizer),
            seconds: f64::NAN,
        }
    }
}

pub(super) struct PlannedLayer {
    pub index: usize,
    pub operation: &'static str,
    pub direction: Direction,
    pub work: Cost,
    pub sides: Sides,
}

/// What every layer of a network does in a step.
pub(super) fn layers_of(network: &Network, batch: usize, precision: Precision) -> Vec<PlannedLayer> {
    let bytes = if matches!(precision, Precision::Bf16 | Precision::Fp16) { 2 } else { 4 };
    let of = |index: usize| {
        Direction::ALL.iter().filter_map(move |&direction| {
            let work = network.cost(index, batch, direction, bytes)?;
            let (operation, sides) = (network.operation_name(index), network.sides(index));
            Some(PlannedLayer { index, operation, direction, work, sides })
        })
    };
    (0..network.layers.len()).flat_map(of).collect()
}

/// Weights and gradients read, weights written; every state read and written: float32.
fn update_bytes(parameters: f64, optimizer: Optimizer) -> f64 {
    4.0 * parameters * (3.0 + 2.0 * optimizer.state_copies() as f64)
}

fn of_network(network: usize, cells: &[CollectedCell], layers: &[CollectedLayer]) -> Vec<StepWork> {
    let mut of_cell: BTreeMap<(&str, i64), Vec<&CollectedLayer>> = BTreeMap::new();
    for layer in layers {
        of_cell.entry((&layer.network_id, layer.batch_size)).or_default().push(layer);
    }
    let mut sizes: BTreeMap<(&str, i64), Vec<&CollectedCell>> = BTreeMap::new();
    for cell in cells {
        sizes.entry((&cell.network_id, cell.batch_size)).or_default().push(cell);
    }
    let every = sizes.len().div_ceil(MOST_SIZES).max(1);
    let mut steps = Vec::new();
    for (key, cells) in sizes.into_iter().step_by(every) {
        let Some(rows) = of_cell.get(&key) else { continue };
        let mut seconds: Vec<f64> = cells.iter().filter_map(|cell| level(cell)).collect();
        let work = rows.iter().map(|row| {
            let [kind, wider] = kinds(&row.operation, &row.direction, row.algorithm.as_deref());
            let work = Cost { flops: row.flops, bytes: row.bytes };
            let sides = Sides { terms: row.terms, channels: row.channels, places: row.places };
            LayerWork { kind, wider, multiplies: multiplies(&row.operation), work, sides, seconds: row.device_time_s }
        });
        let optimizer = cells[0].axes.of_key("optimizer");
        let optimizer = optimizer.and_then(|value| Optimizer::from_name(&value.to_string())).unwrap_or(Optimizer::Sgd);
        steps.push(StepWork {
            network,
            batch: key.1 as f64,
            layers: work.collect(),
            update_bytes: update_bytes(cells[0].parameters as f64, optimizer),
            seconds: crate::stats::quantile::median(&mut seconds),
        });
    }
    steps
}

/// Names in a sentence, the first few.
fn shortened(names: &[String]) -> String {
    const MOST: usize = 6;
    match names.len() {
        0 => "nothing".to_owned(),
        count if count <= MOST => names.join(", "),
        count => format!("{} and {} more", names[..MOST].join(", "), count - MOST),
    }
}
