//! Poolings and batch norms by cuDNN's older calls, which need no plan and no workspace.

use std::ffi::c_void;

use super::api::cudnn as sys;
use super::convolution::legacy_descriptor::{Pooling, Tensor};
use super::device::{Gpu, StreamId};
use super::placement::Placement;
use super::status;
use crate::engine::cudnn::replacement::{LibraryCall, Norm, NormTask, PoolTask};
use crate::error::Result;

/// A call with its descriptors and the addresses of its operands.
#[derive(Debug)]
pub struct BoundCall(Ready);

#[derive(Debug)]
enum Ready {
    Pool { pooling: Pooling, x: Tensor, y: Tensor, task: PoolTask<u64> },
    Norm { norm: Norm, maps: Tensor, channels: Tensor, task: NormTask<u64> },
}

impl BoundCall {
    /// Describes a call to cuDNN.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where cuDNN cannot hold its sizes, or pools to other sizes.
    pub fn new(call: &LibraryCall, placement: &Placement) -> Result<Self> {
        Ok(Self(match call {
            LibraryCall::Pool(pool, task) => {
                let (x, y) = (Tensor::new(&pool.input, pool.element)?, Tensor::new(&pool.output, pool.element)?);
                let task = task.map(|slice| placement.resolve(slice))?;
                Ready::Pool { pooling: Pooling::new(pool, &x)?, x, y, task }
            }
            LibraryCall::Norm(norm, task) => {
                let maps = Tensor::new(&norm.maps, norm.element)?;
                let task = task.map(|slice| placement.resolve(slice))?;
                Ready::Norm { norm: *norm, channels: Tensor::of_channels(&maps, MODE)?, maps, task }
            }
        }))
    }

    /// Starts it on a stream.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn enqueue(&self, gpu: &Gpu, id: StreamId) -> Result<()> {
        gpu.cudnn(id, |handle| match &self.0 {
            Ready::Pool { pooling, x, y, task } => pool(handle, pooling, [x, y], *task),
            Ready::Norm { norm, maps, channels, task } => normalise(handle, norm, [maps, channels], *task),
        })
    }
}

/// Over batch and positions; the persistent mode may give other bits from run to run.
const MODE: sys::cudnnBatchNormMode_t = sys::cudnnBatchNormMode_t::CUDNN_BATCHNORM_SPATIAL;

/// Scaling factors are float32 for every element type here.
const ONE: f32 = 1.0;
const ZERO: f32 = 0.0;

fn factor(value: &'static f32) -> *const c_void {
    std::ptr::from_ref(value).cast()
}

fn at(address: u64) -> *mut c_void {
    address as usize as *mut c_void
}

fn pool(handle: sys::cudnnHandle_t, pooling: &Pooling, tensors: [&Tensor; 2], task: PoolTask<u64>) -> Result<()> {
    let ([xs, ys], one, zero) = (tensors.map(|tensor| tensor.0), factor(&ONE), factor(&ZERO));
    // SAFETY: descriptors and factors live; the memory is the caller's and as large as the descriptors say.
    let answer = unsafe {
        match task {
            PoolTask::Forward { x, y } => sys::cudnnPoolingForward(handle, pooling.0, one, xs, at(x), zero, ys, at(y)),
            PoolTask::Backward { x, y, dy, dx } => {
                sys::cudnnPoolingBackward(handle, pooling.0, one, ys, at(y), ys, at(dy), xs, at(x), zero, xs, at(dx))
            }
        }
    };
    status::cudnn("pool", answer)
}

fn normalise(handle: sys::cudnnHandle_t, norm: &Norm, tensors: [&Tensor; 2], task: NormTask<u64>) -> Result<()> {
    let ([maps, channels], one, zero) = (tensors.map(|tensor| tensor.0), factor(&ONE), factor(&ZERO));
    let epsilon = f64::from(norm.epsilon);
    // SAFETY: as above.
    let answer = unsafe {
        match task {
            NormTask::Forward { x, gamma, beta, running_mean, running_variance, mean, inverse_deviation, y } => {
                sys::cudnnBatchNormalizationForwardTraining(
                    handle,
                    MODE,
                    one,
                    zero,
                    maps,
                    at(x),
                    maps,
                    at(y),
                    channels,
                    at(gamma),
                    at(beta),
                    1.0 - f64::from(norm.momentum),
                    at(running_mean),
                    at(running_variance),
                    epsilon,
                    at(mean),
                    at(inverse_deviation),
                )
            }
            NormTask::Backward { x, dy, gamma, mean, inverse_deviation, dgamma, dbeta, dx } => {
                sys::cudnnBatchNormalizationBackward(
                    handle,
                    MODE,
                    one,
                    zero,
                    one,
                    zero,
                    maps,
                    at(x),
                    maps,
                    at(dy),
                    maps,
                    at(dx),
                    channels,
                    at(gamma),
                    at(dgamma),
                    at(dbeta),
                    epsilon,
                    at(mean),
                    at(inverse_deviation),
                )
            }
        }
    };
    status::cudnn("normalise a batch", answer)
}
