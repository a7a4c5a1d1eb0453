//! The cells of a study of the input pipeline.

use std::sync::Arc;

use super::images::CHANNELS;
use crate::engine::open::Engines;
use crate::engine::{Settings, Workload, train};
use crate::error::Result;
use crate::network::Shape;
use crate::plan::{Cell, Plan, networks};
use crate::spec::pipeline::{Cache, Format, Pipeline};
use crate::spec::{Model, Order};
use crate::units::human;

/// Classes of the images, where the network does not say how many it distinguishes.
const CLASSES: usize = 10;

/// One point of the study.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelineCell {
    /// Its number, its engine, its network, its settings.
    pub step: Cell,
    pub format: Format,
    /// Pixels of a side.
    pub size: usize,
    pub cache: Cache,
    pub workers: usize,
}

impl PipelineCell {
    /// For messages: `png of 128x128, cold, 2 workers`.
    pub fn name(&self) -> String {
        let Self { format, size, cache, workers, step } = self;
        let workers = human::counted(*workers as u64, "worker");
        format!("{format} of {size}x{size}, {cache}, batch size {}, {workers}", step.batch_size)
    }
}

/// All cells.
#[derive(Clone, Debug, PartialEq)]
pub struct PipelinePlan {
    pub cells: Vec<PipelineCell>,
    seed: u64,
}

impl PipelinePlan {
    /// Multiplies out the axes of the spec; networks take the shape of the images. `engines` resolves `auto`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] if a network can't be built for images of that size, or an engine does not have that data path.
    pub fn new(spec: &Pipeline, engines: &Engines) -> Result<Self> {
        let common = Settings { learning_rate: spec.learning_rate, seed: spec.measure.seed, ..Settings::default() };
        let mut plan = Self { cells: Vec::with_capacity(spec.cell_count()), seed: spec.measure.seed };
        for &size in &spec.data.sizes {
            let input = Some(Shape::Maps { channels: CHANNELS, height: size, width: size });
            // A network of the spec's own has the classes that its last layer has.
            let classes =
                if spec.model.layers.is_some() { spec.model.classes } else { spec.model.classes.or(Some(CLASSES)) };
            for (name, network) in networks(&Model { input, classes, ..spec.model.clone() })? {
                for &engine in &spec.engines {
                    for settings in spec.grid.settings(engine, &common) {
                        let settings = train::fed(settings, engines.resolve(engine))?;
                        for &batch_size in &spec.batch_sizes {
                            let workload =
                                Workload { network: Arc::clone(&network), batch_size, settings: settings.clone() };
                            let step = Cell { index: 0, engine, model: name.clone(), batch_size, workload };
                            plan.add_files(&step, size, spec);
                        }
                    }
                }
            }
        }
        Ok(plan)
    }

    fn add_files(&mut self, step: &Cell, size: usize, spec: &Pipeline) {
        for &format in &spec.data.formats {
            for &cache in &spec.data.caches {
                for &workers in &spec.loader.workers {
                    let step = Cell { index: self.cells.len(), ..step.clone() };
                    self.cells.push(PipelineCell { step, format, size, cache, workers });
                }
            }
        }
    }

    /// The cells as the cells of a sweep.
    pub fn steps(&self) -> Plan {
        let cells = self.cells.iter().map(|cell| cell.step.clone()).collect();
        Plan::of_cells(cells, self.seed, Order::Random)
    }

    /// The cells in the order of block `block`; see [`Plan::order`].
    pub fn order(&self, block: usize) -> Vec<usize> {
        self.steps().order(block)
    }
}
