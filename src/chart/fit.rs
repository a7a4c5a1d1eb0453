//! A study of fits on one page: the training set, the fitted surface and the error in perspective, and below them the losses.

use super::axis::{Axis, Scale};
use super::data::{FitChart, FitPoint, FitSurface, Quantity};
use super::frame::{self, LegendEntry, MARGIN, Mark};
use super::geometry::{Position, Rect};
use super::palette::{AXIS, BLUE, Color, MUTED, RUNS, TEXT, VERMILLION, WHITE};
use super::panel::{Panel, TICK_SIZE, widest_name};
use super::scene::{Anchor, Font, Scene};
use crate::units::human;

const WIDTH: f64 = 1140.0;
const SURFACE_HEIGHT: f64 = 264.0;
const LOSS_HEIGHT: f64 = 260.0;
/// The view: turned about the vertical axis, and from above.
const TURN: f64 = -0.65;
const TILT: f64 = 0.55;
/// The height of the box over the length of its half side.
const ELEVATION: f64 = 1.35;
/// The most patches along a side; rows and columns of a larger surface are left out.
const MOST_PATCHES: usize = 40;
/// The anchors of viridis, which stays in order without colours (Smith and van der Walt, matplotlib 2015).
const HEIGHTS: [[f64; 3]; 5] =
    [[68.0, 1.0, 84.0], [59.0, 82.0, 139.0], [33.0, 145.0, 140.0], [94.0, 201.0, 98.0], [253.0, 231.0, 37.0]];

pub fn scene(chart: &FitChart) -> Scene {
    let mut scene = Scene::new(WIDTH, 0.0, &chart.title);
    let keys: Vec<LegendEntry> =
        vec![(Mark::Line(MUTED), "loss curves: every fit of a seed begins with the same parameters".to_owned())];
    let mut top = frame::header(&mut scene, &chart.title, &chart.summary, &keys) + 30.0;
    if !chart.surfaces.is_empty() {
        let width = (WIDTH - 2.0 * MARGIN) / chart.surfaces.len() as f64;
        for (number, surface) in chart.surfaces.iter().enumerate() {
            let left = MARGIN + number as f64 * width;
            draw_surface(&mut scene, surface, Rect { left, right: left + width, top, bottom: top + SURFACE_HEIGHT });
        }
        top += SURFACE_HEIGHT + 44.0;
    }
    let bottom = draw_losses(&mut scene, chart, top);
    frame::caption(&mut scene, bottom + 72.0, &chart.caption);
    scene
}

/// From the box's coordinates to the page: x and y in -1..1, z in 0..1.
#[derive(Clone, Copy)]
struct View {
    center: Position,
    scale: f64,
}

impl View {
    fn of(area: &Rect) -> Self {
        let scale = 0.5 * area.width() / (1.0f64.hypot(1.0) + 0.25);
        // The box's floor is tilted; its far corner is the top of the picture at z = 1.
        Self { center: (0.5 * (area.left + area.right), area.bottom - scale * 0.80), scale }
    }

    /// The depth grows towards the eye.
    fn depth(x: f64, y: f64) -> f64 {
        x * TURN.sin() + y * TURN.cos()
    }

    fn at(&self, x: f64, y: f64, z: f64) -> Position {
        let across = x * TURN.cos() - y * TURN.sin();
        let down = Self::depth(x, y) * TILT.sin() - z * ELEVATION * TILT.cos();
        (self.center.0 + self.scale * across, self.center.1 + self.scale * down)
    }
}

fn draw_surface(scene: &mut Scene, surface: &FitSurface, area: Rect) {
    let view = View::of(&area);
    scene.text(surface.title.as_str(), (area.left, area.top), Anchor::Left, Font::bold(TICK_SIZE, TEXT));
    let span = (surface.high - surface.low).max(f64::MIN_POSITIVE);
    let level = |value: f64| ((value - surface.low) / span).clamp(0.0, 1.0);
    let color =
        |value: f64| if surface.signed { signed(value, surface.low, surface.high) } else { height(level(value)) };
    draw_box(scene, &view, surface);
    let place = |point: &FitPoint| (point.x / surface.reach, point.y / surface.reach, level(point.z));
    if surface.dots {
        let dot = |point: &FitPoint| {
            let (x, y, z) = place(point);
            (View::depth(x, y), (view.at(x, y, z), color(point.z)))
        };
        let dots = surface.points.iter().map(dot).collect();
        from_far_to_near(dots).for_each(|(at, color)| scene.disc(at, 1.7, color));
        return;
    }
    for (corners, color) in patches(surface, &view, &place, &color) {
        let mut outline = corners.clone();
        outline.push(corners[0]);
        scene.polygon(corners, color);
        scene.line(outline, 0.4, WHITE.opacity(0.5));
    }
}

