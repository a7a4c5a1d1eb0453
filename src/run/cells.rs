//! The measurements of each cell so far.

use super::RowContext;
use crate::engine::LayerExecution;
use crate::measure::BlockMedian;
use crate::measure::interference::Undisturbed;
use crate::spec::plan::Cell;
use crate::stats::quantile::median;
use crate::stats::repetitions::Repetitions;
use crate::stats::robust::mad;
use crate::store::{CellRow, CountedTimes, Status, StepRow, StopReason};

/// The Iglewicz-Hoaglin limit for the modified z-score (1993, How to detect and handle outliers).
const OUTLIER_Z: f64 = 3.5;

/// The state of one cell during a run.
#[derive(Clone, Debug, Default)]
pub struct CellState {
    visited: Vec<Visited>,
    left: Option<StopReason>,
    /// Whether it was measured precisely enough after the last judged block.
    resolved: bool,
    /// The least half-width to report, in seconds, for a cell that met the stop rule; otherwise 0.
    half_width: f64,
    /// The shortest device time of each layer and direction, in the order of the engine.
    layer_times: Vec<Option<f64>>,
}

/// One visit to a cell.
#[derive(Clone, Debug)]
struct Visited {
    block: i64,
    steps: CountedTimes,
}

impl CellState {
    /// Adds one visit, whose steps that count are `steps`.
    pub(super) fn record(&mut self, visit: &[StepRow], steps: CountedTimes) {
        self.visited.push(Visited { block: visit[0].block, steps });
        // In a visit that was cut short, the row of the failure follows the steps.
        match visit.last().map(|row| row.status) {
            Some(Status::OutOfMemory) => self.left = Some(StopReason::OutOfMemory),
            Some(Status::Failed) => self.left = Some(StopReason::Failed),
            _ => {}
        }
    }

    /// Keeps the shortest time of each layer in this visit and those before.
    pub(super) fn keep_shortest(&mut self, layers: &[LayerExecution]) {
        self.layer_times.resize(layers.len(), None);
        for (shortest, layer) in self.layer_times.iter_mut().zip(layers) {
            *shortest = [*shortest, layer.device_s].into_iter().flatten().reduce(f64::min);
        }
    }

    /// The shortest time of each layer.
    pub(super) fn take_layer_times(&mut self) -> Vec<Option<f64>> {
        std::mem::take(&mut self.layer_times)
    }

    /// The block and the steps that count of each visit, in seconds.
    pub fn visits(&self) -> impl Iterator<Item = (i64, &[f64])> {
        self.visits_until(i64::MAX)
    }

    /// The same up to a block, as was known at its end.
    fn visits_until(&self, block: i64) -> impl Iterator<Item = (i64, &[f64])> {
        let until = move || self.visited.iter().filter(move |visit| visit.block <= block);
        let with_steps = until().filter(|visit| !visit.steps.times.is_empty());
        let undisturbed = Undisturbed::of(with_steps.map(|visit| ((), visit.steps.disturbed)));
        let counted = until().filter(move |visit| undisturbed.counts(&(), visit.steps.disturbed));
        counted.map(|visit| (visit.block, visit.steps.times.as_slice()))
    }

    /// The steps that count of the visit in a block, if there are any.
    pub(super) fn steps_in(&self, block: i64) -> Option<&CountedTimes> {
        let visit = self.visited.iter().find(|visit| visit.block == block && !visit.steps.times.is_empty())?;
        Some(&visit.steps)
    }

    /// The standard deviation of ln of the steps of the visit in a block; `None` below two steps.
    pub(super) fn scatter(&self, block: i64) -> Option<f64> {
        let logs: Vec<f64> = self.steps_in(block)?.times.iter().map(|time| time.ln()).collect();
        Repetitions::of(&logs)?.sd
    }

    /// The centre of the step times and the largest departure from it that is not an outlier; `None` if there are too
    /// few steps, or their times differ too little, to define outliers.
    pub(super) fn ordinary(&self) -> Option<(f64, f64)> {
        let mut times: Vec<f64> = self.visits().flat_map(|(_, times)| times.iter().copied()).collect();
        if times.len() < 3 {
            return None;
        }
        let center = median(&mut times);
        let deviation = mad(&times, center);
        (deviation > 0.0).then_some((center, OUTLIER_Z * deviation / 0.6745))
    }

    /// True where the cell gets no further visit: it failed or met the stop rule.
    pub fn is_left(&self) -> bool {
        self.left.is_some()
    }

    pub(super) fn was_visited(&self, block: usize) -> bool {
        self.visited.iter().any(|visit| visit.block == block as i64)
    }

    pub(super) fn visit_count(&self) -> usize {
        self.visited.len()
    }

    /// The median step time of the last visit, in seconds.
    pub fn last_median(&self) -> Option<f64> {
        let times = &self.visited.last()?.steps.times;
        (!times.is_empty()).then(|| median(&mut times.clone()))
    }

    /// The step time over all blocks and its interval.
    pub fn estimate(&self) -> Option<BlockMedian> {
        self.estimate_until(usize::MAX)
    }

    /// The step time over the blocks up to `block`.
    pub(super) fn estimate_until(&self, block: usize) -> Option<BlockMedian> {
        let until = self.visits_until(i64::try_from(block).unwrap_or(i64::MAX));
        BlockMedian::of(&until.map(|(_, times)| times.to_vec()).collect::<Vec<_>>())
    }

    /// Notes whether the cell is measured precisely enough now; true if it was so before as well.
    pub(super) fn is_resolved_again(&mut self, now: bool) -> bool {
        std::mem::replace(&mut self.resolved, now) && now
    }

    /// Ends the visits to a cell that met the stop rule; its interval is reported at least this wide.
    pub(super) fn leave_known(&mut self, half_width: f64) {
        self.left = Some(StopReason::Converged);
        self.half_width = half_width;
    }

    /// The interval to report, widened for a cell that met the stop rule.
    fn reported(&self) -> Option<BlockMedian> {
        let known = self.estimate()?;
        let (low, high) = (known.median - self.half_width, known.median + self.half_width);
        Some(BlockMedian { low: known.low.min(low), high: known.high.max(high), ..known })
    }

    /// What is stored of it at the end.
    pub(super) fn row(&self, facts: &RowContext, cell: &Cell) -> CellRow {
        let known = self.reported();
        let finite = |value: f64| value.is_finite().then_some(value);
        CellRow {
            run_id: facts.run_id.clone(),
            cell: cell.index as i64,
            engine: facts.engine_of(cell).to_string(),
            model: cell.model.clone(),
            precision: (!facts.engine_of(cell).is_own()).then(|| facts.settings_of(cell).precision.to_string()),
            batch_size: cell.batch_size as i64,
            blocks: known.map_or(0, |known| known.blocks as i64),
            steps: self.visits().map(|(_, times)| times.len() as i64).sum(),
            median_s: known.map(|known| known.median),
            low_s: known.and_then(|known| finite(known.low)),
            high_s: known.and_then(|known| finite(known.high)),
            stop_reason: self.left.unwrap_or(StopReason::Budget),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_time_of_each_layer_is_kept() {
        let visit =
            |times: [Option<f64>; 3]| times.map(|device_s| LayerExecution { device_s, ..LayerExecution::default() });
        let mut state = CellState::default();
        state.keep_shortest(&visit([Some(2.0), None, Some(5.0)]));
        state.keep_shortest(&visit([Some(3.0), Some(1.0), Some(4.0)]));
        assert_eq!(state.take_layer_times(), [Some(2.0), Some(1.0), Some(4.0)]);
    }
}
