//! The knowledge about each cell from all runs.

use std::collections::BTreeMap;

use super::source::{Numbers, SourceRun};
use crate::error::Result;
use crate::measure::BlockMedian;
use crate::os::look;
use crate::stats::quantile::median;
use crate::store::{CellRow, Status, StepRow, StopReason, files, sealed};

/// The cells of all runs, by the device that executed them: runs on different kinds of devices are separate series.
#[derive(Default)]
pub(super) struct Cells {
    cells: BTreeMap<(String, i64), MergedCell>,
    /// The machines' numbers, by name.
    nodes: BTreeMap<String, usize>,
}

#[derive(Default)]
struct MergedCell {
    row: CellRow,
    /// Of each visit that counts its machine and its median.
    visits: Vec<(usize, f64)>,
    reasons: Vec<StopReason>,
}

impl Cells {
    pub fn take(&mut self, visit: &[StepRow]) {
        let Some(first) = visit.first() else { return };
        let count = self.nodes.len();
        let node = *self.nodes.entry(first.node.clone().unwrap_or_default()).or_insert(count);
        let cell = self.cells.entry((first.device_name.clone(), first.cell)).or_default();
        if cell.row.engine.is_empty() {
            cell.row = CellRow {
                cell: first.cell,
                engine: first.engine.clone(),
                model: first.model.clone(),
                precision: precision(first),
                batch_size: first.batch_size,
                ..CellRow::default()
            };
        }
        let mut times = StepRow::counted_times(visit).times;
        cell.row.steps += times.len() as i64;
        if !times.is_empty() {
            cell.visits.push((node, median(&mut times)));
        }
        match visit.last().map(|row| row.status) {
            Some(Status::OutOfMemory) => cell.reasons.push(StopReason::OutOfMemory),
            Some(Status::Failed) => cell.reasons.push(StopReason::Failed),
            _ => {}
        }
    }

    /// Notes why a finished run left its cells; for other runs the reason is that their part is not finished.
    pub fn stopped(&mut self, source: &SourceRun, numbers: &Numbers) -> Result<()> {
        let table = source.path.join(files::CELLS);
        let rows: Vec<CellRow> = if look::is_file(&table)? { sealed(&table)? } else { Vec::new() };
        let device = |row: &CellRow| {
            let engine = source.environment.engines.iter().find(|engine| engine.name == row.engine);
            engine.map(|engine| engine.device_name.clone()).unwrap_or_default()
        };
        for row in rows {
            let Ok(number) = numbers.cell(row.cell) else { continue };
            if let Some(cell) = self.cells.get_mut(&(device(&row), number)) {
                let reason = if source.extent.complete { row.stop_reason } else { StopReason::Budget };
                cell.reasons.push(reason);
            }
        }
        Ok(())
    }

    pub fn into_rows(self, run_id: &str) -> Vec<CellRow> {
        let devices = self.cells.keys().map(|(device, _)| device).collect::<std::collections::BTreeSet<_>>().len();
        let row = |((device, _), cell): ((String, i64), MergedCell)| {
            let run_id = if devices > 1 { format!("{run_id}, {device}") } else { run_id.to_owned() };
            CellRow { run_id, ..cell.known() }
        };
        let mut rows: Vec<CellRow> = self.cells.into_iter().map(row).collect();
        rows.sort_by_key(|row| row.cell);
        rows
    }
}

fn precision(row: &StepRow) -> Option<String> {
    row.axes.of_key("precision").map(|value| value.to_string())
}

impl MergedCell {
    /// If several machines measured it, each counts once, with the median of its visits: the interval is for any
    /// machine of this kind.
    fn known(self) -> CellRow {
        let mut by_node: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
        self.visits.iter().for_each(|(node, median_s)| by_node.entry(*node).or_default().push(*median_s));
        let units: Vec<Vec<f64>> = match by_node.len() {
            1 => self.visits.iter().map(|(_, median_s)| vec![*median_s]).collect(),
            _ => by_node.into_values().collect(),
        };
        let known = BlockMedian::of(&units);
        let finite = |value: f64| value.is_finite().then_some(value);
        let worst = [StopReason::OutOfMemory, StopReason::Failed, StopReason::Budget];
        let reason = worst.into_iter().find(|reason| self.reasons.contains(reason));
        let converged = if self.reasons.is_empty() { StopReason::Budget } else { StopReason::Converged };
        CellRow {
            blocks: self.visits.len() as i64,
            median_s: known.map(|known| known.median),
            low_s: known.and_then(|known| finite(known.low)),
            high_s: known.and_then(|known| finite(known.high)),
            stop_reason: reason.unwrap_or(converged),
            ..self.row
        }
    }
}
