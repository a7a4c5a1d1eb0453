//! Convolutions through cuDNN: which algorithm, and the calls of it.
//!
//! Candidates are the engine configurations that cuDNN's heuristics propose, mode B before mode A before the fallbacks,
//! and the algorithms of the older calls: last, but for strict float32 before the fallbacks. Only what gives the same bits in every run and keeps to the precision
//! ([`note`]) is one. [`Policy::Heuristic`] takes the first whose plan finalises within the workspace limit;
//! [`Policy::Autotune`] measures the first [`TIMED`] ([`timing`]).
//!
//! Mode B asks a model of the GPU, up to some milliseconds for each new convolution on the CPU and never in a step.
//! A [`Chooser`] keeps what it chose, so later visits of a cell ask nobody.

pub mod algorithm;
mod descriptor;
mod graph;
mod legacy;
mod legacy_descriptor;
mod note;
mod operands;
mod operation;
mod routine;
mod search;
#[cfg(test)]
mod tests;
mod timing;

use std::cell::RefCell;
use std::collections::HashMap;
use std::fmt;
use std::rc::Rc;

use super::device::{Gpu, StreamId};
use crate::engine::cudnn::call::{Convolution, ConvolutionKind};
use crate::engine::cudnn::element::Math;
use crate::error::Result;
use crate::settings::Layout;
use algorithm::Algorithm;
use graph::Target;
pub(super) use operands::Operands;

/// The workspace limit where nothing else is said: an eighth of the GPU's memory, and 1 GiB on small ones. All calls of a step
/// share one workspace. In NCHW the tensor cores' engines keep copies of what they read and write in NHWC there: 1 GiB is
/// short of them from 42 images of VGG16's second layer on, and other algorithms take their place, one of them without tensor
/// cores: a jump of our own making. PyTorch takes what is free, TensorFlow up to 4 GiB.
pub fn workspace_limit(total_bytes: u64) -> u64 {
    (total_bytes / 8).max(WORKSPACE_LIMIT)
}

/// The least of [`workspace_limit`].
pub const WORKSPACE_LIMIT: u64 = 1 << 30;

/// How many candidates are measured: as many as PyTorch's `torch.backends.cudnn.benchmark_limit` of 10.
pub const TIMED: usize = 10;

/// How an algorithm is chosen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// As cuDNN's heuristics advise.
    Heuristic,
    /// The fastest of those that they advise, measured.
    Autotune,
    /// That one, by its name.
    Fixed(String),
}

/// What to look for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Search {
    pub policy: Policy,
    /// In bytes.
    pub workspace_limit: u64,
    /// Whether engines may be taken whose kernels cuDNN compiles when they are chosen, which takes seconds for each. Where
    /// not, they still come before having nothing.
    pub runtime_compilation: bool,
}

impl Default for Search {
    fn default() -> Self {
        Self { policy: Policy::Heuristic, workspace_limit: WORKSPACE_LIMIT, runtime_compilation: true }
    }
}

/// An algorithm chosen for a convolution.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its name ([`Algorithm`]), for [`Policy::Fixed`] and `layers.parquet`.
    pub algorithm: String,
    pub workspace_bytes: u64,
    /// As cuDNN tells: the numerical notes of an engine (`tensor_core+winograd`, `fma`), or the older calls' math type
    /// (`tensor_op_math`).
    pub math_mode: String,
    /// cuDNN compiled its kernel here.
    pub compiled: bool,
    /// Measured; `None` where it was not.
    pub seconds: Option<f64>,
    /// What a reader of the results must know: a fallback that was taken.
    pub remark: Option<String>,
    pub(super) executable: Executable,
}

/// Something that computes a convolution, on any memory.
#[derive(Clone, Debug)]
pub(super) enum Executable {
    Graph(Rc<graph::ExecutionPlan>),
    Legacy(Rc<legacy::LegacyPlan>),
}

/// The same, on its memory.
#[derive(Debug)]
pub(super) enum Bound {
    Graph(graph::Bound),
    Legacy(legacy::Bound),
}

/// Chooses the algorithms of one GPU's convolutions, and remembers them.
pub struct Chooser {
    // Dropped before the handle of cuDNN, which the GPU has.
    remembered: RefCell<HashMap<(Convolution, ConvolutionKind, Search), Remembered>>,
    gpu: Gpu,
}

/// What is kept of an earlier choice. The executable is made again from its name, which takes microseconds, unless cuDNN
/// compiled it.
struct Remembered {
    algorithm: Algorithm,
    seconds: Option<f64>,
    remark: Option<String>,
    executable: Option<Executable>,
}

/// A convolution in one direction.
#[derive(Clone, Copy, Debug)]
struct Problem<'a> {
    convolution: &'a Convolution,
    kind: ConvolutionKind,
    target: Target<'a>,
}

/// A candidate that is made and fits in the limit.
struct Ready {
    algorithm: Algorithm,
    math_mode: String,
    compiled: bool,
    executable: Executable,
    remark: Option<String>,
}

