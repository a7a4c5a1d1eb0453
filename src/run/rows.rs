//! From what was measured to rows.

use std::collections::{BTreeMap, BTreeSet};

use super::{Measured, MeasuredStep};
use crate::device::Covariates;
use crate::device::witness::Witnessed;
use crate::engine::open::Engines;
use crate::engine::{DeviceName, LayerExecution, Settings, StepTimes, WorkerCounts};
use crate::error::{Error, Result};
use crate::settings::EngineName;
use crate::settings::own::OwnSteps;
use crate::spec::plan::{Cell, Plan};
use crate::store::{CounterValues, LayerRow, Status, StepRow};

/// What is the same for many rows.
#[derive(Clone, Debug)]
pub struct RowContext {
    pub run_id: String,
    /// For each engine as the spec names it: what that means here, and on which device.
    engines: BTreeMap<EngineName, (EngineName, DeviceName)>,
    /// The settings in force, by cell.
    in_force: Vec<Settings>,
    /// Whether what computes a cell was checked; see [`StepRow`].
    qualified: Vec<Option<bool>>,
    /// What libraries have refused so far.
    refused: BTreeSet<String>,
    /// The machine's name.
    node: Option<String>,
    /// What is swept, where it is not the batch size.
    x: Option<String>,
}

/// A row with what rows of every kind say of a cell.
macro_rules! row_of_cell {
    ($row:ident, $facts:expr, $cell:expr) => {{
        let (facts, cell): (&$crate::run::RowContext, &$crate::spec::plan::Cell) = ($facts, $cell);
        let device = facts.device_of(cell);
        $row {
            run_id: facts.run_id.clone(),
            engine: facts.engine_of(cell).to_string(),
            device: device.map(|device| device.id.clone()).unwrap_or_default(),
            device_name: device.map(|device| device.name.clone()).unwrap_or_default(),
            model: cell.model.clone(),
            axes: $crate::store::AxisValues::new(facts.engine_of(cell), facts.settings_of(cell)),
            batch_size: cell.batch_size as i64,
            cell: cell.index as i64,
            qualified: facts.qualified(cell),
            ..$row::default()
        }
    }};
}
pub(crate) use row_of_cell;

impl RowContext {
    /// Reads back from the engines what will be in force.
    ///
    /// # Errors
    /// As [`super::check`].
    pub fn new(run_id: String, plan: &Plan, engines: &mut Engines) -> Result<Self> {
        let in_force = Vec::with_capacity(plan.cells.len());
        let qualified = vec![None; plan.cells.len()];
        let mut facts = Self {
            run_id,
            engines: BTreeMap::new(),
            in_force,
            qualified,
            refused: BTreeSet::new(),
            node: None,
            x: None,
        };
        for cell in &plan.cells {
            let resolved = engines.resolve(cell.engine);
            let engine = engines.get(cell.engine)?;
            facts.refused.extend(engine.refusals());
            facts.engines.entry(cell.engine).or_insert_with(|| (resolved, engine.device().clone()));
            facts.in_force.push(engine.in_force(&cell.workload.settings)?);
        }
        Ok(facts)
    }

    /// Sets whether each cell was checked.
    pub fn with_qualified(self, qualified: Vec<Option<bool>>) -> Self {
        Self { qualified, ..self }
    }

