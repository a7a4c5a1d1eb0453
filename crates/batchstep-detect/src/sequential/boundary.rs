//! The gap at one boundary: between two short curves, one on each side, and what it says for and against a jump.
//!
//! A bend near a boundary looks like a gap to two straight lines. So the gap is measured under several shapes: two lines, two lines with a
//! bend at any inner cell of either side, and two parabolas; and in each at three places between the two cells, since it is not known
//! where a bend at the boundary itself lies.

use super::levels::Level;
use crate::stats::regression::Triangle;

/// Log-likelihood that a bend must gain before it is preferred to lines: chi-squared of 9 for its one or two terms.
const BEND: f64 = 4.5;
/// Cells on each side for a parabola.
const CURVED: usize = 5;

/// A cell's level near a boundary.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub x: f64,
    pub level: Level,
}

/// The cells beside a boundary, nearest first on both sides.
#[derive(Clone, Debug, Default)]
pub(super) struct Window {
    pub left: Vec<Point>,
    pub right: Vec<Point>,
}

/// The gap at one place under one shape, as a share of the level.
#[derive(Clone, Copy, Debug)]
pub(super) struct Gap {
    size: f64,
    variance: f64,
    /// What of the variance is roughness, which no visit reduces.
    rough: f64,
}

/// The gaps under one shape, and its log-likelihood.
#[derive(Clone, Copy, Debug)]
struct Shape {
    gaps: [Gap; 3],
    likelihood: f64,
}

/// The evidence on a boundary: its gaps under all shapes, two lines first.
#[derive(Clone, Debug)]
pub(super) struct Evidence {
    shapes: Vec<Shape>,
}

/// One side's curve: its values at the three places, relative to a common level.
#[derive(Clone, Copy, Debug)]
struct Side {
    values: [Gap; 3],
    likelihood: f64,
}

/// The curves of one side, if there are enough cells for them.
struct SideCurves {
    line: Side,
    bent: Vec<Side>,
    parabola: Option<Side>,
}

impl Window {
    /// `None` where the cells do not determine two lines.
    pub fn evidence(&self) -> Option<Evidence> {
        let (near, far) = (self.left[0], self.right[0]);
        let places = [near.x, 0.5 * (near.x + far.x), far.x];
        let left = sides(&self.left, places, near.level.log)?;
        let right = sides(&self.right, places, near.level.log)?;
        let mut shapes = vec![shape(&left.line, &right.line)];
        shapes.extend(left.bent.iter().map(|side| shape(side, &right.line)));
        shapes.extend(right.bent.iter().map(|side| shape(&left.line, side)));
        shapes.extend(left.parabola.iter().zip(&right.parabola).map(|(left, right)| shape(left, right)));
        Some(Evidence { shapes })
    }
}

fn shape(left: &Side, right: &Side) -> Shape {
    let gap = |i: usize| {
        let (l, r) = (left.values[i], right.values[i]);
        Gap { size: r.size - l.size, variance: l.variance + r.variance, rough: l.rough + r.rough }
    };
    Shape { gaps: [gap(0), gap(1), gap(2)], likelihood: left.likelihood + right.likelihood }
}

/// Values are relative to the level exp(`level`): times add up, so a straight line in x is straight in seconds and not in their logarithm.
fn sides(points: &[Point], places: [f64; 3], level: f64) -> Option<SideCurves> {
    let origin = points[0].x;
    let span = (points[points.len() - 1].x - origin).abs().max(f64::MIN_POSITIVE);
    let unit = |x: f64| (x - origin) / span;
    let fitted = |further: Option<&dyn Fn(f64) -> f64>| {
        let row =
            |x: f64| -> Vec<f64> { [1.0, unit(x)].into_iter().chain(further.map(|term| term(unit(x)))).collect() };
        fit(points, places, level, &row)
    };
    // The bent part lies away from the boundary or towards it: the same curves.
    let bent = |bend: &Point| fitted(Some(&|u: f64| (u.abs() - unit(bend.x).abs()).max(0.0)));
    let inner = if points.len() > 3 { &points[1..points.len() - 1] } else { &[] };
    let parabola = if points.len() >= CURVED { fitted(Some(&|u: f64| u * u)) } else { None };
    Some(SideCurves { line: fitted(None)?, bent: inner.iter().filter_map(bent).collect(), parabola })
}

