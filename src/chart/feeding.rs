//! A study of the input pipeline on one page: images in a second against the number of workers, measured against predicted rates with the
//! band of ten percent, and what an image takes in each stage.

use super::axis::{Axis, Scale};
use super::data::{Feeding, Predicted, Quantity};
use super::frame::{self, LegendEntry, Mark};
use super::geometry::Rect;
use super::palette::{BLUE, Color, GREEN, INK, MUTED, ORANGE, PURPLE, VERMILLION};
use super::panel::{Panel, ROW_GAP, TITLE_LIFT};
use super::scene::Scene;
use super::stacks::Stacks;
use super::training::{WIDTH, draw_panels, slot};

const PANEL_HEIGHT: f64 = 250.0;
/// The colours of the stages, in their order.
const STAGES: [Color; 6] = [BLUE, VERMILLION, GREEN, MUTED, ORANGE, PURPLE];
const LIMITS: [Color; 6] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, MUTED];
/// The band within which a prediction is good.
const BAND: f64 = 0.1;

pub fn scene(chart: &Feeding) -> Scene {
    let mut scene = Scene::new(WIDTH, 0.0, &chart.title);
    let mut keys: Vec<LegendEntry> = vec![
        (Mark::Interval(MUTED), "median of the blocks, their standard deviation".to_owned()),
        (Mark::Ring(INK), "workers that suffice".to_owned()),
    ];
    let limits = chart.limits.iter().zip(LIMITS.iter().cycle());
    keys.extend(limits.map(|(name, &color)| (Mark::Dot(color), format!("predicted limit: {name}"))));
    let top = frame::header(&mut scene, &chart.title, &chart.summary, &keys) + 44.0;
    draw_panels(&mut scene, &chart.panels, PANEL_HEIGHT, top);
    let mut slots = chart.panels.len();
    if !chart.predicted.is_empty() {
        compared(&mut scene, &chart.predicted, slot(slots, PANEL_HEIGHT, top, 20.0));
        slots += 1;
    }
    let bottom = top + slots.div_ceil(2) as f64 * (PANEL_HEIGHT + ROW_GAP);
    let title = "What an image takes, each stage alone on one thread";
    let parts = chart.stages.iter().map(String::as_str).zip(STAGES).collect();
    let bottom = Stacks { title, parts, bars: &chart.stacks, of: ("bar", "pipeline.parquet") }.draw(&mut scene, bottom);
    frame::caption(&mut scene, bottom + 34.0, &chart.caption);
    scene
}

/// Measured against predicted, on logarithmic axes of the same range.
fn compared(scene: &mut Scene, cells: &[Predicted], area: Rect) {
    let all = || cells.iter().flat_map(|cell| [cell.predicted, cell.measured]);
    let axis = Axis::around(all(), Scale::Log, 0.06);
    let panel = Panel { area, x: axis, y: axis };
    let edge = |factor: f64| [axis.low, axis.high].map(|x| panel.at_clamped(x, x * factor));
    let [low, high] = [edge(1.0 - BAND), edge(1.0 + BAND)];
    scene.polygon(vec![low[0], low[1], high[1], high[0]], MUTED.tint(0.25));
    let measured = Quantity::new("Measured (images/s); band: the predicted rate, 10 % either way", "");
    panel.draw_y(scene, &measured, TITLE_LIFT);
    let ticks = axis.ticks(6);
    panel.draw_x(scene, &ticks);
    panel.label_x(scene, &ticks, "Predicted (images/s)");
    for cell in cells {
        scene.disc(panel.at_clamped(cell.predicted, cell.measured), 3.4, LIMITS[cell.limit % LIMITS.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::{Line, LinePanel, LinePoint, Stack};
    use super::super::tests::assert_says;
    use super::*;

    #[test]
    fn the_lines_the_limits_and_the_stages_are_named_on_the_chart() {
        let point = |x: f64, y: f64| LinePoint { x, y, sd: 1.0 };
        let line =
            Line { name: "png, cold".into(), points: vec![point(0.0, 90.0), point(2.0, 210.0)], marked: Some(1) };
        let panel = LinePanel {
            x: Quantity::new("Workers", ""),
            y: Quantity::new("Images/s", ""),
            lines: vec![line],
            from_zero: true,
        };
        let chart = Feeding {
            title: "pipeline".into(),
            summary: "Measured within 10 % of the prediction in 2 of 2 cells.".into(),
            panels: vec![panel],
            predicted: vec![
                Predicted { predicted: 100.0, measured: 90.0, limit: 0 },
                Predicted { predicted: 200.0, measured: 210.0, limit: 1 },
            ],
            limits: vec!["nothing overlaps".into(), "workers".into()],
            stages: ["read", "decode", "transform", "batch", "copy", "step"].map(String::from).to_vec(),
            stacks: vec![Stack {
                name: "png of 64x64, cold".into(),
                parts: vec![1e-4, 3e-3, 1e-4, 0.0, 0.0, 1e-3],
                note: "8.1 kB".into(),
            }],
            caption: vec!["a processor".into()],
        };
        let wanted = [
            "png, cold",
            "predicted limit: workers",
            "decode",
            "png of 64x64, cold",
            "4.20 ms",
            "Predicted (images/s)",
        ];
        assert_says(&scene(&chart), &wanted);
    }
}
