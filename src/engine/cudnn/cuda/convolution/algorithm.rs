//! The names of convolution algorithms: stable, and sufficient to select the same one again.
//!
//! `graph:eng28{k2=3,k5=0}` is engine 28 of cuDNN's graph API with its knobs set; `legacy:implicit_precomp_gemm/tensor_op`
//! is an algorithm of the older calls with its kind of arithmetic. Engines and knobs are numbers of one cuDNN version.

use std::fmt;
use std::str::FromStr;

use super::routine::Routine;
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
    /// An algorithm of the older calls, by its number there, and its arithmetic.
    Legacy { routine: Routine, math: MathType },
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

const MATH: [(MathType, &str); 4] = [
    (MathType::Default, "default"),
    (MathType::TensorOp, "tensor_op"),
    (MathType::TensorOpAllowConversion, "tensor_op_allow_conversion"),
    (MathType::Fma, "fma"),
];

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
}
