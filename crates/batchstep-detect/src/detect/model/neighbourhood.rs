//! What the points around a boundary show of a jump, whatever the model does far away.

use super::candidates::{EDGE, Term};
use super::fit::Model;

/// The number of points on each side in the local test.
const WINDOW: usize = 16;

/// The jump after `k` in standard errors of [`local_size`]; 0 if that gives no answer.
///
/// A model can be wrong far away and make a step look certain; this test depends on nearby points only.
pub(crate) fn local_z(model: &Model, y: &[f64], k: usize) -> f64 {
    local_size(model, y, k).map_or(0.0, |local| local.size.abs() / local.error)
}

/// What the points around a boundary show of a jump by themselves.
pub(crate) struct Local {
    pub size: f64,
    /// Standard error of the size.
    pub error: f64,
    /// Degrees of freedom of the error.
    pub freedom: f64,
}

/// The jump after `k` from two straight lines over at most sixteen points on each side, not
/// beyond the next event, both extended to k + 1. If one side has fewer than six points, both lines have the same
/// slope.
///
/// If these points scatter more about the lines than all points about the model, their own dispersion counts, as far as
/// there are enough of them.
pub(crate) fn local_size(model: &Model, y: &[f64], k: usize) -> Option<Local> {
    let neighbourhood = Neighbourhood::new(model, k);
    let (left, right) =
        (neighbourhood.side(y, neighbourhood.from..k + 1), neighbourhood.side(y, k + 1..neighbourhood.to));
    let at = model.problem.candidates.t[k + 1];
    let own = left.count.min(right.count) >= OWN_SLOPE;
    let found = if own { Side::gap(&left, &right, at) } else { Side::gap_of_one_slope(&left, &right) };
    let (size, variance, rss) = found?;
    let freedom = PRIOR + ((left.count + right.count) as f64 - if own { 4.0 } else { 3.0 }).max(0.0);
    let whole = model.dispersion();
    let dispersion = (PRIOR * whole + rss) / freedom;
    let error = (variance * dispersion.max(whole) / whole).sqrt() * model.spread();
    Some(Local { size, error, freedom })
}

/// Two straight lines around a boundary that meet between its two points, so that the curve bends there and does not jump.
pub(crate) struct Bend {
    /// Where they meet, from 0 at the point before to 1 at the point after.
    pub share: f64,
    /// Their slopes, per unit of t.
    pub slopes: [f64; 2],
}

/// Distances beyond the two points up to which lines that meet make a bend: noise moves the place of a bend by a point.
const BESIDE: f64 = 1.0;

/// The bend between `k` and k + 1, if the lines of [`local_size`] meet there within `doubt` standard errors of their gap; `None` where a side has too
/// few points for a slope of its own.
pub(crate) fn bend(model: &Model, y: &[f64], k: usize, doubt: f64) -> Option<Bend> {
    let Local { size: gap, error, .. } = local_size(model, y, k)?;
    let neighbourhood = Neighbourhood::new(model, k);
    let sides = [neighbourhood.side(y, neighbourhood.from..k + 1), neighbourhood.side(y, k + 1..neighbourhood.to)];
    let slopes = sides.each_ref().map(|side| side.ty / side.tt);
    // How far the two slopes part over the distance of the two points.
    let change = (slopes[1] - slopes[0]) * (neighbourhood.t[k + 1] - neighbourhood.t[k]);
    let share = 1.0 - gap / change;
    let meet = sides.iter().all(|side| side.count >= OWN_SLOPE)
        && change.abs() > error
        && (share - 0.5).abs() < 0.5 + BESIDE + doubt * error / change.abs();
    meet.then_some(Bend { share, slopes })
}

/// The fewest points of a side for its line to have its own slope.
pub(crate) const OWN_SLOPE: usize = 6;
/// The weight of the whole series' dispersion, in degrees of freedom, compared with that of the neighbours.
const PRIOR: f64 = 6.0;
/// At most one in this many neighbours may be off for the others to count as a curve; with more, the curve is rough
/// there.
const SELDOM_OFF: usize = 5;

/// The points around a boundary without another event among them.
struct Neighbourhood<'m> {
    t: &'m [f64],
    from: usize,
    to: usize,
    /// The reciprocal of the variance, from `from` on; 0 if a point is off.
    weight: Vec<f64>,
}

