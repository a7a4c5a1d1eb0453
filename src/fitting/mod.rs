//! The loop of a study of fits: a network is trained on a surface in full batches, from its setup to the last update.
//!
//! Each cell is fitted once, from the initial parameters that its seed gives every engine. A step gives the loss before its update, so that
//! after E updates one step more is run for the error that they lead to; the output of that step is the fitted surface. The time until the
//! first step is ready is kept apart from the times of the steps.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::engine::data::{Point, side};
use crate::engine::open::Engines;
use crate::engine::{Step, Workload};
use crate::error::{Error, Kind, Result};
use crate::measure::Stopwatch;
use crate::plan::{Cell, Plan};
use crate::run::RunFacts;
use crate::settings::{EngineName, Settings};
use crate::store::{AxisValues, FitRow, RunDirectory, Status, SurfaceRow};

/// The most points along a side of a stored surface: of larger grids, evenly spaced rows and columns are kept.
const MOST_STORED: usize = 200;

/// Everything a study works with.
pub struct Study<'a> {
    pub plan: &'a Plan,
    /// Updates of each fit.
    pub epochs: usize,
    /// No fit begins later than this many seconds after the start.
    pub time_limit_s: f64,
    pub facts: RunFacts,
    pub engines: &'a mut Engines,
    pub ledger: &'a dyn Ledger,
    pub observer: &'a mut dyn Observer,
    /// Set from outside (Ctrl-C): the fit under way is given up, and the run stops.
    pub interrupted: &'a AtomicBool,
}

/// Where fits are written down.
pub trait Ledger {
    /// Stores one fit.
    ///
    /// # Errors
    /// [`Kind::Io`]; what was stored before stays.
    fn append(&self, epochs: &[FitRow], surface: &[SurfaceRow]) -> Result<()>;
}

impl Ledger for RunDirectory {
    fn append(&self, epochs: &[FitRow], surface: &[SurfaceRow]) -> Result<()> {
        // The surface first: a fit is there once its epochs are.
        RunDirectory::append(self, surface)?;
        RunDirectory::append(self, epochs)
    }
}

/// Someone who watches a study.
pub trait Observer {
    /// A fit has ended; `progress` says how many fits of all have ended.
    fn fitted(&mut self, name: &str, last: &FitRow, progress: Progress);
    /// Something the user should know.
    fn warn(&mut self, message: &str);
}

/// How far a study is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    pub fits: usize,
    pub of: usize,
    /// At the pace of this process.
    pub left_s: f64,
}

/// How a study ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// False where it was interrupted: `--resume` goes on.
    pub complete: bool,
    /// The time limit came before the last fit.
    pub out_of_time: bool,
}

/// Runs the study, without the fits that are stored already.
///
/// # Errors
/// [`Kind::Io`] where a fit can't be stored, [`Kind::Device`] where the device is lost; the fits before it are stored.
pub fn run(mut study: Study, stored: &[FitRow]) -> Result<Outcome> {
    let watch = Stopwatch::start();
    let done: BTreeSet<i64> = stored.iter().map(|row| row.cell).collect();
    let mut visit = stored.iter().map(|row| row.visit + 1).max().unwrap_or(0);
    let (mut fits, of) = (done.len(), study.plan.cells.len());
    let mut here = 0;
    let cells = study.plan.cells.iter().filter(|cell| !done.contains(&(cell.index as i64)));
    for cell in cells {
        if watch.elapsed() > study.time_limit_s {
            return Ok(Outcome { complete: true, out_of_time: true });
        }
        let Some(fit) = study.fit(cell, visit)? else { return Ok(Outcome::default()) };
        study.ledger.append(&fit.epochs, &fit.surface)?;
        (visit, fits, here) = (visit + 1, fits + 1, here + 1);
        let left_s = watch.elapsed() / f64::from(here) * (of - fits) as f64;
        if let Some(last) = fit.epochs.last() {
            study.observer.fitted(&study.facts.name_of(cell), last, Progress { fits, of, left_s });
        }
    }
    Ok(Outcome { complete: true, out_of_time: false })
}

