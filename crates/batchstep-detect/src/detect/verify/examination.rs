//! Every condition that a jump must meet: why a step of the model is not a jump, if it is not one.

use crate::detect::model::boundary::Boundary;
use crate::detect::model::candidates::{EDGE, MOST_OFF, Term};
use crate::detect::model::fit::Model;
use crate::detect::model::neighbourhood::{self, Local};
use crate::detect::rejection::{LOCAL_Z, Rejection};
use crate::detect::search::levels::{self, LEFT_OVER};
use crate::detect::search::staircase;

/// The share of a jump that the points next to it must show, within [`DOUBT`] of their standard errors.
const SHOWN: f64 = 1.0 / 3.0;
const DOUBT: f64 = 2.5;
/// The number of points on each side that are searched for other changes. If changes that are not jumps, of at least
/// the share [`AS_LARGE`] of the step's size, occur at more than one in [`SELDOM`] of these points, the step counts as
/// one of them.
const AROUND: usize = 10;
const SELDOM: usize = 9;
const AS_LARGE: f64 = 0.3;
/// Units of rounded times that a jump must reach: more than two. No whole number, since sizes of rounded times are whole numbers of units.
pub(crate) const LEAST_UNITS: f64 = 2.5;

/// The fewest points on each side of an event that delays may have made. They add to some sizes what they do not add to others: between the ends the curve returns after them, at an end nothing
/// shows whether it does. In runs of a straight line beside other programs, the false jumps and kinks were three and four points from the end (2 of 40 runs, 10 s each).
pub(crate) const BESIDE_IF_DELAYED: usize = 6;
/// Delays may have made a change of up to this multiple of the scatter of delayed visits; that false jump was 1.9 times as large.
pub(crate) const BY_DELAYS: f64 = 3.0;

/// A fitted model, and the data by which its steps are examined.
pub(crate) struct Examination<'a, 'b, 'c> {
    pub model: &'a Model<'b, 'c>,
    /// The absolute value of the curve at each x, above zero.
    pub level: Vec<f64>,
    /// The values without alternation, which makes all neighbours differ.
    pub measured: Vec<f64>,
    /// The values of [`straightened`].
    pub straightened: Vec<f64>,
    /// The smallest jump that counts, as a share of the level.
    pub smallest: f64,
    /// At each x, the unit to which values are rounded, in the unit of the model's y; 0 if none is detected.
    pub tick: &'a [f64],
    /// The smallest size in standard errors that counts.
    pub limit: f64,
    /// The largest change, as a share of the level, that delays of steps may have made; 0 if they are not delayed.
    pub delays: f64,
    /// How much likelier a few points must be as a level than as disturbed ones.
    pub likelier: f64,
    /// The size in standard errors below which the autoregressive alternative explains a step as well.
    pub explained_below: f64,
}

/// The values without alternation, staircases and smooth shapes, so that straight lines fit them between events.
pub(crate) fn straightened(model: &Model, y: &[f64]) -> Vec<f64> {
    model.less(y, |term| matches!(term, Term::Shape(_) | Term::Staircase(_)))
}

/// The values without alternation.
pub(crate) fn without_alternation(model: &Model, y: &[f64]) -> Vec<f64> {
    let candidates = model.problem.candidates;
    model.less(y, |term| candidates.alternates(candidates.index(term)))
}

/// A change that is not a jump.
struct Change {
    k: usize,
    size: f64,
}

