//! Which boundaries between batch sizes are decided, and where the next visits go.
//!
//! The question of a sweep is whether there is a jump of at least `smallest_jump`, and where. Between jumps the curve is smooth, so
//! neighbours inform each other; most boundaries are decided after a few visits, and further visits go to the undecided ones. The parts of
//! each look at the data:
//!
//! - [`levels`]: each cell's level and its variance, the factor common to all cells removed.
//! - [`boundary`]: the gap at a boundary between two short curves, under several shapes of them, and the evidence for and against a jump.
//! - this file: the decisions, which are final unless other evidence contradicts them ([`Sequence::reopen`]), and the cells that the open
//!   boundaries need.
//!
//! Looking again and again does not raise the rate of false alarms: a jump is declared from a test martingale (an e-value), which exceeds
//! N / alpha at any time with probability alpha / N at most (Wald 1945; Robbins 1970; Ville's inequality), whatever the rule by which visits
//! are chosen. The smallest over several shapes is valid if any of the shapes is true (Wasserman, Ramdas & Balakrishnan 2020). Both hold
//! exactly for known variances; they are estimated here, so `simulation::decisions` of batchstep counts what the rule keeps.

mod boundary;
mod levels;

use std::collections::BTreeSet;

use boundary::{Evidence, Point, Window};
use levels::{Level, Levels, levels};

use crate::random::Rng;
use crate::stats::{robust, slow_times::VisitTimes};

/// Cells on each side of a boundary that its test uses.
const REACH: usize = 6;
/// Fewest cells on a side.
const FEWEST: usize = 3;
/// A boundary whose gap exceeds this many standard errors, more than its neighbours, may be a jump: others stop there.
const SUSPECT_SIGMAS: f64 = 3.0;
/// Boundaries this close to a jump cannot be tested.
const NEAR_JUMP: usize = 2;
/// Cells that are visited at least: with fewer, the common factor is lost.
const MIN_CELLS: usize = 8;
/// Where cells share a factor, one further cell (an anchor) is drawn for each group of this many wanted cells. Without anchors the cells
/// that are still visited share an error relative to all others, which only their early visits keep small, and the detector takes them
/// for a block of disturbed cells. (Without anchors, 5 of 100 simulated runs under drift ended with such a false jump; not kept as a test.)
const ANCHORS: usize = 3;
/// The probability that a jump of the smallest size is ruled out, as stated. Counted: 4 to 8 % on lines, but 11 % on a parabola and 21 % amid
/// smaller steps (docs/simulations.md).
const MISS: f64 = 0.05;

/// The information about a gap, in units of 1 / jump^2, at which a jump is typically ruled out: where
/// `jump |d| I - jump^2 I / 2 = ln 0.05` with |d| = 0.8 / sqrt(I), the mean for a gap of 0.
const NULL_INFORMATION: f64 = 11.4;

/// A boundary that is open although it has that information has a gap that is not small: it takes this share of its visits again at least.
const LEAST_MORE: f64 = 0.25;

/// Visits that are made for each that those figures ask for: company and anchors, and gaps that are not small by chance. Counted in simulated runs
/// (`simulation::decisions`, where a test holds it).
const BESIDES: f64 = 1.6;

/// The decision on one boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    Open,
    /// A jump of either sign.
    Jump,
    /// None of the smallest size or more.
    NoJump,
    /// Too close to a jump, or to an end of the axis, to be tested.
    Untestable,
    /// The curve is rougher than the smallest jump: no number of visits decides.
    Rough,
}

/// The boundary between a cell and the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Boundary {
    /// The cell of the smaller batch size.
    pub below: usize,
    pub decision: Decision,
}

/// One series: its cells along the batch axis, and the boundaries between them.
#[derive(Clone, Debug)]
pub struct Sequence {
    cells: Vec<SequenceCell>,
    /// Entry k is of the boundary between the k-th cell and the next.
    decisions: Vec<Decision>,
    /// The standard error of a step, and the z-value of the gap, at each boundary at the last look.
    seen: Vec<Seen>,
    /// Whether the last look found a factor common to all cells.
    shares_a_factor: bool,
    /// Positions of the cells that, at the last look, had too few visits outside slow times.
    lacking: Vec<usize>,
    /// Whether the next look decides anew, and all cells are visited until then.
    reopened: bool,
    smallest_jump: f64,
    false_positive_rate: f64,
}

/// A cell and its batch size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SequenceCell {
    pub cell: usize,
    pub x: f64,
}

/// What the last look saw at a boundary.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    z: f64,
    error: f64,
}

impl Sequence {
    /// A series of those cells, ascending in x.
    pub fn new(cells: Vec<SequenceCell>, smallest_jump: f64, false_positive_rate: f64) -> Self {
        let boundaries = cells.len().saturating_sub(1);
        Self {
            cells,
            decisions: vec![Decision::Open; boundaries],
            seen: vec![Seen::default(); boundaries],
            shares_a_factor: false,
            lacking: Vec::new(),
            reopened: false,
            smallest_jump,
            false_positive_rate,
        }
    }

