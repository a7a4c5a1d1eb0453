//! The epochs of a training study, cell by cell, from its stored table.

mod comparison;
mod workers;

use std::collections::BTreeMap;
use std::path::Path;

pub use comparison::{Against, EnginePair, Rival, engine_pairs, relative_to_fastest};
pub use workers::{Advice, WorkerCurve, WorkerGain, worker_curves};

use crate::error::Result;
use crate::stats::repetitions::{Repetitions, outliers};
use crate::store::Status;
use crate::study::Visited;
use crate::study::course::rows_that_count;
use crate::study::series::Varied;
use crate::study::training::TrainingRow;

/// A study as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// What the examples are.
    pub dataset: String,
    pub device: String,
    pub blocks: usize,
    /// By series, batch size, workers and prefetch depth; those with at least one epoch that counts and trained on something.
    pub cells: Vec<CellEpochs>,
    /// Cells that failed, with the reason.
    pub failed: Vec<String>,
    /// Examples that `drop_last` leaves out of each epoch, at most.
    pub dropped: i64,
    /// Examples that could not be read. Every epoch leaves out the same ones, so that each counts once.
    pub skipped: i64,
    /// Test examples that could not be read, likewise.
    pub test_skipped: i64,
    /// Epochs in which the loss was not a number.
    pub nan_epochs: usize,
}

/// The epochs of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct CellEpochs {
    /// What differs between cells beside batch size and loader: the engine, and the network and settings that vary.
    pub series: String,
    pub engine: String,
    pub batch_size: usize,
    pub workers: usize,
    pub prefetch: Option<usize>,
    /// Trained on in an epoch.
    pub examples: usize,
    /// The epochs that count, in the order of the run.
    pub rows: Vec<TrainingRow>,
    /// Of their seconds.
    pub times: Repetitions,
    /// For each epoch, whether its time is an outlier among them.
    pub outliers: Vec<bool>,
}

impl CellEpochs {
    /// For sentences: `cpu, batch size 512, 2 workers`.
    pub fn name(&self) -> String {
        let workers = match self.workers {
            0 => "no workers".to_owned(),
            1 => "1 worker".to_owned(),
            workers => format!("{workers} workers"),
        };
        let depth = self.prefetch.filter(|depth| *depth != 2).map(|depth| format!(", prefetch {depth}"));
        format!("{}, batch size {}, {workers}{}", self.series, self.batch_size, depth.unwrap_or_default())
    }

    /// Seconds for an example.
    pub fn example_s(&self) -> f64 {
        self.times.mean / self.examples as f64
    }

    /// Examples in a second of an epoch.
    pub fn throughput(&self) -> f64 {
        self.examples as f64 / self.times.mean
    }

    /// The share of an epoch in which the training waited for its loader.
    pub fn waiting(&self) -> Option<f64> {
        self.mean(|row| row.wait_time_s).map(|wait| wait / self.times.mean)
    }

    /// The mean over the epochs that have this value; `None` if none has.
    pub fn mean(&self, value: impl Fn(&TrainingRow) -> Option<f64>) -> Option<f64> {
        mean(self.rows.iter().filter_map(value).filter(|value| value.is_finite()))
    }

    /// The accuracy after a visit's last epoch, the mean over visits.
    pub fn test_accuracy(&self) -> Option<f64> {
        let last = self.rows.iter().filter(|row| row.test_accuracy.is_some()).map(|row| row.epoch).max()?;
        mean(self.rows.iter().filter(|row| row.epoch == last).filter_map(|row| row.test_accuracy))
    }
}