impl Chooser {
    /// A chooser that remembers nothing yet.
    pub fn new(gpu: &Gpu) -> Self {
        Self { remembered: RefCell::default(), gpu: gpu.clone() }
    }

    /// Chooses an algorithm. [`Policy::Autotune`] takes memory for its measurements and frees it again: call it before the
    /// memory of a step is taken.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where cuDNN has no algorithm that is deterministic, keeps to the precision and fits in the limit, with the
    /// reasons; [`crate::error::Kind::Spec`] where a fixed one has no such name or may not be used.
    pub fn choose(&self, convolution: &Convolution, kind: ConvolutionKind, search: &Search) -> Result<Choice> {
        self.gpu.bind()?;
        let key = (*convolution, kind, search.clone());
        let target = Target { handle: Some(self.gpu.shared.cudnn.0), device: None };
        let problem = Problem { convolution, kind, target };
        let known = self.remembered.borrow().get(&key).map(|kept| {
            let executable = kept.executable.clone();
            (kept.algorithm.clone(), kept.seconds, kept.remark.clone(), executable)
        });
        let (ready, seconds) = match known {
            Some((algorithm, seconds, remark, None)) => (Ready { remark, ..problem.named(&algorithm)? }, seconds),
            Some((algorithm, seconds, remark, Some(executable))) => {
                let math_mode = executable.math_mode();
                (Ready { algorithm, math_mode, compiled: true, executable, remark }, seconds)
            }
            None => self.search(problem, search).map_err(|error| error.at(problem.to_string()))?,
        };
        let kept = Remembered {
            algorithm: ready.algorithm.clone(),
            seconds,
            remark: ready.remark.clone(),
            executable: ready.compiled.then(|| ready.executable.clone()),
        };
        self.remembered.borrow_mut().insert(key, kept);
        Ok(Choice {
            algorithm: ready.algorithm.to_string(),
            workspace_bytes: ready.executable.workspace_bytes(),
            math_mode: ready.math_mode,
            compiled: ready.compiled,
            seconds,
            remark: ready.remark,
            executable: ready.executable,
        })
    }

    fn search(&self, problem: Problem, search: &Search) -> Result<(Ready, Option<f64>)> {
        match &search.policy {
            Policy::Fixed(name) => Ok((problem.fixed(name, search.workspace_limit)?, None)),
            Policy::Heuristic => Ok((problem.first(search, 1)?.remove(0), None)),
            Policy::Autotune => self.gpu.fastest(problem, problem.first(search, TIMED)?),
        }
    }
}

impl fmt::Debug for Chooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chooser").field("gpu", &self.gpu).finish_non_exhaustive()
    }
}

impl Executable {
    pub fn workspace_bytes(&self) -> u64 {
        match self {
            Self::Graph(plan) => plan.workspace_bytes,
            Self::Legacy(plan) => plan.workspace_bytes,
        }
    }

    fn math_mode(&self) -> String {
        match self {
            Self::Graph(plan) => plan.notes().math_mode(),
            Self::Legacy(plan) => format!("{}_math", plan.math.name()),
        }
    }

    /// Binds it to memory.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn bind(&self, operands: Operands, workspace: u64) -> Result<Bound> {
        Ok(match self {
            Self::Graph(plan) => Bound::Graph(plan.bind(operands, workspace)?),
            Self::Legacy(plan) => Bound::Legacy(plan.bind(operands, workspace)),
        })
    }
}

impl Bound {
    /// Starts it on a stream.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn enqueue(&self, gpu: &Gpu, id: StreamId) -> Result<()> {
        gpu.cudnn(id, |handle| match self {
            Self::Graph(bound) => bound.enqueue(handle),
            Self::Legacy(bound) => bound.enqueue(handle),
        })
    }
}

/// In words, for messages: `forward convolution 64x3x224x224 -> 64x64x224x224, 3x3, nchw, f32`.
impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Convolution { element, math, input, output, kernel, stride, padding, groups } = self.convolution;
        let kind = match self.kind {
            ConvolutionKind::Forward => "forward",
            ConvolutionKind::ForwardBiasRelu => "forward, bias and ReLU of",
            ConvolutionKind::BackwardData => "backward-data",
            ConvolutionKind::BackwardWeights => "backward-weights",
        };
        let layout = if input.layout == Layout::Nhwc { "nhwc" } else { "nchw" };
        let math = if *math == Math::Tf32 { " as tf32" } else { "" };
        let (n, c, h, w) = (input.batch, input.channels, input.height, input.width);
        let (k, p, q) = (output.channels, output.height, output.width);
        write!(f, "{kind} convolution {n}x{c}x{h}x{w} -> {n}x{k}x{p}x{q}, {}x{}", kernel.0, kernel.1)?;
        write!(f, " stride {}x{} padding {}x{}", stride.0, stride.1, padding.0, padding.1)?;
        write!(f, " groups {groups}, {layout}, {}{math}", element.name())
    }
}
