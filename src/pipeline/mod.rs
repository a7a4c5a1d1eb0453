//! The loop of a study of the input pipeline: what feeds a training, and what holds it up.
//!
//! The program makes its own images. Each block visits every cell once, in a fresh random order. A visit measures each stage by itself: reading
//! files (warm from the page cache, cold from the storage device), decoding, the transform into the network's input, the loader's own work, the
//! copy into the engine's memory, the training step. Stages of a worker are measured with one thread, for the demands of the model, and with as
//! many threads as the cell has workers, for the ceilings. The two sides, loader and training, run separately and at the same time, each on its own
//! data; the difference shows how much they slow each other. Then everything runs together, and the visit measures images per second and the share
//! of the time in which the training waits, in the steady state. All measurements are cut into rounds, so that a change in the machine's speed
//! affects all of them. [`crate::analysis::feeding`] predicts the rate of all together from the rest.

pub mod files;
pub mod images;
mod plan;
mod rounds;
mod scheduling;
mod sides;
mod stages;
#[cfg(test)]
mod tests;
mod together;
mod visit;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

pub use images::Made;
pub use plan::{PipelineCell, PipelinePlan};

use crate::engine::open::Engines;
use crate::error::{Error, Kind, Result};
use crate::measure::Stopwatch;
use crate::run::RunFacts;
use crate::spec::pipeline::Pipeline;
use crate::spec::training::OnError;
use crate::store::{PipelineRow, RunDirectory, Status};
use visit::{Place, Visit};

/// Everything a study works with.
pub struct Study<'a> {
    pub plan: &'a PipelinePlan,
    pub spec: &'a Pipeline,
    pub made: &'a Made,
    /// The storage device that the images lie on.
    pub storage: &'a str,
    pub facts: RunFacts,
    pub engines: &'a mut Engines,
    pub ledger: &'a dyn Ledger,
    pub observer: &'a mut dyn Observer,
    /// Set from outside (Ctrl-C): the visit under way is finished and stored, then the run stops.
    pub interrupted: &'a AtomicBool,
}

/// Where visits are written down.
pub trait Ledger {
    /// Stores one visit.
    ///
    /// # Errors
    /// [`Kind::Io`]; what was stored before stays.
    fn append(&self, rows: &[PipelineRow]) -> Result<()>;
}

impl Ledger for RunDirectory {
    fn append(&self, rows: &[PipelineRow]) -> Result<()> {
        RunDirectory::append(self, rows)
    }
}

/// Someone who watches a study.
pub trait Observer {
    /// A visit has ended.
    fn visited(&mut self, cell: &PipelineCell, rows: &[PipelineRow], progress: Progress);
    /// Something the user should know.
    fn warn(&mut self, message: &str);
}

/// How far a study is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    pub visits: usize,
    pub of: usize,
    /// At the pace of this process.
    pub left_s: f64,
}

/// How a study ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// False where it was interrupted or ended by an error: `--resume` goes on.
    pub complete: bool,
    /// The time limit came before the last repetition.
    pub out_of_time: bool,
    /// Why it ended early, where the spec asks for that.
    pub stopped: Option<Error>,
}

/// Refuses what cannot run, before anything is made.
///
/// # Errors
/// [`Kind::Spec`]: an engine takes no batches of a loader, or would be given some that are not whole.
pub fn check(plan: &PipelinePlan, spec: &Pipeline, engines: &mut Engines) -> Result<()> {
    for cell in &plan.cells {
        let name = engines.resolve(cell.step.engine);
        let engine = engines.get(cell.step.engine)?;
        if !engine.trains() {
            return Err(Error::spec(format!("the engine `{name}` does not take the batches of a loader here"))
                .at("[engine]")
                .hint("use the engine `cpu`, `candle` or `cudnn`"));
        }
        if engine.needs_whole_batches() && spec.loader.on_error == OnError::Skip {
            return Err(Error::spec("`on_error = \"skip\"` makes smaller batches, and all must be whole")
                .at(format!("engine `{name}`"))
                .hint("use `on_error = \"fail\"` or \"stop\" in [loader]"));
        }
    }
    Ok(())
}

/// Runs the study, beginning after the visits that are already stored.
///
/// # Errors
/// [`Kind::Io`] where a visit can't be stored, [`Kind::Device`] where the device is lost; the visits before it are stored.
pub fn run(mut study: Study, stored: &[PipelineRow]) -> Result<Outcome> {
    let watch = Stopwatch::start();
    let mut done = Done::new(stored);
    let of = study.plan.cells.len() * study.spec.measure.repetitions;
    let mut here = 0;
    for block in 0..study.spec.measure.repetitions {
        for index in study.plan.order(block) {
            let cell = &study.plan.cells[index];
            if done.is_done(index, block) {
                continue;
            }
            if study.interrupted.load(Ordering::Relaxed) {
                return Ok(Outcome::default());
            }
            if watch.elapsed() > study.spec.measure.time_limit_s {
                return Ok(Outcome { complete: true, out_of_time: true, stopped: None });
            }
            let place = Place { block: block as i64, visit: done.next_visit };
            let Visit { rows, failed } = study.visit(cell, place)?;
            study.ledger.append(&rows)?;
            done.add(&rows);
            here += 1;
            study.warn_of(&rows, failed.as_ref());
            let visits = done.visits.len();
            let left_s = watch.elapsed() / f64::from(here) * of.saturating_sub(visits) as f64;
            study.observer.visited(cell, &rows, Progress { visits, of, left_s });
            if let Some(error) = failed.filter(|_| study.spec.loader.on_error == OnError::Stop) {
                return Ok(Outcome { complete: false, out_of_time: false, stopped: Some(error) });
            }
        }
    }
    Ok(Outcome { complete: true, out_of_time: false, stopped: None })
}

impl Study<'_> {
    fn warn_of(&mut self, rows: &[PipelineRow], failed: Option<&Error>) {
        if let Some(error) = failed {
            self.observer.warn(&error.to_string());
        }
        if let Some(row) = rows.iter().find(|row| row.skipped > 0 && row.block == 0) {
            let (count, why) = (row.skipped, row.error.as_deref().unwrap_or("they could not be read"));
            self.observer.warn(&format!("images that could not be read and were left out: {count}\n{why}"));
        }
    }
}

/// Which visits were made.
#[derive(Debug, Default)]
struct Done {
    visits: BTreeSet<(i64, i64)>,
    /// Cells that failed; they are not visited again.
    failed: BTreeSet<i64>,
    next_visit: i64,
}

impl Done {
    fn new(stored: &[PipelineRow]) -> Self {
        let mut done = Self::default();
        done.add(stored);
        done
    }

    fn add(&mut self, rows: &[PipelineRow]) {
        for row in rows {
            self.visits.insert((row.cell, row.block));
            self.next_visit = self.next_visit.max(row.visit + 1);
            if matches!(row.status, Status::Failed | Status::OutOfMemory) {
                self.failed.insert(row.cell);
            }
        }
    }

    fn is_done(&self, cell: usize, block: usize) -> bool {
        self.failed.contains(&(cell as i64)) || self.visits.contains(&(cell as i64, block as i64))
    }
}

fn is_about_the_cell(error: &Error) -> bool {
    matches!(error.kind(), Kind::OutOfMemory | Kind::Engine | Kind::Data | Kind::Io)
}

/// Bytes that this process has had fetched from storage devices so far: `read_bytes` of `/proc/self/io`.
fn storage_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.trim().parse().ok()
}
