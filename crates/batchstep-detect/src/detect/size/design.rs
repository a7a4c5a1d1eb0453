//! Fixed terms whose least-squares fit changes by one term at a time.

use crate::detect::model::basis::Basis;
use crate::detect::model::boundary::Boundary;
use crate::detect::model::candidates::Term;
use crate::detect::model::fit::FREE;
use crate::detect::model::problem::Problem;
use crate::detect::model::simd::dot;

/// Fixed terms and their fit.
pub(crate) struct Design<'a, 'b> {
    pub problem: &'a Problem<'b>,
    pub terms: Vec<usize>,
    pub basis: Basis,
    pub residual: Vec<f64>,
    pub rss: f64,
    pub cost: f64,
}

impl<'a, 'b> Design<'a, 'b> {
    /// The least-squares fit of level, slope and `terms`; `None` if one of them is a combination of the others.
    pub fn new(problem: &'a Problem<'b>, terms: Vec<usize>) -> Option<Self> {
        let candidates = problem.candidates;
        let mut basis = Basis::default();
        let free = [vec![1.0; candidates.n], candidates.t.clone()];
        for column in free.into_iter().chain(terms.iter().map(|&j| candidates.column(j))) {
            basis.push(problem.whitened(&column))?;
        }
        let residual = basis.outside(&problem.target);
        let cost = terms.iter().map(|&j| candidates.cost(j)).sum();
        Some(Self { problem, rss: dot(&residual, &residual), terms, basis, residual, cost })
    }

    pub fn freedom(&self) -> f64 {
        (self.problem.candidates.n as f64 - self.basis.len() as f64).max(1.0)
    }

    /// The design without the term at `place`.
    pub fn without(&self, place: usize) -> Self {
        let mut terms = self.terms.clone();
        let gone = terms.remove(place);
        let mut basis = self.basis.clone();
        let v = basis.remove(place + FREE, |_, _, _| ());
        let along = dot(&v, &self.problem.target);
        let residual: Vec<f64> = self.residual.iter().zip(&v).map(|(r, v)| r + along * v).collect();
        let cost = self.cost - self.problem.candidates.cost(gone);
        Self { problem: self.problem, rss: dot(&residual, &residual), terms, basis, residual, cost }
    }

    /// The unit vector that only the term at `place` spans, and the data's part along it.
    pub fn direction(&self, place: usize) -> (Vec<f64>, f64) {
        let mut v = self.basis.combine(&self.basis.row(place + FREE), self.residual.len());
        let norm = dot(&v, &v).sqrt();
        v.iter_mut().for_each(|v| *v /= norm);
        let along = dot(&v, &self.problem.target);
        (v, along)
    }

    /// The places of the terms that another design may lack.
    pub fn doubtful(&self, found: &[Boundary]) -> impl Iterator<Item = usize> {
        let doubtful = |place: &usize| match self.problem.candidates.term(self.terms[*place]) {
            Term::Hinge(_) | Term::Shape(_) => true,
            Term::Step(k) => !found.iter().any(|b| b.k == k),
            _ => false,
        };
        (0..self.terms.len()).filter(doubtful).collect::<Vec<_>>().into_iter()
    }
}
