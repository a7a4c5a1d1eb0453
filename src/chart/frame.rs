//! What surrounds the panels: title, summary, legend, caption.

use super::font;
use super::geometry::{Position, Rect};
use super::palette::{Color, INK, MUTED, TEXT};
use super::scene::{Anchor, Font, Scene};

/// The left edge of titles and captions.
pub const MARGIN: f64 = 24.0;
const TITLE_SIZE: f64 = 21.0;
const SUMMARY_SIZE: f64 = 14.0;
const KEY_SIZE: f64 = 12.5;
const CAPTION_SIZE: f64 = 11.5;
/// The share of its room that a line takes: a viewer of an SVG may lack the font, and another one is wider.
const WRAP: f64 = 0.9;

/// A mark of a legend, drawn by the same code as in the panel where it is a single mark.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Mark {
    Dot(Color),
    Ring(Color),
    Line(Color),
    Interval(Color),
    /// The two ends of a line and the gap between.
    Gap(Color),
    Places(Color),
    Diamond(Color),
    Dashes(Color),
    Periodic(Color),
    Beyond(Color),
    Shade(Color),
}

impl Mark {
    /// The room it takes in a legend.
    fn width(self) -> f64 {
        match self {
            Self::Line(_) | Self::Interval(_) | Self::Periodic(_) | Self::Places(_) | Self::Shade(_) => 20.0,
            _ => 10.0,
        }
    }

    /// Draws it about `at`, about 20 units wide.
    pub fn draw(self, scene: &mut Scene, at: Position) {
        let (x, y) = at;
        match self {
            Self::Dot(color) => scene.disc(at, 2.8, color),
            Self::Ring(color) => scene.ring(at, 3.0, 1.2, color),
            Self::Line(color) => scene.line(vec![(x - 10.0, y), (x + 10.0, y)], 1.75, color),
            Self::Interval(color) => {
                let band = Rect { left: x - 10.0, right: x + 10.0, top: y - 4.0, bottom: y + 4.0 };
                scene.rect(band, color.tint(0.25));
                scene.disc(at, 2.8, color);
            }
            Self::Gap(color) => gap(scene, x, y + 5.0, y - 5.0, color),
            Self::Places(color) => whisker(scene, at, x - 8.0..x + 8.0, color),
            Self::Diamond(color) => diamond(scene, at, color),
            Self::Dashes(color) => scene.dashes((x, y - 8.0), (x, y + 8.0), 2.5, 1.25, color),
            Self::Periodic(color) => {
                for tooth in [-7.0, 0.0, 7.0] {
                    scene.line(vec![(x + tooth, y - 3.5), (x + tooth, y + 3.5)], 1.5, color);
                }
            }
            Self::Beyond(color) => beyond(scene, at, color),
            Self::Shade(color) => {
                scene.rect(Rect { left: x - 10.0, right: x + 10.0, top: y - 6.0, bottom: y + 6.0 }, color);
            }
        }
    }
}

/// A jump: from the end of one line to the start of the next, with both ends marked.
pub fn gap(scene: &mut Scene, x: f64, from: f64, to: f64, color: Color) {
    scene.line(vec![(x, from), (x, to)], 2.25, color);
    for y in [from, to] {
        scene.line(vec![(x - 4.0, y), (x + 4.0, y)], 1.75, color);
    }
}

/// The interval of a jump's place: a horizontal whisker through its mark.
pub fn whisker(scene: &mut Scene, at: Position, places: std::ops::Range<f64>, color: Color) {
    scene.line(vec![(places.start, at.1), (places.end, at.1)], 1.25, color);
    for end in [places.start, places.end] {
        scene.line(vec![(end, at.1 - 3.5), (end, at.1 + 3.5)], 1.25, color);
    }
}

pub fn diamond(scene: &mut Scene, at: Position, color: Color) {
    let around = |r: f64| vec![(at.0, at.1 - r), (at.0 + r, at.1), (at.0, at.1 + r), (at.0 - r, at.1)];
    scene.polygon(around(5.5), color);
    scene.polygon(around(3.2), super::palette::WHITE);
}

/// A value beyond the axis: a small triangle pointing there.
pub fn beyond(scene: &mut Scene, at: Position, color: Color) {
    scene.polygon(vec![(at.0 - 3.2, at.1 + 3.0), (at.0 + 3.2, at.1 + 3.0), (at.0, at.1 - 3.0)], color);
}

pub type LegendEntry = (Mark, String);

/// Draws title, summary and legend from the top; gives the y where they end.
pub fn header(scene: &mut Scene, title: &str, summary: &str, keys: &[LegendEntry]) -> f64 {
    let limit = (scene.width - 2.0 * MARGIN) * WRAP;
    let mut y = 4.0 + paragraph(scene, title, ((MARGIN, 14.0), limit), Font::bold(TITLE_SIZE, INK), 26.0);
    if !summary.is_empty() {
        y = paragraph(scene, summary, ((MARGIN, y), limit), Font::regular(SUMMARY_SIZE, TEXT), 20.0);
    }
    if !keys.is_empty() {
        y = legend(scene, y + 26.0, keys, MARGIN);
    }
    y
}

/// The same for a column of a paper, whose caption says the rest.
pub fn small_header(scene: &mut Scene, title: &str, keys: &[LegendEntry]) -> f64 {
    let mut y = 0.0;
    if !title.is_empty() {
        let limit = (scene.width - 16.0) * WRAP;
        y = paragraph(scene, title, ((4.0, y), limit), Font::bold(SUMMARY_SIZE, INK), 18.0);
    }
    legend(scene, y + 18.0, keys, 4.0)
}

/// The lines of a text below a place, no wider than a limit and one `step` apart; gives where they end.
fn paragraph(scene: &mut Scene, text: &str, ((left, mut y), limit): (Position, f64), look: Font, step: f64) -> f64 {
    for line in font::wrap(text, (look.size, look.bold), limit) {
        y += step;
        scene.text(line, (left, y), Anchor::Left, look);
    }
    y
}

fn legend(scene: &mut Scene, top: f64, keys: &[LegendEntry], margin: f64) -> f64 {
    let (mut x, mut y) = (margin, top);
    for (mark, label) in keys {
        let room = mark.width();
        let width = room + 7.0 + font::width(label, KEY_SIZE, false) * 1.04;
        if x > margin && x + width > scene.width - margin {
            (x, y) = (margin, y + 20.0);
        }
        mark.draw(scene, (x + room / 2.0, y - 4.5));
        scene.text(label.as_str(), (x + room + 7.0, y), Anchor::Left, Font::regular(KEY_SIZE, TEXT));
        x += width + 18.0;
    }
    y
}

/// Draws these paragraphs from `top` and ends the figure below them.
pub fn caption(scene: &mut Scene, top: f64, texts: &[String]) {
    let limit = (scene.width - 2.0 * MARGIN) * 0.94;
    let mut y = top;
    for text in texts {
        let (look, is_command) = (Font::regular(CAPTION_SIZE, MUTED), text.starts_with("Made by: "));
        for line in font::wrap(text, (CAPTION_SIZE, false), limit) {
            if is_command {
                scene.verbatim(&line, (MARGIN, y), Anchor::Left, look);
            } else {
                scene.text(line, (MARGIN, y), Anchor::Left, look);
            }
            y += 16.5;
        }
    }
    scene.height = (y + 4.0).ceil();
}
