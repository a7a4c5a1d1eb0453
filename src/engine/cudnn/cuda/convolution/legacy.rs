//! A convolution through cuDNN's older calls: cudnnConvolutionForward and the like.
//!
//! They name non-fused Winograd, which no note of the graph API tells from other algorithms; in strict float32 they rank algorithms
//! where the graph API only has fallbacks; and they are more candidates to measure. Their call with bias and ReLU is not used: it
//! says only when it runs that it does not support a case. cuDNN's lists of algorithms are read as plain numbers (see
//! [`Performance`]).

use std::ffi::c_void;

use crate::engine::cudnn::cuda::api::cudnn as sys;

use super::algorithm::{Algorithm, Implementation, MathType, math_name, math_of};
use super::legacy_descriptor::{Filter, Geometry, Tensor};
use super::operands::Operands;
use super::routine::Routine;
use crate::engine::cudnn::call::{Convolution, ConvolutionKind};
use crate::engine::cudnn::cuda::status;
use crate::engine::cudnn::element::Math;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::error::{Error, Result};

#[derive(Debug)]
pub struct Descriptors {
    x: Tensor,
    w: Filter,
    y: Tensor,
    geometry: Geometry,
    kind: ConvolutionKind,
}

/// A convolution with its algorithm chosen.
#[derive(Debug)]
pub struct LegacyPlan {
    descriptors: Descriptors,
    routine: Routine,
    /// As cuDNN reports it after it was set.
    pub math: MathType,
    pub workspace_bytes: u64,
}

/// cudnnConvolutionFwdAlgoPerf_t and its two twins, whose enumerations are all 32 bits wide, as plain numbers: a newer
/// cuDNN may return a status that the bindings do not know.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Performance {
    algorithm: u32,
    status: u32,
    time: f32,
    memory: usize,
    determinism: u32,
    math: u32,
    reserved: [i32; 3],
}

const _: () = assert!(size_of::<Performance>() == size_of::<sys::cudnnConvolutionFwdAlgoPerf_t>());

impl Descriptors {
    /// # Errors
    /// [`crate::error::Kind::Engine`] where these calls cannot express such a convolution.
    pub fn new(convolution: &Convolution, kind: ConvolutionKind) -> Result<Self> {
        let descriptors = Self {
            x: Tensor::new(&convolution.input, convolution.element)?,
            w: Filter::new(convolution)?,
            y: Tensor::new(&convolution.output, convolution.element)?,
            geometry: Geometry::new(convolution)?,
            kind,
        };
        descriptors.agree(&convolution.output)?;
        Ok(descriptors)
    }

    /// Fails where cuDNN calculates a different size of the output.
    fn agree(&self, output: &FeatureMaps) -> Result<()> {
        let mut sizes = [0_i32; 4];
        let [n, c, h, w] = sizes.each_mut().map(std::ptr::from_mut);
        let (x, filter, geometry) = (self.x.0, self.w.0, self.geometry.0);
        // SAFETY: the descriptors live; it writes four ints.
        let answer = unsafe { sys::cudnnGetConvolution2dForwardOutputDim(geometry, x, filter, n, c, h, w) };
        status::cudnn("report the size of a convolution's output", answer)?;
        let theirs = sizes.map(i64::from);
        let ours = [output.batch, output.channels, output.height, output.width].map(|size| size as i64);
        match theirs == ours {
            true => Ok(()),
            false => {
                Err(Error::engine(format!("cuDNN calculates an output of {theirs:?} where the plan has {ours:?}")))
            }
        }
    }

    /// What cuDNN lists, best first: only algorithms that compute it, give the same bits in every run, and keep to the
    /// precision.
    pub fn list(&self, handle: sys::cudnnHandle_t, math: Math) -> Result<Vec<(Routine, MathType)>> {
        self.geometry.set_math(arithmetics(math)[0])?;
        let mut room = [Performance::default(); 16];
        let mut count = 0;
        let (x, w, y, shape) = (self.x.0, self.w.0, self.y.0, self.geometry.0);
        let (most, all, number) = (room.len() as i32, room.as_mut_ptr(), &raw mut count);
        // SAFETY: the descriptors live; room for `most` entries of the same form.
        let answer = unsafe {
            use sys::cudnnGetConvolutionBackwardDataAlgorithm_v7 as backward_data;
            use sys::cudnnGetConvolutionBackwardFilterAlgorithm_v7 as backward_weights;
            use sys::cudnnGetConvolutionForwardAlgorithm_v7 as forward;
            match self.kind {
                ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu => {
                    forward(handle, x, w, shape, y, most, number, all.cast())
                }
                ConvolutionKind::BackwardData => backward_data(handle, w, y, shape, x, most, number, all.cast()),
                ConvolutionKind::BackwardWeights => backward_weights(handle, x, y, shape, w, most, number, all.cast()),
            }
        };
        status::cudnn("list the algorithms of a convolution", answer)?;
        let count = usize::try_from(count).unwrap_or(0).min(room.len());
        Ok(room[..count].iter().filter_map(|entry| self.usable(entry, math)).collect())
    }

    fn usable(&self, entry: &Performance, math: Math) -> Option<(Routine, MathType)> {
        let routine = Routine::numbered(self.kind, entry.algorithm)?;
        let math_type = match (math_of(entry.math)?, math) {
            // The descriptor asks for FMA; some lists do not repeat it.
            (MathType::CUDNN_DEFAULT_MATH, Math::Fp32) => MathType::CUDNN_FMA_MATH,
            (listed, _) => listed,
        };
        // CUDNN_STATUS_SUCCESS and CUDNN_DETERMINISTIC.
        let sound = entry.status == 0 && entry.determinism == 1 && routine.is_deterministic();
        (sound && allowed(math_type, math)).then_some((routine, math_type))
    }

