//! A weighted least-squares model over chosen candidate terms, kept as an orthonormal basis.
//!
//! Let Q be the whitened columns, orthonormalised, and r the residual. The gain of adding a candidate c is then (c'r)^2
//! / |c - QQ'c|^2. Both parts are kept up to date for all candidate terms, so that every addition, removal and exchange
//! is priced without a refit.
//!
//! The price of a model with m terms and residual sum of squares S over n points is its description length
//!   L = -2 log likelihood(S) + sum of the terms' costs,
//! with an unknown dispersion phi >= floor that multiplies the stated variances, at its most likely value S / n:
//! -2 log likelihood = n ln phi + S / phi. So a curve that is rougher than its repetitions show raises the bar for each
//! term automatically (Rissanen 1978; Davis, Lee & Rodriguez-Yam 2006).

use super::basis::{Basis, COLLINEAR};
use super::candidates::Term;
use super::problem::Problem;
use super::simd::{self, dot};

/// The chosen terms and their fit. Intercept and slope are always included and cost nothing.
#[derive(Clone, Debug)]
pub(crate) struct Model<'a, 'b> {
    pub problem: &'a Problem<'b>,
    /// Numbers of the chosen terms, in the order of the basis after intercept and slope.
    pub terms: Vec<usize>,
    pub(super) basis: Basis,
    /// For each unit vector of the basis, its products with all candidates.
    pub(super) spans: Vec<Vec<f64>>,
    /// For each candidate, its squared norm outside the basis and its product with the residual.
    pub(super) outside_norms: Vec<f64>,
    pub(super) inner_products: Vec<f64>,
    pub residual: Vec<f64>,
    pub rss: f64,
    pub cost: f64,
}

/// Intercept and slope.
pub(crate) const FREE: usize = 2;

/// The residual sum of squares below which a fit is exact, as a share of the least dispersion.
const EXACT: f64 = 1e-9;

impl<'a, 'b> Model<'a, 'b> {
    /// The straight line and `terms`; a term that is a combination of earlier terms is left out.
    pub fn new(problem: &'a Problem<'b>, terms: &[usize]) -> Self {
        let mut model = Self::spanning(problem, terms);
        let mut products = Vec::new();
        for q in model.basis.vectors() {
            model.products(q, &mut products);
            simd::less_squares(&mut model.outside_norms, &products);
            model.spans.push(products.clone());
        }
        model.products(&model.residual, &mut products);
        model.inner_products = products;
        model
    }

    /// The model without the values that are kept for the candidates.
    fn spanning(problem: &'a Problem<'b>, terms: &[usize]) -> Self {
        let mut model = Self {
            problem,
            terms: Vec::with_capacity(terms.len()),
            basis: Basis::default(),
            spans: Vec::new(),
            outside_norms: problem.norms[..problem.offered].to_vec(),
            inner_products: Vec::new(),
            residual: problem.target.clone(),
            rss: 0.0,
            cost: 0.0,
        };
        let ones = vec![1.0; problem.candidates.n];
        for free in [&ones, &problem.candidates.t] {
            if !model.extend(free) {
                // Level and slope keep their places, so that all coefficients do; if one is collinear with the other,
                // its coefficient is zero.
                model.basis.push_nothing(problem.candidates.n);
            }
        }
        for &term in terms {
            if model.extend(&problem.candidates.column(term)) {
                model.terms.push(term);
                model.cost += problem.candidates.cost(term);
            }
        }
        model.rss = dot(&model.residual, &model.residual);
        model
    }

    /// Adds one column to the basis; false if nothing of it is outside the basis.
    fn extend(&mut self, column: &[f64]) -> bool {
        let Some(v) = self.basis.push(self.problem.whitened(column)) else { return false };
        let along = dot(v, &self.residual);
        for (r, q) in self.residual.iter_mut().zip(v) {
            *r -= along * q;
        }
        true
    }

