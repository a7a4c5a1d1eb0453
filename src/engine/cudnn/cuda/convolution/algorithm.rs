//! The names of convolution algorithms: stable, and sufficient to select the same one again.
//!
//! `graph:eng28{k2=3,k5=0}` is engine 28 of cuDNN's graph API with its knobs set; `legacy:implicit_precomp_gemm/tensor_op`
//! is an algorithm of the older calls with its kind of arithmetic. Engines and knobs are numbers of one cuDNN version.

use std::fmt;
use std::str::FromStr;

use crate::engine::cudnn::call::ConvolutionKind;
use crate::error::{Error, Result};
use crate::settings::Winograd;

/// How cuDNN computes a convolution. Where it adds the bias and rectifies as well, its name has the prefix `fused_`, as
/// in `graph:fused_eng51{}`: the engines of such graphs are numbered separately.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Algorithm {
    pub fused: bool,
    pub implementation: Implementation,
}

/// See [`Algorithm`].
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Implementation {
    /// An engine of the graph API and the values of its knobs, each a type and a value, in cuDNN's order.
    Graph { engine: i64, knobs: Vec<(i32, i64)> },
    /// An algorithm of the older calls, by its number there, and its arithmetic.
    Legacy { routine: Routine, math: MathType },
}

/// An algorithm of the older calls, for one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Routine {
    Forward(u32),
    BackwardData(u32),
    BackwardWeights(u32),
}

/// cudnnMathType_t.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MathType {
    /// Tensor cores where they keep to the inputs' precision; float32 inputs may be rounded to tf32.
    Default,
    TensorOp,
    /// As [`MathType::TensorOp`], and float32 inputs may be rounded to float16. Never used here.
    TensorOpAllowConversion,
    /// No tensor cores.
    Fma,
}

// In the order of cudnnConvolutionFwdAlgo_t, cudnnConvolutionBwdDataAlgo_t and cudnnConvolutionBwdFilterAlgo_t.
const FORWARD: [&str; 8] =
    ["implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling", "winograd", "winograd_nonfused"];
const BACKWARD_DATA: [&str; 6] = [
    "backward_data_0",
    "backward_data_1",
    "backward_data_fft",
    "backward_data_fft_tiling",
    "backward_data_winograd",
    "backward_data_winograd_nonfused",
];
const BACKWARD_WEIGHTS: [&str; 7] = [
    "backward_weights_0",
    "backward_weights_1",
    "backward_weights_fft",
    "backward_weights_3",
    "backward_weights_winograd",
    "backward_weights_winograd_nonfused",
    "backward_weights_fft_tiling",
];
const MATH: [(MathType, &str); 4] = [
    (MathType::Default, "default"),
    (MathType::TensorOp, "tensor_op"),
    (MathType::TensorOpAllowConversion, "tensor_op_allow_conversion"),
    (MathType::Fma, "fma"),
];

impl Routine {
    fn name(self) -> Option<&'static str> {
        let (names, number): (&[&'static str], u32) = match self {
            Self::Forward(number) => (&FORWARD, number),
            Self::BackwardData(number) => (&BACKWARD_DATA, number),
            Self::BackwardWeights(number) => (&BACKWARD_WEIGHTS, number),
        };
        names.get(number as usize).copied()
    }

    fn from_name(name: &str) -> Option<Self> {
        let find = |names: &[&str]| names.iter().position(|known| *known == name).and_then(|at| u32::try_from(at).ok());
        let forward = find(&FORWARD).map(Self::Forward);
        let data = || find(&BACKWARD_DATA).map(Self::BackwardData);
        forward.or_else(data).or_else(|| find(&BACKWARD_WEIGHTS).map(Self::BackwardWeights))
    }

    /// Whether it computes that direction.
    pub fn computes(self, kind: ConvolutionKind) -> bool {
        match self {
            Self::Forward(_) => matches!(kind, ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu),
            Self::BackwardData(_) => kind == ConvolutionKind::BackwardData,
            Self::BackwardWeights(_) => kind == ConvolutionKind::BackwardWeights,
        }
    }

