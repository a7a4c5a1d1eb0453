//! Facts about a run's cells that are in its steps but not in its table of cells: the fastest step of a visit, the
//! power, the PCIe link.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Result;
use crate::stats::quantile::median;
use crate::store::{Status, Table};

/// Readings taken during the steps of each cell.
pub(super) struct Beside(BTreeMap<i64, Sums>);

#[derive(Default)]
struct Sums {
    /// The fastest step of each visit.
    fastest: BTreeMap<i64, Fastest>,
    power_w: f64,
    power_count: f64,
    link_width: Option<i64>,
    link_generation: Option<i64>,
}

/// In seconds, of the undisturbed steps that count, and of the disturbed ones without their delays: as in [`crate::store::StepRow::counted_times`].
#[derive(Default)]
struct Fastest {
    quiet: Option<f64>,
    disturbed: Option<f64>,
}

#[derive(Default)]
pub(super) struct Read {
    pub fastest_s: Option<f64>,
    pub power_w: Option<f64>,
    pub link_width: Option<i64>,
    pub link_generation: Option<i64>,
}

impl Beside {
    pub fn read(path: &Path) -> Result<Self> {
        let mut cells: BTreeMap<i64, Sums> = BTreeMap::new();
        let wanted = ["cell", "warmup", "power_w", "pcie_link_width", "pcie_link_generation", "visit", "step_time_s"];
        // Runs of earlier versions lack some of these.
        let further = ["status", "disturbed", "delay_s"];
        Table::scan(path, &[&wanted[..], &further].concat(), &mut |batch| {
            if !wanted.iter().all(|name| batch.has(name)) {
                return Ok(());
            }
            let columns: Vec<Vec<f64>> = wanted.iter().map(|name| batch.numbers(name)).collect::<Result<_>>()?;
            let [cell, warmup, power, width, generation, visit, seconds] = &columns[..] else { return Ok(()) };
            let status = batch.has("status").then(|| batch.distinct("status")).transpose()?;
            let is_ok = |row: usize| {
                status.as_ref().is_none_or(|status| status.distinct[status.codes[row] as usize] == Status::Ok.name())
            };
            let [disturbed, delay] = [numbers(&batch, "disturbed")?, numbers(&batch, "delay_s")?];
            for row in 0..batch.rows() {
                let sums = cells.entry(cell[row] as i64).or_default();
                let whole = |number: f64| Some(number as i64).filter(|_| number.is_finite());
                sums.link_width = sums.link_width.or(whole(width[row]));
                sums.link_generation = sums.link_generation.or(whole(generation[row]));
                if warmup[row] != 0.0 || !is_ok(row) {
                    continue;
                }
                if seconds[row].is_finite() {
                    let fastest = sums.fastest.entry(visit[row] as i64).or_default();
                    let is_disturbed = disturbed.as_ref().is_some_and(|disturbed| disturbed[row] == 1.0);
                    let delay = delay.as_ref().map(|delay| delay[row]).filter(|delay| *delay < seconds[row]);
                    let (least, own) = match is_disturbed {
                        true => (&mut fastest.disturbed, seconds[row] - delay.unwrap_or(0.0)),
                        false => (&mut fastest.quiet, seconds[row]),
                    };
                    *least = Some(least.map_or(own, |least| least.min(own)));
                }
                if power[row].is_finite() {
                    sums.power_w += power[row];
                    sums.power_count += 1.0;
                }
            }
            Ok(())
        })?;
        Ok(Self(cells))
    }

    pub fn of(&self, cell: i64) -> Read {
        let Some(sums) = self.0.get(&cell) else { return Read::default() };
        let power_w = (sums.power_count > 0.0).then(|| sums.power_w / sums.power_count);
        let mut fastest: Vec<f64> = sums.fastest.values().filter_map(|visit| visit.quiet.or(visit.disturbed)).collect();
        let fastest_s = (!fastest.is_empty()).then(|| median(&mut fastest));
        Read { fastest_s, power_w, link_width: sums.link_width, link_generation: sums.link_generation }
    }
}

/// A column that some tables lack.
fn numbers(batch: &Table, name: &str) -> Result<Option<Vec<f64>>> {
    batch.has(name).then(|| batch.numbers(name)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Begin, RunDirectory, StepRow};

    /// Of cell 0 the fastest undisturbed step of the first visit, 2 s, and of the second, which has none, 3 s less a delay of 0.5 s: their median
    /// is 2.25 s.
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
        let disturbed = |row: StepRow, delay_s: Option<f64>| StepRow { disturbed: Some(true), delay_s, ..row };
        let ended = |row: StepRow, status: Status| StepRow { status, ..row };
        let visits = [
            vec![
                StepRow { warmup: true, ..row(0, 0, 0.1) },
                row(0, 0, 2.5),
                row(0, 0, 2.0),
                disturbed(row(0, 0, 1.0), Some(0.5)),
                ended(row(0, 0, 0.5), Status::NanLoss),
            ],
            vec![disturbed(row(0, 1, 3.0), Some(0.5)), disturbed(row(0, 1, 2.75), None)],
            vec![ended(row(1, 2, 0.5), Status::NanLoss), ended(row(1, 2, 0.5), Status::Failed)],
        ];
        visits.iter().for_each(|visit| opened.directory.append(visit).expect("stored"));
        drop(opened);
        let beside = Beside::read(folder.path()).expect("read");
        assert_eq!((beside.of(0).fastest_s, beside.of(0).power_w), (Some(2.25), Some(100.0)));
        assert_eq!((beside.of(1).fastest_s, beside.of(1).power_w), (None, None));
    }
}
