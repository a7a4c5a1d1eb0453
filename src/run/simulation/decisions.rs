//! What does it take until jumps are shown or ruled out, and how often is a jump shown that is not there?

use super::{SimulatedRun, run};
use crate::detect::{Jump, Settings, detect};
use crate::error::Result;
use crate::run::{Boundary, Decision};

/// The noise of a simulated machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// Steps vary by 0.5 %, visits by 1 %.
    Normal,
    /// The same with Student's t of 3 degrees of freedom.
    HeavyTailed,
    /// And slower by 2 % as it warms up.
    Drifting,
    /// And slower by 4 % for 30 % of the time, twenty steps at a time.
    TwoState,
    /// Steps vary by 3 %, visits by 4 %, and a factor that all share by 10 % over 150 steps.
    CommonFactor,
}

impl Machine {
    pub const ALL: [Self; 5] = [Self::Normal, Self::HeavyTailed, Self::Drifting, Self::TwoState, Self::CommonFactor];

    pub fn name(self) -> &'static str {
        match self {
            Self::Normal => "normal",
            Self::HeavyTailed => "heavy-tailed",
            Self::Drifting => "drifting",
            Self::TwoState => "two-state",
            Self::CommonFactor => "common factor",
        }
    }

    /// The jump that is asked for, as a share of the step time.
    pub fn jump(self) -> f64 {
        if self == Self::CommonFactor { 0.05 } else { 0.01 }
    }

    fn lines(self) -> &'static str {
        match self {
            Self::Normal => "noise = { sd = \"0.5%\", visits = \"1%\" }",
            Self::HeavyTailed => "noise = { sd = \"0.5%\", visits = \"1%\", heavy_tails = \"100%\" }",
            Self::Drifting => {
                "noise = { sd = \"0.5%\", visits = \"1%\" }\ndrift = { amplitude = \"2%\", steps = 3500 }"
            }
            Self::TwoState => {
                "noise = { sd = \"0.5%\", visits = \"1%\" }\nboost = { share = \"30%\", size = \"4%\", steps = 20 }"
            }
            Self::CommonFactor => "noise = { sd = \"3%\", visits = \"4%\" }\ncommon = { sd = \"10%\", steps = 150 }",
        }
    }
}

/// What is planted on the line from 10 ms by 0.8 ms for each example, over 70 batch sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Curve {
    /// No jump.
    Line,
    /// The slope doubles at a random batch size.
    Kink,
    /// One jump, at a random batch size.
    OneJump,
    /// Four, at random batch sizes.
    FourJumps,
    /// After 16, 32, 48 and 64.
    Staircase,
    /// One jump, four to seven batch sizes after a kink.
    JumpBesideKink,
}

impl Curve {
    pub const ALL: [Self; 6] =
        [Self::Line, Self::Kink, Self::OneJump, Self::FourJumps, Self::Staircase, Self::JumpBesideKink];

    pub fn name(self) -> &'static str {
        match self {
            Self::Line => "line",
            Self::Kink => "kink",
            Self::OneJump => "one jump",
            Self::FourJumps => "four jumps",
            Self::Staircase => "staircase of 16",
            Self::JumpBesideKink => "jump beside a kink",
        }
    }

    /// Where the jumps and the kink are.
    fn places(self, seed: u64) -> (Vec<usize>, Option<usize>) {
        let draw = |from: u64, count: u64| (from + crate::random::mix(seed) % count) as usize;
        match self {
            Self::Line => (vec![], None),
            Self::Kink => (vec![], Some(draw(10, 45))),
            Self::OneJump => (vec![draw(4, 62)], None),
            Self::FourJumps => {
                ((0..4).map(|i| 8 + 16 * i + crate::random::mix(seed + i as u64) as usize % 8).collect(), None)
            }
            Self::Staircase => (vec![16, 32, 48, 64], None),
            Self::JumpBesideKink => {
                let kink = draw(10, 45);
                (vec![kink + 4 + seed as usize % 4], Some(kink))
            }
        }
    }
}

/// The rule that ends a run. By cells after 600 blocks at the latest, so that a cell which takes more gives a lower bound; in complete blocks, that is without
/// choosing cells, after 20.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    Jumps,
    Cells,
    Complete,
}

/// The counts of a study.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Decisions {
    pub runs: usize,
    /// Executed steps of all runs, warm-up included.
    pub steps: usize,
    pub planted: usize,
    /// Planted jumps that the detector reports at their place.
    pub found: usize,
    /// Jumps whose true size lies in the reported interval.
    pub covered: usize,
    /// Runs in which it reports another jump.
    pub with_false: usize,
    /// Runs whose own tests show a jump that was not planted within one batch size.
    pub shown_false: usize,
    /// Runs that ended with an open boundary or an unknown cell.
    pub undecided: usize,
}

impl Decisions {
    pub fn steps_per_run(&self) -> f64 {
        self.steps as f64 / self.runs.max(1) as f64
    }
}

