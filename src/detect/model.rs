//! A weighted least-squares model over chosen terms of the dictionary, kept as an orthonormal basis.
//!
//! With Q the whitened columns orthonormalised, the gain of adding any candidate c is (c'r)^2 / |c - QQ'c|^2, where r is the
//! residual. Both parts are kept up to date for the whole dictionary, so that every addition, removal and exchange is
//! priced without a refit.
//!
//! The price of a model with m terms and residual sum of squares S over n points is its description length
//!   L = -2 log likelihood(S) + sum of the terms' costs,
//! with an unknown dispersion phi >= floor that multiplies the stated variances, at its most likely value S / n:
//!   -2 log likelihood = n ln phi + S / phi.
//! A curve rougher than its repetitions say thus raises the bar for each term by itself (Rissanen 1978; Davis, Lee &
//! Rodriguez-Yam 2006).

use super::basis::{Basis, COLLINEAR};
use super::dictionary::{Dictionary, EDGE, MANY, Term, dot};
use super::problem::Problem;

/// Least gain that a change must bring, so that rounding cannot make a search circle.
pub(super) const LEAST_GAIN: f64 = 1e-6;

/// What a search may add.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Rules {
    /// A position near which no step may be added: its step is on trial.
    pub no_step_near: Option<usize>,
    /// Only continuous terms: no steps at all.
    pub continuous: bool,
}

impl<'a> Problem<'a> {
    /// Values `y` with standard errors `error`, both over all x of `dictionary`.
    pub fn new(dictionary: &'a Dictionary, y: &[f64], error: &[f64], floor: f64) -> Self {
        let factor: Vec<f64> = error.iter().map(|e| 1.0 / e).collect();
        let weight: Vec<f64> = factor.iter().map(|f| f * f).collect();
        let target = y.iter().zip(&factor).map(|(y, f)| y * f).collect();
        Self {
            dictionary,
            factor,
            target,
            norms: dictionary.norms(&weight),
            floor,
            estimated: false,
            offered: dictionary.stairs_range().start,
        }
    }

    /// The same with staircases on offer.
    pub fn with_stairs(&self) -> Self {
        Self { offered: self.dictionary.len, ..self.clone() }
    }

    /// A column in units of the standard errors.
    pub fn whitened(&self, column: &[f64]) -> Vec<f64> {
        column.iter().zip(&self.factor).map(|(c, f)| c * f).collect()
    }

    /// -2 log likelihood of a residual sum of squares, at the most likely dispersion.
    pub fn misfit(&self, rss: f64) -> f64 {
        let n = self.dictionary.n as f64;
        let phi = (rss / n).max(self.floor);
        n * phi.ln() + rss / phi
    }
}

/// A best change of one term, and the description length after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    pub remove: Option<usize>,
    pub add: Option<usize>,
    pub length: f64,
}

/// What may not be added to a model.
struct Barred {
    stairs: bool,
    rules: Rules,
    hinges: Vec<usize>,
}

impl Barred {
    /// Two bends one apart are a step by another name, so the second is not allowed.
    fn forbids(&self, dictionary: &Dictionary, j: usize) -> bool {
        match dictionary.term(j) {
            Term::Step(_) if self.rules.continuous => true,
            Term::Step(k) if self.rules.no_step_near.is_some_and(|trial| trial.abs_diff(k) <= EDGE) => true,
            Term::Hinge(k) if self.hinges.iter().any(|h| h.abs_diff(k) == 1) => true,
            _ => !dictionary.allowed(j),
        }
    }
}

/// The chosen terms and their fit. Intercept and slope are always in, and free.
#[derive(Clone, Debug)]
pub(super) struct Model<'a, 'b> {
    pub problem: &'a Problem<'b>,
    /// Numbers of the chosen terms, in the order of the basis after intercept and slope.
    pub terms: Vec<usize>,
    basis: Basis,
    /// For each candidate, the squared norm outside the basis and the product with the residual.
    left: Vec<f64>,
    pull: Vec<f64>,
    pub residual: Vec<f64>,
    pub rss: f64,
    pub cost: f64,
}

/// Intercept and slope.
pub(super) const FREE: usize = 2;

impl<'a, 'b> Model<'a, 'b> {
    /// The straight line and `terms`; a term that the ones before it make up already is left out.
    pub fn new(problem: &'a Problem<'b>, terms: &[usize]) -> Self {
        let mut model = Self::spanning(problem, terms);
        model.finish(0);
        model
    }

    /// The same without what is kept for the candidates.
    fn spanning(problem: &'a Problem<'b>, terms: &[usize]) -> Self {
        let mut model = Self {
            problem,
            terms: Vec::with_capacity(terms.len()),
            basis: Basis::default(),
            left: problem.norms[..problem.offered].to_vec(),
            pull: Vec::new(),
            residual: problem.target.clone(),
            rss: 0.0,
            cost: 0.0,
        };
        let ones = vec![1.0; problem.dictionary.n];
        for free in [&ones, &problem.dictionary.t] {
            if !model.extend(free) {
                // Level and slope keep their places, so that coefficients do; one that cannot be told from the other is zero.
                model.basis.push_nothing(problem.dictionary.n);
            }
        }
        for &term in terms {
            if model.extend(&problem.dictionary.column(term)) {
                model.terms.push(term);
                model.cost += problem.dictionary.cost(term);
            }
        }
        model
    }

