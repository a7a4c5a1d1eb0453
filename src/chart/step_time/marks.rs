//! What is drawn of one curve in one panel: band, medians, line, jumps, kinks, rejected candidates.

use super::curve::{ColouredSeries, Gap};
use crate::chart::axis::{Axis, Scale};
use crate::chart::frame::{Mark, beyond, diamond, gap, whisker};
use crate::chart::geometry::{DataPoint, Rect};
use crate::chart::labels::{Ground, Wanted, place};
use crate::chart::palette::{Color, GREEN, MUTED, WHITE};
use crate::chart::panel::Panel;
use crate::chart::scene::{Anchor, Font, Scene, Text};
use crate::chart::{data::Quantity, font};
use crate::detect::Point;
use crate::units::human;

const LABEL_SIZE: f64 = 12.5;
const LINE_HEIGHT: f64 = 15.0;

/// From this many points on, the intervals are a band; fewer have a bar each.
const BAND: usize = 25;

/// The curves in the panel of the step times, and in that of the times per item.
pub fn both(scene: &mut Scene, step: &Panel, item: Option<&Panel>, curves: &[ColouredSeries]) {
    for one in curves {
        curve(scene, step, one, |_| 1.0);
        if let Some(item) = item {
            curve(scene, item, one, |x| 1.0 / x);
        }
    }
}

/// Medians, intervals and fitted line, each value multiplied by `of(x)`: 1 for the step time, 1 / x for the time per item.
fn curve(scene: &mut Scene, panel: &Panel, curve: &ColouredSeries, of: fn(f64) -> f64) {
    let points: Vec<&Point> = curve.points.iter().filter(|p| of(p.x).is_finite()).collect();
    let radius = (0.32 * panel.area.width() / points.len().max(1) as f64).clamp(1.25, 2.9);
    intervals(scene, panel, curve, of);
    for piece in curve.pieces() {
        let values = piece.iter().filter(|v| of(v.x).is_finite()).map(|v| DataPoint { x: v.x, y: v.y * of(v.x) });
        let values: Vec<DataPoint> = values.collect();
        for line in panel.clipped(&values) {
            scene.line(line, 1.4, curve.color.tint(0.65));
        }
    }
    for point in points {
        let value = point.center * of(point.x);
        let at = panel.at_clamped(point.x, value);
        match (panel.y.holds(value), point.off) {
            (false, _) => beyond(scene, (at.0, at.1 + 4.0), curve.color),
            (true, true) => scene.ring(at, radius + 0.6, 1.2, MUTED),
            (true, false) => scene.disc(at, radius, curve.color),
        }
    }
}

/// The intervals of the medians: a band that ends at each jump, for nothing was measured in between; or bars.
fn intervals(scene: &mut Scene, panel: &Panel, curve: &ColouredSeries, of: fn(f64) -> f64) {
    // A band that is cut off at the end of the axis would show another interval there.
    let usable = |p: &&Point| of(p.x).is_finite() && !p.off && panel.y.holds(p.center * of(p.x));
    let gaps = curve.gaps();
    let same_side = |a: &Point, b: &Point| !gaps.iter().any(|gap| a.x < gap.x && gap.x < b.x);
    for run in curve.points.chunk_by(same_side) {
        let points: Vec<&Point> = run.iter().filter(usable).collect();
        let low = points.iter().map(|p| panel.at_clamped(p.x, p.low * of(p.x)));
        let high = points.iter().map(|p| panel.at_clamped(p.x, p.high * of(p.x)));
        if curve.points.len() < BAND {
            let width = 2.5;
            low.zip(high).for_each(|(low, high)| scene.line(vec![low, high], width, curve.color.tint(0.4)));
        } else {
            scene.polygon(low.chain(high.rev()).collect(), curve.color.tint(0.6).opacity(0.4));
        }
    }
}

/// The colour behind sizes to avoid: light enough for the curve, dark enough in grey.
pub fn shade(color: Color) -> Color {
    color.tint(0.16)
}

/// The sizes to avoid, from halfway to the size before to halfway to the next one; neighbours make one stretch.
pub fn avoided(scene: &mut Scene, panel: &Panel, curve: &ColouredSeries) {
    let is_avoided = |x: f64| curve.series.avoid.contains(&x);
    let left = |at: usize| at.checked_sub(1).map_or(panel.x.low, |before| curve.behind(curve.points[before].x));
    let places: Vec<usize> = (0..curve.points.len()).filter(|at| is_avoided(curve.points[*at].x)).collect();
    for run in places.chunk_by(|a, b| a + 1 == *b) {
        let (first, last) = (run[0], run[run.len() - 1]);
        let end = if last + 1 < curve.points.len() { curve.behind(curve.points[last].x) } else { panel.x.high };
        let [left, right] = [left(first), end].map(|x| panel.at_x(x));
        scene.rect(Rect { left, right, ..panel.area }, shade(curve.jump_color));
    }
}

