//! What does it take until jumps are shown or ruled out, and how often is a jump shown that is not there?

use super::{Noise, SimulatedRun, run};
use crate::detect::{Jump, Settings, detect};
use crate::error::Result;
use crate::run::{Boundary, Decision};
use crate::settings::named;

/// The jump that is asked for on a machine, as a share of the step time.
fn asked(machine: Noise) -> f64 {
    if machine == Noise::CommonFactor { 0.05 } else { 0.01 }
}

named! {
    /// What is planted on the line from 10 ms by 0.8 ms for each example, over 70 batch sizes.
    PlantedCurve {
        /// No jump.
        Line = "line",
        /// The slope doubles at a random batch size.
        Kink = "kink",
        /// At a random batch size.
        OneJump = "one jump",
        /// At random batch sizes.
        FourJumps = "four jumps",
        /// After 16, 32, 48 and 64.
        Staircase = "staircase of 16",
        /// One jump, four to seven batch sizes after a kink.
        JumpBesideKink = "jump beside a kink",
        /// Four kinks at random batch sizes, each with half of the slope more, and no jump.
        Bends = "bends",
        /// The slope grows at every batch size, to more than three times what it was, and no jump.
        Parabola = "parabola",
        /// Steps after every fourth batch size, of 0.3 times the jump that is asked for, and no larger one.
        Texture = "texture",
        /// One jump on the parabola.
        JumpOnParabola = "jump on a parabola",
        /// One jump amid the texture.
        JumpInTexture = "jump in texture",
    }
}

impl PlantedCurve {
    fn planted(self, seed: u64) -> Shape {
        let draw = |from: u64, count: u64| (from + crate::random::mix(seed) % count) as usize;
        let four = |i: usize| 8 + 16 * i + crate::random::mix(seed + i as u64) as usize % 8;
        let one_kink = |at: usize| vec![(at, SLOPE_S)];
        let parabola = || (2..70).map(|at| (at, 0.03e-3)).collect();
        let texture = || (1..17).map(|i| 4 * i).collect();
        match self {
            Self::Line => Shape::default(),
            Self::Kink => Shape { kinks: one_kink(draw(10, 45)), ..Shape::default() },
            Self::OneJump => Shape { jumps: vec![draw(4, 62)], ..Shape::default() },
            Self::FourJumps => Shape { jumps: (0..4).map(four).collect(), ..Shape::default() },
            Self::Staircase => Shape { jumps: vec![16, 32, 48, 64], ..Shape::default() },
            Self::JumpBesideKink => {
                let kink = draw(10, 45);
                Shape { jumps: vec![kink + 4 + seed as usize % 4], kinks: one_kink(kink), ..Shape::default() }
            }
            Self::Bends => Shape { kinks: (0..4).map(|i| (four(i), 0.5 * SLOPE_S)).collect(), ..Shape::default() },
            Self::Parabola => Shape { kinks: parabola(), ..Shape::default() },
            Self::Texture => Shape { texture: texture(), ..Shape::default() },
            Self::JumpOnParabola => Shape { jumps: vec![draw(4, 62)], kinks: parabola(), ..Shape::default() },
            Self::JumpInTexture => {
                // Not where a step of the texture is, which would make it larger.
                let at = draw(5, 60);
                Shape { jumps: vec![if at % 4 == 0 { at + 1 } else { at }], texture: texture(), ..Shape::default() }
            }
        }
    }
}

/// Seconds at batch size 0, and for each example more.
const BASE_S: f64 = 0.010;
const SLOPE_S: f64 = 0.0008;
/// A step of the texture, in units of the jump that is asked for.
const TEXTURE: f64 = 0.3;

/// What is planted on the line.
#[derive(Clone, Debug, Default)]
struct Shape {
    jumps: Vec<usize>,
    /// Where the slope grows, and by how many seconds for each example.
    kinks: Vec<(usize, f64)>,
    /// After which batch sizes there is a step that is smaller than what is asked for.
    texture: Vec<usize>,
}

/// The rule that ends a run. By cells after 600 blocks at the latest, so that a cell which takes more gives a lower bound; in complete
/// blocks, that is without choosing cells, after 20.
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
    /// Runs whose own tests show a jump that was not planted within one batch size; steps of a texture do not count as planted.
    pub shown_false: usize,
    /// Planted jumps whose boundary the run's own tests rule out: they say that none of that size is there.
    pub ruled_out: usize,
    /// Runs that ended with an open boundary or an unknown cell.
    pub undecided: usize,
}

impl Decisions {
    pub fn steps_per_run(&self) -> f64 {
        self.steps as f64 / self.runs.max(1) as f64
    }
}

