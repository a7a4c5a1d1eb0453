//! The efficiency of several processes: against the batch size, and against their number, with the share that is promised as a line.

use super::axis::{Axis, Scale, scale_of};
use super::data::{Efficiency, LinePanel};
use super::font;
use super::frame::{self, Key, MARGIN, Mark};
use super::geometry::Rect;
use super::labels::spread;
use super::palette::{INK, MUTED, RUNS};
use super::panel::{Panel, TICK_SIZE, TITLE_LIFT};
use super::scene::{Anchor, Font, Scene, Stroke};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 300.0;
/// From the lower edge of a panel to the title of the one below.
const ROW_GAP: f64 = 92.0;

/// The figure.
pub fn scene(chart: &Efficiency) -> Scene {
    let mut scene = Scene::new(WIDTH, 0.0, &chart.title);
    let keys: Vec<Key> = vec![
        (Mark::Interval(MUTED), "measured, with its 95 % interval".to_owned()),
        (Mark::Dashes(INK), chart.promise.clone()),
    ];
    let mut top = frame::header(&mut scene, &chart.title, &chart.summary, &keys) + 44.0;
    for panel in &chart.panels {
        let names = panel.lines.iter().map(|line| font::width(&line.name, TICK_SIZE, true)).fold(0.0, f64::max);
        let area = Rect { left: MARGIN + 56.0, right: WIDTH - names - 36.0, top, bottom: top + HEIGHT };
        draw(&mut scene, panel, area, chart.promised);
        top += HEIGHT + ROW_GAP;
    }
    frame::caption_texts(&mut scene, top - 18.0, &chart.caption);
    scene
}

fn draw(scene: &mut Scene, chart: &LinePanel, area: Rect, promised: f64) {
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let mut xs: Vec<f64> = points().map(|point| point.x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let scale = scale_of(&xs);
    let highs = points().map(|point| point.y + point.sd).chain([promised, 0.0]);
    let y = Axis { low: 0.0, ..Axis::around(highs, Scale::Linear, 0.08) };
    let panel = Panel { area, x: Axis::around(xs.iter().copied(), scale, 0.04), y };
    panel.draw_y(scene, &chart.y, TITLE_LIFT);
    let ticks = if xs.len() > 12 { panel.x.ticks(10) } else { xs };
    panel.draw_x(scene, &ticks);
    panel.label_x(scene, &ticks, &chart.x.name);
    let level = panel.at_y(promised);
    scene.dashes((area.left, level), (area.right, level), 5.0, Stroke { width: 1.0, color: INK });
    let end = |line: &super::data::Line| line.points.last().map_or(area.bottom, |p| panel.at_clamped(p.x, p.y).1);
    let ends: Vec<f64> = chart.lines.iter().map(end).collect();
    for ((number, line), place) in chart.lines.iter().enumerate().zip(spread(&ends, 15.0, area.top, area.bottom)) {
        let color = RUNS[number % RUNS.len()];
        for point in line.points.iter().filter(|point| point.sd > 0.0) {
            let [low, high] = [-point.sd, point.sd].map(|off| panel.at_clamped(point.x, point.y + off));
            scene.line(vec![low, high], 4.0, color.tint(0.3));
        }
        let at: Vec<_> = line.points.iter().map(|point| panel.at_clamped(point.x, point.y)).collect();
        scene.line(at.clone(), 1.75, color);
        at.iter().for_each(|&at| scene.disc(at, 2.8, color));
        scene.text(line.name.as_str(), (area.right + 8.0, place + 4.5), Anchor::Left, Font::bold(TICK_SIZE, color));
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::{Line, LinePoint, Quantity};
    use super::*;

    #[test]
    fn the_series_and_the_promise_are_on_the_chart() {
        let line = |name: &str, y: f64| Line {
            name: name.into(),
            points: [16.0, 17.0, 32.0].map(|x| LinePoint { x, y, sd: 2.0 }).to_vec(),
            marked: None,
        };
        let panel = LinePanel {
            x: Quantity::new("Batch size", ""),
            y: Quantity::new("Efficiency (%)", ""),
            lines: vec![line("mlp, 2 processes", 61.0), line("mlp, 4 processes", 33.0)],
            from_zero: true,
        };
        let chart = Efficiency {
            title: "processes".into(),
            summary: "0 of 3 batch sizes reach 95 %.".into(),
            panels: vec![panel],
            promised: 95.0,
            promise: "95 %, as platforms for training promise".into(),
            caption: vec!["a processor".into()],
        };
        let scene = scene(&chart);
        let texts: Vec<&str> = scene.texts().map(|text| text.text.as_str()).collect();
        for wanted in ["mlp, 2 processes", "mlp, 4 processes", "95 %, as platforms", "Batch size", "a processor"] {
            assert!(texts.iter().any(|text| text.contains(wanted)), "{wanted}: {texts:?}");
        }
        assert!(scene.texts().all(|text| text.area().right <= scene.width && text.area().bottom <= scene.height));
    }
}