impl Results {
    /// Reads a run directory of a training, finished or under way.
    ///
    /// # Errors
    /// As [`crate::store::rows_of`].
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self::of(&rows_that_count(path)?))
    }

    /// The study that these rows make.
    pub fn of(rows: &[TrainingRow]) -> Self {
        let varied = Varied::of(rows.iter().map(Visited::origin));
        let counted = |row: &&TrainingRow| !row.warmup && row.epoch_time_s.is_some();
        let mut groups: BTreeMap<(i64, i64, i64, Option<i64>), Vec<&TrainingRow>> = BTreeMap::new();
        for row in rows.iter().filter(counted).filter(|row| row.examples > 0) {
            let series = varied.name(row.origin(), true);
            let key = (first_cell(rows, &series, &varied), row.batch_size, row.workers, row.prefetch);
            groups.entry(key).or_default().push(row);
        }
        let failed = rows.iter().filter(|row| row.status.is_failure());
        let counted_rows = || rows.iter().filter(counted);
        Self {
            dataset: rows.first().map(|row| row.dataset.clone()).unwrap_or_default(),
            device: rows.first().map(|row| row.device_name.clone()).unwrap_or_default(),
            blocks: counted_rows().map(|row| row.block + 1).max().unwrap_or(0) as usize,
            cells: groups.into_values().filter_map(|rows| cell(&rows, &varied)).collect(),
            failed: failed.filter_map(|row| row.error.clone()).collect(),
            dropped: counted_rows().map(|row| row.dropped).max().unwrap_or(0),
            skipped: counted_rows().map(|row| row.skipped).max().unwrap_or(0),
            test_skipped: counted_rows().filter_map(|row| row.test_skipped).max().unwrap_or(0),
            nan_epochs: counted_rows().filter(|row| row.status == Status::NanLoss).count(),
        }
    }
}

/// The first cell of a series in the plan.
fn first_cell(rows: &[TrainingRow], series: &str, varied: &Varied) -> i64 {
    let own = rows.iter().filter(|row| varied.name(row.origin(), true) == series);
    own.map(|row| row.cell).min().unwrap_or(0)
}

fn cell(rows: &[&TrainingRow], varied: &Varied) -> Option<CellEpochs> {
    let first = rows.first()?;
    let seconds: Vec<f64> = rows.iter().filter_map(|row| row.epoch_time_s).collect();
    Some(CellEpochs {
        series: varied.name(first.origin(), true),
        engine: first.engine.clone(),
        batch_size: usize::try_from(first.batch_size).ok()?,
        workers: usize::try_from(first.workers).ok()?,
        prefetch: first.prefetch.and_then(|depth| usize::try_from(depth).ok()),
        examples: usize::try_from(first.examples).ok()?,
        times: Repetitions::of(&seconds)?,
        outliers: outliers(&seconds),
        rows: rows.iter().copied().cloned().collect(),
    })
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    Repetitions::of(&values.collect::<Vec<_>>()).map(|values| values.mean)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// An epoch of the engine `cpu`.
    pub(crate) fn row(batch_size: i64, workers: i64, block: i64, seconds: f64) -> TrainingRow {
        TrainingRow {
            engine: "cpu".into(),
            model: "mnist_cnn".into(),
            dataset: "60,000 drawn digits".into(),
            batch_size,
            workers,
            prefetch: (workers > 0).then_some(2),
            block,
            cell: workers + 10 * batch_size,
            examples: 60_000,
            epoch_time_s: Some(seconds),
            compute_time_s: Some(0.625 * seconds),
            wait_time_s: Some(0.25 * seconds),
            test_accuracy: Some(0.9),
            ..TrainingRow::default()
        }
    }

    #[test]
    fn rows_become_cells_in_order_without_steps_that_do_not_count() {
        let mut rows = vec![row(512, 2, 0, 8.0), row(64, 0, 0, 20.0), row(64, 0, 1, 18.0), row(64, 2, 0, 15.0)];
        rows.push(TrainingRow { warmup: true, ..row(64, 0, 0, 99.0) });
        rows.push(TrainingRow {
            status: Status::Failed,
            error: Some("gone".into()),
            epoch_time_s: None,
            ..row(64, 4, 0, 0.0)
        });
        let study = Results::of(&rows);
        let cells: Vec<(usize, usize, usize)> =
            study.cells.iter().map(|c| (c.batch_size, c.workers, c.times.runs)).collect();
        assert_eq!(cells, [(64, 0, 2), (64, 2, 1), (512, 2, 1)]);
        let first = &study.cells[0];
        assert_eq!((first.times.mean, first.throughput(), first.waiting()), (19.0, 60_000.0 / 19.0, Some(0.25)));
        assert_eq!((study.blocks, study.failed.as_slice()), (2, ["gone".to_owned()].as_slice()));
        assert_eq!(study.cells[1].name(), "cpu, batch size 64, 2 workers");
    }

    #[test]
    fn an_image_that_every_epoch_leaves_out_counts_once() {
        let damaged = |block, epoch| TrainingRow { epoch, skipped: 2, test_skipped: Some(1), ..row(64, 0, block, 9.0) };
        let study = Results::of(&[damaged(0, 0), damaged(0, 1), damaged(1, 0), damaged(1, 1)]);
        assert_eq!((study.skipped, study.test_skipped), (2, 1));
    }
}
