//! What a step of one's own runs inside, on both sides of its jumps: profiled after the sweep, when no step counts any more.

use std::path::Path;

use batchstep::analysis::kernels::{Profiles, Sides, VERSION};
use batchstep::analysis::{Analysed, Query, analyse};
use batchstep::detect::Jump;
use batchstep::engine::open::Engines;
use batchstep::error::{Error, Result};
use batchstep::os::atomic;
use batchstep::settings::EngineName;
use batchstep::spec::plan::{Cell, Plan};
use batchstep::store::files;

/// Jumps of a series that are looked into, the largest first: each costs a dozen steps.
const MOST: usize = 4;

/// Profiles the steps beside the jumps of the run in `path`, and stores what they run; nothing where there is no jump, or no profiler.
///
/// # Errors
/// What the engines and the folder answer.
pub fn keep(path: &Path, plan: &Plan, engines: &mut Engines) -> Result<()> {
    let mut engines_of_cells: Vec<EngineName> = plan.cells.iter().map(|cell| cell.engine).collect();
    engines_of_cells.dedup();
    if !engines_of_cells.iter().any(|engine| engines.get(*engine).is_ok_and(|engine| engine.profiles())) {
        return Ok(());
    }
    let mut jumps = Vec::new();
    for found in analyse(path, &Query::default(), None)? {
        let mut largest: Vec<&Jump> = found.findings.jumps.iter().collect();
        largest.sort_by(|a, b| b.size.abs().total_cmp(&a.size.abs()));
        for jump in largest.into_iter().take(MOST) {
            jumps.extend(sides(&found, jump, plan, engines)?);
        }
    }
    if jumps.is_empty() {
        return Ok(());
    }
    let text = serde_json::to_string_pretty(&Profiles { version: VERSION, jumps })
        .map_err(|error| Error::data(format!("the profiles cannot be written: {error}")))?;
    atomic::write_text(&path.join(files::KERNELS), &text)
}

fn sides(found: &Analysed, jump: &Jump, plan: &Plan, engines: &mut Engines) -> Result<Option<Sides>> {
    let next = found.findings.points.iter().map(|point| point.x).find(|&x| x > jump.after);
    let at = |size: f64| {
        let own = plan.cells.iter().filter(|cell| found.series.cells.contains(&(cell.index as i64)));
        own.into_iter().find(|cell| cell.batch_size as f64 == size)
    };
    let (Some(first), Some(second)) = (at(jump.after), next.and_then(at)) else { return Ok(None) };
    if !engines.get(first.engine)?.profiles() {
        return Ok(None);
    }
    let mut kernels = |cell: &Cell| engines.get(cell.engine)?.prepare(&cell.workload)?.kernels();
    let (before, behind) = (kernels(first)?, kernels(second)?);
    let (series, after, next) = (found.series.label(), first.batch_size, second.batch_size);
    Ok((!before.is_empty() && !behind.is_empty()).then_some(Sides { series, after, next, before, behind }))
}
