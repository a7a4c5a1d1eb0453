//! A study of whole epochs.
//!
//! A visit prepares the network at its initial parameters and starts the loader's workers; takes `warmup_steps` steps that do not count;
//! begins again from the initial parameters; and trains for whole epochs, each timed from its shuffling to the end of its last step. The
//! test examples are classified after each epoch, outside its time.

mod epoch;
mod figures;
pub mod hyperfine;
mod plan;
mod raw;
pub mod report;
pub mod results;
mod rows;
pub mod spec;
#[cfg(test)]
mod tests;
mod visit;
mod warnings;

use std::path::Path;

pub use plan::Loader;
pub use rows::{BatchRow, TrainingRow};
pub use spec::Training;

use super::{Bench, Cell, Course, Plan, Study, Told, Visit, VisitTo, visited};
use crate::data::{self, DataSet};
use crate::engine::open::Engines;
use crate::error::{Error, Kind, Result};
use crate::kinds::StudyKind;
use crate::run::RowContext;
use crate::spec::Subject;
use crate::spec::keys::Table;
use crate::store::{RunDirectory, Status};
use crate::units::human;
use epoch::Runner;
use raw::RawFiles;
use results::Results;
use spec::{Loading, OnError};

visited!(TrainingRow, block);

impl Study for Training {
    const KIND: StudyKind = StudyKind::Training;
    const OF_A_CELL: &'static [Kind] = &[Kind::OutOfMemory, Kind::Engine, Kind::Data];
    type Beside = Loader;
    type Row = TrainingRow;
    type Detail = BatchRow;
    type Data = DataSet;
    type Supplies = RawFiles;
    type Ready = Runner;

    fn subject(&self) -> &Subject {
        &self.subject
    }

    fn subject_mut(&mut self) -> &mut Subject {
        &mut self.subject
    }

    fn course(&self) -> Course {
        let spec::Repetitions { repetitions, time_limit_s, seed, .. } = self.measure;
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
        let counted = |number: usize, noun| human::counted(number as u64, noun);
        let spec::Repetitions { repetitions, epochs, warmup_steps, .. } = self.measure;
        let cells = self.cell_count();
        format!(
            "{}, visited {} each: {}, each visit after {} of warm-up",
            counted(cells, "cell"),
            counted(repetitions, "time"),
            counted(cells * repetitions * epochs, "epoch"),
            counted(warmup_steps, "step")
        )
    }

    fn data(&self) -> Result<DataSet> {
        data::open(&self.data, self.measure.seed)
    }

    fn fingerprint(data: &DataSet) -> Option<String> {
        Some(format!("{:016x}", data.fingerprint))
    }

    fn notices(data: &DataSet) -> &[String] {
        &data.notices
    }

    fn plan(&self, data: &DataSet, engines: &mut Engines) -> Result<Plan<Loader>> {
        let plan = plan::plan(self, data, engines)?;
        check(&plan, &self.loader, data, engines)?;
        Ok(plan)
    }

    fn supplies(&self, directory: &RunDirectory, _: &dyn Fn(&str)) -> Result<RawFiles> {
        directory.scratch().map(RawFiles::new)
    }

    fn name_of(facts: &RowContext, cell: &Cell<Loader>) -> String {
        format!("{}, {}", facts.name_of(&cell.step), human::counted(cell.beside.workers as u64, "worker"))
    }

    fn prepare(bench: &mut Bench<Self>, cell: &Cell<Loader>) -> Result<Runner> {
        bench.prepare(cell)
    }

    fn visit(bench: &mut Bench<Self>, at: &VisitTo<Self>, runner: Runner, visit: &mut Visit<Self>) -> Result<bool> {
        bench.train(at, runner, visit).map(|()| true)
    }

    fn failed(bench: &Bench<Self>, at: &VisitTo<Self>, error: &Error) -> TrainingRow {
        TrainingRow { status: Status::of(error), error: Some(error.to_string()), ..bench.row(at) }
    }

    fn stops_at_an_error(&self) -> bool {
        self.loader.on_error == OnError::Stop
    }

