//! Batch normalisation in training mode.
//!
//! Ioffe and Szegedy, "Batch Normalization: Accelerating Deep Network Training by Reducing Internal Covariate Shift",
//! 2015, algorithm 1: `y = gamma * (x - mean) / sqrt(variance + epsilon) + beta`, with the mean and the biased variance
//! of the batch.

pub mod cpu;
#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use candle_core::{CpuStorage, CustomOp3, Layout, Result, Shape, Tensor, bail};

use super::activation::Rectifier;
use super::operand::{by_dtype, elements, refuse_empty, tensor_like, with_elements};
use super::scalar::Scalar;
use crate::engine::train::Running;
use crate::network;
use cpu::{Moments, Norm, Planes};

/// The running mean and variance of each channel; clones share them.
#[derive(Clone, Debug)]
pub struct RunningStats(Arc<Mutex<Vec<Moments>>>);

impl RunningStats {
    /// Means 0 and variances 1.
    pub fn new(channels: usize) -> Self {
        Self(Arc::new(Mutex::new(vec![Moments { mean: 0.0, variance: 1.0 }; channels])))
    }

    /// The running mean of each channel.
    pub fn mean(&self) -> Vec<f64> {
        self.lock().iter().map(|moments| moments.mean).collect()
    }

    /// The running, unbiased variance of each channel.
    pub fn variance(&self) -> Vec<f64> {
        self.lock().iter().map(|moments| moments.variance).collect()
    }

    /// The running mean and variance of each channel.
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
            bail!("running statistics of {} channels, where there are {}", running.mean.len(), moments.len());
        }
        for (moments, (mean, variance)) in moments.iter_mut().zip(running.mean.iter().zip(&running.variance)) {
            *moments = Moments { mean: *mean, variance: *variance };
        }
        Ok(())
    }

    fn channels(&self) -> usize {
        self.lock().len()
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

/// Normalises each channel of `x` (N x C x H x W, or N x C) with the mean and variance of the batch; `gamma` and `beta`
/// are C. Updates the running statistics at once, in the forward pass.
///
/// A batch with one value per channel gives `beta` and no gradient for `x`, as in TensorFlow; PyTorch refuses it.
///
/// # Errors
/// Where shapes or types do not fit together, or the batch is empty.
pub fn batch_norm(
    x: &Tensor,
    gamma: &Tensor,
    beta: &Tensor,
    stats: &RunningStats,
    p: &network::BatchNorm,
) -> Result<Tensor> {
    refuse_empty(x, "batch_norm")?;
    let &[batch, channels, ref plane @ ..] = x.dims() else {
        bail!("batch_norm: the input needs at least 2 axes (batch, channels), got {:?}", x.dims());
    };
    let known = [gamma.elem_count(), beta.elem_count(), stats.channels()];
    if known != [channels; 3] {
        bail!("batch_norm: {channels} channels, but gamma, beta and the running statistics have {known:?}");
    }
    let planes = Planes { batch, channels, size: plane.iter().product() };
    let operation = Normalisation { planes, p: *p, stats: stats.clone(), moments: OnceLock::new() };
    x.contiguous()?.apply_op3(&gamma.contiguous()?, &beta.contiguous()?, operation)
}

struct Normalisation {
    planes: Planes,
    p: network::BatchNorm,
    stats: RunningStats,
    /// Kept by the forward pass for the backward pass.
    moments: OnceLock<Vec<Moments>>,
}

impl CustomOp3 for Normalisation {
    fn name(&self) -> &'static str {
        "batch_norm"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        gamma: &CpuStorage,
        lg: &Layout,
        beta: &CpuStorage,
        lb: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), "batch_norm", T => {
            let (x, gamma, beta) = (elements::<T>(x, lx)?, elements(gamma, lg)?, elements(beta, lb)?);
            let mut y = vec![T::ZERO; x.len()];
            let norm = Norm { gamma, beta, epsilon: self.p.epsilon, rectifier: Rectifier::Identity };
            let mut moments = vec![Moments::default(); self.planes.channels];
            cpu::forward(self.planes, x, norm, &mut y, &mut moments);
            self.stats.update(&moments, self.planes.values(), self.p.momentum);
            let _ = self.moments.set(moments);
            Ok((<T as candle_core::WithDType>::to_cpu_storage_owned(y), lx.shape().clone()))
        })
    }

    fn bwd(
        &self,
        x: &Tensor,
        gamma: &Tensor,
        beta: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        let Some(moments) = self.moments.get() else { bail!("batch_norm: backward came before forward") };
        by_dtype!(x.dtype(), "batch_norm", T => {
            let mut dx = with_elements::<T, _>(&dy.contiguous()?, |dy| Ok(dy.to_vec()))?;
            let (mut dgamma, mut dbeta) = (vec![T::ZERO; self.planes.channels], vec![T::ZERO; self.planes.channels]);
            with_elements::<T, _>(x, |x| with_elements(gamma, |gamma| with_elements(beta, |beta| {
                let norm = Norm { gamma, beta, epsilon: self.p.epsilon, rectifier: Rectifier::Identity };
                cpu::backward(self.planes, x, norm, moments, &mut dx, [&mut dgamma, &mut dbeta]);
                Ok(())
            })))?;
            let wanted = |values: Vec<T>, like: &Tensor| like.track_op().then(|| tensor_like(values, like)).transpose();
            Ok((wanted(dx, x)?, wanted(dgamma, gamma)?, wanted(dbeta, beta)?))
        })
    }
}
