//! Networks that were not measured on the device: from the layers of those that were.

use std::collections::BTreeMap;

use super::known::{Measured, level, slowdown};
use super::{Basis, Row, Series};
use crate::analysis::mechanisms::formulas::own;
use crate::error::Result;
use crate::network::{Direction, Network, Sides};
use crate::predict::database::Database;
use crate::predict::model::layers::{FEWEST_NETWORKS, LayerWork, StepModel, StepWork};
use crate::settings::{AXES, EngineName, Optimizer, Precision, Settings};
use crate::store::{AxisValues, CollectedCell, CollectedLayer};

/// Batch sizes of one network that are learned from, at most.
const MOST_SIZES: usize = 12;

pub(super) struct Others {
    model: Option<StepModel>,
    networks: usize,
    kinds: Kinds,
    slowdown: f64,
    engine: EngineName,
}

/// A number for each operation in each direction, and for each of its algorithms, if the algorithm is also known for networks that were not measured.
#[derive(Default)]
struct Kinds(BTreeMap<String, usize>);

/// An operation in a direction, by an algorithm, and by any.
struct OperationRates {
    own: usize,
    wider: usize,
}

impl OperationRates {
    fn of(operation: &str, direction: &str, algorithm: Option<&str>, mut number: impl FnMut(String) -> usize) -> Self {
        let wider = number(format!("{operation} {direction}"));
        let own = algorithm.map_or(wider, |algorithm| number(format!("{operation} {direction} {algorithm}")));
        Self { own, wider }
    }
}

impl Kinds {
    fn number(&mut self, name: String) -> usize {
        let next = self.0.len();
        *self.0.entry(name).or_insert(next)
    }

    /// A kind that was not measured gets a number that no other has.
    fn known(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or(usize::MAX)
    }
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
    kinds: Kinds,
    slowdown: f64,
}

fn learned(known: &Measured, engine: EngineName, axes: &AxisValues) -> Result<Learned> {
    let (mut steps, mut names, mut kinds, mut all) = (Vec::new(), Vec::new(), Kinds::default(), Vec::new());
    for name in &known.networks {
        let mut cells = known.database.cells(known.device, name)?;
        cells.retain(|cell| cell.engine == engine.name() && comparable(&cell.axes, axes) && level(cell).is_some());
        if cells.is_empty() {
            continue;
        }
        let mut layers = known.database.layers(known.device, name)?;
        layers.retain(|layer| layer.engine == engine.name() && comparable(&layer.axes, axes));
        // For other engines and layers, the algorithm in a network that was not measured is unknown.
        for layer in layers.iter_mut().filter(|layer| !is_foretold(engine, &layer.operation)) {
            layer.algorithm = None;
        }
        steps.extend(of_network(names.len(), &cells, &layers, &mut kinds));
        names.push(name.clone());
        all.extend(cells);
    }
    Ok(Learned { steps, names, kinds, slowdown: slowdown(all.iter()) })
}

/// The measured steps of a device with this engine and these settings (the loss and the optimizer may differ), from which a prediction for other networks
/// learns: for an evaluation that leaves some of them out.
///
/// # Errors
/// [`crate::error::Kind::Data`] where the database cannot be read.
pub fn learnable(database: &Database, device: &str, engine: EngineName, axes: &AxisValues) -> Result<Learned> {
    learned(&Measured::new(database, device)?, engine, axes)
}

impl Others {
    /// Learns from all networks of the device that were measured with these settings.
    pub fn read(known: &Measured, series: &Series, engine: EngineName) -> Result<Self> {
        let Learned { steps, names, kinds, slowdown } = learned(known, engine, &series.axes(engine))?;
        Ok(Self { model: StepModel::fit(&steps), networks: names.len(), kinds, slowdown, engine })
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
            let number = |name: String| self.kinds.known(&name);
            let OperationRates { own, wider } =
                OperationRates::of(layer.operation, layer.direction.name(), algorithm, number);
            let multiplies = multiplies(layer.operation);
            let PlannedLayer { flops, bytes, sides: Sides { terms, channels, places }, .. } = layer;
            let sides = [terms, channels, places];
            LayerWork { kind: own, wider, multiplies, flops, bytes, sides, seconds: None }
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
    pub flops: f64,
    pub bytes: f64,
    pub sides: Sides,
}

/// What every layer of a network does in a step.
pub(super) fn layers_of(network: &Network, batch: usize, precision: Precision) -> Vec<PlannedLayer> {
    let bytes = if matches!(precision, Precision::Bf16 | Precision::Fp16) { 2 } else { 4 };
    let of = |index: usize| {
        Direction::ALL.into_iter().filter_map(move |direction| {
            let cost = network.cost(index, batch, direction, bytes)?;
            Some(PlannedLayer {
                index,
                operation: network.operation_name(index),
                direction,
                flops: cost.flops,
                bytes: cost.bytes,
                sides: network.sides(index),
            })
        })
    };
    (0..network.layers.len()).flat_map(of).collect()
}

/// Weights and gradients read, weights written; every state read and written: float32.
fn update_bytes(parameters: f64, optimizer: Optimizer) -> f64 {
    4.0 * parameters * (3.0 + 2.0 * optimizer.state_copies() as f64)
}

fn of_network(network: usize, cells: &[CollectedCell], layers: &[CollectedLayer], kinds: &mut Kinds) -> Vec<StepWork> {
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
            let number = |name: String| kinds.number(name);
            let OperationRates { own, wider } =
                OperationRates::of(&row.operation, &row.direction, row.algorithm.as_deref(), number);
            let (flops, bytes, seconds) = (row.flops, row.bytes, row.device_time_s);
            let sides = [row.terms, row.channels, row.places];
            LayerWork { kind: own, wider, multiplies: multiplies(&row.operation), flops, bytes, sides, seconds }
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