    /// The products of all candidates with the whitened vector `v`.
    pub(super) fn products(&self, v: &[f64], out: &mut Vec<f64>) {
        let v: Vec<f64> = v.iter().zip(&self.problem.factor).map(|(v, f)| v * f).collect();
        self.problem.candidates.products(&v, self.problem.offered, out);
    }

    /// The description length.
    pub fn length(&self) -> f64 {
        self.problem.misfit(self.rss) + self.cost
    }

    /// The chosen terms, each with its coefficient.
    pub fn sized(&self) -> impl Iterator<Item = (Term, f64)> {
        let terms = self.terms.iter().map(|&j| self.problem.candidates.term(j));
        terms.zip(self.coefficients().into_iter().skip(FREE))
    }

    /// The positions that `of` reads from the chosen terms, ascending, each with its coefficient.
    pub fn at(&self, of: impl Fn(Term) -> Option<usize>) -> Vec<(usize, f64)> {
        let mut found: Vec<(usize, f64)> = self.sized().filter_map(|(term, size)| Some((of(term)?, size))).collect();
        found.sort_by_key(|(at, _)| *at);
        found
    }

    /// The coefficient of the chosen term at `place` over its standard error, and that error, both at dispersion one.
    pub fn along(&self, place: usize) -> (f64, f64) {
        let mut u = self.basis.combine(&self.basis.row(place + FREE), self.problem.candidates.n);
        let error = dot(&u, &u).sqrt();
        u.iter_mut().for_each(|u| *u /= error);
        (dot(&u, &self.problem.target), error)
    }

    /// The size of the chosen term at `place` in standard errors, at the dispersion of the model.
    pub fn certainty(&self, place: usize) -> f64 {
        self.along(place).0.abs() / self.dispersion().sqrt()
    }

    /// The same with errors that neighbours may share ([`Model::spread`]).
    pub fn z(&self, place: usize) -> f64 {
        self.along(place).0.abs() / self.spread()
    }

    /// Whether `term` is chosen.
    pub fn has(&self, term: Term) -> bool {
        self.terms.contains(&self.problem.candidates.index(term))
    }

    /// Whether a search keeps `term`.
    pub fn keeps(&self, term: Term) -> bool {
        self.problem.kept.contains(&self.problem.candidates.index(term))
    }

    /// The coefficient that candidate `j` would have if added, and its standard error at dispersion one.
    pub fn addition(&self, j: usize) -> Option<(f64, f64)> {
        let norm = self.outside_norms[j];
        (norm > COLLINEAR * self.problem.norms[j]).then(|| (self.inner_products[j] / norm, norm.sqrt().recip()))
    }

    /// The model without the terms at `places` (ascending).
    pub fn without(&self, places: &[usize]) -> Self {
        let mut rest = self.clone();
        for &place in places.iter().rev() {
            rest.remove(place);
        }
        rest.settle();
        rest
    }

    /// Updates everything that follows from the residual.
    pub(super) fn settle(&mut self) {
        self.rss = dot(&self.residual, &self.residual);
        let mut inner_products = std::mem::take(&mut self.inner_products);
        self.products(&self.residual, &mut inner_products);
        self.inner_products = inner_products;
    }

    pub(super) fn remove(&mut self, place: usize) {
        self.cost -= self.problem.candidates.cost(self.terms.remove(place));
        let spans = &mut self.spans;
        let v = self.basis.remove(place + FREE, |j, cos, sin| {
            let (upper, lower) = spans.split_at_mut(j + 1);
            simd::rotate(&mut upper[j], &mut lower[0], cos, sin);
        });
        let along = dot(&v, &self.problem.target);
        self.residual.iter_mut().zip(&v).for_each(|(r, v)| *r += along * v);
        let products = self.spans.pop().unwrap_or_default();
        self.outside_norms.iter_mut().zip(&products[..]).for_each(|(norm, p)| *norm += p * p);
    }

    pub(super) fn add(&mut self, term: usize) {
        if !self.extend(&self.problem.candidates.column(term)) {
            return;
        }
        self.terms.push(term);
        self.cost += self.problem.candidates.cost(term);
        let mut products = Vec::new();
        if let Some(q) = self.basis.vectors().last() {
            self.products(q, &mut products);
        }
        simd::less_squares(&mut self.outside_norms, &products);
        self.spans.push(products);
    }

