//! A study of the input pipeline from its stored table: what each cell reached, what the model predicts, where more workers stop paying.

pub mod model;
pub mod sides;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::error::Result;
use crate::settings::{AXES, Value};
use crate::stats::quantile::median;
use crate::store::{PipelineRow, RunDirectory, Status};
use model::{Demands, Limit, Prediction, Stage, predict, slowest_stage};
use sides::{Half, Side, Sides};

/// A prediction is good where the measured rate is so near, relative to it.
pub const GOOD: f64 = 0.1;
/// The training is held up by its step where it waits for less than this share of the time.
const WAITS: f64 = 0.05;
/// All cores are busy where this share of what the threads can get is used.
const BUSY: f64 = 0.9;
/// The smallest number of workers that reaches this share of the best rate is enough.
const ENOUGH: f64 = 0.95;

/// A study as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct FeedingStudy {
    pub device: String,
    pub storage: String,
    pub blocks: usize,
    /// In the order of the plan.
    pub cells: Vec<FedCell>,
    /// Cells that failed, with the reason.
    pub failed: Vec<String>,
    /// Images that were left out because they could not be read: each file once, with the reason.
    pub skipped: Vec<String>,
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub struct FedCell {
    /// What differs between cells beside the images and the loader; empty where nothing does.
    pub series: String,
    pub format: String,
    pub size: usize,
    pub cache: String,
    pub read_method: String,
    pub batch_size: usize,
    pub workers: usize,
    /// Images in a second, all stages together: the median of the blocks.
    pub rate: f64,
    pub rates: Vec<f64>,
    /// The share of the time in which the training waits; without workers, in which it makes its batches.
    pub waiting: f64,
    /// Of the median block.
    pub demands: Demands,
    /// What loader and training give alone and beside one another; `None` in runs of versions that did not measure it.
    pub sides: Option<Sides>,
    /// From the two sides, else from the bounds.
    pub prediction: Option<Prediction>,
    /// The measured rate over the predicted one, the median of the blocks.
    pub ratio: Option<f64>,
    /// By the bounds of the stages alone.
    pub bounds: Option<Prediction>,
    /// The measured rate over the bounds'.
    pub ratio_of_bounds: Option<f64>,
    /// The measured rate over the smallest ceiling of all stages.
    pub ratio_of_slowest: Option<f64>,
    pub held: Held,
    /// Bytes from the storage device over bytes of files, while reading alone.
    pub from_storage: Option<f64>,
    /// Bytes of an image's file.
    pub file_bytes: Option<f64>,
}

/// What held the pipeline up, as measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Held {
    /// Nothing overlaps.
    Serial,
    /// The training waits for its workers.
    Feeding,
    Step,
    Cores,
}

impl Held {
    /// Whether a prediction names the same.
    pub fn agrees(self, limit: &Limit) -> bool {
        match limit {
            Limit::Serial { .. } => self == Self::Serial,
            Limit::Workers { .. } | Limit::Stage { .. } => self == Self::Feeding,
            Limit::Step => self == Self::Step,
            Limit::Cores => self == Self::Cores,
        }
    }
}

impl FedCell {
    /// For sentences: `png of 128x128, cold, batch size 32`.
    pub fn place(&self) -> String {
        let Self { format, size, cache, batch_size, .. } = self;
        let series = if self.series.is_empty() { String::new() } else { format!("{}, ", self.series) };
        format!("{series}{format} of {size}x{size}, {cache}, batch size {batch_size}")
    }

    /// Whether the measured rate is within a tenth of the predicted one.
    pub fn is_predicted(&self) -> bool {
        self.ratio.is_some_and(|ratio| (ratio - 1.0).abs() <= GOOD)
    }
}

/// In how many cells the measured rate is within a tenth of what each model says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Within {
    pub model: usize,
    /// By the bounds of the stages alone.
    pub bounds: usize,
    /// By the slowest stage's ceiling.
    pub slowest_stage: usize,
    pub of: usize,
    /// Of the cells with workers alone, in which loader and training overlap.
    pub overlapping: Share,
}

/// So many of so many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub good: usize,
    pub of: usize,
}

