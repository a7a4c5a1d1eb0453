//! Predicted times: against the measured ones, and what an example costs at each batch size.

use super::axis::{Axis, AxisUnit, Scale};
use super::data::{PredictedCurve, PredictedPoint, Prediction, Quantity};
use super::frame::{self, LegendEntry, MARGIN, Mark};
use super::geometry::Rect;
use super::palette::{BLUE, Color, GREEN, INK, MUTED, PURPLE, VERMILLION};
use super::panel::{Panel, ROW_GAP, TITLE_LIFT};
use super::scene::Scene;

const WIDTH: f64 = 1100.0;
const CURVE_HEIGHT: f64 = 300.0;
const SQUARE: f64 = 460.0;
/// Values that span more than this factor have a logarithmic axis.
const WIDE: f64 = 4.0;
const COLORS: [Color; 4] = [BLUE, VERMILLION, GREEN, PURPLE];

pub fn scene(chart: &Prediction) -> Scene {
    let mut scene = Scene::new(WIDTH, 0.0, &chart.title);
    let interval = (Mark::Interval(BLUE), "predicted, with its interval of nominally 90 %".to_owned());
    let mut keys: Vec<LegendEntry> = vec![interval];
    if !chart.curves.is_empty() {
        keys.push((Mark::Ring(INK), "measured batch size".to_owned()));
        keys.push((Mark::Dashes(MUTED), "the time jumps after this batch size".to_owned()));
    }
    let mut top = frame::header(&mut scene, &chart.title, &chart.summary, &keys) + 44.0;
    for (number, curve) in chart.curves.iter().enumerate() {
        let area = Rect { left: MARGIN + 62.0, right: WIDTH - MARGIN, top, bottom: top + CURVE_HEIGHT };
        draw_curve(&mut scene, curve, COLORS[number % COLORS.len()], area);
        top += CURVE_HEIGHT + ROW_GAP;
    }
    if !chart.against.is_empty() {
        let left = MARGIN + 62.0;
        let area = Rect { left, right: left + SQUARE, top, bottom: top + SQUARE };
        draw_against(&mut scene, &chart.against, area);
        top += SQUARE + ROW_GAP;
    }
    frame::caption(&mut scene, top - ROW_GAP + 60.0, &chart.caption);
    scene
}

fn draw_curve(scene: &mut Scene, curve: &PredictedCurve, color: Color, area: Rect) {
    let finite = |point: &&PredictedPoint| point.high.is_finite();
    let highs = curve.points.iter().filter(finite).flat_map(|point| [point.low, point.high]);
    let values: Vec<f64> = curve.points.iter().map(|point| point.value).chain(highs).collect();
    let (least, most) =
        values.iter().fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), y| (low.min(*y), high.max(*y)));
    // At a batch size of 1 an example may cost ten times as much as at 64, where the jumps are.
    let scale = if most > WIDE * least { Scale::Log } else { Scale::Linear };
    let y = Axis::around(values, scale, 0.08);
    let x = Axis::around(curve.points.iter().map(|point| point.x), Scale::Linear, 0.03);
    let panel = Panel { area, x, y };
    let quantity = Quantity { name: format!("Time for an example, {}", curve.name), unit: "s".to_owned() };
    panel.draw_axes(scene, &quantity, &panel.x.batch_ticks(14, None), "Batch size");
    let known: Vec<&PredictedPoint> = curve.points.iter().filter(finite).collect();
    let lower = known.iter().rev().map(|point| panel.at_clamped(point.x, point.low));
    let band: Vec<_> = known.iter().map(|point| panel.at_clamped(point.x, point.high)).chain(lower).collect();
    if known.len() > 1 {
        scene.polygon(band, color.tint(0.25));
    }
    for after in curve.points.iter().filter(|point| point.before_jump) {
        let at = panel.at_x(after.x + 0.5);
        scene.dashes((at, area.top), (at, area.bottom), 4.0, 1.0, MUTED);
    }
    scene.line(curve.points.iter().map(|point| panel.at_clamped(point.x, point.value)).collect(), 1.75, color);
    for point in &curve.points {
        let at = panel.at_clamped(point.x, point.value);
        if point.measured { scene.ring(at, 3.0, 1.2, INK) } else { scene.disc(at, 2.8, color) }
    }
}

/// Both axes alike, in powers of ten, with the line on which a prediction is right.
fn draw_against(scene: &mut Scene, points: &[PredictedPoint], area: Rect) {
    let axis = Axis::around(points.iter().flat_map(|point| [point.x, point.value]), Scale::Log, 0.05);
    let panel = Panel { area, x: axis, y: axis };
    let named = |name: &str| Quantity { name: name.to_owned(), unit: "s".to_owned() };
    panel.draw_y(scene, &named("Predicted step time"), TITLE_LIFT);
    let ticks = panel.x.ticks(6);
    panel.draw_x(scene, &ticks);
    panel.label_x(scene, &ticks, &AxisUnit::of(axis.high, "s"), "Measured step time");
    for point in points.iter().filter(|point| point.high.is_finite()) {
        let ends = vec![panel.at_clamped(point.x, point.low), panel.at_clamped(point.x, point.high)];
        scene.line(ends, 2.0, BLUE.tint(0.25));
    }
    scene.line(vec![(area.left, area.bottom), (area.right, area.top)], 1.0, INK);
    points.iter().for_each(|point| scene.disc(panel.at_clamped(point.x, point.value), 2.2, BLUE));
}
