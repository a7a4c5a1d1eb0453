//! The cells of a study. As [`crate::spec::plan`], a pure function of the spec and of the data's shape.

use std::sync::Arc;

use crate::engine::{Settings, Workload};
use crate::error::Result;
use crate::network::Network;
use crate::settings::EngineName;
use crate::spec::plan::{self, Cell as Step};
use crate::spec::{Order, Subject};

/// One point of a study.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell<B> {
    /// Its number, its engine, its network, its settings.
    pub step: Step,
    pub beside: B,
}

/// All cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<B> {
    pub cells: Vec<Cell<B>>,
    /// The same as the cells of a sweep.
    pub steps: plan::Plan,
}

impl<B> Plan<B> {
    pub(super) fn of(cells: Vec<Cell<B>>, seed: u64, order: Order) -> Self {
        let steps = cells.iter().map(|cell| cell.step.clone()).collect();
        Self { cells, steps: plan::Plan::of_cells(steps, seed, order) }
    }
}

/// Networks by name.
pub(super) type Networks = [(String, Arc<Network>)];

/// What is multiplied out.
pub(super) struct Axes<'a> {
    pub subject: &'a Subject,
    /// The settings that are not varied.
    pub common: Settings,
    /// What an engine makes of settings.
    pub settle: &'a dyn Fn(&Network, EngineName, Settings) -> Result<Settings>,
}

impl Axes<'_> {
    /// Adds the cells of these networks: networks outermost, `besides` innermost.
    ///
    /// # Errors
    /// What `settle` refuses.
    pub fn add<B: Clone>(&self, cells: &mut Vec<Cell<B>>, networks: &Networks, besides: &[B]) -> Result<()> {
        let Self { subject, common, settle } = self;
        for (model, network) in networks {
            for &engine in &subject.engine.name {
                for settings in subject.grid.settings(engine, common) {
                    let settings = settle(network, engine, settings)?;
                    for &batch_size in &subject.batch_sizes {
                        for beside in besides {
                            let network = Arc::clone(network);
                            let workload = Workload { network, batch_size, settings: settings.clone() };
                            let (index, model) = (cells.len(), model.clone());
                            let step = Step { index, engine, model, batch_size, workload };
                            cells.push(Cell { step, beside: beside.clone() });
                        }
                    }
                }
            }
        }
        Ok(())
    }
}
