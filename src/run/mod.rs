//! The loop: what a paper's method section would say.
//!
//! The first blocks visit every cell once, later ones only cells that an open question needs, each in a fresh random order (`schedule`). A visit prepares
//! the step, runs it until its times show no trend, and counts the last `steps_per_visit` of them; the device's covariates
//! are read right after, outside the timed region and still under load. Each visit is stored before the next begins. The run ends when
//! every boundary between two batch sizes is decided and the detector agrees (or, where the spec asks for cells, when each cell's interval is
//! narrow enough), with the last visit of the budget, or at the time limit; and at once where a cell fails and nothing runs after it any more.
//!
//! The loop keeps the step times of each cell and nothing else of the rows, so that a sweep of many cells needs little
//! memory: about 8 bytes for each step that counts, and 100 for each visit.
//!
//! [`simulate`] runs an experiment of the synthetic engine through this same loop in memory, without a folder: what the
//! method promises is tested with it ([`crate::measure`]).

mod agreement;
mod cells;
pub mod environment;
mod fixed;
mod history;
pub mod left_out;
pub mod processors;
mod rows;
mod schedule;
pub mod simulation;
#[cfg(test)]
mod tests;
mod watchdog;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, UNIX_EPOCH};

pub use crate::sequential::{Boundary, Decision};
pub use agreement::Disagreement;
pub use fixed::fixed_algorithms;
pub use history::{History, Progress, Tally};
pub use rows::RowContext;
pub(crate) use rows::row_of_cell;
pub use schedule::Knowledge;

use crate::device::Device;
use crate::device::counters::{Counts, Session};
use crate::device::witness::Witness;
use crate::engine::open::Engines;
use crate::engine::{Settings, SetupTimes, Step, StepTimes};
use crate::error::{Error, Kind, Result};
use crate::measure::interference::{End, Steps};
use crate::settings::EngineName;
use crate::spec::Measure;
use crate::spec::plan::{Cell, Plan};
use crate::store::{CellRow, EndOfRun, LayerRow, RunDirectory, StepRow};
use crate::units::Seconds;
use schedule::{Schedule, VisitLength};
use watchdog::Watchdog;

/// Visits to a cell in which its layers are timed, where the spec asks for it. The shortest of them counts: what delays a layer once is not
/// its own, and an explanation compares neighbouring batch sizes.
const TIMED_VISITS: usize = 10;

/// Everything a run works with.
pub struct Sweep<'a> {
    pub plan: &'a Plan,
    pub measure: &'a Measure,
    pub facts: RowContext,
    pub engines: &'a mut Engines,
    pub device: &'a mut dyn Device,
    /// Reads what other programs do to this process's steps; `None`: nothing does.
    pub witness: Option<Witness>,
    pub sink: &'a dyn RowSink,
    pub observer: &'a mut dyn Observer,
    /// Set from outside (Ctrl-C): the visit under way is finished and stored, then the run stops.
    pub interrupted: &'a AtomicBool,
    /// Called from another thread when a step hangs: when it has not ended within twice `visit_limit`. The cell is stored
    /// as failed by then, so that `--resume` goes on without it. A step that hangs in a driver can't be stopped from
    /// within its process; a program ends here.
    pub hung: &'a (dyn Fn(&Error) + Sync),
}

/// Where visits are written down.
pub trait RowSink: Sync {
    /// Stores one visit.
    ///
    /// # Errors
    /// [`crate::error::Kind::Io`]; what was stored before stays.
    fn append(&self, visit: &[StepRow]) -> Result<()>;

    /// Stores the engine's report on a cell's layers.
    ///
    /// # Errors
    /// As [`RowSink::append`].
    fn append_layers(&self, layers: &[LayerRow]) -> Result<()>;
}

impl RowSink for RunDirectory {
    fn append(&self, visit: &[StepRow]) -> Result<()> {
        RunDirectory::append(self, visit)
    }

    fn append_layers(&self, layers: &[LayerRow]) -> Result<()> {
        RunDirectory::append(self, layers)
    }
}

/// Someone who watches a run; all methods are called outside the timed regions.
pub trait Observer {
    /// A visit has ended; `progress` counts visits and time.
    fn visited(&mut self, _cell: &Cell, _median_s: Option<f64>, _progress: Progress) {}
    /// A block has ended; this is what is known so far, and what is decided at the boundaries that are tested.
    fn block_ended(&mut self, _block: usize, _knowledge: Knowledge, _boundaries: &[Boundary]) {}
    /// Something the user should know.
    fn warn(&mut self, message: &str);
}

