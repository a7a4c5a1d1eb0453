//! The runs to be merged: their experiment, and whether they belong together.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::{Error, Kind, Result};
use crate::os::look;
use crate::run::environment::RunEnvironment;
use crate::spec::plan::Plan;
use crate::spec::{Experiment, Shard, ShardBy};
use crate::store::{Beginning, Extent, RunDirectory, StepRow, files};

/// One run.
pub(super) struct SourceRun {
    pub path: PathBuf,
    /// Its place among the sources, and their number.
    pub place: usize,
    of: usize,
    pub experiment: Experiment,
    pub environment: RunEnvironment,
    pub extent: Extent,
}

/// Reads all runs in the order of their shards, and refuses runs that do not belong together. A run that has not stored
/// anything yet is left out, with a notice.
pub(super) fn read_all(paths: &[PathBuf], notices: &mut Vec<String>) -> Result<Vec<SourceRun>> {
    let mut sources = Vec::new();
    for path in paths {
        match SourceRun::read(path)? {
            Some(source) => sources.push(source),
            None => notices.push(format!("{} has not begun to measure; it is left out", path.display())),
        }
    }
    let Some(first) = sources.first() else {
        return Err(Error::data("none of these runs has begun")
            .hint("give run directories, such as results/vgg16.shard-1-of-8"));
    };
    let spec = comparable(&first.experiment);
    for source in &sources[1..] {
        let other = comparable(&source.experiment);
        if other != spec {
            return Err(apart(&sources[0], source, &difference(&spec, &other)));
        }
        let (one, two) = (sources[0].experiment.measure.shard, source.experiment.measure.shard);
        if one.map(|shard| (shard.count, shard.by)) != two.map(|shard| (shard.count, shard.by)) {
            return Err(apart(&sources[0], source, &format!("  {}\n  {}", division(one), division(two))));
        }
    }
    refuse_twice(&sources)?;
    sources.sort_by_key(|source| source.shard().map_or(0, |shard| shard.number));
    let of = sources.len();
    for (place, source) in sources.iter_mut().enumerate() {
        (source.place, source.of) = (place, of);
    }
    Ok(sources)
}

/// The spec without the values that may differ between runs that belong together: the shard and the time limit.
fn comparable(experiment: &Experiment) -> String {
    let text = experiment.whole().to_toml();
    text.lines().filter(|line| !line.starts_with("time_limit = ")).map(|line| format!("{line}\n")).collect()
}

fn difference(first: &str, other: &str) -> String {
    let only = |a: &str, b: &str| -> Vec<String> {
        let lines: Vec<&str> = b.lines().collect();
        a.lines().filter(|line| !lines.contains(line)).map(|line| format!("  {line}")).collect()
    };
    [only(first, other), only(other, first)].concat().join("\n")
}

fn division(shard: Option<Shard>) -> String {
    shard.map_or("not divided into shards".to_owned(), |shard| {
        format!("one of {} shards by {}", shard.count, shard.by.name())
    })
}

fn apart(first: &SourceRun, other: &SourceRun, how: &str) -> Error {
    let (first, other) = (first.path.display(), other.path.display());
    Error::new(
        Kind::Conflict,
        format!("{first} and {other} are runs of different specs, or divided into shards differently:\n{how}"),
    )
    .hint("merge runs of one spec; `batchstep compare` and `batchstep plot` take runs of different ones")
}

/// A shard that was measured twice, or a copy of a run, would count twice.
fn refuse_twice(sources: &[SourceRun]) -> Result<()> {
    let (mut shards, mut ids) = (BTreeMap::new(), BTreeMap::new());
    for source in sources {
        let path = source.path.display();
        if let Some(shard) = source.shard()
            && let Some(earlier) = shards.insert(shard.number, &source.path)
        {
            let what = format!("shard {shard} is given twice: {} and {path}", earlier.display());
            return Err(Error::new(Kind::Conflict, what).hint("leave one of them out"));
        }
        if let Some(earlier) = ids.insert(&source.environment.run_id, &source.path) {
            let what = format!("{} and {path} are the same run, {}", earlier.display(), source.environment.run_id);
            return Err(Error::new(Kind::Conflict, what).hint("leave one of them out"));
        }
    }
    Ok(())
}

impl SourceRun {
    /// `None` where the run has not stored anything yet.
    fn read(path: &Path) -> Result<Option<Self>> {
        if look::is_file(&path.join(files::MERGE))? {
            return Err(Error::new(Kind::Conflict, "this is the result of a merge")
                .at(path.display().to_string())
                .hint("give the runs that it was made from"));
        }
        if look::is_folder(path)? && RunDirectory::is_yet_to_begin(path)? {
            return Ok(None);
        }
        // Before the environment, which is written before the first visit.
        let extent = Extent::of(path)?;
        let Beginning { spec, environment } = Beginning::of(path)?;
        let named = |e: Error| e.at(path.display().to_string());
        let experiment = Experiment::parse(&spec, files::SPEC).map_err(named)?;
        let environment = match environment {
            Some(text) => RunEnvironment::from_json(&text).map_err(named)?,
            None if extent.visits == 0 => return Ok(None),
            None => {
                return Err(named(
                    Error::data("its visits are there, but its environment.json is missing")
                        .hint("put it back from a copy, or leave this run out"),
                ));
            }
        };
        let (path, place, of) = (path.to_path_buf(), 0, 1);
        Ok(Some(Self { path, place, of, experiment, environment, extent }))
    }

    pub fn shard(&self) -> Option<Shard> {
        self.experiment.measure.shard
    }

    /// The numbers of its blocks and cells in the whole.
    pub fn numbers(&self) -> Result<Numbers> {
        let (first, stride, cells) = match self.shard() {
            Some(Shard { by: ShardBy::Blocks, number, count }) => (number - 1, count, None),
            // The cells of other shards have the same blocks.
            Some(Shard { by: ShardBy::Cells, .. }) => (0, 1, Some(Plan::new(&self.experiment)?)),
            None => (self.place, self.of, None),
        };
        Ok(Numbers { path: self.path.clone(), first: first as i64, stride: stride as i64, cells })
    }
}

/// Converts the numbers of a run's own plan to those of the whole plan.
pub(super) struct Numbers {
    path: PathBuf,
    /// Of the blocks.
    first: i64,
    stride: i64,
    /// The run's own plan, if it does not have all cells.
    cells: Option<Plan>,
}

impl Numbers {
    pub fn renumber(&self, row: &mut StepRow) -> Result<()> {
        row.block = self.first + self.stride * row.block;
        row.cell = self.cell(row.cell)?;
        Ok(())
    }

    pub fn cell(&self, cell: i64) -> Result<i64> {
        let Some(plan) = &self.cells else { return Ok(cell) };
        let whole = usize::try_from(cell).ok().and_then(|cell| plan.whole_cell(cell));
        whole.map(|cell| cell as i64).ok_or_else(|| {
            Error::data(format!("a row is of cell {cell}, which the plan of this shard does not have"))
                .at(self.path.display().to_string())
        })
    }
}
