//! The honesty plot: every executed step, in the order in which it ran, against the expected time of its batch size; below
//! it the state of the hardware. Drift, throttling and warm-up are visible here, so that they are not mistaken for jumps.

use super::axis::{Axis, AxisUnit, Scale};
use super::data::{Covariate, Quantity, StepRecord, Timeline};
use super::font;
use super::frame::{self, LegendEntry, MARGIN, Mark, beyond};
use super::geometry::{Position, Rect};
use super::palette::{BLUE, GREEN, INK, MUTED, PURPLE, STRIPE, TEXT, VERMILLION};
use super::panel::{Panel, TICK_SIZE, TITLE_LIFT};
use super::scene::{Anchor, Font, Scene};
use crate::detect::FactorPoint;
use crate::stats::quantile::median;
use crate::units::human;

const WIDTH: f64 = 1000.0;
const LEFT: f64 = MARGIN + 44.0;
/// The height of the strip with the numbers of the blocks.
const BLOCKS: f64 = 18.0;
/// `scipy.stats.norm.ppf(0.975)`.
const NORMAL_95: f64 = 1.959964;
/// The running median is computed at this many places at most.
const PLACES: usize = 400;

pub fn scene(chart: &Timeline) -> Scene {
    let mut scene = Scene::new(WIDTH, 0.0, &chart.title);
    let readable: Vec<&Covariate> = chart.covariates.iter().filter(|c| c.values.iter().any(Option::is_some)).collect();
    let x = Axis { scale: Scale::Linear, low: 0.0, high: chart.steps.len().max(1) as f64 };
    let y = residual_axis(&chart.steps);
    let off = chart.steps.iter().filter(|s| s.residual.is_finite() && !y.holds(percent(s))).count();
    let summary = "Every executed step in the order in which it ran, against the median of its batch size.";
    let mut top = frame::header(&mut scene, &chart.title, summary, &keys(chart, off)) + 40.0;
    let place = |top: f64, height: f64| Rect { left: LEFT, right: WIDTH - MARGIN - 6.0, top, bottom: top + height };

    let residuals = Panel { area: place(top + BLOCKS, 300.0), x, y };
    number_blocks(&mut scene, &residuals, &chart.steps);
    stripes(&mut scene, &residuals, &chart.steps);
    residuals.draw_y(&mut scene, &Quantity::new("Residual", "%"), BLOCKS + TITLE_LIFT);
    draw_steps(&mut scene, &residuals, &chart.steps);
    if chart.factors.is_empty() {
        let median = running_median(&chart.steps);
        scene.line(median.into_iter().map(|(x, y)| residuals.at_clamped(x, y)).collect(), 1.75, INK);
    }
    chart.factors.iter().for_each(|factor| draw_factor(&mut scene, &residuals, factor));
    top += BLOCKS + 300.0;
    let mut last = residuals;
    let ticks = x.ticks(9);
    for (covariate, color) in readable.iter().zip([GREEN, PURPLE, BLUE, MUTED].into_iter().cycle()) {
        last.draw_x(&mut scene, &ticks);
        let values = covariate.values.iter().flatten().copied();
        last = Panel { area: place(top + 40.0, 92.0), x, y: Axis::around(values, Scale::Linear, 0.12) };
        stripes(&mut scene, &last, &chart.steps);
        last.draw_y(&mut scene, &covariate.quantity, TITLE_LIFT);
        draw_covariate(&mut scene, &last, &covariate.values, color);
        top = last.area.bottom;
    }
    last.draw_x(&mut scene, &ticks);
    last.label_x(&mut scene, &ticks, &AxisUnit::none(), "Step, in the order of the run");
    frame::caption(&mut scene, last.area.bottom + 74.0, &chart.caption);
    scene
}

fn percent(step: &StepRecord) -> f64 {
    step.residual * 100.0
}

fn counts(step: &StepRecord) -> bool {
    step.residual.is_finite() && !step.warmup && !step.outlier
}

