//! Step time against size for several series on logarithmic axes, with the sizes at which they cross.

use super::axis::{Axis, Scale};
use super::data::{CrossingMark, CrossingPanel, Crossings, Quantity};
use super::font;
use super::frame::{self, LegendEntry, MARGIN, Mark};
use super::geometry::Rect;
use super::palette::{INK, MUTED, RUNS, WHITE};
use super::panel::{Panel, TICK_SIZE, TITLE_LIFT};
use super::scene::{Anchor, Font, Scene, Stroke};

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 420.0;
/// Each crossover has a row of its own above the panel.
const ROW: f64 = 18.0;
/// Room for the title of a panel.
const TITLE: f64 = 22.0;

/// The figure.
pub fn scene(chart: &Crossings) -> Scene {
    let mut scene = Scene::new(WIDTH, 0.0, &chart.title);
    let keys: Vec<LegendEntry> = vec![
        (Mark::Interval(MUTED), "median of the visits".to_owned()),
        (Mark::Dashes(INK), "crossover, with its 95 % interval".to_owned()),
    ];
    let mut bottom = frame::header(&mut scene, &chart.title, &chart.summary, &keys);
    for panel in &chart.panels {
        bottom = draw_panel(&mut scene, panel, &chart.x, bottom);
    }
    frame::caption_texts(&mut scene, bottom + 12.0, &chart.caption);
    scene
}

/// Draws one panel below `top`; gives where it ends.
fn draw_panel(scene: &mut Scene, chart: &CrossingPanel, x: &str, top: f64) -> f64 {
    let rows = ROW * chart.marks.len() as f64;
    let top = top + 56.0 + rows + if chart.title.is_empty() { 0.0 } else { TITLE };
    let names = chart.lines.iter().map(|line| font::width(&line.name, TICK_SIZE, true)).fold(0.0, f64::max);
    let area = Rect { left: MARGIN + 56.0, right: WIDTH - names - 36.0, top, bottom: top + HEIGHT };
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let panel = Panel {
        area,
        x: Axis::around(points().map(|point| point.x), Scale::Log, 0.03),
        y: Axis::around(points().map(|point| point.y), Scale::Log, 0.05),
    };
    if !chart.title.is_empty() {
        let at = (MARGIN, top - TITLE_LIFT - rows - TITLE);
        scene.text(chart.title.as_str(), at, Anchor::Left, Font::bold(TICK_SIZE + 1.0, INK));
    }
    panel.draw_y(scene, &Quantity::new("Step time", "s"), TITLE_LIFT + rows);
    let ticks = panel.x.ticks(9);
    panel.draw_x(scene, &ticks);
    panel.label_x(scene, &ticks, x);
    for (number, mark) in chart.marks.iter().enumerate() {
        draw_mark(scene, &panel, mark, area.top - 10.0 - ROW * number as f64);
    }
    panel.draw_lines(scene, &chart.lines, &RUNS);
    area.bottom + 60.0
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
        _ if high + room < WIDTH => scene.text(mark.label.as_str(), (high + 8.0, y + 4.5), Anchor::Left, font),
        // On the whisker, on the side of the crossover that has more of it.
        _ => {
            let left = if x - low > high - x { low + 12.0 } else { (high - room).max(x + 10.0).min(WIDTH - room) };
            scene.rect(Rect { left: left - 4.0, right: left + room - 6.0, top: y - 8.0, bottom: y + 8.0 }, WHITE);
            scene.text(mark.label.as_str(), (left, y + 4.5), Anchor::Left, font);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::{CrossingMark, Line, LinePoint};
    use super::*;

    #[test]
    fn a_label_leaves_its_crossover_free_however_long_the_interval_is() {
        let panel = |size: f64| CrossingPanel {
            title: String::new(),
            lines: vec![Line {
                name: "candle, threads 2".into(),
                points: [25.0, 1e7].map(|x| LinePoint { x, y: x, sd: 0.0 }).to_vec(),
                marked: None,
            }],
            marks: vec![CrossingMark {
                size,
                low: None,
                high: None,
                label: "candle, threads 2 over candle, threads 1".into(),
            }],
        };
        for size in [40.0, 1000.0, 2e4, 1e6, 8e6] {
            let (title, summary, x) = (String::new(), String::new(), "Samples".into());
            let scene = scene(&Crossings { title, summary, x, panels: vec![panel(size)], caption: Vec::new() });
            let label = scene.texts().find(|text| text.text.contains("over candle")).expect("a label").area();
            let axis = Axis::around([25.0, 1e7], Scale::Log, 0.03);
            let names = font::width("candle, threads 2", TICK_SIZE, true);
            let (left, right) = (MARGIN + 56.0, WIDTH - names - 36.0);
            let at = left + axis.position(size) * (right - left);
            assert!(at < label.left || label.right < at, "{size}: the crossover at {at} is under {label:?}");
        }
    }

    #[test]
    fn the_series_and_the_crossover_are_on_the_chart() {
        let line = |name: &str, fixed: f64, each: f64| Line {
            name: name.into(),
            points: [25.0, 1000.0, 40_000.0].map(|x| LinePoint { x, y: fixed + each * x, sd: 0.0 }).to_vec(),
            marked: None,
        };
        let panel = |title: &str, each: f64| CrossingPanel {
            title: title.into(),
            lines: vec![line("cpu", 1e-3, each), line("torch", 5e-3, 0.5 * each)],
            marks: vec![CrossingMark { size: 8e-3 / each, low: Some(7.8e-3 / each), high: None, label: title.into() }],
        };
        let chart = Crossings {
            title: "crossover".into(),
            summary: "torch is faster than cpu from 8,000 on.".into(),
            x: "Samples".into(),
            panels: vec![panel("resident", 1e-6), panel("pageable", 2e-6)],
            caption: vec!["a processor".into()],
        };
        let scene = scene(&chart);
        let texts: Vec<&str> = scene.texts().map(|text| text.text.as_str()).collect();
        for wanted in ["cpu", "torch", "resident", "pageable", "8,000", "Samples", "a processor"] {
            assert!(texts.iter().any(|text| text.contains(wanted)), "{wanted}: {texts:?}");
        }
        assert!(scene.texts().all(|text| text.area().right <= scene.width && text.area().bottom <= scene.height));
    }
}
