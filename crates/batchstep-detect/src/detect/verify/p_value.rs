//! The p-value of a series: how often one without a jump shows a step as strong as the strongest here.
//!
//! The curve is the best description without steps, and the statistic its strongest gap ([`super::gaps`]). Its distribution
//! without a jump is found by permuting the residuals, each corrected for its leverage, and fitting the curve again
//! (Freedman & Lane 1983): tails and sizes of the noise stay as they are. Where neighbouring residuals are correlated,
//! their innovations are permuted. Drawing ends as soon as the answer is precise enough (Besag & Clifford 1991).

use super::gaps::Gaps;
use crate::detect::input::Settings;
use crate::detect::model::candidates::Term;
use crate::detect::model::fit::Model;
use crate::detect::model::simd::dot;
use crate::detect::search::descent::descend_without;
use crate::random::Rng;

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
    descend_without(model.without(&steps), 0..candidates.n)
}

/// The share of draws whose strongest gap is as large as that of the series.
fn drawn(curve: &Model, settings: &Settings) -> f64 {
    let n = curve.residual.len();
    if curve.rss <= ROUNDING * ROUNDING * n as f64 {
        return 1.0;
    }
    let gaps = Gaps::new(curve);
    let own = gaps.strongest(&curve.residual);
    let mut noise = Noise::new(&curve.residual, &gaps);
    let mut rng = Rng::new(settings.seed);
    let mut values = vec![0.0; n];
    let mut as_strong = 0;
    for draw in 1..=settings.resamples {
        noise.draw(&mut rng, &mut values);
        for q in gaps.basis.vectors() {
            let along = dot(q, &values);
            values.iter_mut().zip(q).for_each(|(v, q)| *v -= along * q);
        }
        as_strong += usize::from(gaps.strongest(&values) >= own);
        if as_strong == ENOUGH {
            return ENOUGH as f64 / draw as f64;
        }
    }
    (as_strong as f64 + 1.0) / (settings.resamples as f64 + 1.0)
}

/// The source of the draws.
struct Noise {
    /// The positions of the residuals.
    places: Vec<usize>,
    /// The part of each value that the value before it does not predict.
    innovations: Vec<f64>,
    /// Correlation of neighbours, zero if it is not significant.
    correlation: f64,
}

impl Noise {
    fn new(residual: &[f64], gaps: &Gaps) -> Self {
        let leverage = gaps.basis.leverage(residual.len());
        let places: Vec<usize> = (0..residual.len()).filter(|&i| leverage[i] < TAKEN).collect();
        let freed: Vec<f64> = places.iter().map(|&i| residual[i] / (1.0 - leverage[i]).sqrt()).collect();
        let count = freed.len() as f64;
        let products: f64 = freed.windows(2).map(|w| w[0] * w[1]).sum();
        let correlation = products / dot(&freed, &freed);
        // A fit with m columns lowers the correlation of its residuals by about m / n, and the two ends lower it a
        // little more.
        let lost = (gaps.basis.len() as f64 + 2.0) / count;
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
    fn drawn_from(correlation: f64) -> Noise {
        let (mut rng, mut before) = (Rng::new(3), 0.0);
        let x: Vec<f64> = (1..=60).map(f64::from).collect();
        let mut next = || {
            before = correlation * before + rng.normal();
            before
        };
        let y: Vec<f64> = x.iter().map(|_| next()).collect();
        let candidates = CandidateTerms::new(&x);
        let problem = Problem::new(&candidates, &y, &[1.0; 60], 1.0);
        let model = Model::new(&problem, &[]);
        Noise::new(&model.residual, &Gaps::new(&model))
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
