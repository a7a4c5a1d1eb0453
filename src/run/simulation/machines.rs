//! Different machines that measure one series together: how often a jump is found where there is none ([`alarms`]), how often the interval
//! of a level contains the truth ([`coverage`]), and how large a jump has to be to be found ([`power`]).

use super::alarms::Alarms;
use super::simulate;
use crate::detect::{Findings, Observation, Point, Settings, detect};
use crate::engine::synthetic::Truth;
use crate::error::Result;
use crate::random::Rng;
use crate::spec::Experiment;
use crate::spec::plan::Plan;

/// How often machines come to a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisitPattern {
    /// As often to each: all blocks are complete.
    Equal,
    /// To each cell by chance, from four times on: a machine comes to some cells often, to which another comes seldom.
    Unequal,
    /// Four times, and then where a machine's own boundaries are open.
    Decided,
}

/// Visits of each machine to each cell where they are [`VisitPattern::Unequal`], at least.
const ALWAYS: usize = 4;

/// The machines that measure one experiment as shards by blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fleet {
    pub machines: usize,
    /// Visits of each machine to a cell, at most; where machines decide, on average.
    pub blocks: usize,
    pub visits: VisitPattern,
    /// The standard deviation of the amount that a machine adds to all batch sizes, and of the amount that it adds to a single one.
    pub relative_sd: f64,
    pub cell_sd: f64,
    /// A jump of this share of the level after batch size 20; 0 for none.
    pub jump: f64,
}

