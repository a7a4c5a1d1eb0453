//! A convolution through cuDNN's older calls: cudnnConvolutionForward and the like.
//!
//! They compute what the graph API does not, and provide more candidates to measure. cuDNN's lists of algorithms are
//! read as plain numbers (see [`Performance`]).

use std::ffi::c_void;
use std::rc::Rc;

use crate::engine::cudnn::cuda::api::cudnn as sys;

use super::algorithm::{Algorithm, Implementation, MathType};
use super::legacy_descriptor::{Activation, Filter, Geometry, Tensor};
use super::operands::Operands;
use super::routine::{Routine, backward_data, backward_weights, forward};
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
    bias: Tensor,
    geometry: Geometry,
    rectifier: Activation,
    kind: ConvolutionKind,
}

/// An algorithm that cuDNN lists for a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    pub routine: Routine,
    pub math: MathType,
    pub workspace_bytes: u64,
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

/// A plan bound to its memory.
#[derive(Debug)]
pub struct Bound {
    plan: Rc<LegacyPlan>,
    operands: Operands,
    workspace: u64,
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
        let one = FeatureMaps { batch: 1, height: 1, width: 1, ..convolution.output };
        let descriptors = Self {
            x: Tensor::new(&convolution.input, convolution.element)?,
            w: Filter::new(convolution)?,
            y: Tensor::new(&convolution.output, convolution.element)?,
            bias: Tensor::new(&one, convolution.element)?,
            geometry: Geometry::new(convolution)?,
            rectifier: Activation::relu()?,
            kind,
        };
        descriptors.agree(&convolution.output)?;
        Ok(descriptors)
    }

    /// Fails where cuDNN calculates a different size of the output.
    fn agree(&self, output: &FeatureMaps) -> Result<()> {
        let [mut n, mut c, mut h, mut w] = [0_i32; 4];
        // SAFETY: the descriptors live; it writes four ints.
        let answer = unsafe {
            sys::cudnnGetConvolution2dForwardOutputDim(
                self.geometry.0,
                self.x.0,
                self.w.0,
                &raw mut n,
                &raw mut c,
                &raw mut h,
                &raw mut w,
            )
        };
        status::cudnn("report the size of a convolution's output", answer)?;
        let (theirs, ours) =
            ([n, c, h, w].map(i64::from), [output.batch, output.channels, output.height, output.width]);
        if theirs != ours.map(|size| size as i64) {
            return Err(Error::engine(format!("cuDNN calculates an output of {theirs:?} where the plan has {ours:?}")));
        }
        Ok(())
    }

    /// What cuDNN lists, best first: only algorithms that compute it, give the same bits in every run, and keep to the
    /// precision.
    pub fn list(&self, handle: sys::cudnnHandle_t, math: Math) -> Result<Vec<Listed>> {
        self.geometry.set_math(wanted(math))?;
        let mut room = [Performance::default(); 16];
        let mut count = 0;
        let most = room.len() as i32;
        let (x, w, y, convolution) = (self.x.0, self.w.0, self.y.0, self.geometry.0);
        let (pointer, counter) = (room.as_mut_ptr(), &raw mut count);
        // SAFETY: the descriptors live; room for `most` entries of the same form.
        let answer = unsafe {
            match self.kind {
                ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu => {
                    sys::cudnnGetConvolutionForwardAlgorithm_v7(
                        handle,
                        x,
                        w,
                        convolution,
                        y,
                        most,
                        counter,
                        pointer.cast(),
                    )
                }
                ConvolutionKind::BackwardData => sys::cudnnGetConvolutionBackwardDataAlgorithm_v7(
                    handle,
                    w,
                    y,
                    convolution,
                    x,
                    most,
                    counter,
                    pointer.cast(),
                ),
                ConvolutionKind::BackwardWeights => sys::cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                    handle,
                    x,
                    y,
                    convolution,
                    w,
                    most,
                    counter,
                    pointer.cast(),
                ),
            }
        };
        status::cudnn("list the algorithms of a convolution", answer)?;
        let count = usize::try_from(count).unwrap_or(0).min(room.len());
        Ok(room[..count].iter().filter_map(|entry| self.usable(entry, math)).collect())
    }

    fn usable(&self, entry: &Performance, math: Math) -> Option<Listed> {
        let routine = Routine::of(self.kind, entry.algorithm);
        let arithmetic = match (MathType::from_number(entry.math)?, math) {
            // The descriptor asks for FMA; some lists do not repeat it.
            (MathType::Default, Math::Fp32) => MathType::Fma,
            (arithmetic, _) => arithmetic,
        };
        // CUDNN_STATUS_SUCCESS and CUDNN_DETERMINISTIC.
        let sound = entry.status == 0 && entry.determinism == 1 && routine.is_deterministic();
        (sound && allowed(arithmetic, math)).then_some(Listed {
            routine,
            math: arithmetic,
            workspace_bytes: entry.memory as u64,
        })
    }

    /// Chooses an algorithm.
    pub fn plan(self, handle: sys::cudnnHandle_t, routine: Routine, math: MathType) -> Result<LegacyPlan> {
        self.geometry.set_math(math)?;
        let read = self.geometry.math()?;
        if read != math {
            let (asked, got) = (math.name(), read.name());
            return Err(Error::engine(format!("cuDNN was asked for the arithmetic {asked} and reports {got}")));
        }
        let workspace_bytes = self.workspace(handle, routine)?;
        Ok(LegacyPlan { descriptors: self, routine, math: read, workspace_bytes })
    }

    fn workspace(&self, handle: sys::cudnnHandle_t, routine: Routine) -> Result<u64> {
        let (x, w, y, convolution) = (self.x.0, self.w.0, self.y.0, self.geometry.0);
        let mut bytes = 0;
        let out = &raw mut bytes;
        // SAFETY: the descriptors live; it writes one size_t.
        let answer = unsafe {
            match routine {
                Routine::Forward(number) => {
                    sys::cudnnGetConvolutionForwardWorkspaceSize(handle, x, w, convolution, y, forward(number)?, out)
                }
                Routine::BackwardData(number) => sys::cudnnGetConvolutionBackwardDataWorkspaceSize(
                    handle,
                    w,
                    y,
                    convolution,
                    x,
                    backward_data(number)?,
                    out,
                ),
                Routine::BackwardWeights(number) => sys::cudnnGetConvolutionBackwardFilterWorkspaceSize(
                    handle,
                    x,
                    y,
                    convolution,
                    w,
                    backward_weights(number)?,
                    out,
                ),
            }
        };
        status::cudnn("report the workspace of an algorithm", answer)?;
        Ok(bytes as u64)
    }
}

