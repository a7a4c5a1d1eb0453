//! The loop of a study: each block visits every cell once, in the order of the plan, and each visit is stored before the next begins, so
//! that `--resume` continues with the very same plan.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::{Cell, Plan, Study, Visited};
use crate::device::Device;
use crate::engine::open::Engines;
use crate::error::{Error, Result};
use crate::run::RowContext;
use crate::spec::Subject;
use crate::store::rows_of;

/// How often and how long is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Course {
    /// Blocks: each visits every cell once.
    pub repetitions: usize,
    /// No visit begins later than this many seconds after the start.
    pub time_limit_s: f64,
    pub seed: u64,
}

/// Everything that a study works with.
pub struct Bench<'a, S: Study> {
    pub spec: &'a S,
    pub plan: &'a Plan<S::Beside>,
    pub data: &'a S::Data,
    pub supplies: &'a S::Supplies,
    pub facts: RowContext,
    pub engines: &'a mut Engines,
    pub device: &'a mut dyn Device,
    pub observer: &'a mut dyn Observer,
    /// Set from outside (Ctrl-C): the visit under way ends, then the study stops.
    pub interrupted: &'a AtomicBool,
}

/// A visit that begins.
pub struct VisitTo<'a, S: Study> {
    pub cell: &'a Cell<S::Beside>,
    pub block: i64,
    /// Its place in the run.
    pub visit: i64,
    /// Seconds that [`Study::prepare`] took.
    pub prepare_s: f64,
}

/// What a visit left.
#[derive(Clone, Debug)]
pub struct Visit<S: Study> {
    pub rows: Vec<S::Row>,
    pub details: Vec<S::Detail>,
}

/// Someone who watches a study.
pub trait Observer {
    /// A visit has ended; `last` names its cell and its figure.
    fn visited(&mut self, last: &str, progress: Progress);
    /// Something the user should know.
    fn warn(&mut self, message: &str);
}

/// How far a study is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    pub visits: usize,
    pub of: usize,
    /// At the pace of this process.
    pub left_s: f64,
}

/// How a study ended.
#[derive(Debug, Default)]
pub struct Outcome {
    /// False where it was interrupted or ended by an error: `--resume` goes on.
    pub complete: bool,
    /// The time limit came before the last visit.
    pub out_of_time: bool,
    /// Why it ended early, where the spec asks for that.
    pub stopped: Option<Error>,
}

/// The study without the optional engines that cannot run it, and the reason for each.
///
/// The GPU engine accepts only full batches, and PyTorch reads only data in memory. If such an engine is optional, the other engines still run.
pub fn without_unfit<S: Study>(study: &S, data: &S::Data, engines: &mut Engines) -> (S, Vec<String>) {
    let mut kept = study.clone();
    let mut left_out = Vec::new();
    for &engine in &study.subject().engine.optional {
        let mut alone = study.clone();
        alone.subject_mut().engine.name = vec![engine];
        if let Err(error) = alone.plan(data, engines) {
            let Subject { engine: asked, .. } = kept.subject_mut();
            asked.name.retain(|kept| *kept != engine);
            asked.optional.retain(|kept| *kept != engine);
            let remedy = error.remedy().map(|remedy| format!("; {remedy}")).unwrap_or_default();
            left_out.push(format!("{}{remedy}", error.clause()));
        }
    }
    (kept, left_out)
}

/// Runs a study, beginning after the visits that are already stored; `store` stores each before the next begins.
///
/// # Errors
/// Those of `store`, [`crate::error::Kind::Device`] where the device is lost; the visits before it are stored.
pub fn carry_out<S: Study>(
    mut bench: Bench<S>,
    stored: &[S::Row],
    mut store: impl FnMut(&Visit<S>) -> Result<()>,
) -> Result<Outcome> {
    let watch = Instant::now();
    let mut done = Done::new(stored, bench.spec.stops_at_an_error());
    let (plan, course) = (bench.plan, bench.spec.course());
    let mut here = 0;
    for block in 0..course.repetitions {
        for index in plan.steps.order(block) {
            let cell = &plan.cells[index];
            if done.is_done(index, block) {
                continue;
            }
            if bench.interrupted.load(Ordering::Relaxed) {
                return Ok(Outcome::default());
            }
            if watch.elapsed().as_secs_f64() > course.time_limit_s {
                return Ok(Outcome { complete: true, out_of_time: true, stopped: None });
            }
            let at = VisitTo { cell, block: block as i64, visit: done.next_visit, prepare_s: 0.0 };
            let Some((visit, failed)) = bench.visit(at)? else { return Ok(Outcome::default()) };
            store(&visit)?;
            done.add(&visit.rows);
            here += 1;
            let said = failed.as_ref().map(Error::to_string).into_iter().chain(S::remarks(&visit.rows));
            said.chain(bench.device.warnings()).for_each(|said| bench.observer.warn(&said));
            let (visits, of) = (done.visits.len(), plan.cells.len() * course.repetitions);
            let left = of.saturating_sub(visits + done.left_out(course.repetitions, block));
            let left_s = watch.elapsed().as_secs_f64() / f64::from(here) * left as f64;
            let figure = S::figure(&visit.rows).unwrap_or_else(|| "failed".to_owned());
            let last = format!("{}: {figure}", S::name_of(&bench.facts, cell));
            bench.observer.visited(&last, Progress { visits, of, left_s });
            if let Some(error) = failed.filter(|_| bench.spec.stops_at_an_error()) {
                return Ok(Outcome { complete: false, out_of_time: false, stopped: Some(error) });
            }
        }
    }
    Ok(Outcome { complete: true, out_of_time: false, stopped: None })
}