/// Weighted sums of the points on one side.
struct Side {
    count: usize,
    total: f64,
    t: f64,
    y: f64,
    tt: f64,
    ty: f64,
    yy: f64,
}

impl<'m> Neighbourhood<'m> {
    fn new(model: &Model<'m, '_>, k: usize) -> Self {
        let candidates = model.problem.candidates;
        let (from, to) = neighbourhood(model, k);
        let is_off = off_by(model, 0.0)[from..to].to_vec();
        let is_spike = |i: &usize| model.problem.spikes.contains(i);
        let disturbed = (from..to).filter(|i| is_off[i - from] && !is_spike(i)).count();
        let rough = disturbed * SELDOM_OFF > is_off.len();
        let weight =
            |(i, off): (usize, &bool)| if *off && !rough { 0.0 } else { model.problem.factor[from + i].powi(2) };
        Self { t: &candidates.t, from, to, weight: is_off.iter().enumerate().map(weight).collect() }
    }

    fn side(&self, y: &[f64], range: std::ops::Range<usize>) -> Side {
        let points =
            || range.clone().map(|i| (self.t[i], y[i], self.weight[i - self.from])).filter(|(_, _, w)| *w > 0.0);
        let total: f64 = points().map(|(_, _, w)| w).sum();
        let t = points().map(|(t, _, w)| w * t).sum::<f64>() / total;
        let mean = points().map(|(_, y, w)| w * y).sum::<f64>() / total;
        let sum = |of: &dyn Fn(f64, f64) -> f64| points().map(|(at, y, w)| w * of(at - t, y - mean)).sum();
        Side {
            count: points().count(),
            total,
            t,
            y: mean,
            tt: sum(&|t, _| t * t),
            ty: sum(&|t, y| t * y),
            yy: sum(&|_, y| y * y),
        }
    }
}

impl Side {
    /// The distance of the lines of two sides at `at`: the gap, its variance at dispersion one, and the residual sum of
    /// squares.
    fn gap(left: &Self, right: &Self, at: f64) -> Option<(f64, f64, f64)> {
        let value = |side: &Self| {
            let slope = side.ty / side.tt;
            (
                side.y + slope * (at - side.t),
                1.0 / side.total + (at - side.t).powi(2) / side.tt,
                side.yy - slope * side.ty,
            )
        };
        let ((a, var_a, rss_a), (b, var_b, rss_b)) = (value(left), value(right));
        let variance = var_a + var_b;
        variance.is_finite().then_some((b - a, variance, (rss_a + rss_b).max(0.0)))
    }

    /// [`Side::gap`] with the same slope for both lines.
    fn gap_of_one_slope(left: &Self, right: &Self) -> Option<(f64, f64, f64)> {
        let (tt, ty) = (left.tt + right.tt, left.ty + right.ty);
        if left.count == 0 || right.count == 0 || tt <= 0.0 {
            return None;
        }
        let (slope, apart) = (ty / tt, right.t - left.t);
        let variance = 1.0 / left.total + 1.0 / right.total + apart * apart / tt;
        Some((right.y - left.y - slope * apart, variance, (left.yy + right.yy - slope * ty).max(0.0)))
    }
}

/// What the points next to a boundary show of a jump.
pub(crate) struct Step {
    /// The change from the last point before to the first point after, minus the steeper of the changes before and
    /// after it, in the direction of the jump.
    pub beyond_slopes: f64,
    /// The same change minus the mean of both.
    pub beyond_mean: f64,
    /// The absolute difference of the changes before and after it.
    pub bend: f64,
    /// The standard error of each of these.
    pub error: f64,
}

