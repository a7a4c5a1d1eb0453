//! The p-value of a series: how often one without a jump shows a step as strong as the strongest here.
//!
//! The curve is the best description without steps, and the statistic the largest step beside it, in its standard errors over the root of the
//! residual sum of squares, so that the size of the noise cancels. Its distribution without a jump is found by permuting the residuals, each corrected for its leverage, and fitting the curve again
//! (Freedman & Lane 1983): tails and sizes of the noise stay as they are. Where neighbouring residuals are correlated,
//! their innovations are permuted. Drawing ends as soon as the answer is precise enough (Besag & Clifford 1991).

use crate::detect::input::Settings;
use crate::detect::model::candidates::Term;
use crate::detect::model::fit::Model;
use crate::detect::model::simd::dot;
use crate::detect::search::descent::descend;
use crate::random::Rng;
use crate::stats::permutation;

/// Draws at least as strong as the series that end the drawing: the p-value is then known to a seventh of itself.
const ENOUGH: usize = 50;
/// A point with more leverage has almost no residual: it is a bad point with its own term.
const TAKEN: f64 = 0.95;
/// Standard errors by which the correlation of neighbours must exceed zero to count; uncorrelated noise exceeds them in
/// 7 % of series.
const CORRELATED: f64 = 1.5;
/// Residuals that are smaller than this share of their errors are rounding errors.
const ROUNDING: f64 = 1e-6;

/// The p-value of the strongest step in the series of `model`, whose surest jump has the corrected p-value `surest`.
///
/// It is not above `surest`, and nothing is drawn if the draws could not go below it. `None` if no draws are requested.
/// Cost: O(n m) for each of at most `settings.resamples` draws, with m terms.
pub(crate) fn p_value(model: &Model, surest: Option<f64>, settings: &Settings) -> Option<f64> {
    let draws = settings.resamples;
    if draws == 0 {
        return None;
    }
    match surest {
        Some(p) if p * (draws as f64 + 1.0) <= 1.0 => Some(p),
        Some(p) => Some(drawn(&without_steps(model), settings).min(p)),
        None => Some(drawn(&without_steps(model), settings)),
    }
}

/// The best description without steps near `model`.
///
/// If only its steps were removed, it would keep bends and bad points that merely compensated for them.
fn without_steps<'a, 'b>(model: &Model<'a, 'b>) -> Model<'a, 'b> {
    let candidates = model.problem.candidates;
    let steps = |p: &usize| matches!(candidates.term(model.terms[*p]), Term::Step(_) | Term::Staircase(_));
    let steps: Vec<usize> = (0..model.terms.len()).filter(steps).collect();
    if steps.is_empty() {
        return model.clone();
    }
    descend(model.without(&steps), 0..candidates.n)
}

/// For each boundary of `curve` what divides a step after it by its standard error, and the whitening factor of the point after it; the former is zero
/// where no step is allowed.
fn weights(curve: &Model) -> Vec<[f64; 2]> {
    let candidates = curve.problem.candidates;
    let weight = |k: usize| {
        let step = Some(candidates.index(Term::Step(k))).filter(|step| candidates.allowed(*step));
        [step.and_then(|step| curve.addition(step)).map_or(0.0, |(_, error)| error), curve.problem.factor[k + 1]]
    };
    (0..candidates.n - 1).map(weight).collect()
}

/// The largest step of a residual of the curve with these `weights`.
fn strongest(residual: &[f64], weights: &[[f64; 2]]) -> f64 {
    let (mut sum, mut largest) = (0.0, 0.0f64);
    for ([weight, factor], residual) in weights.iter().zip(&residual[1..]).rev() {
        sum += factor * residual;
        largest = largest.max((weight * sum).abs());
    }
    largest / dot(residual, residual).sqrt().max(f64::MIN_POSITIVE)
}

/// The share of draws whose strongest step is as large as that of the series.
fn drawn(curve: &Model, settings: &Settings) -> f64 {
    let n = curve.residual.len();
    if curve.rss <= ROUNDING * ROUNDING * n as f64 {
        return 1.0;
    }
    let weights = weights(curve);
    let own = strongest(&curve.residual, &weights);
    let mut noise = ResidualDraws::new(curve);
    let mut rng = Rng::new(settings.seed);
    let mut values = vec![0.0; n];
    let mut as_strong = 0;
    for draw in 1..=settings.resamples {
        noise.draw(&mut rng, &mut values);
        as_strong += usize::from(strongest(&curve.outside(&values), &weights) >= own);
        if as_strong == ENOUGH {
            return ENOUGH as f64 / draw as f64;
        }
    }
    permutation::p_value(as_strong, settings.resamples)
}

/// The source of the draws.
struct ResidualDraws {
    /// The positions of the residuals.
    places: Vec<usize>,
    /// The part of each value that the value before it does not predict.
    innovations: Vec<f64>,
    /// Correlation of neighbours, zero if it is not significant.
    correlation: f64,
}

