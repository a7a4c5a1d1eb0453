//! A figure before it is painted: a list of shapes in figure units, knowing nothing of pixels or files.
//!
//! A unit is one pixel of the figure shown at its natural size. Figures are built as scenes so that tests can ask what is
//! on them (which texts, where) and both file formats show the same.

use super::font;
use super::palette::Color;

/// A place on the figure: units from the left, units from the top.
pub type Spot = (f64, f64);

/// An upright rectangle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Rect {
    pub fn width(&self) -> f64 {
        self.right - self.left
    }

    pub fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// True where the two share an area.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.left < other.right && other.left < self.right && self.top < other.bottom && other.top < self.bottom
    }

    /// True where `other` lies within.
    pub fn contains(&self, other: &Self) -> bool {
        self.left <= other.left && other.right <= self.right && self.top <= other.top && other.bottom <= self.bottom
    }

    /// Larger by `margin` on every side.
    pub fn grown(&self, margin: f64) -> Self {
        Self {
            left: self.left - margin,
            top: self.top - margin,
            right: self.right + margin,
            bottom: self.bottom + margin,
        }
    }
}

/// Which end of a text its x is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Left,
    Center,
    Right,
}

/// How a text looks.
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
    pub at: Spot,
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

/// What can be painted.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    Line { points: Vec<Spot>, width: f64, color: Color },
    Polygon { points: Vec<Spot>, color: Color },
    Disc { center: Spot, radius: f64, color: Color },
    Ring { center: Spot, radius: f64, width: f64, color: Color },
    Text(Text),
}

/// A figure: its size and its shapes, the later ones on top.
#[derive(Clone, Debug, PartialEq)]
pub struct Scene {
    pub width: f64,
    pub height: f64,
    /// What a screen reader says.
    pub title: String,
    pub shapes: Vec<Shape>,
}

impl Scene {
    pub fn new(width: f64, height: f64, title: &str) -> Self {
        Self { width, height, title: title.to_string(), shapes: Vec::new() }
    }

    /// A line through `points`; fewer than two draw nothing.
    pub fn line(&mut self, points: Vec<Spot>, width: f64, color: Color) {
        if points.len() > 1 {
            self.shapes.push(Shape::Line { points, width, color });
        }
    }

    /// A dashed straight line: `dash` units drawn, as many left out.
    pub fn dashes(&mut self, from: Spot, to: Spot, dash: f64, line: (f64, Color)) {
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let along = |d: f64| (from.0 + (to.0 - from.0) * d / length, from.1 + (to.1 - from.1) * d / length);
        let mut start = 0.0;
        while start < length && dash > 0.0 {
            self.line(vec![along(start), along((start + dash).min(length))], line.0, line.1);
            start += 2.0 * dash;
        }
    }

    pub fn polygon(&mut self, points: Vec<Spot>, color: Color) {
        if points.len() > 2 {
            self.shapes.push(Shape::Polygon { points, color });
        }
    }

    pub fn rect(&mut self, area: Rect, color: Color) {
        let Rect { left, top, right, bottom } = area;
        self.polygon(vec![(left, top), (right, top), (right, bottom), (left, bottom)], color);
    }

    pub fn disc(&mut self, center: Spot, radius: f64, color: Color) {
        self.shapes.push(Shape::Disc { center, radius, color });
    }

    pub fn ring(&mut self, center: Spot, radius: f64, width: f64, color: Color) {
        self.shapes.push(Shape::Ring { center, radius, width, color });
    }

    pub fn text(&mut self, text: impl Into<String>, at: Spot, anchor: Anchor, font: Font) {
        self.shapes.push(Shape::Text(Text { text: font::typeset(&text.into()), at, anchor, font }));
    }

    /// The texts, in the order of painting.
    pub fn texts(&self) -> impl Iterator<Item = &Text> {
        self.shapes.iter().filter_map(|shape| match shape {
            Shape::Text(text) => Some(text),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::palette::INK;
    use super::*;

    #[test]
    fn rectangles_that_only_touch_do_not_overlap() {
        let left = Rect { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };
        let right = Rect { left: 10.0, right: 20.0, ..left };
        assert!(!left.overlaps(&right));
        assert!(left.overlaps(&right.grown(0.1)));
        assert!(left.grown(1.0).contains(&left));
    }

    #[test]
    fn dashes_cover_half_of_a_line() {
        let mut scene = Scene::new(100.0, 10.0, "");
        scene.dashes((0.0, 5.0), (20.0, 5.0), 2.0, (1.0, INK));
        assert_eq!(scene.shapes.len(), 5);
        scene.dashes((3.0, 5.0), (3.0, 5.0), 2.0, (1.0, INK));
        assert_eq!(scene.shapes.len(), 5, "a line without length has no dashes");
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
