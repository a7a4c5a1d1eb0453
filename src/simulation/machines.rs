//! How often do machines that differ, and measure one series together, make a jump where there is none?

use super::alarms::Alarms;
use super::simulate;
use crate::detect::{Findings, Observation, Settings, detect};
use crate::error::Result;
use crate::plan::Plan;
use crate::spec::Experiment;

/// The machines that measure one experiment as shards by blocks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fleet {
    pub machines: usize,
    /// Visits of each machine to a cell, on average, at most: with 4 all blocks are complete, with more the later ones go where a
    /// machine's own boundaries are open.
    pub blocks: usize,
    /// The standard deviations of what a machine adds to all batch sizes, and of what it adds to one.
    pub relative_sd: f64,
    pub cell_sd: f64,
    /// A jump of this share of the level after batch size 20; 0 for none.
    pub jump: f64,
}

impl Fleet {
    fn spec(&self, seed: u64) -> String {
        let Self { machines, blocks, relative_sd, cell_sd, jump } = *self;
        format!(
            "version = 1\nname = \"fleet\"\n[sweep]\nbatch_size = \"1..=40\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
             jumps = [{{ after = 20, size = \"{}ms\" }}]\n\
             noise = {{ sd = \"0.5%\", visits = \"0.5%\", heavy_tails = \"10%\" }}\n\
             machines = {{ sd = \"{}%\", cells = \"{}%\" }}\nseed = {seed}\n\
             [measure]\nblocks = {{ min = 3, max = {} }}\nsteps_per_visit = 3\nseed = {seed}\n",
            // 10 ms and 1 ms for each example: 30 ms at 20.
            30.0 * jump,
            100.0 * relative_sd,
            100.0 * cell_sd,
            machines * blocks
        )
    }

    /// The steps that count of all machines, one machine after the other, as `batchstep merge` writes them.
    ///
    /// # Errors
    /// None that a valid fleet could cause.
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
            all.extend(simulate(&part, None)?.observations().into_iter().map(placed));
        }
        Ok(all)
    }

    /// What is found in one experiment; with `known` false as if nobody knew which machine measured what.
    ///
    /// # Errors
    /// As [`Fleet::observations`].
    pub fn found(&self, seed: u64, known: bool) -> Result<Findings> {
        let mut observations = self.observations(seed)?;
        if !known {
            observations.iter_mut().for_each(|observation| observation.node = None);
        }
        Ok(detect(&observations, &Settings { resamples: 0, ..Settings::default() }))
    }
}

/// The experiments of `seeds`, of which jumps at the planted place are no alarms.
///
/// # Errors
/// As [`Fleet::observations`].
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

#[cfg(test)]
mod tests {
    use super::*;

    const FLEET: Fleet = Fleet { machines: 4, blocks: 4, relative_sd: 0.1, cell_sd: 0.0, jump: 0.0 };

    /// The stated rate is 1 %: 2 of 200 for each fleet, with four standard deviations 8; of all 1,000 together 10, with three 19.
    #[test]
    fn machines_that_differ_make_no_more_jumps_than_stated() {
        let fleets = [
            FLEET,
            Fleet { machines: 2, ..FLEET },
            Fleet { machines: 8, cell_sd: 0.01, ..FLEET },
            Fleet { machines: 2, cell_sd: 0.01, ..FLEET },
            Fleet { machines: 2, blocks: 12, cell_sd: 0.005, ..FLEET },
        ];
        let counted = fleets.map(|fleet| alarms(fleet, true, 0..200).expect("runs"));
        assert!(counted.iter().all(|alarms| alarms.with_jumps <= 8), "{counted:?}");
        assert!(counted.iter().map(|alarms| alarms.with_jumps).sum::<usize>() <= 19, "{counted:?}");
    }

    #[test]
    fn a_jump_is_found_across_machines_and_a_slow_one_is_named() {
        let fleet = Fleet { machines: 8, jump: 0.03, ..FLEET };
        let found = (0..20).map(|seed| fleet.found(seed, true).expect("runs"));
        let right = found.filter(|found| found.jumps.iter().map(|jump| jump.after).eq([20.0])).count();
        assert!(right >= 19, "{right} of 20");

        let truth = |number: usize| {
            let whole = Experiment::parse(&fleet.spec(3), "fleet").expect("valid");
            whole.synthetic.expect("a truth").of_machine(number).machine_factor(1)
        };
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

    /// What knowing the machines is for: each adds something of its own to each batch size, and its visits share it.
    #[test]
    fn visits_of_one_machine_that_are_taken_for_independent_make_jumps() {
        let fleet = Fleet { machines: 2, blocks: 8, cell_sd: 0.02, ..FLEET };
        let [known, unknown] = [true, false].map(|known| alarms(fleet, known, 0..40).expect("runs").with_jumps);
        assert!(unknown > known, "{unknown} without the machines, {known} with them");
    }
}