/// Rates against the number of workers, all else equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee<'a> {
    /// By the number of workers.
    pub cells: Vec<&'a FedCell>,
    /// Its place: the smallest number of workers that reaches 95 % of the best rate.
    pub at: usize,
    /// The same of the predicted rates; `None` where one is missing.
    pub predicted: Option<usize>,
}

impl FeedingStudy {
    /// Reads a run directory of a study, finished or under way.
    ///
    /// # Errors
    /// As [`RunDirectory::pipeline_of`].
    pub fn read(path: &Path) -> Result<Self> {
        Ok(Self::of(&RunDirectory::pipeline_of(path)?))
    }

    /// The study that these rows make.
    pub fn of(rows: &[PipelineRow]) -> Self {
        let varied: Vec<usize> = (0..AXES.len()).filter(|&place| differs(rows, |row| row.axes.get(place))).collect();
        let named = Named {
            engines: differs(rows, |row| row.engine.clone()),
            models: differs(rows, |row| row.model.clone()),
            varied,
        };
        let mut groups: BTreeMap<i64, Vec<&PipelineRow>> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.status == Status::Ok) {
            groups.entry(row.cell).or_default().push(row);
        }
        let skipped: BTreeSet<&str> = rows
            .iter()
            .filter(|row| row.skipped > 0)
            .filter_map(|row| row.error.as_deref())
            .flat_map(str::lines)
            .collect();
        Self {
            device: rows.first().map(|row| row.device_name.clone()).unwrap_or_default(),
            storage: rows.first().map(|row| row.storage.clone()).unwrap_or_default(),
            blocks: rows.iter().map(|row| row.block + 1).max().unwrap_or(0) as usize,
            cells: groups.into_values().filter_map(|rows| cell(&rows, &named)).collect(),
            failed: rows.iter().filter(|row| row.status != Status::Ok).filter_map(|row| row.error.clone()).collect(),
            skipped: skipped.into_iter().map(str::to_owned).collect(),
        }
    }

    /// How many cells are predicted to a tenth, by each model.
    pub fn within(&self) -> Within {
        let count = |ratio: &dyn Fn(&FedCell) -> Option<f64>| {
            self.cells.iter().filter(|cell| ratio(cell).is_some_and(|ratio| (ratio - 1.0).abs() <= GOOD)).count()
        };
        Within {
            model: count(&|cell| cell.ratio),
            bounds: count(&|cell| cell.ratio_of_bounds),
            slowest_stage: count(&|cell| cell.ratio_of_slowest),
            of: self.cells.len(),
            overlapping: Share {
                good: self.cells.iter().filter(|cell| cell.workers > 0 && cell.is_predicted()).count(),
                of: self.cells.iter().filter(|cell| cell.workers > 0).count(),
            },
        }
    }

    /// Cells whose files were to be read from the storage device and came, for more than a tenth, from memory.
    pub fn not_cold(&self) -> Vec<&FedCell> {
        let missed = |cell: &&FedCell| cell.cache == "cold" && cell.from_storage.is_some_and(|share| share < 0.9);
        self.cells.iter().filter(missed).collect()
    }

    /// The curves over at least two numbers of workers.
    pub fn knees(&self) -> Vec<Knee<'_>> {
        let mut curves: Vec<Vec<&FedCell>> = Vec::new();
        for cell in &self.cells {
            match curves.iter_mut().find(|curve| curve[0].place() == cell.place()) {
                Some(curve) => curve.push(cell),
                None => curves.push(vec![cell]),
            }
        }
        curves.retain(|curve| curve.len() > 1);
        let knee = |mut cells: Vec<_>| {
            cells.sort_by_key(|cell: &&FedCell| cell.workers);
            let measured: Vec<f64> = cells.iter().map(|cell| cell.rate).collect();
            let predicted: Option<Vec<f64>> = cells.iter().map(|cell| Some(cell.prediction.as_ref()?.rate)).collect();
            Knee { at: enough(&measured), predicted: predicted.map(|rates| enough(&rates)), cells }
        };
        curves.into_iter().map(knee).collect()
    }
}

/// The first rate that reaches 95 % of the best.
fn enough(rates: &[f64]) -> usize {
    let best = rates.iter().copied().fold(0.0, f64::max);
    rates.iter().position(|rate| *rate >= ENOUGH * best).unwrap_or(0)
}