/// Simulates the runs of `seeds`, with `steps` counted steps in each visit; the run chooses where that is 0.
///
/// # Errors
/// None that a valid machine and curve could cause.
pub fn decisions(
    machine: Machine,
    curve: Curve,
    rule: Rule,
    steps: usize,
    seeds: std::ops::Range<u64>,
) -> Result<Decisions> {
    let mut sum = Decisions::default();
    for seed in seeds {
        let most = match rule {
            Rule::Jumps => 100,
            Rule::Cells => 600,
            Rule::Complete => 20,
        };
        let planted = Planted::new(machine, curve, seed);
        let simulated = planted.run(Design { rule, steps, most })?;
        let findings = detect(&simulated.observations(), &Settings { resamples: 0, ..Settings::default() });
        let own = || findings.jumps.iter().filter(|jump| planted.jumps.iter().any(|k| *k as f64 == jump.after));
        let found = own().count();
        let covers = |jump: &&Jump| (jump.low..=jump.high).contains(&planted.size(jump.after as usize));
        let near = |k: usize| planted.jumps.iter().any(|jump| jump.abs_diff(k) <= 1);
        let shown = |boundary: &Boundary| boundary.decision == Decision::Jump && !near(boundary.below + 1);
        let open = simulated.outcome.cells.iter().any(|cell| cell.stop_reason == crate::store::StopReason::Budget);
        sum.runs += 1;
        sum.steps += simulated.rows.len();
        sum.planted += planted.jumps.len();
        sum.found += found;
        sum.covered += own().filter(covers).count();
        sum.with_false += usize::from(findings.jumps.len() > found);
        sum.shown_false += usize::from(simulated.outcome.boundaries.iter().any(shown));
        sum.undecided += usize::from(open);
    }
    Ok(sum)
}

/// A machine with a curve on it.
struct Planted {
    machine: Machine,
    jumps: Vec<usize>,
    kink: Option<usize>,
    seed: u64,
}

/// How it is measured.
#[derive(Clone, Copy)]
struct Design {
    rule: Rule,
    /// 0 for the rule's default: what the run chooses; 5 by cells.
    steps: usize,
    /// Blocks at most.
    most: usize,
}

impl Planted {
    fn new(machine: Machine, curve: Curve, seed: u64) -> Self {
        let (jumps, kink) = curve.places(seed);
        Self { machine, jumps, kink, seed }
    }

    /// The size of the jump after k, in seconds.
    fn size(&self, after: usize) -> f64 {
        self.machine.jump() * (0.010 + 0.0008 * after as f64)
    }

    fn run(&self, design: Design) -> Result<SimulatedRun> {
        let jump = |after: &usize| format!("{{ after = {after}, size = \"{}ns\" }}", (self.size(*after) * 1e9).round());
        let jumps: Vec<String> = self.jumps.iter().map(jump).collect();
        let kinks = self.kink.map(|at| format!("{{ at = {at}, slope = \"0.8ms\" }}")).unwrap_or_default();
        let (decide, chosen) = if design.rule == Rule::Cells { ("cells", "5") } else { ("jumps", "\"auto\"") };
        let least = if design.rule == Rule::Complete { design.most } else { 4 };
        let steps = if design.steps == 0 { chosen.to_string() } else { design.steps.to_string() };
        run(&format!(
            "version = 1\nname = \"decisions\"\n[sweep]\nbatch_size = \"1..=70\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
             base = \"10ms\"\nslope = \"0.8ms\"\njumps = [{}]\nkinks = [{kinks}]\n{}\nseed = {seed}\n[measure]\n\
             blocks = {{ min = {least}, max = {} }}\ndecide = \"{decide}\"\nsteps_per_visit = {steps}\n\
             smallest_jump = \"{}%\"\ntime_limit = \"100h\"\nseed = {seed}\n",
            jumps.join(", "),
            self.machine.lines(),
            design.most,
            100.0 * self.machine.jump(),
            seed = self.seed,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::quantile::median;

    /// One run by each rule; the study of many is `examples/steps_to_decide.rs`.
    #[test]
    fn a_jump_is_found_with_a_fraction_of_the_steps_that_known_cells_take() {
        let by = |rule| decisions(Machine::Normal, Curve::OneJump, rule, 5, 3..4).expect("runs");
        let (jumps, cells) = (by(Rule::Jumps), by(Rule::Cells));
        assert_eq!((jumps.found, cells.found), (1, 1));
        assert!(4 * jumps.steps < cells.steps, "{jumps:?} and {cells:?}");
    }

    /// The forecast after 350 visits, of how many the whole run takes, against what it took: the middle of nine runs.
    #[test]
    fn the_forecast_matches_the_simulated_run() {
        let ratio = |machine: Machine, seed: u64| {
            let planted = Planted::new(machine, Curve::Line, seed);
            let run = |most| planted.run(Design { rule: Rule::Jumps, steps: 3, most }).expect("runs").outcome;
            let (early, whole) = (run(5), run(100));
            (early.visits + early.knowledge.needed.unwrap_or(0)) as f64 / whole.visits as f64
        };
        let middle = |machine: Machine| median(&mut (0..9).map(|seed| ratio(machine, seed)).collect::<Vec<_>>());
        let found = [Machine::Normal, Machine::CommonFactor].map(middle);
        assert!(found.iter().all(|ratio| (0.6..1.6).contains(ratio)), "{found:?}");
        // With more visits, the fastest of several can represent them. The forecast does not know this, and the run takes less than half of it.
        let found = middle(Machine::TwoState);
        assert!((1.0..3.0).contains(&found), "{found}");
    }
}