/// What a run leaves behind in memory; everything else is in its sink.
#[derive(Debug)]
pub struct Outcome {
    pub cells: Vec<CellRow>,
    pub tally: Tally,
    /// Visits of the whole run, and the seconds that one took in this process.
    pub visits: usize,
    pub visit_s: f64,
    /// What was decided at the boundaries between batch sizes, where the spec asks for it.
    pub knowledge: Knowledge,
    pub boundaries: Vec<Boundary>,
    /// False where it was interrupted, or the device was lost: `--resume` goes on.
    pub complete: bool,
    /// Why nothing runs any more, where the device was lost.
    pub lost: Option<Error>,
    /// For each cell, the centre of its step times and the largest departure from it that is not an outlier.
    ordinary: Vec<Option<(f64, f64)>>,
    /// For each cell the shortest time of each of its layers.
    layer_times: Vec<Vec<Option<f64>>>,
}

impl EndOfRun for Outcome {
    /// Flags a step far from its cell's median. It stays where it is; the analysis is robust by itself.
    fn step(&self, row: &mut StepRow) {
        let ordinary = self.ordinary.get(row.cell as usize).copied().flatten().filter(|_| row.is_counted());
        let far = |time: f64| ordinary.is_some_and(|(center, limit)| (time - center).abs() > limit);
        row.outlier = row.step_time_s.map(far);
    }

