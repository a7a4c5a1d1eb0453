//! Collects runs into the database: they are gathered one by one and merged table by table.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::gather::{Candidate, DeviceAndNetwork, Gathered, Part};
use super::layout::{MARK, all, of_device, of_network, replace, replace_published, tables, values};
use super::{kernels, steps};
use crate::error::{Error, Kind, Result};
use crate::os::atomic::write_text;
use crate::os::look;
use crate::store::dataset::{self, Writer};
use crate::store::{CollectedKernel, CollectedLayer, CollectedRun, CollectedStep, DATABASE_VERSION, files};

/// The most rows in memory before they are merged: some hundred bytes each.
const MOST_ROWS: usize = 200_000;

#[derive(Debug)]
pub enum Outcome {
    /// It is new.
    Added { cells: usize },
    /// It has changed since it was collected.
    Replaced { cells: usize },
    /// It is already in the database, unchanged.
    Unchanged,
    /// The number of `kernels` or `steps` that others measured.
    Published { count: usize, what: &'static str },
    /// It does not belong here.
    Refused(Error),
}

/// Gathers runs, folders of runs and tables of published kernels or steps into the database in `into`, which is made where it is missing;
/// `each` is called with the outcome for each path. A path that is refused, or cannot be read, does not affect the others.
///
/// # Errors
/// [`Kind::Conflict`] where `into` holds something else, is of another version, or is being written; [`Kind::Io`] where it cannot be read
/// or written.
pub fn collect(paths: &[PathBuf], into: &Path, each: &mut dyn FnMut(&Path, Outcome)) -> Result<()> {
    begin(into)?;
    let _writer = Writer::take(into)?;
    let mut pending = Pending::new(into)?;
    for (path, looked) in expanded(paths) {
        let outcome = match looked.and_then(|()| pending.read(&path)) {
            Ok(content) => match pending.take(content) {
                Ok(outcome) => outcome,
                // What `each` was told of is stored all the same.
                Err(error) => return pending.merge().and(Err(error)),
            },
            Err(error) => Outcome::Refused(error),
        };
        each(&path, outcome);
        if pending.rows > MOST_ROWS {
            pending.merge()?;
        }
    }
    pending.merge()
}

/// Makes the folder a database, or checks that it is one.
fn begin(into: &Path) -> Result<()> {
    let mark = into.join(MARK);
    if look::is_file(&mark)? {
        return check(into);
    }
    let holds_something = look::entries(into)?.iter().any(|entry| entry.file_name() != files::LOCK);
    if holds_something || look::is_file(into)? {
        return Err(Error::new(Kind::Conflict, "this is neither empty nor a database of runs")
            .at(into.display().to_string())
            .hint("choose another folder with `--into DIR`"));
    }
    std::fs::create_dir_all(into).map_err(|e| Error::io("make the database", into, &e))?;
    let text = serde_json::json!({"what": "a database of runs, by batchstep", "version": DATABASE_VERSION});
    write_text(&mark, &format!("{text:#}\n"))
}

/// Refuses a folder that is not a database, or a database of another version.
pub(super) fn check(root: &Path) -> Result<()> {
    let mark = root.join(MARK);
    let version = look::text(&mark)?;
    let version = version.and_then(|text| serde_json::from_str::<serde_json::Value>(&text).ok()?["version"].as_u64());
    let error = match version {
        Some(version) if version == u64::from(DATABASE_VERSION) => return Ok(()),
        Some(version) => {
            Error::data(format!("this database is of version {version}, and version {DATABASE_VERSION} is read here"))
                .hint("collect its runs again into a new folder, or use the batchstep that wrote it")
        }
        None => Error::data("there is no database of runs here")
            .hint("make one: `batchstep collect RUN... --into DIR`; the stored runs of the repository are in experiments/runs"),
    };
    Err(error.at(root.display().to_string()))
}

/// The paths, where each folder of runs is replaced by its runs; or with the reason why one could not be looked at.
fn expanded(paths: &[PathBuf]) -> Vec<(PathBuf, Result<()>)> {
    let mut all = Vec::new();
    for path in paths {
        match runs_in(path) {
            Ok(runs) if !runs.is_empty() => all.extend(runs.into_iter().map(|run| (run, Ok(())))),
            looked => all.push((path.clone(), looked.map(drop))),
        }
    }
    all
}

/// The runs in a folder that is no run itself.
fn runs_in(path: &Path) -> Result<Vec<PathBuf>> {
    let is_run = |path: &Path| -> Result<bool> {
        Ok(look::is_file(&path.join(files::SPEC))? || look::is_file(&path.join(files::CELLS))?)
    };
    let mut inner = Vec::new();
    if !is_run(path)? {
        for entry in look::entries(path)? {
            // One that cannot be looked at is refused by itself.
            if is_run(&entry.path()).unwrap_or(true) {
                inner.push(entry.path());
            }
        }
        inner.sort();
    }
    Ok(inner)
}

/// What a path holds.
enum Content {
    /// A run that the database has.
    Known,
    Run {
        run_id: String,
        digest: String,
        gathered: Gathered,
    },
    Steps(Vec<CollectedStep>),
    Kernels(Vec<CollectedKernel>),
}

/// Rows that are not yet in the files.
struct Pending<'a> {
    root: &'a Path,
    /// The digest of each run that is in the database or pending.
    known: BTreeMap<String, String>,
    runs: BTreeMap<String, Vec<CollectedRun>>,
    parts: BTreeMap<DeviceAndNetwork, Part>,
    rows: usize,
}

