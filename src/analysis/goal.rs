//! The blocks that a run's spec requires before results are reported, and how many the run has.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::command::quoted;
use crate::detect::Early;
use crate::error::Result;
use crate::os::look;
use crate::spec::{Experiment, FIRST_BLOCKS};
use crate::store::{Table, files};
use crate::units::Seconds;

#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    /// The smallest jump, relative, that the run is to show.
    pub smallest_jump: f64,
    /// Complete blocks before anything is reported, and those that the series has.
    pub blocks: usize,
    pub complete: usize,
    /// What to do where these are fewer.
    pub go_on: String,
}

impl Goal {
    /// Whether too little is measured yet: the one place that decides it.
    pub fn early(&self) -> Option<Early> {
        let Self { blocks, complete, .. } = *self;
        (complete < blocks).then_some(Early { blocks: complete, of: blocks })
    }
}

#[derive(Debug)]
pub(super) struct Asked {
    path: PathBuf,
    /// Or why it cannot be read: the blocks are then judged by the defaults, so that a damaged file makes no run ready.
    experiment: std::result::Result<Experiment, String>,
}

/// The default of `measure.smallest_jump`.
const SMALLEST_JUMP: f64 = 0.01;

impl Asked {
    /// The goal of the run at `path`, or of the run that wrote the file `path`; `None` for data of other programs.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        let experiment = match Table::spec(path)? {
            // A spec of another version may not be valid in this one; its rows can be read all the same.
            Some(text) => {
                Experiment::parse(&text, files::SPEC).map_err(|error| format!("cannot be read: {}", error.clause()))
            }
            // Only batchstep writes parts, and they do not contain the spec.
            None if look::is_folder(path)? && !look::is_file(&path.join(files::STEPS))? => Err("is missing".to_owned()),
            None => return Ok(None),
        };
        Ok(Some(Self { path: path.to_path_buf(), experiment }))
    }

    /// That the spec cannot be read, where that is so.
    pub fn note(&self) -> Option<String> {
        let why = self.experiment.as_ref().err()?.lines().next().unwrap_or_default();
        Some(format!("its {} {why}; its blocks are judged by the default, {}", files::SPEC, self.blocks()))
    }

    /// Complete blocks before anything is reported. A shard needs as many as the whole, since it is a part of one answer.
    pub fn blocks(&self) -> usize {
        self.experiment.as_ref().map_or(FIRST_BLOCKS, |experiment| experiment.measure.complete_blocks())
    }

    /// The goal of a series that was visited like this.
    pub fn goal(&self, visits: Option<&Visits>) -> Goal {
        let sizes = |visits: &Visits| match &self.experiment {
            Ok(experiment) => experiment.batch_sizes.len(),
            Err(_) => visits.sizes(),
        };
        let complete = visits.map_or(0, |visits| visits.complete(sizes(visits)));
        let smallest_jump = self.experiment.as_ref().map_or(SMALLEST_JUMP, |asked| asked.measure.smallest_jump);
        Goal { smallest_jump, blocks: self.blocks(), complete, go_on: self.go_on(complete) }
    }

    fn go_on(&self, complete: usize) -> String {
        if self.path.join(files::MERGE).try_exists().is_ok_and(|there| there) {
            return "measure more in the runs that were merged, with `--resume`, and merge again".to_owned();
        }
        let Ok(experiment) = &self.experiment else {
            return format!("put its {} back, and continue with `--resume`", files::SPEC);
        };
        if experiment.measure.shard.is_some() {
            return "a shard is a part of an answer: merge all of them with `batchstep merge OUT RUN...`".to_owned();
        }
        if !self.path.is_dir() {
            return "go on with the run that wrote it, with `--resume` and a longer `--time`".to_owned();
        }
        // As much time as all blocks take at the pace of those that are there.
        let share = self.blocks() as f64 / complete.max(1) as f64;
        let time = Seconds((experiment.measure.time_limit_s * share).ceil());
        let [spec, folder] =
            [self.path.join(files::SPEC), self.path.clone()].map(|path| quoted(&path.display().to_string()));
        format!("continue with `batchstep run {spec} --out {folder} --resume --time {time}`")
    }
}

