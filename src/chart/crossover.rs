//! Step time against size for several series on logarithmic axes, with the sizes at which they cross.

use super::axis::{Axis, Scale};
use super::data::{CrossingMark, Crossings, Quantity};
use super::font;
use super::frame::{self, Key, MARGIN, Mark};
use super::geometry::Rect;
use super::labels::spread;
use super::palette::{INK, MUTED, RUNS};
use super::panel::{Panel, TICK_SIZE, TITLE_LIFT};
use super::scene::{Anchor, Font, Scene, Stroke};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 420.0;
/// Each crossover has a row of its own above the panel.
const ROW: f64 = 18.0;

/// The figure.
pub fn scene(chart: &Crossings) -> Scene {
    let mut scene = Scene::new(WIDTH, 0.0, &chart.title);
    let keys: Vec<Key> = vec![
        (Mark::Interval(MUTED), "median of the visits".to_owned()),
        (Mark::Dashes(INK), "crossover, with its 95 % interval".to_owned()),
    ];
    let top = frame::header(&mut scene, &chart.title, &chart.summary, &keys) + 56.0 + ROW * chart.marks.len() as f64;
    let names = chart.lines.iter().map(|line| font::width(&line.name, TICK_SIZE, true)).fold(0.0, f64::max);
    let area = Rect { left: MARGIN + 56.0, right: WIDTH - names - 36.0, top, bottom: top + HEIGHT };
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let panel = Panel {
        area,
        x: Axis::around(points().map(|point| point.x), Scale::Log, 0.03),
        y: Axis::around(points().map(|point| point.y), Scale::Log, 0.05),
    };
    panel.draw_y(&mut scene, &Quantity::new("Step time", "s"), TITLE_LIFT + ROW * chart.marks.len() as f64);
    let ticks = panel.x.ticks(9);
    panel.draw_x(&mut scene, &ticks);
    panel.label_x(&mut scene, &ticks, &chart.x);
    for (number, mark) in chart.marks.iter().enumerate() {
        draw_mark(&mut scene, &panel, mark, area.top - 10.0 - ROW * number as f64);
    }
    let ends: Vec<f64> = chart
        .lines
        .iter()
        .filter_map(|line| line.points.last())
        .map(|point| panel.at_clamped(point.x, point.y).1)
        .collect();
    let places = spread(&ends, 15.0, area.top, area.bottom);
    for ((number, line), place) in chart.lines.iter().enumerate().zip(places) {
        let color = RUNS[number % RUNS.len()];
        let at: Vec<_> = line.points.iter().map(|point| panel.at_clamped(point.x, point.y)).collect();
        scene.line(at.clone(), 1.75, color);
        at.iter().for_each(|&at| scene.disc(at, 2.8, color));
        scene.text(line.name.as_str(), (area.right + 8.0, place + 4.5), Anchor::Left, Font::bold(TICK_SIZE, color));
    }
    frame::caption_texts(&mut scene, area.bottom + 72.0, &chart.caption);
    scene
}

/// A dashed line across the panel, its interval as a whisker in the row at `y` (without an end where it is open), its label beside
/// that.
fn draw_mark(scene: &mut Scene, panel: &Panel, mark: &CrossingMark, y: f64) {
    let at = |size: f64| panel.at_clamped(size, panel.y.high).0;
    let x = at(mark.size);
    // From the panel on: in the rows above it the line would run through other labels.
    scene.dashes((x, panel.area.top), (x, panel.area.bottom), 4.0, Stroke { width: 1.0, color: MUTED });
    let [low, high] = [mark.low.unwrap_or(panel.x.low), mark.high.unwrap_or(panel.x.high)].map(at);
    scene.line(vec![(low, y), (high, y)], 1.5, MUTED);
    for end in [mark.low, mark.high].into_iter().flatten().map(at) {
        scene.line(vec![(end, y - 4.0), (end, y + 4.0)], 1.5, INK);
    }
    scene.disc((x, y), 3.2, INK);
    let font = Font::regular(TICK_SIZE, INK);
    let room = font::width(&mark.label, TICK_SIZE, false) * 1.05 + 10.0;
    match mark.low {
        Some(_) if low - room > panel.area.left => {
            scene.text(mark.label.as_str(), (low - 8.0, y + 4.5), Anchor::Right, font);
        }
        // Behind the end; the names of the series begin further down.
        _ => {
            let at = (high + 8.0).min(WIDTH - 3.0 - font::width(&mark.label, TICK_SIZE, false));
            scene.text(mark.label.as_str(), (at, y + 4.5), Anchor::Left, font);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::{CrossingMark, Line, LinePoint};
    use super::*;

    #[test]
    fn the_series_and_the_crossover_are_on_the_chart() {
        let line = |name: &str, fixed: f64, each: f64| Line {
            name: name.into(),
            points: [25.0, 1000.0, 40_000.0].map(|x| LinePoint { x, y: fixed + each * x, sd: 0.0 }).to_vec(),
            marked: None,
        };
        let chart = Crossings {
            title: "crossover".into(),
            summary: "torch is faster than cpu from 8,000 on.".into(),
            x: "Samples".into(),
            lines: vec![line("cpu", 1e-3, 1e-6), line("torch", 5e-3, 5e-7)],
            marks: vec![CrossingMark { size: 8000.0, low: Some(7800.0), high: None, label: "8,000".into() }],
            caption: vec!["a processor".into()],
        };
        let scene = scene(&chart);
        let texts: Vec<&str> = scene.texts().map(|text| text.text.as_str()).collect();
        for wanted in ["cpu", "torch", "8,000", "Samples", "a processor"] {
            assert!(texts.iter().any(|text| text.contains(wanted)), "{wanted}: {texts:?}");
        }
        assert!(scene.texts().all(|text| text.area().right <= scene.width && text.area().bottom <= scene.height));
    }
}
