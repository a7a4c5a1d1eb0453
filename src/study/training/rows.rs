//! From what was measured to rows.

use super::super::{Cell, VisitInRun, failure};
use super::Loader;
use super::epoch::{EpochTimes, Evaluated, TimedStep};
use crate::data::DataSet;
use crate::device::Covariates;
use crate::error::Error;
use crate::run::RowContext;
use crate::store::{AxisValues, BatchRow, CounterValues, EpochRow, Status};

/// What the rows of a visit have in common.
pub(super) struct VisitContext<'a> {
    pub facts: &'a RowContext,
    pub data: &'a DataSet,
    pub cell: &'a Cell<Loader>,
    pub place: VisitInRun,
}

impl VisitContext<'_> {
    fn empty(&self) -> EpochRow {
        let Cell { step, beside: Loader { workers, prefetch } } = self.cell;
        let device = self.facts.device_of(step);
        EpochRow {
            run_id: self.facts.run_id.clone(),
            engine: self.facts.engine_of(step).to_string(),
            device: device.map(|device| device.id.clone()).unwrap_or_default(),
            device_name: device.map(|device| device.name.clone()).unwrap_or_default(),
            model: step.model.clone(),
            axes: AxisValues::new(self.facts.engine_of(step), self.facts.settings_of(step)),
            batch_size: step.batch_size as i64,
            workers: *workers as i64,
            prefetch: prefetch.map(|depth| depth as i64),
            dataset: self.data.title.clone(),
            cell: step.index as i64,
            block: self.place.block,
            visit: self.place.visit,
            qualified: self.facts.qualified(step),
            ..EpochRow::default()
        }
    }

    pub fn epoch(&self, epoch: usize, timed: &EpochTimes, dropped: usize) -> EpochRow {
        let finite = timed.steps.iter().all(|step| step.loss.is_none_or(f64::is_finite));
        EpochRow {
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
            copy_time_s: timed.parts.map(|parts| parts.copy_s),
            forward_time_s: timed.parts.map(|parts| parts.forward_s),
            backward_time_s: timed.parts.map(|parts| parts.backward_s),
            optimizer_time_s: timed.parts.map(|parts| parts.optimizer_s),
            user_time_s: timed.user_s,
            system_time_s: timed.system_s,
            loss: timed.loss,
            last_loss: timed.steps.last().and_then(|step| step.loss),
            counters: CounterValues(timed.counts),
            ..self.empty()
        }
    }

    pub fn batches(&self, epoch: usize, warmup: bool, steps: &[TimedStep]) -> Vec<BatchRow> {
        let row = |(number, step): (usize, &TimedStep)| BatchRow {
            cell: self.cell.step.index as i64,
            visit: self.place.visit,
            epoch: epoch as i64,
            warmup,
            step: number as i64,
            examples: step.examples as i64,
            step_time_s: step.step_s,
            wait_time_s: step.wait_s,
            loss: step.loss,
        };
        steps.iter().enumerate().map(row).collect()
    }

    pub fn failed(&self, error: &Error) -> EpochRow {
        EpochRow { status: failure(error), error: Some(error.to_string()), ..self.empty() }
    }

    pub fn set_evaluated(row: &mut EpochRow, evaluated: Option<&Evaluated>) {
        let Some(Evaluated { score, skipped }) = evaluated else { return };
        row.test_accuracy = score.accuracy();
        row.test_loss = score.mean_loss();
        row.test_skipped = Some(skipped.len() as i64);
        // Beside the first of the training examples, where both parts lack some.
        let named: Vec<String> = row.error.take().into_iter().chain(skipped.first().cloned()).collect();
        row.error = (!named.is_empty()).then(|| named.join("\n"));
    }

    pub fn set_covariates(&self, row: &mut EpochRow, read: &Covariates) {
        row.cpu_clock_hz = read.cpu_clock_hz;
        row.temperature_c = read.temperature_c;
        row.memory_used_bytes = read.memory_used_bytes.and_then(|bytes| i64::try_from(bytes).ok());
    }
}
