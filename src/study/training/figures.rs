//! The chart of a training study, from its stored epochs.

use std::collections::BTreeSet;
use std::path::Path;

use super::report;
use super::results::{CellEpochs, Results, WorkerCurve, worker_curves};
use crate::chart::chart_data::{Drawing, made_by};
use crate::chart::palette::{BLUE, MUTED, VERMILLION};
use crate::chart::{Chart, Line, LinePanel, LinePoint, Quantity, Stack, Stacks, StudyChart};
use crate::units::human;

/// The chart of a study.
pub fn drawing(source: &Path, study: &Results) -> Drawing {
    let chart = chart(source, study);
    Drawing { name: "training", title: "Epochs", summary: chart.summary.clone(), chart: Chart::Study(chart) }
}

fn chart(source: &Path, study: &Results) -> StudyChart {
    let curves = worker_curves(study);
    let batches = count(study, |cell| cell.batch_size);
    let mut panels = Vec::new();
    let epoch_time = |cell: &CellEpochs| LinePoint { x: 0.0, y: cell.times.mean, sd: cell.times.sd.unwrap_or(0.0) };
    if batches > 1 {
        panels.push(against_batch(study, "Epoch time", "s", epoch_time));
        panels.push(against_batch(study, "Throughput (examples/s)", "", |cell| {
            let throughput = cell.throughput();
            let sd = cell.times.sd.map_or(0.0, |sd| throughput * sd / cell.times.mean);
            LinePoint { x: 0.0, y: throughput, sd }
        }));
    }
    if !curves.is_empty() {
        panels.push(against_workers(&curves));
    }
    if batches > 1 && study.cells.iter().any(|cell| cell.test_accuracy().is_some()) {
        panels.push(accuracy(study));
    }
    let advice = report::advice(study).join(". ");
    let parts = [("training steps", BLUE), ("waiting for the loader", VERMILLION), ("the rest", MUTED)];
    StudyChart {
        title: format!("Whole epochs on {}", study.device),
        summary: if advice.is_empty() { "Time of whole epochs.".to_owned() } else { advice + "." },
        point: "mean of the epochs, one standard deviation",
        panels,
        height: 230.0,
        predicted: Vec::new(),
        limits: Vec::new(),
        stacks: Stacks {
            title: "Where the time of an epoch goes (s)",
            parts: parts.map(|(name, color)| (name.to_owned(), color)).into(),
            bars: study.cells.iter().filter_map(bar).collect(),
            of: ("cell", "epochs.parquet"),
        },
        caption: caption(source, study),
    }
}

fn caption(source: &Path, study: &Results) -> Vec<String> {
    let epochs: usize = study.cells.iter().map(|cell| cell.times.runs).sum();
    let blocks = human::counted(study.blocks as u64, "randomised block");
    let mut parts = vec![study.device.clone(), study.dataset.clone()];
    parts.push(format!("{} in {blocks}", human::counted(epochs as u64, "epoch")));
    let without = [
        (study.dropped, "example", "dropped at the end of each epoch"),
        (study.skipped, "example", "could not be read"),
        (study.test_skipped, "test example", "could not be read"),
    ];
    let without = without.into_iter().filter(|(number, ..)| *number > 0);
    parts.extend(without.map(|(number, noun, why)| format!("{} {why}", human::counted(number as u64, noun))));
    vec![parts.join(" \u{b7} "), made_by(source, &[])]
}

fn count<T: Ord>(study: &Results, value: impl Fn(&CellEpochs) -> T) -> usize {
    study.cells.iter().map(value).collect::<BTreeSet<T>>().len()
}

/// Adds a point to the line of that name.
fn add(lines: &mut Vec<Line>, name: String, point: LinePoint) {
    match lines.iter_mut().find(|line| line.name == name) {
        Some(line) => line.points.push(point),
        None => lines.push(Line { name, points: vec![point], marked: None }),
    }
}

/// A line for each series and number of workers.
fn against_batch(study: &Results, name: &str, unit: &str, point: impl Fn(&CellEpochs) -> LinePoint) -> LinePanel {
    let several = count(study, |cell| cell.series.clone()) > 1;
    let depths = count(study, |cell| cell.prefetch) > 2;
    let mut lines = Vec::new();
    for cell in &study.cells {
        let mut parts = Vec::new();
        parts.extend(several.then(|| cell.series.clone()));
        parts.push(human::counted(cell.workers as u64, "worker"));
        parts.extend(cell.prefetch.filter(|_| depths).map(|depth| format!("prefetch {depth}")));
        add(&mut lines, parts.join(", "), LinePoint { x: cell.batch_size as f64, ..point(cell) });
    }
    LinePanel { x: Quantity::new("Batch size", ""), y: Quantity::new(name, unit), lines, from_zero: true }
}