impl LegacyPlan {
    pub fn algorithm(&self) -> Algorithm {
        let fused = self.descriptors.kind == ConvolutionKind::ForwardBiasRelu;
        Algorithm { fused, implementation: Implementation::Legacy { routine: self.routine, math: self.math } }
    }

    pub fn bind(self: &Rc<Self>, operands: Operands, workspace: u64) -> Bound {
        Bound { plan: self.clone(), operands, workspace }
    }
}

impl Bound {
    pub fn enqueue(&self, handle: sys::cudnnHandle_t) -> Result<()> {
        let LegacyPlan { descriptors, routine, workspace_bytes, .. } = &*self.plan;
        let (xs, ws, ys, convolution) = (descriptors.x.0, descriptors.w.0, descriptors.y.0, descriptors.geometry.0);
        let at = |address: u64| address as usize as *mut c_void;
        let (x, w, y, workspace) = (at(self.operands.x), at(self.operands.w), at(self.operands.y), at(self.workspace));
        let bytes = *workspace_bytes as usize;
        // Scaling factors are float32 for every element type here.
        let (one, zero) = (1.0_f32, 0.0_f32);
        let (one, zero) = ((&raw const one).cast::<c_void>(), (&raw const zero).cast::<c_void>());
        // SAFETY: descriptors and factors live; the memory is the caller's and as large as the descriptors say.
        let answer = unsafe {
            match (*routine, self.operands.bias) {
                (Routine::Forward(number), None) => sys::cudnnConvolutionForward(
                    handle,
                    one,
                    xs,
                    x,
                    ws,
                    w,
                    convolution,
                    forward(number)?,
                    workspace,
                    bytes,
                    zero,
                    ys,
                    y,
                ),
                // z is y, and its factor 0: nothing is read from it.
                (Routine::Forward(number), Some(bias)) => sys::cudnnConvolutionBiasActivationForward(
                    handle,
                    one,
                    xs,
                    x,
                    ws,
                    w,
                    convolution,
                    forward(number)?,
                    workspace,
                    bytes,
                    zero,
                    ys,
                    y,
                    descriptors.bias.0,
                    at(bias),
                    descriptors.rectifier.0,
                    ys,
                    y,
                ),
                (Routine::BackwardData(number), _) => sys::cudnnConvolutionBackwardData(
                    handle,
                    one,
                    ws,
                    w,
                    ys,
                    y,
                    convolution,
                    backward_data(number)?,
                    workspace,
                    bytes,
                    zero,
                    xs,
                    x,
                ),
                (Routine::BackwardWeights(number), _) => sys::cudnnConvolutionBackwardFilter(
                    handle,
                    one,
                    xs,
                    x,
                    ys,
                    y,
                    convolution,
                    backward_weights(number)?,
                    workspace,
                    bytes,
                    zero,
                    ws,
                    w,
                ),
            }
        };
        status::cudnn("run a convolution", answer)
    }
}