impl Examination<'_, '_, '_> {
    /// For each boundary, why it is not a jump; `None` if it is one.
    pub fn objections(&self, all: &[Boundary]) -> Vec<Option<Rejection>> {
        let level = |from: usize, to: usize| levels::is_level(self.model, from, to, self.likelier);
        let own = |place: usize| returns(all, place, &level).or_else(|| self.objection(&all[place]));
        let mut objections: Vec<Option<Rejection>> = (0..all.len()).map(own).collect();
        let others = self.no_jumps(all, &objections);
        for (found, objection) in all
            .iter()
            .zip(&mut objections)
            .filter(|(found, objection)| objection.is_none() && !found.in_staircase && !self.is_cliff(found.k))
        {
            let as_large = |other: &&Change| {
                other.k.abs_diff(found.k) <= AROUND && other.size.abs() >= AS_LARGE * found.size.abs()
            };
            let count = others.iter().filter(as_large).count();
            let around = found.k.saturating_sub(AROUND)..(found.k + AROUND + 1).min(self.level.len());
            *objection = (count * SELDOM > around.len()).then_some(Rejection::Rough { count });
        }
        objections
    }

    /// Disturbed points, and steps that are not accepted.
    fn no_jumps(&self, all: &[Boundary], objections: &[Option<Rejection>]) -> Vec<Change> {
        let off = self.model.sized().filter_map(|(term, size)| match term {
            // However many single points are off, they make no level.
            Term::Off { at, length } if length > 1 || !self.model.problem.spikes.contains(&at) => {
                Some(Change { k: at, size })
            }
            _ => None,
        });
        // A step caused by rounding has its size from the last digit, whatever the curve does.
        let is_rough =
            |objection: &Option<Rejection>| objection.is_some_and(|why| !matches!(why, Rejection::Rounded { .. }));
        let steps = all.iter().zip(objections).filter(|(_, objection)| is_rough(objection));
        off.chain(steps.map(|(step, _)| Change { k: step.k, size: step.size })).collect()
    }

    /// Why a boundary by itself is not a jump.
    fn objection(&self, found: &Boundary) -> Option<Rejection> {
        let (z, relative) = (found.z(), found.size.abs() / self.level[found.k]);
        if relative < self.smallest {
            return Some(Rejection::BelowSmallestJump { relative });
        }
        let units = found.size.abs() / self.tick[found.k];
        if units < LEAST_UNITS {
            return Some(Rejection::Rounded { units });
        }
        if z < self.limit {
            return Some(Rejection::BelowThreshold { size: z, needed: self.limit });
        }
        if self.is_cliff(found.k) {
            let (before, after) = neighbourhood::good_points(self.model, found.k, found.size);
            return (before.min(after) < EDGE).then_some(Rejection::NearTheEnd);
        }
        if z < self.explained_below {
            return Some(Rejection::CorrelatedErrors);
        }
        self.own_points_objection(found).or_else(|| match found.in_staircase {
            true => self.staircase_objection(found),
            false => self.local_objection(found),
        })
    }

    pub fn is_cliff(&self, k: usize) -> bool {
        self.model.keeps(Term::Step(k))
    }

    /// Why the two measured points of the jump do not show it, if they do not.
    fn own_points_objection(&self, found: &Boundary) -> Option<Rejection> {
        let step = neighbourhood::step(self.model, &self.measured, found.k, found.size)?;
        let (before, after) = neighbourhood::good_points(self.model, found.k, found.size);
        let local = step.beyond_mean / step.error;
        // At an end there is little other evidence.
        let goes_the_other_way = before.min(after) < EDGE && local < 0.0;
        match goes_the_other_way || step.beyond_mean + DOUBT * step.error < found.size.abs() * SHOWN {
            true if found.in_staircase => Some(Rejection::OfThePeriodAlone { local }),
            true => Some(Rejection::NotAmongNeighbours { local }),
            false => None,
        }
    }

    /// The steps of a staircase were tested together and support each other, but each of them must also be there.
    fn staircase_objection(&self, found: &Boundary) -> Option<Rejection> {
        let Some(Local { size, error, .. }) = self.nearby(found) else { return Some(Rejection::NearTheEnd) };
        // Negative if it goes the other way.
        let local = size / error * found.size.signum();
        (local < LOCAL_Z).then_some(Rejection::OfThePeriodAlone { local })
    }

    /// Why the neighbours do not show a jump of about its sign and size, if they do not.
    fn local_objection(&self, found: &Boundary) -> Option<Rejection> {
        let (before, after) = neighbourhood::good_points(self.model, found.k, found.size);
        let to_an_end = (found.k + 1).min(self.level.len() - found.k - 1);
        let at_an_end = to_an_end < BESIDE_IF_DELAYED && found.size.abs() < self.delays * self.level[found.k];
        if before.min(after) < EDGE || at_an_end {
            return Some(Rejection::NearTheEnd);
        }
        let local = neighbourhood::local_z(self.model, &self.straightened, found.k);
        if local < LOCAL_Z {
            return Some(Rejection::NotAmongNeighbours { local });
        }
        if neighbourhood::bend(self.model, &self.straightened, found.k, DOUBT).is_some() {
            return Some(Rejection::Bend);
        }
        let step = neighbourhood::step(self.model, &self.straightened, found.k, found.size)?;
        let (least, doubt) = (found.size.abs() * SHOWN, DOUBT * step.error);
        let raw = neighbourhood::step(self.model, &self.measured, found.k, found.size)?;
        let is_bent = raw.bend > found.size.abs() + DOUBT * raw.error;
        (is_bent || step.beyond_slopes + doubt < least).then_some(Rejection::TooSteep)
    }

    /// The step by its own neighbours. `None` at an end, where there are too few neighbours for a line.
    pub fn nearby(&self, found: &Boundary) -> Option<Local> {
        let local = neighbourhood::local_size(self.model, &self.straightened, found.k)?;
        let height = if found.in_staircase { staircase::height(self.model, found.k) } else { 0.0 };
        Some(Local { size: local.size + height, ..local })
    }
}