    /// Called whenever the engine of `cell` has prepared something. If a library has refused an algorithm since the last call, the rows of this cell,
    /// and of those `cells` that have the same layers, no longer count as checked. Returns a message about that for the user.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] where the engine is not open.
    pub fn mark_unqualified<'a>(
        &mut self,
        engines: &mut Engines,
        cell: &Cell,
        cells: impl IntoIterator<Item = &'a Cell>,
    ) -> Result<Option<String>> {
        let refusals = engines.get(cell.engine)?.refusals().into_iter();
        let new: Vec<String> = refusals.filter(|one| self.refused.insert(one.clone())).collect();
        let Some(first) = new.first() else { return Ok(None) };
        // What takes the place of a refused algorithm was not checked.
        let same = |other: &&Cell| {
            (other.engine, &other.model, other.workload.batch_size)
                == (cell.engine, &cell.model, cell.workload.batch_size)
        };
        let mut had_passed = false;
        for other in cells.into_iter().filter(same) {
            let qualified = &mut self.qualified[other.index];
            had_passed |= *qualified == Some(true);
            *qualified = qualified.map(|_| false);
        }
        let name = self.name_of(cell);
        Ok(had_passed.then(|| {
            format!("{name}: {first}; what takes its place was not checked, and its rows say `qualified` = false")
        }))
    }

    /// With the name of the machine that measures from now on.
    pub fn with_node(self, node: String) -> Self {
        Self { node: Some(node), ..self }
    }

    /// Sets the name of the swept argument.
    pub fn with_x(self, x: &str) -> Self {
        Self { x: (x != OwnSteps::BATCH_SIZE).then(|| x.to_owned()), ..self }
    }

    /// What executes a cell.
    pub fn engine_of(&self, cell: &Cell) -> EngineName {
        self.engines.get(&cell.engine).map_or(cell.engine, |(name, _)| *name)
    }

    /// Whether its step computes in this process, whose counters are read around it.
    pub(super) fn is_in_this_process(&self, cell: &Cell) -> bool {
        let engine = self.engine_of(cell);
        engine != EngineName::Torch && !engine.is_own()
    }

    /// Where a cell is executed.
    pub fn device_of(&self, cell: &Cell) -> Option<&DeviceName> {
        self.engines.get(&cell.engine).map(|(_, device)| device)
    }

    /// Whether what executes a cell was checked; `None` where it is not asked.
    pub fn qualified(&self, cell: &Cell) -> Option<bool> {
        self.qualified[cell.index]
    }

    /// For messages: `cudnn vgg16 at batch size 64`.
    pub fn name_of(&self, cell: &Cell) -> String {
        let x = self.x.as_deref().unwrap_or("batch size");
        format!("{} {} at {x} {}", self.engine_of(cell), cell.model, cell.batch_size)
    }

    /// The settings in force for a cell.
    pub fn settings_of(&self, cell: &Cell) -> &Settings {
        &self.in_force[cell.index]
    }

    pub(super) fn step_rows(
        &self,
        cell: &Cell,
        place: VisitPosition,
        steps: &Measured,
        covariates: &Covariates,
    ) -> Vec<StepRow> {
        let empty = self.row(cell, place, covariates);
        let engine = self.engine_of(cell);
        let is_counted = self.is_in_this_process(cell);
        let others = steps.others.as_ref().and_then(|others| serde_json::to_string(others).ok());
        let steps_seen = steps.steps.iter().zip(steps.seen.disturbed()).enumerate();
        let rows = steps_seen.map(|(i, (MeasuredStep { times, counts }, disturbed))| {
            let mut row = StepRow { step: i as i64, order: place.first_order + i as i64, ..empty.clone() };
            row.warmup = i < steps.counts_from;
            // What a person's step computes is theirs: its time counts.
            if times.loss.is_some_and(|loss| !loss.is_finite()) && !engine.is_own() {
                row.status = Status::NanLoss;
            }
            row.started_s = Some(steps.ready.started_s);
            row.prepare_time_s = Some(steps.ready.prepare_s);
            row.compile_time_s = steps.ready.setup.compile_s;
            row.search_time_s = steps.ready.setup.search_s;
            row.capture_time_s = steps.ready.setup.capture_s;
            if is_counted {
                row.counters = CounterValues(*counts);
            }
            set_times(&mut row, times);
            row.disturbed = *disturbed;
            row.steal_s = steps.steal_s;
            row.others.clone_from(&others);
            if let Some(witnessed) = &times.witnessed {
                set_witnessed(&mut row, witnessed);
            }
            if let Some(counts) = &times.worker {
                set_counts(&mut row, counts);
            }
            row
        });
        rows.collect()
    }

    /// The row of a cell that could not run.
    pub(super) fn failure_row(
        &self,
        cell: &Cell,
        place: VisitPosition,
        error: &Error,
        covariates: &Covariates,
    ) -> StepRow {
        StepRow { status: Status::of(error), order: place.first_order, ..self.row(cell, place, covariates) }
    }

    fn row(&self, cell: &Cell, place: VisitPosition, covariates: &Covariates) -> StepRow {
        let mut row = StepRow {
            block: place.block as i64,
            visit: place.visit,
            executed_batch_size: cell.workload.batch_size as i64,
            node: self.node.clone(),
            x_name: self.x.clone(),
            multiprocessors: self.device_of(cell).and_then(|device| device.multiprocessors).map(i64::from),
            ..row_of_cell!(StepRow, self, cell)
        };
        set_covariates(&mut row, covariates);
        row
    }

    pub(super) fn layer_rows(&self, cell: &Cell, layers: &[LayerExecution]) -> Vec<LayerRow> {
        let row = |layer: &LayerExecution| LayerRow {
            run_id: self.run_id.clone(),
            engine: self.engine_of(cell).to_string(),
            model: cell.model.clone(),
            batch_size: cell.batch_size as i64,
            cell: cell.index as i64,
            layer: layer.layer.clone(),
            operation: layer.operation.clone(),
            direction: layer.direction.to_string(),
            algorithm: layer.algorithm.clone(),
            workspace_bytes: layer.workspace_bytes.map(|bytes| bytes as i64),
            math_mode: layer.math_mode.clone(),
            flops: layer.flops,
            bytes: layer.bytes,
            device_time_s: layer.device_s,
            kernel: layer.kernel.as_ref().map(|kernel| kernel.name.clone()),
            blocks: layer.kernel.as_ref().map(|kernel| kernel.blocks as i64),
            threads_per_block: layer.kernel.as_ref().map(|kernel| kernel.threads_per_block.into()),
            blocks_per_multiprocessor: layer.kernel.as_ref().and_then(|k| k.blocks_per_multiprocessor).map(i64::from),
            waves: layer.kernel.as_ref().and_then(|kernel| kernel.waves),
        };
        layers.iter().map(row).collect()
    }
}

