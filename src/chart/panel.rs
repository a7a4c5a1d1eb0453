//! One panel: an area with two axes, its grid and its tick labels.

use super::axis::{Axis, AxisUnit, Scale, tick_labels, value_labels};
use super::data::{Line, Quantity};
use super::font;
use super::geometry::{DataPoint, Position, Rect};
use super::labels::spread;
use super::palette::{AXIS, Color, GRID, INK, TEXT};
use super::scene::{Anchor, Font, Scene};

/// The em of tick labels and axis titles.
pub const TICK_SIZE: f64 = 12.5;
/// The widest label beside the values of a panel that is not at the left edge of the figure.
const LABEL_ROOM: f64 = 58.0;
/// From the top of a panel up to the baseline of its title.
pub const TITLE_LIFT: f64 = 10.0;

/// From the lower edge of a panel to the title of the one below.
pub const ROW_GAP: f64 = 92.0;

/// The room on the right for the names of these lines.
pub fn widest_name(lines: &[Line]) -> f64 {
    lines.iter().map(|line| font::width(&line.name, TICK_SIZE, true)).fold(0.0, f64::max)
}

/// An area on the figure and the values it spans.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Panel {
    pub area: Rect,
    pub x: Axis,
    pub y: Axis,
}

impl Panel {
    pub fn at_x(&self, x: f64) -> f64 {
        self.area.left + self.x.position(x) * self.area.width()
    }

    pub fn at_y(&self, y: f64) -> f64 {
        self.area.bottom - self.y.position(y) * self.area.height()
    }

    pub fn at(&self, x: f64, y: f64) -> Position {
        (self.at_x(x), self.at_y(y))
    }

    /// As [`Panel::at`], moved to the edge where y is beyond it.
    pub fn at_clamped(&self, x: f64, y: f64) -> Position {
        (self.at_x(x), self.at_y(y).clamp(self.area.top, self.area.bottom))
    }

    /// Both axes: the values counted in this quantity, and these ticks along x, whose title is `x`.
    pub fn draw_axes(&self, scene: &mut Scene, quantity: &Quantity, ticks: &[f64], x: &str) {
        self.draw_y(scene, quantity, TITLE_LIFT);
        self.draw_x(scene, ticks);
        self.label_x(scene, ticks, &AxisUnit::none(), x);
    }

    /// The horizontal grid with its labels, and `lift` above the panel the title: `Step time (ms)`.
    pub fn draw_y(&self, scene: &mut Scene, quantity: &Quantity, lift: f64) {
        let most = (self.area.height() / 48.0).round().clamp(2.0, 7.0) as usize;
        let ticks = self.y.ticks(most);
        let largest = self.y.high.abs().max(self.y.low.abs());
        let unit = AxisUnit::of(largest, &quantity.unit);
        let unit = if self.y.scale == Scale::Linear { unit.in_powers(largest) } else { unit };
        let labels = value_labels(&ticks, unit.factor, self.y.scale);
        let widest = labels.iter().map(|label| font::width(label, TICK_SIZE, false)).fold(0.0, f64::max);
        let room = (self.area.left - 10.0).clamp(0.0, LABEL_ROOM);
        // Smaller, rather than cut off at the edge of the figure.
        let size = if widest > room { TICK_SIZE * room / widest } else { TICK_SIZE };
        for (tick, label) in ticks.iter().zip(labels) {
            let y = self.at_y(*tick);
            scene.line(vec![(self.area.left, y), (self.area.right, y)], 0.75, GRID);
            scene.text(label, (self.area.left - 8.0, y + 4.5), Anchor::Right, Font::regular(size, TEXT));
        }
        let at = (self.area.left, self.area.top - lift);
        scene.text(unit.title(&quantity.name), at, Anchor::Left, Font::bold(TICK_SIZE, TEXT));
    }

    /// The lower edge with a mark at each tick.
    pub fn draw_x(&self, scene: &mut Scene, ticks: &[f64]) {
        let bottom = self.area.bottom;
        scene.line(vec![(self.area.left, bottom), (self.area.right, bottom)], 1.0, AXIS);
        for &tick in ticks {
            let x = self.at_x(tick);
            scene.line(vec![(x, bottom), (x, bottom + 4.0)], 1.0, AXIS);
        }
    }

    /// The labels under the lower edge, those that would touch the one before or leave the figure left out, and the title.
    pub fn label_x(&self, scene: &mut Scene, ticks: &[f64], unit: &AxisUnit, title: &str) {
        let mut free = f64::NEG_INFINITY;
        for (tick, label) in ticks.iter().zip(tick_labels(ticks, unit.factor, self.x.scale)) {
            let (x, half) = (self.at_x(*tick), font::width(&label, TICK_SIZE, false) / 2.0);
            if x - half > free && x + half <= scene.width {
                free = x + half + 8.0;
                let font = Font::regular(TICK_SIZE, TEXT);
                scene.text(label, (x, self.area.bottom + 19.0), Anchor::Center, font);
            }
        }
        let middle = (self.area.left + self.area.right) / 2.0;
        scene.text(unit.title(title), (middle, self.area.bottom + 39.0), Anchor::Center, Font::bold(TICK_SIZE, TEXT));
    }

