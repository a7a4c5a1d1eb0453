//! Where a step may be, as far as the data determine its place.

use super::boundary::Boundary;
use super::candidates::Term;
use super::fit::Model;
use super::neighbourhood::off_by;

/// The positions after which a jump may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Places {
    pub first: usize,
    pub likeliest: usize,
    pub last: usize,
}

/// Units of -2 log likelihood; places that lose more are less likely by a factor of 20.
const AS_WELL: f64 = 6.0;

/// A point that is off by less than this share of the step is on its own side of it.
const OWN_SIDE: f64 = 0.2;

/// Where the step `found` may be: moved there, it explains the points in between worse by less than [`AS_WELL`]. A
/// point that is off may belong to either side; next to such a point the likeliest place is that of the largest change
/// of `y`, unless a staircase determines it.
pub(crate) fn places(model: &Model, y: &[f64], found: &Boundary) -> Places {
    let (k, size) = (found.k, found.size);
    let candidates = model.problem.candidates;
    let off = off_by(model, OWN_SIDE * size.abs());
    let dispersion = model.dispersion();
    // The loss if the point at i is assigned to the other side.
    let loss = |i: usize, size: f64| {
        let moved = size * model.problem.factor[i];
        if off[i] { 0.0 } else { ((model.residual[i] + moved).powi(2) - model.residual[i].powi(2)) / dispersion }
    };
    let is_step = |k: usize| model.has(Term::Step(k));
    // How many of the next points may change sides.
    let moved = |points: &mut dyn Iterator<Item = usize>, size: f64| {
        let mut lost = 0.0;
        let stays_likely = |i: &usize| {
            lost += loss(*i, size);
            lost <= AS_WELL
        };
        points.take_while(stays_likely).count()
    };
    let first = k - moved(&mut (1..=k).rev().take_while(|i| !is_step(i - 1)), -size);
    let last = k + moved(&mut (k + 1..candidates.n - 1).take_while(|i| !is_step(*i)), size);
    let before = (first..k).rev().take_while(|&i| off[i + 1]);
    let after = (k + 1..=last).take_while(|&i| off[i]);
    let change = |i: usize| (y[i + 1] - y[i]) * size.signum();
    let larger = |a: usize, b: usize| if change(b) > change(a) { b } else { a };
    let likeliest = if found.in_staircase { k } else { before.chain(after).fold(k, larger) };
    Places { first, likeliest, last }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::model::candidates::CandidateTerms;
    use crate::detect::model::problem::Problem;

    /// Ten points at 1 and ten at 1 + size, the tenth as given; errors of 0.1.
    fn found(size: f64, tenth: f64, terms: &[Term]) -> Places {
        let x: Vec<f64> = (1..=20).map(f64::from).collect();
        let candidates = CandidateTerms::new(&x);
        let y: Vec<f64> = (1..=20)
            .map(|i| {
                if i == 10 {
                    tenth
                } else if i > 10 {
                    1.0 + size
                } else {
                    1.0
                }
            })
            .collect();
        let problem = Problem::new(&candidates, &y, &[0.1; 20], 1.0);
        let terms: Vec<usize> = terms.iter().map(|&term| candidates.index(term)).collect();
        places(&Model::new(&problem, &terms), &y, &Boundary { k: 9, in_staircase: false, size, error: 0.01 })
    }

    #[test]
    fn a_large_step_has_one_place_and_a_small_one_several() {
        // A point on the other side is off by 5 or by 2 standard errors: 25 is above 6, 4 is not, 8 is.
        let step = [Term::Step(9)];
        assert_eq!(found(0.5, 1.0, &step), Places { first: 9, likeliest: 9, last: 9 });
        assert_eq!(found(0.2, 1.0, &step), Places { first: 8, likeliest: 9, last: 10 });
    }

    #[test]
    fn a_point_on_the_way_belongs_to_either_side() {
        // The tenth point is at three fifths of the step, so the larger change is before it.
        let terms = [Term::Step(9), Term::Off { at: 9, length: 1 }];
        assert_eq!(found(0.5, 1.3, &terms), Places { first: 8, likeliest: 8, last: 9 });
        assert_eq!(found(0.5, 1.2, &terms), Places { first: 8, likeliest: 9, last: 9 });
        // A tenth of the step: it is on its own side, and off for another reason.
        assert_eq!(found(0.5, 1.05, &terms), Places { first: 9, likeliest: 9, last: 9 });
    }
}
