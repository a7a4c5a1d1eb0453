//! The chart people come for: step time against batch size with its jumps, and below it the time per item.
//!
//! Up to four series that share a scale lie in one pair of panels, distinguished by colour and named at their right ends;
//! otherwise each has its own pair, side by side (small multiples), with a y axis of its own.

mod curve;
mod layout;
mod marks;
mod runs;

use std::collections::BTreeSet;

use super::axis::{Axis, AxisUnit, Scale, ascending, scale_of};
use super::data::{CONFIDENCE, ChartSeries, Quantity, StepTime};
use super::font;
use super::frame::{self, LegendEntry, Mark};
use super::geometry::Rect;
use super::labels::spread;
use super::palette::{BLUE, Color, GREEN, INK, MUTED, SERIES, TEXT, VERMILLION};
use super::panel::{Panel, TICK_SIZE, TITLE_LIFT};
use super::scene::{Anchor, Font, Scene};
use crate::detect::{Early, FEWEST_POINTS, Findings, Note};
use crate::units::human;
use crate::words;
use curve::ColouredSeries;
use layout::{Areas, Layout};
pub use runs::scene as runs;

/// Series that share one panel have medians within this factor of each other.
const SHARED_SCALE: f64 = 4.0;

/// The figure: a title if there is one, the legend, and the panels. `column` is the width of a paper's column.
pub fn scene(chart: &StepTime, column: Option<f64>) -> Scene {
    let chart = &StepTime { series: named_briefly(&chart.series), ..chart.clone() };
    let shared = share_a_panel(&chart.series);
    let cells: Vec<&[ChartSeries]> =
        if shared { vec![&chart.series[..]] } else { chart.series.iter().map(std::slice::from_ref).collect() };
    let mut layout = Layout::of(cells.len(), chart.item.is_some(), column);
    let mut scene = Scene::new(layout.width, 0.0, &chart.title);
    let several = chart.series.len() > 1;
    let summary = match &chart.series[..] {
        [] => "No series to draw.".to_string(),
        [one] => {
            let summary = words::summary(&one.findings);
            match &one.slow {
                Some(slow) => format!("{}. Slow: {slow}.", summary.trim_end_matches('.')),
                None => summary,
            }
        }
        many => format!("{} series. {}", many.len(), tally(many)),
    };
    let summary = if chart.forecast { format!("Forecast, not measured. {summary}") } else { summary };
    let all: Vec<&ChartSeries> = chart.series.iter().collect();
    let named = shared && several;
    // If there are many series, each has its own colour.
    let (data, jump) = if named { (MUTED, MUTED) } else { (BLUE, VERMILLION) };
    let mut keys = keys(&all, (data, jump), beyond_axis(chart));
    if let Some(first) = keys.first_mut().filter(|_| chart.forecast) {
        *first = (Mark::Dot(data), "forecast".to_owned());
    }
    if chart.item.is_some() && all.iter().any(|series| !series.avoid.is_empty()) {
        keys.push((Mark::Shade(marks::shade(jump)), "sizes to avoid".to_owned()));
    }
    layout.top = if column.is_some() {
        // A name beside its curve would take half of a column.
        let names = chart.series.iter().enumerate().filter(|_| named);
        keys.extend(names.map(|(at, series)| (Mark::Line(SERIES[at % SERIES.len()]), series.name.clone())));
        frame::small_header(&mut scene, &chart.title, &keys) + 34.0
    } else {
        frame::header(&mut scene, &chart.title, &summary, &keys) + 40.0
    };
    if named && column.is_none() {
        layout.make_room_for(chart.series.iter().map(|series| series.name.as_str()));
    }
    let mut homeless = 0;
    for (i, own) in cells.into_iter().enumerate() {
        let sizes = sizes(own.iter());
        let scale = scale_of(&sizes);
        let color = |at: usize| if own.len() == 1 { (BLUE, VERMILLION) } else { (SERIES[at % 4], SERIES[at % 4]) };
        let curve = |(at, series)| ColouredSeries::new(series, color(at).0, color(at).1, scale);
        let curves: Vec<ColouredSeries> = own.iter().enumerate().map(curve).collect();
        let title = (several && !shared).then(|| &own[0].name);
        let names = (own.len() > 1 && column.is_none()).then(|| curves.iter().map(|curve| curve.color).collect());
        let (x, y, item, areas) = (&chart.x.name, &chart.y, chart.item.as_ref(), layout.areas(i));
        let pair = Pair { x, y, item, sizes, curves, title, names, rows: false, areas, values: Scale::Linear };
        homeless += pair.draw(&mut scene);
    }
    if column.is_some() {
        scene.height = (layout.bottom() - 28.0).ceil();
        return scene;
    }
    let (made, said) = chart.caption.split_last().unzip();
    let homeless = (homeless > 0)
        .then(|| format!("{} marked without a label, for want of room.", human::counted(homeless as u64, "jump")));
    let caption: Vec<String> = said.into_iter().flatten().cloned().chain(homeless).chain(made.cloned()).collect();
    frame::caption(&mut scene, layout.bottom(), &caption);
    scene
}

