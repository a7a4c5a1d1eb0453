//! The state of a run: what was visited, and how precisely each cell is measured.

use std::collections::BTreeSet;

use super::cells::CellState;
use super::rows::VisitPosition;
use crate::detect::Observation;
use crate::device::throttle;
use crate::measure::interference::Undisturbed;
use crate::measure::precision::WIDTH_SHARE;
use crate::measure::visit_length::FirstVisit;
use crate::settings::EngineName;
use crate::spec::plan::{Cell, Plan};
use crate::spec::{Decide, Measure};
use crate::stats::quantile::middle_half;
use crate::stats::slow_times::VisitTimes;
use crate::store::{Status, StepRow};

/// The part of a run's visits that the loop needs.
#[derive(Debug)]
pub struct History {
    /// In the order of the plan.
    pub(super) cells: Vec<CellState>,
    /// Every visit with a step that counts, in the order of the run.
    visits: Vec<VisitRecord>,
    pub(super) next_visit: i64,
    next_order: i64,
    /// Visits of this process.
    pub(super) visits_here: usize,
    /// The number of cells that are still measured, and of those that this block has not visited yet.
    pub(super) open: usize,
    pub(super) left_in_block: usize,
    /// The networks that this process has already run, by engine.
    warm: BTreeSet<(EngineName, String)>,
    pub(super) tally: Tally,
    /// Whether other programs held up the steps of the last visit of this process.
    pub(super) held_up: bool,
    /// What the first cells failed of, and how many in a row, while none was measured.
    alike: (String, usize),
}

/// The progress of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    pub block: usize,
    /// Visits done, including those of earlier processes.
    pub visits: usize,
    pub elapsed_s: f64,
    /// Time left at the present rate, at most until the time limit.
    pub left_s: f64,
}

/// A run ends once this many cells have failed with the same message and none was measured.
const ALIKE: usize = 5;

/// What a visit measured.
#[derive(Clone, Copy, Debug)]
struct VisitRecord {
    block: i64,
    times: VisitTimes,
    /// Whether all its steps were disturbed.
    disturbed: bool,
    /// Unix time at its start, where known, and the seconds of its steps that count.
    started_s: Option<f64>,
    counted_s: f64,
    /// The seconds that it took to prepare, and the number of steps that count, if some step was disturbed: the rest of its time went into looking for undisturbed ones.
    sought: Option<(f64, usize)>,
}

/// Counts over all steps, for the warnings at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub steps: usize,
    /// Steps while the device held its clocks down.
    pub throttled: usize,
    /// Steps whose loss was infinite or not a number.
    pub nan_loss: usize,
    /// Visits in which that was so at the first step, before any update.
    pub nan_from_start: usize,
    /// Visits of this process in which the step time never became steady.
    pub unsteady_visits: usize,
    /// Steps after their visit's warm-up of which is known whether another program disturbed them, and those that it did.
    pub witnessed: usize,
    pub disturbed: usize,
    /// Visits all of whose steps were disturbed.
    pub disturbed_visits: usize,
}

impl History {
    /// The state before the first visit.
    pub fn new(plan: &Plan) -> Self {
        Self {
            cells: vec![CellState::default(); plan.cells.len()],
            visits: Vec::new(),
            next_visit: 0,
            next_order: 0,
            visits_here: 0,
            open: plan.cells.len(),
            left_in_block: plan.cells.len(),
            warm: BTreeSet::new(),
            tally: Tally::default(),
            held_up: false,
            alike: (String::new(), 0),
        }
    }

