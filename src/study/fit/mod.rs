//! A study of fits: a network is trained on a surface in full batches, from its setup to the last update.
//!
//! Each cell is fitted once, from the initial parameters that its seed gives every engine. A step gives the loss before its update, so that
//! after E updates one step more is run for the error that they lead to; the output of that step is the fitted surface. The time until the
//! first step is ready is kept apart from the times of the steps.

mod figures;
pub mod report;
pub mod results;
mod rows;
pub mod spec;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::atomic::Ordering;

pub use rows::{FitRow, SurfaceRow};
pub use spec::Fit;

use super::plan::Axes;
use super::{Bench, Cell, Course, Plan, Study, Told, Visit, VisitTo, visited};
use crate::engine::open::Engines;
use crate::engine::{Settings, Step, Workload};
use crate::error::{Error, Kind, Result};
use crate::kinds::StudyKind;
use crate::network::data::{PeaksPoint, side};
use crate::run::{RowContext, row_of_cell};
use crate::settings::Examples;
use crate::spec::keys::Table;
use crate::spec::plan::networks;
use crate::spec::{Order, Subject};
use crate::store::{RunDirectory, Status, rows_of};
use crate::units::human;
use results::Results;

/// The most points along a side of a stored surface: of larger grids, evenly spaced rows and columns are kept.
const MOST_STORED: usize = 200;

visited!(FitRow,);

impl Study for Fit {
    const KIND: StudyKind = StudyKind::Fit;
    const OF_A_CELL: &'static [Kind] = &[Kind::OutOfMemory, Kind::Engine];
    type Beside = ();
    type Row = FitRow;
    type Detail = SurfaceRow;
    type Data = ();
    type Supplies = ();
    type Ready = Box<dyn Step>;

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn subject_mut(&mut self) -> &mut Subject {
        &mut self.subject
    }

    fn course(&self) -> Course {
        let spec::Updates { time_limit_s, seed, .. } = self.measure;
        Course { repetitions: 1, time_limit_s, seed }
    }

    fn limits(&mut self) -> (&mut u64, &mut f64) {
        (&mut self.measure.seed, &mut self.measure.time_limit_s)
    }

    fn write_own(&self, out: &mut String) {
        self.measure.write(out);
    }

    fn size(&self) -> String {
        let counted = |number: usize, noun| human::counted(number as u64, noun);
        format!("{}, {} each", counted(self.subject.cell_count(&[]), "fit"), counted(self.measure.epochs, "update"))
    }

    fn data(&self) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &(), _: &mut Engines) -> Result<Plan<()>> {
        let (subject, seed) = (&self.subject, self.measure.seed);
        let common =
            Settings { learning_rate: subject.learning_rate, examples: Examples::Peaks, seed, ..Settings::default() };
        let settle = |network: &_, _, settings| Workload::check(network, &settings).map(|()| settings);
        let mut cells = Vec::new();
        Axes { subject, common, settle: &settle }.add(&mut cells, &networks(&subject.model)?, &[()])?;
        Ok(Plan::of(cells, seed, Order::Ascending))
    }

    fn supplies(&self, _: &RunDirectory, _: &dyn Fn(&str)) -> Result<()> {
        Ok(())
    }

    fn name_of(facts: &RowContext, cell: &Cell<()>) -> String {
        facts.name_of(&cell.step)
    }

    fn prepare(bench: &mut Bench<Self>, cell: &Cell<()>) -> Result<Box<dyn Step>> {
        bench.engines.get(cell.step.engine)?.prepare(&cell.step.workload)
    }

    fn visit(
        bench: &mut Bench<Self>,
        at: &VisitTo<Self>,
        mut step: Self::Ready,
        visit: &mut Visit<Self>,
    ) -> Result<bool> {
        let first = FitRow { prepare_time_s: Some(at.prepare_s), ..bench.row(at) };
        let Some(rows) = bench.train(step.as_mut(), &first)? else { return Ok(false) };
        let output = step.computed()?.map(|computed| computed.output);
        visit.rows = rows;
        visit.details = output.map_or_else(Vec::new, |output| surface(&at.cell.step.workload, &first, &output));
        Ok(true)
    }

    fn failed(bench: &Bench<Self>, at: &VisitTo<Self>, error: &Error) -> FitRow {
        FitRow { status: Status::of(error), error: Some(error.clause()), ..bench.row(at) }
    }

    fn figure(rows: &[FitRow]) -> Option<String> {
        rows.last().and_then(|last| last.loss).map(|loss| format!("error {}", human::digits(loss)))
    }

    fn told(path: &Path) -> Result<Told> {
        let study = Results::of(&rows_of(path)?, &rows_of(path)?);
        Ok(Told {
            path: path.to_path_buf(),
            kind: "Fits",
            facts: study.device.clone(),
            answers: report::answers(&study),
            warnings: report::warnings(&study),
            document: report::document(&study),
            drawing: figures::drawing(path, &study),
            is_interactive: false,
            json: report::json(&study),
            file: Some("fit.json"),
        })
    }
}

impl Bench<'_, Fit> {
    /// A row for each update and one for the end; `None` where it was interrupted.
    fn train(&self, step: &mut dyn Step, first: &FitRow) -> Result<Option<Vec<FitRow>>> {
        let updates = self.spec.measure.epochs;
        let mut rows = Vec::with_capacity(updates + 1);
        for epoch in 0..=updates {
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let times = step.run()?;
            let finite = times.loss.is_none_or(f64::is_finite);
            rows.push(FitRow {
                epoch: epoch as i64,
                status: if finite { Status::Ok } else { Status::NanLoss },
                loss: times.loss,
                step_time_s: Some(times.step_s),
                ..first.clone()
            });
        }
        Ok(Some(rows))
    }

    fn row(&self, at: &VisitTo<Fit>) -> FitRow {
        FitRow { visit: at.visit, ..row_of_cell!(FitRow, &self.facts, &at.cell.step) }
    }
}

/// The points of the grid, or of evenly spaced rows and columns of a large one.
fn surface(workload: &Workload, first: &FitRow, output: &[f64]) -> Vec<SurfaceRow> {
    let side = side(workload.batch_size);
    let stride = side.div_ceil(MOST_STORED);
    let kept = |example: &usize| (example / side).is_multiple_of(stride) && (example % side).is_multiple_of(stride);
    let row = |example: usize| {
        let point = PeaksPoint::of(example, side);
        SurfaceRow {
            cell: first.cell,
            visit: first.visit,
            row: (example / side / stride) as i64,
            column: (example % side / stride) as i64,
            x: point.x.into(),
            y: point.y.into(),
            height: point.height().into(),
            fitted: output[example],
        }
    };
    (0..workload.batch_size.min(output.len())).filter(kept).map(row).collect()
}
