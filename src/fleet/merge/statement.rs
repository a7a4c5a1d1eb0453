//! What was merged, and what is missing or differs: the content of `merge.json`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::source::SourceRun;
use crate::spec::Shard;
use crate::store::StepRow;

/// The version of the document.
const VERSION: u32 = 1;

/// What was merged.
#[derive(Clone, Debug, Serialize)]
pub struct Statement {
    version: u32,
    /// The number of shards of the experiment; `None` if it is not divided.
    pub shards: Option<usize>,
    /// The numbers of the missing shards.
    pub missing: Vec<usize>,
    pub runs: Vec<MergedRun>,
    /// Differences between runs of the same spec: versions of batchstep, of a library, of the driver.
    pub differences: Vec<String>,
}

/// One of the runs.
#[derive(Clone, Debug, Serialize)]
pub struct MergedRun {
    pub run_id: String,
    pub path: String,
    /// `3/8`.
    pub shard: Option<String>,
    /// The machines that measured it: several if it was continued elsewhere.
    pub nodes: Vec<Node>,
    pub visits: i64,
    /// Visits that are in its numbering but not in its tables.
    pub lost: i64,
    /// Whether it is completely measured.
    pub complete: bool,
    #[serde(skip)]
    last: i64,
}

/// A machine, and the visits that it made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Node {
    pub name: String,
    pub visits: usize,
}

impl Statement {
    pub(super) fn new(sources: &[SourceRun]) -> Self {
        let shards: Vec<Shard> = sources.iter().filter_map(SourceRun::shard).collect();
        let count = shards.first().map(|shard| shard.count);
        let given: BTreeSet<usize> = shards.iter().map(|shard| shard.number).collect();
        let missing = (1..=count.unwrap_or(0)).filter(|number| !given.contains(number)).collect();
        let run = |source: &SourceRun| MergedRun {
            run_id: source.environment.run_id.clone(),
            path: source.path.display().to_string(),
            shard: source.shard().map(|shard| shard.to_string()),
            nodes: Vec::new(),
            visits: 0,
            lost: 0,
            complete: source.extent.complete,
            last: -1,
        };
        let runs = sources.iter().map(run).collect();
        Self { version: VERSION, shards: count, missing, runs, differences: differences(sources) }
    }

    /// Records a visit of the run at that place.
    pub(super) fn saw(&mut self, place: usize, visit: &[StepRow]) {
        let (Some(run), Some(row)) = (self.runs.get_mut(place), visit.first()) else { return };
        run.visits += 1;
        run.lost += row.visit - run.last - 1;
        run.last = row.visit;
        let name = row.node.as_deref().unwrap_or_default();
        match run.nodes.iter_mut().find(|node| node.name == name) {
            Some(node) => node.visits += 1,
            None => run.nodes.push(Node { name: name.to_owned(), visits: 1 }),
        }
    }

    /// Whether no shard is missing and each has finished.
    pub fn is_complete(&self) -> bool {
        self.missing.is_empty() && self.runs.iter().all(|run| run.complete)
    }

    pub fn visits(&self) -> i64 {
        self.runs.iter().map(|run| run.visits).sum()
    }

    /// Names of the machines.
    pub fn nodes(&self) -> BTreeSet<&str> {
        self.runs.iter().flat_map(|run| &run.nodes).map(|node| node.name.as_str()).collect()
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }
}

/// Differences between the machines that could make them slower or faster, with the number of runs for each value.
fn differences(sources: &[SourceRun]) -> Vec<String> {
    let mut values: BTreeMap<String, BTreeMap<String, usize>> = BTreeMap::new();
    for source in sources {
        let environment = &source.environment;
        let mut saw = |what: &str, value: String| {
            *values.entry(what.to_owned()).or_default().entry(value).or_default() += 1;
        };
        saw("batchstep", environment.machine.batchstep.clone());
        for engine in &environment.engines {
            if let Some(version) = &engine.version {
                saw(&format!("the engine `{}`", engine.name), version.clone());
            }
            saw(&format!("the device of `{}`", engine.name), engine.device_name.clone());
        }
        if let Some(driver) = &environment.machine.driver.version {
            saw("the driver", driver.clone());
        }
    }
    let differ = values.into_iter().filter(|(_, values)| values.len() > 1);
    let listed = |values: BTreeMap<String, usize>| {
        let runs = |runs: usize| if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
        values.into_iter().map(|(value, count)| format!("{value} ({})", runs(count))).collect::<Vec<_>>().join(", ")
    };
    differ.map(|(what, values)| format!("{what}: {}", listed(values))).collect()
}
