//! The search's view of a model: the gain of every change, without a refit.

use std::ops::Range;

use super::basis::COLLINEAR;
use super::candidates::{CandidateTerms, Class, Term};
use super::fit::{FREE, Model};
use super::simd::{self, dot};

/// The least gain of a change, so that rounding cannot make a search go in circles.
///
/// Many sets of terms span the same curves at the same cost: two neighbouring steps, or either of them and a bad point between. Their
/// lengths differ only by rounding, so the first of them counts: otherwise the last digit would decide, and with it the unit of y.
pub(crate) const LEAST_GAIN: f64 = 1e-6;

/// The share by which a gain must exceed another to be larger.
const LARGER: f64 = 1e-8;

/// The first of the shortest models.
pub(crate) fn shortest<'a, 'b>(models: impl IntoIterator<Item = Model<'a, 'b>>) -> Option<Model<'a, 'b>> {
    models.into_iter().reduce(|best, rival| if rival.length() < best.length() - LEAST_GAIN { rival } else { best })
}

/// The best change of one term, and the description length after it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub remove: Option<usize>,
    pub add: Option<usize>,
    pub length: f64,
}

/// The removal of one chosen term.
#[derive(Clone, Copy)]
struct Removal<'a> {
    place: usize,
    /// The parts of the data and of each candidate along the direction of the removed term.
    along: f64,
    products: &'a [f64],
}

/// Terms that may not be added to a model.
pub(crate) struct Barred {
    no_step: Range<usize>,
    staircase: bool,
    steps: Vec<usize>,
    hinges: Vec<usize>,
}

impl Barred {
    /// Many sets of terms span the same curves; one of them is allowed. Two steps around one point are one step and a point off the curve, since that
    /// point may belong to either side, and two bends one point apart are a step.
    pub(crate) fn forbids(&self, candidates: &CandidateTerms, j: usize) -> bool {
        match candidates.term(j) {
            Term::Step(k) if self.no_step.contains(&k) || self.steps.iter().any(|other| other.abs_diff(k) == 1) => true,
            Term::Hinge(k) if self.hinges.iter().any(|other| other.abs_diff(k) == 1) => true,
            _ => !candidates.allowed(j),
        }
    }
}

impl Model<'_, '_> {
    /// Makes `change`. The candidates' parts outside the basis are updated: one pass for each term that is added or
    /// removed, instead of one for each term of the model.
    pub fn make(&mut self, change: Move) {
        if let Some(place) = change.remove {
            self.remove(place);
        }
        if let Some(term) = change.add {
            self.add(term);
        }
        self.settle();
    }

    /// The best of all additions, removals and exchanges; none adds a step after a position in `no_step`.
    ///
    /// Exchanges are priced together with the others, not only when nothing else helps: a search that first only adds
    /// runs into more traps.
    pub fn best_move(&self, no_step: Range<usize>) -> Move {
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
        let is_kept = |place: usize| self.problem.kept.contains(&self.terms[place]);
        for (place, (_, along)) in directions.iter().enumerate().filter(|(place, _)| !is_kept(*place)) {
            let cost = self.cost - self.problem.candidates.cost(self.terms[place]);
            let length = self.problem.misfit(self.rss + along * along) + cost;
            if length < best.length - LEAST_GAIN {
                best = Move { remove: Some(place), add: None, length };
            }
        }
        let mut gains = Vec::new();
        self.best_addition(no_step.clone(), None, &mut gains, &mut best);
        let least = self.least_exchanged(&gains);
        let mut products = Vec::new();
        for (place, (z, along)) in directions.iter().enumerate().filter(|(place, _)| !is_kept(*place)) {
            if least - self.problem.candidates.cost(self.terms[place]) >= best.length {
                continue;
            }
            // The products of a direction follow from those of the unit vectors.
            products.clear();
            products.resize(self.problem.offered, 0.0);
            simd::combine(self.spans.iter().map(Vec::as_slice), z, &mut products);
            let removal = Removal { place, along: *along, products: &products };
            self.best_addition(no_step.clone(), Some(removal), &mut gains, &mut best);
        }
        best
    }