/// What has these depths, the farthest first.
fn from_far_to_near<T>(mut all: Vec<(f64, T)>) -> impl Iterator<Item = T> {
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.into_iter().map(|(_, one)| one)
}

/// The corners and the colour of each quadrilateral of the surface, from the farthest to the nearest.
fn patches(
    surface: &FitSurface,
    view: &View,
    place: &dyn Fn(&FitPoint) -> (f64, f64, f64),
    color: &dyn Fn(f64) -> Color,
) -> impl Iterator<Item = (Vec<Position>, Color)> {
    let side = surface.points.iter().map(|point| point.row.max(point.column) + 1).max().unwrap_or(0);
    let stride = side.saturating_sub(1).div_ceil(MOST_PATCHES).max(1);
    let mut grid: Vec<Option<&FitPoint>> = vec![None; side * side];
    surface.points.iter().for_each(|point| grid[point.row * side + point.column] = Some(point));
    // The last row and column are kept, so that the surface reaches its edge.
    let mut lines: Vec<usize> = (0..side).step_by(stride).collect();
    if lines.last().is_some_and(|last| last + 1 < side) {
        lines.push(side - 1);
    }
    let mut patches = Vec::new();
    for rows in lines.windows(2) {
        for columns in lines.windows(2) {
            let corners =
                [(0, 0), (0, 1), (1, 1), (1, 0)].map(|(row, column)| grid[rows[row] * side + columns[column]]);
            let [Some(a), Some(b), Some(c), Some(d)] = corners else { continue };
            let around = [a, b, c, d];
            let mean = |value: &dyn Fn(&FitPoint) -> f64| around.iter().map(|point| value(point)).sum::<f64>() / 4.0;
            let corners = around.iter().map(|point| {
                let (x, y, z) = place(point);
                view.at(x, y, z)
            });
            let depth = View::depth(mean(&|point| point.x), mean(&|point| point.y));
            patches.push((depth, (corners.collect(), color(mean(&|point| point.z)))));
        }
    }
    from_far_to_near(patches)
}

/// The floor, the vertical axis at its left corner, and the names of the axes.
fn draw_box(scene: &mut Scene, view: &View, surface: &FitSurface) {
    let corners = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0)];
    scene.line(corners.iter().map(|&(x, y)| view.at(x, y, 0.0)).collect(), 0.8, AXIS);
    let small = Font::regular(TICK_SIZE - 1.0, TEXT);
    let leftmost = corners[..4].iter().min_by(|a, b| view.at(a.0, a.1, 0.0).0.total_cmp(&view.at(b.0, b.1, 0.0).0));
    let &(x, y) = leftmost.unwrap_or(&corners[0]);
    scene.line(vec![view.at(x, y, 0.0), view.at(x, y, 1.0)], 0.8, AXIS);
    for (z, value) in [(0.0, surface.low), (1.0, surface.high)] {
        let at = view.at(x, y, z);
        scene.text(human::digits(value), (at.0 - 5.0, at.1 + 4.0), Anchor::Right, small);
    }
    let reach = human::batch_size(surface.reach);
    for (name, middle) in [("x", (0.0, 1.0)), ("y", (-1.0, 0.0))] {
        let (px, py) = view.at(1.12 * middle.0, 1.12 * middle.1, 0.0);
        let anchor = if name == "x" { Anchor::Left } else { Anchor::Right };
        scene.text(format!("{name}: -{reach} to {reach}"), (px, py + 8.0), anchor, small);
    }
}

fn height(level: f64) -> Color {
    let place = level * (HEIGHTS.len() - 1) as f64;
    let below = (place as usize).min(HEIGHTS.len() - 2);
    let share = place - below as f64;
    let mix = |channel: usize| HEIGHTS[below][channel] * (1.0 - share) + HEIGHTS[below + 1][channel] * share;
    Color { rgb: (mix(0).round() as u8, mix(1).round() as u8, mix(2).round() as u8), opacity: 1.0 }
}

/// White at 0, blue below, vermillion above.
fn signed(value: f64, low: f64, high: f64) -> Color {
    let reach = low.abs().max(high.abs()).max(f64::MIN_POSITIVE);
    let share = 0.12 + 0.88 * (value.abs() / reach).min(1.0);
    if value < 0.0 { BLUE.tint(share) } else { VERMILLION.tint(share) }
}