fn keys(chart: &Timeline, off: usize) -> Vec<LegendEntry> {
    let number = |of: fn(&StepRecord) -> bool| chart.steps.iter().filter(|s| of(s)).count() as u64;
    let (warm, outliers) = (number(|s| s.warmup), number(|s| s.outlier && !s.warmup));
    let line = if chart.factors.is_empty() { "running median" } else { "common to all batch sizes, 95 % band" };
    let mut keys = vec![(Mark::Dot(BLUE.tint(0.55)), "step".to_string()), (Mark::Line(INK), line.to_string())];
    if warm > 0 {
        keys.push((Mark::Dot(MUTED.tint(0.5)), format!("warm-up ({})", human::count(warm))));
    }
    if outliers > 0 {
        keys.push((Mark::Ring(VERMILLION), format!("outlier ({})", human::count(outliers))));
    }
    if off > 0 {
        let furthest = chart.steps.iter().map(|s| s.residual).filter(|r| r.is_finite());
        let furthest = furthest.fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
        let text =
            format!("beyond the axis ({}, furthest {})", human::count(off as u64), human::signed_percent(furthest));
        keys.push((Mark::Beyond(VERMILLION), text));
    }
    keys
}

/// Wide enough for all but the worst 0.5 % of the steps that count, on either side.
fn residual_axis(steps: &[StepRecord]) -> Axis {
    let mut sizes: Vec<f64> = steps.iter().filter(|s| counts(s)).map(|s| percent(s).abs()).collect();
    sizes.sort_by(f64::total_cmp);
    let reach = sizes.get(sizes.len().saturating_sub(1) * 995 / 1000).copied().unwrap_or(1.0).max(0.05) * 1.5;
    Axis { scale: Scale::Linear, low: -reach, high: reach }
}

/// The stays at one block: the index of the first step, and the steps.
fn blocks(steps: &[StepRecord]) -> impl Iterator<Item = (usize, &[StepRecord])> {
    let mut start = 0;
    steps.chunk_by(|a, b| a.block == b.block).map(move |run| {
        start += run.len();
        (start - run.len(), run)
    })
}

/// Every other block in grey.
fn stripes(scene: &mut Scene, panel: &Panel, steps: &[StepRecord]) {
    for (start, run) in blocks(steps).skip(1).step_by(2) {
        let (left, right) = (panel.at_x(start as f64), panel.at_x((start + run.len()) as f64));
        scene.rect(Rect { left, right, ..panel.area }, STRIPE);
    }
}

/// The numbers of the blocks in a strip above the panel, except those for which there is no room.
fn number_blocks(scene: &mut Scene, panel: &Panel, steps: &[StepRecord]) {
    let mut free = panel.area.left;
    for (start, run) in blocks(steps) {
        let Some(block) = run[0].block else { continue };
        let middle = panel.at_x(start as f64 + run.len() as f64 / 2.0);
        let text = if free == panel.area.left { format!("block {block}") } else { block.to_string() };
        let half = font::width(&text, TICK_SIZE - 1.5, false) / 2.0;
        let at = (middle.max(free + half), panel.area.top - 5.0);
        if at.0 - middle < half {
            free = at.0 + half + 6.0;
            scene.text(text, at, Anchor::Center, Font::regular(TICK_SIZE - 1.5, MUTED));
        }
    }
}

fn draw_steps(scene: &mut Scene, panel: &Panel, steps: &[StepRecord]) {
    let zero = panel.at_y(0.0);
    scene.line(vec![(panel.area.left, zero), (panel.area.right, zero)], 1.0, MUTED.tint(0.7));
    let radius = (900.0 / steps.len().max(1) as f64).clamp(1.25, 2.5);
    // Warm-up is drawn first, then the steps that count, then outliers, so that warm-up never hides a step that counts.
    let layers: [fn(&StepRecord) -> bool; 3] = [|s| s.warmup, counts, |s| s.outlier && !s.warmup];
    for (layer, belongs) in layers.iter().enumerate() {
        let mut last: Option<Position> = None;
        for (i, step) in steps.iter().enumerate().filter(|(_, s)| s.residual.is_finite() && belongs(s)) {
            let inside = panel.y.holds(percent(step));
            let (x, y) = panel.at_clamped(i as f64 + 0.5, percent(step));
            let at = ((x * 10.0).round() / 10.0, (y * 10.0).round() / 10.0);
            // One dot exactly on another adds nothing but bytes.
            if last.replace(at) == Some(at) {
                continue;
            }
            let color = [MUTED.tint(0.5), BLUE.tint(0.55), VERMILLION][layer];
            match (inside, layer) {
                (false, _) if step.residual > 0.0 => beyond(scene, (at.0, at.1 + 4.0), color),
                (false, _) => {
                    scene.polygon(vec![(at.0 - 3.2, at.1 - 7.0), (at.0 + 3.2, at.1 - 7.0), (at.0, at.1 - 1.0)], color)
                }
                (true, 2) => scene.ring(at, radius + 1.0, 1.1, color),
                (true, _) => scene.disc(at, radius, color),
            }
        }
    }
}