/// The widest name beside a curve, in letters: a longer one would take the curve's own room.
const NAME: usize = 34;

/// The series with short names: without the parts that all of them share, and a long name is cut if the names stay different.
fn named_briefly(series: &[ChartSeries]) -> Vec<ChartSeries> {
    let parts = |one: &ChartSeries| one.name.split(", ").map(str::to_owned).collect::<Vec<_>>();
    let all: Vec<Vec<String>> = series.iter().map(parts).collect();
    let is_shared = |part: &String| series.len() > 1 && all.iter().all(|parts| parts.contains(part));
    let own =
        |parts: &Vec<String>| parts.iter().filter(|part| !is_shared(part)).cloned().collect::<Vec<_>>().join(", ");
    let names: Vec<String> = all.iter().map(own).collect();
    let apart = |names: &Vec<String>| {
        names.iter().collect::<BTreeSet<_>>().len() == names.len() && names.iter().all(|name| !name.is_empty())
    };
    let ways = [head, ends, str::to_owned as fn(&str) -> String];
    let mut shorter = ways.iter().map(|way| names.iter().map(|name| way(name)).collect::<Vec<String>>());
    let Some(chosen) = shorter.find(apart) else { return series.to_vec() };
    series.iter().zip(chosen).map(|(one, name)| ChartSeries { name, ..one.clone() }).collect()
}

/// The first letters of a name.
fn head(name: &str) -> String {
    match name.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}\u{2026}", &name[..end]),
        None => name.to_owned(),
    }
}

/// The first and the last letters of a name.
fn ends(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    if letters.len() <= NAME {
        return name.to_owned();
    }
    let half = NAME / 2;
    let ends = [&letters[..half], &letters[letters.len() - half..]].map(|end| end.iter().collect::<String>());
    ends.join("\u{2026}")
}

/// At most four series, on like axes, with like times.
fn share_a_panel(series: &[ChartSeries]) -> bool {
    let medians: Vec<f64> = series.iter().filter_map(|s| middle(&s.findings)).collect();
    let (low, high) = medians.iter().fold((f64::INFINITY, 0f64), |(l, h), &m| (l.min(m), h.max(m)));
    series.len() <= SERIES.len() && (medians.len() < 2 || high <= SHARED_SCALE * low)
}

fn middle(findings: &Findings) -> Option<f64> {
    let mut centers: Vec<f64> = findings.points.iter().map(|p| p.center).filter(|c| c.is_finite()).collect();
    centers.sort_by(f64::total_cmp);
    centers.get(centers.len() / 2).copied()
}

/// The note that all series share if they are too early.
fn too_early<'a>(series: impl Iterator<Item = &'a ChartSeries>) -> Option<Early> {
    series.filter_map(|series| series.findings.early).min_by_key(|early| early.blocks)
}

