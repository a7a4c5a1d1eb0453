//! Several runs in one picture: for each series the curves of all runs, below them a row of jumps for each run, and the time per item.
//!
//! The jumps of many runs crowd the same places, so each run has its own row of labels, and the rows can be compared by eye. Runs whose
//! times differ by more than a factor share a logarithmic axis, on which equal steps are equal shares.

use super::curve::{ColouredSeries, Gap};
use super::layout::Layout;
use super::{Pair, SHARED_SCALE, keys, leaves_out, middle, sizes, too_early};
use crate::chart::axis::{Scale, scale_of};
use crate::chart::data::{ChartSeries, Runs, RunsPanel};
use crate::chart::font;
use crate::chart::frame::{self, LegendEntry, Mark, whisker};
use crate::chart::geometry::Rect;
use crate::chart::palette::{Color, INK, MUTED, RUNS, SERIES, TEXT};
use crate::chart::panel::{Panel, TICK_SIZE};
use crate::chart::scene::{Anchor, Font, Scene};
use crate::detect::{FEWEST_POINTS, Jump};
use crate::units::human;
use crate::words;

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
    let mut layout = Layout::of(chart.panels.len(), chart.item.is_some(), None);
    let mut scene = Scene::new(layout.width, 0.0, &chart.title);
    layout.top = frame::header(&mut scene, &chart.title, &summary(chart), &legend(chart)) + 40.0;
    layout.strip = ROW * chart.panels.iter().map(|panel| panel.curves.len()).max().unwrap_or(0) as f64;
    let fits = |name: &String| font::width(name, TICK_SIZE, true) <= WIDEST_NAME;
    let is_single = layout.columns == 1;
    let named = is_single && chart.names.iter().all(fits);
    if named {
        layout.make_room_for(chart.names.iter().map(String::as_str));
    }
    for (i, panel) in chart.panels.iter().enumerate() {
        let sizes = sizes(panel.curves.iter().map(|curve| &curve.series));
        let curves = curves(panel, scale_of(&sizes));
        let values = value_scale(&curves);
        let names = named.then(|| panel.curves.iter().map(|own| text_color(own.run)).collect());
        let (x, y, item, areas) = (&chart.x.name, &chart.y, chart.item.as_ref(), layout.areas(i));
        let title = (!is_single).then_some(&panel.name);
        Pair { x, y, item, sizes, curves, title, names, rows: true, areas, values }.draw(&mut scene);
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
        let said = words::summary(&one.series.findings);
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

/// A row for each run, with its jumps; its name in one of these colours, where it has any.
pub fn strip(scene: &mut Scene, strip: &Panel, curves: &[ColouredSeries], names: Option<&[Color]>) {
    let middle = strip.area.top + ROW * curves.len() as f64 / 2.0 + 4.5;
    scene.text("Jumps", (strip.area.left - 8.0, middle), Anchor::Right, Font::bold(TICK_SIZE, TEXT));
    for (i, curve) in curves.iter().enumerate() {
        let top = strip.area.top + i as f64 * ROW;
        let area = Rect { top: top + 1.5, bottom: top + ROW - 1.5, ..strip.area };
        scene.rect(area, curve.color.tint(0.13));
        let baseline = top + ROW / 2.0 + 4.0;
        if let Some(names) = names {
            let font = Font::regular(LABEL_SIZE, names[i]);
            scene.text(curve.series.name.as_str(), (area.right + 8.0, baseline), Anchor::Left, font);
        }
        row(scene, &Panel { area, ..*strip }, curve, baseline);
    }
}

/// The jumps of one run: a mark each, and in the fullest form for which all have room its place and its share.
fn row(scene: &mut Scene, panel: &Panel, curve: &ColouredSeries, baseline: f64) {
    let findings = &curve.series.findings;
    let font = Font::regular(LABEL_SIZE, TEXT);
    if findings.jumps.is_empty() {
        let said = [words::summary(findings), "No jump.".to_owned()];
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
    let full = |jump: &Jump| format!("{}: {}", human::batch_size(jump.after), human::signed_percent(jump.relative));
    let place = |jump: &Jump| human::batch_size(jump.after);
    let [full, places] = [labels(panel, &gaps, &full), labels(panel, &gaps, &place)];
    let is_complete = full.iter().zip(&gaps).all(|(label, gap)| label.is_some() || !labelled(gap));
    let shown = if is_complete { full } else { places };
    for (label, _) in shown.into_iter().zip(&gaps).filter(|(_, gap)| labelled(gap)) {
        if let Some((text, left)) = label {
            scene.text(text, (left, baseline), Anchor::Left, font);
        }
    }
}

/// For each jump, as `form` writes it, its label and where that begins: right of its mark if there is room before the next mark, else left of it; `None` if there is no room.
fn labels(panel: &Panel, gaps: &[Gap], form: &dyn Fn(&Jump) -> String) -> Vec<Option<(String, f64)>> {
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
        let at = [(right, right + width + GAP <= next), (left, taken + GAP <= left)];
        let at = at.into_iter().find_map(|(at, fits)| fits.then_some(at));
        taken = at.map_or(taken, |at| at + width).max(end(gap));
        labels.push(at.map(|left| (text, left)));
    }
    labels
}
