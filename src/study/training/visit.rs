//! One visit to a cell: prepare, warm up, train, evaluate, write down.

use std::time::Instant;

use super::super::{Bench, Cell, Visit, VisitInRun};
use super::epoch::Runner;
use super::rows::VisitContext;
use super::spec::OnError;
use super::{Loader, Training};
use crate::data::loader::Options;
use crate::device::counters::Session;
use crate::error::Result;
use crate::store::EpochRow;

impl Bench<'_, Training> {
    /// # Errors
    /// What goes wrong; the rows before it are in `visit`.
    pub(super) fn train(&mut self, cell: &Cell<Loader>, place: VisitInRun, visit: &mut Visit<Training>) -> Result<()> {
        let watch = Instant::now();
        let prepared = self.prepare(cell);
        let prepare_s = watch.elapsed().as_secs_f64();
        self.mark_unqualified(cell)?;
        let mut runner = prepared?;
        let measure = &self.spec.measure;
        // After the workers have started: a counter counts the threads that are there, and those that they start.
        let counters = measure.counters.then(Session::begin);
        let rows = VisitContext { facts: &self.facts, data: self.data, cell, place };
        if measure.warmup_steps > 0 {
            let warm = runner.epoch(0, Some(measure.warmup_steps), counters.as_ref())?;
            let row = EpochRow { warmup: true, prepare_time_s: Some(prepare_s), ..rows.epoch(0, &warm, 0) };
            visit.details.extend(rows.batches(0, true, &warm.steps));
            visit.rows.push(row);
            runner.reset()?;
        }
        for epoch in 0..measure.epochs {
            let timed = runner.epoch(epoch, None, counters.as_ref())?;
            let seen = timed.examples + timed.skipped.len();
            let mut row = rows.epoch(epoch, &timed, self.data.train.count().saturating_sub(seen));
            row.prepare_time_s = Some(prepare_s);
            rows.set_covariates(&mut row, &self.device.read());
            if measure.evaluate && self.data.test.is_some() {
                let watch = Instant::now();
                let evaluated = runner.evaluate()?;
                row.test_time_s = Some(watch.elapsed().as_secs_f64());
                VisitContext::set_evaluated(&mut row, evaluated.as_ref());
            }
            visit.details.extend(rows.batches(epoch, false, &timed.steps));
            visit.rows.push(row);
        }
        Ok(())
    }

    fn prepare(&mut self, cell: &Cell<Loader>) -> Result<Runner> {
        let (data, loading) = (self.data, &self.spec.loader);
        let workload = &cell.step.workload;
        let engine = self.engines.get(cell.step.engine)?;
        if engine.feeds_itself() {
            return engine.train_alone(workload, &self.supplies.feed(data, loading, cell)?).map(Runner::Own);
        }
        let options = Options {
            batch_size: cell.step.batch_size,
            workers: cell.beside.workers,
            prefetch: cell.beside.prefetch.unwrap_or(1),
            shuffle: loading.shuffle,
            drop_last: loading.drop_last,
            seed: self.spec.measure.seed,
            skip: loading.on_error == OnError::Skip,
        };
        Runner::fed(engine, workload, data, options)
    }
}
