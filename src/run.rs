//! The loop: what a paper's method section would say.
//!
//! In each block every cell that is not yet known well enough is visited once, in a fresh random order. A visit prepares
//! the step, runs it until its times show no trend, and counts the last `steps_per_visit` of them; the device's covariates
//! are read right after, outside the timed region and still under load. Each visit is stored before the next begins. A
//! cell is left when the interval of its median is narrower than a quarter of the smallest jump to be seen; the run ends
//! with the last cell, the last block, or the time limit.

mod cells;
mod rows;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

pub use cells::{CellState, Progress};
pub use rows::RunFacts;

use crate::device::Device;
use crate::engine::open::Engines;
use crate::engine::settings::EngineName;
use crate::engine::{Settings, Step};
use crate::error::{Error, Result};
use crate::measure::warmup::{self, Next};
use crate::measure::{StopReason, Stopwatch};
use crate::plan::{Cell, Plan};
use crate::spec::Measure;
use crate::store::{CellRow, RunDirectory, StepRow};

/// Everything a run works with.
pub struct Bench<'a> {
    pub plan: &'a Plan,
    pub measure: &'a Measure,
    pub facts: RunFacts,
    pub engines: &'a mut Engines,
    pub device: &'a mut dyn Device,
    pub directory: &'a RunDirectory,
    pub observer: &'a mut dyn Observer,
    /// Set from outside (Ctrl-C): the visit under way is finished and stored, then the run stops.
    pub interrupted: &'a AtomicBool,
}

/// Someone who watches a run; all methods are called outside the timed regions.
pub trait Observer {
    /// A visit has ended; `progress` counts visits and time.
    fn visited(&mut self, cell: &Cell, median_s: Option<f64>, progress: Progress);
    /// A block has ended; these are all rows so far.
    fn block_ended(&mut self, block: usize, rows: &[StepRow]);
    /// Something the user should know.
    fn warn(&mut self, message: &str);
}

/// What a run leaves behind in memory; everything else is in its directory.
#[derive(Debug)]
pub struct Outcome {
    pub rows: Vec<StepRow>,
    pub cells: Vec<CellRow>,
    /// False where it was interrupted: `--resume` goes on.
    pub complete: bool,
    /// Visits in which the step time never became steady.
    pub unsteady_visits: usize,
}

/// Asks the engines about every setting of the plan, so that nothing is refused half-way.
///
/// # Errors
/// [`crate::error::Kind::Spec`] for a setting that has no meaning on its engine. Returns what will not be in force as asked.
pub fn check(plan: &Plan, engines: &mut Engines) -> Result<Vec<String>> {
    let mut notices: Vec<String> = Vec::new();
    let mut seen: Vec<(&Settings, EngineName)> = Vec::new();
    for cell in &plan.cells {
        let settings = &cell.workload.settings;
        if seen.contains(&(settings, cell.engine)) {
            continue;
        }
        seen.push((settings, cell.engine));
        let name = engines.resolve(cell.engine);
        let in_force = engines.get(cell.engine)?.in_force(settings)?;
        if in_force.precision != settings.precision {
            let notice =
                format!("{name} computes in {} here; {} was asked for", in_force.precision, settings.precision);
            if !notices.contains(&notice) {
                notices.push(notice);
            }
        }
    }
    Ok(notices)
}

/// Runs the plan, beginning after the `earlier` rows that are stored already.
///
/// # Errors
/// [`crate::error::Kind::Io`] where a visit can't be stored; the visits before it are.
pub fn run(mut bench: Bench, earlier: Vec<StepRow>) -> Result<Outcome> {
    let mut log = Log::new(bench.plan, earlier);
    let watch = Stopwatch::start();
    let mut complete = true;
    'blocks: for block in 0..bench.measure.max_blocks {
        for index in bench.plan.order(block) {
            if log.cells[index].is_left() || log.cells[index].was_visited(block) {
                continue;
            }
            if bench.interrupted.load(Ordering::Relaxed) {
                complete = false;
                break 'blocks;
            }
            if watch.elapsed() > bench.measure.time_limit_s {
                break 'blocks;
            }
            bench.visit(&bench.plan.cells[index], block, &mut log)?;
            let progress = log.progress(bench.measure, block, watch.elapsed());
            bench.observer.visited(&bench.plan.cells[index], log.cells[index].last_median(), progress);
        }
        log.judge(bench.measure, block);
        bench.observer.block_ended(block, &log.rows);
        if log.cells.iter().all(CellState::is_left) {
            break;
        }
    }
    for warning in bench.device.warnings() {
        bench.observer.warn(&warning);
    }
    log.flag_outliers();
    let cells = bench.plan.cells.iter().map(|cell| log.cell_row(&bench.facts, cell)).collect();
    Ok(Outcome { rows: log.rows, cells, complete, unsteady_visits: log.unsteady })
}

