//! Batch normalisation in training mode.
//!
//! Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift",
//! 2015, algorithm 1: `y = gamma * (x - mean) / sqrt(variance + epsilon) + beta`, with the mean and the biased variance
//! of the batch. One value per channel gives `beta` and no gradient, as in TensorFlow; PyTorch refuses it.

pub mod cpu;
#[cfg(test)]
mod tests;

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::engine::train::Running;
use crate::error::{Error, Result};
use cpu::Moments;

/// The running mean and variance of each channel.
#[derive(Debug)]
pub struct RunningStats(Mutex<Vec<Moments>>);

impl RunningStats {
    /// Means 0 and variances 1.
    pub fn new(channels: usize) -> Self {
        Self(Mutex::new(vec![Moments { mean: 0.0, variance: 1.0 }; channels]))
    }

    /// The running mean and the running, unbiased variance of each channel.
    pub fn moments(&self) -> Vec<Moments> {
        self.lock().clone()
    }

    /// Overwrites the running statistics.
    ///
    /// # Errors
    /// Where the number of channels differs.
    pub fn set(&self, running: &Running) -> Result<()> {
        let mut moments = self.lock();
        if [running.mean.len(), running.variance.len()] != [moments.len(); 2] {
            let what =
                format!("running statistics of {} channels, where there are {}", running.mean.len(), moments.len());
            return Err(Error::engine(what));
        }
        for (moments, (mean, variance)) in moments.iter_mut().zip(running.mean.iter().zip(&running.variance)) {
            *moments = Moments { mean: *mean, variance: *variance };
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Moments>> {
        // A panic elsewhere cannot leave a number half written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `running = momentum * running + (1 - momentum) * batch`, with the unbiased variance of `count` values. One value
    /// has no unbiased variance; TensorFlow's fused batch norm then divides by 1, and so do we.
    pub fn update(&self, batch: &[Moments], count: usize, momentum: f64) {
        let unbiased = count as f64 / (count.max(2) - 1) as f64;
        let blend = |running: &mut f64, batch: f64| *running = momentum * *running + (1.0 - momentum) * batch;
        let mut running = self.lock();
        for (running, batch) in running.iter_mut().zip(batch) {
            blend(&mut running.mean, batch.mean);
            blend(&mut running.variance, unbiased * batch.variance);
        }
    }
}
