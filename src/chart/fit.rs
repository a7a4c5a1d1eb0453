//! The losses of a study of fits, on logarithmic axes.

use super::axis::{Axis, Scale};
use super::data::{Fits, Quantity};
use super::frame::{self, LegendEntry, MARGIN, Mark};
use super::geometry::Rect;
use super::palette::{MUTED, RUNS};
use super::panel::{Panel, TICK_SIZE, widest_name};
use super::scene::{Anchor, Font, Scene};

const WIDTH: f64 = 1140.0;
const HEIGHT: f64 = 260.0;

pub fn scene(chart: &Fits) -> Scene {
    let mut scene = Scene::new(WIDTH, 0.0, &chart.title);
    let keys: Vec<LegendEntry> =
        vec![(Mark::Line(MUTED), "loss curves: every fit of a seed begins with the same parameters".to_owned())];
    let top = frame::header(&mut scene, &chart.title, &chart.summary, &keys) + 30.0;
    let area =
        Rect { left: MARGIN + 62.0, right: WIDTH - widest_name(&chart.losses) - 36.0, top, bottom: top + HEIGHT };
    let points = || chart.losses.iter().flat_map(|line| &line.points);
    let panel = Panel {
        area,
        x: Axis::around(points().map(|point| point.x), Scale::Log, 0.02),
        y: Axis::around(points().map(|point| point.y), Scale::Log, 0.06),
    };
    panel.draw_axes(&mut scene, &Quantity::new("Mean squared error", ""), &panel.x.ticks(9), "Updates");
    for ((line, &color), place) in
        chart.losses.iter().zip(RUNS.iter().cycle()).zip(panel.places_of_names(&chart.losses))
    {
        scene.line(line.points.iter().map(|point| panel.at_clamped(point.x, point.y)).collect(), 1.5, color);
        scene.text(line.name.as_str(), place, Anchor::Left, Font::bold(TICK_SIZE, color));
    }
    frame::caption(&mut scene, area.bottom + 72.0, &chart.caption);
    scene
}