/// The weighted least-squares fit of the terms in `row`, evaluated at the places.
fn fit(points: &[Point], places: [f64; 3], level: f64, row: &dyn Fn(f64) -> Vec<f64>) -> Option<Side> {
    let rows: Vec<Vec<f64>> = points.iter().map(|point| row(point.x)).collect();
    let y: Vec<f64> = points.iter().map(|point| (point.level.log - level).exp()).collect();
    let variance: Vec<f64> =
        points.iter().zip(&y).map(|(point, y)| y * y * (point.level.variance + point.level.roughness)).collect();
    let p = rows[0].len();
    let sum = |of: &dyn Fn(usize) -> f64| (0..points.len()).map(|i| of(i) / variance[i]).sum::<f64>();
    let triangle = Triangle::of(p, |a, b| sum(&|i| rows[i][a] * rows[i][b]))?;
    let mut coefficients: Vec<f64> = (0..p).map(|a| sum(&|i| rows[i][a] * y[i])).collect();
    triangle.solve(&mut coefficients);
    let at = |row: &[f64]| row.iter().zip(&coefficients).map(|(r, c)| r * c).sum::<f64>();
    let value = |place: f64| {
        let row = row(place);
        let mut weights = row.clone();
        triangle.solve(&mut weights);
        // The value is a weighted sum of the points; w_i is the weight of the i-th.
        let (mut total, mut rough) = (0.0, 0.0);
        for i in 0..points.len() {
            let w = rows[i].iter().zip(&weights).map(|(a, b)| a * b).sum::<f64>() / variance[i];
            total += w * w * variance[i];
            rough += w * w * y[i] * y[i] * points[i].level.roughness;
        }
        Gap { size: at(&row), variance: total, rough }
    };
    let likelihood = -0.5 * sum(&|i| (y[i] - at(&rows[i])).powi(2));
    Some(Side { values: places.map(value), likelihood })
}

impl Gap {
    /// The log-likelihood ratios of a jump of `jump` up and down against none.
    pub fn ratios(self, jump: f64) -> [f64; 2] {
        let information = 1.0 / self.variance;
        [1.0, -1.0].map(|sign| sign * jump * self.size * information - 0.5 * jump * jump * information)
    }
}

impl Evidence {
    pub fn lines(&self) -> Gap {
        self.shapes[0].gaps[1]
    }

    /// The gap between two lines in standard errors.
    pub fn z(&self) -> f64 {
        self.lines().size / self.error()
    }

    /// The standard error of the gap between two lines, as a share of the level.
    pub fn error(&self) -> f64 {
        self.lines().variance.sqrt()
    }

    /// ln of the e-value of a jump of `jump`, up or down with equal probability: the smallest over all shapes; minus infinity where they
    /// disagree on its sign.
    pub fn for_jump(&self, jump: f64) -> f64 {
        let gaps = || self.shapes.iter().flat_map(|shape| shape.gaps);
        let up = gaps().next().is_some_and(|gap| gap.size > 0.0);
        if gaps().any(|gap| (gap.size > 0.0) != up) {
            return f64::NEG_INFINITY;
        }
        let mixture = |gap: Gap| {
            let [a, b] = gap.ratios(jump);
            a.max(b) + ((-(a - b).abs()).exp().ln_1p()) - std::f64::consts::LN_2
        };
        gaps().map(mixture).fold(f64::INFINITY, f64::min)
    }

    /// The larger log-likelihood ratio of a jump of `jump`, up or down, in the shape that the data prefer, at the place where its gap is smallest.
    pub fn against_jump(&self, jump: f64) -> f64 {
        let [a, b] = self.preferred().ratios(jump);
        a.max(b)
    }

    /// Whether even without noise the roughness of the curve would leave a jump of `jump` undecided, and the noise is below it.
    pub fn is_limited_by_roughness(&self, jump: f64) -> bool {
        let gap = self.preferred();
        // No jump is decided at the information -2 ln 0.05 / jump^2, about 6 / jump^2.
        gap.rough > jump * jump / 6.0 && gap.rough > 0.8 * gap.variance
    }

    fn preferred(&self) -> Gap {
        let support = |place: &usize| self.shapes[*place].likelihood - if *place > 0 { BEND } else { 0.0 };
        let best = (0..self.shapes.len()).max_by(|a, b| support(a).total_cmp(&support(b))).unwrap_or(0);
        let best = &self.shapes[best];
        let mut least = best.gaps[1];
        for gap in best.gaps {
            if gap.size.abs() < least.size.abs() {
                least = gap;
            }
        }
        if best.gaps[0].size.signum() != best.gaps[2].size.signum() {
            least.size = 0.0;
        }
        least
    }
}
