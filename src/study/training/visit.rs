//! One visit to a cell: prepare, warm up, train, evaluate, write down.

use std::time::Instant;

use super::super::{Bench, Cell, Visit, VisitTo};
use super::epoch::{EpochTimes, Evaluated, Runner, TimedStep};
use super::spec::OnError;
use super::{BatchRow, Loader, Training, TrainingRow};
use crate::data::loader::Options;
use crate::device::counters::Session;
use crate::error::Result;
use crate::run::row_of_cell;
use crate::store::{CounterValues, Status};

impl Bench<'_, Training> {
    /// # Errors
    /// What goes wrong; the rows before it are in `visit`.
    pub(super) fn train(
        &mut self,
        at: &VisitTo<Training>,
        mut runner: Runner,
        visit: &mut Visit<Training>,
    ) -> Result<()> {
        let measure = &self.spec.measure;
        // After the workers have started: a counter counts the threads that are there, and those that they start.
        let counters = measure.counters.then(Session::begin);
        if measure.warmup_steps > 0 {
            let warm = runner.epoch(0, Some(measure.warmup_steps), counters.as_ref())?;
            visit.details.extend(batches(at, 0, true, &warm.steps));
            visit.rows.push(TrainingRow { warmup: true, ..self.epoch_row(at, 0, &warm, 0) });
            runner.reset()?;
        }
        for epoch in 0..measure.epochs {
            let timed = runner.epoch(epoch, None, counters.as_ref())?;
            let seen = timed.examples + timed.skipped.len();
            let mut row = self.epoch_row(at, epoch, &timed, self.data.train.count().saturating_sub(seen));
            let read = self.device.read();
            row.cpu_clock_hz = read.cpu_clock_hz;
            row.temperature_c = read.temperature_c;
            row.memory_used_bytes = read.memory_used_bytes.and_then(|bytes| i64::try_from(bytes).ok());
            if measure.evaluate && self.data.test.is_some() {
                let watch = Instant::now();
                let evaluated = runner.evaluate()?;
                row.test_time_s = Some(watch.elapsed().as_secs_f64());
                set_evaluated(&mut row, evaluated.as_ref());
            }
            visit.details.extend(batches(at, epoch, false, &timed.steps));
            visit.rows.push(row);
        }
        Ok(())
    }

    pub(super) fn prepare(&mut self, cell: &Cell<Loader>) -> Result<Runner> {
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

    pub(super) fn row(&self, at: &VisitTo<Training>) -> TrainingRow {
        TrainingRow {
            workers: at.cell.beside.workers as i64,
            prefetch: at.cell.beside.prefetch.map(|depth| depth as i64),
            dataset: self.data.title.clone(),
            block: at.block,
            visit: at.visit,
            ..row_of_cell!(TrainingRow, &self.facts, &at.cell.step)
        }
    }

    fn epoch_row(&self, at: &VisitTo<Training>, epoch: usize, timed: &EpochTimes, dropped: usize) -> TrainingRow {
        let [copy_time_s, forward_time_s, backward_time_s, optimizer_time_s] =
            timed.phases.map_or([None; 4], |phases| phases.map(Some));
        let finite = timed.steps.iter().all(|step| step.loss.is_none_or(f64::is_finite));
        TrainingRow {
            prepare_time_s: Some(at.prepare_s),
            epoch: epoch as i64,
            status: if finite { Status::Ok } else { Status::NanLoss },
            error: timed.skipped.first().cloned(),
            examples: timed.examples as i64,
            steps: timed.steps.len() as i64,
            dropped: dropped as i64,
            skipped: timed.skipped.len() as i64,
            epoch_time_s: Some(timed.epoch_s),
            compute_time_s: timed.compute_s,
            wait_time_s: Some(timed.wait_s),
            copy_time_s,
            forward_time_s,
            backward_time_s,
            optimizer_time_s,
            user_time_s: timed.user_s,
            system_time_s: timed.system_s,
            loss: timed.loss,
            last_loss: timed.steps.last().and_then(|step| step.loss),
            counters: CounterValues(timed.counts),
            ..self.row(at)
        }
    }
}

fn batches(at: &VisitTo<Training>, epoch: usize, warmup: bool, steps: &[TimedStep]) -> impl Iterator<Item = BatchRow> {
    let (cell, visit) = (at.cell.step.index as i64, at.visit);
    steps.iter().enumerate().map(move |(number, step)| BatchRow {
        cell,
        visit,
        epoch: epoch as i64,
        warmup,
        step: number as i64,
        examples: step.examples as i64,
        step_time_s: step.step_s,
        wait_time_s: step.wait_s,
        loss: step.loss,
    })
}

fn set_evaluated(row: &mut TrainingRow, evaluated: Option<&Evaluated>) {
    let Some(Evaluated { score, skipped }) = evaluated else { return };
    row.test_accuracy = score.accuracy();
    row.test_loss = score.mean_loss();
    row.test_skipped = Some(skipped.len() as i64);
    // Beside the first of the training examples, where both parts lack some.
    let named: Vec<String> = row.error.take().into_iter().chain(skipped.first().cloned()).collect();
    row.error = (!named.is_empty()).then(|| named.join("\n"));
}