impl Fleet {
    fn spec(&self, seed: u64) -> String {
        let Self { machines, blocks, visits, relative_sd, cell_sd, jump } = *self;
        let most = machines * blocks;
        let least = if visits == VisitPattern::Decided { 3 } else { most };
        format!(
            "version = 1\nname = \"fleet\"\n[sweep]\nbatch_size = \"1..=40\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
             jumps = [{{ after = 20, size = \"{}ms\" }}]\n\
             noise = {{ sd = \"0.5%\", visits = \"0.5%\", heavy_tails = \"10%\" }}\n\
             machines = {{ sd = \"{}%\", cells = \"{}%\" }}\nseed = {seed}\n\
             [measure]\nblocks = {{ min = {least}, max = {most} }}\nsteps_per_visit = 3\nseed = {seed}\n",
            // 10 ms and 1 ms for each example: 30 ms at 20.
            30.0 * jump,
            100.0 * relative_sd,
            100.0 * cell_sd,
        )
    }

    /// The steps that count of all machines, one machine after the other, as `batchstep merge` writes them.
    pub fn observations(&self, seed: u64) -> Result<Vec<Observation>> {
        let whole = Experiment::parse(&self.spec(seed), "fleet")?;
        let mut all: Vec<Observation> = Vec::new();
        for number in 1..=self.machines {
            let text = format!("{}shard = \"{number}/{}\"\n", self.spec(seed), self.machines);
            let part = Experiment::parse(&text, "fleet")?;
            debug_assert_eq!(part.whole(), whole);
            let plan = Plan::new(&part)?;
            let first = all.last().and_then(|last| last.order).map_or(0.0, |order| order + 1.0);
            let placed = |observation: Observation| Observation {
                order: observation.order.map(|order| first + order),
                block: observation.block.map(|block| plan.whole_block(block as usize) as u32),
                node: Some(number as u32 - 1),
                ..observation
            };
            let own = simulate(&part, None)?.observations();
            all.extend(own.into_iter().filter(|seen| self.comes(seed, number, seen)).map(placed));
        }
        Ok(all)
    }

    /// Whether machine `number` comes to the cell of an observation in its block, the number of which is the machine's own.
    fn comes(&self, seed: u64, number: usize, seen: &Observation) -> bool {
        if self.visits != VisitPattern::Unequal {
            return true;
        }
        let further = self.blocks.saturating_sub(ALWAYS) + 1;
        let mut random = Rng::new(seed ^ (((number as u64) << 32) | seen.x.to_bits() >> 32).rotate_left(17));
        seen.block.is_none_or(|block| (block as usize) < ALWAYS + random.below(further))
    }

    /// The findings of one experiment; if `known` is false, the detector does not know which machine measured a visit.
    pub fn found(&self, seed: u64, known: bool) -> Result<Findings> {
        let mut observations = self.observations(seed)?;
        if !known {
            observations.iter_mut().for_each(|observation| observation.node = None);
        }
        Ok(detected(&observations))
    }

    /// The truth of one experiment: what no machine adds anything to.
    fn truth(&self, seed: u64) -> Result<Truth> {
        Ok(Experiment::parse(&self.spec(seed), "fleet")?.synthetic.unwrap_or_default())
    }
}

fn detected(observations: &[Observation]) -> Findings {
    detect(observations, &Settings { resamples: 0, ..Settings::default() })
}

/// The alarms in the experiments of `seeds`; jumps at the planted place are not alarms.
pub fn alarms(fleet: Fleet, known: bool, seeds: std::ops::Range<u64>) -> Result<Alarms> {
    let mut counted = Alarms::default();
    for seed in seeds {
        let findings = fleet.found(seed, known)?;
        let wrong = findings.jumps.iter().filter(|jump| fleet.jump == 0.0 || jump.after != 20.0).count();
        counted.runs += 1;
        counted.with_jumps += usize::from(wrong > 0);
        counted.jumps += wrong;
    }
    Ok(counted)
}

/// The counts of a study.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Coverage {
    pub intervals: usize,
    pub covered: usize,
    /// Mean width of an interval, relative to its level.
    pub width: f64,
    /// Mean number of steps of a cell.
    pub steps: f64,
}

impl Coverage {
    pub fn share(&self) -> f64 {
        self.covered as f64 / self.intervals as f64
    }
}

/// The experiments of `seeds`, 40 levels each; if `known` is false, the detector does not know which machine measured a visit.
///
/// The amounts that machines add to all batch sizes are not errors of a level: the levels of an experiment are compared with the truth after their
/// common error is removed.
pub fn coverage(fleet: Fleet, known: bool, seeds: std::ops::Range<u64>) -> Result<Coverage> {
    let mut counted = Coverage::default();
    for seed in seeds {
        let truth = fleet.truth(seed)?;
        let points = fleet.found(seed, known)?.points;
        let log = |value: f64, point: &Point| (value / truth.step_s(point.x as usize)).ln();
        let off: Vec<f64> = points.iter().map(|point| log(point.center, point)).collect();
        let common = off.iter().sum::<f64>() / off.len() as f64;
        let holds = |point: &&Point| (log(point.low, point)..=log(point.high, point)).contains(&common);
        counted.covered += points.iter().filter(holds).count();
        counted.intervals += points.len();
        counted.width += points.iter().map(|point| (point.high - point.low) / point.center).sum::<f64>();
        counted.steps += points.iter().map(|point| point.count as f64).sum::<f64>();
    }
    counted.width /= counted.intervals as f64;
    counted.steps /= counted.intervals as f64;
    Ok(counted)
}

/// After which batch size the jump is.
const AFTER: f64 = 20.0;
/// The smallest and the largest jump that are tried, as shares of the level, and how often the range is halved: to 2 % of the answer.
const RANGE: (f64, f64) = (0.001, 0.3);
const HALVED: usize = 8;

/// What a study found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// The jump, as a share of the level, that is found at its place in 90 % of experiments.
    pub jump: f64,
    /// The 95 % interval of that, for the number of experiments.
    pub low: f64,
    pub high: f64,
}

/// From the experiments of `seeds`, which have no jump of their own: the times beyond batch size 20 are prolonged by one, the smallest that is found is
/// sought for each experiment, and nine in ten are below the answer.
pub fn power(fleet: Fleet, seeds: std::ops::Range<u64>) -> Result<Power> {
    let smallest: Result<Vec<f64>> = seeds.map(|seed| smallest(fleet, seed)).collect();
    let mut smallest = smallest?;
    smallest.sort_by(f64::total_cmp);
    let count = smallest.len() as f64;
    // The number of experiments below the quantile is binomial.
    let at = |errors: f64| {
        let place = 0.9 * count + errors * (0.09 * count).sqrt();
        smallest[(place.ceil() as usize).clamp(1, smallest.len()) - 1]
    };
    Ok(Power { jump: at(0.0), low: at(-1.96), high: at(1.96) })
}

fn smallest(fleet: Fleet, seed: u64) -> Result<f64> {
    let (truth, plain) = (fleet.truth(seed)?, fleet.observations(seed)?);
    let (mut low, mut high) = (RANGE.0.ln(), RANGE.1.ln());
    for _ in 0..HALVED {
        let middle = 0.5 * (low + high);
        let jumps = detected(&with_jump(&plain, &truth, middle.exp())).jumps;
        let found = jumps.iter().any(|jump| (jump.after_low..=jump.after_high).contains(&AFTER));
        if found { high = middle } else { low = middle }
    }
    Ok(high.exp())
}

fn with_jump(plain: &[Observation], truth: &Truth, relative: f64) -> Vec<Observation> {
    let size = relative * truth.step_s(AFTER as usize);
    let prolonged = |observation: &Observation| {
        let more = if observation.x > AFTER { size / truth.step_s(observation.x as usize) } else { 0.0 };
        Observation { y: observation.y * (1.0 + more), ..*observation }
    };
    plain.iter().map(prolonged).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLEET: Fleet =
        Fleet { machines: 4, blocks: 4, visits: VisitPattern::Decided, relative_sd: 0.1, cell_sd: 0.0, jump: 0.0 };
    /// Also at single batch sizes.
    const DIFFERENT: Fleet = Fleet { machines: 2, visits: VisitPattern::Equal, cell_sd: 0.02, ..FLEET };

    /// The stated rate is 1 %: 0.8 of 80 for each fleet, and at most 4 with four standard deviations; 4 of all 400, and at most 10 with three.
    #[test]
    #[ignore = "slow"]
    fn machines_that_differ_make_no_more_jumps_than_stated() {
        let fleets = [
            FLEET,
            Fleet { machines: 2, ..FLEET },
            Fleet { machines: 8, cell_sd: 0.01, ..FLEET },
            Fleet { machines: 2, cell_sd: 0.01, ..FLEET },
            Fleet { machines: 2, blocks: 12, cell_sd: 0.005, ..FLEET },
        ];
        let counted = fleets.map(|fleet| alarms(fleet, true, 0..80).expect("runs"));
        assert!(counted.iter().all(|alarms| alarms.with_jumps <= 4), "{counted:?}");
        assert!(counted.iter().map(|alarms| alarms.with_jumps).sum::<usize>() <= 10, "{counted:?}");
    }

    #[test]
    #[ignore = "slow"]
    fn a_jump_is_found_across_machines_and_a_slow_one_is_named() {
        let fleet = Fleet { machines: 8, jump: 0.03, ..FLEET };
        let found = (0..20).map(|seed| fleet.found(seed, true).expect("runs"));
        let right = found.filter(|found| found.jumps.iter().map(|jump| jump.after).eq([20.0])).count();
        assert!(right >= 19, "{right} of 20");

        let truth = |number: usize| fleet.truth(3).expect("valid").of_machine(number).machine_factor(1);
        let truths: Vec<f64> = (1..=8).map(truth).collect();
        let mut sorted = truths.clone();
        sorted.sort_by(f64::total_cmp);
        let middle = (sorted[3] * sorted[4]).sqrt();
        let nodes = fleet.found(3, true).expect("runs").nodes;
        for (node, truth) in nodes.iter().zip(&truths) {
            let error = (1.0 + node.relative) / (truth / middle) - 1.0;
            assert!(error.abs() < 0.005, "{node:?}: {truth} over {middle}");
        }
    }

    /// Counts 800 intervals of 95 % for each fleet. All 800 share the fleet's estimate of how much its machines differ, so the share of one experiment
    /// varies by 4 % and the mean of twenty by 1 %. The full study, of 100 experiments each, is `examples/tables/trust_simulation.rs`.
    #[test]
    #[ignore = "slow"]
    fn intervals_of_levels_count_machines_where_machines_differ_at_single_batch_sizes() {
        for (machines, blocks, visits) in
            [(2, 4, VisitPattern::Equal), (2, 16, VisitPattern::Unequal), (4, 16, VisitPattern::Unequal)]
        {
            let fleet = Fleet { machines, blocks, visits, ..DIFFERENT };
            let share = coverage(fleet, true, 0..20).expect("runs").share();
            assert!((0.92..=0.98).contains(&share), "{fleet:?}: {share}");
        }
    }

    #[test]
    fn without_the_machines_half_of_the_levels_would_be_missed() {
        let fleet = Fleet { blocks: 16, visits: VisitPattern::Unequal, ..DIFFERENT };
        let share = coverage(fleet, false, 0..20).expect("runs").share();
        assert!(share < 0.7, "{share}");
    }

    /// What machines add to all batch sizes is subtracted, so that four find what one does with the same visits: nine in ten of 20 experiments, so
    /// the two may differ by a quarter by chance.
    #[test]
    #[ignore = "slow"]
    fn machines_that_differ_find_the_same_as_one_with_the_same_visits() {
        let one = Fleet { machines: 1, blocks: 8, visits: VisitPattern::Equal, ..FLEET };
        let four = Fleet { machines: 4, blocks: 2, ..one };
        let [one, four] = [one, four].map(|fleet| power(fleet, 0..20).expect("runs").jump);
        assert!((0.003..0.03).contains(&one) && (0.7..1.4).contains(&(four / one)), "{one} {four}");
    }
}
