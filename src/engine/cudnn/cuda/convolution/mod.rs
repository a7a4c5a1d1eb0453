//! Convolutions through cuDNN: the choice of an algorithm, and its calls.
//!
//! Candidates are the engine configurations that cuDNN's heuristics propose, in the order mode B, mode A, fallbacks,
//! and then the algorithms of the older calls (for strict float32, before the fallbacks). Only an algorithm that gives
//! the same bits in every run and keeps to the precision ([`note`]) is a candidate. [`Policy::Heuristic`] takes the
//! first whose plan finalises within the workspace limit; [`Policy::Autotune`] measures the first [`TIMED`]
//! ([`timing`]). An algorithm that is refused when it is executed is not proposed again ([`super::trial`]). Where the
//! settings forbid Winograd's algorithm, an algorithm whose notes or name mention it is not a candidate; where they
//! require its non-fused form, nothing else is ([`search`]).
//!
//! Mode B evaluates a model of the GPU, which takes up to some milliseconds of CPU time for each new convolution, never
//! during a step. A [`Chooser`] remembers its choices, so later visits of a cell choose without asking cuDNN.

pub mod algorithm;
mod descriptor;
mod graph;
mod legacy;
pub(super) mod legacy_descriptor;
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

use super::computation::Computation;
use super::device::{Gpu, StreamId};
use super::trial::Refused;
use crate::engine::cudnn::call::{Convolution, ConvolutionKind};
use crate::error::{Error, Result};
use crate::settings::Winograd;
use algorithm::Algorithm;
use descriptor::Descriptor;
use graph::Target;
pub(super) use operands::Operands;
#[cfg(test)]
pub(in crate::engine::cudnn) use operation::weights;

/// The default workspace limit: an eighth of the GPU's memory, and at least 1 GiB. All calls of a step share one
/// workspace. In NCHW, engines that use tensor cores keep NHWC copies of their inputs and outputs there. From 42 images
/// on, these copies exceed 1 GiB for VGG16's second layer. With that limit other algorithms would be chosen, one of
/// them without tensor cores: a jump of our own making. PyTorch takes all free memory, TensorFlow up to 4 GiB.
pub fn workspace_limit(total_bytes: u64) -> u64 {
    (total_bytes / 8).max(WORKSPACE_LIMIT)
}

/// The lower bound of [`workspace_limit`].
pub const WORKSPACE_LIMIT: u64 = 1 << 30;

/// How many candidates are measured: as many as PyTorch's `torch.backends.cudnn.benchmark_limit` of 10.
pub const TIMED: usize = 10;

/// How an algorithm is chosen.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The first that cuDNN's heuristics propose.
    Heuristic,
    /// The fastest of those that they propose, measured.
    Autotune,
    /// The algorithm of that name.
    Fixed(String),
}

/// The criteria of a search.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Search {
    pub policy: Policy,
    /// In bytes.
    pub workspace_limit: u64,
    /// Whether Winograd's algorithm may be used.
    pub winograd: Winograd,
}

impl Default for Search {
    fn default() -> Self {
        let (policy, winograd) = (Policy::Heuristic, Winograd::Any);
        Self { policy, workspace_limit: WORKSPACE_LIMIT, winograd }
    }
}

/// An algorithm chosen for a convolution; its plan is made, and fits within the limit.
#[derive(Clone, Debug)]
pub struct Choice {
    /// Its name is for [`Policy::Fixed`] and `layers.parquet`.
    pub algorithm: Algorithm,
    /// cuDNN compiled its kernel on this machine.
    pub compiled: bool,
    /// The measured time; `None` where it was not measured.
    pub seconds: Option<f64>,
    /// What a reader of the results must know, such as that a fallback was used.
    pub remark: Option<String>,
    pub(super) executable: Executable,
}

/// A plan that computes a convolution, on any memory.
#[derive(Clone, Debug)]
pub(super) enum Executable {
    Graph(Rc<graph::ExecutionPlan>),
    Legacy(Rc<legacy::LegacyPlan>),
}

/// The same, on its memory.
#[derive(Debug)]
pub(super) enum BoundConvolution {
    Graph(Rc<graph::ExecutionPlan>, Descriptor),
    Legacy(Rc<legacy::LegacyPlan>, Operands, u64),
}

/// Chooses the algorithms of one GPU's convolutions, and remembers them.
pub struct Chooser {
    // Dropped before the handle of cuDNN, which the GPU has.
    remembered: RefCell<HashMap<(Convolution, ConvolutionKind, Search), Remembered>>,
    gpu: Gpu,
}

