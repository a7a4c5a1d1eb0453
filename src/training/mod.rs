//! The loop of a study of whole epochs.
//!
//! Each block visits every cell once, in a fresh random order. A visit prepares the network at its initial parameters and starts
//! the loader's workers; takes `warmup_steps` steps that do not count; begins again from the initial parameters; and trains for
//! whole epochs, each timed from its shuffling to the end of its last step. The test examples are classified after each epoch,
//! outside its time. Each visit is stored before the next begins; `--resume` continues to the very same plan.

mod epoch;
mod plan;
mod raw;
mod rows;
mod visit;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

pub use plan::{TrainingCell, TrainingPlan};

use crate::data::DataSet;
use crate::device::Device;
use crate::engine::open::Engines;
use crate::error::{Error, Kind, Result};
use crate::measure::Stopwatch;
use crate::run::RunFacts;
use crate::spec::training::{Loading, OnError, Training};
use crate::store::{BatchRow, EpochRow, RunDirectory, Status};
use raw::RawFiles;
use visit::{Place, Visit};

/// Everything a study works with.
pub struct Study<'a> {
    pub plan: &'a TrainingPlan,
    pub spec: &'a Training,
    pub data: &'a DataSet,
    pub facts: RunFacts,
    pub engines: &'a mut Engines,
    pub device: &'a mut dyn Device,
    pub ledger: &'a dyn Ledger,
    pub observer: &'a mut dyn Observer,
    /// Set from outside (Ctrl-C): the visit under way is finished and stored, then the run stops.
    pub interrupted: &'a AtomicBool,
    /// Where the examples are laid out for engines that read them by themselves.
    pub scratch: PathBuf,
}

/// Where visits are written down.
pub trait Ledger {
    /// Stores one visit.
    ///
    /// # Errors
    /// [`Kind::Io`]; what was stored before stays.
    fn append(&self, epochs: &[EpochRow], batches: &[BatchRow]) -> Result<()>;
}

impl Ledger for RunDirectory {
    fn append(&self, epochs: &[EpochRow], batches: &[BatchRow]) -> Result<()> {
        // The batches first: a visit is there once its epochs are.
        RunDirectory::append(self, batches)?;
        RunDirectory::append(self, epochs)
    }
}

/// Someone who watches a study.
pub trait Observer {
    /// A visit has ended.
    fn visited(&mut self, cell: &TrainingCell, epochs: &[EpochRow], progress: Progress);
    /// Something the user should know.
    fn warn(&mut self, message: &str);
}

/// How far a study is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    pub visits: usize,
    pub of: usize,
    pub elapsed_s: f64,
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

/// Refuses what cannot run, before anything does.
///
/// # Errors
/// [`Kind::Spec`] where an engine does not train, where it cannot read such data, or where batches could be smaller than it takes.
pub fn check(plan: &TrainingPlan, loader: &Loading, data: &DataSet, engines: &mut Engines) -> Result<()> {
    for cell in &plan.cells {
        let name = engines.resolve(cell.step.engine);
        let engine = engines.get(cell.step.engine)?;
        let alone = engine.feeds_itself();
        if alone && data.train.in_memory().is_none() {
            let what = format!("the engine `{name}` trains only on IDX files and drawn digits");
            return Err(Error::spec(what).at("[data]").hint("leave it out of [engine], or use another data set"));
        }
        if !alone && !engine.trains() {
            return Err(Error::spec(format!("the engine `{name}` does not train on batches of a loader"))
                .at("[engine]")
                .hint("use the engines `cpu`, `candle`, `torch` and `cudnn`"));
        }
        if engine.needs_whole_batches() {
            check_batches(cell.step.batch_size, loader, data).map_err(|error| error.at(format!("engine `{name}`")))?;
        }
    }
    Ok(())
}

/// The study without the optional engines that cannot run it, and the reason for each.
///
/// The GPU engine accepts only full batches, and PyTorch reads only data in memory. If such an engine is optional, the other engines still run.
pub fn without_unfit(spec: &Training, data: &DataSet, engines: &mut Engines) -> (Training, Vec<String>) {
    let mut kept = spec.clone();
    let mut left_out = Vec::new();
    for &engine in &spec.optional {
        let alone = Training { engines: vec![engine], optional: Vec::new(), ..spec.clone() };
        let plan = TrainingPlan::new(&alone, data, engines);
        if let Err(error) = plan.and_then(|plan| check(&plan, &spec.loader, data, engines)) {
            kept.engines.retain(|kept| *kept != engine);
            kept.optional.retain(|kept| *kept != engine);
            let remedy = error.remedy().map(|remedy| format!("; {remedy}")).unwrap_or_default();
            left_out.push(format!("{}{remedy}", error.clause()));
        }
    }
    (kept, left_out)
}

