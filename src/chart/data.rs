//! What a chart is made of: plain numbers and words. Nothing here knows a file, an engine or a pixel.
//!
//! The `summary` of a chart stands under its title; the `caption` says what was measured on what, and last, which command makes the figure again.

use serde::Serialize;

use super::palette::Color;
use crate::analysis::crossover::Crossing;
use crate::detect::{FactorPoint, Findings};

/// The confidence of the intervals of step times.
pub const CONFIDENCE: f64 = 0.95;

/// What an axis shows: `Step time` in `s`. Units are SI, without a prefix; the chart chooses the prefix.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Quantity {
    pub name: String,
    pub unit: String,
}

impl Quantity {
    pub fn new(name: &str, unit: &str) -> Self {
        Self { name: name.to_string(), unit: unit.to_string() }
    }
}

/// One series: a model, a device, a setting.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChartSeries {
    pub name: String,
    pub findings: Findings,
    /// The sentence on sizes that are slow by themselves.
    pub slow: Option<String>,
    /// The sizes to avoid, ascending.
    pub avoid: Vec<f64>,
}

/// Step time against batch size, with the jumps; below it the time per item.
#[derive(Clone, Debug, PartialEq)]
pub struct StepTime {
    pub title: String,
    pub x: Quantity,
    pub y: Quantity,
    /// What a batch consists of (`image`): the lower panel shows y / x. `None`: no lower panel.
    pub item: Option<String>,
    pub series: Vec<ChartSeries>,
    /// Whether the values come from a model and were not measured.
    pub forecast: bool,
    pub caption: Vec<String>,
}

/// Step time against batch size of several runs: a panel for each series that any of them has, in which each run has its colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    pub title: String,
    pub x: Quantity,
    pub y: Quantity,
    /// As in [`StepTime`].
    pub item: Option<String>,
    /// The legend: a run or a device each, at most as many as [`super::palette::RUNS`] has colours.
    pub names: Vec<String>,
    pub panels: Vec<RunsPanel>,
    pub caption: Vec<String>,
}

/// One series, as several runs measured it.
#[derive(Clone, Debug, PartialEq)]
pub struct RunsPanel {
    pub name: String,
    pub curves: Vec<RunCurve>,
}

/// A series of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunCurve {
    /// The place in [`Runs::names`].
    pub run: usize,
    /// By the name of its run.
    pub series: ChartSeries,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepRecord {
    pub block: Option<u32>,
    /// Relative departure from the expected time of its batch size; 0.01 is 1 % slower.
    pub residual: f64,
    pub warmup: bool,
    pub outlier: bool,
}

/// What was read beside the steps, one value for each step; `None` where it could not be read.
#[derive(Clone, Debug, PartialEq)]
pub struct Covariate {
    pub quantity: Quantity,
    pub values: Vec<Option<f64>>,
}

/// Every step that was executed, in the order in which it ran.
#[derive(Clone, Debug, PartialEq)]
pub struct Timeline {
    pub title: String,
    pub steps: Vec<StepRecord>,
    /// For each series in which one was found, the common factor in the order of the run, placed at the index of the first step of each visit.
    pub factors: Vec<Vec<FactorPoint>>,
    /// SM clock (or CPU frequency), temperature. Those without any value are left out.
    pub covariates: Vec<Covariate>,
    pub caption: Vec<String>,
}

/// A study of whole epochs, or of what feeds a training.
#[derive(Clone, Debug, PartialEq)]
pub struct StudyChart {
    pub title: String,
    pub summary: String,
    /// What a point with its deviation is.
    pub point: &'static str,
    pub panels: Vec<LinePanel>,
    /// The height of each panel.
    pub height: f64,
    pub predicted: Vec<Predicted>,
    /// What a predicted rate may be limited by.
    pub limits: Vec<String>,
    pub stacks: Stacks,
    pub caption: Vec<String>,
}

/// Bars with what is written about them.
#[derive(Clone, Debug, PartialEq)]
pub struct Stacks {
    pub title: &'static str,
    /// The names of the parts, beside the title, and their colours.
    pub parts: Vec<(String, Color)>,
    pub bars: Vec<Stack>,
    /// What a bar stands for, and the table that has those that are left out.
    pub of: (&'static str, &'static str),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Prediction {
    pub title: String,
    pub summary: String,
    /// Time for an example against the batch size, a panel each.
    pub curves: Vec<PredictedCurve>,
    /// Predicted (`value`) against measured (`x`) step times; empty: no such panel.
    pub against: Vec<PredictedPoint>,
    pub caption: Vec<String>,
}

/// One network on one device.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedCurve {
    pub name: String,
    /// By batch size.
    pub points: Vec<PredictedPoint>,
}

/// A prediction with its interval, whose ends may be infinite; all in seconds but a batch size.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct PredictedPoint {
    pub x: f64,
    pub value: f64,
    pub low: f64,
    pub high: f64,
    pub measured: bool,
    pub before_jump: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LinePanel {
    pub x: Quantity,
    pub y: Quantity,
    pub lines: Vec<Line>,
    pub from_zero: bool,
}

/// A line with its name at its right end.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    pub name: String,
    /// By x.
    pub points: Vec<LinePoint>,
    /// The place of a point that is ringed.
    pub marked: Option<usize>,
}

/// A mean with its standard deviation, 0 where it is not known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinePoint {
    pub x: f64,
    pub y: f64,
    pub sd: f64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Crossings {
    pub title: String,
    pub summary: String,
    /// What the horizontal axis counts.
    pub x: String,
    /// One below the other.
    pub panels: Vec<CrossingPanel>,
    pub caption: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct CrossingPanel {
    /// What all of them share; empty where there is one panel.
    pub title: String,
    /// In seconds.
    pub lines: Vec<Line>,
    /// Each with what is said of it.
    pub marks: Vec<(Crossing, String)>,
}

/// Panels of lines, one below the other.
#[derive(Clone, Debug, PartialEq)]
pub struct Stacked {
    pub title: String,
    pub summary: String,
    /// What a point with its deviation is.
    pub point: String,
    pub mark: String,
    pub panels: Vec<StackedPanel>,
    pub caption: Vec<String>,
}

/// One panel. Its vertical axis is logarithmic if it does not begin at 0.
#[derive(Clone, Debug, PartialEq)]
pub struct StackedPanel {
    pub lines: LinePanel,
    /// A dashed line across it.
    pub level: Option<ReferenceLevel>,
    /// Places on the horizontal axis.
    pub marks: Vec<f64>,
}

/// A value that something is held against.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceLevel {
    pub y: f64,
    pub name: String,
}

/// A measured rate and its prediction, in the same unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    pub predicted: f64,
    pub measured: f64,
    /// The place of the predicted limit in [`StudyChart::limits`].
    pub limit: usize,
}

/// A bar of several parts, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack {
    pub name: String,
    pub parts: Vec<f64>,
    pub note: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FitChart {
    pub title: String,
    pub summary: String,
    /// Side by side; none where no engine gave a surface.
    pub surfaces: Vec<FitSurface>,
    /// Losses by updates, above 0 both.
    pub losses: Vec<Line>,
    pub caption: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct FitSurface {
    pub title: String,
    pub points: Vec<FitPoint>,
    /// The square is [-reach, reach]^2.
    pub reach: f64,
    /// The ends of the vertical axis.
    pub low: f64,
    pub high: f64,
    pub signed: bool,
    /// Drawn as single points.
    pub dots: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FitPoint {
    pub row: usize,
    pub column: usize,
    pub x: f64,
    pub y: f64,
    pub z: f64,
}
