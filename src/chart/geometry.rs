//! Positions and rectangles in figure units.

/// A position on the figure: units from the left, units from the top.
pub type Position = (f64, f64);

/// A point in the units of the axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DataPoint {
    pub x: f64,
    pub y: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rect {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

impl Rect {
    /// What lies within `reach` of a position, to the sides and up and down.
    pub fn about((x, y): Position, reach: f64) -> Self {
        Self { left: x, right: x, top: y, bottom: y }.grown(reach)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rectangles_that_only_touch_do_not_overlap() {
        let left = Rect { left: 0.0, top: 0.0, right: 10.0, bottom: 10.0 };
        let right = Rect { left: 10.0, right: 20.0, ..left };
        assert!(!left.overlaps(&right));
        assert!(left.overlaps(&right.grown(0.1)));
        assert!(left.grown(1.0).contains(&left));
    }
}