/// Blocks beyond those that are needed: of runs that were merged, some are incomplete.
const SPARE: usize = 32;

/// Which cells of a series each machine visited in each block.
#[derive(Debug, Default)]
pub(super) struct Visits(BTreeMap<Option<u32>, BTreeMap<u32, BlockSuccess>>);

/// For each cell, by its number or its x, whether all steps of its visit went well.
type BlockSuccess = HashMap<u64, bool>;

impl Visits {
    /// A step of a visit. Only the first blocks are kept, `needed` of them and some: later ones need not be complete.
    pub fn take(&mut self, node: Option<u32>, block: u32, cell: u64, ok: bool, needed: usize) {
        let blocks = self.0.entry(node).or_default();
        if blocks.len() < needed + SPARE || blocks.contains_key(&block) {
            *blocks.entry(block).or_default().entry(cell).or_insert(true) &= ok;
        }
    }

    pub fn join(&mut self, other: Self) {
        for (node, blocks) in other.0 {
            let own = self.0.entry(node).or_default();
            for (block, cells) in blocks {
                own.entry(block).or_default().extend(cells);
            }
        }
    }

    /// The number of cells that were visited.
    fn sizes(&self) -> usize {
        let cells: HashSet<u64> = self.0.values().flat_map(BTreeMap::values).flat_map(HashMap::keys).copied().collect();
        cells.len()
    }

