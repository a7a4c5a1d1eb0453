//! A cell of the study, from the rows of its visits.

use std::collections::BTreeMap;

use super::model::{Demands, Limit, Prediction, Stage, predict, slowest_stage};
use super::sides::{self, Half, SideTimes, Sides};
use super::{FedCell, GOOD, Held, Varied};
use crate::settings::Value;
use crate::stats::quantile::median;
use crate::study::Visited;
use crate::study::pipeline::PipelineRow;

/// If the training waits for less than this share of the time, its step is what limits it.
const WAITS: f64 = 0.05;
/// All cores count as busy if the threads use this share of the processor time that they can get.
const BUSY: f64 = 0.9;

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

/// The cell whose visits these rows belong to; `None` where no visit measured enough.
pub fn of(rows: &[&PipelineRow], varied: &Varied) -> Option<FedCell> {
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
    let rate = median(&mut rates.clone());
    let beside = |prediction: Option<Prediction>, ratio: Option<f64>| {
        Some(Prediction { rate: rate / ratio?, limit: prediction?.limit })
    };
    let middle = said.get(said.len() / 2)?;
    let row = middle.together;
    let reads = || rows.iter().filter(|row| row.stage == "read" && row.images > 0);
    let sum = |value: &dyn Fn(&PipelineRow) -> Option<i64>| -> Option<f64> {
        reads().map(|row| value(row)).sum::<Option<i64>>().map(|sum| sum as f64)
    };
    let bytes = sum(&|row| row.file_bytes).filter(|bytes| *bytes > 0.0);
    let elapsed = row.elapsed_s?;
    Some(FedCell {
        series: varied.name(row.origin(), varied.engine),
        format: row.format.clone(),
        size: row.image_size as usize,
        cache: row.cache.clone(),
        read_method: row.read_method.clone(),
        batch_size: row.batch_size as usize,
        workers: row.workers as usize,
        rate,
        rates,
        waiting: row.wait_time_s? / elapsed,
        held: held(row, &middle.demands)?,
        prediction: beside(middle.prediction(), ratio),
        ratio,
        bounds: beside(predict(&middle.demands), ratio_of_bounds),
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
        // Reading also waits for the device. The other stages compute whenever they have a core; several threads of an engine also wait
        // for each other.
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
        loader: SideTimes { alone_s: loader?.elapsed_s, beside_s: loader_beside.elapsed_s },
        training: SideTimes { alone_s: training_s, beside_s: training_beside.elapsed_s },
        half,
        cpu_s: loader_beside.cpu_s + training_beside.cpu_s,
    })
}

/// The share of our threads' waits for a core that other processes cause: all of it if we have no more threads than cores, else in proportion to
/// the processor time that they use.
fn kept_by_others(together: &PipelineRow, others_s: f64) -> Option<f64> {
    let engine = match together.axes.of_key("threads") {
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
