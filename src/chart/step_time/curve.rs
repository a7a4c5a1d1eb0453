//! One series ready to draw: its usable points, the fitted line in its pieces, and the places of its jumps.

use std::ops::Range;

use crate::chart::axis::Scale;
use crate::chart::data::ChartSeries;
use crate::chart::geometry::DataPoint;
use crate::chart::palette::Color;
use crate::detect::{Jump, Point};
use crate::words::Repeated;

pub struct ColouredSeries<'a> {
    pub series: &'a ChartSeries,
    pub color: Color,
    pub jump_color: Color,
    /// Points with a finite x and center, in the order of x.
    pub points: Vec<Point>,
    scale: Scale,
}

/// A jump's place: between two batch sizes, from the line before to the line after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    pub x: f64,
    pub from: f64,
    pub to: f64,
    /// The places that it may have; a single place if the data are certain.
    pub places: Range<f64>,
    pub jump: Jump,
}

impl<'a> ColouredSeries<'a> {
    pub fn new(series: &'a ChartSeries, color: Color, jump_color: Color, scale: Scale) -> Self {
        let usable = |p: &&Point| {
            p.x.is_finite() && p.center.is_finite() && (scale == Scale::Linear || (p.x > 0.0 && p.center > 0.0))
        };
        let mut points: Vec<Point> = series.findings.points.iter().filter(usable).cloned().collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        for point in &mut points {
            // An interval that could not be computed is drawn as none.
            point.low = if point.low.is_finite() { point.low.min(point.center) } else { point.center };
            point.high = if point.high.is_finite() { point.high.max(point.center) } else { point.center };
        }
        Self { series, color, jump_color, points, scale }
    }

    /// The x halfway, as the axis shows it, from the batch size `x` to the next one; `x` itself at the end.
    pub fn behind(&self, x: f64) -> f64 {
        let next = self.points.iter().map(|p| p.x).find(|&next| next > x);
        match (next, self.scale) {
            (Some(next), Scale::Linear) => (x + next) / 2.0,
            (Some(next), Scale::Log) => (x * next).sqrt(),
            (None, _) => x,
        }
    }

    /// The fitted line between two jumps, each piece continued to the middle of its gaps.
    pub fn pieces(&self) -> Vec<Vec<DataPoint>> {
        let fitted: Vec<DataPoint> =
            self.points.iter().filter(|p| p.fit.is_finite()).map(|p| DataPoint { x: p.x, y: p.fit }).collect();
        let jumps = &self.series.findings.jumps;
        let mut pieces: Vec<Vec<DataPoint>> = Vec::new();
        for (i, &point) in fitted.iter().enumerate() {
            let starts = i == 0 || jumps.iter().any(|j| fitted[i - 1].x <= j.after && j.after < point.x);
            match pieces.last_mut() {
                Some(piece) if !starts => piece.push(point),
                _ => pieces.push(vec![point]),
            }
        }
        for i in 1..pieces.len() {
            let middle = self.behind(pieces[i - 1][pieces[i - 1].len() - 1].x);
            let at_middle =
                |pair: Option<&[DataPoint; 2]>, only: DataPoint| pair.map_or(only.y, |[a, b]| through(*a, *b, middle));
            let before = at_middle(pieces[i - 1].last_chunk(), pieces[i - 1][0]);
            let after = at_middle(pieces[i].first_chunk(), pieces[i][0]);
            pieces[i - 1].push(DataPoint { x: middle, y: before });
            pieces[i].insert(0, DataPoint { x: middle, y: after });
        }
        pieces
    }

    /// The jumps with a line on both sides; the others cannot be drawn.
    pub fn gaps(&self) -> Vec<Gap> {
        let pieces = self.pieces();
        let gap = |pair: &[Vec<DataPoint>]| {
            let (before, after) = (pair[0][pair[0].len() - 1], pair[1][0]);
            let last = pair[0][pair[0].len().saturating_sub(2)].x;
            let jump = self.series.findings.jumps.iter().find(|j| last <= j.after && j.after < pair[1][1].x)?;
            let places = self.behind(jump.after_low)..self.behind(jump.after_high);
            Some(Gap { x: before.x, from: before.y, to: after.y, places, jump: jump.clone() })
        };
        pieces.windows(2).filter_map(gap).collect()
    }

    /// The gaps that are no members of a staircase of many steps, which is described in words.
    pub fn single_gaps(&self) -> Vec<Gap> {
        let repeated = Repeated::of(&self.series.findings);
        let single = |gap: &Gap| repeated.as_ref().is_none_or(|repeated| !repeated.holds(&gap.jump));
        self.gaps().into_iter().filter(single).collect()
    }

    /// The fitted line's value at `x`, between the points that have one.
    pub fn fit_at(&self, x: f64) -> Option<f64> {
        let inside = |piece: &Vec<DataPoint>| {
            let pair = piece.windows(2).find(|pair| pair[0].x <= x && x <= pair[1].x)?;
            Some(through(pair[0], pair[1], x))
        };
        self.pieces().iter().find_map(inside)
    }
}

/// The line through two points, at `x`.
fn through(a: DataPoint, b: DataPoint, x: f64) -> f64 {
    if a.x == b.x { a.y } else { a.y + (b.y - a.y) * (x - a.x) / (b.x - a.x) }
}
