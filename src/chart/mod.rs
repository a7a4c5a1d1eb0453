//! Charts as PNG and SVG: step time with its jumps for one run or several, the honesty plot, a study of whole epochs, and a study of the
//! input pipeline.
//!
//! `data` says what a chart shows, and `chart_data` fills it from stored data; `step_time` and `honesty` turn it into a [`scene::Scene`], a list of graphics primitives in
//! figure units; `paint` is the one place that knows plotters' backends. Axes, labels and colours are drawn here rather
//! than by plotters' chart builder, which has no panels with a common axis, no labels that avoid each other, and no ticks
//! in powers of two. The same input gives the same bytes.

pub mod axis;
pub mod chart_data;
mod crossover;
mod data;
mod fit;
mod font;
mod frame;
pub mod geometry;
mod honesty;
mod indexed;
pub mod labels;
mod paint;
pub mod palette;
mod panel;
mod pdf;
mod prediction;
pub mod scene;
mod stacked;
mod step_time;
mod study;
#[cfg(test)]
mod tests;

use std::path::Path;

use crate::error::Result;
pub use data::*;
pub use font::typeset;

#[derive(Clone, Debug, PartialEq)]
pub enum Chart {
    StepTime(StepTime),
    Runs(Runs),
    Timeline(Timeline),
    Study(StudyChart),
    Prediction(Prediction),
    Crossings(Crossings),
    Fit(FitChart),
    Stacked(Stacked),
}

/// What a figure of a paper is asked for.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Paper {
    /// In place of the chart's own; empty: none.
    pub title: Option<String>,
    /// The width of the column, in points of 1/72 inch. The chart of the step times is laid out for it, with text of 7 points, and leaves out what
    /// belongs into a caption; the others are scaled.
    pub width: Option<f64>,
}

/// Points of a unit in a figure of a paper: the names of ticks, 12.5 units high, are of 7 points.
const PAPER_UNIT: f64 = 7.0 / 12.5;

impl Chart {
    /// The figure of a paper, before it becomes a file.
    fn scene_on(&self, paper: &Paper) -> scene::Scene {
        let mut chart = self.clone();
        if let Some(title) = &paper.title {
            chart.title().clone_from(title);
        }
        let Some(points) = paper.width else { return chart.scene() };
        let mut scene = match &mut chart {
            Self::StepTime(chart) => {
                if paper.title.is_none() {
                    chart.title.clear();
                }
                step_time::scene(chart, Some(points / PAPER_UNIT))
            }
            other => other.scene(),
        };
        scene.points = Some(points);
        scene
    }

    fn title(&mut self) -> &mut String {
        match self {
            Self::StepTime(chart) => &mut chart.title,
            Self::Runs(chart) => &mut chart.title,
            Self::Timeline(chart) => &mut chart.title,
            Self::Study(chart) => &mut chart.title,
            Self::Prediction(chart) => &mut chart.title,
            Self::Crossings(chart) => &mut chart.title,
            Self::Fit(chart) => &mut chart.title,
            Self::Stacked(chart) => &mut chart.title,
        }
    }

    /// The figure, before it becomes a file.
    pub fn scene(&self) -> scene::Scene {
        match self {
            Self::StepTime(chart) => step_time::scene(chart, None),
            Self::Runs(chart) => step_time::runs(chart),
            Self::Timeline(chart) => honesty::scene(chart),
            Self::Study(chart) => study::scene(chart),
            Self::Prediction(chart) => prediction::scene(chart),
            Self::Crossings(chart) => crossover::scene(chart),
            Self::Fit(chart) => fit::scene(chart),
            Self::Stacked(chart) => stacked::scene(chart),
        }
    }
}

/// Writes `chart` to `path` as a figure of `paper`, in the format of its extension: `.png`, `.svg` or `.pdf`.
///
/// # Errors
/// [`crate::error::Kind::Spec`] for another extension; [`crate::error::Kind::Io`] where the file cannot be written. Both
/// name the path, and nothing half-written is left there.
pub fn write(paper: &Paper, chart: &Chart, path: &Path) -> Result<()> {
    paint::write(&chart.scene_on(paper), path)
}

/// `chart` as the text of an SVG file.
///
/// # Errors
/// [`crate::error::Kind::Io`] where it cannot be drawn.
pub fn svg(chart: &Chart) -> Result<String> {
    paint::svg(&chart.scene())
}
