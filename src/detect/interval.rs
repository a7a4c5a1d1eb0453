//! Intervals of jump sizes: a bootstrap of the residuals of the fit.
//!
//! A size is a weighted sum of the reduced values, so one resample costs one sum: residuals, each divided by the root of one
//! minus its leverage, are drawn with replacement and pushed through the same weights (Davison & Hinkley 1997, 6.3). They hold
//! the noise of the repetitions and the roughness of the curve alike. The spread is widened to that of Student's t where the
//! dispersion was estimated, and never below what the repetitions say.

use super::boundary::{self, Boundary};
use super::model::Model;
use super::{Settings, dictionary::dot};
use crate::stats::{bootstrap, distribution};

/// (low, high) of each boundary's size at the settings' confidence; all share the same resamples.
pub(super) fn intervals(model: &Model, settings: &Settings, found: &[Boundary]) -> Vec<(f64, f64)> {
    let confidence = settings.confidence.clamp(0.0, 0.9999);
    let tail = 0.5 * (1.0 - confidence);
    let t = boundary::quantile(tail, model.freedom());
    if settings.resamples == 0 {
        return found.iter().map(|b| (b.size - t * b.error, b.size + t * b.error)).collect();
    }
    let influences: Vec<Vec<f64>> = found.iter().map(|b| model.influence(&b.weights)).collect();
    let pool = pool(model);
    let mut rng = bootstrap::Rng::new(settings.seed);
    let mut errors = vec![Vec::with_capacity(settings.resamples); found.len()];
    let mut drawn = vec![0.0; pool.len()];
    for _ in 0..settings.resamples {
        for slot in &mut drawn {
            *slot = pool[rng.below(pool.len())];
        }
        for (errors, influence) in errors.iter_mut().zip(&influences) {
            errors.push(dot(influence, &drawn));
        }
    }
    let normal = distribution::normal_upper_quantile(tail);
    let interval = |((b, influence), errors): ((&Boundary, &Vec<f64>), &mut Vec<f64>)| {
        let own = dot(influence, influence).sqrt().max(f64::MIN_POSITIVE);
        let widen = b.error / own * t / normal;
        let (low, high) = bootstrap::percentiles(errors, confidence);
        // Basic interval: what the estimate is above its own expectation is taken off.
        (b.size - widen * high, b.size - widen * low)
    };
    found.iter().zip(&influences).zip(&mut errors).map(interval).collect()
}

/// Residuals to draw from, each rid of its leverage: mean zero, mean square one.
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