    fn remarks(rows: &[TrainingRow]) -> Option<String> {
        // Every block leaves out the same ones.
        rows.first().filter(|row| row.block == 0).and_then(|_| left_out(rows))
    }

    fn figure(rows: &[TrainingRow]) -> Option<String> {
        rows.iter().rev().find(|row| !row.warmup).and_then(|row| row.epoch_time_s).map(human::seconds)
    }

    fn told(path: &Path) -> Result<Told> {
        let study = Results::read(path)?;
        Ok(Told {
            path: path.to_path_buf(),
            kind: "Epochs",
            facts: String::new(),
            answers: report::answer(&study).into_iter().collect(),
            warnings: warnings::warnings(&study),
            document: report::document(&study),
            drawing: figures::drawing(path, &study),
            is_interactive: true,
            json: hyperfine::json(&study),
            file: None,
        })
    }
}

/// Refuses what cannot run.
///
/// # Errors
/// [`Kind::Spec`] where an engine does not train, where it cannot read such data, where batches could be smaller than it takes, or where an epoch
/// would have none.
fn check(plan: &Plan<Loader>, loader: &Loading, data: &DataSet, engines: &mut Engines) -> Result<()> {
    for cell in &plan.cells {
        let name = engines.resolve(cell.step.engine);
        let engine = engines.get(cell.step.engine)?;
        let (count, size) = (data.train.count(), cell.step.batch_size);
        if loader.drop_last && size > count {
            let what = format!(
                "no batch is full: {count} examples are fewer than the batch size {size}, and `drop_last = true` leaves them out"
            );
            return Err(Error::spec(what)
                .at("[sweep]")
                .hint("lower `batch_size`, or set `drop_last = false` in [loader]"));
        }
        let alone = engine.feeds_itself();
        if alone && data.train.in_memory().is_none() {
            let what = format!("the engine `{name}` trains only on IDX files and drawn digits");
            return Err(Error::spec(what).at("[data]").hint("leave it out of [engine], or use another data set"));
        }
        if !alone && !engine.trains() {
            return Err(Error::spec(format!("the engine `{name}` does not train on batches of a loader"))
                .at("[engine]")
                .hint("use the engines `cpu`, `candle`, `torch` and `cudnn`"));
        }
        if engine.needs_whole_batches() {
            check_batches(size, loader, data).map_err(|error| error.at(format!("engine `{name}`")))?;
        }
    }
    Ok(())
}

fn check_batches(batch_size: usize, loader: &Loading, data: &DataSet) -> Result<()> {
    let count = data.train.count();
    if !loader.drop_last && !count.is_multiple_of(batch_size) {
        let what = format!("all batches must have {batch_size} examples, and {count} examples are no multiple of that");
        return Err(Error::spec(what).hint("set `drop_last = true` in [loader]"));
    }
    if loader.on_error == OnError::Skip {
        return Err(Error::spec("`on_error = \"skip\"` makes smaller batches, and all must be whole")
            .hint("use `on_error = \"fail\"` or \"stop\" in [loader]"));
    }
    Ok(())
}

/// Which examples each epoch of a visit went without: how many, and the first of each part by name.
fn left_out(epochs: &[TrainingRow]) -> Option<String> {
    let counted = || epochs.iter().filter(|row| !row.warmup && row.epoch_time_s.is_some());
    let skipped = counted().map(|row| row.skipped).max().unwrap_or(0);
    let tested = counted().filter_map(|row| row.test_skipped).max().unwrap_or(0);
    let named = |number: i64, noun| human::counted(number as u64, noun);
    let were = |number| if number == 1 { "was" } else { "were" };
    let what = match (skipped, tested) {
        (0, 0) => return None,
        (skipped, 0) => format!("{} {} left out", named(skipped, "example"), were(skipped)),
        (0, tested) => format!("{} {} left out of the accuracy", named(tested, "test example"), were(tested)),
        (skipped, tested) => {
            let (examples, tests) = (named(skipped, "example"), named(tested, "test example"));
            format!("{examples} {} left out, and {tests} of the accuracy", were(skipped))
        }
    };
    let first = counted().find_map(|row| row.error.as_deref()).unwrap_or("it could not be read");
    Some(format!("{what}; the first: {first}"))
}