    /// Adds the rows of one visit, which has just ended or was stored by an earlier process.
    pub fn record(&mut self, visit: &[StepRow]) {
        let Some(last) = visit.last() else { return };
        self.next_visit = self.next_visit.max(last.visit + 1);
        self.next_order = self.next_order.max(last.order + 1);
        for row in visit {
            self.tally.steps += 1;
            self.tally.throttled += usize::from(row.throttle_reasons.as_deref().is_some_and(throttle::slows));
            self.tally.nan_loss += usize::from(row.status == Status::NanLoss);
            self.tally.witnessed += usize::from(row.is_counted() && row.disturbed.is_some());
            self.tally.disturbed += usize::from(row.is_counted() && row.disturbed == Some(true));
            self.tally.nan_from_start += usize::from(row.status == Status::NanLoss && row.step == 0);
        }
        // A cell that the plan does not have can only come from a damaged folder.
        let Ok(cell) = usize::try_from(last.cell) else { return };
        let Some(state) = self.cells.get_mut(cell) else { return };
        let steps = StepRow::counted_times(visit);
        if let Some(fastest_s) = steps.times.iter().copied().reduce(f64::min) {
            let (block, started_s, disturbed) = (visit[0].block, visit[0].started_s, steps.disturbed);
            self.tally.disturbed_visits += usize::from(disturbed);
            let middle = middle_half(&mut steps.times.clone()).ln();
            let times = VisitTimes { cell, middle, fastest: fastest_s.ln() };
            let sought = visit.iter().any(|row| row.disturbed == Some(true));
            let sought = visit[0].prepare_time_s.filter(|_| sought).map(|prepare_s| (prepare_s, steps.times.len()));
            let counted_s = steps.times.iter().sum();
            self.visits.push(VisitRecord { block, times, disturbed, started_s, counted_s, sought });
        }
        state.record(visit, steps);
        self.left_in_block = self.left_in_block.saturating_sub(1);
        self.open -= usize::from(state.is_left());
    }

    /// A block begins that visits the cells in `order`.
    pub(super) fn begin_block(&mut self, block: usize, order: &[usize]) {
        self.open = self.cells.iter().filter(|cell| !cell.is_left()).count();
        self.left_in_block = order.iter().filter(|cell| !self.cells[**cell].was_visited(block)).count();
    }

    /// Notes that a cell failed; whether nothing was measured so far and the first cells all failed of the same. The others would, too, each with a new
    /// process of a person's own step.
    pub(super) fn all_fail_alike(&mut self, what: &str) -> bool {
        let known = if self.alike.0 == what { self.alike.1 } else { 0 };
        self.alike = (what.to_owned(), known + 1);
        self.visits.is_empty() && self.alike.1 >= ALIKE
    }

    pub(super) fn visit_count(&self) -> usize {
        self.next_visit as usize
    }

    /// The visits up to a block that count, in the order of the run.
    pub(super) fn visits_until(&self, block: usize) -> impl Iterator<Item = VisitTimes> {
        self.counted_until(block).map(|visit| visit.times)
    }

    /// The number of visits up to a block.
    pub(super) fn made_until(&self, block: usize) -> usize {
        self.until(block).count()
    }

    fn until(&self, block: usize) -> impl Iterator<Item = &VisitRecord> {
        self.visits.iter().filter(move |visit| visit.block <= block as i64)
    }

    fn counted_until(&self, block: usize) -> impl Iterator<Item = &VisitRecord> {
        let undisturbed = Undisturbed::of(self.until(block).map(|visit| (visit.times.cell, visit.disturbed)));
        self.until(block).filter(move |visit| undisturbed.counts(&visit.times.cell, visit.disturbed))
    }

    /// The counted steps of some cells in the visits up to a block, as input of the detector; `x` gives the place of a cell, or `None` for a cell
    /// that is left out.
    pub(super) fn observations_until(&self, block: usize, x: impl Fn(usize) -> Option<f64>) -> Vec<Observation> {
        let whole = Undisturbed::of(self.until(block).map(|visit| (visit.times.cell, visit.disturbed))).suffice();
        let until = self.counted_until(block).enumerate();
        let of_visit = |(order, visit): (usize, &VisitRecord)| {
            let (x, own) = (x(visit.times.cell)?, visit.block);
            let steps = self.cells[visit.times.cell].steps_in(own)?;
            let times = if whole { &steps.times } else { &steps.less_delays };
            let seen = move |&y: &f64| {
                let (order, block) = (Some(order as f64), Some(own as u32));
                Observation { order, block, ..Observation::new(x, y) }
            };
            Some(times.iter().map(seen))
        };
        until.filter_map(of_visit).flatten().collect()
    }