    /// The blocks in which a machine visited all of `sizes` cells, except cells that failed there, which it no longer visits.
    fn complete(&self, sizes: usize) -> usize {
        let of_machine = |blocks: &BTreeMap<u32, BlockSuccess>| {
            let failed: HashSet<u64> =
                blocks.values().flatten().filter(|(_, ok)| !**ok).map(|(cell, _)| *cell).collect();
            let is_complete = |block: &&BlockSuccess| {
                let missed = failed.iter().filter(|cell| !block.contains_key(cell)).count();
                block.len() + missed >= sizes
            };
            blocks.values().filter(is_complete).count()
        };
        self.0.values().map(of_machine).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::{Query, Series, series};
    use crate::detect::{Observation, Settings};
    use crate::run::simulation::simulate;
    use crate::store::{Begin, RunDirectory, Status, StepRow};

    /// Blocks of three cells; `(block, cell, ok)`.
    fn complete(steps: &[(u32, u64, bool)]) -> usize {
        let mut visits = Visits::default();
        steps.iter().for_each(|&(block, cell, ok)| visits.take(None, block, cell, ok, 4));
        visits.complete(3)
    }

    #[test]
    fn a_block_is_complete_with_its_last_cell() {
        let block = |block: u32, cells: u64| (0..cells).map(move |cell| (block, cell, true)).collect::<Vec<_>>();
        for (steps, expected) in [
            (vec![], 0),
            (block(0, 2), 0),
            (block(0, 3), 1),
            ([block(0, 3), block(1, 1)].concat(), 1),
            ([block(0, 3), block(1, 3)].concat(), 2),
            // A cell that failed is not visited again, and no block waits for it.
            (vec![(0, 0, true), (0, 1, true), (0, 1, false), (0, 2, true), (1, 0, true), (1, 2, true)], 2),
        ] {
            assert_eq!(complete(&steps), expected, "{steps:?}");
        }
        // The blocks of several machines count together.
        let mut visits = Visits::default();
        for (node, block) in [(0, 0), (1, 1), (0, 2)] {
            (0..3).for_each(|cell| visits.take(Some(node), block, cell, true, 4));
        }
        visits.take(Some(1), 3, 0, true, 4);
        assert_eq!(visits.complete(3), 3);
    }

    /// The first rows of a run, as a stored series.
    fn stored(experiment: &Experiment, rows: &[StepRow]) -> Series {
        let asked = Asked { path: "run".into(), experiment: Ok(experiment.clone()) };
        let mut visits = Visits::default();
        for row in rows {
            visits.take(None, row.block as u32, row.cell as u64, row.status == Status::Ok, asked.blocks());
        }
        let seen = |row: &StepRow| {
            let (order, block) = (Some(row.order as f64), Some(row.block as u32));
            let y = row.step_time_s.filter(|_| !row.warmup)?;
            Some(Observation { order, block, ..Observation::new(row.batch_size as f64, y) }.into())
        };
        let goal = Some(asked.goal(Some(&visits)));
        Series { goal, ..Series::planted(Vec::new(), rows.iter().filter_map(seen).collect()) }
    }

    /// Two blocks of a run that asks for six and was killed. Without its spec, four are needed, and a block has all sizes that were visited.
    #[test]
    fn a_spec_that_is_damaged_or_missing_makes_no_run_ready() {
        let text = "version = 1\nname = \"half\"\n[sweep]\nbatch_size = \"1..=6\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
                    [measure]\nblocks = { min = 6, max = 6 }\nsteps_per_visit = 2\n";
        let experiment = Experiment::parse(text, "half.toml").expect("valid");
        let rows = simulate(&experiment, None).expect("runs").rows;
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("half");
        let opened = RunDirectory::open(&path, &experiment.to_toml(), Begin::Anew).expect("opens");
        let visits = rows.chunk_by(|a, b| a.visit == b.visit).take(2 * 6);
        visits.for_each(|visit| opened.directory.append(visit).expect("stored"));
        drop(opened);
        let judged = || {
            let found = series(&path, &Query::default()).expect("a series").remove(0);
            (found.early().map(|early| (early.blocks, early.of)), found.notes.join(""))
        };
        assert_eq!(judged(), (Some((2, 6)), String::new()));
        std::fs::write(path.join(files::SPEC), &text[..30]).expect("written");
        let (early, note) = judged();
        assert_eq!(early, Some((2, 4)), "{note}");
        assert!(note.contains("its spec.toml cannot be read: ") && note.contains("by the default, 4"), "{note}");
        std::fs::remove_file(path.join(files::SPEC)).expect("removed");
        let (early, note) = judged();
        assert_eq!(early, Some((2, 4)), "{note}");
        assert!(note.contains("its spec.toml is missing"), "{note}");
    }

    /// Another program takes half of the machine for the length of a visit, in three of ten. Nothing jumps; whatever a run has measured so
    /// far, it says so.
    #[test]
    #[ignore = "slow"]
    fn a_busy_machine_reports_no_jump_in_any_state_of_a_run() {
        const RUNS: u64 = 40;
        // After half a block, one block and a bit, two, three and a half, four, and at the end.
        let states = [20, 50, 80, 140, 160, 240];
        let (mut reported, mut unruled) = ([0; 6], [0; 6]);
        for seed in 0..RUNS {
            let spec = format!(
                "version = 1\nname = \"busy\"\n[sweep]\nbatch_size = \"1..=40\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
                 noise = {{ sd = \"0.5%\", visits = \"0.5%\" }}\nboost = {{ share = \"30%\", size = \"100%\", steps = 5 }}\n\
                 seed = {seed}\n[measure]\nblocks = {{ min = 6, max = 6 }}\nsteps_per_visit = 5\nseed = {seed}\n"
            );
            let mut experiment = Experiment::parse(&spec, "busy.toml").expect("valid");
            let rows = simulate(&experiment, None).expect("runs").rows;
            experiment.measure.blocks.min = 4;
            let quick = Settings { resamples: 0, ..Settings::default() };
            let says = |series: &Series| {
                let found = series.find(&quick);
                usize::from(!found.jumps.is_empty() || !found.kinks.is_empty())
            };
            for ((state, reported), unruled) in states.iter().zip(&mut reported).zip(&mut unruled) {
                let until = rows.partition_point(|row| row.visit < *state);
                let mut series = stored(&experiment, &rows[..until]);
                assert_eq!(series.early().is_some(), *state < 160, "{state}");
                *reported += says(&series);
                series.goal = None;
                *unruled += says(&series);
            }
        }
        // Four blocks are there in the last two states. Stated: 1 % of the runs; three standard deviations of a count of 0.4 above it are 2.
        assert_eq!(reported[..4], [0; 4]);
        assert!(reported.iter().all(|runs| *runs <= 2), "{reported:?} of {RUNS} runs");
        assert!(unruled[..4].iter().sum::<usize>() > 0, "the disturbance makes no jump: {unruled:?}");
    }
}
