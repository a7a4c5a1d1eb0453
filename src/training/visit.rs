//! One visit to a cell: prepare, warm up, train, evaluate, write down.

use super::epoch::{Runner, Sources};
use super::raw::RawFiles;
use super::rows::Rows;
use super::{Study, TrainingCell, is_about_the_cell};
use crate::device::counters::Session;
use crate::error::{Error, Result};
use crate::loader::Options;
use crate::measure::Stopwatch;
use crate::spec::training::OnError;
use crate::store::{BatchRow, EpochRow};
use crate::units::human;

/// Where a visit stands in the run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub block: i64,
    pub visit: i64,
}

/// What a visit left.
#[derive(Debug, Default)]
pub(super) struct Visit {
    pub epochs: Vec<EpochRow>,
    pub batches: Vec<BatchRow>,
    pub failed: Option<Error>,
}

impl Study<'_> {
    /// # Errors
    /// Errors that affect more than this cell.
    pub(super) fn visit(&mut self, cell: &TrainingCell, place: Place, raw: &RawFiles) -> Result<Visit> {
        let mut visit = Visit::default();
        match self.train(cell, place, raw, &mut visit) {
            Ok(()) => Ok(visit),
            Err(error) if is_about_the_cell(&error) => {
                let error = error.at(self.name_of(cell));
                let rows = Rows { facts: &self.facts, data: self.data, cell, place };
                visit.epochs.push(rows.failed(&error));
                visit.failed = Some(error);
                Ok(visit)
            }
            Err(error) => Err(error),
        }
    }

    fn train(&mut self, cell: &TrainingCell, place: Place, raw: &RawFiles, visit: &mut Visit) -> Result<()> {
        let watch = Stopwatch::start();
        let prepared = self.prepare(cell, raw);
        let prepare_s = watch.elapsed();
        let cells = self.plan.cells.iter().map(|cell| &cell.step);
        if let Some(what) = self.facts.heed_refusals(self.engines, &cell.step, cells)? {
            self.observer.warn(&what);
        }
        let mut runner = prepared?;
        let measure = &self.spec.measure;
        // After the workers have started: a counter counts the threads that are there, and those that they start.
        let counters = measure.counters.then(Session::begin);
        let rows = Rows { facts: &self.facts, data: self.data, cell, place };
        if measure.warmup_steps > 0 {
            let warm = runner.epoch(0, Some(measure.warmup_steps), counters.as_ref())?;
            let row = EpochRow { warmup: true, prepare_time_s: Some(prepare_s), ..rows.epoch(0, &warm, 0) };
            visit.batches.extend(rows.batches(0, true, &warm.steps));
            visit.epochs.push(row);
            runner.reset()?;
        }
        for epoch in 0..measure.epochs {
            let timed = runner.epoch(epoch, None, counters.as_ref())?;
            let seen = timed.examples + timed.skipped.len();
            let mut row = rows.epoch(epoch, &timed, self.data.train.count().saturating_sub(seen));
            row.prepare_time_s = Some(prepare_s);
            rows.set_covariates(&mut row, &self.device.read());
            if measure.evaluate && self.data.test.is_some() {
                let watch = Stopwatch::start();
                let evaluated = runner.evaluate()?;
                row.test_time_s = Some(watch.elapsed());
                Rows::set_evaluated(&mut row, evaluated.as_ref());
            }
            visit.batches.extend(rows.batches(epoch, false, &timed.steps));
            visit.epochs.push(row);
        }
        Ok(())
    }

    fn prepare(&mut self, cell: &TrainingCell, raw: &RawFiles) -> Result<Runner> {
        let (data, loading) = (self.data, &self.spec.loader);
        let workload = &cell.step.workload;
        let engine = self.engines.get(cell.step.engine)?;
        if engine.feeds_itself() {
            return engine.train_alone(workload, &raw.feed(data, loading, cell)?).map(Runner::Own);
        }
        let options = Options {
            batch_size: cell.step.batch_size,
            workers: cell.workers,
            prefetch: cell.prefetch.unwrap_or(1),
            shuffle: loading.shuffle,
            drop_last: loading.drop_last,
            seed: self.spec.measure.seed,
            skip: loading.on_error == OnError::Skip,
        };
        Runner::fed(engine, workload, &Sources { train: &data.train, test: data.test.as_ref(), options })
    }

    fn name_of(&self, cell: &TrainingCell) -> String {
        format!("{}, {}", self.facts.name_of(&cell.step), human::counted(cell.workers as u64, "worker"))
    }
}
