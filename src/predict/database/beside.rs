//! Facts about a run's cells that are in its steps but not in its table of cells: the fastest step of a visit, the
//! power, the PCIe link.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::{Error, Result};
use crate::stats::quantile::median;
use crate::store::{StepRow, Table, visits_of};

/// Readings taken during the steps of a cell.
#[derive(Default)]
pub(super) struct Beside {
    /// The fastest of the steps of each visit that count, in seconds.
    fastest: Vec<f64>,
    power_w: Vec<f64>,
    pub link_width: Option<i64>,
    pub link_generation: Option<i64>,
}

impl Beside {
    /// By cell.
    pub fn read(path: &Path) -> Result<BTreeMap<i64, Self>> {
        // A run that lost its table of steps is refused.
        Table::names(path)?;
        let (mut cells, mut damaged) = (BTreeMap::new(), Vec::new());
        visits_of(path, &mut damaged, &mut |visit: Vec<StepRow>| {
            let Some(first) = visit.first() else { return Ok(()) };
            let cell: &mut Self = cells.entry(first.cell).or_default();
            cell.fastest.extend(StepRow::counted_times(&visit).times.into_iter().reduce(f64::min));
            for row in &visit {
                cell.link_width = cell.link_width.or(row.pcie_link_width);
                cell.link_generation = cell.link_generation.or(row.pcie_link_generation);
                cell.power_w.extend(row.power_w.filter(|_| row.is_counted()));
            }
            Ok(())
        })?;
        damaged.pop().map_or(Ok(cells), |what| Err(Error::data(what)))
    }

    pub fn fastest_s(&self) -> Option<f64> {
        (!self.fastest.is_empty()).then(|| median(&mut self.fastest.clone()))
    }

    pub fn power_w(&self) -> Option<f64> {
        (!self.power_w.is_empty()).then(|| self.power_w.iter().sum::<f64>() / self.power_w.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Begin, RunDirectory, Status};

    /// Of cell 0 the fastest step of the first visit, 2 s, and of the second, which has none without a disturbance, 3 s less a delay of 0.5 s: their
    /// median is 2.25 s.
    #[test]
    fn only_steps_that_count_are_the_fastest() {
        let folder = tempfile::tempdir().expect("a folder");
        let opened = RunDirectory::open(folder.path(), "version = 1\n", Begin::Anew).expect("opens");
        let row = |cell: i64, visit: i64, seconds: f64| StepRow {
            cell,
            visit,
            step_time_s: Some(seconds),
            power_w: Some(100.0),
            ..StepRow::default()
        };
        let disturbed = |seconds: f64| StepRow { disturbed: Some(true), delay_s: Some(0.5), ..row(0, 1, seconds) };
        let failed = |row: StepRow| StepRow { status: Status::NanLoss, power_w: Some(900.0), ..row };
        let visits = [
            vec![StepRow { warmup: true, ..row(0, 0, 0.1) }, row(0, 0, 2.5), row(0, 0, 2.0), failed(row(0, 0, 0.5))],
            vec![disturbed(3.0), disturbed(3.25)],
            vec![failed(row(1, 2, 0.5))],
        ];
        visits.iter().for_each(|visit| opened.directory.append(visit).expect("stored"));
        drop(opened);
        let beside = Beside::read(folder.path()).expect("read");
        assert_eq!((beside[&0].fastest_s(), beside[&0].power_w()), (Some(2.25), Some(100.0)));
        assert_eq!((beside[&1].fastest_s(), beside[&1].power_w()), (None, None));
        let lost = tempfile::tempdir().expect("a folder");
        assert!(Beside::read(lost.path()).is_err_and(|error| error.to_string().contains("no steps.parquet")));
    }
}
