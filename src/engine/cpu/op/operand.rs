//! Candle's tensors and storages as the slices that the kernels work on.

use candle_core::{CpuStorage, Layout, Result, Storage, Tensor, bail};

use super::scalar::Scalar;

/// Runs the same block for float32 or float64: `by_dtype!(tensor.dtype(), "relu", T => { ... })`.
macro_rules! by_dtype {
    ($dtype:expr, $operator:expr, $float:ident => $body:block) => {
        match $dtype {
            candle_core::DType::F32 => {
                type $float = f32;
                $body
            }
            candle_core::DType::F64 => {
                type $float = f64;
                $body
            }
            other => candle_core::bail!("{}: works on float32 and float64, not on {other:?}", $operator),
        }
    };
}
pub(in crate::engine::cpu) use by_dtype;

/// The elements of a contiguous operand.
///
/// # Errors
/// Where the operand is strided or its type is not `T`.
pub fn elements<'a, T: Scalar>(storage: &'a CpuStorage, layout: &Layout) -> Result<&'a [T]> {
    let Some((start, end)) = layout.contiguous_offsets() else {
        bail!("expected a contiguous operand, got strides {:?}", layout.stride());
    };
    Ok(&T::cpu_storage_as_slice(storage)?[start..end])
}

/// As [`elements`], for the tensors that a backward pass is given.
///
/// # Errors
/// As [`elements`], and where the tensor is not on the CPU.
pub fn tensor_elements<'a, T: Scalar>(storage: &'a Storage, layout: &Layout) -> Result<&'a [T]> {
    match storage {
        Storage::Cpu(storage) => elements(storage, layout),
        _ => bail!("this operator works on the CPU only"),
    }
}

/// Runs `work` on the elements of a contiguous tensor.
///
/// # Errors
/// As [`tensor_elements`], and those of `work`.
pub fn with_elements<T: Scalar, R>(tensor: &Tensor, work: impl FnOnce(&[T]) -> Result<R>) -> Result<R> {
    let (storage, layout) = tensor.storage_and_layout();
    work(tensor_elements(&storage, layout)?)
}

/// A tensor shaped `like` another one, from its elements; nothing is copied.
///
/// # Errors
/// Where the number of elements does not fit.
pub fn tensor_like<T: Scalar>(elements: Vec<T>, like: &Tensor) -> Result<Tensor> {
    Tensor::from_vec(elements, like.shape(), like.device())
}

/// Refuses tensors without elements: a mean over an empty batch does not exist.
///
/// # Errors
/// Where `x` is empty.
pub fn refuse_empty(x: &Tensor, operator: &str) -> Result<()> {
    if x.elem_count() == 0 {
        bail!("{operator}: the batch is empty (shape {:?})", x.dims());
    }
    Ok(())
}
