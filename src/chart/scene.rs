//! A figure before it is painted: a list of primitives in figure units, knowing nothing of pixels or files.
//!
//! A unit is one pixel of the figure shown at its natural size. Figures are built as scenes so that tests can ask what is
//! on them (which texts, where) and both file formats show the same.

use super::font;
use super::geometry::{Position, Rect};
use super::palette::Color;
use crate::foreign;

/// Which end of a text its x is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Left,
    Center,
    Right,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Font {
    /// The em, in units.
    pub size: f64,
    pub bold: bool,
    pub color: Color,
}

impl Font {
    pub const fn regular(size: f64, color: Color) -> Self {
        Self { size, bold: false, color }
    }

    pub const fn bold(size: f64, color: Color) -> Self {
        Self { size, bold: true, color }
    }
}

/// One line of text; `at` is on its baseline.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    pub text: String,
    pub at: Position,
    pub anchor: Anchor,
    pub font: Font,
}

impl Text {
    /// The area it covers, from the height of capitals to the descenders.
    pub fn area(&self) -> Rect {
        let width = font::width(&self.text, self.font.size, self.font.bold);
        let left = match self.anchor {
            Anchor::Left => self.at.0,
            Anchor::Center => self.at.0 - width / 2.0,
            Anchor::Right => self.at.0 - width,
        };
        let (ascent, descent) = (font::CAP_HEIGHT * self.font.size, font::DESCENT * self.font.size);
        Rect { left, top: self.at.1 - ascent, right: left + width, bottom: self.at.1 + descent }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub enum Primitive {
    Line { points: Vec<Position>, width: f64, color: Color },
    Polygon { points: Vec<Position>, color: Color },
    Disc { center: Position, radius: f64, color: Color },
    Ring { center: Position, radius: f64, width: f64, color: Color },
    Text(Text),
}

/// A figure: its size and its primitives, the later ones on top.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    pub width: f64,
    pub height: f64,
    /// What a screen reader says.
    pub title: String,
    /// The width on paper, in points of 1/72 inch; `None`: a unit is a pixel.
    pub points: Option<f64>,
    pub primitives: Vec<Primitive>,
}

impl Scene {
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self { width, height, title: foreign::line(title).into_owned(), points: None, primitives: Vec::new() }
    }

    /// A line through `points`; fewer than two draw nothing.
    pub fn line(&mut self, points: Vec<Position>, width: f64, color: Color) {
        if points.len() > 1 {
            self.primitives.push(Primitive::Line { points, width, color });
        }
    }

    /// A dashed straight line: `dash` units drawn, as many left out.
    pub fn dashes(&mut self, from: Position, to: Position, dash: f64, width: f64, color: Color) {
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let along = |d: f64| (from.0 + (to.0 - from.0) * d / length, from.1 + (to.1 - from.1) * d / length);
        let mut start = 0.0;
        while start < length && dash > 0.0 {
            self.line(vec![along(start), along((start + dash).min(length))], width, color);
            start += 2.0 * dash;
        }
    }

    pub fn polygon(&mut self, points: Vec<Position>, color: Color) {
        if points.len() > 2 {
            self.primitives.push(Primitive::Polygon { points, color });
        }
    }

    pub fn rect(&mut self, area: Rect, color: Color) {
        let Rect { left, top, right, bottom } = area;
        self.polygon(vec![(left, top), (right, top), (right, bottom), (left, bottom)], color);
    }

    pub fn disc(&mut self, center: Position, radius: f64, color: Color) {
        self.primitives.push(Primitive::Disc { center, radius, color });
    }

    pub fn ring(&mut self, center: Position, radius: f64, width: f64, color: Color) {
        self.primitives.push(Primitive::Ring { center, radius, width, color });
    }

    pub fn text(&mut self, text: impl Into<String>, at: Position, anchor: Anchor, font: Font) {
        self.verbatim(&font::typeset(&text.into()), at, anchor, font);
    }

    /// A text that is copied, such as a command: no letter of it is set as another.
    pub fn verbatim(&mut self, text: &str, at: Position, anchor: Anchor, font: Font) {
        let text = foreign::line(text).into_owned();
        self.primitives.push(Primitive::Text(Text { text, at, anchor, font }));
    }

    /// The texts, in the order of painting.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.primitives.iter().filter_map(|primitive| match primitive {
            Primitive::Text(text) => Some(text),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::palette::INK;
    use super::*;

    #[test]
    fn dashes_cover_half_of_a_line() {
        let mut scene = Scene::new(100.0, 10.0, "");
        scene.dashes((0.0, 5.0), (20.0, 5.0), 2.0, 1.0, INK);
        assert_eq!(scene.primitives.len(), 5);
        scene.dashes((3.0, 5.0), (3.0, 5.0), 2.0, 1.0, INK);
        assert_eq!(scene.primitives.len(), 5, "a line without length has no dashes");
    }

    #[test]
    fn a_text_is_anchored_where_it_says() {
        let text = |anchor| Text { text: "16".into(), at: (50.0, 20.0), anchor, font: Font::regular(10.0, INK) }.area();
        let (left, right) = (text(Anchor::Left), text(Anchor::Right));
        assert_eq!((left.left, right.right), (50.0, 50.0));
        // Noto Sans' digits are 0.572 em wide.
        assert!((left.width() - 11.44).abs() < 0.05, "{}", left.width());
    }
}
