//! Panels of lines one below the other, with levels that they are held against and places that are marked: the efficiency of several processes,
//! the copies of batches.

use super::axis::{Axis, Scale, ascending, scale_of};
use super::data::{Stacked, StackedPanel};
use super::frame::{self, LegendEntry, MARGIN, Mark};
use super::geometry::Rect;
use super::palette::{INK, MUTED, RUNS, VERMILLION};
use super::panel::{Panel, ROW_GAP, widest_name};
use super::scene::Scene;

const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 300.0;

pub fn scene(chart: &Stacked) -> Scene {
    let mut scene = Scene::new(WIDTH, 0.0, &chart.title);
    let mut keys: Vec<LegendEntry> = vec![(Mark::Interval(MUTED), chart.point.clone())];
    keys.extend(chart.panels.iter().filter_map(|panel| Some((Mark::Dashes(INK), panel.level.as_ref()?.name.clone()))));
    if chart.panels.iter().any(|panel| !panel.marks.is_empty()) {
        keys.push((Mark::Dashes(VERMILLION), chart.mark.clone()));
    }
    keys.dedup();
    let mut top = frame::header(&mut scene, &chart.title, &chart.summary, &keys) + 44.0;
    for panel in &chart.panels {
        let right = WIDTH - widest_name(&panel.lines.lines) - 36.0;
        let area = Rect { left: MARGIN + 56.0, right, top, bottom: top + HEIGHT };
        draw(&mut scene, panel, area);
        top += HEIGHT + ROW_GAP;
    }
    frame::caption(&mut scene, top - 18.0, &chart.caption);
    scene
}

fn draw(scene: &mut Scene, chart: &StackedPanel, area: Rect) {
    let StackedPanel { lines: chart, level, marks } = chart;
    let points = || chart.lines.iter().flat_map(|line| &line.points);
    let xs = ascending(points().map(|point| point.x));
    let highs = points().map(|point| point.y + point.sd).chain(level.iter().map(|level| level.y));
    let y = match chart.from_zero {
        true => Axis { low: 0.0, ..Axis::around(highs.chain([0.0]), Scale::Linear, 0.08) },
        false => Axis::around(points().map(|point| point.y), Scale::Log, 0.06),
    };
    let panel = Panel { area, x: Axis::around(xs.iter().copied(), scale_of(&xs), 0.04), y };
    let ticks = if xs.len() > 12 { panel.x.ticks(10) } else { xs };
    panel.draw_axes(scene, &chart.y, &ticks, &chart.x.name);
    if let Some(level) = level {
        let y = panel.at_y(level.y);
        scene.dashes((area.left, y), (area.right, y), 5.0, 1.0, INK);
    }
    for at in marks.iter().map(|&mark| panel.at_x(mark)) {
        scene.dashes((at, area.top), (at, area.bottom), 2.5, 1.0, VERMILLION);
    }
    panel.draw_lines(scene, &chart.lines, &RUNS);
}