/// Losses on logarithmic axes; gives where the panel ends.
fn draw_losses(scene: &mut Scene, chart: &FitChart, top: f64) -> f64 {
    let area =
        Rect { left: MARGIN + 62.0, right: WIDTH - widest_name(&chart.losses) - 36.0, top, bottom: top + LOSS_HEIGHT };
    let points = || chart.losses.iter().flat_map(|line| &line.points);
    let panel = Panel {
        area,
        x: Axis::around(points().map(|point| point.x), Scale::Log, 0.02),
        y: Axis::around(points().map(|point| point.y), Scale::Log, 0.06),
    };
    panel.draw_axes(scene, &Quantity::new("Mean squared error", ""), &panel.x.ticks(9), "Updates");
    for ((line, &color), place) in
        chart.losses.iter().zip(RUNS.iter().cycle()).zip(panel.places_of_names(&chart.losses))
    {
        scene.line(line.points.iter().map(|point| panel.at_clamped(point.x, point.y)).collect(), 1.5, color);
        scene.text(line.name.as_str(), place, Anchor::Left, Font::bold(TICK_SIZE, color));
    }
    area.bottom
}

#[cfg(test)]
mod tests {
    use super::super::scene::Primitive;
    use super::*;

    fn surface(side: usize, dots: bool) -> FitSurface {
        let point = |n: usize| {
            let (row, column) = (n / side, n % side);
            let along = |place: usize| 6.0 * place as f64 / (side - 1) as f64 - 3.0;
            FitPoint { row, column, x: along(column), y: along(row), z: along(row) + 3.0 }
        };
        let points = (0..side * side).map(point).collect();
        FitSurface { title: "Fit".into(), points, reach: 3.0, low: 0.0, high: 6.0, signed: false, dots }
    }

    fn drawn(surface: &FitSurface) -> Scene {
        let mut scene = Scene::new(400.0, 300.0, "");
        draw_surface(&mut scene, surface, Rect { left: 0.0, right: 380.0, top: 0.0, bottom: 300.0 });
        scene
    }

    #[test]
    fn patches_are_painted_from_the_far_corner_to_the_near_one_and_stay_inside() {
        let scene = drawn(&surface(5, false));
        let polygons: Vec<&Vec<Position>> = scene
            .primitives
            .iter()
            .filter_map(|primitive| match primitive {
                Primitive::Polygon { points, .. } => Some(points),
                _ => None,
            })
            .collect();
        assert_eq!(polygons.len(), 16);
        let inside = |&(x, y): &Position| (0.0..=380.0).contains(&x) && (-10.0..=300.0).contains(&y);
        assert!(polygons.iter().all(|points| points.iter().all(inside)));
        // The first patch has the corner x = 3, y = -3: seen from the turn it is the farthest one.
        let view = View::of(&Rect { left: 0.0, right: 380.0, top: 0.0, bottom: 300.0 });
        let farthest = [(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)]
            .into_iter()
            .min_by(|a, b| View::depth(a.0, a.1).total_cmp(&View::depth(b.0, b.1)))
            .expect("a corner");
        let corner = view.at(farthest.0, farthest.1, if farthest.1 < 0.0 { 0.0 } else { 1.0 });
        assert!(polygons[0].contains(&corner), "{corner:?} {:?}", polygons[0]);
    }

    #[test]
    fn a_large_grid_is_thinned_and_keeps_its_edge() {
        let polygons = |surface: &FitSurface| {
            drawn(surface).primitives.iter().filter(|p| matches!(p, Primitive::Polygon { .. })).count()
        };
        let side = polygons(&surface(200, false)).isqrt();
        assert!((MOST_PATCHES - 8..=MOST_PATCHES + 1).contains(&side), "{side}");
        assert_eq!(polygons(&surface(200, true)), 0);
    }

    #[test]
    fn the_colours_of_heights_keep_their_order_without_colour() {
        let luminance = |level: f64| {
            let (red, green, blue) = height(level).rgb;
            0.2126 * f64::from(red) + 0.7152 * f64::from(green) + 0.0722 * f64::from(blue)
        };
        let values: Vec<f64> = (0..=20).map(|step| luminance(f64::from(step) / 20.0)).collect();
        assert!(values.windows(2).all(|pair| pair[1] > pair[0]), "{values:?}");
    }
}