    /// The routine of non-fused Winograd for a direction: ..._ALGO_WINOGRAD_NONFUSED.
    pub fn non_fused_winograd(kind: ConvolutionKind) -> Self {
        match kind {
            ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu => Self::Forward(7),
            ConvolutionKind::BackwardData => Self::BackwardData(5),
            ConvolutionKind::BackwardWeights => Self::BackwardWeights(5),
        }
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

impl MathType {
    /// From its number in cudnnMathType_t.
    pub fn from_number(number: u32) -> Option<Self> {
        MATH.get(number as usize).map(|(math, _)| *math)
    }

    /// Its name, as part of an algorithm's.
    pub fn name(self) -> &'static str {
        MATH[self as usize].1
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fused = if self.fused { "fused_" } else { "" };
        match &self.implementation {
            Implementation::Graph { engine, knobs } => {
                let knobs: Vec<String> = knobs.iter().map(|(kind, value)| format!("k{kind}={value}")).collect();
                write!(f, "graph:{fused}eng{engine}{{{}}}", knobs.join(","))
            }
            Implementation::Legacy { routine, math } => {
                write!(f, "legacy:{fused}{}/{}", routine.name().unwrap_or("unknown"), math.name())
            }
        }
    }
}

impl FromStr for Algorithm {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let (calls, rest) = text.split_once(':').unwrap_or_default();
        let fused = rest.starts_with("fused_");
        let rest = rest.strip_prefix("fused_").unwrap_or(rest);
        let implementation = match calls {
            "graph" => graph(rest),
            "legacy" => legacy(rest),
            _ => None,
        };
        implementation.map(|implementation| Self { fused, implementation }).ok_or_else(|| {
            let what = format!("`{text}` is not the name of a convolution algorithm");
            Error::spec(what).hint("names are like `graph:eng28{k2=3}` and `legacy:implicit_gemm/fma`")
        })
    }
}

fn graph(text: &str) -> Option<Implementation> {
    let (engine, knobs) = text.strip_prefix("eng")?.strip_suffix('}')?.split_once('{')?;
    let knob = |part: &str| {
        let (kind, value) = part.strip_prefix('k')?.split_once('=')?;
        Some((kind.parse().ok()?, value.parse().ok()?))
    };
    let knobs = match knobs.is_empty() {
        true => Vec::new(),
        false => knobs.split(',').map(knob).collect::<Option<_>>()?,
    };
    Some(Implementation::Graph { engine: engine.parse().ok()?, knobs })
}

fn legacy(text: &str) -> Option<Implementation> {
    let (routine, math) = text.split_once('/')?;
    let math = MATH.iter().find(|(_, name)| *name == math)?.0;
    Some(Implementation::Legacy { routine: Routine::from_name(routine)?, math })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Algorithm {
        text.parse().unwrap()
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        let graph = Algorithm {
            fused: false,
            implementation: Implementation::Graph { engine: 28, knobs: vec![(2, 3), (41, -1)] },
        };
        assert_eq!(graph.to_string(), "graph:eng28{k2=3,k41=-1}");
        assert_eq!(of("graph:eng28{k2=3,k41=-1}"), graph);
        let fused = Algorithm { fused: true, implementation: Implementation::Graph { engine: 0, knobs: Vec::new() } };
        assert_eq!((of("graph:fused_eng0{}"), fused.to_string().as_str()), (fused.clone(), "graph:fused_eng0{}"));
        let routine = Routine::Forward(1);
        assert_eq!(
            of("legacy:implicit_precomp_gemm/tensor_op"),
            Algorithm { fused: false, implementation: Implementation::Legacy { routine, math: MathType::TensorOp } }
        );
    }

    #[test]
    fn every_routine_and_arithmetic_has_one_name() {
        let routines = (0..8).map(Routine::Forward).chain((0..6).map(Routine::BackwardData));
        for routine in routines.chain((0..7).map(Routine::BackwardWeights)) {
            for number in 0..4 {
                let math = MathType::from_number(number).unwrap();
                let algorithm =
                    Algorithm { fused: number == 1, implementation: Implementation::Legacy { routine, math } };
                assert_eq!(of(&algorithm.to_string()), algorithm);
            }
        }
        assert_eq!(MathType::from_number(4), None);
    }

    #[test]
    fn what_is_no_name_is_refused() {
        let wrong = [
            "",
            "graph",
            "graph:28{}",
            "graph:eng28",
            "graph:eng28{k2}",
            "graph:eng28{2=3}",
            "graph:eng28{k2=3,}",
            "graph:engx{}",
            "legacy:gemm",
            "legacy:gemm/half",
            "legacy:unknown/fma",
            "other:eng1{}",
        ];
        for text in wrong {
            let error = text.parse::<Algorithm>().unwrap_err().to_string();
            assert!(error.contains("not the name of a convolution algorithm"), "{text}: {error}");
        }
    }

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
