//! The chart of several processes, from stored series.

use std::path::Path;

use super::{Drawing, device, made_by, title};
use crate::analysis::Analysed;
use crate::analysis::contrast::parallel::{PROMISED, Parallel, ParallelCell};
use crate::chart::axis::ascending;
use crate::chart::{Chart, Line, LinePanel, LinePoint, Quantity, ReferenceLevel, Stacked, StackedPanel};
use crate::units::human;

/// Batch sizes that have a line of their own over the number of processes.
const LINES: usize = 3;

pub fn efficiency(source: &Path, found: &[Analysed], parallel: &[Parallel]) -> Option<Drawing> {
    if parallel.iter().all(|parallel| parallel.cells.is_empty()) {
        return None;
    }
    let chart = stacked(source, found, parallel);
    let (summary, title) = (chart.summary.clone(), "What is left of what several processes could do");
    Some(Drawing { name: "efficiency", title, summary, chart: Chart::Stacked(chart) })
}

fn stacked(source: &Path, found: &[Analysed], all: &[Parallel]) -> Stacked {
    let cells = || all.iter().flat_map(|parallel| &parallel.cells);
    let reach = cells().filter(|cell| cell.efficiency >= PROMISED).count();
    let device = device(found);
    let y = 100.0 * PROMISED;
    let level = || {
        Some(ReferenceLevel { y, name: format!("{y} %, which builders of such platforms name (measured by others)") })
    };
    let mut panels = vec![
        StackedPanel {
            lines: over_sizes(all, "Efficiency (%)", |cell| Some(point(cell.batch_size, cell))),
            level: level(),
            marks: falls(all),
        },
        StackedPanel { lines: over_processes(all), level: level(), marks: Vec::new() },
    ];
    if cells().any(|cell| cell.reducing.is_some()) {
        let share = |cell: &ParallelCell| Some(LinePoint { x: cell.batch_size, y: 100.0 * cell.reducing?, sd: 0.0 });
        let reducing = over_sizes(all, "In all-reduce (% of the step)", share);
        panels.insert(1, StackedPanel { lines: reducing, level: None, marks: Vec::new() });
    }
    Stacked {
        title: title::of("Efficiency", source, found),
        summary: format!("{reach} of {} reach {y} %.", human::counted(cells().count() as u64, "cell")),
        point: "measured, with its 95 % interval".to_owned(),
        mark: "from there on an efficiency is lower, intervals apart".to_owned(),
        panels,
        caption: vec![
            format!("{device} \u{b7} weak: the batch size is that of each process \u{b7} strong: of all together"),
            made_by(source, found),
        ],
    }
}

/// Where the efficiency of a series provably falls, between two batch sizes.
fn falls(all: &[Parallel]) -> Vec<f64> {
    let jumps = all.iter().flat_map(|parallel| &parallel.jumps).filter(|beside| beside.falls());
    ascending(jumps.map(|beside| 0.5 * (beside.before.batch_size + beside.behind.batch_size)))
}

fn panel(x: &str, y: &str, lines: Vec<Line>) -> LinePanel {
    LinePanel { x: Quantity::new(x, ""), y: Quantity::new(y, ""), lines, from_zero: true }
}

fn point(x: f64, cell: &ParallelCell) -> LinePoint {
    let known = cell.low > 0.0 && cell.high.is_finite();
    LinePoint { x, y: 100.0 * cell.efficiency, sd: if known { 50.0 * (cell.high - cell.low) } else { 0.0 } }
}

/// What the series is called beside its numbers: `vgg16, strong`.
fn name(parallel: &Parallel) -> String {
    format!("{}, {}", parallel.name, parallel.scaling)
}

fn over_sizes(all: &[Parallel], y: &str, point: fn(&ParallelCell) -> Option<LinePoint>) -> LinePanel {
    let line = |parallel: &Parallel| Line {
        name: format!("{}, {} processes", name(parallel), parallel.processes),
        points: parallel.cells.iter().filter_map(point).collect(),
        marked: None,
    };
    panel("Batch size", y, all.iter().map(line).collect())
}

