//! The mean squared error.

pub mod cpu;
#[cfg(test)]
mod tests;

use candle_core::{CpuStorage, CustomOp2, Layout, Result, Shape, Tensor, bail};

use super::operand::{by_dtype, elements, refuse_empty, tensor_like, with_elements};
use super::scalar::Scalar;

/// The mean over batch and features of `(prediction - target)^2`, a scalar, as `torch.nn.functional.mse_loss`.
///
/// # Errors
/// Where shapes or types differ, or the batch is empty.
pub fn mean_squared_error(prediction: &Tensor, target: &Tensor) -> Result<Tensor> {
    refuse_empty(prediction, "mean_squared_error")?;
    if prediction.dims() != target.dims() {
        bail!("mean_squared_error: a prediction of {:?} for a target of {:?}", prediction.dims(), target.dims());
    }
    prediction.contiguous()?.apply_op2(&target.contiguous()?, MeanSquaredError)
}

struct MeanSquaredError;

impl CustomOp2 for MeanSquaredError {
    fn name(&self) -> &'static str {
        "mean_squared_error"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, t: &CpuStorage, lt: &Layout) -> Result<(CpuStorage, Shape)> {
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), "mean_squared_error", T => {
            let loss = cpu::forward::<T>(elements(x, lx)?, elements(t, lt)?);
            Ok((<T as candle_core::WithDType>::to_cpu_storage_owned(vec![loss]), Shape::from(())))
        })
    }

    fn bwd(&self, x: &Tensor, t: &Tensor, _: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        by_dtype!(x.dtype(), "mean_squared_error", T => {
            let dy = dy.to_scalar::<T>()?;
            let mut dx = vec![T::ZERO; x.elem_count()];
            with_elements(x, |x| with_elements(t, |t| { cpu::backward(x, t, dy, &mut dx); Ok(()) }))?;
            let dt = if t.track_op() {
                let dt: Vec<T> = dx.iter().map(|dx| -*dx).collect();
                Some(tensor_like(dt, t)?)
            } else {
                None
            };
            Ok((if x.track_op() { Some(tensor_like(dx, x)?) } else { None }, dt))
        })
    }
}
