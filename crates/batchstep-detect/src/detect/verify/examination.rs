//! Every condition that a jump must meet: why a step of the model is not a jump, if it is not one.

use crate::detect::findings::{LOCAL_Z, Rejection};
use crate::detect::model::boundary::Boundary;
use crate::detect::model::candidates::{EDGE, Term};
use crate::detect::model::fit::Model;
use crate::detect::model::neighbourhood;
use crate::detect::search::staircase;

/// The share of a jump that the points next to it must show, within [`DOUBT`] of their standard errors.
const SHOWN: f64 = 1.0 / 3.0;
const DOUBT: f64 = 2.5;
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

impl Examination<'_, '_, '_> {
    /// Why a boundary is not a jump; `None` if it is one.
    pub fn objection(&self, found: &Boundary) -> Option<Rejection> {
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
        match self.own_step(found) {
            Some(own) if own >= LOCAL_Z => None,
            Some(local) => Some(Rejection::OfThePeriodAlone { local }),
            None => Some(Rejection::NearTheEnd),
        }
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
        let step = neighbourhood::step(self.model, &self.straightened, found.k, found.size)?;
        let (least, doubt) = (found.size.abs() * SHOWN, DOUBT * step.error);
        let raw = neighbourhood::step(self.model, &self.measured, found.k, found.size)?;
        let is_bent = raw.bend > found.size.abs() + DOUBT * raw.error;
        (is_bent || step.beyond_slopes + doubt < least).then_some(Rejection::TooSteep)
    }

    /// The step at a place of a staircase, computed from its own neighbours, in standard errors; negative if it goes
    /// the other way. `None` at an end, where there are too few neighbours for a line.
    fn own_step(&self, found: &Boundary) -> Option<f64> {
        let (rest, error) = neighbourhood::local_size(self.model, &self.straightened, found.k)?;
        let height = staircase::height(self.model, found.k);
        Some((rest + height) / error * found.size.signum())
    }
}