/// What has happened so far.
struct Log {
    rows: Vec<StepRow>,
    cells: Vec<CellState>,
    next_visit: i64,
    /// Visits of this process.
    visits_here: usize,
    /// The networks that this process has run already, by engine.
    warm: BTreeSet<(EngineName, String)>,
    unsteady: usize,
}

impl Log {
    fn new(plan: &Plan, rows: Vec<StepRow>) -> Self {
        let mut cells = vec![CellState::new(plan.seed); plan.cells.len()];
        for visit in rows.chunk_by(|a, b| a.visit == b.visit) {
            if let Some(state) = cells.get_mut(visit[0].cell as usize) {
                state.record(visit);
            }
        }
        let next_visit = rows.last().map_or(0, |row| row.visit + 1);
        Self { rows, cells, next_visit, visits_here: 0, warm: BTreeSet::new(), unsteady: 0 }
    }
}

impl Bench<'_> {
    /// One visit: prepare, warm up, measure, read the covariates, store.
    fn visit(&mut self, cell: &Cell, block: usize, log: &mut Log) -> Result<()> {
        // Nothing of this network is warm at its first visit in this process: memory, caches, algorithms.
        let network = (cell.engine, cell.model.clone());
        let at_least = usize::from(!log.warm.contains(&network));
        let attempt = self.engines.get(cell.engine)?.prepare(&cell.workload).and_then(|mut step| {
            let steps = measure(step.as_mut(), self.measure.steps_per_visit, at_least)?;
            if !log.cells[cell.index].was_ever_visited() {
                if self.measure.layers {
                    step.time_layers()?;
                }
                self.directory.append_layers(&self.facts.layer_rows(cell, &step.layers()))?;
            }
            Ok(steps)
        });
        let place = rows::Place { block, visit: log.next_visit, first_order: log.rows.len() as i64 };
        let covariates = self.device.read();
        let visit = match attempt {
            Ok(steps) => {
                log.unsteady += usize::from(!steps.steady);
                log.warm.insert(network);
                self.facts.step_rows(cell, place, &steps, &covariates)
            }
            Err(error) if is_about_the_cell(&error) => {
                self.observer.warn(&error.to_string());
                vec![self.facts.failure_row(cell, place, &error, &covariates)]
            }
            Err(error) => return Err(error),
        };
        self.directory.append(&visit)?;
        log.cells[cell.index].record(&visit);
        log.rows.extend(visit);
        log.next_visit += 1;
        log.visits_here += 1;
        Ok(())
    }
}

/// A failure of one cell is a row and the sweep goes on; anything else ends it.
fn is_about_the_cell(error: &Error) -> bool {
    use crate::error::Kind;
    matches!(error.kind(), Kind::OutOfMemory | Kind::Engine)
}

/// The steps of a visit.
pub(crate) struct Measured {
    times: Vec<crate::engine::StepTimes>,
    /// The first of them that counts.
    counts_from: usize,
    steady: bool,
}

fn measure(step: &mut dyn Step, k: usize, at_least: usize) -> Result<Measured> {
    let mut times = Vec::with_capacity(k);
    let mut seconds = Vec::with_capacity(k);
    loop {
        let step_times = step.run()?;
        seconds.push(step_times.step_s);
        times.push(step_times);
        if let Next::Done { steady } = warmup::next(&seconds, k, at_least) {
            let counts_from = times.len() - k;
            return Ok(Measured { times, counts_from, steady });
        }
    }
}

impl Log {
    /// After a block: which cells are known well enough.
    fn judge(&mut self, measure: &Measure, block: usize) {
        if block + 1 < measure.min_blocks {
            return;
        }
        for state in &mut self.cells {
            if !state.is_left() && state.estimate().is_some_and(|known| known.resolves(measure.smallest_jump)) {
                state.leave(StopReason::Converged);
            }
        }
    }
}