/// Where a visit stands in the run.
#[derive(Clone, Copy)]
pub(super) struct VisitPosition {
    pub block: usize,
    pub visit: i64,
    /// The place of its first step in the whole run.
    pub first_order: i64,
}

fn set_times(row: &mut StepRow, times: &StepTimes) {
    row.step_time_s = Some(times.step_s);
    row.gpu_time_s = times.gpu_s;
    row.enqueue_time_s = times.enqueue_s;
    row.h2d_time_s = times.h2d_s;
    row.allreduce_time_s = times.allreduce_s;
    row.forward_time_s = times.forward_s;
    row.backward_time_s = times.backward_s;
    row.optimizer_time_s = times.optimizer_s;
    row.loss = times.loss;
}

/// What a worker counted of itself.
fn set_counts(row: &mut StepRow, counts: &WorkerCounts) {
    let integer = |count: Option<u64>| count.and_then(|count| i64::try_from(count).ok());
    row.peak_memory_bytes = integer(counts.peak_memory_bytes);
    row.compilations = integer(counts.compilations);
    row.repeats = integer(counts.repeats);
}

/// What happened to the step's threads.
fn set_witnessed(row: &mut StepRow, seen: &Witnessed) {
    row.processor_time_s = Some(seen.processor_s);
    row.runqueue_wait_s = seen.wait_s;
    row.longest_wait_s = seen.longest_wait_s;
    row.delay_s = seen.delay_s;
    row.voluntary_switches = seen.events.map(|events| events.voluntary_switches);
    row.involuntary_switches = seen.events.map(|events| events.involuntary_switches);
    row.witness = Some(seen.source().to_owned());
    if let Some(events) = seen.events {
        row.counters = row.counters.or_page_faults(events.page_faults);
    }
}

fn set_covariates(row: &mut StepRow, read: &Covariates) {
    row.pcie_link_width = read.pcie_link_width.map(i64::from);
    row.pcie_link_generation = read.pcie_link_generation.map(i64::from);
    row.pcie_link_width_max = read.pcie_link_width_max.map(i64::from);
    row.pcie_link_generation_max = read.pcie_link_generation_max.map(i64::from);
    row.pcie_replay_counter = read.pcie_replay_counter.and_then(|count| i64::try_from(count).ok());
    row.sm_clock_hz = read.sm_clock_hz;
    row.memory_clock_hz = read.memory_clock_hz;
    row.throttle_reasons = read.throttle_reasons.clone();
    row.temperature_c = read.temperature_c;
    row.power_w = read.power_w;
    row.energy_j = read.energy_j;
    row.memory_used_bytes = read.memory_used_bytes.and_then(|bytes| i64::try_from(bytes).ok());
    row.cpu_clock_hz = read.cpu_clock_hz;
}