/// Simulates the runs of `seeds`, with `steps` counted steps in each visit; the run chooses where that is 0.
pub fn decisions(
    machine: Noise,
    curve: PlantedCurve,
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
        let jumps = &planted.shape.jumps;
        let own = || findings.jumps.iter().filter(|jump| jumps.iter().any(|k| *k as f64 == jump.after));
        let found = own().count();
        let covers = |jump: &&Jump| (jump.low..=jump.high).contains(&planted.size(jump.after as usize));
        let near = |k: usize| jumps.iter().any(|jump| jump.abs_diff(k) <= 1);
        let missed =
            |boundary: &&Boundary| boundary.decision == Decision::NoJump && jumps.contains(&(boundary.below + 1));
        let shown = |boundary: &Boundary| boundary.decision == Decision::Jump && !near(boundary.below + 1);
        let open = simulated.outcome.cells.iter().any(|cell| cell.stop_reason == crate::store::StopReason::Budget);
        sum.runs += 1;
        sum.steps += simulated.rows.len();
        sum.planted += jumps.len();
        sum.ruled_out += simulated.outcome.boundaries.iter().filter(missed).count();
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
    machine: Noise,
    shape: Shape,
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
    fn new(machine: Noise, curve: PlantedCurve, seed: u64) -> Self {
        Self { machine, shape: curve.planted(seed), seed }
    }

    /// The size of the jump after k, in seconds: a share of the smooth curve there.
    fn size(&self, after: usize) -> f64 {
        let bent = |(at, slope): &(usize, f64)| slope * after.saturating_sub(*at) as f64;
        asked(self.machine) * (BASE_S + SLOPE_S * after as f64 + self.shape.kinks.iter().map(bent).sum::<f64>())
    }

    fn run(&self, design: Design) -> Result<SimulatedRun> {
        let step = |after: usize, size: f64| format!("{{ after = {after}, size = \"{}ns\" }}", (size * 1e9).round());
        let Shape { jumps, kinks, texture } = &self.shape;
        let small = texture.iter().map(|&after| step(after, TEXTURE * self.size(after)));
        let jumps: Vec<String> = jumps.iter().map(|&after| step(after, self.size(after))).chain(small).collect();
        let kink = |(at, slope): &(usize, f64)| format!("{{ at = {at}, slope = \"{}ns\" }}", (slope * 1e9).round());
        let kinks: Vec<String> = kinks.iter().map(kink).collect();
        let (decide, chosen) = if design.rule == Rule::Cells { ("cells", "5") } else { ("jumps", "\"auto\"") };
        let least = if design.rule == Rule::Complete { design.most } else { 4 };
        let steps = if design.steps == 0 { chosen.to_string() } else { design.steps.to_string() };
        run(&format!(
            "version = 1\nname = \"decisions\"\n[sweep]\nbatch_size = \"1..=70\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
             base = \"10ms\"\nslope = \"0.8ms\"\njumps = [{}]\nkinks = [{}]\n{}\nseed = {seed}\n[measure]\n\
             blocks = {{ min = {least}, max = {} }}\ndecide = \"{decide}\"\nsteps_per_visit = {steps}\n\
             smallest_jump = \"{}%\"\ntime_limit = \"100h\"\nseed = {seed}\n",
            jumps.join(", "),
            kinks.join(", "),
            self.machine.lines(3500 * 4),
            design.most,
            100.0 * asked(self.machine),
            seed = self.seed,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::quantile::median;

    /// One run by each rule; the study of many is `examples/tables/steps_to_decide.rs`.
    #[test]
    #[ignore = "slow"]
    fn a_jump_is_found_with_a_fraction_of_the_steps_that_known_cells_take() {
        let by = |rule| decisions(Noise::Normal, PlantedCurve::OneJump, rule, 5, 3..4).expect("runs");
        let (jumps, cells) = (by(Rule::Jumps), by(Rule::Cells));
        assert_eq!((jumps.found, cells.found), (1, 1));
        assert!(4 * jumps.steps < cells.steps, "{jumps:?} and {cells:?}");
    }

    /// The forecast after 350 visits, of how many the whole run takes, against what it took: the middle of nine runs.
    #[test]
    #[ignore = "slow"]
    fn the_forecast_matches_the_simulated_run() {
        let ratio = |machine: Noise, seed: u64| {
            let planted = Planted::new(machine, PlantedCurve::Line, seed);
            let run = |most| planted.run(Design { rule: Rule::Jumps, steps: 3, most }).expect("runs").outcome;
            let (early, whole) = (run(5), run(100));
            (early.visits + early.knowledge.needed.unwrap_or(0)) as f64 / whole.visits as f64
        };
        let middle = |machine: Noise| median(&mut (0..9).map(|seed| ratio(machine, seed)).collect::<Vec<_>>());
        let found = [Noise::Normal, Noise::CommonFactor].map(middle);
        assert!(found.iter().all(|ratio| (0.6..1.6).contains(ratio)), "{found:?}");
        // Few visits show only one of the two states.
        let found = middle(Noise::TwoState);
        assert!((1.0..3.0).contains(&found), "{found}");
    }
}
