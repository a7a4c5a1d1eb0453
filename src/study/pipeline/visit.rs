//! One visit to a cell: every stage by itself, then all together.

use std::sync::Arc;

use super::super::{Bench, Cell, VisitTo};
use super::files::{self, Files};
use super::rounds::{Stages, VisitResults};
use super::stages::{Done, Loaded, Ready};
use super::together::Fed;
use super::{Pipeline, PipelineRow, Source};
use crate::data::loader::{Loader, Options};
use crate::data::{Examples, Normal};
use crate::error::{Error, Result};
use crate::run::row_of_cell;
use crate::study::training::spec::OnError;

/// Examples of an epoch of all stages together, so that a window ends before its epoch.
const EPOCH: usize = 100_000;
/// The number of parts into which a visit cuts the time of each stage. A shared machine changes its speed within a visit; with several parts
/// the change affects single stages and all together alike.
const ROUNDS: usize = 4;

impl Bench<'_, Pipeline> {
    pub(super) fn prepare(&mut self, cell: &Cell<Source>) -> Result<Stages> {
        let Source { format, size, cache, workers } = cell.beside;
        let none = || Error::data(format!("no images of {size}x{size} were made as {format}"));
        let set = self.supplies.made.set(format, size).ok_or_else(none)?;
        let classes = cell.step.workload.network.output().count();
        let all = Files::new(set, cache, classes);
        let all = Files { passes: EPOCH.div_ceil(all.paths.len()), ..all };
        let skip = self.spec.loader.on_error == OnError::Skip;
        let files = Files { passes: 1, ..if skip { all.clone().that_open() } else { all.clone() } };
        files::prepare(cache, &files.paths)?;
        let resident = files::resident_share(&files.paths)?;
        let loaded = Loaded::new(&files)?;
        let options = Options {
            batch_size: cell.step.batch_size,
            workers,
            prefetch: self.spec.loader.prefetch,
            shuffle: true,
            drop_last: true,
            seed: self.spec.measure.seed,
            skip,
        };
        let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let engine_threads = cell.step.workload.settings.threads.unwrap_or(cores).clamp(1, cores);
        let engine_threads = if self.is_on_processor(cell) { engine_threads } else { 1 };
        let normal = Normal::symmetric(files.shape().channels());
        let examples = Arc::new(Examples::new(Box::new(all), normal, files.shape()));
        let engine = self.engines.get(cell.step.engine)?;
        let batches = ready(&examples, options, engine.needs_whole_batches())?;
        let trainer = engine.train(&cell.step.workload)?;
        let threads = workers.max(1);
        Ok(Stages { files, resident, loaded, examples, options, batches, trainer, threads, cores, engine_threads })
    }

    /// A GPU's step is one thread of the processor, whose times say nothing of how long it takes.
    fn is_on_processor(&self, cell: &Cell<Source>) -> bool {
        self.facts.device_of(&cell.step).is_none_or(|device| !device.id.starts_with("cuda"))
    }

    pub(super) fn measure(&self, at: &VisitTo<Pipeline>, mut stages: Stages) -> Result<Vec<PipelineRow>> {
        let (cell, measure) = (at.cell, &self.spec.measure);
        let empty = PipelineRow {
            read_method: stages.files.method.to_string(),
            resident_share: Some(stages.resident),
            cores: Some(stages.cores as f64),
            ..self.row(at)
        };
        let mut found = VisitResults::default();
        for _ in 0..ROUNDS {
            stages.round(&mut found, measure.stage_time_s / ROUNDS as f64, measure.together_time_s / ROUNDS as f64)?;
        }
        let one_thread = self.is_on_processor(cell) && stages.engine_threads == 1;
        let mut rows: Vec<PipelineRow> = found.alone.iter().map(|(name, done)| row_of(&empty, name, done)).collect();
        rows.extend(found.fed.map(|fed| together_row(&empty, cell, &fed, one_thread)));
        Ok(rows)
    }

    pub(super) fn row(&self, at: &VisitTo<Pipeline>) -> PipelineRow {
        let Source { format, size, cache, workers } = at.cell.beside;
        PipelineRow {
            storage: self.supplies.storage.clone(),
            format: format.to_string(),
            image_size: size as i64,
            cache: cache.to_string(),
            workers: workers as i64,
            block: at.block,
            visit: at.visit,
            ..row_of_cell!(PipelineRow, &self.facts, &at.cell.step)
        }
    }
}

fn row_of(empty: &PipelineRow, name: &str, done: &Done) -> PipelineRow {
    PipelineRow {
        stage: name.to_owned(),
        stage_threads: done.threads as i64,
        images: done.images as i64,
        elapsed_s: Some(done.elapsed_s),
        cpu_time_s: Some(done.cpu_s),
        delay_time_s: done.delay_s,
        file_bytes: (name == "read").then_some(done.file_bytes as i64),
        storage_bytes: done.storage_bytes.filter(|_| name == "read").map(|bytes| bytes as i64),
        ..empty.clone()
    }
}

fn together_row(empty: &PipelineRow, cell: &Cell<Source>, fed: &Fed, one_thread: bool) -> PipelineRow {
    PipelineRow {
        stage: "together".to_owned(),
        stage_threads: cell.beside.workers as i64,
        images: fed.images as i64,
        elapsed_s: Some(fed.elapsed_s),
        cpu_time_s: Some(fed.clocks.own_s),
        delay_time_s: one_thread.then(|| training_delay(cell, fed)),
        worker_delay_time_s: (cell.beside.workers > 0).then(|| fed.clocks.workers_delay_s / cell.beside.workers as f64),
        others_cpu_time_s: fed.clocks.others_s(),
        wait_time_s: Some(fed.wait_s),
        storage_bytes: fed.storage_bytes.map(|bytes| bytes as i64),
        skipped: fed.skipped.len() as i64,
        error: (!fed.skipped.is_empty()).then(|| fed.skipped.iter().cloned().collect::<Vec<_>>().join("\n")),
        ..empty.clone()
    }
}

/// The time in which the training neither waited for a batch nor computed: it was kept from its core, or, without workers, read files. This holds
/// for one thread; several threads also wait for each other.
fn training_delay(cell: &Cell<Source>, fed: &Fed) -> f64 {
    let waits_s = if cell.beside.workers == 0 { 0.0 } else { fed.wait_s };
    (fed.elapsed_s - waits_s - fed.clocks.training_s).max(0.0)
}

/// The first batches that contain an example, as many as a loader with these options holds: the training reads each from where the loader wrote
/// it, which is not its own cache. `whole`: only batches in which no image is damaged.
fn ready(examples: &Arc<Examples>, options: Options, whole: bool) -> Result<Vec<Ready>> {
    let held = 1 + options.workers * options.prefetch;
    let alone = Options { skip: true, workers: 0, shuffle: false, ..options };
    let mut loader = Loader::new(Arc::clone(examples), alone)?;
    loader.begin(0);
    let mut batches = Vec::new();
    let least = if whole { options.batch_size } else { 1 };
    while let Some(batch) = loader.next_batch()? {
        if batch.labels.len() >= least {
            batches.push(Ready { inputs: batch.inputs.clone(), labels: batch.labels.clone() });
        }
        if batches.len() == held {
            break;
        }
    }
    if batches.is_empty() { Err(Error::data("too many images are damaged: no batch is ready")) } else { Ok(batches) }
}
