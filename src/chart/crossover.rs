//! Step time against size for several series on logarithmic axes, with the sizes at which they cross.

use super::axis::{Axis, AxisUnit, Scale};
use super::data::{CrossingPanel, Crossings, Quantity};
use super::font;
use super::frame::{self, LegendEntry, MARGIN, Mark};
use super::geometry::Rect;
use super::palette::{INK, MUTED, RUNS};
use super::panel::{Panel, TICK_SIZE, TITLE_LIFT, widest_name};
use super::scene::{Anchor, Font, Scene};
use crate::analysis::crossover::Crossing;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 420.0;
/// Each crossover has a row of its own above the panel, or two.
const ROW: f64 = 18.0;
/// From the panel up to the first of them: a series may end, and have its name, at the upper edge of the panel.
const FIRST_ROW: f64 = 14.0;
/// Room for the title of a panel.
const TITLE: f64 = 22.0;

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
    frame::caption(&mut scene, bottom + 12.0, &chart.caption);
    scene
}

/// Draws one panel below `top`; gives where it ends.
fn draw_panel(scene: &mut Scene, chart: &CrossingPanel, x: &str, top: f64) -> f64 {
    // No fewer units than the names of the lines need.
    let height = HEIGHT.max(15.0 * (chart.lines.len() + 1) as f64);
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let mut panel = Panel {
        area: Rect { left: MARGIN + 56.0, right: WIDTH - widest_name(&chart.lines) - 36.0, top: 0.0, bottom: height },
        x: Axis::around(points().map(|point| point.x), Scale::Log, 0.03),
        y: Axis::around(points().map(|point| point.y), Scale::Log, 0.05),
    };
    let labels: Vec<Option<(f64, Anchor)>> =
        chart.marks.iter().map(|(place, said)| beside(&panel, place, said)).collect();
    let height_of = |label: Option<(f64, Anchor)>| if label.is_some() { ROW } else { 2.0 * ROW };
    let rows: f64 = labels.iter().map(|label| height_of(*label)).sum();
    let title = if chart.title.is_empty() { 0.0 } else { TITLE };
    panel.area.top = top + 56.0 + rows + title;
    panel.area.bottom = panel.area.top + height;
    let area = panel.area;
    if !chart.title.is_empty() {
        let at = (MARGIN, area.top - TITLE_LIFT - rows - TITLE);
        scene.text(chart.title.as_str(), at, Anchor::Left, Font::bold(TICK_SIZE + 1.0, INK));
    }
    panel.draw_y(scene, &Quantity::new("Step time", "s"), TITLE_LIFT + rows);
    let ticks = panel.x.ticks(9);
    panel.draw_x(scene, &ticks);
    panel.label_x(scene, &ticks, &AxisUnit::none(), x);
    let mut y = area.top - FIRST_ROW;
    for (mark, label) in chart.marks.iter().zip(labels) {
        draw_mark(scene, &panel, (mark, label), y);
        y -= height_of(label);
    }
    panel.draw_lines(scene, &chart.lines, &RUNS);
    area.bottom + 60.0
}

/// The ends of an interval on the figure.
fn ends(panel: &Panel, place: &Crossing) -> [f64; 2] {
    [place.low.unwrap_or(panel.x.low), place.high.unwrap_or(panel.x.high)].map(|size| panel.at_x(size))
}

/// Where the label of a crossover has room beside its interval: left of it, or right, above the names of the series.
fn beside(panel: &Panel, place: &Crossing, said: &str) -> Option<(f64, Anchor)> {
    let [low, high] = ends(panel, place);
    let room = label_width(said) + 10.0;
    if place.low.is_some() && low - room > panel.area.left {
        return Some((low - 8.0, Anchor::Right));
    }
    (high + room < WIDTH).then_some((high + 8.0, Anchor::Left))
}

/// A viewer of an SVG may lack the font: 5 % more for a wider one.
fn label_width(said: &str) -> f64 {
    font::width(said, TICK_SIZE, false) * 1.05
}

