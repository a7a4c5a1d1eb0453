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

/// Draws intervals for the boundaries of one model.
pub(super) struct Sampler<'a, 'b, 'c> {
    model: &'a Model<'b, 'c>,
    settings: &'a Settings,
    /// Residuals to draw from: mean zero, mean square one.
    pool: Vec<f64>,
    rng: bootstrap::Rng,
}

impl<'a, 'b, 'c> Sampler<'a, 'b, 'c> {
    pub fn new(model: &'a Model<'b, 'c>, settings: &'a Settings) -> Self {
        let mut pool: Vec<f64> =
            model.residual.iter().zip(model.leverage()).map(|(r, h)| r / (1.0 - h).max(0.05).sqrt()).collect();
        let mean = pool.iter().sum::<f64>() / pool.len() as f64;
        for value in &mut pool {
            *value -= mean;
        }
        let size = (dot(&pool, &pool) / pool.len() as f64).sqrt();
        if size > 0.0 {
            for value in &mut pool {
                *value /= size;
            }
        }
        Self { model, settings, pool, rng: bootstrap::Rng::new(settings.seed) }
    }

    /// (low, high) of the size at the settings' confidence.
    pub fn interval(&mut self, found: &Boundary) -> (f64, f64) {
        let confidence = self.settings.confidence.clamp(0.0, 0.9999);
        let tail = 0.5 * (1.0 - confidence);
        let freedom = self.model.freedom();
        let t = boundary::quantile(tail, freedom);
        if self.settings.resamples == 0 {
            return (found.size - t * found.error, found.size + t * found.error);
        }
        let influence = self.model.influence(&found.weights);
        let own = self.model.error_of(&found.weights);
        let widen = found.error / own.max(f64::MIN_POSITIVE) * t / distribution::normal_upper_quantile(tail);
        let mut errors: Vec<f64> = (0..self.settings.resamples)
            .map(|_| influence.iter().map(|a| a * self.pool[self.rng.below(self.pool.len())]).sum::<f64>() * widen)
            .collect();
        let (low, high) = bootstrap::percentiles(&mut errors, confidence);
        // Basic interval: what the estimate is above its own expectation is taken off.
        (found.size - high, found.size - low)
    }
}