/// The factor as a line, in its 95 % band. Without one the running median is drawn in its place.
fn draw_factor(scene: &mut Scene, panel: &Panel, factor: &[FactorPoint]) {
    let at = |deviations: f64| {
        let value = move |f: &FactorPoint| 100.0 * (f.relative + deviations * f.sd * (1.0 + f.relative));
        factor.iter().map(move |f| panel.at_clamped(f.order + 0.5, value(f)))
    };
    let band: Vec<Position> = at(-NORMAL_95).chain(at(NORMAL_95).rev()).collect();
    scene.polygon(band, INK.opacity(0.18));
    scene.line(at(0.0).collect(), 1.5, INK);
}

/// The median, in %, of the steps that count in a window of a twentieth of the run (21 to 401 steps).
fn running_median(steps: &[StepRecord]) -> Vec<(f64, f64)> {
    let counted: Vec<(usize, f64)> =
        steps.iter().enumerate().filter(|(_, s)| counts(s)).map(|(i, s)| (i, percent(s))).collect();
    let half = (counted.len() / 20).clamp(21, 401) / 2;
    let places = PLACES.min(counted.len());
    let at = |place: usize| {
        let i = place * (counted.len() - 1) / (places - 1).max(1);
        let window = &counted[i.saturating_sub(half)..(i + half + 1).min(counted.len())];
        let mut values: Vec<f64> = window.iter().map(|(_, v)| *v).collect();
        (counted[i].0 as f64 + 0.5, median(&mut values))
    };
    (0..places).map(at).collect()
}

/// A line, broken where nothing could be read.
fn draw_covariate(scene: &mut Scene, panel: &Panel, values: &[Option<f64>], color: super::palette::Color) {
    let mut piece: Vec<Position> = Vec::new();
    for (i, value) in values.iter().enumerate() {
        match value.filter(|v| v.is_finite()) {
            Some(v) => {
                piece.push(panel.at(i as f64, v));
                piece.push(panel.at(i as f64 + 1.0, v));
            }
            None => scene.line(straightened(std::mem::take(&mut piece)), 1.4, color),
        }
    }
    scene.line(straightened(piece), 1.4, color);
    if values.iter().any(Option::is_none) {
        let at = (panel.area.right, panel.area.top - 10.0);
        scene.text("gaps: not readable", at, Anchor::Right, Font::regular(TICK_SIZE - 1.0, TEXT));
    }
}

/// The same line without the points inside its level pieces.
fn straightened(points: Vec<Position>) -> Vec<Position> {
    let mut kept: Vec<Position> = Vec::with_capacity(points.len());
    for point in points {
        match kept[..] {
            [.., a, b] if a.1 == b.1 && b.1 == point.1 => *kept.last_mut().unwrap_or(&mut (0.0, 0.0)) = point,
            _ => kept.push(point),
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(residual: f64) -> StepRecord {
        StepRecord { block: None, residual, warmup: false, outlier: false }
    }

    #[test]
    fn the_running_median_ignores_warm_up_and_outliers() {
        let mut steps = vec![step(0.01); 30];
        steps[0] = StepRecord { warmup: true, ..step(5.0) };
        steps[15] = StepRecord { outlier: true, ..step(9.0) };
        let line = running_median(&steps);
        assert_eq!(line.len(), 28);
        assert!(line.iter().all(|(_, y)| (y - 1.0).abs() < 1e-12), "{line:?}");
        assert_eq!(running_median(&[]), []);
        assert_eq!(running_median(&[step(0.02)]), [(0.5, 2.0)]);
    }

    #[test]
    fn one_wild_step_does_not_set_the_axis() {
        let mut steps: Vec<StepRecord> = (0..1000).map(|i| step(0.01 * f64::from(i % 2))).collect();
        steps[7].residual = 40.0;
        let axis = residual_axis(&steps);
        assert!((axis.high - 1.5).abs() < 1e-9 && axis.low == -axis.high, "{axis:?}");
    }

    #[test]
    fn level_pieces_keep_their_ends() {
        let line = vec![(0.0, 1.0), (1.0, 1.0), (2.0, 1.0), (3.0, 2.0)];
        assert_eq!(straightened(line), [(0.0, 1.0), (2.0, 1.0), (3.0, 2.0)]);
    }
}