/// A dashed line across the panel, its interval as a whisker in the row at `y` (without an end where it is open), its label beside that, or in a
/// line of its own above it.
fn draw_mark(scene: &mut Scene, panel: &Panel, (mark, label): (&(Crossing, String), Option<(f64, Anchor)>), y: f64) {
    let (place, said) = mark;
    let x = panel.at_x(place.size);
    // From the panel on: in the rows above it the line would run through other labels.
    scene.dashes((x, panel.area.top), (x, panel.area.bottom), 4.0, 1.0, MUTED);
    let [low, high] = ends(panel, place);
    scene.line(vec![(low, y), (high, y)], 1.5, MUTED);
    for end in [place.low, place.high].into_iter().flatten().map(|size| panel.at_x(size)) {
        scene.line(vec![(end, y - 4.0), (end, y + 4.0)], 1.5, INK);
    }
    scene.disc((x, y), 3.2, INK);
    let (at, anchor) = match label {
        Some((at, anchor)) => ((at, y + 4.5), anchor),
        None => {
            let width = label_width(said);
            let left = (x - width / 2.0).min(WIDTH - MARGIN - width).max(MARGIN);
            ((left, y - ROW + 4.5), Anchor::Left)
        }
    };
    scene.text(said.as_str(), at, anchor, Font::regular(TICK_SIZE, INK));
}

#[cfg(test)]
mod tests {
    use super::super::data::{Line, LinePoint};
    use super::super::scene::{Primitive, Text};
    use super::*;

    fn line(name: &str, factor: f64) -> Line {
        let points = [25.0, 1e7].map(|x| LinePoint { x, y: factor * x, sd: 0.0 }).to_vec();
        Line { name: name.into(), points, marked: None }
    }

    fn mark(size: f64, low: Option<f64>, high: Option<f64>, said: &str) -> (Crossing, String) {
        (Crossing { size, low, high, crossings: 1 }, said.to_owned())
    }

    fn drawn(lines: Vec<Line>, marks: Vec<(Crossing, String)>) -> Scene {
        let panel = CrossingPanel { title: String::new(), lines, marks };
        let (title, summary, x) = (String::new(), String::new(), "Samples".into());
        scene(&Crossings { title, summary, x, panels: vec![panel], caption: Vec::new() })
    }

    #[test]
    fn a_label_leaves_its_crossover_and_its_interval_free_however_long_that_is() {
        let intervals = [(None, None), (None, Some(9e6)), (Some(26.0), None), (Some(30.0), Some(9e6))];
        for (size, (low, high)) in
            [40.0, 1000.0, 2e4, 1e6, 8e6].into_iter().flat_map(|size| intervals.map(|ends| (size, ends)))
        {
            let long = mark(size, low, high, "candle, threads 2 over candle, threads 1");
            let other = mark(2e5, None, None, "another over one more");
            let scene = drawn(vec![line("candle, threads 2", 1.0)], vec![long, other]);
            let labels: Vec<Rect> =
                scene.texts().filter(|text| text.text.contains(" over ")).map(|t| t.area()).collect();
            assert!(labels.len() == 2 && !labels[0].overlaps(&labels[1]), "{labels:?}");
            for shape in &scene.primitives {
                let area = match shape {
                    Primitive::Line { points, width, color } if *width == 1.5 && [INK, MUTED].contains(color) => {
                        let (a, b) = (points[0], points[points.len() - 1]);
                        Rect { left: a.0, right: b.0, top: a.1, bottom: b.1 }.grown(0.75)
                    }
                    Primitive::Disc { center, radius, color } if *color == INK => Rect::about(*center, *radius),
                    _ => continue,
                };
                assert!(labels.iter().all(|label| !label.overlaps(&area)), "{size}: {labels:?} over {area:?}");
            }
        }
    }

    #[test]
    fn the_names_of_many_series_are_apart_and_below_the_crossovers() {
        let lines: Vec<Line> = (0..30).map(|n| line(&format!("series {n}"), 1.0 + 0.01 * f64::from(n))).collect();
        let scene = drawn(lines, vec![mark(1e6, Some(9e5), Some(5e6), "series 1 over series 2")]);
        let is_name = |text: &&Text| text.text.starts_with("series ") && text.font.bold;
        let names: Vec<Rect> = scene.texts().filter(is_name).map(Text::area).collect();
        assert_eq!(names.len(), 30);
        let label = scene.texts().find(|text| text.text.contains(" over ")).expect("a label").area();
        for (at, name) in names.iter().enumerate() {
            let alone = names[..at].iter().all(|other| !other.overlaps(name));
            assert!(name.top > label.bottom && alone, "{name:?} {label:?}");
        }
    }
}