    /// Prices every addition, after the removal `without`, if any. `gains` is scratch.
    fn best_addition(&self, no_step: Range<usize>, without: Option<Removal>, gains: &mut Vec<f64>, best: &mut Move) {
        let candidates = self.problem.candidates;
        let (rss, cost) = match without {
            Some(Removal { place, along, .. }) => {
                (self.rss + along * along, self.cost - candidates.cost(self.terms[place]))
            }
            None => (self.rss, self.cost),
        };
        let barred = self.barred(no_step, without.map(|gone| gone.place));
        simd::gains(&self.outside_norms, &self.inner_products, without.map(|gone| (gone.along, gone.products)), gains);
        let length = |gain: f64, class: &Class| self.problem.misfit((rss - gain).max(0.0)) + cost + class.cost;
        // The misfit is a concave function of the residual sum of squares, so a gain lowers it by less than the chord
        // to the largest gain. For most classes this shows, without a logarithm, that no term in them pays.
        let whole = self.problem.misfit(rss);
        let most = simd::largest(gains).min(rss);
        let chord = if most > 0.0 { (whole - self.problem.misfit(rss - most)) / most } else { 0.0 };
        let first_staircase = candidates.staircase_range().start;
        for class in &candidates.classes {
            // Staircases are the last of the candidate terms.
            if class.range.start >= first_staircase && (barred.staircase || self.problem.offered == first_staircase) {
                break;
            }
            let own = match class.range.len() {
                1 => gains[class.range.start],
                _ => simd::largest(&gains[class.range.clone()]),
            };
            let pays = |taken: f64| whole - taken + cost + class.cost < best.length;
            if own <= most && !pays(chord * own + LEAST_GAIN) {
                continue;
            }
            let Some(top) = self.largest_allowed(class, &barred, gains, without) else { continue };
            let length = length(gains[top], class);
            if length < best.length - LEAST_GAIN && without.is_none_or(|gone| self.terms[gone.place] != top) {
                *best = Move { remove: without.map(|gone| gone.place), add: Some(top), length };
            }
        }
    }

    /// A lower bound on the description length after any exchange, plus the cost of the term removed, from the `gains` of all
    /// additions.
    ///
    /// With a direction of data a and candidate's product p taken out, its gain is (inner product + p a)^2 / (norm + p^2),
    /// at most inner product^2 / norm + a^2 (Cauchy & Schwarz): an exchange explains no more than the removed direction
    /// and the addition together.
    fn least_exchanged(&self, gains: &[f64]) -> f64 {
        let classes = self.problem.candidates.classes.iter().filter(|class| class.range.end <= gains.len());
        let length = |class: &Class| {
            let most = simd::largest(&gains[class.range.clone()]);
            self.problem.misfit((self.rss - most).max(0.0)) + class.cost
        };
        self.cost - LEAST_GAIN + classes.map(length).fold(f64::INFINITY, f64::min)
    }

    /// The candidate of `class` with the largest of `gains` among those that may be added.
    fn largest_allowed(
        &self,
        class: &Class,
        barred: &Barred,
        gains: &[f64],
        without: Option<Removal>,
    ) -> Option<usize> {
        let candidates = self.problem.candidates;
        // A falling staircase is a sawtooth; one with a long period would fit any slow fall and rise.
        let forbidden_fall = |j: usize| {
            let along = self.inner_products[j] + without.map_or(0.0, |gone| gone.products[j] * gone.along);
            along < 0.0 && !candidates.may_fall(j)
        };
        let norm = |j: usize| self.outside_norms[j] + without.map_or(0.0, |gone| gone.products[j].powi(2));
        let (mut top, mut top_gain) = (None, 0.0);
        for j in class.range.clone() {
            if gains[j] > (1.0 + LARGER) * top_gain
                && !forbidden_fall(j)
                && norm(j) > COLLINEAR * self.problem.norms[j]
                && !barred.forbids(candidates, j)
            {
                (top, top_gain) = (Some(j), gains[j]);
            }
        }
        top
    }

    /// The terms that may not be added to the model without the term at `removed`, with the steps after a position in `no_step`.
    pub(crate) fn barred(&self, no_step: Range<usize>, removed: Option<usize>) -> Barred {
        let candidates = self.problem.candidates;
        let mut barred = Barred { no_step, staircase: false, steps: Vec::new(), hinges: Vec::new() };
        for (_, &j) in self.terms.iter().enumerate().filter(|(place, _)| Some(*place) != removed) {
            match candidates.term(j) {
                Term::Step(k) => barred.steps.push(k),
                Term::Hinge(k) => barred.hinges.push(k),
                Term::Staircase(s) => {
                    barred.staircase = true;
                    barred.steps.extend(&candidates.staircases[s].steps);
                }
                _ => {}
            }
        }
        barred
    }
}
