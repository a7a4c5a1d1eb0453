//! A study on one page: panels of lines, with the number of workers that suffices marked; measured against predicted rates with the band of ten
//! percent; and where the time goes.

use super::axis::{Axis, Scale, ascending, scale_of};
use super::data::{LinePanel, Predicted, Quantity, Stack, Stacks, StudyChart};
use super::font;
use super::frame::{self, LegendEntry, MARGIN, Mark};
use super::geometry::Rect;
use super::palette::{BLUE, Color, GREEN, INK, MUTED, ORANGE, PURPLE, TEXT, VERMILLION};
use super::panel::{Panel, ROW_GAP, TICK_SIZE, TITLE_LIFT, widest_name};
use super::scene::{Anchor, Font, Scene};
use crate::units::human;

const WIDTH: f64 = 1100.0;
const COLORS: [Color; 7] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, INK, MUTED];
const LIMITS: [Color; 6] = [BLUE, VERMILLION, GREEN, PURPLE, ORANGE, MUTED];
/// The band within which a prediction is good.
const BAND: f64 = 0.1;

pub fn scene(chart: &StudyChart) -> Scene {
    let mut scene = Scene::new(WIDTH, 0.0, &chart.title);
    let mut keys: Vec<LegendEntry> = vec![(Mark::Interval(MUTED), chart.point.to_owned())];
    if chart.panels.iter().flat_map(|panel| &panel.lines).any(|line| line.marked.is_some()) {
        keys.push((Mark::Ring(INK), "workers that suffice".to_owned()));
    }
    let limits = chart.limits.iter().zip(LIMITS.iter().cycle());
    keys.extend(limits.map(|(name, &color)| (Mark::Dot(color), format!("predicted limit: {name}"))));
    let top = frame::header(&mut scene, &chart.title, &chart.summary, &keys) + 44.0;
    // Two in a row, with room for the names of lines on the right.
    let slot = |number: usize, names: f64| {
        let half = (WIDTH - MARGIN) / 2.0;
        let (column, row) = ((number % 2) as f64, (number / 2) as f64);
        let top = top + row * (chart.height + ROW_GAP);
        let (left, right) = (column * half + MARGIN + 46.0, (column + 1.0) * half - names - 20.0);
        Rect { left, right, top, bottom: top + chart.height }
    };
    for (number, panel) in chart.panels.iter().enumerate() {
        draw(&mut scene, panel, slot(number, widest_name(&panel.lines)));
    }
    let mut slots = chart.panels.len();
    if !chart.predicted.is_empty() {
        compared(&mut scene, &chart.predicted, slot(slots, 20.0));
        slots += 1;
    }
    let bottom = top + slots.div_ceil(2) as f64 * (chart.height + ROW_GAP);
    let bottom = draw_stacks(&mut scene, &chart.stacks, bottom);
    frame::caption(&mut scene, bottom + 34.0, &chart.caption);
    scene
}

fn draw(scene: &mut Scene, panel: &LinePanel, area: Rect) {
    let points = || panel.lines.iter().flat_map(|line| &line.points);
    let xs = ascending(points().map(|point| point.x));
    let scale = if panel.from_zero { scale_of(&xs) } else { Scale::Linear };
    let highs = points().map(|point| point.y + point.sd);
    let y = if panel.from_zero {
        Axis { low: 0.0, ..Axis::around(highs.chain([0.0]), Scale::Linear, 0.08) }
    } else {
        Axis::around(highs.chain(points().map(|point| point.y - point.sd)), Scale::Linear, 0.08)
    };
    let drawn = Panel { area, x: Axis::around(xs.iter().copied(), scale, 0.06), y };
    drawn.draw_axes(scene, &panel.y, &xs, &panel.x.name);
    drawn.draw_lines(scene, &panel.lines, &COLORS);
}

/// Measured against predicted, on logarithmic axes of the same range.
fn compared(scene: &mut Scene, cells: &[Predicted], area: Rect) {
    let all = || cells.iter().flat_map(|cell| [cell.predicted, cell.measured]);
    let axis = Axis::around(all(), Scale::Log, 0.06);
    let panel = Panel { area, x: axis, y: axis };
    let edge = |factor: f64| [axis.low, axis.high].map(|x| panel.at_clamped(x, x * factor));
    let [low, high] = [edge(1.0 - BAND), edge(1.0 + BAND)];
    scene.polygon(vec![low[0], low[1], high[1], high[0]], MUTED.tint(0.25));
    let measured = Quantity::new("Measured (images/s); band: the predicted rate, 10 % either way", "");
    panel.draw_axes(scene, &measured, &axis.ticks(6), "Predicted (images/s)");
    for cell in cells {
        scene.disc(panel.at_clamped(cell.predicted, cell.measured), 3.4, LIMITS[cell.limit % LIMITS.len()]);
    }
}

const BAR: f64 = 13.0;
const BAR_STEP: f64 = 21.0;
/// The most bars of a panel; further bars are left out.
const MOST_BARS: usize = 40;

