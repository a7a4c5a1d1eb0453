//! Which cells each block visits, and when the run is over.
//!
//! The first blocks visit all cells. If the spec asks to decide on jumps, later blocks visit the cells that undecided boundaries need
//! ([`crate::sequential`]), and all cells again if the detector disagrees with the decisions. If the spec asks for cells, later blocks visit
//! the cells that are not yet measured precisely enough. Everything follows from the spec and the visits of earlier blocks, so a resumed run
//! makes the same decisions.

use super::cells::CellState;
use super::{Disagreement, History};
use crate::detect::{self, detect};
use crate::measure::visit_length;
use crate::random::{Rng, mix};
use crate::sequential::{Boundary, Decision, Sequence, SequenceCell};
use crate::spec::plan::{Cell, Plan};
use crate::spec::{Decide, Measure, StepsPerVisit};
use crate::stats::slow_times::VisitTimes;

/// Fewest batch sizes of a series whose boundaries are tested, as in [`crate::detect::FEWEST_POINTS`]; shorter ones are measured cell by cell.
const FEWEST: usize = 8;
/// A new look is taken after this many visits, or this share of those so far, whichever is more.
const PACE: usize = 35;
const SHARE: f64 = 0.08;
/// Where the detector disagrees with the decisions, a run continues until the series has this many times the visits that it had when all
/// boundaries were first decided.
const AGAIN: usize = 2;
/// The probability that any jump of a series is declared where there is none.
const FALSE_POSITIVE_RATE: f64 = 0.01;

/// The state of the design.
#[derive(Debug)]
pub(super) struct Schedule<'a> {
    plan: &'a Plan,
    measure: &'a Measure,
    /// The series whose boundaries are tested: all, or none where cells are left one by one.
    sequences: Vec<Sequence>,
    /// For each sequence its visits when all its boundaries were decided first.
    decided_after: Vec<Option<usize>>,
    /// For each cell its sequence, and its position there along the batch axis.
    places: Vec<(usize, usize)>,
    /// Whether the next block visits a cell.
    chosen: Vec<bool>,
    /// Visits at the last look.
    looked_at: usize,
    /// Steps that count in each visit of the present block.
    steps: usize,
}

/// How many steps of a visit count, and how many there are before them at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VisitLength {
    pub steps: usize,
    pub warmup: usize,
}

/// What is known at the end of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Knowledge {
    /// The numbers of boundaries that are tested, that are not decided yet, and that no visit decides, because the levels of neighbouring
    /// batch sizes differ by more than the smallest jump without pattern.
    pub boundaries: usize,
    pub open: usize,
    pub rough: usize,
    /// The smallest jump, as a share of the level, that would be seen at every boundary so far.
    pub settled: Option<f64>,
    /// Further visits that are needed until jumps of `smallest_jump` are decided everywhere, at the noise so far.
    pub needed: Option<usize>,
}

impl<'a> Schedule<'a> {
    pub fn new(plan: &'a Plan, measure: &'a Measure) -> Self {
        let (mut places, mut sequences) = (Vec::new(), Vec::new());
        // All series have the same batch sizes.
        let all: Vec<&[Cell]> = plan.cells.chunk_by(same_series).collect();
        if measure.decide == Decide::Jumps && all.iter().all(|series| series.len() >= FEWEST) {
            for series in all {
                let cell = |cell: &Cell| SequenceCell { cell: cell.index, x: cell.batch_size as f64 };
                places.extend((0..series.len()).map(|index| (sequences.len(), index)));
                let cells = series.iter().map(cell).collect();
                sequences.push(Sequence::new(cells, measure.smallest_jump, FALSE_POSITIVE_RATE));
            }
        }
        let steps = match measure.steps_per_visit {
            StepsPerVisit::Auto => StepsPerVisit::FIRST,
            StepsPerVisit::Fixed(steps) => steps,
        };
        let (decided_after, chosen) = (vec![None; sequences.len()], vec![true; plan.cells.len()]);
        Self { plan, measure, sequences, decided_after, places, chosen, looked_at: 0, steps }
    }

    /// How long the visits of a block are.
    pub fn visit_length(&self, block: usize) -> VisitLength {
        // A visit too short to show that it is steady begins with a step that does not count.
        let short = block > 0 && self.measure.steps_per_visit == StepsPerVisit::Auto;
        VisitLength { steps: self.steps, warmup: usize::from(short) }
    }