    /// Chooses an algorithm.
    pub fn plan(self, handle: sys::cudnnHandle_t, routine: Routine, math: MathType) -> Result<LegacyPlan> {
        self.geometry.set_math(math)?;
        let read = self.geometry.math()?;
        if read != math {
            let (asked, got) = (math_name(math), math_name(read));
            return Err(Error::engine(format!("cuDNN was asked for the arithmetic {asked} and reports {got}")));
        }
        let workspace_bytes = self.workspace(handle, routine)?;
        Ok(LegacyPlan { descriptors: self, routine, math: read, workspace_bytes })
    }

    fn workspace(&self, handle: sys::cudnnHandle_t, routine: Routine) -> Result<u64> {
        let (x, w, y, shape) = (self.x.0, self.w.0, self.y.0, self.geometry.0);
        let mut bytes = 0;
        let out = &raw mut bytes;
        // SAFETY: the descriptors live; it writes one size_t.
        let answer = unsafe {
            use sys::cudnnGetConvolutionBackwardDataWorkspaceSize as backward_data;
            use sys::cudnnGetConvolutionBackwardFilterWorkspaceSize as backward_weights;
            use sys::cudnnGetConvolutionForwardWorkspaceSize as forward;
            match routine {
                Routine::Forward(algorithm) => forward(handle, x, w, shape, y, algorithm, out),
                Routine::BackwardData(algorithm) => backward_data(handle, w, y, shape, x, algorithm, out),
                Routine::BackwardWeights(algorithm) => backward_weights(handle, x, y, shape, w, algorithm, out),
            }
        };
        status::cudnn("report the workspace of an algorithm", answer)?;
        Ok(bytes as u64)
    }
}

impl LegacyPlan {
    pub fn algorithm(&self) -> Algorithm {
        let implementation = Implementation::Legacy { routine: self.routine, math: self.math };
        Algorithm { fused: false, implementation }
    }

    pub fn enqueue(&self, handle: sys::cudnnHandle_t, operands: &Operands, workspace: u64) -> Result<()> {
        let Descriptors { x: xs, w: ws, y: ys, geometry: shape, .. } = &self.descriptors;
        let (xs, ws, ys, shape) = (xs.0, ws.0, ys.0, shape.0);
        let at = |address: u64| address as usize as *mut c_void;
        let (x, w, y, space) = (at(operands.x), at(operands.w), at(operands.y), at(workspace));
        let bytes = self.workspace_bytes as usize;
        // Scaling factors are float32 for every element type here.
        let (one, zero) = (1.0_f32, 0.0_f32);
        let (one, zero) = ((&raw const one).cast::<c_void>(), (&raw const zero).cast::<c_void>());
        // SAFETY: descriptors and factors live; the memory is the caller's and as large as the descriptors say.
        let answer = unsafe {
            use sys::cudnnConvolutionBackwardData as backward_data;
            use sys::cudnnConvolutionBackwardFilter as backward_weights;
            use sys::cudnnConvolutionForward as forward;
            match self.routine {
                Routine::Forward(algorithm) => {
                    forward(handle, one, xs, x, ws, w, shape, algorithm, space, bytes, zero, ys, y)
                }
                Routine::BackwardData(algorithm) => {
                    backward_data(handle, one, ws, w, ys, y, shape, algorithm, space, bytes, zero, xs, x)
                }
                Routine::BackwardWeights(algorithm) => {
                    backward_weights(handle, one, xs, x, ys, y, shape, algorithm, space, bytes, zero, ws, w)
                }
            }
        };
        status::cudnn("run a convolution", answer)
    }
}

/// The arithmetics that a precision allows; the one that it asks for comes first. Default lets float32 inputs be rounded
/// to tf32, on GPUs that can.
pub fn arithmetics(math: Math) -> &'static [MathType] {
    match math {
        Math::Fp32 => &[MathType::CUDNN_FMA_MATH],
        Math::Tf32 => &[MathType::CUDNN_DEFAULT_MATH, MathType::CUDNN_FMA_MATH],
        Math::Half => &[MathType::CUDNN_TENSOR_OP_MATH, MathType::CUDNN_DEFAULT_MATH, MathType::CUDNN_FMA_MATH],
    }
}

/// Whether an algorithm's arithmetic keeps to a precision.
pub fn allowed(arithmetic: MathType, math: Math) -> bool {
    arithmetics(math).contains(&arithmetic)
}

#[cfg(test)]
mod tests {
    use super::*;
    use MathType::{CUDNN_DEFAULT_MATH as DEFAULT, CUDNN_FMA_MATH as FMA, CUDNN_TENSOR_OP_MATH as TENSOR_OP};

    /// None may round float32 to float16, and strict float32 uses no tensor cores at all.
    #[test]
    fn a_precision_allows_only_its_own_arithmetic() {
        for (math, own) in
            [(Math::Fp32, &[FMA][..]), (Math::Tf32, &[DEFAULT, FMA]), (Math::Half, &[TENSOR_OP, DEFAULT, FMA])]
        {
            assert_eq!(arithmetics(math), own, "{math:?}");
            for number in 0..4 {
                let arithmetic = math_of(number).unwrap();
                assert_eq!(allowed(arithmetic, math), own.contains(&arithmetic), "{arithmetic:?} {math:?}");
            }
        }
    }
}
