//! Sizes of jumps, averaged over descriptions of nearly the same length.
//!
//! A search names one place for each bend and drops terms that the data do not require; both affect the sizes of nearby
//! jumps. So the size is averaged over designs: the model as found, and the model without some of its bends, curves and
//! doubtful steps. Each has slight bends at the jumps as random effects ([`super::effects`]), which replace what was
//! left out where they can. A design of description length L has the weight `exp(-L / 2)`; the error includes the
//! disagreement (Buckland, Burnham & Augustin 1997; Burnham & Anderson 2002, 4.3).

use super::design::Design;
use super::effects::{Effects, Fit, Offered};
use crate::detect::model::boundary::{self, Boundary};
use crate::detect::model::candidates::Term;
use crate::detect::model::fit::Model;
use crate::detect::model::simd::dot;

/// The most terms that may be left out at once.
const DEPTH: usize = 3;
/// The number of shapes before and after a shape in its class that may replace it.
const RIVALS: usize = 16;
/// Designs and widths whose description is longer than the shortest by this much are left out (weight e^-5).
const NEGLIGIBLE: f64 = 10.0;

/// The size of one jump, averaged over designs and widths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Size {
    pub value: f64,
    /// Standard error, including doubt about the design.
    pub error: f64,
    /// What each whitened value contributes to `value`.
    pub influence: Vec<f64>,
}

/// A design with its effects at all widths.
struct FittedDesign<'a, 'b, 'o> {
    design: Design<'a, 'b>,
    effects: Effects<'o>,
    fits: Vec<Fit>,
}

impl<'a, 'b, 'o> FittedDesign<'a, 'b, 'o> {
    fn new(design: Design<'a, 'b>, effects: Effects<'o>) -> Self {
        let fits = effects.fits(&design, NEGLIGIBLE);
        Self { design, effects, fits }
    }

    fn length(&self) -> f64 {
        self.fits.iter().map(|f| f.length).fold(f64::INFINITY, f64::min)
    }

    /// The fitted designs with one doubtful term fewer and, with `reshaped`, those in which another shape of the same
    /// class replaces one. None is longer than this design by [`NEGLIGIBLE`] or more. Most are priced without being
    /// built.
    fn rivals(&self, offered: &'o Offered, found: &[Boundary], reshaped: bool) -> Vec<Self> {
        let limit = self.length() + NEGLIGIBLE;
        let design = &self.design;
        let candidates = design.problem.candidates;
        let mut rivals = Vec::new();
        for place in design.doubtful(found) {
            let (v, along) = design.direction(place);
            let (rss, cost) = (design.rss + along * along, design.cost - candidates.cost(design.terms[place]));
            let priced = self.effects.priced_without(&v, along);
            if priced.products.shortest(offered, design.problem, rss, cost) < limit {
                rivals.push(Self::new(design.without(place), self.effects.beside(priced, &v, 1.0)));
            }
            if reshaped && matches!(candidates.term(design.terms[place]), Term::Shape(_)) {
                rivals.extend(self.reshaped(place, offered, limit));
            }
        }
        rivals.retain(|rival| rival.length() < limit);
        rivals
    }

    /// The fitted designs in which another shape replaces the one at `place`, if they may be shorter than `limit`.
    fn reshaped(&self, place: usize, offered: &'o Offered, limit: f64) -> Vec<Self> {
        let (problem, j) = (self.design.problem, self.design.terms[place]);
        let candidates = problem.candidates;
        let Some(class) = candidates.classes.iter().find(|c| c.range.contains(&j)) else { return Vec::new() };
        let near = j.saturating_sub(RIVALS).max(class.range.start)..(j + RIVALS + 1).min(class.range.end);
        let rest = self.design.without(place);
        let effects = Effects::new(offered, &rest);
        let rival = |other: usize| {
            let mut q = rest.basis.outside(&problem.whitened(&candidates.column(other)));
            let norm = dot(&q, &q).sqrt();
            q.iter_mut().for_each(|q| *q /= norm);
            let along = dot(&q, &rest.residual);
            let (rss, cost) = (rest.rss - along * along, rest.cost + candidates.cost(other));
            let priced = effects.priced_with(&q, along);
            // If a shape is a combination of the others, the norm and all of q are zero up to rounding.
            let pays = norm > 0.0 && priced.products.shortest(offered, problem, rss, cost) < limit;
            Some(Self::new(pays.then(|| rest.with(other)).flatten()?, effects.beside(priced, &q, -1.0)))
        };
        near.filter(|other| *other != j).filter_map(rival).collect()
    }
}