/// What is stored of a fit.
struct Fitted {
    epochs: Vec<FitRow>,
    surface: Vec<SurfaceRow>,
}

impl Study<'_> {
    /// `None` where it was interrupted.
    fn fit(&mut self, cell: &Cell, visit: i64) -> Result<Option<Fitted>> {
        let watch = Stopwatch::start();
        let prepared = self.engines.get(cell.engine)?.prepare(&cell.workload);
        let prepare_s = watch.elapsed();
        if let Some(what) = self.facts.heed_refusals(self.engines, cell, &self.plan.cells)? {
            self.observer.warn(&what);
        }
        let first = self.row(cell, visit);
        let trained = prepared.and_then(|mut step| self.train(step.as_mut(), &first, prepare_s));
        match trained {
            Ok(None) => Ok(None),
            Ok(Some(Trained { epochs, output })) => {
                let surface = output.map_or_else(Vec::new, |output| surface(&cell.workload, &first, &output));
                Ok(Some(Fitted { epochs, surface }))
            }
            Err(error) if matches!(error.kind(), Kind::OutOfMemory | Kind::Engine) => {
                let error = error.at(self.facts.name_of(cell));
                self.observer.warn(&error.to_string());
                Ok(Some(Fitted { epochs: vec![failure(first, &error)], surface: Vec::new() }))
            }
            Err(error) => Err(error),
        }
    }

    fn train(&self, step: &mut dyn Step, first: &FitRow, prepare_s: f64) -> Result<Option<Trained>> {
        let mut epochs = Vec::with_capacity(self.epochs + 1);
        for epoch in 0..=self.epochs {
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let times = step.run()?;
            let finite = times.loss.is_none_or(f64::is_finite);
            epochs.push(FitRow {
                epoch: epoch as i64,
                status: if finite { Status::Ok } else { Status::NanLoss },
                loss: times.loss,
                step_time_s: Some(times.step_s),
                prepare_time_s: Some(prepare_s),
                ..first.clone()
            });
        }
        Ok(Some(Trained { epochs, output: step.computed()?.map(|computed| computed.output) }))
    }

    fn row(&self, cell: &Cell, visit: i64) -> FitRow {
        let device = self.facts.device_of(cell);
        let (engine, settings): (EngineName, &Settings) = (self.facts.engine_of(cell), self.facts.settings_of(cell));
        FitRow {
            run_id: self.facts.run_id.clone(),
            engine: engine.to_string(),
            device: device.map(|device| device.id.clone()).unwrap_or_default(),
            device_name: device.map(|device| device.name.clone()).unwrap_or_default(),
            model: cell.model.clone(),
            axes: AxisValues::new(engine, settings),
            batch_size: cell.batch_size as i64,
            cell: cell.index as i64,
            visit,
            qualified: self.facts.qualified(cell),
            ..FitRow::default()
        }
    }
}

struct Trained {
    epochs: Vec<FitRow>,
    /// The output after the last step, if the engine reports it.
    output: Option<Vec<f64>>,
}

fn failure(first: FitRow, error: &Error) -> FitRow {
    let status = if error.is_out_of_memory() { Status::OutOfMemory } else { Status::Failed };
    FitRow { status, error: Some(error.clause()), ..first }
}

/// The points of the grid, or of evenly spaced rows and columns of a large one.
fn surface(workload: &Workload, first: &FitRow, output: &[f64]) -> Vec<SurfaceRow> {
    let side = side(workload.batch_size);
    let stride = side.div_ceil(MOST_STORED);
    let kept = |example: &usize| (example / side).is_multiple_of(stride) && (example % side).is_multiple_of(stride);
    let row = |example: usize| {
        let point = Point::of(example, side);
        SurfaceRow {
            cell: first.cell,
            visit: first.visit,
            row: (example / side / stride) as i64,
            column: (example % side / stride) as i64,
            x: point.x.into(),
            y: point.y.into(),
            height: point.height().into(),
            fitted: output[example],
        }
    };
    (0..workload.batch_size.min(output.len())).filter(kept).map(row).collect()
}