/// What the name of a series has in it.
struct Named {
    engines: bool,
    models: bool,
    /// Places of axes.
    varied: Vec<usize>,
}

impl Named {
    fn series(&self, row: &PipelineRow) -> String {
        let mut parts = Vec::new();
        parts.extend(self.engines.then(|| row.engine.clone()));
        parts.extend(self.models.then(|| row.model.clone()));
        for &place in &self.varied {
            let value = row.axes.get(place).map(|value| value.to_string()).unwrap_or_default();
            parts.extend(AXES[place].annotation(&value));
        }
        parts.join(", ")
    }
}

fn differs<T: PartialEq>(rows: &[PipelineRow], value: impl Fn(&PipelineRow) -> T) -> bool {
    // An axis that an engine does not have makes no difference between cells of that engine.
    rows.iter()
        .any(|row| rows.iter().find(|other| other.engine == row.engine).is_some_and(|other| value(other) != value(row)))
}

/// What one visit says.
struct VisitSaid<'a> {
    together: &'a PipelineRow,
    demands: Demands,
    sides: Option<Sides>,
    rate: f64,
}

impl VisitSaid<'_> {
    /// From the two sides where they were measured, else from the bounds of the stages.
    fn prediction(&self) -> Option<Prediction> {
        let bounds = predict(&self.demands)?;
        if self.demands.workers == 0 {
            // One thread does both in turn.
            let both_s = |sides: Sides| sides.loader.beside_s + sides.training.beside_s;
            return Some(Prediction { rate: self.sides.map_or(bounds.rate, |sides| 1.0 / both_s(sides)), ..bounds });
        }
        let Some((sides, shared)) = self.sides.and_then(|sides| Some((sides, sides::rate(&sides)?))) else {
            return Some(bounds);
        };
        let used = shared.rate * sides.cpu_s / self.demands.cores;
        let limit = match bounds.limit {
            _ if used >= BUSY && shared.slowed > 1.0 + GOOD => Limit::Cores,
            _ if shared.training_is_busy => Limit::Step,
            limit @ Limit::Stage { .. } => limit,
            _ => Limit::Workers { longest: self.demands.longest_of_workers() },
        };
        Some(Prediction { rate: shared.rate, limit })
    }
}

fn cell(rows: &[&PipelineRow], named: &Named) -> Option<FedCell> {
    let mut visits: BTreeMap<i64, Vec<&PipelineRow>> = BTreeMap::new();
    rows.iter().for_each(|row| visits.entry(row.visit).or_default().push(row));
    let mut said: Vec<VisitSaid> = visits.values().filter_map(|rows| visit(rows)).collect();
    said.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    let ratios = |of: &dyn Fn(&VisitSaid) -> Option<f64>| {
        let mut ratios: Vec<f64> = said.iter().filter_map(|visit| Some(visit.rate / of(visit)?)).collect();
        (!ratios.is_empty()).then(|| median(&mut ratios))
    };
    let ratio = ratios(&|visit| Some(visit.prediction()?.rate));
    let ratio_of_bounds = ratios(&|visit| Some(predict(&visit.demands)?.rate));
    let ratio_of_slowest = ratios(&|visit| Some(slowest_stage(&visit.demands)?.ceiling));
    let rates: Vec<f64> = said.iter().map(|visit| visit.rate).collect();
    let middle = said.get(said.len() / 2)?;
    let row = middle.together;
    let reads = || rows.iter().filter(|row| row.stage == "read" && row.images > 0);
    let sum = |value: &dyn Fn(&PipelineRow) -> Option<i64>| -> Option<f64> {
        reads().map(|row| value(row)).sum::<Option<i64>>().map(|sum| sum as f64)
    };
    let bytes = sum(&|row| row.file_bytes).filter(|bytes| *bytes > 0.0);
    let elapsed = row.elapsed_s?;
    Some(FedCell {
        series: named.series(row),
        format: row.format.clone(),
        size: row.image_size as usize,
        cache: row.cache.clone(),
        read_method: row.read_method.clone(),
        batch_size: row.batch_size as usize,
        workers: row.workers as usize,
        rate: median(&mut rates.clone()),
        rates,
        waiting: row.wait_time_s? / elapsed,
        held: held(row, &middle.demands)?,
        prediction: middle.prediction(),
        ratio,
        bounds: predict(&middle.demands),
        ratio_of_bounds,
        demands: middle.demands.clone(),
        sides: middle.sides,
        ratio_of_slowest,
        from_storage: sum(&|row| row.storage_bytes).zip(bytes).map(|(stored, bytes)| stored / bytes),
        file_bytes: bytes.zip(sum(&|row| Some(row.images))).map(|(bytes, images)| bytes / images),
    })
}