/// Whether a boundary is one end of a few disturbed points, after which the curve returns. `level` says of the points from one position to another
/// whether they are a level of their own.
fn returns(all: &[Boundary], place: usize, level: &dyn Fn(usize, usize) -> bool) -> Option<Rejection> {
    let near = |i: &usize| all[*i].k.abs_diff(all[place].k) <= MOST_OFF;
    let (first, last) = ((0..=place).find(near)?, (place..all.len()).rfind(near)?);
    if all[first..=last].iter().any(|step| step.in_staircase) {
        return None;
    }
    let pairs = (first..=place).flat_map(|i| (place..=last).map(move |j| (i, j))).filter(|(i, j)| i < j);
    let returning = |&(i, j): &(usize, usize)| {
        let steps = || all[i..=j].iter().map(|step| step.size);
        let largest = steps().map(f64::abs).fold(0.0, f64::max);
        let is_level = || j == i + 1 && level(all[i].k + 1, all[j].k + 1);
        all[j].k - all[i].k <= MOST_OFF && steps().sum::<f64>().abs() < LEFT_OVER * largest && !is_level()
    };
    pairs.filter(returning).map(|(i, j)| Rejection::Returns { points: all[j].k - all[i].k }).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boundary(k: usize, size: f64) -> Boundary {
        Boundary { k, in_staircase: false, size, error: 0.01 }
    }

    #[test]
    fn steps_that_cancel_within_four_points_are_disturbed_points() {
        // 0.3 - 0.25 leaves a sixth; 0.3 - 0.1 two thirds; five points are a level of their own; three steps may cancel together.
        let of = |steps: &[(usize, f64)]| -> Vec<bool> {
            let all: Vec<Boundary> = steps.iter().map(|&(k, size)| boundary(k, size)).collect();
            (0..all.len()).map(|place| returns(&all, place, &|_, _| false).is_some()).collect()
        };
        assert_eq!(of(&[(10, 0.3), (13, -0.25)]), [true, true]);
        assert_eq!(of(&[(10, 0.3), (13, -0.1)]), [false, false]);
        assert_eq!(of(&[(10, 0.3), (15, -0.3)]), [false, false]);
        assert_eq!(of(&[(10, 0.3), (12, -0.1), (14, -0.2), (30, 0.2)]), [true, true, true, false]);
    }
}
