//! The algorithms of cuDNN's older calls.

use std::mem::discriminant;

use crate::engine::cudnn::cuda::api::cudnn as sys;
use sys::cudnnConvolutionBwdDataAlgo_t as Data;
use sys::cudnnConvolutionBwdFilterAlgo_t as Weights;
use sys::cudnnConvolutionFwdAlgo_t as Forward;

use crate::engine::cudnn::call::ConvolutionKind;
use crate::error::{Error, Result};
use crate::settings::Winograd;

/// An algorithm for one direction, by its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    Forward(u32),
    BackwardData(u32),
    BackwardWeights(u32),
}

// By their numbers: our names and those of the bindings.
const FORWARD: [(&str, Forward); 8] = [
    ("implicit_gemm", Forward::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM),
    ("implicit_precomp_gemm", Forward::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM),
    ("gemm", Forward::CUDNN_CONVOLUTION_FWD_ALGO_GEMM),
    ("direct", Forward::CUDNN_CONVOLUTION_FWD_ALGO_DIRECT),
    ("fft", Forward::CUDNN_CONVOLUTION_FWD_ALGO_FFT),
    ("fft_tiling", Forward::CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING),
    ("winograd", Forward::CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD),
    ("winograd_nonfused", Forward::CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED),
];
const BACKWARD_DATA: [(&str, Data); 6] = [
    ("backward_data_0", Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_0),
    ("backward_data_1", Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_1),
    ("backward_data_fft", Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT),
    ("backward_data_fft_tiling", Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING),
    ("backward_data_winograd", Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD),
    ("backward_data_winograd_nonfused", Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED),
];
const BACKWARD_WEIGHTS: [(&str, Weights); 7] = [
    ("backward_weights_0", Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0),
    ("backward_weights_1", Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1),
    ("backward_weights_fft", Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT),
    ("backward_weights_3", Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3),
    ("backward_weights_winograd", Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD),
    ("backward_weights_winograd_nonfused", Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED),
    ("backward_weights_fft_tiling", Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING),
];

pub fn forward(number: u32) -> Result<Forward> {
    known(&FORWARD, number)
}

pub fn backward_data(number: u32) -> Result<Data> {
    known(&BACKWARD_DATA, number)
}

pub fn backward_weights(number: u32) -> Result<Weights> {
    known(&BACKWARD_WEIGHTS, number)
}

fn known<T: Copy>(all: &[(&str, T)], number: u32) -> Result<T> {
    let found = all.get(number as usize).map(|(_, algorithm)| *algorithm);
    found.ok_or_else(|| Error::engine(format!("cuDNN's bindings know no convolution algorithm {number}")))
}

impl Routine {
    /// The algorithm of that number for a direction.
    pub fn of(kind: ConvolutionKind, number: u32) -> Self {
        match kind {
            ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu => Self::Forward(number),
            ConvolutionKind::BackwardData => Self::BackwardData(number),
            ConvolutionKind::BackwardWeights => Self::BackwardWeights(number),
        }
    }

    pub fn name(self) -> Option<&'static str> {
        match self {
            Self::Forward(number) => FORWARD.get(number as usize).map(|known| known.0),
            Self::BackwardData(number) => BACKWARD_DATA.get(number as usize).map(|known| known.0),
            Self::BackwardWeights(number) => BACKWARD_WEIGHTS.get(number as usize).map(|known| known.0),
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        let numbers = 0..FORWARD.len() as u32;
        let mut all = numbers.flat_map(|n| [Self::Forward(n), Self::BackwardData(n), Self::BackwardWeights(n)]);
        all.find(|routine| routine.name() == Some(name))
    }

    /// Whether it computes that direction.
    pub fn computes(self, kind: ConvolutionKind) -> bool {
        discriminant(&self) == discriminant(&Self::of(kind, 0))
    }

    /// The routine of non-fused Winograd for a direction: ..._ALGO_WINOGRAD_NONFUSED.
    pub fn non_fused_winograd(kind: ConvolutionKind) -> Self {
        let is_forward = matches!(kind, ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu);
        Self::of(kind, if is_forward { 7 } else { 5 })
    }

    /// Whether the setting allows it.
    pub fn is_allowed(self, winograd: Winograd) -> bool {
        let (fused, non_fused) = match self {
            Self::Forward(number) => (number == 6, number == 7),
            Self::BackwardData(number) | Self::BackwardWeights(number) => (number == 4, number == 5),
        };
        match winograd {
            Winograd::Any => true,
            Winograd::Never => !fused && !non_fused,
            Winograd::NonFused => non_fused,
        }
    }

    /// Whether it gives the same bits in every run: the documentation of cudnnConvolutionBackwardData and ...Filter
    /// says which algorithms add with atomics. cuDNN's lists report it too; this is for algorithms that the user names.
    pub fn is_deterministic(self) -> bool {
        !matches!(self, Self::BackwardData(0) | Self::BackwardWeights(0 | 3))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_of_winograd_selects_routines_by_name() {
        let all = || (0..8).flat_map(|n| [Routine::Forward(n), Routine::BackwardData(n), Routine::BackwardWeights(n)]);
        for (routine, name) in all().filter_map(|routine| Some((routine, routine.name()?))) {
            let (winograd, non_fused) = (name.contains("winograd"), name.ends_with("winograd_nonfused"));
            let allowed = Winograd::ALL.iter().map(|w| routine.is_allowed(*w)).collect::<Vec<_>>();
            assert_eq!(allowed, [true, !winograd, non_fused], "{name}");
        }
        for kind in [ConvolutionKind::Forward, ConvolutionKind::BackwardData, ConvolutionKind::BackwardWeights] {
            let routine = Routine::non_fused_winograd(kind);
            assert!(routine.computes(kind) && routine.name().is_some_and(|name| name.ends_with("winograd_nonfused")));
        }
    }

    // cudnnConvolutionBackwardData: "ALGO_0 ... results are nondeterministic"; ...BackwardFilter: ALGO_0 and ALGO_3.
    #[test]
    fn routines_that_add_with_atomics_are_known() {
        let atomic: Vec<&str> = (0..7)
            .flat_map(|n| [Routine::Forward(n), Routine::BackwardData(n), Routine::BackwardWeights(n)])
            .filter(|routine| !routine.is_deterministic())
            .filter_map(Routine::name)
            .collect();
        assert_eq!(atomic, ["backward_data_0", "backward_weights_0", "backward_weights_3"]);
    }
}