fn tally(series: &[ChartSeries]) -> String {
    if let Some(early) = too_early(series.iter()) {
        return human::capitalised(&early.to_string());
    }
    if series.iter().all(|s| s.findings.points.len() < FEWEST_POINTS) {
        return format!("Fewer than {FEWEST_POINTS} points each, too few to judge a jump");
    }
    let part = |s: &ChartSeries| match s.findings.jumps.len() as u64 {
        0 if s.findings.points.len() < FEWEST_POINTS => format!("{}: too few points", s.name),
        0 if s.findings.unsearched().is_some() => format!("{}: not searched", s.name),
        0 if words::is_too_steep(&s.findings) => format!("{}: too few sizes for so steep a curve", s.name),
        0 => match s.findings.open_below() {
            Some(seen) => format!("{}: none of {} or more", s.name, human::limit(seen)),
            None => format!("{}: no jump", s.name),
        },
        n => format!("{}: {}", s.name, human::counted(n, "jump")),
    };
    series.iter().map(part).collect::<Vec<_>>().join("; ")
}

/// The legend of `all` series, with the colours of points and of jumps: only what occurs.
fn keys(all: &[&ChartSeries], (data, jump): (Color, Color), beyond: bool) -> Vec<LegendEntry> {
    let any = |found: fn(&Findings) -> bool| all.iter().any(|s| found(&s.findings));
    if all.iter().all(|s| middle(&s.findings).is_none()) {
        return vec![];
    }
    // What the points are: visits' medians or fastest steps, reduced, and less what all batch sizes share.
    let reduced = |note: &Note| matches!(note, Note::CommonFactor { .. } | Note::ByFastest(_) | Note::Nodes { .. });
    let is_reduced = all.iter().any(|series| series.findings.notes.iter().any(reduced));
    let center = if is_reduced { "level, disturbances subtracted" } else { "median" };
    let interval = format!("{center}, {} interval", human::limit(CONFIDENCE));
    let mut keys = vec![(Mark::Interval(data), interval)];
    let mut add = |occurs: bool, mark, label: &str| {
        if occurs {
            keys.push((mark, label.to_string()));
        }
    };
    let is_fitted = |f: &Findings| f.is_judged() && f.points.iter().any(|p| p.fit.is_finite());
    add(any(is_fitted), Mark::Line(data.tint(0.65)), "fitted line");
    add(any(|f| !f.jumps.is_empty()), Mark::Gap(jump), "jump");
    add(any(|f| f.jumps.iter().any(|j| j.after_low < j.after_high)), Mark::Places(jump), "places that a jump may have");
    add(any(|f| !f.kinks.is_empty()), Mark::Diamond(jump), "kink");
    add(any(|f| !f.rejected.is_empty()), Mark::Dashes(MUTED), "candidate, rejected");
    add(any(|f| f.points.iter().any(|p| p.off)), Mark::Ring(MUTED), "off the line");
    add(any(|f| f.period.is_some()), Mark::Periodic(GREEN), "places of the period");
    add(beyond, Mark::Beyond(data), "beyond the axis");
    keys
}

fn beyond_axis(chart: &StepTime) -> bool {
    let curves: Vec<ColouredSeries> =
        chart.series.iter().map(|s| ColouredSeries::new(s, BLUE, BLUE, Scale::Linear)).collect();
    let together = if share_a_panel(&chart.series) { curves.len().max(1) } else { 1 };
    chart.item.is_some() && curves.chunks(together).any(|curves| leaves_out(curves, Scale::Linear))
}

/// Whether the panel of times per item leaves out points.
fn leaves_out(curves: &[ColouredSeries], scale: Scale) -> bool {
    let axis = marks::item_axis(curves, scale);
    curves.iter().flat_map(|c| &c.points).any(|p| p.x > 0.0 && !axis.holds(p.center / p.x))
}