/// The thin line through the panel at each jump; drawn first, under everything.
pub fn guides(scene: &mut Scene, panel: &Panel, curve: &ColouredSeries, color: Color) {
    let gaps = curve.single_gaps();
    // Many lines would outweigh the data.
    let share = if gaps.len() > 6 { 0.2 } else { 0.4 };
    for gap in gaps {
        let x = panel.at_x(gap.x);
        scene.line(vec![(x, panel.area.top), (x, panel.area.bottom)], 0.9, color.tint(share));
    }
}

/// The jumps themselves, kinks and rejected candidates, on top of the curve.
pub fn findings(scene: &mut Scene, panel: &Panel, curve: &ColouredSeries) {
    for candidate in &curve.series.findings.rejected {
        let x = curve.behind(candidate.after);
        if let (true, Some(fit)) = (panel.x.holds(x), curve.fit_at(x)) {
            Mark::Dashes(MUTED).draw(scene, panel.at_clamped(x, fit));
        }
    }
    for kink in &curve.series.findings.kinks {
        if let (true, Some(fit)) = (panel.x.holds(kink.at), curve.fit_at(kink.at)) {
            diamond(scene, panel.at_clamped(kink.at, fit), curve.jump_color);
        }
    }
    let marked = if crowded(panel, curve) { curve.single_gaps() } else { curve.gaps() };
    for Gap { x, from, to, places, .. } in marked {
        let (upper, lower) = (panel.at_clamped(x, from).1, panel.at_clamped(x, to).1);
        if places.start < places.end {
            let ends = panel.at_x(places.start)..panel.at_x(places.end);
            whisker(scene, (panel.at_x(x), 0.5 * (upper + lower)), ends, curve.jump_color);
        }
        gap(scene, panel.at_x(x), upper, lower, curve.jump_color);
    }
}

/// Whether the marks of a period would hide the curve: the breaks of the line show its jumps.
fn crowded(panel: &Panel, curve: &ColouredSeries) -> bool {
    let period = curve.series.findings.period.as_ref().map(|period| period.value);
    period.is_some_and(|period| panel.at_x(panel.x.high) - panel.at_x(panel.x.high - period) < 14.0)
}

/// The teeth of a proven period along the lower edge.
pub fn periodic(scene: &mut Scene, panel: &Panel, curve: &ColouredSeries) {
    let Some(period) = curve.series.findings.period.as_ref().filter(|p| p.value > 0.0) else { return };
    let offset = period.explains.first().map_or(0.0, |first| first.rem_euclid(period.value));
    let number = |x: f64| (x - offset) / period.value;
    let (first, last) = (number(panel.x.low).ceil() as i64, number(panel.x.high).floor() as i64);
    if last - first > 200 {
        return;
    }
    for multiple in first.max(i64::from(offset == 0.0))..=last {
        let x = panel.at_x(curve.behind(offset + multiple as f64 * period.value));
        scene.line(vec![(x, panel.area.bottom - 9.0), (x, panel.area.bottom - 1.0)], 2.0, GREEN);
    }
}

/// The forms of a jump's label, the fullest first, each as its lines.
fn label_forms(gap: &Gap, y: &Quantity) -> Vec<Vec<String>> {
    let [first, at, last] = [gap.jump.after_low, gap.jump.after, gap.jump.after_high].map(human::batch_size);
    let after = if first == last { format!("after {at}") } else { format!("after {at} ({first} to {last})") };
    let size = font::typeset(&human::signed(gap.jump.size, &y.unit));
    let share = font::typeset(&format!("({})", human::signed_percent(gap.jump.relative)));
    vec![
        vec![format!("{after}: {size} {share}")],
        vec![after.clone(), format!("{size} {share}")],
        vec![after, size.clone(), share],
        vec![at.clone(), size],
        vec![at],
    ]
}