impl ResidualDraws {
    fn new(curve: &Model) -> Self {
        let (residual, leverage) = (&curve.residual, curve.leverage());
        let places: Vec<usize> = (0..residual.len()).filter(|&i| leverage[i] < TAKEN).collect();
        let freed: Vec<f64> = places.iter().map(|&i| residual[i] / (1.0 - leverage[i]).sqrt()).collect();
        let count = freed.len() as f64;
        let products: f64 = freed.windows(2).map(|w| w[0] * w[1]).sum();
        let correlation = products / dot(&freed, &freed);
        // A fit with m columns lowers the correlation of its residuals by about m / n, and the two ends lower it a
        // little more.
        let lost = (residual.len() as f64 - curve.freedom() + 2.0) / count;
        let rho = if correlation > CORRELATED / count.sqrt() { (correlation + lost).min(0.95) } else { 0.0 };
        let mut innovations = freed.clone();
        for (innovation, pair) in innovations[1..].iter_mut().zip(freed.windows(2)) {
            *innovation = pair[1] - rho * pair[0];
        }
        // The first value has no predecessor: its spread is that of the process.
        innovations[0] *= (1.0 - rho * rho).sqrt();
        Self { places, innovations, correlation: rho }
    }

    fn draw(&mut self, rng: &mut Rng, values: &mut [f64]) {
        rng.shuffle(&mut self.innovations);
        values.fill(0.0);
        let mut before = self.innovations[0] / (1.0 - self.correlation * self.correlation).sqrt();
        values[self.places[0]] = before;
        for (&place, innovation) in self.places.iter().zip(&self.innovations).skip(1) {
            before = self.correlation * before + innovation;
            values[place] = before;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::model::candidates::CandidateTerms;
    use crate::detect::model::problem::Problem;

    /// Residuals of a straight line through 60 values of a first-order process.
    fn drawn_from(correlation: f64) -> ResidualDraws {
        let (mut rng, mut before) = (Rng::new(3), 0.0);
        let x: Vec<f64> = (1..=60).map(f64::from).collect();
        let mut next = || {
            before = correlation * before + rng.normal();
            before
        };
        let y: Vec<f64> = x.iter().map(|_| next()).collect();
        let candidates = CandidateTerms::new(&x);
        let problem = Problem::new(&candidates, &y, &[1.0; 60], 1.0);
        ResidualDraws::new(&Model::new(&problem, &[]))
    }

    /// A step lowers the residual sum of squares by its square, in standard errors.
    #[test]
    fn the_strongest_step_is_the_best_of_all_refits() {
        let mut rng = Rng::new(11);
        let x: Vec<f64> = (1..=25).map(f64::from).collect();
        let y: Vec<f64> = x.iter().map(|x| 1.0 + 0.1 * x + 0.2 * (x - 9.0).max(0.0) + 0.3 * rng.normal()).collect();
        let error: Vec<f64> = x.iter().map(|_| 0.1 + 0.3 * rng.uniform()).collect();
        let candidates = CandidateTerms::new(&x);
        let problem = Problem::new(&candidates, &y, &error, 1.0);
        let terms =
            [Term::Hinge(8), Term::Off { at: 15, length: 1 }, Term::Shape(3)].map(|term| candidates.index(term));
        let curve = Model::new(&problem, &terms);
        let with_step = |k: usize| Model::new(&problem, &[&terms[..], &[candidates.index(Term::Step(k))]].concat()).rss;
        let least = (2..22).map(with_step).fold(f64::INFINITY, f64::min);
        let found = strongest(&curve.residual, &weights(&curve));
        assert!((found / (1.0 - least / curve.rss).sqrt() - 1.0).abs() < 1e-8, "{found}");
    }

    #[test]
    fn noise_without_memory_is_permuted_as_it_is() {
        let mut noise = drawn_from(0.0);
        assert_eq!(noise.correlation, 0.0);
        let sorted = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values
        };
        let before = sorted(noise.innovations.clone());
        let mut values = vec![0.0; 60];
        noise.draw(&mut Rng::new(1), &mut values);
        assert_ne!(values, before);
        assert_eq!(sorted(values), before);
    }

    #[test]
    fn draws_of_noise_with_a_memory_have_it_too() {
        let mut noise = drawn_from(0.6);
        assert!((noise.correlation - 0.6).abs() < 0.2, "{}", noise.correlation);
        let (mut rng, mut values) = (Rng::new(2), vec![0.0; 60]);
        let (mut products, mut squares) = (0.0, 0.0);
        for _ in 0..500 {
            noise.draw(&mut rng, &mut values);
            products += values.windows(2).map(|w| w[0] * w[1]).sum::<f64>();
            squares += dot(&values, &values);
        }
        assert!((products / squares - noise.correlation).abs() < 0.1, "{}", products / squares);
    }
}