    /// The most visits that the run makes.
    pub fn budget(&self) -> usize {
        self.measure.blocks.max * self.plan.cells.len()
    }

    /// The cells that a block visits, in its order.
    pub fn order(&self, block: usize, cells: &[CellState]) -> Vec<usize> {
        let mut order = self.plan.order(block);
        order.retain(|&cell| self.chosen[cell] && !cells[cell].is_left());
        order
    }

    /// Decides after a block what is left to do. False if the run is over.
    pub fn continues(&mut self, block: usize, history: &mut History) -> bool {
        if block == 0 && self.measure.steps_per_visit == StepsPerVisit::Auto {
            let series = self.plan.cells.chunk_by(same_series);
            let visits = series.map(|cells| history.first_visits(cells.iter().map(|cell| cell.index)));
            self.steps = visit_length::best(&visits.collect::<Vec<_>>()).unwrap_or(self.steps);
        }
        if self.sequences.is_empty() {
            history.judge(self.measure, block);
            return block + 1 < self.measure.blocks.max && !history.cells.iter().all(CellState::is_left);
        }
        if block + 1 >= self.measure.complete_blocks() {
            self.look(block, history);
        }
        let spent = history.made_until(block) >= self.budget();
        let open = |cell: usize| self.chosen[cell] && !history.cells[cell].is_left();
        !spent && (0..self.chosen.len()).any(open)
    }

    fn look(&mut self, block: usize, history: &History) {
        // A cell that failed is no longer visited, and the boundaries beside it cannot be decided.
        let usable = |visit: &VisitTimes| !history.cells[visit.cell].is_left();
        let visits: Vec<VisitTimes> = history.visits_until(block).filter(usable).collect();
        let due = PACE.max((SHARE * self.looked_at as f64) as usize);
        let first = block + 1 == self.measure.complete_blocks();
        if !first && visits.len() < self.looked_at + due {
            return;
        }
        self.looked_at = visits.len();
        let mut random = Rng::new(mix(self.plan.seed) ^ block as u64);
        let mut of_sequence = vec![Vec::new(); self.sequences.len()];
        for visit in visits {
            let (sequence, index) = self.places[visit.cell];
            of_sequence[sequence].push(VisitTimes { cell: index, ..visit });
        }
        self.chosen.fill(false);
        let decided_after = self.decided_after.iter_mut();
        for ((sequence, visits), decided_after) in self.sequences.iter_mut().zip(of_sequence).zip(decided_after) {
            sequence.look(&visits);
            let mut wanted = sequence.wanted(&mut random);
            let again = |decided_after: &mut Option<usize>| {
                visits.len() < AGAIN * *decided_after.get_or_insert(visits.len())
                    && !agrees(sequence, block, history, self.measure.smallest_jump)
            };
            if wanted.is_empty() && again(decided_after) {
                sequence.reopen();
                wanted = sequence.wanted(&mut random);
            }
            wanted.into_iter().for_each(|cell| self.chosen[cell] = true);
        }
    }

    /// The cells without an open boundary beside them.
    pub fn decided_cells(&self) -> Vec<bool> {
        let mut decided = vec![false; self.chosen.len()];
        if self.looked_at == 0 {
            return decided;
        }
        let all = self.sequences.iter().flat_map(Sequence::decided_cells);
        all.for_each(|cell| decided[cell] = true);
        decided
    }

    /// The decisions at all boundaries that were tested.
    pub fn boundaries(&self) -> Vec<Boundary> {
        if self.looked_at == 0 { Vec::new() } else { self.sequences.iter().flat_map(Sequence::boundaries).collect() }
    }

    pub fn knowledge(&self, history: &History) -> Knowledge {
        if self.looked_at == 0 {
            return Knowledge::default();
        }
        let visits = |cell: usize| history.cells[cell].visit_count();
        let sum = |of: &dyn Fn(&Sequence) -> usize| self.sequences.iter().map(of).sum::<usize>();
        Knowledge {
            boundaries: sum(&Sequence::tested),
            open: sum(&|sequence| sequence.count(Decision::Open)),
            rough: sum(&|sequence| sequence.count(Decision::Rough)),
            settled: self.sequences.iter().map(Sequence::settled).try_fold(0.0, |most: f64, one| Some(most.max(one?))),
            needed: Some(sum(&|sequence| sequence.needed_visits(&visits))),
        }
    }
}