/// A pair of panels: curves over the same sizes, and below them the times per item.
struct Pair<'a> {
    x: &'a str,
    y: &'a Quantity,
    item: Option<&'a String>,
    /// The sizes of all curves, ascending.
    sizes: Vec<f64>,
    curves: Vec<ColouredSeries<'a>>,
    title: Option<&'a String>,
    /// The colours of the names beside the curves, where they have any.
    names: Option<Vec<Color>>,
    /// Whether each curve has a row of its jumps in place of labels at them.
    rows: bool,
    areas: Areas,
    /// The scale of the values where that of the sizes is linear.
    values: Scale,
}

impl Pair<'_> {
    /// Draws it; gives the number of jumps that found no place for their label.
    fn draw(&self, scene: &mut Scene) -> usize {
        let (y, curves, rows) = (self.y, &self.curves, self.rows);
        if !begin(scene, self.title, self.areas.upper, curves) {
            return 0;
        }
        let (step, item, ticks) = panels(curves, &self.sizes, &self.areas, self.values);
        let quantity = |name: &str, axis: &Axis| {
            let scale = if rows && axis.scale == Scale::Log { ", logarithmic" } else { "" };
            Quantity::new(&format!("{name}{scale}"), &y.unit)
        };
        step.draw_y(scene, &quantity(&y.name, &step.y), TITLE_LIFT);
        if let (Some(panel), Some(name)) = (&item, self.item) {
            panel.draw_y(scene, &quantity(&format!("Time per {name}"), &panel.y), TITLE_LIFT);
            curves.iter().for_each(|curve| marks::avoided(scene, panel, curve));
        }
        // Two series may jump at the same place: their common guide has the color of neither.
        let guide = if curves.len() > 1 { MUTED } else { VERMILLION };
        for panel in [Some(&step), item.as_ref()].into_iter().flatten() {
            curves.iter().filter(|_| !rows).for_each(|curve| marks::guides(scene, panel, curve, guide));
            panel.draw_x(scene, &ticks);
        }
        marks::both(scene, &step, item.as_ref(), curves);
        for curve in curves {
            marks::findings(scene, &step, curve);
            if !rows {
                marks::periodic(scene, &step, curve);
            }
        }
        // Without rows it has no height, and lies at the lower edge.
        let strip = Panel { area: self.areas.strip, ..step };
        if rows {
            runs::strip(scene, &strip, curves, self.names.as_deref());
        }
        item.unwrap_or(strip).label_x(scene, &ticks, &AxisUnit::none(), self.x);
        if let Some(colors) = &self.names {
            let low = step.area.bottom - if rows { 8.0 } else { 0.0 };
            name_curves(scene, &step, curves, colors, low);
        }
        if rows { 0 } else { marks::label_jumps(scene, &step, curves, y) }
    }
}

/// The panels of step times and of times per item, and the ticks of their sizes `x`. `values`: their scale where that of the sizes is linear.
fn panels(curves: &[ColouredSeries], x: &[f64], areas: &Areas, values: Scale) -> (Panel, Option<Panel>, Vec<f64>) {
    let scale = scale_of(x);
    let x = match x {
        [only] => Axis { scale, low: only - 1.0, high: only + 1.0 },
        _ => Axis::around(x.iter().copied(), scale, 0.018),
    };
    let y = step_axis(curves, if scale == Scale::Log { scale } else { values });
    let item = areas.lower.map(|area| Panel { area, x, y: marks::item_axis(curves, values) });
    let ticks = x.batch_ticks((areas.upper.width() / 62.0) as usize, period(curves));
    (Panel { area: areas.upper, x, y }, item, ticks)
}

/// The one period of a panel, if all its series that have one agree.
fn period(curves: &[ColouredSeries]) -> Option<f64> {
    let mut periods = curves.iter().filter_map(|curve| curve.series.findings.period.as_ref()).map(|p| p.value);
    let first = periods.next()?;
    periods.all(|p| p == first).then_some(first)
}

