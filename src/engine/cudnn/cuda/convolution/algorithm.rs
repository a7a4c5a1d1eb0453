//! The names of convolution algorithms: stable, and sufficient to select the same one again.
//!
//! `graph:eng28{k2=3,k5=0}` is engine 28 of cuDNN's graph API with its knobs set; `legacy:implicit_precomp_gemm/tensor_op`
//! is an algorithm of the older calls with its kind of arithmetic. Engines and knobs are numbers of one cuDNN version.

use std::fmt;
use std::str::FromStr;

use super::routine::Routine;
pub use crate::engine::cudnn::cuda::api::cudnn::cudnnMathType_t as MathType;
use crate::error::{Error, Result};

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
    /// An algorithm of the older calls, and its arithmetic.
    Legacy { routine: Routine, math: MathType },
}

/// By their numbers, and as part of an algorithm's name: tensor cores where they keep to the inputs' precision, float32
/// inputs perhaps rounded to tf32; the same, named; float32 inputs perhaps rounded to float16, which is never used here;
/// no tensor cores.
const MATH: [(MathType, &str); 4] = [
    (MathType::CUDNN_DEFAULT_MATH, "default"),
    (MathType::CUDNN_TENSOR_OP_MATH, "tensor_op"),
    (MathType::CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION, "tensor_op_allow_conversion"),
    (MathType::CUDNN_FMA_MATH, "fma"),
];

/// From its number.
pub fn math_of(number: u32) -> Option<MathType> {
    MATH.get(number as usize).map(|(math, _)| *math)
}

pub fn math_name(math: MathType) -> &'static str {
    MATH[math as usize].1
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
                write!(f, "legacy:{}/{}", routine.name(), math_name(*math))
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
            "legacy" if !fused => legacy(rest),
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
        let graph = |engine, knobs| Implementation::Graph { engine, knobs };
        let kind = crate::engine::cudnn::call::ConvolutionKind::Forward;
        let (routine, math) = (Routine::numbered(kind, 1).unwrap(), MathType::CUDNN_TENSOR_OP_MATH);
        for (name, fused, implementation) in [
            ("graph:eng28{k2=3,k41=-1}", false, graph(28, vec![(2, 3), (41, -1)])),
            ("graph:fused_eng0{}", true, graph(0, Vec::new())),
            ("legacy:implicit_precomp_gemm/tensor_op", false, Implementation::Legacy { routine, math }),
        ] {
            let algorithm = Algorithm { fused, implementation };
            assert_eq!((algorithm.to_string().as_str(), of(name)), (name, algorithm.clone()));
        }
        for number in 0..4 {
            let math = math_of(number).unwrap();
            assert_eq!(math as u32, number);
            let algorithm = Algorithm { fused: false, implementation: Implementation::Legacy { routine, math } };
            assert_eq!(of(&algorithm.to_string()), algorithm);
        }
        assert_eq!(math_of(4), None);
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
            "legacy:fused_gemm/fma",
            "legacy:unknown/fma",
            "other:eng1{}",
        ];
        for text in wrong {
            let error = text.parse::<Algorithm>().unwrap_err().to_string();
            assert!(error.contains("not the name of a convolution algorithm"), "{text}: {error}");
        }
    }
}