/// Whether the detector shows the same jumps in the visits up to a block as the decisions.
fn agrees(sequence: &Sequence, block: usize, history: &History, smallest_jump: f64) -> bool {
    let cells = sequence.cells();
    let x = |cell: usize| cells.iter().find(|own| own.cell == cell).map(|own| own.x);
    let quick = detect::Settings { resamples: 0, ..detect::Settings::default() };
    let jumps = detect(&history.observations_until(block, x), &quick).jumps;
    let decisions: Vec<_> = sequence.boundaries().map(|boundary| boundary.decision).enumerate().collect();
    let x: Vec<f64> = cells.iter().map(|cell| cell.x).collect();
    Disagreement::between(&decisions, &x, &jumps, smallest_jump).is_none()
}

/// Whether two cells, neighbours in the plan, differ only in the batch size.
fn same_series(a: &Cell, b: &Cell) -> bool {
    a.model == b.model && a.engine == b.engine && a.workload.settings == b.workload.settings
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;
    use crate::run::simulation::simulate;
    use crate::spec::Experiment;
    use crate::store::StopReason;

    fn experiment(lines: &str) -> Experiment {
        let text = format!(
            "version = 1\nname = \"a\"\n[sweep]\nbatch_size = \"1..=40\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
             jumps = [{{ after = 16, size = \"1ms\" }}]\nnoise = {{ sd = \"0.5%\", visits = \"1%\" }}\n\
             [measure]\nsteps_per_visit = 1\nsmallest_jump = \"2%\"\nseed = 4\n{lines}\n"
        );
        Experiment::parse(&text, "a.toml").expect("valid")
    }

    /// Resuming replays the decisions from the rows: each block visits just the cells that it visited in the run.
    #[test]
    fn a_resumed_run_makes_the_same_decisions() {
        let experiment = experiment("");
        let simulated = simulate(&experiment, None).expect("runs");
        let mut blocks: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for row in &simulated.rows {
            blocks.entry(row.block as usize).or_default().insert(row.cell as usize);
        }
        let plan = Plan::new(&experiment).expect("plans");
        let mut history = History::new(&plan);
        simulated.rows.chunk_by(|a, b| a.visit == b.visit).for_each(|visit| history.record(visit));
        let mut schedule = Schedule::new(&plan, &experiment.measure);
        let mut block = 0;
        loop {
            let cells: BTreeSet<usize> = schedule.order(block, &history.cells).into_iter().collect();
            assert_eq!(Some(&cells), blocks.get(&block), "block {block}");
            if !schedule.continues(block, &mut history) {
                break;
            }
            block += 1;
        }
        assert_eq!(blocks.len(), block + 1);
        assert!(blocks[&3].len() == 40 && blocks[&block].len() < 40, "{blocks:?}");
        let knowledge = schedule.knowledge(&history);
        assert_eq!(knowledge, simulated.outcome.knowledge);
        assert_eq!((knowledge.open, knowledge.rough), (0, 0));
        assert!(simulated.outcome.cells.iter().all(|cell| cell.stop_reason == StopReason::Converged));
    }

    #[test]
    fn cells_are_visited_in_complete_blocks_where_the_spec_asks_for_cells_or_a_number_of_blocks() {
        for (lines, blocks) in [("decide = \"cells\"\nblocks = { max = 8 }", 8), ("blocks = { min = 6, max = 6 }", 6)] {
            let simulated = simulate(&experiment(lines), None).expect("runs");
            assert_eq!(simulated.rows.iter().map(|row| row.visit).max(), Some(40 * blocks - 1), "{lines}");
        }
    }

    #[test]
    fn the_budget_of_visits_ends_a_run_that_cannot_decide() {
        let mut experiment = experiment("blocks = { max = 6 }");
        experiment.measure.smallest_jump = 0.001;
        let simulated = simulate(&experiment, None).expect("runs");
        let visits = simulated.rows.iter().map(|row| row.visit).max().expect("visits") + 1;
        assert!((240..280).contains(&visits), "{visits}");
        let Knowledge { open, settled, needed, .. } = simulated.outcome.knowledge;
        assert!(open > 0 && settled.is_some_and(|jump| jump > 0.01), "{settled:?}");
        // Visits scatter by 1.1 %: jumps of 0.1 % need some hundred times what those of 1 % take.
        assert!(needed.is_some_and(|visits| visits > 10_000), "{needed:?}");
    }
}