/// A line for each series and some of its batch sizes, from the fewest processes on.
fn over_processes(all: &[Parallel]) -> LinePanel {
    let mut lines: Vec<Line> = Vec::new();
    for parallel in all {
        let step = parallel.cells.len().div_ceil(LINES).max(1);
        // The largest batch sizes are the most informative.
        for cell in parallel.cells.iter().rev().step_by(step) {
            let name = format!("{}, batch size {}", name(parallel), human::batch_size(cell.batch_size));
            let more = point(f64::from(parallel.processes), cell);
            match lines.iter_mut().find(|line| line.name == name) {
                Some(line) => line.points.push(more),
                None => {
                    let fewest = LinePoint { x: f64::from(parallel.fewest), y: 100.0, sd: 0.0 };
                    lines.push(Line { name, points: vec![fewest, more], marked: None });
                }
            }
        }
    }
    lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.x.total_cmp(&b.x)));
    panel("Processes", "Efficiency (%)", lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::contrast::parallel::{Beside, parallel, tests::run};
    use crate::chart::tests::assert_says;

    #[test]
    fn a_line_for_each_series_and_one_for_each_batch_size_from_the_fewest_processes_on() {
        let analysed = run();
        let mut all = parallel(&analysed.each_ref(), &std::collections::BTreeMap::new());
        all.iter_mut().for_each(|one| one.jumps.clear());
        let chart = stacked(Path::new("results/p"), &analysed, &all);
        assert_eq!(chart.panels.len(), 2, "nothing says how long the all-reduce took");
        let names: Vec<&str> = chart.panels[0].lines.lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["mlp, weak, 2 processes", "mlp, strong, 2 processes"]);
        let line = &chart.panels[1].lines.lines[0];
        assert_eq!((line.name.as_str(), line.points[0].x, line.points[0].y), ("mlp, weak, batch size 20", 1.0, 100.0));
        // By hand: 34 ms over 32 ms.
        assert!(line.points.len() == 2 && (line.points[1].y - 106.25).abs() < 0.3, "{line:?}");
        assert!(chart.panels.iter().filter_map(|panel| panel.level.as_ref()).all(|level| level.y == 95.0));
        let said =
            ["mlp, weak, 2 processes", "95 %, which builders", "measured, with its", "Processes", "weak: the batch"];
        let scene = Chart::Stacked(chart).scene();
        assert_says(&scene, &said);
        assert!(!scene.texts().any(|text| text.text.starts_with("from there on")), "nothing is marked");
    }

    #[test]
    fn the_share_of_the_all_reduce_and_where_the_efficiency_falls_are_on_the_chart() {
        let analysed = run();
        let shares: std::collections::BTreeMap<i64, f64> = (40..80).map(|cell| (cell, 0.25)).collect();
        let mut all = parallel(&analysed.each_ref(), &shares);
        let cell = all[0].cells[11];
        let side = |batch_size, low, high| ParallelCell { batch_size, low, high, ..cell };
        let beside = |before, behind| Beside { before, behind, alone_jumps: true, together_jumps: false };
        // One falls, one rises, one does not provably change.
        all[0].jumps = vec![
            beside(side(12.0, 0.8, 0.84), side(13.0, 0.7, 0.74)),
            beside(side(14.0, 0.7, 0.74), side(15.0, 0.8, 0.84)),
        ];
        all[1].jumps = vec![beside(side(16.0, 0.8, 0.84), side(17.0, 0.79, 0.82))];
        let chart = stacked(Path::new("results/p"), &analysed, &all);
        assert_eq!(chart.panels[0].marks, [12.5]);
        assert_says(&Chart::Stacked(chart.clone()).scene(), &["from there on an efficiency is lower", "In all-reduce"]);
        let shown = &chart.panels[1].lines;
        assert!(shown.y.name.starts_with("In all-reduce") && shown.lines.len() == 2, "{shown:?}");
        assert!(shown.lines[0].points.len() == 20 && shown.lines[0].points.iter().all(|point| point.y == 25.0));
    }
}