/// Draws the bars below `top`, where there are any; gives where they end.
fn draw_stacks(scene: &mut Scene, stacks: &Stacks, top: f64) -> f64 {
    if stacks.bars.is_empty() {
        return top - ROW_GAP + 40.0;
    }
    let shown = &stacks.bars[..stacks.bars.len().min(MOST_BARS)];
    scene.text(stacks.title, (MARGIN, top - TITLE_LIFT), Anchor::Left, Font::bold(TICK_SIZE, TEXT));
    let width = |text: &str| font::width(text, TICK_SIZE, false);
    let names = shown.iter().map(|bar| width(&bar.name)).fold(0.0, f64::max);
    let notes = shown.iter().map(|bar| width(&bar.note)).fold(0.0, f64::max);
    let left = MARGIN + names + 12.0;
    let mut legend = MARGIN + font::width(stacks.title, TICK_SIZE, true) * 1.05 + 24.0;
    for (name, color) in &stacks.parts {
        scene.rect(Rect { left: legend, right: legend + 11.0, top: top - 20.0, bottom: top - 9.0 }, *color);
        scene.text(name.as_str(), (legend + 17.0, top - TITLE_LIFT), Anchor::Left, Font::regular(TICK_SIZE, TEXT));
        legend += 17.0 + width(name) * 1.05 + 16.0;
    }
    let longest = shown.iter().map(|bar| bar.parts.iter().sum::<f64>()).fold(0.0, f64::max);
    let unit = (scene.width - MARGIN - notes - 78.0 - left).max(50.0) / longest.max(f64::MIN_POSITIVE);
    let mut y = top + 6.0;
    for Stack { name, parts, note } in shown {
        let baseline = y + BAR - 2.0;
        scene.text(name.as_str(), (MARGIN, baseline), Anchor::Left, Font::regular(TICK_SIZE, TEXT));
        let mut x = left;
        for (part, &(_, color)) in parts.iter().zip(&stacks.parts) {
            let right = x + part.max(0.0) * unit;
            if right - x > 0.05 {
                scene.rect(Rect { left: x, right, top: y, bottom: y + BAR }, color);
            }
            x = right;
        }
        let total = human::seconds(parts.iter().sum());
        scene.text(total, (x + 6.0, baseline), Anchor::Left, Font::regular(TICK_SIZE, TEXT));
        let right = (scene.width - MARGIN, baseline);
        scene.text(note.as_str(), right, Anchor::Right, Font::regular(TICK_SIZE, MUTED));
        y += BAR_STEP;
    }
    if stacks.bars.len() > shown.len() {
        let (bar, table) = stacks.of;
        let more = human::counted((stacks.bars.len() - shown.len()) as u64, bar);
        let at = (MARGIN, y + 12.0);
        scene.text(format!("{more} more: {table}"), at, Anchor::Left, Font::regular(TICK_SIZE, MUTED));
        y += BAR_STEP;
    }
    y
}

#[cfg(test)]
mod tests {
    use super::super::data::{Line, LinePoint};
    use super::super::tests::assert_says;
    use super::*;

    fn chart() -> StudyChart {
        let point = |x: f64, y: f64| LinePoint { x, y, sd: 0.1 };
        let line = |name: &str, marked| Line {
            name: name.into(),
            points: vec![point(64.0, 19.0), point(128.0, 13.0), point(256.0, 11.0), point(512.0, 10.6)],
            marked,
        };
        let panel = |y: &str, marked| LinePanel {
            x: Quantity::new("Batch size", ""),
            y: Quantity::new(y, "s"),
            lines: vec![line("no workers", marked), line("2 workers", None)],
            from_zero: true,
        };
        let bars =
            vec![Stack { name: "64, no workers".into(), parts: vec![15.0, 3.0, 1.0], note: "12 page faults".into() }];
        let parts = vec![("read".into(), BLUE), ("decode".into(), VERMILLION), ("the rest".into(), MUTED)];
        StudyChart {
            title: "mnist_cpu".into(),
            summary: "cpu, batch size 512: 2 workers".into(),
            point: "mean of the epochs",
            panels: vec![panel("Epoch time", None), panel("Again", Some(2))],
            height: 230.0,
            predicted: [(100.0, 90.0), (200.0, 210.0)]
                .map(|(predicted, measured)| Predicted { predicted, measured, limit: 1 })
                .into(),
            limits: vec!["nothing overlaps".into(), "workers".into()],
            stacks: Stacks { title: "Where the time goes", parts, bars, of: ("cell", "epochs.parquet") },
            caption: vec!["60,000 drawn digits".into(), "Made by: batchstep plot results/mnist_cpu".into()],
        }
    }

    #[test]
    fn every_line_is_named_and_the_data_are_on_the_chart() {
        let wanted = [
            "2 workers",
            "64, no workers",
            "19.0 s",
            "60,000 drawn digits",
            "512",
            "workers that suffice",
            "mean of the epochs",
            "predicted limit: workers",
            "decode",
            "Predicted (images/s)",
        ];
        assert_says(&scene(&chart()), &wanted);
    }

    #[test]
    fn names_of_lines_that_end_together_do_not_overlap() {
        let scene = scene(&chart());
        let names: Vec<Rect> =
            scene.texts().filter(|text| text.text.ends_with("workers") && text.font.bold).map(|t| t.area()).collect();
        assert!(names.len() == 4 && !names[0].overlaps(&names[1]), "{names:?}");
    }
}
