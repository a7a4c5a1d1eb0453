//! A training study on one page: epoch time and throughput against the batch size, epoch time against the number of workers
//! with the one that suffices marked, the accuracy after the epoch, and where the time goes.

use super::axis::{Axis, Scale, ascending, scale_of};
use super::data::{LinePanel, TrainingChart};
use super::frame::{self, LegendEntry, MARGIN, Mark};
use super::geometry::Rect;
use super::palette::{BLUE, Color, GREEN, INK, MUTED, ORANGE, PURPLE, VERMILLION};
use super::panel::{Panel, ROW_GAP, TITLE_LIFT, widest_name};
use super::scene::Scene;
use super::stacks::Stacks;

pub(super) const WIDTH: f64 = 1100.0;
const PANEL_HEIGHT: f64 = 230.0;
const COLORS: [Color; 7] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, INK, MUTED];

pub fn scene(chart: &TrainingChart) -> Scene {
    let mut scene = Scene::new(WIDTH, 0.0, &chart.title);
    let mut keys: Vec<LegendEntry> =
        vec![(Mark::Interval(MUTED), "mean of the epochs, one standard deviation".to_owned())];
    if chart.panels.iter().flat_map(|panel| &panel.lines).any(|line| line.marked.is_some()) {
        keys.push((Mark::Ring(INK), "workers that suffice".to_owned()));
    }
    let top = frame::header(&mut scene, &chart.title, &chart.summary, &keys) + 44.0;
    draw_panels(&mut scene, &chart.panels, PANEL_HEIGHT, top);
    let top = top + chart.panels.len().div_ceil(2) as f64 * (PANEL_HEIGHT + ROW_GAP);
    let title = "Where the time of an epoch goes (s)";
    let parts = vec![("training steps", BLUE), ("waiting for the loader", VERMILLION), ("the rest", MUTED)];
    let bottom = Stacks { title, parts, bars: &chart.bars, of: ("cell", "epochs.parquet") }.draw(&mut scene, top);
    frame::caption(&mut scene, bottom + 34.0, &chart.caption);
    scene
}

/// The place of a panel of lines below `top`, two in a row, with room for its `names` on the right.
pub(super) fn slot(number: usize, height: f64, top: f64, names: f64) -> Rect {
    let half = (WIDTH - MARGIN) / 2.0;
    let (column, row) = ((number % 2) as f64, (number / 2) as f64);
    let top = top + row * (height + ROW_GAP);
    Rect { left: column * half + MARGIN + 46.0, right: (column + 1.0) * half - names - 20.0, top, bottom: top + height }
}

/// Draws panels of lines below `top`, two in a row.
pub(super) fn draw_panels(scene: &mut Scene, panels: &[LinePanel], height: f64, top: f64) {
    for (number, panel) in panels.iter().enumerate() {
        draw(scene, panel, slot(number, height, top, widest_name(&panel.lines)));
    }
}

fn draw(scene: &mut Scene, panel: &LinePanel, area: Rect) {
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let xs = ascending(points().map(|point| point.x));
    let scale = if panel.from_zero { scale_of(&xs) } else { Scale::Linear };
    let highs = points().map(|point| point.y + point.sd);
    let y = if panel.from_zero {
        Axis { low: 0.0, ..Axis::around(highs.chain([0.0]), Scale::Linear, 0.08) }
    } else {
        Axis::around(highs.chain(points().map(|point| point.y - point.sd)), Scale::Linear, 0.08)
    };
    let drawn = Panel { area, x: Axis::around(xs.iter().copied(), scale, 0.06), y };
    drawn.draw_y(scene, &panel.y, TITLE_LIFT);
    drawn.draw_x(scene, &xs);
    drawn.label_x(scene, &xs, &panel.x.name);
    drawn.draw_lines(scene, &panel.lines, &COLORS);
}

#[cfg(test)]
mod tests {
    use super::super::data::{Line, LinePoint, Quantity, Stack};
    use super::super::tests::assert_says;
    use super::*;

    fn chart() -> TrainingChart {
        let point = |x: f64, y: f64| LinePoint { x, y, sd: 0.1 };
        let line = |name: &str, marked| Line {
            name: name.into(),
            points: vec![point(64.0, 19.0), point(128.0, 13.0), point(256.0, 11.0), point(512.0, 10.6)],
            marked,
        };
        let panel = |y: &str, marked| LinePanel {
            x: Quantity::new("Batch size", ""),
            y: Quantity::new(y, "s"),
            lines: vec![line("no workers", marked), line("2 workers", None)],
            from_zero: true,
        };
        TrainingChart {
            title: "mnist_cpu".into(),
            summary: "cpu, batch size 512: 2 workers".into(),
            panels: vec![panel("Epoch time", None), panel("Again", Some(2))],
            bars: vec![Stack {
                name: "64, no workers".into(),
                parts: vec![15.0, 3.0, 1.0],
                note: "12 page faults".into(),
            }],
            caption: vec!["60,000 drawn digits".into(), "Made by: batchstep plot results/mnist_cpu".into()],
        }
    }

    #[test]
    fn every_line_is_named_and_the_data_are_on_the_chart() {
        let wanted = ["2 workers", "64, no workers", "19.0 s", "60,000 drawn digits", "512", "workers that suffice"];
        assert_says(&scene(&chart()), &wanted);
    }

    #[test]
    fn names_of_lines_that_end_together_do_not_overlap() {
        let scene = scene(&chart());
        let names: Vec<Rect> =
            scene.texts().filter(|text| text.text.ends_with("workers") && text.font.bold).map(|t| t.area()).collect();
        assert!(names.len() == 4 && !names[0].overlaps(&names[1]), "{names:?}");
    }
}
