//! Several runs in one picture: for each series the curves of all runs, below them a row of jumps for each run, and the time per item.
//!
//! The jumps of many runs crowd the same places, so each run has its own row of labels, and the rows can be compared by eye. Runs whose
//! times differ by more than a factor share a logarithmic axis, on which equal steps are equal shares.

use super::curve::{ColouredSeries, Gap};
use super::layout::{Areas, Layout};
use super::{SHARED_SCALE, begin, keys, leaves_out, marks, middle, name_curves, panels, sizes, too_early};
use crate::chart::axis::{Axis, Scale, scale_of};
use crate::chart::data::{ChartSeries, Quantity, Runs, RunsPanel};
use crate::chart::font;
use crate::chart::frame::{self, LegendEntry, Mark, whisker};
use crate::chart::geometry::Rect;
use crate::chart::palette::{Color, INK, MUTED, RUNS, SERIES, TEXT};
use crate::chart::panel::{Panel, TICK_SIZE, TITLE_LIFT};
use crate::chart::scene::{Anchor, Font, Scene};
use crate::detect::{FEWEST_POINTS, Jump};
use crate::report;
use crate::units::human;

/// The strip: the height of a row, and the size of its text.
const ROW: f64 = 18.0;
const LABEL_SIZE: f64 = 11.5;
/// From a mark to its label, and between a label and the next mark.
const GAP: f64 = 5.0;
/// Wider names appear only in the legend.
const WIDEST_NAME: f64 = 210.0;

/// The most panels for which the sentence says what the runs have in common.
const MOST_SAID: usize = 6;

pub fn scene(chart: &Runs) -> Scene {
    let mut layout = Layout::of(chart.panels.len(), chart.item.is_some());
    let mut scene = Scene::new(layout.width(), 0.0, &chart.title);
    layout.top = frame::header(&mut scene, &chart.title, &summary(chart), &legend(chart)) + 40.0;
    layout.strip = ROW * chart.panels.iter().map(|panel| panel.curves.len()).max().unwrap_or(0) as f64;
    let fits = |name: &String| font::width(name, TICK_SIZE, true) <= WIDEST_NAME;
    let named = layout.is_single() && chart.names.iter().all(fits);
    if named {
        layout.make_room_for(chart.names.iter().map(String::as_str));
    }
    for (i, panel) in chart.panels.iter().enumerate() {
        Pair { chart, panel, areas: layout.areas(i), titled: !layout.is_single(), named }.draw(&mut scene);
    }
    frame::caption(&mut scene, layout.bottom(), &chart.caption);
    scene
}

fn color(run: usize) -> Color {
    RUNS[run % RUNS.len()]
}

/// The bright colours can't be read as text on white.
fn text_color(run: usize) -> Color {
    SERIES.get(run).copied().unwrap_or(INK)
}

fn legend(chart: &Runs) -> Vec<LegendEntry> {
    let all: Vec<&ChartSeries> =
        chart.panels.iter().flat_map(|panel| &panel.curves).map(|curve| &curve.series).collect();
    let runs = chart.names.iter().enumerate().map(|(run, name)| (Mark::Interval(color(run)), name.clone()));
    let beyond = chart.item.is_some() && chart.panels.iter().any(cut_off);
    // The marks of a period are green, as a run may be; its summary names the period.
    let periodic = |key: &LegendEntry| matches!(key.0, Mark::Periodic(_));
    let marks = keys(&all, (MUTED, MUTED), beyond).into_iter().filter(|key| !periodic(key));
    runs.chain(marks).collect()
}

fn cut_off(panel: &RunsPanel) -> bool {
    let curves = curves(panel, scale_of(&sizes(panel.curves.iter().map(|curve| &curve.series))));
    leaves_out(&curves, value_scale(&curves))
}

/// Where all runs jump.
fn summary(chart: &Runs) -> String {
    match &chart.panels[..] {
        [] => "No series to draw.".to_owned(),
        [panel] => human::capitalised(&format!("{}.", verdict(panel))),
        panels => {
            let shared = || panels.iter().filter(|panel| panel.curves.len() > 1);
            let said: Vec<String> =
                shared().take(MOST_SAID).map(|panel| format!("{}: {}", panel.name, verdict(panel))).collect();
            let all_say = shared().next().map(verdict).filter(|first| shared().all(|panel| verdict(panel) == *first));
            match (shared().count(), all_say) {
                (0, _) => "No series was measured in more than one run.".to_owned(),
                (2.., Some(all)) => format!("Each series: {all}."),
                (count, _) if count > MOST_SAID => format!("{}; ...", said.join("; ")),
                _ => format!("{}.", said.join("; ")),
            }
        }
    }
}