/// Labels the jumps of all `curves` of a panel; gives the number that found no place.
pub fn label_jumps(scene: &mut Scene, panel: &Panel, curves: &[ColouredSeries], y: &Quantity) -> usize {
    let jumps: Vec<(Gap, &ColouredSeries)> =
        curves.iter().flat_map(|c| c.single_gaps().into_iter().map(move |g| (g, c))).collect();
    let forms: Vec<Vec<Vec<String>>> = jumps.iter().map(|(gap, _)| label_forms(gap, y)).collect();
    let wanted: Vec<Wanted> = jumps.iter().zip(&forms).map(|((gap, _), forms)| want(panel, gap, forms)).collect();
    let guides = wanted.iter().map(|w| w.guide).collect();
    let ground = Ground { bounds: panel.area.grown(-2.0), obstacles: obstacles(panel, curves), guides };
    let mut homeless = 0;
    for (((_, curve), forms), placed) in jumps.iter().zip(&forms).zip(place(&wanted, &ground)) {
        let Some(placed) = placed else {
            homeless += 1;
            continue;
        };
        let (x, anchor) =
            if placed.on_left { (placed.area.right, Anchor::Right) } else { (placed.area.left, Anchor::Left) };
        for (i, line) in forms[placed.form].iter().enumerate() {
            let baseline = placed.area.top + LINE_HEIGHT * (i as f64 + 0.78);
            let font = Font::regular(LABEL_SIZE, curve.jump_color);
            let behind = Text { text: line.clone(), at: (x, baseline), anchor, font }.area().grown(1.5);
            scene.rect(behind, WHITE.opacity(0.85));
            scene.text(line.as_str(), (x, baseline), anchor, font);
        }
    }
    homeless
}

fn want(panel: &Panel, gap: &Gap, forms: &[Vec<String>]) -> Wanted {
    let (from, to) = (panel.at_clamped(gap.x, gap.from).1, panel.at_clamped(gap.x, gap.to).1);
    // A viewer of an SVG may lack the font: 6 % more for a wider one.
    let width =
        |lines: &Vec<String>| lines.iter().map(|l| 1.06 * font::width(l, LABEL_SIZE, false)).fold(0.0, f64::max);
    Wanted {
        guide: panel.at_x(gap.x),
        mark: (from + to) / 2.0,
        forms: forms.iter().map(|lines| (width(lines), LINE_HEIGHT * lines.len() as f64)).collect(),
        weight: gap.jump.relative.abs(),
    }
}

/// What labels must not cover: medians, lines, jumps, the marks of the period.
fn obstacles(panel: &Panel, curves: &[ColouredSeries]) -> Vec<Rect> {
    let mut areas = Vec::new();
    for curve in curves {
        areas.extend(curve.points.iter().map(|p| Rect::about(panel.at_clamped(p.x, p.center), 5.0)));
        for piece in curve.pieces() {
            for pair in piece.windows(2) {
                let (a, b) = (panel.at_clamped(pair[0].x, pair[0].y), panel.at_clamped(pair[1].x, pair[1].y));
                let steps = ((b.0 - a.0).hypot(b.1 - a.1) / 5.0).ceil().max(1.0);
                let along = |i: f64| (a.0 + (b.0 - a.0) * i / steps, a.1 + (b.1 - a.1) * i / steps);
                areas.extend((0..=steps as usize).map(|i| Rect::about(along(i as f64), 4.0)));
            }
        }
        for gap in curve.gaps() {
            let (from, to) = (panel.at_clamped(gap.x, gap.from), panel.at_clamped(gap.x, gap.to));
            areas.push(Rect { left: from.0, right: to.0, top: from.1.min(to.1), bottom: from.1.max(to.1) }.grown(5.0));
            let (left, right) = (panel.at_x(gap.places.start), panel.at_x(gap.places.end));
            let middle = 0.5 * (from.1 + to.1);
            areas.push(Rect { left, right, top: middle, bottom: middle }.grown(5.0));
        }
        if curve.series.findings.period.is_some() {
            areas.push(Rect { top: panel.area.bottom - 12.0, ..panel.area });
        }
    }
    areas
}

/// The y axis of the time per item. On a linear one the smallest batches take so much longer per item that they would flatten all the
/// rest: what is above twice the median of its series does not set the axis.
pub fn item_axis(curves: &[ColouredSeries], scale: Scale) -> Axis {
    if scale == Scale::Log {
        let each = curves.iter().flat_map(|curve| &curve.points).filter(|p| p.x > 0.0);
        return Axis::around(each.flat_map(|p| [p.low / p.x, p.high / p.x]), scale, 0.08);
    }
    let mut typical: Vec<f64> = Vec::new();
    for curve in curves {
        let points = curve.points.iter().filter(|p| p.x > 0.0);
        let mut values: Vec<f64> = points.flat_map(|p| [p.low / p.x, p.center / p.x, p.high / p.x]).collect();
        values.extend(curve.gaps().iter().flat_map(|gap| [gap.from / gap.x, gap.to / gap.x]));
        values.sort_by(f64::total_cmp);
        if let Some(&middle) = values.get(values.len() / 2) {
            typical.extend(values.iter().filter(|v| **v <= 2.0 * middle));
        }
    }
    Axis::around(typical, scale, 0.08)
}