/// What is kept of an earlier choice. The executable is made again from its name, which takes microseconds, unless cuDNN
/// compiled it.
#[derive(Clone)]
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

impl Chooser {
    pub fn new(gpu: &Gpu) -> Self {
        Self { remembered: RefCell::default(), gpu: gpu.clone() }
    }

    /// Chooses an algorithm. [`Policy::Autotune`] allocates memory for its measurements and frees it again: call it
    /// before the memory of a step is allocated.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where cuDNN has no algorithm that is deterministic, keeps to the
    /// precision and fits within the limit, with the reasons; [`crate::error::Kind::Spec`] where a fixed one does not
    /// exist or may not be used.
    pub fn choose(&self, convolution: &Convolution, kind: ConvolutionKind, search: &Search) -> Result<Choice> {
        self.gpu.bind()?;
        let key = (*convolution, kind, search.clone());
        let target = Target { handle: Some(self.gpu.shared.cudnn.handle), device: None };
        let problem = Problem { convolution, kind, target };
        let refused = self.gpu.trials().refused(&Computation::Convolution(*convolution, kind));
        let is_refused = |kept: &&Remembered| refused.iter().any(|one| one.algorithm == kept.algorithm.to_string());
        let known = self.remembered.borrow().get(&key).filter(|kept| !is_refused(kept)).cloned();
        let choice = match known {
            Some(Remembered { algorithm, seconds, remark, executable: None }) => {
                Choice { seconds, remark, ..problem.fixed(&algorithm.to_string(), search)? }
            }
            Some(Remembered { algorithm, seconds, remark, executable: Some(executable) }) => {
                Choice { algorithm, compiled: true, seconds, remark, executable }
            }
            None => self.search(problem, search, &refused).map_err(|error| error.at(problem.to_string()))?,
        };
        let kept = Remembered {
            algorithm: choice.algorithm.clone(),
            seconds: choice.seconds,
            remark: choice.remark.clone(),
            executable: choice.compiled.then(|| choice.executable.clone()),
        };
        self.remembered.borrow_mut().insert(key, kept);
        Ok(choice)
    }

    fn search(&self, problem: Problem, search: &Search, refused: &[Refused]) -> Result<Choice> {
        let mut choice = match &search.policy {
            Policy::Fixed(name) => match refused.iter().find(|known| known.algorithm == *name) {
                None => problem.fixed(name, search)?,
                Some(refused) => return Err(Error::engine(refused.to_string()).no_kernels_fault()),
            },
            Policy::Heuristic => problem.first(search, 1, refused)?.remove(0),
            Policy::Autotune => self.gpu.fastest(problem, problem.first(search, TIMED, refused)?)?,
        };
        if !refused.is_empty() {
            let reasons = refused.iter().map(Refused::to_string).chain(choice.remark.take());
            choice.remark = Some(reasons.collect::<Vec<_>>().join("; "));
        }
        Ok(choice)
    }
}

impl Choice {
    pub fn workspace_bytes(&self) -> u64 {
        match &self.executable {
            Executable::Graph(plan) => plan.workspace_bytes,
            Executable::Legacy(plan) => plan.workspace_bytes,
        }
    }

    /// As cuDNN reports it: the numerical notes of an engine (`tensor_core+winograd`, `fma`), or the older calls' math
    /// type (`tensor_op_math`).
    pub fn math_mode(&self) -> String {
        match &self.executable {
            Executable::Graph(plan) => plan.notes().math_mode(),
            Executable::Legacy(plan) => format!("{}_math", algorithm::math_name(plan.math)),
        }
    }
}

impl fmt::Debug for Chooser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chooser").field("gpu", &self.gpu).finish_non_exhaustive()
    }
}

impl Executable {
    pub fn bind(&self, operands: Operands, workspace: u64) -> Result<BoundConvolution> {
        Ok(match self {
            Self::Graph(plan) => BoundConvolution::Graph(plan.clone(), plan.memory(operands, workspace)?),
            Self::Legacy(plan) => BoundConvolution::Legacy(plan.clone(), operands, workspace),
        })
    }
}

impl BoundConvolution {
    pub fn enqueue(&self, gpu: &Gpu, id: StreamId) -> Result<()> {
        gpu.cudnn(id, |handle| match self {
            Self::Graph(plan, memory) => plan.enqueue(handle, memory),
            Self::Legacy(plan, operands, workspace) => plan.enqueue(handle, operands, *workspace),
        })
    }
}

impl fmt::Display for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Computation::Convolution(*self.convolution, self.kind).fmt(f)
    }
}
