//! The cells of a training study. As [`crate::plan`], a pure function of the spec and of the data's shape.

use std::sync::Arc;

use crate::data::DataSet;
use crate::engine::open::Engines;
use crate::engine::{Settings, Workload, train};
use crate::error::{Error, Result};
use crate::network::Network;
use crate::plan::{Cell, Plan, networks};
use crate::spec::training::Training;
use crate::spec::{Model, Order};

/// One point of the study.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingCell {
    /// Its number, its engine, its network, its settings.
    pub step: Cell,
    pub workers: usize,
    /// `None` without workers.
    pub prefetch: Option<usize>,
}

/// All cells.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainingPlan {
    pub cells: Vec<TrainingCell>,
    seed: u64,
}

impl TrainingPlan {
    /// Multiplies out the axes of the spec; networks take the shape and the classes of the data. `engines` resolves `auto`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where a network can't be built, or does not fit the data.
    pub fn new(spec: &Training, data: &DataSet, engines: &Engines) -> Result<Self> {
        let model = fitted(&spec.model, data)?;
        let common = Settings { learning_rate: spec.learning_rate, seed: spec.measure.seed, ..Settings::default() };
        let mut plan = Self { cells: Vec::with_capacity(spec.cell_count()), seed: spec.measure.seed };
        for (name, network) in networks(&model)? {
            check(&network, data)?;
            for &engine in &spec.engines {
                for settings in spec.grid.settings(engine, &common) {
                    let settings = train::fed(settings, engines.resolve(engine))?;
                    for &batch_size in &spec.batch_sizes {
                        let network = Arc::clone(&network);
                        let workload = Workload { network, batch_size, settings: settings.clone() };
                        let step = Cell { index: 0, engine, model: name.clone(), batch_size, workload };
                        plan.add_loaders(&step, spec);
                    }
                }
            }
        }
        Ok(plan)
    }

    fn add_loaders(&mut self, step: &Cell, spec: &Training) {
        for &workers in &spec.loader.workers {
            let depths: Vec<Option<usize>> = match workers {
                0 => vec![None],
                _ => spec.loader.prefetch.iter().copied().map(Some).collect(),
            };
            for prefetch in depths {
                let step = Cell { index: self.cells.len(), ..step.clone() };
                self.cells.push(TrainingCell { step, workers, prefetch });
            }
        }
    }

    /// The cells as the cells of a sweep, without their loaders.
    pub fn steps(&self) -> Plan {
        let cells = self.cells.iter().map(|cell| cell.step.clone()).collect();
        Plan::of_cells(cells, self.seed, Order::Random)
    }

    /// The cells in the order of block `block`; see [`Plan::order`].
    pub fn order(&self, block: usize) -> Vec<usize> {
        self.steps().order(block)
    }
}

/// The model, completed by the shape and the classes of the data.
fn fitted(model: &Model, data: &DataSet) -> Result<Model> {
    let differs = |what: &str, stated: String, own: String| {
        Error::spec(format!("the network's {what} is {stated}, and that of the data {own}")).at("[model]").hint(
            format!("leave `{}` out; it follows from the data", if what == "input" { "input" } else { "classes" }),
        )
    };
    if let Some(input) = model.input.filter(|input| *input != data.shape) {
        return Err(differs("input", format!("{input:?}"), format!("{:?}", data.shape)));
    }
    if let Some(classes) = model.classes.filter(|classes| *classes < data.classes) {
        return Err(differs("number of classes", classes.to_string(), data.classes.to_string()));
    }
    let classes = model.classes.unwrap_or(data.classes);
    // A network of the spec's own has the classes that its last layer has.
    let classes = if model.layers.is_some() { model.classes } else { Some(classes) };
    Ok(Model { input: Some(data.shape), classes, ..model.clone() })
}

fn check(network: &Network, data: &DataSet) -> Result<()> {
    let outputs = network.output().count();
    if outputs < data.classes {
        return Err(Error::spec(format!("the network has {outputs} outputs, and the data {} classes", data.classes))
            .at(&network.name));
    }
    Ok(())
}