    /// Reopens all decisions because other evidence contradicts them: all cells are visited until the next look, which decides from all visits as
    /// if it were the first. A test martingale may be looked at once more.
    pub fn reopen(&mut self) {
        self.reopened = true;
    }

    /// The cells along the axis.
    pub fn cells(&self) -> &[SequenceCell] {
        &self.cells
    }

    /// Boundaries at which a test is possible, with the present jumps.
    pub fn tested(&self) -> usize {
        self.decisions.len() - self.count(Decision::Untestable)
    }

    /// How many boundaries have that decision.
    pub fn count(&self, decision: Decision) -> usize {
        self.decisions.iter().filter(|own| **own == decision).count()
    }

    /// The decisions so far, along the axis.
    pub fn boundaries(&self) -> impl Iterator<Item = Boundary> {
        let of = |(cell, decision): (&SequenceCell, &Decision)| Boundary { below: cell.cell, decision: *decision };
        self.cells.iter().zip(&self.decisions).map(of)
    }

    /// The cells whose boundaries on both sides are answered.
    pub fn decided_cells(&self) -> impl Iterator<Item = usize> {
        let open = |k: usize| matches!(self.decisions.get(k), Some(Decision::Open | Decision::Rough));
        let beside = move |i: usize| open(i) || (i > 0 && open(i - 1));
        let decided = move |(i, _): &(usize, &SequenceCell)| !beside(*i);
        self.cells.iter().enumerate().filter(decided).map(|(_, cell)| cell.cell)
    }

    /// The smallest jump, as a share of the level, that could be ruled out at every boundary without one; `None` before the first look.
    pub fn settled(&self) -> Option<f64> {
        let jumps = self.decisions.iter().zip(&self.seen).filter(|(decision, _)| **decision != Decision::Jump);
        let tested = jumps.map(|(_, seen)| seen).filter(|seen| seen.error > 0.0);
        // The larger root of jump |d| I - jump^2 I / 2 = ln 0.05 in the jump. A gap beyond SUSPECT_SIGMAS is a jump to be shown and not one to be
        // ruled out; its own size would only say how large it is.
        let ruled_out = |seen: &Seen| {
            let z = seen.z.abs().min(SUSPECT_SIGMAS);
            seen.error * (z + (z * z - 2.0 * MISS.ln()).sqrt())
        };
        tested.map(ruled_out).reduce(f64::max)
    }

    /// Further visits until the open boundaries are decided, if none of them has a jump: the variance of a gap falls with the visits to the cells
    /// beside it. `visits` says how many a cell has.
    pub fn needed_visits(&self, visits: &dyn Fn(usize) -> usize) -> usize {
        let mut needed = vec![0.0; self.cells.len()];
        for (k, seen) in self.seen.iter().enumerate().filter(|(k, _)| self.decisions[*k] == Decision::Open) {
            let more = NULL_INFORMATION * (seen.error / self.smallest_jump).powi(2) - 1.0;
            let more = more.max(LEAST_MORE);
            for i in [k, k + 1] {
                needed[i] = f64::max(needed[i], more * visits(self.cells[i].cell) as f64);
            }
        }
        (BESIDES * needed.iter().sum::<f64>()).ceil() as usize
    }

    /// Looks at all visits to this series so far, in the order of the run; their `cell` is the position in the series. Cells without visits
    /// (their first one failed) are passed over.
    pub fn look(&mut self, visits: &[VisitTimes]) {
        let Levels { known, factor, lacking, rough_again } = levels(visits, self.cells.len());
        (self.shares_a_factor, self.lacking) = (factor, lacking);
        if std::mem::take(&mut self.reopened) {
            self.decisions.fill(Decision::Open);
        }
        loop {
            self.close_untestable(&known);
            let tests = self.tests(&known);
            match self.strongest_jump(&tests) {
                Some(k) => self.decisions[k] = Decision::Jump,
                None => {
                    self.rule_out(&tests, rough_again);
                    break;
                }
            }
        }
    }

    /// The boundaries' tests: windows end at jumps, and at suspects, which are found first.
    fn tests(&mut self, known: &[Option<Level>]) -> Vec<Option<Evidence>> {
        let jumps: Vec<bool> = self.decisions.iter().map(|d| *d == Decision::Jump).collect();
        let first: Vec<Option<Evidence>> = (0..jumps.len()).map(|k| self.test(k, known, &jumps)).collect();
        let z = |k: usize| first[k].as_ref().map_or(0.0, |test| test.z().abs());
        let suspect = |k: usize| {
            self.decisions[k] == Decision::Open
                && z(k) > SUSPECT_SIGMAS
                && near(k, REACH, first.len()).all(|j| z(j) <= z(k))
        };
        let ends: Vec<bool> = (0..first.len()).map(|k| jumps[k] || suspect(k)).collect();
        let second: Vec<Option<Evidence>> = (0..jumps.len()).map(|k| self.test(k, known, &ends)).collect();
        for (k, seen) in self.seen.iter_mut().enumerate() {
            let test = second[k].as_ref().or(first[k].as_ref());
            *seen = test.map_or(Seen::default(), |test| Seen { z: test.z(), error: test.error() });
        }
        // A boundary that a suspect leaves without room keeps its first test.
        second.into_iter().zip(first).map(|(second, first)| second.or(first)).collect()
    }

