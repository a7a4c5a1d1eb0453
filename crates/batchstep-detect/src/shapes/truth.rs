//! The truth about a series: where its curve changes, by how much, and whether the change can be seen.

use super::curve::Term;
use super::sketch::Sketch;
use crate::stats::regression::line;

/// A change of level, at one boundary or at neighbouring ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// The change is after the point of this index.
    pub at: usize,
    /// The places that the noise leaves open, as indices, both included; `at` is among them.
    pub first: usize,
    pub last: usize,
    /// Signed, in the unit of y.
    pub size: f64,
    /// The largest of the changes that were joined.
    pub largest: f64,
    /// It stands out clearly. Where not, it costs nothing, found or missed.
    pub required: bool,
    /// Whether the change belongs to a pattern that repeats over the whole curve and does not count.
    pub pattern: bool,
}

/// Smallest size over the noise of a single x at which a change belongs to one boundary with a probability of 99.7 %.
const CERTAIN: f64 = 6.0;
/// Smallest size over its standard error between two lines of up to sixteen points.
const CLEAR: f64 = 8.0;
/// Smallest size as a share of the level.
const SMALLEST: f64 = 0.005;
/// Fewest points on each side.
const SIDE: usize = 3;
/// Two changes that cancel and are at most this many points apart may be a disturbance as well as a block.
const BLOCK: usize = 4;
/// A change that no local look confirms to this share is not required.
const CONFIRMED: f64 = 0.6;

/// All changes of a sketch, ascending.
pub fn changes(sketch: &Sketch) -> Vec<Change> {
    let mut changes = joined(jumps(sketch));
    changes.extend(sketch.curve.terms.iter().filter_map(|term| ramp(sketch, term)));
    changes.sort_by_key(|change| change.at);
    let asked = |place: usize| if changes[place].required { judged(sketch, &changes, place) } else { changes[place] };
    (0..changes.len()).map(asked).collect()
}

/// One change for every boundary at which the curve jumps. If only a pattern jumps there, the change is not required; if both do, the size
/// is that of the jump.
pub(super) fn jumps(sketch: &Sketch) -> Vec<Change> {
    let (x, curve) = (&sketch.x, &sketch.curve);
    let mut found = Vec::new();
    for at in 0..x.len() - 1 {
        let (here, next) = (x[at], x[at + 1]);
        let value = curve.value(next);
        let alone = value - curve.held_but_patterns(next, here);
        let with_pattern = value - curve.held(next, here);
        let pattern = alone.abs() <= NOTHING * value.abs();
        let size = if pattern { with_pattern } else { alone };
        if size.abs() > NOTHING * value.abs() {
            found.push(Change { at, first: at, last: at, size, largest: size, required: !pattern, pattern });
        }
    }
    found
}

/// Rounding errors, as a share of the level.
const NOTHING: f64 = 1e-9;

/// Changes at neighbouring boundaries, with one point between them, are one change: that point may belong to either side.
fn joined(jumps: Vec<Change>) -> Vec<Change> {
    let mut changes: Vec<Change> = Vec::new();
    for next in jumps {
        match changes.last_mut() {
            Some(last) if next.required && last.required && next.at == last.last + 1 => {
                let larger = if next.size.abs() > last.largest.abs() { next } else { *last };
                *last = Change { first: last.first, last: next.at, size: last.size + next.size, ..larger };
            }
            _ => changes.push(next),
        }
    }
    changes
}

/// A ramp over one point is a change at the boundary before or after it.
fn ramp(sketch: &Sketch, term: &Term) -> Option<Change> {
    let Term::Ramp { after, until, .. } = *term else { return None };
    let first = sketch.x.iter().position(|x| *x >= after)?;
    let last = sketch.x.iter().position(|x| *x >= until)? - 1;
    let still = {
        let others = sketch.curve.terms.iter().copied().filter(|other| other != term).collect();
        super::curve::Curve { terms: others, work: sketch.curve.work }
    };
    let added = |i: usize| sketch.curve.value(sketch.x[i]) - still.value(sketch.x[i]);
    let size = added(last + 1);
    Some(Change { at: first, first, last, size, largest: size, required: true, pattern: false })
}

/// The change with the places that its noise leaves open; not required if it cannot be seen.
fn judged(sketch: &Sketch, changes: &[Change], place: usize) -> Change {
    let change = changes[place];
    let count = sketch.x.len();
    let before = place.checked_sub(1).map(|i| changes[i]).filter(|c| c.required);
    let after = changes.get(place + 1).copied().filter(|c| c.required);
    // The points of the level before and of the level after.
    let start = before.map_or(0, |c| c.last + 1);
    let end = after.map_or(count, |c| c.first + 1);
    let (left, right) = (change.first + 1 - start, end - (change.last + 1));
    let noise = [change.at, change.at + 1].map(|i| sketch.error(i)).into_iter().fold(0.0, f64::max);
    let size = change.size.abs();
    let rho = sketch.noise.correlation;
    let sides = 4.0 / left.min(16) as f64 + 4.0 / right.min(16) as f64;
    let error = noise * (sides * (1.0 + rho) / (1.0 - rho)).sqrt();
    let single = noise * (1.0 - rho).sqrt();
    let spread = ((CERTAIN * single / size).powi(2).ceil() as usize).saturating_sub(1);
    let level = sketch.curve.plain(sketch.x[change.at]).abs();
    let required = size >= CLEAR * error
        && size >= SMALLEST * level
        && size >= 3.0 * sketch.noise.quantum
        && change.first + 1 >= SIDE
        && count - (change.last + 1) >= SIDE
        && spread < left.min(right).max(2)
        && !cancels(change, before)
        && !cancels(change, after)
        && confirmed(sketch, change, start..end);
    Change {
        first: change.first.saturating_sub(spread),
        last: (change.last + spread).min(count - 2),
        required,
        ..change
    }
}

/// Whether a neighbouring change takes back what this one brings.
fn cancels(change: Change, other: Option<Change>) -> bool {
    other.is_some_and(|other| {
        change.at.abs_diff(other.at) <= BLOCK
            && (change.size + other.size).abs() < change.size.abs().max(other.size.abs()) / 3.0
    })
}

/// Whether two lines through up to eight noise-free points on each side show the change at least roughly as it is.
fn confirmed(sketch: &Sketch, change: Change, points: std::ops::Range<usize>) -> bool {
    let left = points.start.max((change.first + 1).saturating_sub(8))..change.first + 1;
    let right = change.last + 1..points.end.min(change.last + 9);
    let next = sketch.x[change.last + 1];
    let seen = extended(sketch, right, next) - extended(sketch, left, next);
    (CONFIRMED..=2.0 - CONFIRMED).contains(&(seen / change.size))
}

/// The least-squares line through the curve at these points, at x.
fn extended(sketch: &Sketch, points: std::ops::Range<usize>, x: f64) -> f64 {
    let places = &sketch.x[points];
    let values: Vec<f64> = places.iter().map(|place| sketch.curve.plain(*place)).collect();
    let line = line(places, &values, &vec![1.0; places.len()]);
    line.intercept + line.slope * x
}