    /// A cell's layers are stored with its first visit. Later ones may have been shorter; to store each took as long as a step of a small network.
    fn layer(&self, row: &mut LayerRow, place: usize) {
        let shortest = self.layer_times.get(row.cell as usize).and_then(|times| times.get(place).copied().flatten());
        row.device_time_s = [row.device_time_s, shortest].into_iter().flatten().reduce(f64::min);
    }
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

/// Runs the plan, beginning after the visits that are already stored.
///
/// # Errors
/// [`crate::error::Kind::Io`] where a visit can't be stored; the visits before it are.
pub fn run(mut sweep: Sweep, history: History) -> Result<Outcome> {
    let (sink, hung, limit) = (sweep.sink, sweep.hung, sweep.measure.visit_limit_s);
    watchdog::guarding(
        limit,
        |watchdog| sweep.run(history, watchdog),
        |row, error| {
            // What hangs may be the disk itself; the message matters more than this row.
            let _ = sink.append(std::slice::from_ref(row));
            hung(error);
        },
    )
}

impl Sweep<'_> {
    fn run(&mut self, mut history: History, watchdog: &Watchdog) -> Result<Outcome> {
        let watch = Instant::now();
        let mut complete = true;
        let mut lost = None;
        let mut schedule = Schedule::new(self.plan, self.measure);
        'blocks: for block in 0.. {
            let order = schedule.order(block, &history.cells);
            history.begin_block(block, &order);
            self.engines.begin_block();
            for index in order {
                if history.cells[index].is_left() || history.cells[index].was_visited(block) {
                    continue;
                }
                if self.interrupted.load(Ordering::Relaxed) {
                    complete = false;
                    break 'blocks;
                }
                if watch.elapsed().as_secs_f64() > self.measure.time_limit_s {
                    break 'blocks;
                }
                let length = schedule.visit_length(block);
                lost = self.visit(&self.plan.cells[index], block, length, &mut history, watchdog)?;
                if lost.is_some() {
                    complete = false;
                    break 'blocks;
                }
                let progress = history.progress(self.measure, schedule.budget(), block, watch.elapsed().as_secs_f64());
                self.observer.visited(&self.plan.cells[index], history.cells[index].last_median(), progress);
            }
            let continues = schedule.continues(block, &mut history);
            self.observer.block_ended(block, schedule.knowledge(&history), &schedule.boundaries());
            if !continues {
                break;
            }
        }
        self.engines.last_words().iter().for_each(|notice| self.observer.warn(notice));
        let (knowledge, decided) = (schedule.knowledge(&history), schedule.decided_cells());
        let boundaries = schedule.boundaries();
        history.leave_decided(|cell| decided[cell]);
        let cells = self.plan.cells.iter().map(|cell| history.cells[cell.index].row(&self.facts, cell)).collect();
        let ordinary = history.cells.iter().map(cells::CellState::ordinary).collect();
        let (visits, visit_s) =
            (history.visit_count(), watch.elapsed().as_secs_f64() / history.visits_here.max(1) as f64);
        let layer_times = history.cells.iter_mut().map(cells::CellState::take_layer_times).collect();
        Ok(Outcome {
            cells,
            tally: history.tally,
            visits,
            visit_s,
            knowledge,
            boundaries,
            complete,
            lost,
            ordinary,
            layer_times,
        })
    }

    /// One visit: prepare, warm up, measure, read the covariates, store. Gives the reason where the device works no more.
    fn visit(
        &mut self,
        cell: &Cell,
        block: usize,
        mut length: VisitLength,
        history: &mut History,
        watchdog: &Watchdog,
    ) -> Result<Option<Error>> {
        let place = history.next_place(block);
        let late = self.late(cell);
        watchdog.arm(self.facts.failure_row(cell, place, &late, &Default::default()), late);
        length.warmup = length.warmup.max(usize::from(!history.is_warm(cell)));
        let limit_s = self.measure.visit_limit_s;
        let is_over = |elapsed_s: f64| elapsed_s > limit_s && elapsed_s - watchdog.stopped_s() > limit_s;
        let started_s = UNIX_EPOCH.elapsed().unwrap_or_default().as_secs_f64();
        let visits_before = history.cells[cell.index].visit_count();
        let is_first = visits_before == 0;
        let times_layers = self.measure.layers && visits_before < TIMED_VISITS;
        let watch = Instant::now();
        let counts = self.measure.counters;
        // The synthetic engine's steps take no time of a processor.
        let witness = &mut self.witness.as_mut().filter(|_| self.facts.engine_of(cell) != EngineName::Synthetic);
        let in_this_process = self.facts.is_in_this_process(cell);
        let (mut covariates, held_up) = (None, history.held_up);
        let attempt = self.engines.get(cell.engine)?.prepare(&cell.workload).and_then(|mut step| {
            let ready = Ready { started_s, prepare_s: watch.elapsed().as_secs_f64(), setup: step.setup() };
            let counters = counts.then(Session::begin);
            let counters = counters.as_ref();
            let beside = StepReadings { counters, witness: witness.as_deref_mut(), in_this_process, held_up };
            let steps = measure(step.as_mut(), ready, length, &is_over, beside)?;
            step.at_work(&mut || covariates = Some(self.device.read()))?;
            // Other programs would delay these steps too.
            if times_layers && steps.seen.any_undisturbed() {
                step.time_layers()?;
            }
            // After the steps: a GPU's engine looks at every call for it.
            Ok((steps, (is_first || times_layers).then(|| step.layers())))
        });
        if cell.engine == EngineName::Python {
            // Where the step's process ended, the next one imports its file now, which is no part of the visit and has a limit of its own.
            watchdog.disarm();
        }
        let lost = attempt.as_ref().err().and_then(|error| self.lost(cell, error));
        watchdog.disarm();
        let covariates = covariates.unwrap_or_else(|| self.device.read());
        if let Some(what) = self.facts.mark_unqualified(self.engines, cell, &self.plan.cells)? {
            self.observer.warn(&what);
        }
        let visit = match attempt {
            Ok((steps, layers)) => {
                if let Some(layers) = layers {
                    history.cells[cell.index].keep_shortest(&layers);
                    if is_first {
                        self.sink.append_layers(&self.facts.layer_rows(cell, &layers))?;
                    }
                }
                history.held_up = steps.seen.is_held_up(held_up);
                history.tally.unsteady_visits += usize::from(!steps.steady);
                history.is_now_warm(cell);
                let mut rows = self.facts.step_rows(cell, place, &steps, &covariates);
                if steps.cut_short {
                    let late = self.late(cell);
                    self.observer.warn(&late.to_string());
                    let end = rows.len() as i64;
                    let row = self.facts.failure_row(cell, place, &late, &covariates);
                    rows.push(StepRow { step: end, order: row.order + end, ..row });
                }
                rows
            }
            // A device that went away before the cell's turn says nothing about the cell.
            Err(error) if error.kind() == Kind::Device && history.visits_here > 0 => return Ok(Some(error)),
            Err(error) if is_about_the_cell(&error, history) => {
                // A smaller size may fit.
                let ends = !error.is_out_of_memory() && history.all_fail_alike(&error.clause());
                let error = error.at(self.facts.name_of(cell));
                if ends {
                    return Err(error.hint("every size so far failed of this, and no other is tried"));
                }
                self.observer.warn(&error.to_string());
                vec![self.facts.failure_row(cell, place, &error, &covariates)]
            }
            Err(error) if error.kind() == Kind::Spec => return Err(error.at(self.facts.name_of(cell))),
            Err(error) => return Err(error),
        };
        self.device.warnings().iter().for_each(|warning| self.observer.warn(warning));
        self.sink.append(&visit)?;
        history.record(&visit);
        history.visits_here += 1;
        Ok(lost)
    }

    /// After a failed cell: why nothing else runs any more either, if that is so. The cell's failure is stored all the same,
    /// so that `--resume` does not meet it again.
    fn lost(&mut self, cell: &Cell, error: &Error) -> Option<Error> {
        if error.kind() != Kind::Engine {
            return None;
        }
        let why = self.engines.get(cell.engine).and_then(|engine| engine.still_works()).err()?;
        Some(Error::device(format!("nothing runs any more after {}: {why}", self.facts.name_of(cell))))
    }

    fn late(&self, cell: &Cell) -> Error {
        let limit = Seconds(self.measure.visit_limit_s);
        Error::engine(format!("the visit took longer than `visit_limit`, {limit}; this cell is left out"))
            .at(self.facts.name_of(cell))
            .hint("where that is how long it takes, raise `visit_limit` in [measure]")
    }
}