    /// The test at boundary k, with windows that end at the boundaries in `ends`.
    fn test(&self, k: usize, known: &[Option<Level>], ends: &[bool]) -> Option<Evidence> {
        let seen = |cells: &mut dyn Iterator<Item = usize>| -> Vec<Point> {
            let point = |i: usize| known[i].map(|level| Point { x: self.cells[i].x, level });
            cells.filter_map(point).take(REACH).collect()
        };
        let window = Window {
            left: seen(&mut (0..=k).rev().take_while(|&i| i == k || !ends[i])),
            right: seen(&mut (k + 1..self.cells.len()).take_while(|&i| i == k + 1 || !ends[i - 1])),
        };
        if window.left.len().min(window.right.len()) < FEWEST { None } else { window.evidence() }
    }

    fn close_untestable(&mut self, known: &[Option<Level>]) {
        let jumps: Vec<bool> = self.decisions.iter().map(|d| *d == Decision::Jump).collect();
        for k in 0..self.decisions.len() {
            let beside = near(k, NEAR_JUMP, jumps.len()).any(|j| jumps[j]);
            let missing = known[k].is_none() || known[k + 1].is_none();
            if self.decisions[k] == Decision::Open && (beside || missing || self.test(k, known, &jumps).is_none()) {
                self.decisions[k] = Decision::Untestable;
            }
        }
    }

    fn strongest_jump(&self, tests: &[Option<Evidence>]) -> Option<usize> {
        let z = |k: usize| tests[k].as_ref().map_or(0.0, |test| test.z().abs());
        let needed = (self.decisions.len() as f64 / self.false_positive_rate).ln();
        let is_jump = |k: &usize| {
            self.decisions[*k] == Decision::Open
                && near(*k, REACH, tests.len()).all(|j| z(j) <= z(*k))
                && tests[*k].as_ref().is_some_and(|test| test.for_jump(self.smallest_jump) >= needed)
        };
        (0..tests.len()).filter(is_jump).max_by(|a, b| z(*a).total_cmp(&z(*b)))
    }

    fn rule_out(&mut self, tests: &[Option<Evidence>], rough_again: bool) {
        for (decision, test) in self.decisions.iter_mut().zip(tests) {
            let Some(test) = test.as_ref().filter(|_| *decision == Decision::Open) else { continue };
            if test.against_jump(self.smallest_jump) <= MISS.ln() {
                *decision = Decision::NoJump;
            } else if rough_again && test.is_limited_by_roughness(self.smallest_jump) {
                *decision = Decision::Rough;
            }
        }
    }

    /// The cells that the next block visits; empty where everything is decided. `random` draws the anchors.
    pub fn wanted(&self, random: &mut Rng) -> BTreeSet<usize> {
        if self.reopened {
            return self.cells.iter().map(|cell| cell.cell).collect();
        }
        let last = self.cells.len().saturating_sub(1);
        let mut wanted = BTreeSet::new();
        for (k, seen) in self.seen.iter().enumerate().filter(|(k, _)| self.decisions[*k] == Decision::Open) {
            let around = if seen.z.abs() > SUSPECT_SIGMAS { 2 } else { 0 };
            wanted.extend(k.saturating_sub(around)..=(k + 1 + around).min(last));
        }
        if !wanted.is_empty() {
            wanted.extend(&self.lacking);
        }
        // The neighbours of wanted cells are the most informative.
        while !wanted.is_empty() && wanted.len() < MIN_CELLS.min(self.cells.len()) {
            let next = (0..self.cells.len()).filter(|i| !wanted.contains(i));
            let distance = |i: &usize| wanted.iter().map(|w: &usize| w.abs_diff(*i)).min();
            let Some(nearest) = next.min_by_key(distance) else { break };
            wanted.insert(nearest);
        }
        if self.shares_a_factor && !wanted.is_empty() {
            let mut others: Vec<usize> = (0..self.cells.len()).filter(|i| !wanted.contains(i)).collect();
            random.shuffle(&mut others);
            wanted.extend(others.into_iter().take(wanted.len().div_ceil(ANCHORS)));
        }
        wanted.into_iter().map(|i| self.cells[i].cell).collect()
    }
}

/// The boundaries within `reach` of boundary k, without k.
fn near(k: usize, reach: usize, count: usize) -> impl Iterator<Item = usize> {
    robust::near(k, reach, count).filter(move |j| *j != k)
}

#[cfg(test)]
mod tests;
