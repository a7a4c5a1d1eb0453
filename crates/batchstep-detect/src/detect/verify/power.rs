//! The smallest jump that would have been detected, from the conditions that a jump must meet.

use super::autoregressive;
use super::examination::{Examination, LEAST_UNITS, straightened};
use crate::detect::model::boundary;
use crate::detect::model::candidates::{EDGE, Term};
use crate::detect::model::neighbourhood;
use crate::detect::rejection::LOCAL_Z;
use crate::stats::distribution;

/// Probability that a jump of that size fails one of the conditions. The search describes about as many again in
/// another way (a bend and a bad point, a step one place off), for which there is no formula; in simulations 0.9 and
/// more are found (`detect::tests::power`).
const MISSED: f64 = 0.02;
/// The number of boundaries that are examined: both ends of the range for which the answer holds, and evenly spaced
/// ones between.
const PLACES: usize = 5;

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
    let sizes = (0..PLACES).filter_map(at).filter_map(|&k| smallest_at(conditions, curve, k));
    sizes.reduce(f64::max)
}

/// The size after position `k`, as a share of the level there.
fn smallest_at(conditions: &Examination, curve: &[f64], k: usize) -> Option<f64> {
    let Examination { model, limit, .. } = *conditions;
    let problem = model.problem;
    let step = problem.candidates.index(Term::Step(k));
    let (_, unit_error) = model.addition(step)?;
    let spread = model.spread();
    let error = unit_error * spread;
    let local = neighbourhood::local_size(model, &straightened(model, curve), k)?.error;
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
