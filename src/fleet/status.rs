//! The progress of runs, read only from their files: no process is asked, so it works wherever the folders can be read.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::Serialize;

use crate::error::Result;
use crate::kinds::StudyKind;
use crate::os::look;
use crate::settings::named;
use crate::spec::plan::Plan;
use crate::spec::{Experiment, parse_as};
use crate::store::{Beginning, Extent, MergedDirectory, RunDirectory, files};

/// A run that has stored nothing for this long may have died. It is longer than most visits take, and longer than a
/// network file system hides a new file.
const SILENT_S: f64 = 120.0;

/// The progress of a run.
#[derive(Clone, Debug, Serialize)]
pub struct Status {
    pub path: PathBuf,
    pub state: RunState,
    /// `3/8`.
    pub shard: Option<String>,
    /// 0 for other studies than sweeps, as is `most_visits`.
    pub cells: usize,
    pub visits: i64,
    /// The most visits; a run that decides on jumps may need fewer.
    pub most_visits: usize,
    /// Seconds since the last visit was stored; `None` if none was.
    pub last_s: Option<f64>,
}

named! {
    /// What a run is doing, judged by its files.
    #[derive(Serialize)]
    #[serde(rename_all = "snake_case")]
    RunState {
        /// There is no run yet.
        Waiting = "waiting",
        /// A visit was stored within the last minutes.
        Running = "running",
        /// The visits are not sealed, and none was added for minutes: the run was killed, or a visit takes long.
        Silent = "silent",
        /// Sealed before its end, as by a signal: `--resume` goes on.
        Stopped = "stopped",
        /// The result of a merge of runs that have not all finished.
        Merged = "merged",
        Finished = "finished",
    }
}

impl Status {
    /// The status of the run in `path`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where the folder holds something else, or a damaged table; [`crate::error::Kind::Io`].
    pub fn of(path: &Path) -> Result<Self> {
        if RunDirectory::is_yet_to_begin(path)? {
            let (state, path) = (RunState::Waiting, path.to_path_buf());
            return Ok(Self { path, state, shard: None, cells: 0, visits: 0, most_visits: 0, last_s: None });
        }
        MergedDirectory::refuse_cut_short(path)?;
        let Beginning { spec, environment } = Beginning::of(path)?;
        let (shard, cells, most_visits) = planned(&spec).map_err(|error| error.at(path.display().to_string()))?;
        let extent = Extent::of(path)?;
        let last_s = last_change(path).and_then(|at| Some(SystemTime::now().duration_since(at).ok()?.as_secs_f64()));
        let state = match extent {
            Extent { complete: true, .. } => RunState::Finished,
            _ if look::is_file(&path.join(files::MERGE))? => RunState::Merged,
            Extent { has_parts: false, visits: 1.., .. } if !look::is_there(&path.join(files::PARTS))? => {
                RunState::Stopped
            }
            _ if last_s.is_some_and(|s| s <= SILENT_S) => RunState::Running,
            // The folder of the shards of `submit` has a spec, too.
            _ if last_s.is_none() && environment.is_none() => RunState::Waiting,
            _ => RunState::Silent,
        };
        Ok(Self { path: path.to_path_buf(), state, shard, cells, visits: extent.visits, most_visits, last_s })
    }
}

/// The shard, the number of cells and the most visits of a sweep; nothing of other studies, which are planned with their data.
fn planned(spec: &str) -> Result<(Option<String>, usize, usize)> {
    let sweep = parse_as(spec, files::SPEC, |kind, section| match kind {
        StudyKind::Sweep => Experiment::of(section, files::SPEC).map(Some),
        _ => Ok(None),
    })?;
    let Some(experiment) = sweep else { return Ok((None, 0, 0)) };
    let own = experiment.own_part()?;
    let cells = Plan::new(&own)?.cells.len();
    Ok((experiment.measure.shard.map(|shard| shard.to_string()), cells, own.measure.blocks.max * cells))
}

/// When the parts, or the sealed table, changed last. The parts of each thousand visits have a folder of their own.
fn last_change(path: &Path) -> Option<SystemTime> {
    let parts = path.join(files::PARTS);
    let thousands = std::fs::read_dir(&parts).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()));
    let folders = thousands.filter(|path| path.is_dir());
    let tables = StudyKind::ALL.iter().map(|kind| path.join(kind.visits().table));
    let all = folders.chain([parts.clone()]).chain(tables);
    all.filter_map(|path| path.metadata().ok()?.modified().ok()).max()
}