/// A failure of one cell is a row and the sweep goes on; anything else ends it.
fn is_about_the_cell(error: &Error, history: &History) -> bool {
    match error.kind() {
        Kind::OutOfMemory | Kind::Engine => true,
        // What no cell can run is refused at the first visit; where another was visited, the others can still be measured.
        Kind::Spec => history.visit_count() > 0,
        _ => false,
    }
}

/// What is read around each step of a visit.
struct StepReadings<'a> {
    counters: Option<&'a Session>,
    witness: Option<&'a mut Witness>,
    /// Whether the step computes in this process; another reads the accounts of its own threads.
    in_this_process: bool,
    /// Whether other programs held up the steps of the visit before.
    held_up: bool,
}

/// A step and its counters from start to end.
pub(crate) struct MeasuredStep {
    times: StepTimes,
    counts: Counts,
}

/// The steps of a visit.
pub(crate) struct Measured {
    steps: Vec<MeasuredStep>,
    seen: Steps,
    /// Seconds of processors that a hypervisor took meanwhile.
    steal_s: Option<f64>,
    /// How many processes of each other program ran, where it was looked.
    others: Option<BTreeMap<String, usize>>,
    /// The place of the first step that counts.
    counts_from: usize,
    steady: bool,
    /// The visit's time was over before its steps were steady, so none of them counts.
    cut_short: bool,
    ready: Ready,
}

/// The time before the first step.
#[derive(Clone, Copy)]
struct Ready {
    /// Unix time at the start of the visit.
    started_s: f64,
    /// Seconds until the step was ready.
    prepare_s: f64,
    /// The parts of `prepare_s`.
    setup: SetupTimes,
}

fn measure(
    step: &mut dyn Step,
    ready: Ready,
    length: VisitLength,
    is_over: &dyn Fn(f64) -> bool,
    mut beside: StepReadings,
) -> Result<Measured> {
    let k = length.steps;
    let mut steps = Vec::with_capacity(k);
    let mut seen = Steps::default();
    step.expect(length.warmup + k);
    let watch = Instant::now();
    beside.witness.iter_mut().for_each(|witness| witness.begin());
    let (end, cut_short) = loop {
        if seen.is_held_up(beside.held_up) {
            step.rest();
            // Its threads waited for processors then too, which is no part of the step.
            if let Some(witness) = &mut beside.witness {
                witness.step();
            }
        }
        let team = step.team();
        let before = beside.counters.map(Session::read);
        let mut times = step.run()?;
        let counted = beside.counters.zip(before).map(|(session, before)| session.between(&before, &session.read()));
        if beside.in_this_process {
            let seen = beside.witness.as_mut().map(|witness| witness.step());
            times.witnessed = match step.team().zip(team) {
                Some((now, before)) => {
                    seen.map(|seen| seen.by_team(times.step_s, now.threads, now.polled_s - before.polled_s))
                }
                None => seen,
            };
        }
        seen.push(times.step_s, times.witnessed.and_then(|witnessed| witnessed.interrupted_s));
        steps.push(MeasuredStep { times, counts: counted.unwrap_or_default() });
        if let Some(end) = seen.end(k, length.warmup) {
            break (end, false);
        }
        if is_over(watch.elapsed().as_secs_f64()) {
            break (End { counts_from: steps.len(), steady: true }, true);
        }
    };
    let steal_s = beside.witness.as_ref().and_then(|witness| witness.steal_s());
    let is_disturbed = seen.disturbed().contains(&Some(true));
    let others = beside.witness.filter(|_| is_disturbed).and_then(|witness| witness.others.look());
    Ok(Measured { steps, seen, steal_s, others, counts_from: end.counts_from, steady: end.steady, cut_short, ready })
}
