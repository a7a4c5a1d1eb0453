//! The algorithms of cuDNN's older calls.

use crate::engine::cudnn::cuda::api::cudnn as sys;
use sys::cudnnConvolutionBwdDataAlgo_t as Data;
use sys::cudnnConvolutionBwdFilterAlgo_t as Weights;
use sys::cudnnConvolutionFwdAlgo_t as Forward;

use crate::engine::cudnn::call::ConvolutionKind;
use crate::settings::Winograd;

/// An algorithm for one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    Forward(Forward),
    BackwardData(Data),
    BackwardWeights(Weights),
}

use Routine as R;

/// Our names; the algorithms of a direction have the order of their numbers.
const ROUTINES: [(&str, Routine); 21] = [
    ("implicit_gemm", R::Forward(Forward::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM)),
    ("implicit_precomp_gemm", R::Forward(Forward::CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)),
    ("gemm", R::Forward(Forward::CUDNN_CONVOLUTION_FWD_ALGO_GEMM)),
    ("direct", R::Forward(Forward::CUDNN_CONVOLUTION_FWD_ALGO_DIRECT)),
    ("fft", R::Forward(Forward::CUDNN_CONVOLUTION_FWD_ALGO_FFT)),
    ("fft_tiling", R::Forward(Forward::CUDNN_CONVOLUTION_FWD_ALGO_FFT_TILING)),
    ("winograd", R::Forward(Forward::CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD)),
    ("winograd_nonfused", R::Forward(Forward::CUDNN_CONVOLUTION_FWD_ALGO_WINOGRAD_NONFUSED)),
    ("backward_data_0", R::BackwardData(Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_0)),
    ("backward_data_1", R::BackwardData(Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_1)),
    ("backward_data_fft", R::BackwardData(Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT)),
    ("backward_data_fft_tiling", R::BackwardData(Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT_TILING)),
    ("backward_data_winograd", R::BackwardData(Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD)),
    ("backward_data_winograd_nonfused", R::BackwardData(Data::CUDNN_CONVOLUTION_BWD_DATA_ALGO_WINOGRAD_NONFUSED)),
    ("backward_weights_0", R::BackwardWeights(Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0)),
    ("backward_weights_1", R::BackwardWeights(Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1)),
    ("backward_weights_fft", R::BackwardWeights(Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT)),
    ("backward_weights_3", R::BackwardWeights(Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3)),
    ("backward_weights_winograd", R::BackwardWeights(Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD)),
    (NON_FUSED_WEIGHTS, R::BackwardWeights(Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_WINOGRAD_NONFUSED)),
    ("backward_weights_fft_tiling", R::BackwardWeights(Weights::CUDNN_CONVOLUTION_BWD_FILTER_ALGO_FFT_TILING)),
];
const NON_FUSED_WEIGHTS: &str = "backward_weights_winograd_nonfused";

impl Routine {
    /// Those that compute a direction, in the order of their numbers.
    fn of(kind: ConvolutionKind) -> impl Iterator<Item = Self> {
        ROUTINES.into_iter().map(|(_, routine)| routine).filter(move |routine| routine.computes(kind))
    }

    /// The one of that number for a direction; `None` where the bindings do not know it.
    pub fn numbered(kind: ConvolutionKind, number: u32) -> Option<Self> {
        Self::of(kind).nth(number as usize)
    }

    pub fn name(self) -> &'static str {
        ROUTINES.iter().find(|(_, routine)| *routine == self).map_or("unknown", |(name, _)| name)
    }

    pub fn from_name(name: &str) -> Option<Self> {
        ROUTINES.iter().find(|(known, _)| *known == name).map(|(_, routine)| *routine)
    }

    /// Whether it computes that direction.
    pub fn computes(self, kind: ConvolutionKind) -> bool {
        match self {
            Self::Forward(_) => matches!(kind, ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu),
            Self::BackwardData(_) => kind == ConvolutionKind::BackwardData,
            Self::BackwardWeights(_) => kind == ConvolutionKind::BackwardWeights,
        }
    }

    /// That of non-fused Winograd for a direction: ..._ALGO_WINOGRAD_NONFUSED.
    pub fn non_fused_winograd(kind: ConvolutionKind) -> Option<Self> {
        Self::of(kind).find(|routine| routine.is_allowed(Winograd::NonFused))
    }

    /// Whether the setting allows it.
    pub fn is_allowed(self, winograd: Winograd) -> bool {
        match winograd {
            Winograd::Any => true,
            Winograd::Never => !self.name().contains("winograd"),
            Winograd::NonFused => self.name().ends_with("winograd_nonfused"),
        }
    }

    /// Whether it gives the same bits in every run: the documentation of cudnnConvolutionBackwardData and ...Filter
    /// says which algorithms add with atomics. cuDNN's lists report it too; this is for algorithms that the user names.
    pub fn is_deterministic(self) -> bool {
        // cudnnConvolutionBackwardData: "ALGO_0 ... results are nondeterministic"; ...BackwardFilter: ALGO_0 and ALGO_3.
        !matches!(self.name(), "backward_data_0" | "backward_weights_0" | "backward_weights_3")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By cudnn_cnn.h: WINOGRAD is 6 forward and 4 backward, WINOGRAD_NONFUSED the next; the algorithms that add with atomics are 0 and,
    /// for weights, 3.
    #[test]
    fn routines_have_the_numbers_of_the_headers() {
        let kinds = [ConvolutionKind::Forward, ConvolutionKind::BackwardData, ConvolutionKind::BackwardWeights];
        let numbers = |fits: fn(Routine) -> bool| {
            let of = |kind| (0..9).filter(|n| Routine::numbered(kind, *n).is_some_and(fits)).collect::<Vec<u32>>();
            kinds.map(of)
        };
        assert_eq!(numbers(|routine| !routine.is_allowed(Winograd::Never)), [[6, 7], [4, 5], [4, 5]]);
        assert_eq!(numbers(|routine| routine.is_allowed(Winograd::NonFused)), [[7], [5], [5]]);
        assert_eq!(numbers(|routine| !routine.is_deterministic()), [vec![], vec![0], vec![0, 3]]);
        assert_eq!(kinds.map(|kind| Routine::of(kind).count()), [8, 6, 7]);
        assert!(ROUTINES.iter().all(|(name, routine)| R::from_name(name) == Some(*routine)), "a name is there twice");
        for (kind, number) in kinds.into_iter().flat_map(|kind| (0..6).map(move |number| (kind, number))) {
            assert_eq!(
                number,
                match Routine::numbered(kind, number).unwrap() {
                    R::Forward(it) => it as u32,
                    R::BackwardData(it) => it as u32,
                    R::BackwardWeights(it) => it as u32,
                }
            );
            assert!(Routine::non_fused_winograd(kind).is_some_and(|routine| routine.computes(kind)));
        }
    }
}