    /// Takes one column into the basis; false where nothing of it is left.
    fn extend(&mut self, column: &[f64]) -> bool {
        let Some(v) = self.basis.push(self.problem.whitened(column)) else { return false };
        let along = dot(v, &self.residual);
        for (r, q) in self.residual.iter_mut().zip(v) {
            *r -= along * q;
        }
        true
    }

    /// Brings what is kept for every candidate up to date with the basis from column `new` on.
    fn finish(&mut self, new: usize) {
        let mut products = Vec::new();
        for q in &self.basis.vectors()[new..] {
            let v: Vec<f64> = q.iter().zip(&self.problem.factor).map(|(q, f)| q * f).collect();
            self.problem.dictionary.products(&v, self.problem.offered, &mut products);
            for (left, p) in self.left.iter_mut().zip(&products) {
                *left -= p * p;
            }
        }
        let v: Vec<f64> = self.residual.iter().zip(&self.problem.factor).map(|(r, f)| r * f).collect();
        self.problem.dictionary.products(&v, self.problem.offered, &mut self.pull);
        self.rss = dot(&self.residual, &self.residual);
    }

    /// The description length.
    pub fn length(&self) -> f64 {
        self.problem.misfit(self.rss) + self.cost
    }

    /// For the chosen term at `place`: the unit vector of what only it explains, and how much of the data lies along it.
    ///
    /// Returns (unit vector in whitened space, coefficient over its standard error at dispersion one, standard error).
    pub fn direction(&self, place: usize) -> (Vec<f64>, f64, f64) {
        let mut u = self.basis.combine(&self.basis.row(place + FREE), self.problem.dictionary.n);
        let error = dot(&u, &u).sqrt();
        for u in &mut u {
            *u /= error;
        }
        let along = dot(&u, &self.problem.target);
        (u, along, error)
    }

    /// The best of all additions, removals and exchanges.
    ///
    /// Exchanges are priced at once, not only where nothing else helps: a search that adds first walks into more traps. Long
    /// series cannot afford that, and need it less: their jumps are further apart.
    pub fn best_move(&self, rules: Rules) -> Move {
        let mut best = Move { remove: None, add: None, length: self.length() };
        let projections = self.basis.along(&self.problem.target);
        let rows = (0..self.terms.len()).map(|place| self.basis.row(place + FREE));
        let directions: Vec<(Vec<f64>, f64)> = rows
            .map(|mut z| {
                let error = dot(&z, &z).sqrt();
                z.iter_mut().for_each(|z| *z /= error);
                let along = dot(&z, &projections);
                (z, along)
            })
            .collect();
        for (place, (_, along)) in directions.iter().enumerate() {
            let cost = self.cost - self.problem.dictionary.cost(self.terms[place]);
            let length = self.problem.misfit(self.rss + along * along) + cost;
            if length < best.length {
                best = Move { remove: Some(place), add: None, length };
            }
        }
        self.best_addition(rules, None, &mut best);
        if self.problem.dictionary.n > MANY && best.length < self.length() - LEAST_GAIN {
            return best;
        }
        let mut products = Vec::new();
        for (place, (z, along)) in directions.iter().enumerate() {
            let mut v = self.basis.combine(z, self.problem.dictionary.n);
            v.iter_mut().zip(&self.problem.factor).for_each(|(v, f)| *v *= f);
            self.problem.dictionary.products(&v, self.problem.offered, &mut products);
            self.best_addition(rules, Some((place, *along, &products)), &mut best);
        }
        best
    }

    /// Prices every addition, after the removal of one term where `without` names it, its part of the data, and the
    /// products of all candidates with its direction.
    fn best_addition(&self, rules: Rules, without: Option<(usize, f64, &[f64])>, best: &mut Move) {
        let dictionary = self.problem.dictionary;
        let (rss, cost) = match without {
            Some((place, along, _)) => (self.rss + along * along, self.cost - dictionary.cost(self.terms[place])),
            None => (self.rss, self.cost),
        };
        let barred = self.barred(rules, without.map(|(place, ..)| place));
        for class in &dictionary.classes {
            let is_stairs = dictionary.stairs_range().contains(&class.range.start);
            if is_stairs && (barred.stairs || self.problem.offered < class.range.end) {
                continue;
            }
            let (mut top, mut top_gain) = (usize::MAX, 0.0);
            for j in class.range.clone() {
                let (mut left, mut pull) = (self.left[j], self.pull[j]);
                if let Some((_, along, products)) = without {
                    left += products[j] * products[j];
                    pull += products[j] * along;
                }
                if is_stairs && pull < 0.0 {
                    continue;
                }
                let gain = pull * pull / left;
                if gain > top_gain && left > COLLINEAR * self.problem.norms[j] && !barred.forbids(dictionary, j) {
                    (top, top_gain) = (j, gain);
                }
            }
            if top == usize::MAX || without.is_some_and(|(place, ..)| self.terms[place] == top) {
                continue;
            }
            let length = self.problem.misfit((rss - top_gain).max(0.0)) + cost + class.cost;
            if length < best.length {
                *best = Move { remove: without.map(|(place, ..)| place), add: Some(top), length };
            }
        }
    }

