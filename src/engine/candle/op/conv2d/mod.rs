//! Two-dimensional convolution (cross-correlation), NCHW.

mod cpu;
mod cpu_backward;
mod depthwise;
mod geometry;
#[cfg(test)]
mod tests;
mod unfold;

use candle_core::{CpuStorage, CustomOp2, CustomOp3, Layout, Result, Shape, Tensor, bail};

use super::operand::{by_dtype, elements, refuse_empty, with_elements};
use super::scalar::Scalar;
use crate::network;
use cpu_backward::Gradients;
use geometry::Geometry;

/// Convolves a batch of images: `x` N x C x H x W, `weight` O x (C / groups) x kernel, `bias` O; gives N x O x H' x W'
/// with `H' = (H + top + bottom - kernel) / stride + 1`, rounded down, as `torch.nn.functional.conv2d` does.
///
/// Dense and grouped convolutions are unfolded by tiles and multiplied; depthwise ones have a direct kernel.
///
/// # Errors
/// Where shapes, types or parameters do not fit together, or the batch is empty.
pub fn conv2d(x: &Tensor, weight: &Tensor, bias: Option<&Tensor>, p: &network::Conv2d) -> Result<Tensor> {
    refuse_empty(x, "conv2d")?;
    if p.bias != bias.is_some() {
        bail!("conv2d: the layer {} a bias, but it was given {}", has(p.bias), has(bias.is_some()));
    }
    let operation = Convolution(Geometry::new(x.dims(), weight.dims(), p)?);
    let (x, weight) = (x.contiguous()?, weight.contiguous()?);
    match bias {
        None => x.apply_op2(&weight, operation),
        Some(bias) if bias.dims() == [p.out_channels] => x.apply_op3(&weight, &bias.contiguous()?, operation),
        Some(bias) => bail!("conv2d: the bias must be [{}], got {:?}", p.out_channels, bias.dims()),
    }
}

fn has(present: bool) -> &'static str {
    if present { "has" } else { "has no" }
}

struct Convolution(Geometry);

impl Convolution {
    fn forward<T: Scalar>(&self, x: &[T], weight: &[T], bias: Option<&[T]>) -> (CpuStorage, Shape) {
        let g = &self.0;
        let kernel = if g.is_depthwise() { depthwise::forward } else { cpu::forward };
        let y = kernel(g, x, weight, bias);
        (T::to_cpu_storage_owned(y), Shape::from((g.batch, g.out_channels, g.out_height, g.out_width)))
    }

    fn backward<T: Scalar>(&self, x: &Tensor, weight: &Tensor, dy: &Tensor) -> Result<[Option<Tensor>; 2]> {
        let kernel = if self.0.is_depthwise() { depthwise::backward } else { cpu_backward::backward };
        let want = (x.track_op(), weight.track_op());
        let gradients: Gradients<T> = with_elements(x, |xs| {
            with_elements(weight, |ws| with_elements(dy, |dys| Ok(kernel(&self.0, xs, ws, dys, want))))
        })?;
        let tensor = |values: Option<Vec<T>>, like: &Tensor| {
            values.map(|values| Tensor::from_vec(values, like.shape(), like.device())).transpose()
        };
        Ok([tensor(gradients.x, x)?, tensor(gradients.weight, weight)?])
    }
}

impl CustomOp2 for Convolution {
    fn name(&self) -> &'static str {
        "conv2d"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, w: &CpuStorage, lw: &Layout) -> Result<(CpuStorage, Shape)> {
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), "conv2d", T => {
            Ok(self.forward::<T>(elements(x, lx)?, elements(w, lw)?, None))
        })
    }

    fn bwd(&self, x: &Tensor, w: &Tensor, _: &Tensor, dy: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        by_dtype!(x.dtype(), "conv2d", T => {
            let [dx, dw] = self.backward::<T>(x, w, &dy.contiguous()?)?;
            Ok((dx, dw))
        })
    }
}

impl CustomOp3 for Convolution {
    fn name(&self) -> &'static str {
        "conv2d"
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
        by_dtype!(candle_core::backend::BackendStorage::dtype(x), "conv2d", T => {
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
        by_dtype!(x.dtype(), "conv2d", T => {
            let dy = dy.contiguous()?;
            let [dx, dw] = self.backward::<T>(x, w, &dy)?;
            let db = with_elements::<T, _>(&dy, |dy| Ok(cpu_backward::bias_gradient(&self.0, dy)))?;
            let db = if b.track_op() { Some(Tensor::from_vec(db, b.shape(), b.device())?) } else { None };
            Ok((dx, dw, db))
        })
    }
}