    /// Lines with the deviations of their points, where they have any, and their names at their ends.
    pub fn draw_lines(&self, scene: &mut Scene, lines: &[Line], colors: &[Color]) {
        // All deviations lie below all lines.
        for (line, color) in lines.iter().zip(colors.iter().cycle()) {
            for point in line.points.iter().filter(|point| point.sd > 0.0) {
                let ends = [-point.sd, point.sd].map(|off| self.at_clamped(point.x, point.y + off));
                scene.line(ends.to_vec(), 4.0, color.tint(0.3));
            }
        }
        for ((line, &color), place) in lines.iter().zip(colors.iter().cycle()).zip(self.places_of_names(lines)) {
            let at: Vec<_> = line.points.iter().map(|point| self.at_clamped(point.x, point.y)).collect();
            scene.line(at.clone(), 1.75, color);
            at.iter().for_each(|&at| scene.disc(at, 2.8, color));
            if let Some(&marked) = line.marked.and_then(|marked| at.get(marked)) {
                scene.ring(marked, 6.5, 1.6, INK);
            }
            scene.text(line.name.as_str(), place, Anchor::Left, Font::bold(TICK_SIZE, color));
        }
    }

    /// Where the names of lines stand, right of their ends and apart from each other.
    pub fn places_of_names(&self, lines: &[Line]) -> impl Iterator<Item = Position> {
        let end = |line: &Line| line.points.last().map_or(self.area.bottom, |last| self.at_clamped(last.x, last.y).1);
        let ends: Vec<f64> = lines.iter().map(end).collect();
        let left = self.area.right + 8.0;
        spread(&ends, 15.0, self.area.top, self.area.bottom).into_iter().map(move |y| (left, y + 4.5))
    }

    /// The pieces of the line through `values` that lie within the panel, cut where it crosses the upper or lower edge.
    pub fn clipped(&self, values: &[DataPoint]) -> Vec<Vec<Position>> {
        let mut pieces: Vec<Vec<Position>> = Vec::new();
        let (top, bottom) = (self.area.top, self.area.bottom);
        let spots: Vec<Position> = values.iter().map(|v| self.at(v.x, v.y)).collect();
        for pair in spots.windows(2) {
            let (a, b) = (pair[0], pair[1]);
            if a.1.max(b.1) < top || a.1.min(b.1) > bottom {
                continue;
            }
            let cut = |spot: Position| {
                let y = spot.1.clamp(top, bottom);
                if y == spot.1 { spot } else { (a.0 + (b.0 - a.0) * (y - a.1) / (b.1 - a.1), y) }
            };
            let (start, end) = (cut(a), cut(b));
            match pieces.last_mut() {
                Some(piece) if piece.last() == Some(&start) => piece.push(end),
                _ => pieces.push(vec![start, end]),
            }
        }
        pieces
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PANEL: Panel = Panel {
        area: Rect { left: 0.0, top: 0.0, right: 100.0, bottom: 50.0 },
        x: Axis { scale: Scale::Linear, low: 0.0, high: 10.0 },
        y: Axis { scale: Scale::Linear, low: 0.0, high: 5.0 },
    };

    #[test]
    fn values_lie_where_the_axes_say() {
        assert_eq!(PANEL.at(5.0, 0.0), (50.0, 50.0));
        assert_eq!(PANEL.at(10.0, 5.0), (100.0, 0.0));
        assert_eq!(PANEL.at_clamped(0.0, 7.0), (0.0, 0.0));
    }

    /// These at x = 0, 1, 2, ...
    fn values<const N: usize>(ys: [f64; N]) -> [DataPoint; N] {
        std::array::from_fn(|i| DataPoint { x: i as f64, y: ys[i] })
    }

    #[test]
    fn a_line_is_cut_at_the_edge_and_continues_behind_it() {
        let pieces = PANEL.clipped(&values([0.0, 10.0, 0.0, 1.0]));
        assert_eq!(pieces, [vec![(0.0, 50.0), (5.0, 0.0)], vec![(15.0, 0.0), (20.0, 50.0), (30.0, 40.0)]]);
        assert_eq!(PANEL.clipped(&values([6.0, 7.0])), Vec::<Vec<Position>>::new());
    }

    /// From a billionth to billions, with a unit that takes a prefix and with one that does not, also where the panel has little room.
    #[test]
    fn no_label_of_a_value_is_cut_off() {
        for (left, unit) in
            [48.0, 68.0].into_iter().flat_map(|left| ["", "s", "B/s", "tokens/s"].map(|unit| (left, unit)))
        {
            for power in -9..12 {
                for (scale, low) in [(Scale::Linear, 0.0), (Scale::Linear, 0.999), (Scale::Log, 1e-9)] {
                    let size = 10f64.powi(power);
                    let y = Axis { scale, low: low * 3.0 * size, high: 3.0 * size };
                    let area = Rect { left, right: 500.0, top: 40.0, bottom: 340.0 };
                    let mut scene = Scene::new(500.0, 400.0, "");
                    Panel { area, x: PANEL.x, y }.draw_y(&mut scene, &Quantity::new("Rate", unit), TITLE_LIFT);
                    let labels: Vec<_> = scene.texts().filter(|text| text.anchor == Anchor::Right).collect();
                    let numbers: std::collections::BTreeSet<_> = labels.iter().map(|label| &label.text).collect();
                    assert!(labels.len() > 1 && numbers.len() == labels.len(), "{unit} {y:?}: {numbers:?}");
                    assert!(labels.iter().all(|label| label.area().left >= 0.0), "{unit} {y:?}: {numbers:?}");
                }
            }
        }
    }

    #[test]
    fn tick_labels_do_not_touch() {
        let mut scene = Scene::new(100.0, 100.0, "");
        let ticks: Vec<f64> = (0..=100).map(|t| f64::from(t) / 10.0).collect();
        PANEL.label_x(&mut scene, &ticks, &AxisUnit::none(), "Batch size");
        let mut areas: Vec<Rect> = scene.texts().map(|t| t.area()).collect();
        areas.pop();
        assert!(areas.len() > 2 && areas.windows(2).all(|w| w[0].right < w[1].left), "{areas:?}");
    }
}
