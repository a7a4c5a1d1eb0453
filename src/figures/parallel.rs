//! The chart of several processes, from stored series.

use std::path::{Path, PathBuf};

use super::{Destination, shared};
use crate::analysis::Analysed;
use crate::analysis::parallel::{PROMISED, Parallel, ParallelCell};
use crate::chart::{self, Chart, Efficiency, Line, LinePanel, LinePoint, Quantity};
use crate::error::Result;
use crate::report::human;

/// Batch sizes that have a line of their own over the number of processes.
const LINES: usize = 3;

/// Draws the efficiency; nothing where there is none. Returns the files written.
///
/// # Errors
/// As [`chart::write()`].
pub fn draw_parallel(
    source: &Path,
    found: &[Analysed],
    parallel: &[Parallel],
    destination: &Destination,
) -> Result<Vec<PathBuf>> {
    if parallel.iter().all(|parallel| parallel.cells.is_empty()) {
        return Ok(Vec::new());
    }
    let path = destination.path("efficiency");
    chart::write(&Chart::Efficiency(efficiency(source, found, parallel)), &path)?;
    Ok(vec![path])
}

fn efficiency(source: &Path, found: &[Analysed], all: &[Parallel]) -> Efficiency {
    let cells = || all.iter().flat_map(|parallel| &parallel.cells);
    let reach = cells().filter(|cell| cell.efficiency >= PROMISED).count();
    let device = shared(found, "device_name").unwrap_or_else(|| "several devices".to_owned());
    let promised = 100.0 * PROMISED;
    Efficiency {
        title: source.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        summary: format!("{reach} of {} reach {promised} %.", human::counted(cells().count() as u64, "cell")),
        panels: vec![over_sizes(all), over_processes(all)],
        promised,
        promise: format!("{promised} %, which builders of such platforms name (measured by others)"),
        caption: vec![
            format!("{device} \u{b7} weak: the batch size is that of each process \u{b7} strong: of all together"),
            format!("Made by: batchstep plot {}", source.display()),
        ],
    }
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

fn over_sizes(all: &[Parallel]) -> LinePanel {
    let line = |parallel: &Parallel| Line {
        name: format!("{}, {} processes", name(parallel), parallel.processes),
        points: parallel.cells.iter().map(|cell| point(cell.batch_size, cell)).collect(),
        marked: None,
    };
    panel("Batch size", "Efficiency (%)", all.iter().map(line).collect())
}

/// A line for each series and some of its batch sizes, from the fewest processes on.
fn over_processes(all: &[Parallel]) -> LinePanel {
    let mut lines: Vec<Line> = Vec::new();
    for parallel in all {
        let step = parallel.cells.len().div_ceil(LINES).max(1);
        // The largest batch sizes tell most.
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
    use crate::analysis::compare::Rules;
    use crate::analysis::parallel::{parallel, tests::run};

    #[test]
    fn a_line_for_each_series_and_one_for_each_batch_size_from_the_fewest_processes_on() {
        let analysed = run();
        let all = parallel(&analysed, &std::collections::BTreeMap::new(), &Rules::default());
        let chart = efficiency(Path::new("results/p"), &analysed, &all);
        let names: Vec<&str> = chart.panels[0].lines.iter().map(|line| line.name.as_str()).collect();
        assert_eq!(names, ["mlp, weak, 2 processes", "mlp, strong, 2 processes"]);
        let line = &chart.panels[1].lines[0];
        assert_eq!((line.name.as_str(), line.points[0].x, line.points[0].y), ("mlp, weak, batch size 20", 1.0, 100.0));
        // By hand: 34 ms over 32 ms.
        assert!(line.points.len() == 2 && (line.points[1].y - 106.25).abs() < 0.3, "{line:?}");
    }
}
