//! The fully connected layer.

pub mod cpu;
mod narrow;
mod sizes;
#[cfg(test)]
mod tests;

use candle_core::{CpuStorage, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor, bail};

use super::activation::Rectifier;
use super::filters::Filters;
use super::operand::{by_dtype, elements, refuse_empty, tensor_like, with_elements};
use super::scalar::Scalar;
use crate::engine::cpu::blocking::Blocking;
pub use narrow::suits as is_narrow;
pub use sizes::Sizes;

/// `x w^T + bias`: `x` N x I, `weight` O x I, `bias` O; gives N x O, as `torch.nn.functional.linear`.
///
/// # Errors
/// Where shapes or types do not fit together, or the batch is empty.
pub fn dense(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>) -> Result<Tensor> {
    refuse_empty(x, "dense")?;
    let ((batch, features), (outputs, weight_features)) = (x.dims2()?, weight.dims2()?);
    if features != weight_features || outputs == 0 {
        bail!("dense: {features} features do not fit on weights of {:?}", weight.dims());
    }
    let operation = Dense(Sizes { batch, features, outputs, blocking: Blocking::default() });
    let (x, weight) = (x.contiguous()?, weight.contiguous()?);
    match bias {
        None => x.apply_op2(&weight, operation),
        Some(bias) if bias.dims() == [outputs] => x.apply_op3(&weight, &bias.contiguous()?, operation),
        Some(bias) => bail!("dense: the bias must be [{outputs}], got {:?}", bias.dims()),
    }
}

struct Dense(Sizes);

impl Dense {
    fn forward<T: Scalar>(&self, x: &[T], weight: &[T], bias: Option<&[T]>) -> (CpuStorage, Shape) {
        let mut y = vec![T::ZERO; self.0.batch * self.0.outputs];
        let filters = Filters { weight, bias, rectifier: Rectifier::Identity };
        cpu::forward(self.0, x, filters, &mut y);
        (T::to_cpu_storage_owned(y), Shape::from((self.0.batch, self.0.outputs)))
    }

    fn backward<T: Scalar>(&self, x: &Tensor, weight: &Tensor, dy: &Tensor) -> Result<[Option<Tensor>; 2]> {
        with_elements::<T, _>(dy, |dy| {
            let gradient = |of: &Tensor, from: &Tensor, kernel: fn(Sizes, &[T], &[T], &mut [T])| {
                let mut gradient = vec![T::ZERO; of.elem_count()];
                with_elements(from, |from| {
                    kernel(self.0, from, dy, &mut gradient);
                    Ok(())
                })?;
                tensor_like(gradient, of)
            };
            let dx = if x.track_op() { Some(gradient(x, weight, cpu::input_gradient)?) } else { None };
            let dw = if weight.track_op() { Some(gradient(weight, x, cpu::weight_gradient)?) } else { None };
            Ok([dx, dw])
        })
    }
}

impl CustomOp2 for Dense {
    fn name(&self) -> &'static str {
        "dense"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, w: &CpuStorage, lw: &Layout) -> Result<(CpuStorage, Shape)> {
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), "dense", T => {
            Ok(self.forward::<T>(elements(x, lx)?, elements(w, lw)?, None))
        })
    }

    fn bwd(&self, x: &Tensor, w: &Tensor, _: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        by_dtype!(x.dtype(), "dense", T => {
            let [dx, dw] = self.backward::<T>(x, w, &dy.contiguous()?)?;
            Ok((dx, dw))
        })
    }
}

impl CustomOp3 for Dense {
    fn name(&self) -> &'static str {
        "dense"
    }

    fn cpu_fwd(
        &self,
        x: &CpuStorage,
        lx: &Layout,
        w: &CpuStorage,
        lw: &Layout,
        b: &CpuStorage,
        lb: &Layout,
    ) -> Result<(CpuStorage, Shape)> {
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), "dense", T => {
            Ok(self.forward::<T>(elements(x, lx)?, elements(w, lw)?, Some(elements(b, lb)?)))
        })
    }

    fn bwd(
        &self,
        x: &Tensor,
        w: &Tensor,
        b: &Tensor,
        _: &Tensor,
        dy: &Tensor,
    ) -> Result<(Option<Tensor>, Option<Tensor>, Option<Tensor>)> {
        by_dtype!(x.dtype(), "dense", T => {
            let dy = dy.contiguous()?;
            let [dx, dw] = self.backward::<T>(x, w, &dy)?;
            let mut db = vec![T::ZERO; b.elem_count()];
            with_elements(&dy, |dy| { cpu::bias_gradient(self.0, dy, &mut db); Ok(()) })?;
            Ok((dx, dw, if b.track_op() { Some(tensor_like(db, b)?) } else { None }))
        })
    }
}
