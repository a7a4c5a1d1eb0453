//! Merges several runs of one spec into one run directory: the shards of an experiment, or repetitions on other
//! machines.
//!
//! Nothing is measured or judged here. Rows are copied from the runs to the merged tables, one run after the other,
//! batch by batch. They get the numbers of blocks and cells in the whole plan and keep the machine that measured them;
//! the analysis accounts for the machines. The runs are only read, so they may be unfinished or still running.

mod cells;
mod source;
mod statement;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::error::Result;
use crate::run::environment::RunEnvironment;
use crate::store::{self, LayerRow, MergedDirectory, StepRow, files};
use cells::Cells;
use source::SourceRun;
pub use statement::{MergedRun, Node, Statement};

/// The result of a merge.
#[derive(Debug)]
pub struct Merged {
    pub statement: Statement,
    pub rows: usize,
    pub cells: usize,
    /// Parts of runs that could not be read.
    pub notices: Vec<String>,
}

/// Merges `runs` into the folder `out`, which may hold an earlier merge.
///
/// # Errors
/// [`crate::error::Kind::Conflict`] where the runs are not of one spec, one of them is given twice, or `out` holds something else;
/// [`crate::error::Kind::Data`] and [`crate::error::Kind::Io`] where one can't be read.
pub fn merge(out: &Path, runs: &[PathBuf]) -> Result<Merged> {
    let mut notices = Vec::new();
    let sources = source::read_all(runs, &mut notices)?;
    let whole = sources[0].experiment.whole();
    let mut statement = Statement::new(&sources);
    let run_id = run_id(&sources);
    let environment = RunEnvironment { run_id: run_id.clone(), spec_digest: None, ..sources[0].environment.clone() };
    let directory = MergedDirectory::begin(out, &whole.to_toml(), &environment.to_json(), statement.is_complete())?;
    let (mut cells, mut rows) = (Cells::default(), 0);
    // The numbers of visits and steps continue from the run before; all others are those of the whole plan.
    let (mut next_visit, mut next_order) = (0, 0);
    directory.write::<StepRow>(files::STEPS, |put| {
        for source in &sources {
            let numbers = source.numbers()?;
            let (first_visit, first_order) = (next_visit, next_order);
            store::visits_of(&source.path, &mut notices, &mut |mut visit: Vec<StepRow>| {
                statement.saw(source.place, &visit);
                for row in &mut visit {
                    numbers.renumber(row)?;
                    (row.visit, row.order) = (row.visit + first_visit, row.order + first_order);
                    (next_visit, next_order) = (row.visit + 1, row.order + 1);
                }
                cells.take(&visit);
                rows += visit.len();
                visit.into_iter().try_for_each(&mut *put)
            })?;
        }
        Ok(())
    })?;
    // Those of each cell come from the first run that has them.
    let mut layers: BTreeMap<i64, (usize, Vec<LayerRow>)> = BTreeMap::new();
    for source in &sources {
        let numbers = source.numbers()?;
        store::visits_of(&source.path, &mut notices, &mut |rows: Vec<LayerRow>| {
            for row in rows {
                let cell = numbers.cell(row.cell)?;
                let (from, kept) = layers.entry(cell).or_insert((source.place, Vec::new()));
                kept.extend((*from == source.place).then_some(LayerRow { cell, ..row }));
            }
            Ok(())
        })?;
        cells.stopped(source, &numbers)?;
    }
    directory.write(files::LAYERS, |put| layers.into_values().flat_map(|(_, rows)| rows).try_for_each(put))?;
    let cells = cells.into_rows(&run_id);
    directory.write(files::CELLS, |put| cells.iter().cloned().try_for_each(put))?;
    directory.finish(&statement.to_json())?;
    Ok(Merged { statement, rows, cells: cells.len(), notices })
}

/// The same merge again has the same name, and one of other runs another.
fn run_id(sources: &[SourceRun]) -> String {
    let mut ids: Vec<&str> = sources.iter().map(|source| source.environment.run_id.as_str()).collect();
    ids.sort_unstable();
    let digest = store::digest(ids.iter().flat_map(|id| [id.as_bytes(), b"\n".as_slice()]));
    format!("{}-merged-of-{}-{}", ids[0], ids.len(), &digest[..8])
}

#[cfg(test)]
mod tests;
