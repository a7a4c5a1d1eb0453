//! Sizes of jumps, averaged over descriptions of nearly the same length.
//!
//! A search names one place for each bend and drops terms that the data do not require; both affect the sizes of nearby
//! jumps. So the size is averaged over designs: the model as found, and the model without one of its bends, curves and
//! doubtful steps. Each has slight bends at the jumps as random effects ([`super::effects`]), which replace what was
//! left out where they can. A design of description length L has the weight `exp(-L / 2)`; the error includes the
//! disagreement (Buckland, Burnham & Augustin 1997; Burnham & Anderson 2002, 4.3).

use super::design::Design;
use super::effects::{Effects, Fit, Offered};
use crate::detect::model::boundary::{self, Boundary};
use crate::detect::model::fit::Model;
use crate::detect::model::simd::dot;
use crate::detect::prepare::reduce::ROUNDING;

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

impl Size {
    /// Adds to the error how much more than by chance the neighbours disagree: their size, with its error, does not depend on what the curve does
    /// elsewhere. By chance the difference has the variance of theirs less that of this size (Hausman 1978).
    pub fn doubt(&mut self, (value, error): (f64, f64)) {
        let by_chance = (error.powi(2) - self.error.powi(2)).max(0.0);
        let beyond = (value - self.value).powi(2) - by_chance;
        self.error = self.error.hypot(beyond.max(0.0).sqrt());
    }

    /// Adds the error of both sides where times are multiples of `tick`: it does not become smaller with the number of points.
    pub fn rounded(&mut self, tick: f64) {
        self.error = self.error.hypot(std::f64::consts::SQRT_2 * ROUNDING * tick);
    }
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

    /// The fitted designs with one doubtful term fewer. None is longer than this design by [`NEGLIGIBLE`] or more. Most are priced without being built.
    fn rivals(&self, offered: &'o Offered, found: &[Boundary]) -> Vec<Self> {
        let limit = self.length() + NEGLIGIBLE;
        let design = &self.design;
        let rival = |place: usize| {
            let (v, along) = design.direction(place);
            let cost = design.cost - design.problem.candidates.cost(design.terms[place]);
            let priced = self.effects.priced_without(&v, along);
            let pays = priced.products.shortest(offered, design.problem, design.rss + along * along, cost) < limit;
            pays.then(|| Self::new(design.without(place), self.effects.beside(priced, &v)))
        };
        design.doubtful(found).filter_map(rival).filter(|rival| rival.length() < limit).collect()
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

/// The design of the model, and the designs that result from leaving out one doubtful term each.
fn fitted_designs<'a, 'b, 'o>(
    model: &Model<'a, 'b>,
    found: &[Boundary],
    offered: &'o Offered,
) -> Vec<FittedDesign<'a, 'b, 'o>> {
    let Some(design) = Design::new(model.problem, model.terms.clone()) else { return Vec::new() };
    let effects = Effects::new(offered, &design);
    let whole = FittedDesign::new(design, effects);
    let mut all = whole.rivals(offered, found);
    all.push(whole);
    all
}
