//! A study of the input pipeline: what feeds a training, and what holds it up.
//!
//! The program makes its own images. A visit measures each stage by itself: reading
//! files (warm from the page cache, cold from the storage device), decoding, the transform into the network's input, the loader's own work, the
//! copy into the engine's memory, the training step. Stages of a worker are measured with one thread, for the demands of the model, and with as
//! many threads as the cell has workers, for the ceilings. The two sides, loader and training, run separately and at the same time, each on its own
//! data; the difference shows how much they slow each other. Then everything runs together, and the visit measures images per second and the share
//! of the time in which the training waits, in the steady state. All measurements are cut into rounds, so that a change in the machine's speed
//! affects all of them. [`results`] predicts the rate of all together from the rest.

mod figures;
pub mod files;
pub mod images;
mod plan;
pub mod report;
pub mod results;
mod rounds;
mod rows;
mod scheduling;
mod sides;
pub mod spec;
mod stages;
#[cfg(test)]
mod tests;
mod together;
mod visit;

use std::path::Path;

pub use images::Made;
pub use plan::Source;
pub use rows::PipelineRow;
pub use spec::Pipeline;

use super::{Bench, Cell, Course, Plan, Study, Told, Visit, VisitTo, visited};
use crate::device::root::FilesystemRoot;
use crate::device::storage::Storage;
use crate::engine::open::Engines;
use crate::error::{Error, Kind, Result};
use crate::kinds::StudyKind;
use crate::run::RowContext;
use crate::spec::Subject;
use crate::spec::keys::Table;
use crate::store::{RunDirectory, Status};
use crate::study::course::rows_that_count;
use crate::study::training::spec::OnError;
use crate::units::human;
use results::Results;
use rounds::Stages;

visited!(PipelineRow, block);

/// The images, and the storage device that they lie on.
pub struct Supplies {
    pub made: Made,
    pub storage: String,
}

impl Study for Pipeline {
    const KIND: StudyKind = StudyKind::Pipeline;
    const OF_A_CELL: &'static [Kind] = &[Kind::OutOfMemory, Kind::Engine, Kind::Data, Kind::Io];
    type Beside = Source;
    type Row = PipelineRow;
    type Detail = PipelineRow;
    type Data = ();
    type Supplies = Supplies;
    type Ready = Stages;

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn subject_mut(&mut self) -> &mut Subject {
        &mut self.subject
    }

    fn course(&self) -> Course {
        let spec::Windows { repetitions, time_limit_s, seed, .. } = self.measure;
        Course { repetitions, time_limit_s, seed }
    }

    fn limits(&mut self) -> (&mut u64, &mut f64) {
        (&mut self.measure.seed, &mut self.measure.time_limit_s)
    }

    fn write_own(&self, out: &mut String) {
        self.data.write(out);
        self.loader.write(out);
        self.measure.write(out);
    }

    fn size(&self) -> String {
        let data = &self.data;
        format!(
            "{}, visited {} each, on {} that are made and removed",
            human::counted(self.cell_count() as u64, "cell"),
            human::counted(self.measure.repetitions as u64, "time"),
            human::counted((data.images * data.sizes.len() * data.formats.len()) as u64, "file")
        )
    }

    fn data(&self) -> Result<()> {
        Ok(())
    }

    fn plan(&self, (): &(), engines: &mut Engines) -> Result<Plan<Source>> {
        let plan = plan::plan(self, engines)?;
        check(&plan, self, engines)?;
        Ok(plan)
    }

    /// Makes the images where the spec says.
    fn supplies(&self, directory: &RunDirectory, say: &dyn Fn(&str)) -> Result<Supplies> {
        let root = match &self.data.folder {
            Some(folder) => folder.join(format!("batchstep-{}-{}", self.subject.name, std::process::id())),
            None => directory.scratch()?.join("images"),
        };
        say(&format!("making the images in {}", root.display()));
        let made = Made::new(&root, &self.data, self.measure.seed)?;
        let folder = self.data.folder.as_deref().unwrap_or(directory.path());
        Ok(Supplies { made, storage: Storage::under(&FilesystemRoot::system(), folder).describe() })
    }

    fn name_of(_: &RowContext, cell: &Cell<Source>) -> String {
        let Cell { step, beside: Source { format, size, cache, workers } } = cell;
        let workers = human::counted(*workers as u64, "worker");
        format!("{format} of {size}x{size}, {cache}, batch size {}, {workers}", step.batch_size)
    }

    fn prepare(bench: &mut Bench<Self>, cell: &Cell<Source>) -> Result<Stages> {
        bench.prepare(cell)
    }

    fn visit(bench: &mut Bench<Self>, at: &VisitTo<Self>, stages: Stages, visit: &mut Visit<Self>) -> Result<bool> {
        visit.rows = bench.measure(at, stages)?;
        Ok(true)
    }

    fn failed(bench: &Bench<Self>, at: &VisitTo<Self>, error: &Error) -> PipelineRow {
        let (status, error, stage) = (Status::of(error), Some(error.to_string()), "together".to_owned());
        PipelineRow { status, error, stage, ..bench.row(at) }
    }

    fn stops_at_an_error(&self) -> bool {
        self.loader.on_error == OnError::Stop
    }

    fn remarks(rows: &[PipelineRow]) -> Option<String> {
        let row = rows.iter().find(|row| row.skipped > 0 && row.block == 0)?;
        let why = row.error.as_deref().unwrap_or("they could not be read");
        Some(format!("images that could not be read and were left out: {}\n{why}", row.skipped))
    }

    fn figure(rows: &[PipelineRow]) -> Option<String> {
        let together = rows.iter().find(|row| row.stage == "together")?;
        let rate = together.images as f64 / together.elapsed_s?;
        Some(format!("{} images/s", human::count(rate as u64)))
    }

    fn told(path: &Path) -> Result<Told> {
        let study = Results::of(&rows_that_count(path)?);
        let drawing = figures::drawing(path, &study);
        Ok(Told {
            path: path.to_path_buf(),
            kind: "Stages and workers",
            facts: study.storage.clone(),
            answers: vec![report::answer(&study, drawing.summary.clone())],
            warnings: report::warnings(&study),
            document: report::document(&study),
            drawing,
            is_interactive: false,
            json: report::json(&study),
            file: Some("pipeline.json"),
        })
    }
}

/// Refuses what cannot run, before anything is made.
///
/// # Errors
/// [`Kind::Spec`]: an engine takes no batches of a loader, or would be given some that are not whole.
fn check(plan: &Plan<Source>, spec: &Pipeline, engines: &mut Engines) -> Result<()> {
    for cell in &plan.cells {
        let name = engines.resolve(cell.step.engine);
        let engine = engines.get(cell.step.engine)?;
        if !engine.trains() {
            return Err(Error::spec(format!("the engine `{name}` does not take the batches of a loader here"))
                .at("[engine]")
                .hint("use the engine `cpu`, `candle` or `cudnn`"));
        }
        if engine.needs_whole_batches() && spec.loader.on_error == OnError::Skip {
            return Err(Error::spec("`on_error = \"skip\"` makes smaller batches, and all must be whole")
                .at(format!("engine `{name}`"))
                .hint("use `on_error = \"fail\"` or \"stop\" in [loader]"));
        }
    }
    Ok(())
}

/// Bytes that this process has had fetched from storage devices so far: `read_bytes` of `/proc/self/io`.
fn storage_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("read_bytes: "))?.trim().parse().ok()
}