/// What the runs of a panel have in common, without a full stop.
fn verdict(panel: &RunsPanel) -> String {
    let number = panel.curves.len();
    if let [one] = &panel.curves[..] {
        let said = report::summary(&one.series.findings);
        return format!("{}: {}", one.series.name, said.trim_end_matches('.'));
    }
    if let Some(early) = too_early(panel.curves.iter().map(|curve| &curve.series)) {
        return early.to_string();
    }
    if panel.curves.iter().any(|curve| curve.series.findings.unsearched().is_some()) {
        return "not all of them were searched for jumps".to_owned();
    }
    if panel.curves.iter().any(|curve| !curve.series.findings.is_judged()) {
        return format!("fewer than {FEWEST_POINTS} points, too few to judge a jump");
    }
    if panel.curves.iter().all(|curve| curve.series.findings.jumps.is_empty()) {
        return if number == 2 { "neither jumps".to_owned() } else { format!("none of the {number} jumps") };
    }
    let all = if number == 2 { "both".to_owned() } else { format!("all {number}") };
    let places: Vec<String> = common(panel).into_iter().map(|jump| human::batch_size(jump.after)).collect();
    match places.len() {
        0 => format!("no jump is common to {all}"),
        1..17 => format!("{all} jump after {}", human::listed(&places)),
        places => format!("{places} jumps are common to {all}"),
    }
}

/// The jumps of the first run that every other has too: in the same direction, at places that may be the same.
fn common(panel: &RunsPanel) -> Vec<&Jump> {
    let Some((first, others)) = panel.curves.split_first() else { return Vec::new() };
    let same = |a: &Jump, b: &Jump| {
        a.size.signum() == b.size.signum() && a.after_low <= b.after_high && b.after_low <= a.after_high
    };
    let has = |series: &ChartSeries, jump: &Jump| series.findings.jumps.iter().any(|own| same(own, jump));
    first.series.findings.jumps.iter().filter(|jump| others.iter().all(|other| has(&other.series, jump))).collect()
}

fn curves(panel: &RunsPanel, scale: Scale) -> Vec<ColouredSeries<'_>> {
    panel.curves.iter().map(|own| ColouredSeries::new(&own.series, color(own.run), color(own.run), scale)).collect()
}

/// Logarithmic where the runs' times lie far apart, and all are positive.
fn value_scale(curves: &[ColouredSeries]) -> Scale {
    let middles = curves.iter().filter_map(|curve| middle(&curve.series.findings));
    let (low, high) = middles.fold((f64::INFINITY, 0f64), |(low, high), value| (low.min(value), high.max(value)));
    let mut points = curves.iter().flat_map(|curve| &curve.points);
    let positive = points.all(|p| p.low > 0.0 && (p.fit.is_nan() || p.fit > 0.0));
    if positive && low.is_finite() && high > SHARED_SCALE * low { Scale::Log } else { Scale::Linear }
}

/// One series of all runs.
struct Pair<'a> {
    chart: &'a Runs,
    panel: &'a RunsPanel,
    areas: Areas,
    titled: bool,
    /// Whether the names of the runs stand on the right.
    named: bool,
}

impl Pair<'_> {
    fn draw(&self, scene: &mut Scene) {
        let x = sizes(self.panel.curves.iter().map(|curve| &curve.series));
        let curves = curves(self.panel, scale_of(&x));
        if !begin(scene, self.titled.then_some(&self.panel.name), self.areas.upper, &curves) {
            return;
        }
        let (step, item, ticks) = panels(&curves, &x, &self.areas, value_scale(&curves));
        let quantity = |name: &str, axis: &Axis| {
            let scale = if axis.scale == Scale::Log { ", logarithmic" } else { "" };
            Quantity::new(&format!("{name}{scale}"), &self.chart.y.unit)
        };
        step.draw_y(scene, &quantity(&self.chart.y.name, &step.y), TITLE_LIFT);
        if let (Some(panel), Some(name)) = (&item, &self.chart.item) {
            panel.draw_y(scene, &quantity(&format!("Time per {name}"), &panel.y), TITLE_LIFT);
        }
        for panel in [Some(&step), item.as_ref()].into_iter().flatten() {
            panel.draw_x(scene, &ticks);
        }
        marks::both(scene, &step, item.as_ref(), &curves);
        curves.iter().for_each(|curve| marks::findings(scene, &step, curve));
        let rows = Panel { area: self.areas.strip, ..step };
        self.strip(scene, &rows, &curves);
        item.unwrap_or(rows).label_x(scene, &ticks, &self.chart.x.name);
        if self.named {
            let colors = self.panel.curves.iter().map(|own| text_color(own.run));
            name_curves(scene, &step, &curves, colors, step.area.bottom - 8.0);
        }
    }

    /// A row for each run, with its jumps.
    fn strip(&self, scene: &mut Scene, strip: &Panel, curves: &[ColouredSeries]) {
        let middle = strip.area.top + ROW * curves.len() as f64 / 2.0 + 4.5;
        scene.text("Jumps", (strip.area.left - 8.0, middle), Anchor::Right, Font::bold(TICK_SIZE, TEXT));
        for (i, (own, curve)) in self.panel.curves.iter().zip(curves).enumerate() {
            let top = strip.area.top + i as f64 * ROW;
            let area = Rect { top: top + 1.5, bottom: top + ROW - 1.5, ..strip.area };
            scene.rect(area, curve.color.tint(0.13));
            let baseline = top + ROW / 2.0 + 4.0;
            if self.named {
                let font = Font::regular(LABEL_SIZE, text_color(own.run));
                scene.text(own.series.name.as_str(), (area.right + 8.0, baseline), Anchor::Left, font);
            }
            row(scene, &Panel { area, ..*strip }, curve, baseline);
        }
    }
}

