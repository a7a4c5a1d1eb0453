//! The smallest jump that would have been detected, from the conditions that a jump must meet.

use super::autoregressive;
use super::examination::{Examination, LEAST_UNITS, straightened};
use crate::detect::model::boundary;
use crate::detect::model::candidates::{EDGE, Term};
use crate::detect::model::neighbourhood;
use crate::detect::rejection::LOCAL_Z;
use crate::stats::{distribution, quantile};

/// Probability that a jump of that size fails one of the conditions. The search describes about as many again in
/// another way (a bend and a bad point, a step one place off), for which there is no formula; in simulations 0.9 and
/// more are found (`detect::tests::power`).
const MISSED: f64 = 0.02;
/// The number of boundaries that are examined: both ends of the range for which the answer holds, and evenly spaced
/// ones between.
const PLACES: usize = 5;
/// What the correlation of neighbouring errors beyond its standard error counts for; chosen on first-order processes.
const SHARED: f64 = 2.0;
/// The power of how much farther the errors reach on one side; chosen on exponential errors.
const ONE_SIDED: f64 = 0.12;
/// The 90 % quantile of absolute normal values over their median.
const NORMAL_TAILS: f64 = 2.439;

/// The smallest jump, as a share of the level, that is detected with probability 0.9 in the middle third of the points;
/// `limit` is the threshold on standard errors, `curve` the fit.
///
/// With a, b the standard errors of the size in the model and in its neighbourhood, a jump of size x is missed with at most the
/// probability `P(A) + P(B)`: A means that the estimated size stays below the largest of `limit` a (the noncentral t as
/// normal with variance 1 + limit^2 / 2 df; Johnson & Welch 1940), `smallest_jump`, two units of rounded values, and the size that the
/// autoregressive alternative requires; B means that it stays below 3.5 b in its neighbourhood. x is the size at which
/// the sum is 0.02; the largest over five places is taken.
///
/// Places near a step or a change of slope do not count, where there are others: no two lines have room there. `None` if a step is collinear with
/// the terms of the model at all places.
pub(crate) fn detectable(conditions: &Examination, curve: &[f64]) -> Option<f64> {
    let (n, model) = (curve.len(), conditions.model);
    let reach = n / 3;
    let (first, last) = (reach - 1, n - reach - 1);
    let apart = |least: usize| (first..=last).filter(|&k| boundary::is_free(model, k, least)).collect::<Vec<_>>();
    let free = Some(apart(neighbourhood::OWN_SLOPE)).filter(|free| !free.is_empty()).unwrap_or_else(|| apart(EDGE));
    let at = |i: usize| free.get(free.len().saturating_sub(1) * i / (PLACES - 1));
    let wider = unlike_normal(&conditions.model.residual);
    let sizes = (0..PLACES).filter_map(at).filter_map(|&k| smallest_at(conditions, curve, k, wider));
    sizes.reduce(f64::max)
}

/// How much larger a jump must be if errors are not independent and normal: neighbours that share errors make steps by themselves, and with
/// heavy tails, or on one side only, the few points beside a jump may scatter by more than the many that give its error.
fn unlike_normal(residual: &[f64]) -> f64 {
    let n = residual.len() as f64;
    let products: f64 = residual.windows(2).map(|pair| pair[0] * pair[1]).sum();
    let shared = products / residual.iter().map(|r| r * r).sum::<f64>().max(f64::MIN_POSITIVE);
    let mut away: Vec<f64> = residual.iter().map(|r| r.abs()).collect();
    let tails = quantile::quantile(&mut away, 0.9) / quantile::median(&mut away).max(f64::MIN_POSITIVE);
    let mut sorted = residual.to_vec();
    let [low, middle, high] = [0.05, 0.5, 0.95].map(|level| quantile::quantile(&mut sorted, level));
    let sides = ((high - middle) / (middle - low).max(f64::MIN_POSITIVE)).clamp(0.1, 10.0);
    (1.0 + SHARED * (shared - 1.0 / n.sqrt()).max(0.0))
        * (tails / NORMAL_TAILS).clamp(1.0, 2.0).sqrt()
        * sides.max(1.0 / sides).powf(ONE_SIDED)
}

/// The size after position `k`, as a share of the level there; errors are `wider` times those of normal ones.
fn smallest_at(conditions: &Examination, curve: &[f64], k: usize, wider: f64) -> Option<f64> {
    let Examination { model, limit, .. } = *conditions;
    let problem = model.problem;
    let step = problem.candidates.index(Term::Step(k));
    let (_, unit_error) = model.addition(step)?;
    let spread = model.spread();
    let error = wider * unit_error * spread;
    let local = wider * neighbourhood::local_size(model, &straightened(model, curve), k)?.error;
    let level = conditions.level[k];
    let wide = (1.0 + limit * limit / (2.0 * model.error_freedom())).sqrt();
    let unit = model.outside(&problem.whitened(&problem.candidates.column(step)));
    let preferred = autoregressive::smallest_preferred(model, &unit).min(autoregressive::WEAK * error);
    let least = (conditions.smallest * level).max(LEAST_UNITS * conditions.tick[k]);
    let missed = |x: f64| {
        let below = |needed: f64, error: f64| distribution::normal_upper((x - needed) / error);
        let own = below(limit * error, wide * error).max(below(least, error)).max(below(preferred, error));
        own + below(LOCAL_Z * local, local)
    };
    let (mut low, mut high) = (0.0, 4.0 * (limit * error + LOCAL_Z * local) + 2.0 * least);
    for _ in 0..40 {
        let middle = 0.5 * (low + high);
        if missed(middle) > MISSED { low = middle } else { high = middle }
    }
    (level > 0.0).then_some(high / level)
}