impl<S: Study> Bench<'_, S> {
    /// `None` where it was interrupted; with the error of a cell that failed.
    fn visit(&mut self, mut at: VisitTo<S>) -> Result<Option<(Visit<S>, Option<Error>)>> {
        let mut visit = Visit { rows: Vec::new(), details: Vec::new() };
        let watch = Instant::now();
        let ready = S::prepare(self, at.cell);
        at.prepare_s = watch.elapsed().as_secs_f64();
        // What a library has just refused.
        if let Some(what) = self.facts.mark_unqualified(self.engines, &at.cell.step, &self.plan.steps.cells)? {
            self.observer.warn(&what);
        }
        match ready.and_then(|ready| S::visit(self, &at, ready, &mut visit)) {
            Ok(true) => Ok(Some((visit, None))),
            Ok(false) => Ok(None),
            Err(error) if S::OF_A_CELL.contains(&error.kind()) => {
                let error = error.at(S::name_of(&self.facts, at.cell));
                visit.rows.push(S::failed(self, &at, &error));
                Ok(Some((visit, Some(error))))
            }
            Err(error) => Err(error),
        }
    }
}

/// Which visits were made.
#[derive(Debug, Default)]
struct Done {
    visits: BTreeSet<(usize, usize)>,
    /// Cells that failed; they are not visited again.
    failed: BTreeSet<usize>,
    next_visit: i64,
}

impl Done {
    /// `again`: a failure ended the run, and the visit that failed is made again.
    fn new<R: Visited>(stored: &[R], again: bool) -> Self {
        let failed = if again { failed_visits(stored) } else { BTreeSet::new() };
        let mut done = Self::default();
        done.add(stored.iter().filter(|row| !failed.contains(&row.place()[2])));
        done.next_visit = stored.iter().map(|row| row.place()[2] + 1).max().unwrap_or(0);
        done
    }

    fn add<'a, R: Visited + 'a>(&mut self, rows: impl IntoIterator<Item = &'a R>) {
        for row in rows {
            let [cell, block, visit] = row.place();
            self.visits.insert((cell as usize, block as usize));
            self.next_visit = self.next_visit.max(visit + 1);
            if row.status().is_failure() {
                self.failed.insert(cell as usize);
            }
        }
    }

    fn is_done(&self, cell: usize, block: usize) -> bool {
        self.failed.contains(&cell) || self.visits.contains(&(cell, block))
    }

    /// Visits that failed cells will not have.
    fn left_out(&self, blocks: usize, block: usize) -> usize {
        let had = |cell: usize| (0..=block).filter(|&block| self.visits.contains(&(cell, block))).count();
        self.failed.iter().map(|&cell| blocks.saturating_sub(had(cell))).sum()
    }
}

fn failed_visits<R: Visited>(rows: &[R]) -> BTreeSet<i64> {
    rows.iter().filter(|row| row.status().is_failure()).map(|row| row.place()[2]).collect()
}

/// The rows of a run, without those of a visit that failed, ended the run, and was made again when the run went on.
///
/// # Errors
/// As [`rows_of`].
pub(super) fn rows_that_count<R: Visited>(path: &Path) -> Result<Vec<R>> {
    let mut rows: Vec<R> = rows_of(path)?;
    let failed = failed_visits(&rows);
    let mut last: BTreeMap<[i64; 2], i64> = BTreeMap::new();
    for row in &rows {
        let [cell, block, visit] = row.place();
        let known = last.entry([cell, block]).or_insert(visit);
        *known = visit.max(*known);
    }
    rows.retain(|row| {
        let [cell, block, visit] = row.place();
        !failed.contains(&visit) || last.get(&[cell, block]) == Some(&visit)
    });
    Ok(rows)
}