/// The jumps of one run: a mark each, and in the fullest form for which all have room its place and its share.
fn row(scene: &mut Scene, panel: &Panel, curve: &ColouredSeries, baseline: f64) {
    let findings = &curve.series.findings;
    let font = Font::regular(LABEL_SIZE, TEXT);
    if findings.jumps.is_empty() {
        let said = [report::summary(findings), "No jump.".to_owned()];
        let said_in_short = if findings.open_below().is_none() && findings.is_judged() { 2 } else { 1 };
        let fits = |text: &&String| font::width(text, LABEL_SIZE, false) * 1.06 < panel.area.width() - 16.0;
        if let Some(text) = said[..said_in_short].iter().find(fits) {
            scene.text(text.as_str(), (panel.area.left + 10.0, baseline), Anchor::Left, font);
        }
        return;
    }
    let middle = (panel.area.top + panel.area.bottom) / 2.0;
    let gaps = curve.gaps();
    for Gap { x, places, .. } in &gaps {
        let at = panel.at_x(*x);
        if places.start < places.end {
            whisker(scene, (at, middle), panel.at_x(places.start)..panel.at_x(places.end), MUTED);
        }
        scene.line(vec![(at, panel.area.top), (at, panel.area.bottom)], 2.25, curve.color);
    }
    let single = curve.single_gaps();
    let labelled = |gap: &Gap| single.iter().any(|own| own.x == gap.x);
    let complete = |form: &JumpFormat| {
        labels(panel, &gaps, *form).iter().zip(&gaps).all(|(label, gap)| label.is_some() || !labelled(gap))
    };
    let form = [full as JumpFormat, place].into_iter().find(complete).unwrap_or(place);
    for (label, _) in labels(panel, &gaps, form).into_iter().zip(&gaps).filter(|(_, gap)| labelled(gap)) {
        if let Some(Label { text, left }) = label {
            scene.text(text, (left, baseline), Anchor::Left, font);
        }
    }
}

/// How a jump is written.
type JumpFormat = fn(&Jump) -> String;

fn full(jump: &Jump) -> String {
    format!("{}: {}", human::batch_size(jump.after), human::signed_percent(jump.relative))
}

fn place(jump: &Jump) -> String {
    human::batch_size(jump.after)
}

/// A text of a row, and where it begins.
struct Label {
    text: String,
    left: f64,
}

/// For each jump, its label: right of its mark if there is room before the next mark, else left of it; `None` if there is no room.
fn labels(panel: &Panel, gaps: &[Gap], form: JumpFormat) -> Vec<Option<Label>> {
    // A mark, or the whisker of the places that its jump may have.
    let start = |gap: &Gap| panel.at_x(gap.x.min(gap.places.start));
    let end = |gap: &Gap| panel.at_x(gap.x.max(gap.places.end));
    let mut taken = panel.area.left;
    let mut labels = Vec::with_capacity(gaps.len());
    for (i, gap) in gaps.iter().enumerate() {
        let next = gaps.get(i + 1).map_or(panel.area.right, start);
        let text = font::typeset(&form(&gap.jump));
        // A viewer of an SVG may lack the font: 6 % more for a wider one.
        let width = 1.06 * font::width(&text, LABEL_SIZE, false);
        let (right, left) = (end(gap) + GAP, start(gap) - GAP - width);
        let at = if right + width + GAP <= next {
            Some(right)
        } else if taken + GAP <= left {
            Some(left)
        } else {
            None
        };
        taken = at.map_or(taken, |at| at + width).max(end(gap));
        labels.push(at.map(|left| Label { text, left }));
    }
    labels
}
