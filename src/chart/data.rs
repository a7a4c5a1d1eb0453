//! What a chart is made of: plain numbers and words. Nothing here knows a file, an engine or a pixel.
//!
//! The `summary` of a chart stands under its title; the `caption` says what was measured on what, and which command makes the figure again.

use serde::Serialize;

use crate::detect::Findings;
use crate::units::human;

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

/// The PCIe link, as it was read under load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Link {
    Pcie {
        generation: u32,
        width: u32,
    },
    /// The device has none, for instance a CPU.
    None,
    /// There may be one, but it could not be read.
    #[default]
    Unknown,
    /// Another program measured, and the figure does not mention a link.
    NotOurs,
}

impl std::fmt::Display for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Pcie { generation, width } => write!(f, "PCIe {generation}.0 x{width}"),
            Self::Unknown => f.write_str("PCIe link not read"),
            Self::None | Self::NotOurs => Ok(()),
        }
    }
}

/// Where the numbers come from; printed on the figure, so that a figure without its page can be judged.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provenance {
    /// `NVIDIA H200`; unknown for a file that another program measured.
    pub device: Option<String>,
    pub engine: Option<String>,
    pub precision: Option<String>,
    pub link: Link,
    /// Whether the values come from a model and were not measured.
    pub forecast: bool,
    pub steps: u64,
    pub blocks: u64,
    /// False while too little is measured to report jumps.
    pub reported: bool,
    /// The share of simulated series like these that have a false alarm; 0.01 is 1 %. `None` if it is not known.
    pub alarm_rate: Option<f64>,
    pub aa_rate: Option<f64>,
    /// The machines, where several measured it, in a sentence.
    pub machines: Option<String>,
    /// The command that makes the figure again.
    pub command: String,
}

impl Provenance {
    /// The caption: what ran on what, how often, and how far it can be trusted.
    pub fn caption(&self) -> String {
        let mut parts: Vec<String> =
            [&self.device, &self.engine, &self.precision].into_iter().flatten().cloned().collect();
        parts.extend(Some(self.link.to_string()).filter(|link| !link.is_empty()));
        if self.forecast {
            parts.push(format!("{}, forecast and not measured", human::counted(self.steps, "value")));
            return parts.join(" \u{b7} ");
        }
        let steps = human::counted(self.steps, "step");
        parts.push(match self.blocks {
            // A file that another program measured.
            0 => steps,
            // Some of its blocks are not whole, and the headline counts those that are.
            _ if !self.reported => steps,
            blocks => format!("{steps} in {}", human::counted(blocks, "block")),
        });
        if let Some(rate) = self.alarm_rate.filter(|_| self.reported) {
            parts.push(format!("{} false alarms (simulated)", human::limit(rate)));
        }
        if let Some(rate) = self.aa_rate.filter(|_| self.reported) {
            parts.push(format!("A/A runs: {} false alarms", human::limit(rate)));
        }
        parts.join(" \u{b7} ")
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
    pub provenance: Provenance,
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

/// The factor common to all batch sizes during one visit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FactorRecord {
    /// The index of the visit's first step.
    pub step: usize,
    /// Slower than the mean of the run by this share, and its standard error.
    pub relative: f64,
    pub sd: f64,
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
    /// For each series in which one was found, the common factor in the order of the run.
    pub factors: Vec<Vec<FactorRecord>>,
    /// SM clock (or CPU frequency), temperature. Those without any value are left out.
    pub covariates: Vec<Covariate>,
    pub provenance: Provenance,
}

#[derive(Clone, Debug, PartialEq)]
pub struct TrainingChart {
    pub title: String,
    pub summary: String,
    pub panels: Vec<LinePanel>,
    /// The time of an epoch of each cell: training steps, waiting for the loader, the rest; and what was counted beside it.
    pub bars: Vec<Stack>,
    pub caption: Vec<String>,
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

#[derive(Clone, Debug, Default, PartialEq)]
pub struct CrossingPanel {
    /// What all of them share; empty where there is one panel.
    pub title: String,
    /// In seconds.
    pub lines: Vec<Line>,
    pub marks: Vec<CrossingMark>,
}

/// A crossover with its interval; `None`: beyond the sizes measured.
#[derive(Clone, Debug, PartialEq)]
pub struct CrossingMark {
    pub size: f64,
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub label: String,
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

#[derive(Clone, Debug, PartialEq)]
pub struct Feeding {
    pub title: String,
    pub summary: String,
    /// Rates against the number of workers; two in a row.
    pub panels: Vec<LinePanel>,
    pub predicted: Vec<Predicted>,
    /// What a rate may be limited by.
    pub limits: Vec<String>,
    /// The names of the parts of the stacks, in their order.
    pub stages: Vec<String>,
    pub stacks: Vec<Stack>,
    pub caption: Vec<String>,
}

/// A measured rate and its prediction, in the same unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Predicted {
    pub predicted: f64,
    pub measured: f64,
    /// The place of the predicted limit in [`Feeding::limits`].
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
pub struct Fits {
    pub title: String,
    pub summary: String,
    /// Side by side; none where no engine gave a surface.
    pub reliefs: Vec<Relief>,
    /// Losses by updates, above 0 both.
    pub losses: Vec<Line>,
    pub caption: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Relief {
    pub title: String,
    pub points: Vec<ReliefPoint>,
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
pub struct ReliefPoint {
    pub row: usize,
    pub column: usize,
    pub x: f64,
    pub y: f64,
    pub z: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_caption_says_what_ran_and_how_reliable_it_is() {
        let mut provenance = Provenance {
            device: Some("NVIDIA H200".into()),
            engine: Some("cudnn engine".into()),
            precision: Some("tf32".into()),
            link: Link::Pcie { generation: 5, width: 16 },
            steps: 10_500,
            blocks: 30,
            reported: true,
            alarm_rate: Some(0.01),
            aa_rate: Some(0.008),
            ..Provenance::default()
        };
        assert_eq!(
            provenance.caption(),
            "NVIDIA H200 \u{b7} cudnn engine \u{b7} tf32 \u{b7} PCIe 5.0 x16 \u{b7} 10,500 steps in 30 blocks \u{b7} \
             1 % false alarms (simulated) \u{b7} A/A runs: 0.8 % false alarms"
        );
        (provenance.device, provenance.engine, provenance.precision) = (None, None, None);
        (provenance.link, provenance.blocks, provenance.aa_rate) = (Link::None, 1, None);
        assert_eq!(provenance.caption(), "10,500 steps in 1 block \u{b7} 1 % false alarms (simulated)");
        provenance.reported = false;
        assert_eq!(provenance.caption(), "10,500 steps");
    }
}