/// The arithmetic that a precision asks for. Default lets float32 inputs be rounded to tf32, on GPUs that can.
fn wanted(math: Math) -> MathType {
    match math {
        Math::Fp32 => MathType::Fma,
        Math::Tf32 => MathType::Default,
        Math::Half => MathType::TensorOp,
    }
}

/// Whether an algorithm's arithmetic keeps to a precision.
pub fn allowed(arithmetic: MathType, math: Math) -> bool {
    match math {
        Math::Fp32 => arithmetic == MathType::Fma,
        Math::Tf32 => matches!(arithmetic, MathType::Fma | MathType::Default),
        Math::Half => arithmetic != MathType::TensorOpAllowConversion,
    }
}

/// The arithmetics that a precision allows; the one that it asks for comes first.
pub fn arithmetics(math: Math) -> impl Iterator<Item = MathType> {
    let others = [MathType::Default, MathType::Fma];
    let first = wanted(math);
    std::iter::once(first).chain(others.into_iter().filter(move |other| *other != first && allowed(*other, math)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_allows_only_its_own_arithmetic() {
        let all = [MathType::Default, MathType::TensorOp, MathType::TensorOpAllowConversion, MathType::Fma];
        let of = |math: Math| all.into_iter().filter(|arithmetic| allowed(*arithmetic, math)).collect::<Vec<_>>();
        assert_eq!(of(Math::Fp32), [MathType::Fma]);
        assert_eq!(of(Math::Tf32), [MathType::Default, MathType::Fma]);
        assert_eq!(of(Math::Half), [MathType::Default, MathType::TensorOp, MathType::Fma]);
        for math in [Math::Fp32, Math::Tf32, Math::Half] {
            assert!(allowed(wanted(math), math));
        }
        let in_turn = |math: Math| arithmetics(math).collect::<Vec<_>>();
        assert_eq!(in_turn(Math::Fp32), [MathType::Fma]);
        assert_eq!(in_turn(Math::Tf32), [MathType::Default, MathType::Fma]);
        assert_eq!(in_turn(Math::Half), [MathType::TensorOp, MathType::Default, MathType::Fma]);
    }
}