/// A line for each batch size, with the number of workers that suffices marked.
fn against_workers(curves: &[WorkerCurve]) -> LinePanel {
    let several = curves.iter().any(|curve| curve.series != curves[0].series);
    let line = |curve: &WorkerCurve| {
        let mut parts = Vec::new();
        parts.extend(several.then(|| curve.series.to_owned()));
        parts.push(format!("batch {}", curve.batch_size));
        parts.extend(curve.prefetch.map(|depth| format!("prefetch {depth}")));
        let points = curve.points.iter().map(|point| LinePoint {
            x: point.workers as f64,
            y: point.times.mean,
            sd: point.times.sd.unwrap_or(0.0),
        });
        let marked = curve.points.iter().position(|point| point.workers == curve.advice.workers);
        Line { name: parts.join(", "), points: points.collect(), marked }
    };
    LinePanel {
        x: Quantity::new("Workers of the loader", ""),
        y: Quantity::new("Epoch time", "s"),
        lines: curves.iter().map(line).collect(),
        from_zero: true,
    }
}

/// One line for each series: the loader does not change what is learnt.
fn accuracy(study: &Results) -> LinePanel {
    let mut lines = Vec::new();
    for cell in &study.cells {
        let Some(accuracy) = cell.test_accuracy() else { continue };
        let point = LinePoint { x: cell.batch_size as f64, y: 100.0 * accuracy, sd: 0.0 };
        let known = lines.iter().find(|line: &&Line| line.name == cell.series);
        if known.is_none_or(|line| line.points.iter().all(|known| known.x != point.x)) {
            add(&mut lines, cell.series.clone(), point);
        }
    }
    let y = Quantity::new("Test accuracy after the epoch (%)", "");
    LinePanel { x: Quantity::new("Batch size", ""), y, lines, from_zero: false }
}

/// Steps, waiting, and the rest. If the engine does not report the time of its steps, everything except the waiting counts as steps.
fn bar(cell: &CellEpochs) -> Option<Stack> {
    let whole = cell.times.mean;
    let wait = cell.mean(|row| row.wait_time_s)?;
    let compute = cell.mean(|row| row.compute_time_s).unwrap_or(whole - wait);
    let parts = vec![compute, wait, (whole - compute - wait).max(0.0)];
    Some(Stack { name: cell.name(), parts, note: note(cell) })
}

/// The counters of an epoch: the processor's counters if available, else the kernel's.
fn note(cell: &CellEpochs) -> String {
    let get = |name: &str| cell.mean(|row| row.counters.get(name));
    let of =
        |part: &str, whole: &str| get(part).zip(get(whole)).filter(|(_, of)| *of > 0.0).map(|(part, of)| part / of);
    let counted = |name: &str, noun| get(name).map(|count| format!("{} {noun}", human::count(count.round() as u64)));
    let parts = [
        of("instructions", "cycles").map(|ratio| format!("{ratio:.2} instructions per cycle")),
        of("cache_misses", "cache_references").map(|share| format!("{} cache misses", human::percent(share))),
        get("task_clock_s").map(|clock| format!("{:.2} cores", clock / cell.times.mean)),
        counted("context_switches", "context switches"),
        counted("page_faults", "page faults"),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" \u{b7} ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::training::TrainingRow;
    use crate::study::training::results::tests::row;

    #[test]
    fn an_epoch_is_steps_waiting_and_the_rest_as_far_as_the_engine_says() {
        let parts = |row: TrainingRow| bar(&Results::of(&[row]).cells[0]).map(|bar| bar.parts);
        // By hand, of 16 s: five eighths in steps, a quarter waiting.
        assert_eq!(parts(row(64, 0, 0, 16.0)), Some(vec![10.0, 4.0, 2.0]));
        // An engine whose steps run behind its loop does not say what they take.
        assert_eq!(parts(TrainingRow { compute_time_s: None, ..row(64, 0, 0, 16.0) }), Some(vec![12.0, 4.0, 0.0]));
    }
}
