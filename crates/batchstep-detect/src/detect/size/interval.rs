//! Intervals of jump sizes, by bootstrap.
//!
//! A size is a weighted sum of the reduced values, so one resample costs one sum. Where the run has blocks, whole blocks are
//! drawn ([`super::blocks`]); else the residuals of the fit, each divided by the root of one minus its leverage (Davison &
//! Hinkley 1997, 6.3), which include both the noise of the repetitions and the roughness of the curve. The spread is
//! widened to that of Student's t, and is never below the error of the size ([`super::sizes`]); beside bends and curves it is wider still
//! ([`CHOSEN`]).

use super::blocks::SizesByBlock;
use super::sizes::Size;
use crate::detect::input::Settings;
use crate::detect::model::boundary::Boundary;
use crate::detect::model::candidates::Term;
use crate::detect::model::fit::Model;
use crate::detect::model::neighbourhood::OWN_SLOPE;
use crate::detect::model::simd::dot;
use crate::random::Rng;
use crate::stats::{bootstrap, distribution};

/// The number of resamples that are drawn before the sizes are computed.
const AT_A_TIME: usize = 8;

/// How much wider intervals are than the errors of the model say, since the model was searched for in the same data. Where it has a bend or a curved shape, or an end is near,
/// [`CHOSEN`] counts: no shape of the list is quite right. So 95 % of the intervals have the true size on smooth curves of eight kinds that are not in the list (240 series, 469 jumps; `scripts/smooth-curves`),
/// and 97 % on families for development.
const SEARCHED: f64 = 1.1;
const CHOSEN: f64 = 1.8;

/// (low, high) of each size at the settings' confidence; all share the same resamples.
pub(crate) fn intervals(
    model: &Model,
    settings: &Settings,
    found: &[Boundary],
    sizes: &[Size],
    blocks: Option<&SizesByBlock>,
) -> Vec<(f64, f64)> {
    if sizes.is_empty() {
        return Vec::new();
    }
    let confidence = settings.confidence.clamp(0.0, 0.9999);
    let tail = 0.5 * (1.0 - confidence);
    let is_form = |j: &usize| matches!(model.problem.candidates.term(*j), Term::Hinge(_) | Term::Shape(_));
    let has_form = model.terms.iter().any(is_form);
    // So few points to an end show no slope of their own.
    let to_an_end = |k: usize| (k + 1).min(model.problem.candidates.n - k - 1);
    let wider = |k: usize| if has_form || to_an_end(k) < OWN_SLOPE { CHOSEN } else { SEARCHED };
    let wider: Vec<f64> = found.iter().map(|boundary| wider(boundary.k)).collect();
    let t = distribution::t_upper_quantile(tail, model.freedom());
    if settings.resamples == 0 {
        let interval = |(s, wider): (&Size, &f64)| (s.value - wider * t * s.error, s.value + wider * t * s.error);
        return sizes.iter().zip(&wider).map(interval).collect();
    }
    let mut rng = Rng::new(settings.seed);
    let errors = match blocks {
        Some(blocks) => blocks.errors(model, sizes, settings.resamples, &mut rng),
        None => from_residuals(model, sizes, settings.resamples, &mut rng),
    };
    let normal = distribution::normal_upper_quantile(tail);
    let interval = |((size, wider), mut errors): ((&Size, &f64), Vec<f64>)| {
        let spread = (dot(&errors, &errors) / errors.len() as f64).sqrt().max(f64::MIN_POSITIVE);
        let widen = match blocks {
            Some(blocks) if spread > size.error => {
                // The scatter between blocks does not depend on the choice of the model.
                let beside_blocks = (1.0 + (wider * wider - 1.0) * (size.error / spread).powi(2)).sqrt();
                beside_blocks * distribution::t_upper_quantile(tail, blended(model, size, spread, blocks))
            }
            _ => size.error / spread * wider * t,
        } / normal;
        let (low, high) = bootstrap::percentiles(&mut errors, confidence);
        // Basic interval: the excess of the estimate over its expectation is subtracted.
        (size.value - widen * high, size.value - widen * low)
    };
    sizes.iter().zip(&wider).zip(errors).map(interval).collect()
}

/// Degrees of freedom of a `spread`, part of which is known from the fit and the rest from a few blocks (Satterthwaite
/// 1946).
fn blended(model: &Model, size: &Size, spread: f64, blocks: &SizesByBlock) -> f64 {
    let (known, whole) = (size.error.powi(2), spread.powi(2));
    whole.powi(2) / (known.powi(2) / model.freedom() + (whole - known).powi(2) / blocks.freedom())
}

/// The errors of each size in resamples of the residuals: some at a time, so that each influence is read only once for
/// them.
fn from_residuals(model: &Model, sizes: &[Size], resamples: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
    let pool = pool(model);
    let n = pool.len();
    let mut errors = vec![Vec::with_capacity(resamples); sizes.len()];
    let mut drawn = vec![0.0; n * AT_A_TIME];
    for from in (0..resamples).step_by(AT_A_TIME) {
        let drawn = &mut drawn[..n * AT_A_TIME.min(resamples - from)];
        drawn.fill_with(|| pool[rng.below(n)]);
        for (errors, size) in errors.iter_mut().zip(sizes) {
            errors.extend(drawn.chunks_exact(n).map(|drawn| dot(&size.influence, drawn)));
        }
    }
    errors
}

/// Residuals to draw from, each corrected for its leverage: mean zero, mean square one.
fn pool(model: &Model) -> Vec<f64> {
    let mut pool: Vec<f64> =
        model.residual.iter().zip(model.leverage()).map(|(r, h)| r / (1.0 - h).max(0.05).sqrt()).collect();
    let mean = pool.iter().sum::<f64>() / pool.len() as f64;
    let size = (pool.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / pool.len() as f64).sqrt();
    let scale = if size > 0.0 { size.recip() } else { 0.0 };
    for value in &mut pool {
        *value = (*value - mean) * scale;
    }
    pool
}