    /// What the coefficient of candidate `j` would be if it were added, and its standard error at dispersion one.
    pub fn addition(&self, j: usize) -> Option<(f64, f64)> {
        let left = self.left[j];
        (left > COLLINEAR * self.problem.norms[j]).then(|| (self.pull[j] / left, left.sqrt().recip()))
    }

    /// What may not be added to the model, less the term at `removed`, under `rules`.
    fn barred(&self, rules: Rules, removed: Option<usize>) -> Barred {
        let dictionary = self.problem.dictionary;
        let kept =
            || self.terms.iter().enumerate().filter(|(i, _)| Some(*i) != removed).map(|(_, j)| dictionary.term(*j));
        Barred {
            stairs: kept().any(|term| matches!(term, Term::Stairs(_))),
            rules,
            hinges: kept().filter_map(|term| if let Term::Hinge(k) = term { Some(k) } else { None }).collect(),
        }
    }

    /// The model after `change`.
    pub fn after(&self, change: Move) -> Self {
        let mut next = change.remove.map_or_else(|| self.clone(), |place| self.without(place));
        let known = next.basis.len();
        if let Some(added) = change.add.filter(|&added| next.extend(&self.problem.dictionary.column(added))) {
            next.terms.push(added);
            next.cost += self.problem.dictionary.cost(added);
        }
        next.finish(known);
        next
    }

    /// The model without the term at `place`; its pulls are not up to date. What the candidates have outside the basis grows by
    /// their product with the direction that only that term explains, so that one pass does and not one for each term.
    fn without(&self, place: usize) -> Self {
        let mut next = self.clone();
        next.cost -= self.problem.dictionary.cost(next.terms.remove(place));
        let mut v = next.basis.remove(place + FREE);
        let along = dot(&v, &self.problem.target);
        next.residual.iter_mut().zip(&v).for_each(|(r, v)| *r += along * v);
        v.iter_mut().zip(&self.problem.factor).for_each(|(v, f)| *v *= f);
        let mut products = Vec::new();
        self.problem.dictionary.products(&v, self.problem.offered, &mut products);
        next.left.iter_mut().zip(&products).for_each(|(left, p)| *left += p * p);
        next
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
        (self.problem.dictionary.n as f64 - self.basis.len() as f64).max(1.0)
    }

    /// The dispersion: residual sum of squares over its degrees of freedom, not below the floor.
    pub fn dispersion(&self) -> f64 {
        (self.rss / self.freedom()).max(self.problem.floor)
    }

    /// The factor on all standard errors: the root of the dispersion, larger where neighbouring residuals are alike.
    ///
    /// With correlation r of neighbours (as of a first-order process) a mean over a stretch varies (1 + r) / (1 - r) times
    /// as much as it would without; r counts only where it is beyond chance.
    pub fn spread(&self) -> f64 {
        let products: f64 = self.residual.windows(2).map(|w| w[0] * w[1]).sum();
        let r = if self.rss > 0.0 { products / self.rss } else { 0.0 };
        let chance = 2.0 / (self.residual.len() as f64).sqrt();
        let alike = if r > chance { (1.0 + r.min(0.9)) / (1.0 - r.min(0.9)) } else { 1.0 };
        (self.dispersion() * alike).sqrt()
    }

    /// Degrees of freedom of the errors: those of the residuals where the dispersion was taken from them, else none to lose.
    pub fn error_freedom(&self) -> f64 {
        if self.problem.estimated || self.dispersion() > self.problem.floor { self.freedom() } else { f64::INFINITY }
    }

    /// How the combination `weights` of the coefficients follows from the whitened data: its weight on each x.
    pub fn influence(&self, weights: &[f64]) -> Vec<f64> {
        self.basis.influence(weights, self.problem.dictionary.n)
    }

    /// The share of each point in its own fit.
    pub fn leverage(&self) -> Vec<f64> {
        self.basis.leverage(self.problem.dictionary.n)
    }

    /// The fitted values of all terms for which `keep` holds; intercept and slope are always kept.
    pub fn fitted(&self, keep: impl Fn(Term) -> bool) -> Vec<f64> {
        let dictionary = self.problem.dictionary;
        let b = self.coefficients();
        let mut fit: Vec<f64> = dictionary.t.iter().map(|t| b[0] + b[1] * t).collect();
        for (&j, b) in self.terms.iter().zip(&b[FREE..]) {
            if keep(dictionary.term(j)) {
                for (fit, c) in fit.iter_mut().zip(dictionary.column(j)) {
                    *fit += b * c;
                }
            }
        }
        fit
    }
}

#[cfg(test)]
mod tests;
