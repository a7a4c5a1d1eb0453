//! The chart of a study of the input pipeline, from its stored table.

use std::path::Path;

use super::results::model::Limit;
use super::results::{FedCell, Knee, Results};
use crate::chart::chart_data::{Drawing, made_by};
use crate::chart::palette::{BLUE, GREEN, MUTED, ORANGE, PURPLE, VERMILLION};
use crate::chart::{Chart, Line, LinePanel, LinePoint, Predicted, Quantity, Stack, Stacks, StudyChart};
use crate::stats::repetitions::Repetitions;
use crate::units::human;

/// The chart of a study.
pub fn drawing(source: &Path, study: &Results) -> Drawing {
    let chart = chart(source, study);
    let (summary, title) = (chart.summary.clone(), "Measured, predicted, and where the time goes");
    Drawing { name: "pipeline", title, summary, chart: Chart::Study(chart) }
}

fn chart(source: &Path, study: &Results) -> StudyChart {
    let mut limits: Vec<String> = Vec::new();
    let mut predicted = Vec::new();
    for cell in &study.cells {
        let Some(prediction) = &cell.prediction else { continue };
        let name = family(&prediction.limit);
        let limit = limits.iter().position(|known| known == name).unwrap_or_else(|| {
            limits.push(name.to_owned());
            limits.len() - 1
        });
        predicted.push(Predicted { predicted: prediction.rate, measured: cell.rate, limit });
    }
    let within = study.within();
    let colors = [BLUE, VERMILLION, GREEN, MUTED, ORANGE, PURPLE];
    StudyChart {
        title: format!("What feeds a training on {}", study.device),
        summary: format!(
            "Measured within 10 % of the prediction in {} of {}; of the bounds of the stages alone in {}; of the slowest stage's ceiling in {}.",
            within.model,
            human::counted(within.of as u64, "cell"),
            within.bounds,
            within.slowest_stage
        ),
        point: "median of the blocks, their standard deviation",
        panels: panels(study),
        height: 250.0,
        predicted,
        limits,
        stacks: Stacks {
            title: "What an image takes, each stage alone on one thread",
            parts: study.stages().into_iter().map(str::to_owned).zip(colors).collect(),
            bars: stacks(study),
            of: ("bar", "pipeline.parquet"),
        },
        caption: vec![
            format!(
                "{} \u{b7} {} \u{b7} {}",
                study.device,
                study.storage,
                human::counted(study.blocks as u64, "randomised block")
            ),
            made_by(source, &[]),
        ],
    }
}

/// Limits that share a colour.
fn family(limit: &Limit) -> &'static str {
    match limit {
        Limit::Serial { .. } => "nothing overlaps",
        Limit::Workers { .. } => "workers",
        Limit::Stage { name } if name == "read" => "storage",
        Limit::Stage { .. } => "a stage's ceiling",
        Limit::Step => "step",
        Limit::Cores => "cores",
    }
}

/// A panel for each image size and batch size.
fn panels(study: &Results) -> Vec<LinePanel> {
    let mut panels: Vec<LinePanel> = Vec::new();
    for knee in &study.knees() {
        let FedCell { size, batch_size, .. } = knee.cells[0];
        let y = format!("Images/s, {size}x{size} pixels, batch size {batch_size}");
        match panels.iter_mut().find(|panel| panel.y.name == y) {
            Some(panel) => panel.lines.push(line(knee)),
            None => panels.push(LinePanel {
                x: Quantity::new("Workers", ""),
                y: Quantity::new(&y, ""),
                lines: vec![line(knee)],
                from_zero: true,
            }),
        }
    }
    panels
}

fn line(knee: &Knee) -> Line {
    let first = knee.cells[0];
    let sd = |rates: &[f64]| Repetitions::of(rates).and_then(|rates| rates.sd).unwrap_or(0.0);
    let point = |cell: &&FedCell| LinePoint { x: cell.workers as f64, y: cell.rate, sd: sd(&cell.rates) };
    let series = if first.series.is_empty() { String::new() } else { format!("{}, ", first.series) };
    Line {
        name: format!("{series}{}, {}", first.format, first.cache),
        points: knee.cells.iter().map(point).collect(),
        marked: Some(knee.at),
    }
}

/// One bar for each kind of image: its demands do not depend on the number of workers, so those of the first cell are shown.
pub(super) fn stacks(study: &Results) -> Vec<Stack> {
    let (stages, mut stacks) = (study.stages(), Vec::<Stack>::new());
    for cell in &study.cells {
        let name = cell.place();
        if stacks.iter().any(|stack| stack.name == name) {
            continue;
        }
        let note = cell.file_bytes.map(|bytes| format!("{} a file", human::bytes(bytes.round() as u64)));
        let seconds =
            |name: &&str| cell.demands.stages.iter().find(|stage| stage.name == **name).map(|stage| stage.seconds);
        let parts = stages.iter().map(|name| seconds(name).unwrap_or(0.0)).collect();
        stacks.push(Stack { name, parts, note: note.unwrap_or_default() });
    }
    stacks
}