/// What the four points around the boundary after `k` show of a jump with the sign of `size`, without points that are
/// off; `None` if a side has no point, or if neither side has a second one.
pub(crate) fn step(model: &Model, y: &[f64], k: usize, size: f64) -> Option<Step> {
    let around = Neighbourhood::new(model, k);
    let valid = |i: &usize| around.weight[*i - around.from] > 0.0;
    let mut before = (around.from..k + 1).rev().filter(valid);
    let mut after = (k + 1..around.to).filter(valid);
    let (a, b) = (before.next()?, after.next()?);
    let h = around.t[b] - around.t[a];
    let slope = |(i, j): (usize, usize)| (y[j] - y[i]) / (around.t[j] - around.t[i]) * h * size.signum();
    let pairs = [before.next().map(|i| (i, a)), after.next().map(|j| (b, j))];
    let slopes: Vec<f64> = pairs.into_iter().flatten().map(slope).collect();
    let steepest = slopes.iter().copied().reduce(f64::max)?;
    let mean = slopes.iter().sum::<f64>() / slopes.len() as f64;
    let bend = slopes.iter().map(|slope| slope - slopes[0]).sum::<f64>().abs();
    let change = (y[b] - y[a]) * size.signum();
    let variance = |i: usize| 1.0 / around.weight[i - around.from];
    // A point next to the boundary counts one and a half times or, with a slope on only one side, once or twice; a
    // point beyond it half or once.
    let error = (2.5 * (variance(a) + variance(b))).sqrt() * model.spread();
    Some(Step { beyond_slopes: change - steepest, beyond_mean: change - mean, bend, error })
}

/// How many points up to k, and how many beyond, show a step of that size: points that are off by half of it or more do
/// not.
pub(crate) fn good_points(model: &Model, k: usize, size: f64) -> (usize, usize) {
    let off = off_by(model, 0.5 * size.abs());
    let count = |points: &[bool]| points.iter().filter(|off| !**off).count();
    (count(&off[..k + 1]), count(&off[k + 1..]))
}

/// Which points are off by `least` or more.
pub(super) fn off_by(model: &Model, least: f64) -> Vec<bool> {
    let mut is_off = vec![false; model.problem.candidates.n];
    for (term, off) in model.sized() {
        if let Term::Off { at, length } = term {
            is_off[at..at + length].iter_mut().for_each(|is_off| *is_off |= off.abs() >= least);
        }
    }
    is_off
}

/// The range of points around the boundary after `k` without another event.
fn neighbourhood(model: &Model, k: usize) -> (usize, usize) {
    let candidates = model.problem.candidates;
    let (mut from, mut to) = ((k + 1).saturating_sub(WINDOW), (k + 1 + WINDOW).min(candidates.n));
    for &j in &model.terms {
        match candidates.term(j) {
            Term::Step(at) if at < k => from = from.max(at + 1),
            Term::Step(at) if at > k => to = to.min(at + 1),
            // A bend is continuous: its own point belongs to both sides. If it is closer than an edge, it cannot be
            // distinguished from the jump.
            Term::Hinge(at) if at + EDGE <= k => from = from.max(at),
            Term::Hinge(at) if at > k + EDGE => to = to.min(at + 1),
            _ => {}
        }
    }
    (from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Points at t = 1, 2, ... with unit weights.
    fn side(first: f64, y: &[f64]) -> Side {
        let t: Vec<f64> = (0..y.len()).map(|i| first + i as f64).collect();
        Neighbourhood { t: &t, from: 0, to: y.len(), weight: vec![1.0; y.len()] }.side(y, 0..y.len())
    }

    #[test]
    fn two_lines_are_apart_by_hand() {
        // y = 2 t at 1 2 3 and 3 + 2 t at 4 5 6 7, at 4: the distance is 3, the variance 1/3 + (4 - 2)^2 / 2 + 1/4 +
        // 1.5^2 / 5
        let (left, right) = (side(1.0, &[2.0, 4.0, 6.0]), side(4.0, &[11.0, 13.0, 15.0, 17.0]));
        let (gap, variance, rss) = Side::gap(&left, &right, 4.0).expect("lines");
        assert!((gap - 3.0).abs() < 1e-12 && (variance - (7.0 / 3.0 + 0.7)).abs() < 1e-12 && rss < 1e-12);
        // one slope: the means are 3.5 apart in t, so 1/3 + 1/4 + 3.5^2 / (2 + 5)
        let (gap, variance, rss) = Side::gap_of_one_slope(&left, &right).expect("lines");
        assert!((gap - 3.0).abs() < 1e-12 && (variance - (7.0 / 12.0 + 1.75)).abs() < 1e-12 && rss < 1e-12);
    }
}