/// Sizes of the jumps at `found`, in that order.
///
/// Cost: for each design O(q n (p + q) + g q^3), q effects, p terms, g widths; at most a few dozen designs.
pub(crate) fn sizes(model: &Model, found: &[Boundary]) -> Vec<Size> {
    if found.is_empty() {
        return Vec::new();
    }
    let offered = Offered::new(model.problem, found, model.dispersion().sqrt());
    let fitted = fitted_designs(model, found, &offered);
    let best = fitted.iter().map(FittedDesign::length).fold(f64::INFINITY, f64::min);
    let inflation = model.spread().powi(2) / model.dispersion();
    let mut sums = vec![Sum::new(model.residual.len()); found.len()];
    for design in &fitted {
        for (i, (boundary, sum)) in found.iter().zip(&mut sums).enumerate() {
            design.add(sum, i, boundary, best, inflation);
        }
    }
    sums.into_iter().zip(found).map(|(sum, boundary)| sum.size(boundary.size)).collect()
}

/// Weighted moments of one size about the size as found, so that no digits are lost.
#[derive(Clone)]
struct Sum {
    weight: f64,
    off: f64,
    square: f64,
    influence: Vec<f64>,
}

impl Sum {
    fn new(n: usize) -> Self {
        Self { weight: 0.0, off: 0.0, square: 0.0, influence: vec![0.0; n] }
    }

    fn size(self, found: f64) -> Size {
        let off = self.off / self.weight;
        Size {
            value: found + off,
            error: (self.square / self.weight - off * off).max(0.0).sqrt(),
            influence: self.influence.iter().map(|v| v / self.weight).collect(),
        }
    }
}

impl FittedDesign<'_, '_, '_> {
    /// Adds this design's size of the `i`-th jump; `best` is the shortest description of all designs, and `inflation`
    /// the factor on variances for correlated neighbours.
    fn add(&self, sum: &mut Sum, i: usize, found: &Boundary, best: f64, inflation: f64) {
        let design = &self.design;
        let (_, _, weights) = boundary::departure(design.problem.candidates, &design.terms, found.k);
        let fixed = design.basis.influence(&weights, sum.influence.len());
        let (own, norm) = (dot(&fixed, &design.problem.target) - found.size, dot(&fixed, &fixed));
        let c = self.effects.part(&fixed, i);
        let (mut total, mut moved) = (0.0, vec![0.0; c.len()]);
        for fit in self.fits.iter().filter(|fit| fit.length < best + NEGLIGIBLE) {
            let weight = (0.5 * (best - fit.length)).exp();
            let along = fit.moved(&c);
            let (shift, variance) = self.effects.contribution(&along, &c);
            let off = own + shift;
            sum.off += weight * off;
            sum.square += weight * (fit.dispersion * inflation * (norm + variance) + off * off);
            total += weight;
            moved.iter_mut().zip(&along).for_each(|(sum, a)| *sum += weight * a);
        }
        sum.weight += total;
        sum.influence.iter_mut().zip(&fixed).for_each(|(sum, f)| *sum += total * f);
        self.effects.influence(&moved, &mut sum.influence);
    }
}

/// The design of the model, its bare staircase, and the designs that result from leaving out doubtful terms one by one,
/// best first.
fn fitted_designs<'a, 'b, 'o>(
    model: &Model<'a, 'b>,
    found: &[Boundary],
    offered: &'o Offered,
) -> Vec<FittedDesign<'a, 'b, 'o>> {
    let designs = [Some(model.terms.clone()), bare(model)].into_iter().flatten();
    let designs = designs.filter_map(|terms| Design::new(model.problem, terms));
    let whole = |design: Design<'a, 'b>| {
        let effects = Effects::new(offered, &design);
        FittedDesign::new(design, effects)
    };
    let mut all: Vec<FittedDesign> = designs.map(whole).collect();
    let mut from = 0;
    for round in 0..DEPTH {
        let Some(base) = all[from..].iter().min_by(|a, b| a.length().total_cmp(&b.length())) else { break };
        let rivals = base.rivals(offered, found, round == 0);
        from = all.len();
        all.extend(rivals);
    }
    all
}

/// The terms of a model with a staircase, without all terms that may represent the deviations of single steps.
fn bare(model: &Model) -> Option<Vec<usize>> {
    let term = |j: &usize| model.problem.candidates.term(*j);
    let staircase = model.terms.iter().find(|j| matches!(term(j), Term::Staircase(_)))?;
    let smooth = model.terms.iter().filter(|j| matches!(term(j), Term::Hinge(_) | Term::Shape(_)));
    let terms: Vec<usize> = std::iter::once(staircase).chain(smooth).copied().collect();
    (terms.len() < model.terms.len()).then_some(terms)
}