    /// Coefficients of intercept, slope (per unit of t) and the terms, in that order.
    pub fn coefficients(&self) -> Vec<f64> {
        self.basis.coefficients(&self.problem.target)
    }

    /// The standard error, at dispersion one, of the combination `weights` of all coefficients.
    pub fn error_of(&self, weights: &[f64]) -> f64 {
        let along = self.influence(weights);
        dot(&along, &along).sqrt()
    }

    /// Degrees of freedom of the residual.
    pub fn freedom(&self) -> f64 {
        (self.problem.candidates.n as f64 - self.basis.len() as f64).max(1.0)
    }

    /// The dispersion: residual sum of squares divided by its degrees of freedom, not below the floor.
    pub fn dispersion(&self) -> f64 {
        (self.rss / self.freedom()).max(self.problem.floor)
    }

    /// The factor on all standard errors: the root of the dispersion, larger if neighbouring residuals are correlated,
    /// and smaller if they zigzag.
    ///
    /// With correlation r of neighbours (as of a first-order process) a mean over a stretch varies (1 + r) / (1 - r) times
    /// as much as it would without; r counts only where it exceeds two standard errors, and below zero only beyond the
    /// correlation that the fit of m terms itself causes, and only down to -1/2.
    pub fn spread(&self) -> f64 {
        let products: f64 = self.residual.windows(2).map(|w| w[0] * w[1]).sum();
        // A fit through all points leaves errors of arithmetic.
        let r = if self.rss > EXACT * self.problem.floor { products / self.rss } else { 0.0 };
        let critical = 2.0 / (self.residual.len() as f64).sqrt();
        let lost = self.basis.len() as f64 / self.residual.len() as f64;
        let inflation = |r: f64| (1.0 + r) / (1.0 - r);
        let inflation = match r {
            _ if r > critical => inflation(r.min(0.9)),
            _ if r + lost < -critical => inflation((r + lost).max(-0.5)),
            _ => 1.0,
        };
        (self.dispersion() * inflation).sqrt()
    }

    /// Degrees of freedom of the errors: those of the residuals if the dispersion was estimated from them, else
    /// infinite.
    pub fn error_freedom(&self) -> f64 {
        if self.problem.estimated || self.dispersion() > self.problem.floor { self.freedom() } else { f64::INFINITY }
    }

    /// The weight on each x by which the combination `weights` of the coefficients follows from the whitened data.
    pub fn influence(&self, weights: &[f64]) -> Vec<f64> {
        self.basis.influence(weights, self.problem.candidates.n)
    }

    /// The part of the whitened column `v` that the model does not explain.
    pub fn outside(&self, v: &[f64]) -> Vec<f64> {
        self.basis.outside(v)
    }

    /// The leverage of each point: its share in its own fit.
    pub fn leverage(&self) -> Vec<f64> {
        self.basis.leverage(self.problem.candidates.n)
    }

    /// `y` minus the terms for which `of` is true; the straight line is never subtracted.
    pub fn less(&self, y: &[f64], of: impl Fn(Term) -> bool) -> Vec<f64> {
        let (with, straight) = (self.fitted(of), self.fitted(|_| false));
        y.iter().zip(with.iter().zip(&straight)).map(|(y, (w, s))| y - (w - s)).collect()
    }

    /// The fitted values of all terms for which `keep` holds; intercept and slope are always kept.
    pub fn fitted(&self, keep: impl Fn(Term) -> bool) -> Vec<f64> {
        let candidates = self.problem.candidates;
        let b = self.coefficients();
        let mut fit: Vec<f64> = candidates.t.iter().map(|t| b[0] + b[1] * t).collect();
        for (&j, b) in self.terms.iter().zip(&b[FREE..]) {
            if keep(candidates.term(j)) {
                for (fit, c) in fit.iter_mut().zip(candidates.column(j)) {
                    *fit += b * c;
                }
            }
        }
        fit
    }
}
