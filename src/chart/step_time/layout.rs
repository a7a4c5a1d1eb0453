//! Where the panels lie: pairs of an upper and a lower one, in columns.

use crate::chart::font;
use crate::chart::frame::MARGIN;
use crate::chart::geometry::Rect;
use crate::chart::panel::TICK_SIZE;

/// The gap between the panels of a pair, and between a pair and the next one below.
const PAIR_GAP: f64 = 36.0;
const ROW_GAP: f64 = 100.0;
/// Between a panel and the strip below it.
const STRIP_GAP: f64 = 8.0;

/// Pairs of panels, arranged in rows and columns.
pub struct Layout {
    pub columns: usize,
    rows: usize,
    pub width: f64,
    /// Left and right of all pairs.
    margins: [f64; 2],
    /// The heights of an upper and a lower panel.
    heights: [f64; 2],
    /// Where the first row begins.
    pub top: f64,
    lower: bool,
    /// Height of a strip between the two panels; 0: none.
    pub strip: f64,
    names: f64,
}

/// The areas of one pair.
#[derive(Clone, Copy)]
pub struct Areas {
    pub upper: Rect,
    /// Without height where there is no strip.
    pub strip: Rect,
    pub lower: Option<Rect>,
}

impl Layout {
    /// In a `column` of a paper so wide, one pair is under the other.
    pub fn of(pairs: usize, lower: bool, column: Option<f64>) -> Self {
        let columns = match pairs {
            _ if column.is_some() => 1,
            0 | 1 => 1,
            2 | 4 => 2,
            _ => 3,
        };
        let (width, margins, heights) = match (column, columns) {
            (Some(width), _) => {
                (width, [4.0, 0.0], [(0.45 * width).clamp(150.0, 340.0), (0.2 * width).clamp(70.0, 130.0)])
            }
            (None, 1) => (1000.0, [MARGIN, MARGIN], [340.0, 130.0]),
            (None, _) => (1200.0, [MARGIN, MARGIN], [240.0, 100.0]),
        };
        let rows = pairs.div_ceil(columns).max(1);
        Self { columns, rows, width, margins, heights, top: 0.0, lower, strip: 0.0, names: 0.0 }
    }

    /// Room on the right for the longest of these names.
    pub fn make_room_for<'a>(&mut self, names: impl Iterator<Item = &'a str>) {
        self.names = names.map(|name| font::width(name, TICK_SIZE, true)).fold(0.0, f64::max) + 10.0;
    }

    pub fn areas(&self, pair: usize) -> Areas {
        let [upper, lower] = self.heights;
        let strip = if self.strip > 0.0 { STRIP_GAP + self.strip } else { 0.0 };
        let row = upper + strip + if self.lower { PAIR_GAP + lower } else { 0.0 };
        let titles = if self.columns > 1 || self.rows > 1 { 22.0 } else { 0.0 };
        let width = (self.width - self.margins[1]) / self.columns as f64;
        let left = (pair % self.columns) as f64 * width + self.margins[0] + 44.0;
        let right = (pair % self.columns + 1) as f64 * width - 6.0 - self.names;
        let top = self.top + titles + (pair / self.columns) as f64 * (row + ROW_GAP);
        let upper = Rect { left, right, top, bottom: top + upper };
        let end = upper.bottom + strip;
        let strip = Rect { top: end - self.strip, bottom: end, ..upper };
        let below = Rect { top: end + PAIR_GAP, bottom: end + PAIR_GAP + lower, ..upper };
        Areas { upper, strip, lower: self.lower.then_some(below) }
    }

    /// Where the caption starts.
    pub fn bottom(&self) -> f64 {
        let Areas { strip, lower, .. } = self.areas((self.rows - 1) * self.columns);
        lower.unwrap_or(strip).bottom + 74.0
    }
}