fn visit<'a>(rows: &[&'a PipelineRow]) -> Option<VisitSaid<'a>> {
    let together = rows.iter().find(|row| row.stage == "together")?;
    let rate = rate_of(together)?;
    let names = ["read", "decode", "transform", "batch", "copy", "step"];
    let stage = |name: &str| -> Option<Stage> {
        let own = || rows.iter().filter(move |row| row.stage == name && row.images > 0);
        let (alone, all) = (own().min_by_key(|row| row.stage_threads)?, own().max_by_key(|row| row.stage_threads)?);
        let images = alone.images as f64;
        // Reading also waits for the device. The others compute all the time that they have a core; several threads of an engine also wait
        // for one another.
        let (elapsed_s, cpu_s) = (alone.elapsed_s?, alone.cpu_time_s?);
        let seconds = match name {
            "read" => elapsed_s - alone.delay_time_s.unwrap_or(0.0),
            "copy" | "step" if alone.stage_threads > 1 || !is_processor(alone) => elapsed_s,
            _ => cpu_s.min(elapsed_s),
        };
        let (seconds, cpu_s) = (seconds.max(0.0) / images, all.cpu_time_s? / all.images as f64);
        Some(Stage { name: name.to_owned(), seconds, cpu_s, ceiling: rate_of(all)? })
    };
    let stages: Vec<Stage> = names.iter().filter_map(|name| stage(name)).collect();
    let elapsed_s = together.elapsed_s?;
    let others_s = together.others_cpu_time_s.unwrap_or(0.0);
    let kept = kept_by_others(together, others_s)?;
    let share = |delay: Option<f64>| (1.0 - kept * delay.unwrap_or(0.0) / elapsed_s).clamp(0.01, 1.0);
    // Without workers the training thread reads the files itself.
    let blocked =
        stages.iter().find(|stage| stage.name == "read").map_or(0.0, |read| (read.seconds - read.cpu_s).max(0.0));
    let reads_s = if together.workers == 0 { blocked * together.images as f64 } else { 0.0 };
    let demands = Demands {
        workers: together.workers as usize,
        cores: together.cores? - others_s / elapsed_s,
        training_share: share(together.delay_time_s.map(|delay| (delay - reads_s).max(0.0))),
        worker_share: share(together.worker_delay_time_s),
        stages,
    };
    Some(VisitSaid { together, demands, sides: sides_of(rows), rate })
}

/// What an image took one side.
struct SideTook {
    elapsed_s: f64,
    cpu_s: f64,
}

fn side(rows: &[&PipelineRow], name: &str) -> Option<SideTook> {
    let row = rows.iter().find(|row| row.stage == name && row.images > 0)?;
    let images = row.images as f64;
    Some(SideTook { elapsed_s: row.elapsed_s? / images, cpu_s: row.cpu_time_s? / images })
}

fn sides_of(rows: &[&PipelineRow]) -> Option<Sides> {
    let [loader, loader_beside, training_beside] =
        ["loader", "loader_beside", "step_beside"].map(|name| side(rows, name));
    let (loader_beside, training_beside) = (loader_beside?, training_beside?);
    let training_s = side(rows, "copy").map_or(0.0, |copy| copy.elapsed_s) + side(rows, "step")?.elapsed_s;
    let half_row = rows.iter().find(|row| row.stage == "loader_half");
    let half = half_row.zip(side(rows, "loader_half")).zip(side(rows, "step_half"));
    let half = half.map(|((row, loader), training)| Half {
        workers: row.stage_threads as usize,
        loader_s: loader.elapsed_s,
        training_s: training.elapsed_s,
    });
    Some(Sides {
        workers: rows.first()?.workers as usize,
        loader: Side { alone_s: loader?.elapsed_s, beside_s: loader_beside.elapsed_s },
        training: Side { alone_s: training_s, beside_s: training_beside.elapsed_s },
        half,
        cpu_s: loader_beside.cpu_s + training_beside.cpu_s,
    })
}