impl<'a> Pending<'a> {
    fn new(root: &'a Path) -> Result<Self> {
        let mut known = BTreeMap::new();
        for device in values(&root.join(tables::RUNS), "device")? {
            let runs: Vec<CollectedRun> = all(&of_device(root, tables::RUNS, &device))?;
            known.extend(runs.into_iter().map(|run| (run.run_id, run.digest)));
        }
        Ok(Self { root, known, runs: BTreeMap::new(), parts: BTreeMap::new(), rows: 0 })
    }

    /// Reads what a path holds.
    fn read(&self, path: &Path) -> Result<Content> {
        if look::is_file(path)? {
            return match steps::is_table(path)? {
                true => steps::read(path).map(Content::Steps),
                false => kernels::read(path).map(Content::Kernels),
            };
        }
        let candidate = Candidate::open(path)?;
        let (run_id, digest) = (candidate.run_id().to_owned(), candidate.digest.clone());
        let before = self.known.get(&run_id);
        if before == Some(&digest) {
            return Ok(Content::Known);
        }
        if before.is_some() && self.runs.values().flatten().any(|run| run.run_id == run_id) {
            return Err(Error::data(format!(
                "another of these runs has the same ID, {run_id}, but different contents"
            ))
            .at(path.display().to_string())
            .hint("they are copies of one run at two times: collect the later one"));
        }
        Ok(Content::Run { run_id, digest, gathered: candidate.gather()? })
    }

    fn take(&mut self, content: Content) -> Result<Outcome> {
        Ok(match content {
            Content::Known => Outcome::Unchanged,
            Content::Steps(rows) => {
                let count = rows.len();
                replace_published(self.root, tables::STEPS, rows, |row| [&row.device_name, &row.source])?;
                Outcome::Published { count, what: "steps" }
            }
            Content::Kernels(rows) => {
                let count = rows.len();
                replace_published(self.root, tables::KERNELS, rows, |row| [&row.device_name, &row.source])?;
                Outcome::Published { count, what: "kernels" }
            }
            Content::Run { run_id, digest, gathered } => {
                let cells = gathered.parts.values().map(|part| part.cells.len()).sum();
                self.put(gathered);
                let is_known = self.known.insert(run_id, digest).is_some();
                if is_known { Outcome::Replaced { cells } } else { Outcome::Added { cells } }
            }
        })
    }

    fn put(&mut self, gathered: Gathered) {
        for (place, Part { cells, layers }) in gathered.parts {
            self.rows += cells.len() + layers.len();
            let part = self.parts.entry(place).or_default();
            part.cells.extend(cells);
            part.layers.extend(layers);
        }
        for (device, run) in gathered.runs {
            self.rows += 1;
            self.runs.entry(device).or_default().push(run);
        }
    }

    /// Writes all pending rows. The runs are written last: a run without its row there counts as not collected.
    fn merge(&mut self) -> Result<()> {
        for (place, Part { cells, layers }) in std::mem::take(&mut self.parts) {
            let replaced: BTreeSet<String> = cells.iter().map(|cell| cell.run_id.clone()).collect();
            let path = of_network(self.root, tables::CELLS, &place.device, &place.network);
            replace(&path, cells, |cell| replaced.contains(&cell.run_id))?;
            merge_layers(&of_network(self.root, tables::LAYERS, &place.device, &place.network), layers)?;
        }
        for (device, runs) in std::mem::take(&mut self.runs) {
            let replaced: BTreeSet<String> = runs.iter().map(|run| run.run_id.clone()).collect();
            replace(&of_device(self.root, tables::RUNS, &device), runs, |run| replaced.contains(&run.run_id))?;
        }
        self.rows = 0;
        Ok(())
    }
}

/// The key that distinguishes one cell's layers from another's.
fn key(row: &CollectedLayer) -> String {
    format!("{} {} {} {:?}", row.engine, row.network_id, row.batch_size, row.axes)
}

/// Keeps the layers of one run for each cell: the first run that has times, else the first run.
fn merge_layers(path: &Path, layers: Vec<CollectedLayer>) -> Result<()> {
    if layers.is_empty() {
        return Ok(());
    }
    let incoming: BTreeSet<String> = layers.iter().map(|row| row.run_id.clone()).collect();
    // By cell: the run whose rows are kept, and whether it has times.
    let mut kept: BTreeMap<String, (String, bool)> = BTreeMap::new();
    let mut see = |row: &CollectedLayer| {
        let timed = row.device_time_s.is_some();
        let (run_id, has_times) = kept.entry(key(row)).or_insert_with(|| (row.run_id.clone(), timed));
        if *run_id == row.run_id {
            *has_times |= timed;
        } else if timed && !*has_times {
            (*run_id, *has_times) = (row.run_id.clone(), true);
        }
    };
    dataset::rows(path, &mut |row: CollectedLayer| {
        if !incoming.contains(&row.run_id) {
            see(&row);
        }
        Ok(())
    })?;
    layers.iter().for_each(&mut see);
    let is_kept = |row: &CollectedLayer| kept.get(&key(row)).is_some_and(|(run_id, _)| *run_id == row.run_id);
    let outdated = |row: &CollectedLayer| incoming.contains(&row.run_id) || !is_kept(row);
    replace(path, layers.into_iter().filter(is_kept).collect(), outdated)
}
