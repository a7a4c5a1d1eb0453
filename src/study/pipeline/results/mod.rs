//! A study of the input pipeline from its stored table: what each cell reached, what the model predicts, where more workers stop paying.

mod cell;
pub mod model;
pub mod sides;
#[cfg(test)]
pub(crate) mod tests;

use std::collections::{BTreeMap, BTreeSet};

use crate::settings::named;
use crate::store::Status;
use crate::study::Visited;
use crate::study::pipeline::PipelineRow;
use crate::study::series::Varied;
use model::{Demands, Limit, Prediction};
use sides::Sides;

/// A prediction is good where the measured rate is so near, relative to it.
pub const GOOD: f64 = 0.1;
/// The smallest number of workers that reaches this share of the best rate is enough.
const ENOUGH: f64 = 0.95;

/// A study as stored.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
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
    /// The demands of the median block.
    pub demands: Demands,
    /// The rates of loader and training, each by itself and both at once; `None` in runs of versions that did not measure them.
    pub sides: Option<Sides>,
    /// From the two sides, else from the bounds. Its rate is the measured one over [`Self::ratio`], since each block has a prediction of its own; its limit is
    /// that of the median block.
    pub prediction: Option<Prediction>,
    /// The measured rate over the predicted one, the median of the blocks.
    pub ratio: Option<f64>,
    /// The prediction from the bounds of the stages, without the two sides, likewise.
    pub bounds: Option<Prediction>,
    /// The measured rate over the bounds'.
    pub ratio_of_bounds: Option<f64>,
    /// The measured rate over the smallest ceiling of all stages.
    pub ratio_of_slowest: Option<f64>,
    pub held: Held,
    /// Bytes from the storage device over bytes of files, in the stage that only reads.
    pub from_storage: Option<f64>,
    /// Bytes of an image's file.
    pub file_bytes: Option<f64>,
}

named! {
    /// What held the pipeline up, as measured.
    Held {
        Serial = "nothing overlaps",
        /// The training waits for its workers.
        Feeding = "feeding",
        Step = "step",
        Cores = "cores",
    }
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
}

/// For each model, the number of cells whose measured rate is within a tenth of the predicted one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Within {
    pub model: usize,
    /// By the bounds of the stages, without the two sides.
    pub bounds: usize,
    /// By the slowest stage's ceiling.
    pub slowest_stage: usize,
    pub of: usize,
    /// By the model, among the cells with workers, in which loader and training overlap; and the number of those.
    pub overlapping: [usize; 2],
}

/// Rates against the number of workers, all else equal.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee<'a> {
    /// By the number of workers.
    pub cells: Vec<&'a FedCell>,
    /// Its place: the smallest number of workers that reaches 95 % of the best rate.
    pub at: usize,
    /// The same for the predicted rates; `None` if one is missing.
    pub predicted: Option<usize>,
}

impl Results {
    /// The study that these rows make.
    pub fn of(rows: &[PipelineRow]) -> Self {
        let varied = Varied::of(rows.iter().map(Visited::origin));
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
            cells: groups.into_values().filter_map(|rows| cell::of(&rows, &varied)).collect(),
            failed: rows.iter().filter(|row| row.status != Status::Ok).filter_map(|row| row.error.clone()).collect(),
            skipped: skipped.into_iter().map(str::to_owned).collect(),
        }
    }

    /// The names of the stages, in the order of an image's way. A cell lacks those that were too short to be measured.
    pub fn stages(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for cell in &self.cells {
            let mut place = 0;
            for stage in &cell.demands.stages {
                match names.iter().position(|name| *name == stage.name) {
                    Some(known) => place = known + 1,
                    None => {
                        names.insert(place, &stage.name);
                        place += 1;
                    }
                }
            }
        }
        names
    }

    /// How many cells are predicted to a tenth, by each model.
    pub fn within(&self) -> Within {
        let count = |is: &dyn Fn(&FedCell) -> bool| self.cells.iter().filter(|cell| is(cell)).count();
        let near = |ratio: Option<f64>| ratio.is_some_and(|ratio| (ratio - 1.0).abs() <= GOOD);
        Within {
            model: count(&|cell| near(cell.ratio)),
            bounds: count(&|cell| near(cell.ratio_of_bounds)),
            slowest_stage: count(&|cell| near(cell.ratio_of_slowest)),
            of: self.cells.len(),
            overlapping: [count(&|cell| cell.workers > 0 && near(cell.ratio)), count(&|cell| cell.workers > 0)],
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