    /// The visits of the first block to the cells in `cells`, in their order; cells without one are passed over.
    pub(super) fn first_visits(&self, cells: impl Iterator<Item = usize>) -> Vec<FirstVisit> {
        let first = |cell: usize| self.visits.iter().position(|visit| visit.block == 0 && visit.times.cell == cell);
        let summary = |(cell, place): (usize, usize)| {
            let visit = &self.visits[place];
            let next = self.visits.get(place + 1).and_then(|next| next.started_s);
            let took_s = next.zip(visit.started_s).map(|(next, own)| next - own);
            let (overhead_s, step_s) = match (visit.sought, took_s) {
                (Some((prepare_s, steps)), Some(took_s)) => (Some(prepare_s), (took_s - prepare_s) / steps as f64),
                _ => (took_s.map(|took_s| took_s - visit.counted_s), visit.times.middle.exp()),
            };
            Some(FirstVisit { level: visit.times.middle, scatter: self.cells[cell].scatter(0)?, overhead_s, step_s })
        };
        cells.filter_map(|cell| Some((cell, first(cell)?))).filter_map(summary).collect()
    }

    /// Notes that nothing is left to decide about some cells.
    pub(super) fn leave_decided(&mut self, decided: impl Fn(usize) -> bool) {
        for (index, state) in self.cells.iter_mut().enumerate() {
            if !state.is_left() && decided(index) {
                state.leave_known(0.0);
            }
        }
    }

    /// `budget`: the most visits of the run.
    pub(super) fn progress(&self, measure: &Measure, budget: usize, block: usize, elapsed_s: f64) -> Progress {
        let rest = self.left_in_block + self.open * measure.blocks.max.saturating_sub(block + 1);
        let visits_left = match measure.decide {
            Decide::Cells => rest,
            Decide::Jumps => budget.saturating_sub(self.next_visit as usize),
        };
        let pace = elapsed_s / self.visits_here.max(1) as f64;
        let left_s = (pace * visits_left as f64).min((measure.time_limit_s - elapsed_s).max(0.0));
        Progress { block, visits: self.next_visit as usize, elapsed_s, left_s }
    }

    pub(super) fn next_place(&self, block: usize) -> VisitPosition {
        VisitPosition { block, visit: self.next_visit, first_order: self.next_order }
    }

    /// False at the first visit to a network in this process, when its memory, caches and algorithms are still cold.
    pub(super) fn is_warm(&self, cell: &Cell) -> bool {
        self.warm.contains(&(cell.engine, cell.model.clone()))
    }

    pub(super) fn is_now_warm(&mut self, cell: &Cell) {
        self.warm.insert((cell.engine, cell.model.clone()));
    }

    /// After a block: decides which cells are measured precisely enough. It uses this block and earlier ones only, so that a
    /// resumed run decides like one that was never interrupted.
    ///
    /// A cell that stops at the first narrow interval often stops because the interval is narrow by chance. So the interval
    /// must be narrow after two blocks in a row, and the reported width is the mean of the computed width and the target width
    /// of the stop rule. (In [`crate::run::simulation::coverage`] an interval of the computed width covers the truth in 92 to 95 % of
    /// cases, one of the target width, the sequential interval of fixed width of Chow & Robbins 1965, in 95 to 98 %.)
    pub(super) fn judge(&mut self, measure: &Measure, block: usize) {
        if block + 2 < measure.blocks.min {
            return;
        }
        for state in self.cells.iter_mut().filter(|state| !state.is_left()) {
            let known = state.estimate_until(block).filter(|known| known.resolves(measure.smallest_jump));
            let twice = state.is_resolved_again(known.is_some());
            if let Some(known) = known.filter(|_| twice && block + 1 >= measure.blocks.min) {
                let asked = 0.5 * WIDTH_SHARE * measure.smallest_jump * known.median;
                let half_way = 0.5 * (asked + 0.5 * (known.high - known.low));
                state.leave_known(if block + 1 > measure.blocks.min { half_way } else { 0.0 });
            }
        }
    }
}