/// Writes the title of one of several panels, smaller where it is wider than its `area`, and that there is nothing to draw; gives whether there is
/// something.
fn begin(scene: &mut Scene, title: Option<&String>, area: Rect, curves: &[ColouredSeries]) -> bool {
    if let Some(title) = title {
        let size = 15.0 * (area.width() / font::width(title, 15.0, true)).min(1.0);
        scene.text(title, (area.left, area.top - 32.0), Anchor::Left, Font::bold(size, INK));
    }
    let is_usable = curves.iter().any(|c| !c.points.is_empty());
    if !is_usable {
        let middle = ((area.left + area.right) / 2.0, (area.top + area.bottom) / 2.0);
        scene.text("no usable measurement", middle, Anchor::Center, Font::regular(14.0, TEXT));
    }
    is_usable
}

/// The sizes of all series, ascending.
fn sizes<'a>(series: impl Iterator<Item = &'a ChartSeries>) -> Vec<f64> {
    ascending(series.flat_map(|s| &s.findings.points).map(|p| p.x).filter(|x| x.is_finite()))
}

/// From zero where the times themselves come near to it; else around them, with room for labels.
fn step_axis(curves: &[ColouredSeries], scale: Scale) -> Axis {
    let values = || curves.iter().flat_map(|c| &c.points).flat_map(|p| [p.low, p.high, p.fit]);
    let around = Axis::around(values(), scale, 0.1);
    let least = values().filter(|v| v.is_finite()).fold(f64::INFINITY, f64::min);
    match scale {
        Scale::Log => around,
        Scale::Linear if least >= 0.0 && least < 0.5 * around.high => Axis { low: 0.0, ..around },
        Scale::Linear => Axis::around(values(), scale, 0.25),
    }
}

/// The names at the right ends of the curves, in these colours and not below `low`.
fn name_curves(scene: &mut Scene, panel: &Panel, curves: &[ColouredSeries], colors: &[Color], low: f64) {
    let end = |c: &ColouredSeries| c.points.last().map_or(panel.area.bottom, |p| panel.at_clamped(p.x, p.center).1);
    let places = spread(&curves.iter().map(end).collect::<Vec<_>>(), 16.0, panel.area.top, low);
    for ((curve, color), y) in curves.iter().zip(colors).zip(places) {
        let at = (panel.area.right + 8.0, y + 4.5);
        scene.text(curve.series.name.as_str(), at, Anchor::Left, Font::bold(TICK_SIZE, *color));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[&str]) -> Vec<String> {
        let series = |name: &&str| ChartSeries { name: (*name).to_owned(), ..ChartSeries::default() };
        named_briefly(&given.iter().map(series).collect::<Vec<_>>()).into_iter().map(|series| series.name).collect()
    }

    #[test]
    fn names_of_curves_say_what_differs_and_leave_the_curves_their_room() {
        assert_eq!(names(&["mlp, ONEDNN=1", "mlp, ONEDNN=0"]), ["ONEDNN=1", "ONEDNN=0"]);
        assert_eq!(names(&["vgg16, bf16"]), ["vgg16, bf16"], "one series shares nothing");
        assert_eq!(names(&["mlp", "mlp, x=1"]), ["mlp", "mlp, x=1"], "no name is left empty");
        assert_eq!(names(&["same", "same"]), ["same", "same"]);
        let long = "glibc.malloc.mmap_threshold=33554432:glibc.malloc.trim_threshold=4294967296";
        assert_eq!(names(&[&format!("T={long}"), "T="]), ["T=glibc.malloc.mmap_threshold=3355\u{2026}", "T="]);
        let head = ["a", "b"].map(|end| format!("{}{end}", "x".repeat(40)));
        assert_eq!(names(&[&head[0], &head[1]])[1], format!("{}\u{2026}{}b", "x".repeat(17), "x".repeat(16)));
        let middle = ["a", "b"].map(|letter| format!("{}{letter}{}", "x".repeat(36), "y".repeat(20)));
        assert_eq!(names(&[&middle[0], &middle[1]]), middle, "cut, they would be one name");
    }
}