fn check_batches(batch_size: usize, loader: &Loading, data: &DataSet) -> Result<()> {
    let count = data.train.count();
    if !loader.drop_last && !count.is_multiple_of(batch_size) {
        let what = format!("all batches must have {batch_size} examples, and {count} examples are no multiple of that");
        return Err(Error::spec(what).hint("set `drop_last = true` in [loader]"));
    }
    if loader.on_error == OnError::Skip {
        return Err(Error::spec("`on_error = \"skip\"` makes smaller batches, and all must be whole")
            .hint("use `on_error = \"fail\"` or \"stop\" in [loader]"));
    }
    Ok(())
}

/// Runs the study, beginning after the visits that are already stored.
///
/// # Errors
/// [`Kind::Io`] where a visit can't be stored, [`Kind::Device`] where the device is lost; the visits before it are stored.
pub fn run(mut study: Study, stored: &[EpochRow]) -> Result<Outcome> {
    let watch = Stopwatch::start();
    let mut done = Done::new(stored);
    let raw = RawFiles::new(study.scratch.clone());
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
            let Visit { epochs, batches, failed } = study.visit(cell, place, &raw)?;
            study.ledger.append(&epochs, &batches)?;
            done.add(&epochs);
            here += 1;
            study.warn_of(&epochs, failed.as_ref());
            let left = of.saturating_sub(done.visits() + done.left_out(of / study.plan.cells.len().max(1), block));
            let elapsed_s = watch.elapsed();
            let progress =
                Progress { visits: done.visits(), of, elapsed_s, left_s: elapsed_s / f64::from(here) * left as f64 };
            study.observer.visited(cell, &epochs, progress);
            if let Some(error) = failed.filter(|_| study.spec.loader.on_error == OnError::Stop) {
                return Ok(Outcome { complete: false, out_of_time: false, stopped: Some(error) });
            }
        }
    }
    Ok(Outcome { complete: true, out_of_time: false, stopped: None })
}

impl Study<'_> {
    fn warn_of(&mut self, epochs: &[EpochRow], failed: Option<&Error>) {
        if let Some(error) = failed {
            self.observer.warn(&error.to_string());
        }
        if let Some(what) = left_out(epochs) {
            self.observer.warn(&what);
        }
        self.device.warnings().iter().for_each(|warning| self.observer.warn(warning));
    }
}

/// Which examples the epochs of a visit went without: how many, and the first of each part by name.
fn left_out(epochs: &[EpochRow]) -> Option<String> {
    let counted = || epochs.iter().filter(|row| !row.warmup && row.epoch_time_s.is_some());
    let skipped: i64 = counted().map(|row| row.skipped).sum();
    let tested: i64 = counted().filter_map(|row| row.test_skipped).sum();
    let what = match (skipped, tested) {
        (0, 0) => return None,
        (skipped, 0) => format!("{skipped} examples were left out"),
        (0, tested) => format!("{tested} test examples were left out of the accuracy"),
        (skipped, tested) => {
            format!("{skipped} examples were left out, and {tested} test examples of the accuracy")
        }
    };
    let first = counted().find_map(|row| row.error.as_deref()).unwrap_or("it could not be read");
    Some(format!("{what}; the first: {first}"))
}

/// Which visits were made.
#[derive(Debug, Default)]
struct Done {
    visits: BTreeSet<(usize, usize)>,
    /// Cells that failed; they are not visited again.
    failed: BTreeSet<usize>,
    next_visit: i64,
}

impl Done {
    fn new(stored: &[EpochRow]) -> Self {
        let mut done = Self::default();
        done.add(stored);
        done
    }

    fn add(&mut self, rows: &[EpochRow]) {
        for row in rows {
            self.visits.insert((row.cell as usize, row.block as usize));
            self.next_visit = self.next_visit.max(row.visit + 1);
            if matches!(row.status, Status::Failed | Status::OutOfMemory) {
                self.failed.insert(row.cell as usize);
            }
        }
    }

    fn is_done(&self, cell: usize, block: usize) -> bool {
        self.failed.contains(&cell) || self.visits.contains(&(cell, block))
    }

    fn visits(&self) -> usize {
        self.visits.len()
    }

    /// Visits that failed cells will not have.
    fn left_out(&self, blocks: usize, block: usize) -> usize {
        let had = |cell: usize| (0..=block).filter(|&block| self.visits.contains(&(cell, block))).count();
        self.failed.iter().map(|&cell| blocks.saturating_sub(had(cell))).sum()
    }
}

/// A failure of one cell is a row and the run goes on; anything else ends it.
fn is_about_the_cell(error: &Error) -> bool {
    matches!(error.kind(), Kind::OutOfMemory | Kind::Engine | Kind::Data)
}