/// The share of our threads' waits for a core that other processes cause: all of it where we have no more threads than cores, else by what they
/// use of the processor time.
fn kept_by_others(together: &PipelineRow, others_s: f64) -> Option<f64> {
    let place = AXES.iter().position(|axis| axis.column == "threads");
    let engine = match place.and_then(|place| together.axes.get(place)) {
        _ if !is_processor(together) => 1.0,
        Some(Value::Count(threads)) => threads as f64,
        _ => together.cores?,
    };
    let threads = engine + together.workers as f64;
    let own_s = together.cpu_time_s?;
    let fits = together.workers == 0 || threads <= together.cores?;
    Some(if fits { 1.0 } else { others_s / (others_s + own_s).max(f64::MIN_POSITIVE) })
}

/// Whether the step is the processor's work. A GPU's keeps one thread, which waits for it.
fn is_processor(row: &PipelineRow) -> bool {
    !row.device.starts_with("cuda")
}

fn rate_of(row: &PipelineRow) -> Option<f64> {
    row.elapsed_s.filter(|elapsed| *elapsed > 0.0).map(|elapsed| row.images as f64 / elapsed)
}

fn held(row: &PipelineRow, demands: &Demands) -> Option<Held> {
    let (elapsed, wait) = (row.elapsed_s?, row.wait_time_s?);
    if row.workers == 0 {
        return Some(Held::Serial);
    }
    let busy = row.cpu_time_s? / elapsed >= BUSY * demands.cores;
    let alone: f64 = demands.training().map(|stage| stage.seconds).sum();
    let slowed = (elapsed - wait) / row.images as f64 > (1.0 + GOOD) * alone;
    Some(match wait / elapsed < WAITS {
        _ if busy && (slowed || wait / elapsed >= WAITS) => Held::Cores,
        true => Held::Step,
        false => Held::Feeding,
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A stage that took `seconds` for each of 100 images.
    pub(crate) fn row(stage: &str, workers: i64, threads: i64, seconds: f64) -> PipelineRow {
        PipelineRow {
            engine: "cpu".into(),
            device_name: "a processor".into(),
            model: "small".into(),
            storage: "vda (a virtual disk)".into(),
            format: "png".into(),
            cache: "cold".into(),
            read_method: "direct".into(),
            image_size: 64,
            batch_size: 32,
            workers,
            cell: workers,
            visit: workers,
            stage: stage.into(),
            stage_threads: threads,
            images: 100,
            elapsed_s: Some(100.0 * seconds / threads.max(1) as f64),
            cpu_time_s: Some(100.0 * seconds),
            wait_time_s: (stage == "together").then_some(30.0 * seconds / threads.max(1) as f64),
            file_bytes: (stage == "read").then_some(1000),
            storage_bytes: (stage == "read").then_some(4000),
            cores: Some(8.0),
            ..PipelineRow::default()
        }
    }

    pub(crate) fn visit_rows(workers: i64, together_s: f64) -> Vec<PipelineRow> {
        let mut rows = Vec::new();
        let threads = if workers > 1 { vec![1, workers] } else { vec![1] };
        for threads in threads {
            rows.extend(
                [("read", 1e-3), ("decode", 3e-3)].map(|(stage, seconds)| row(stage, workers, threads, seconds)),
            );
        }
        rows.push(row("step", workers, 1, 1e-3));
        let mut together = row("together", workers, 1, together_s);
        together.stage_threads = workers;
        rows.push(together);
        rows
    }

    #[test]
    fn a_cell_is_compared_with_what_its_stages_allow() {
        // Predicted by hand: 1 / 5 ms = 200 without workers, 1 / 4 ms = 250 with one, 500 with two.
        let rows: Vec<PipelineRow> = [visit_rows(0, 5.2e-3), visit_rows(1, 4.1e-3), visit_rows(2, 2.5e-3)].concat();
        let study = FeedingStudy::of(&rows);
        let predicted: Vec<f64> =
            study.cells.iter().filter_map(|cell| Some(cell.prediction.as_ref()?.rate.round())).collect();
        assert_eq!(predicted, [200.0, 250.0, 500.0]);
        let within = study.within();
        assert_eq!((within.model, within.bounds, within.of), (2, 2, 3), "400 of 500 is farther than a tenth");
        assert_eq!(within.overlapping, Share { good: 1, of: 2 });
        assert_eq!(
            study.cells.iter().map(|cell| cell.held).collect::<Vec<_>>(),
            [Held::Serial, Held::Feeding, Held::Feeding]
        );
        assert!((study.cells[2].waiting - 0.3).abs() < 1e-12 && study.cells[2].from_storage == Some(4.0));
        assert_eq!(study.cells[0].place(), "png of 64x64, cold, batch size 32");
        let knees = study.knees();
        assert_eq!((knees.len(), knees[0].at, knees[0].predicted), (1, 2, Some(2)));
    }

    #[test]
    fn what_the_sides_take_from_each_other_is_in_the_prediction() {
        let mut rows = visit_rows(2, 2.4e-3);
        // The loader gives an image in 2 ms with two threads, and in 2.5 ms beside the training, which takes 1 ms alone and 1.2 ms beside it.
        rows.extend([("loader", 2.0e-3), ("loader_beside", 2.5e-3), ("step_beside", 1.2e-3)].map(
            |(stage, seconds)| {
                let mut row = row(stage, 2, 1, seconds);
                row.stage_threads = 2;
                row
            },
        ));
        let study = FeedingStudy::of(&rows);
        let cell = &study.cells[0];
        // By hand: 2 ms + 1.2 ms (1 - 2 / 2.5) = 2.24 ms.
        let expected = 1.0 / 2.24e-3;
        let prediction = cell.prediction.as_ref().expect("known");
        assert!((prediction.rate / expected - 1.0).abs() < 1e-9, "{prediction:?}, by hand {expected}");
        assert_eq!(prediction.limit, Limit::Workers { longest: "decode".into() });
        assert_eq!(cell.bounds.as_ref().map(|bounds| bounds.rate.round()), Some(500.0));
        // 1 / 2.4 ms = 417: of the 446 predicted 0.93, and of the bound 0.83.
        assert_eq!(
            study.within(),
            Within { model: 1, overlapping: Share { good: 1, of: 1 }, bounds: 0, slowest_stage: 0, of: 1 }
        );
    }

    #[test]
    fn without_workers_both_sides_are_taken_in_turn() {
        let mut rows = visit_rows(0, 5.0e-3);
        let sides = [("loader", 3.0e-3), ("loader_beside", 3.5e-3), ("step_beside", 1.3e-3)];
        rows.extend(sides.map(|(stage, seconds)| row(stage, 0, 1, seconds)));
        let study = FeedingStudy::of(&rows);
        // By hand: 1 / (3.5 ms + 1.3 ms).
        let prediction = study.cells[0].prediction.as_ref().expect("known");
        assert!((prediction.rate - 1.0 / 4.8e-3).abs() < 1e-9, "{prediction:?}");
        assert!(matches!(prediction.limit, Limit::Serial { .. }));
    }

    #[test]
    fn the_knee_is_the_smallest_number_that_comes_near_the_best() {
        assert_eq!(enough(&[100.0, 190.0, 199.0, 200.0]), 1);
        assert_eq!(enough(&[100.0, 180.0, 199.0, 200.0]), 2);
        assert_eq!(enough(&[]), 0);
    }

    #[test]
    fn files_that_came_from_memory_are_not_cold() {
        let mut rows = visit_rows(0, 5e-3);
        rows.iter_mut().filter(|row| row.stage == "read").for_each(|row| row.storage_bytes = Some(0));
        assert_eq!(FeedingStudy::of(&rows).not_cold().len(), 1);
        rows.iter_mut().for_each(|row| row.cache = "warm".into());
        assert!(FeedingStudy::of(&rows).not_cold().is_empty());
    }
}
