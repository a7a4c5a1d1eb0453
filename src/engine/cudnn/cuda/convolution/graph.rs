//! A convolution in cuDNN's graph API: the operation graph, and execution plans for it.
//!
//! The parts that a descriptor was made from are kept as long as the descriptor.

use crate::engine::cudnn::cuda::api::cudnn as sys;

use super::algorithm::{Algorithm, Implementation};
use super::descriptor::{Descriptor, Kind, Name, Type};
use super::note::Notes;
use super::operands::Operands;
use super::operation::{self, BIAS, W, X, Y};
use crate::engine::cudnn::call::{Convolution, ConvolutionKind};
use crate::engine::cudnn::cuda::status;
use crate::error::Result;

/// Above CUDNN_KNOB_TYPE_COUNTS, which is 46 in cuDNN 9.28.
const MOST_KNOBS: usize = 64;

/// Above CUDNN_NUMERICAL_NOTE_TYPE_COUNT and CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, which are 10 and 5.
const MOST_NOTES: usize = 32;

/// The GPU that plans are made for: that of a handle of cuDNN, or (since cuDNN 9.8) one that is only described, as in
/// tests.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub handle: Option<sys::cudnnHandle_t>,
    /// A CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR.
    pub device: Option<&'a Descriptor>,
}

impl Target<'_> {
    /// Sets the target on a descriptor, in the attribute that it has for it.
    fn set_on(&self, descriptor: &Descriptor, handle: Option<Name>, device: Option<Name>) -> Result<()> {
        if let (Some(name), Some(handle)) = (handle, self.handle) {
            descriptor.set(name, &[handle])?;
        }
        match (device, self.device) {
            (Some(name), Some(device)) => descriptor.set_descriptors(name, &[device]),
            _ => Ok(()),
        }
    }
}

/// A convolution as an operation graph, finalised.
#[derive(Debug)]
pub struct Operation {
    graph: Descriptor,
    fused: bool,
    _parts: Vec<Descriptor>,
}

/// An engine with its knobs set, as proposed by heuristics or given by a name.
#[derive(Debug)]
pub struct Configuration {
    config: Descriptor,
    /// Kept for `config`, where it was made from parts.
    _parts: Vec<Descriptor>,
    pub algorithm: Algorithm,
    pub notes: Notes,
    /// cuDNN compiles the kernel when the plan is finalised: seconds, not milliseconds.
    pub compiles: bool,
    /// It needs the weights in its own order.
    pub reorders: bool,
}

/// An execution plan, ready for any memory.
#[derive(Debug)]
pub struct ExecutionPlan {
    plan: Descriptor,
    configuration: Configuration,
    pub workspace_bytes: u64,
}

/// Sources of engine configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Heuristics {
    /// CUDNN_HEUR_MODE_B: a model of the GPU; more accurate than A, and slower on the CPU.
    Accurate = 1,
    /// CUDNN_HEUR_MODE_A: a table.
    Fast = 3,
    /// CUDNN_HEUR_MODE_FALLBACK: any engine that computes it at all.
    Fallback = 2,
}

/// The proposals that are asked for first. cuDNN makes each that it is asked for, which takes half of a search's time, and one of these is mostly taken.
const FIRST: usize = 4;
/// More than heuristics ever propose.
const MOST: usize = 1024;

impl Operation {
    /// # Errors
    /// [`crate::error::Kind::Engine`] where cuDNN cannot express such a convolution.
    pub fn new(convolution: &Convolution, kind: ConvolutionKind, target: Target) -> Result<Self> {
        let mut parts = Vec::new();
        let operations = operation::operations(convolution, kind, &mut parts)?;
        let graph = Descriptor::new(Kind::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?;
        graph.set_descriptors(Name::CUDNN_ATTR_OPERATIONGRAPH_OPS, &operations.iter().collect::<Vec<_>>())?;
        target.set_on(&graph, Some(Name::CUDNN_ATTR_OPERATIONGRAPH_HANDLE), None)?;
        graph.finalize("the operation graph")?;
        parts.extend(operations);
        Ok(Self { graph, fused: kind == ConvolutionKind::ForwardBiasRelu, _parts: parts })
    }

    /// The number of engines that cuDNN has for such a graph, usable or not.
    #[cfg(test)]
    pub fn engine_count(&self) -> Result<i64> {
        self.graph.integer(Name::CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT)
    }

    /// What heuristics propose, best first; each is read only when needed, since reading all takes longer than the
    /// heuristics do.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the heuristics do not support such a graph.
    pub fn propose(
        &self,
        heuristics: Heuristics,
        target: Target,
    ) -> Result<impl Iterator<Item = Result<Configuration>>> {
        let asked = Descriptor::new(Kind::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)?;
        asked.set_descriptors(Name::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, &[&self.graph])?;
        asked.set_number(Name::CUDNN_ATTR_ENGINEHEUR_MODE, Type::CUDNN_TYPE_HEUR_MODE, heuristics as i32)?;
        target.set_on(&asked, None, Some(Name::CUDNN_ATTR_ENGINEHEUR_DEVICEPROP))?;
        asked.finalize("the heuristics")?;
        let results = Name::CUDNN_ATTR_ENGINEHEUR_RESULTS;
        let best = move |count| asked.descriptors(results, Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count);
        let (first, fused) = (best(FIRST)?, self.fused);
        let more = first.len() == FIRST;
        let others = std::iter::once_with(move || if more { best(MOST) } else { Ok(Vec::new()) }).flat_map(|all| {
            let each = |all: Vec<Descriptor>| all.into_iter().skip(FIRST).map(Ok).collect();
            all.map_or_else(|error| vec![Err(error)], each)
        });
        let configs = first.into_iter().map(Ok).chain(others);
        Ok(configs.map(move |config| Configuration::read(config?, fused)))
    }

    /// An engine by its number with its knobs set.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where this cuDNN has no such engine for this graph, or no such knob.
    pub fn configure(&self, engine: i64, knobs: &[(i32, i64)], target: Target) -> Result<Configuration> {
        let chosen = Descriptor::new(Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR)?;
        chosen.set_descriptors(Name::CUDNN_ATTR_ENGINE_OPERATION_GRAPH, &[&self.graph])?;
        chosen.set(Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &[engine])?;
        target.set_on(&chosen, None, Some(Name::CUDNN_ATTR_ENGINE_DEVICEPROP))?;
        chosen.finalize(format_args!("engine {engine}"))?;
        let mut parts = vec![];
        for (kind, value) in knobs {
            let knob = Descriptor::new(Kind::CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)?;
            knob.set_number(Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, Type::CUDNN_TYPE_KNOB_TYPE, *kind)?;
            knob.set(Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, &[*value])?;
            knob.finalize(format_args!("knob {kind}"))?;
            parts.push(knob);
        }
        let config = Descriptor::new(Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)?;
        config.set_descriptors(Name::CUDNN_ATTR_ENGINECFG_ENGINE, &[&chosen])?;
        if !parts.is_empty() {
            config.set_descriptors(Name::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, &parts.iter().collect::<Vec<_>>())?;
        }
        config.finalize(format_args!("engine {engine} with its knobs"))?;
        parts.push(chosen);
        let read = Configuration::read(config, self.fused)?;
        Ok(Configuration { _parts: parts, ..read })
    }
}

impl Configuration {
    fn read(config: Descriptor, fused: bool) -> Result<Self> {
        let engines = Name::CUDNN_ATTR_ENGINECFG_ENGINE;
        let engine = config.descriptors(engines, Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1)?;
        let Some(engine) = engine.into_iter().next() else {
            return Err(crate::error::Error::engine("cuDNN gave a configuration of no engine"));
        };
        let choices = Name::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES;
        let mut knobs = Vec::new();
        // When asked only for their number, cuDNN 9.28 answers 0.
        for knob in config.descriptors(choices, Kind::CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, MOST_KNOBS)? {
            let kinds = knob.numbers(Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, Type::CUDNN_TYPE_KNOB_TYPE, 1)?;
            let value = knob.integer(Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)?;
            knobs.extend(kinds.first().map(|kind| (*kind, value)));
        }
        let notes =
            engine.numbers(Name::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, Type::CUDNN_TYPE_NUMERICAL_NOTE, MOST_NOTES)?;
        let behaviour =
            engine.numbers(Name::CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, Type::CUDNN_TYPE_BEHAVIOR_NOTE, MOST_NOTES)?;
        let number = engine.integer(Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX)?;
        Ok(Self {
            algorithm: Algorithm { fused, implementation: Implementation::Graph { engine: number, knobs } },
            notes: Notes::from_numbers(&notes),
            // CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, ..._REQUIRES_FILTER_INT8x32_REORDER, ..._REQUIRES_BIAS_...
            compiles: behaviour.contains(&0),
            reorders: behaviour.contains(&1) || behaviour.contains(&2),
            config,
            _parts: vec![engine],
        })
    }

    /// Makes the execution plan.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the engine does not compute this after all, which is common.
    pub fn plan(self, target: Target) -> Result<ExecutionPlan> {
        let plan = Descriptor::new(Kind::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?;
        let (handle, device) = (Name::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, Name::CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
        target.set_on(&plan, Some(handle), Some(device))?;
        plan.set_descriptors(Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, &[&self.config])?;
        plan.finalize(format_args!("the plan of {}", self.algorithm))?;
        let bytes = plan.integer(Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)?;
        Ok(ExecutionPlan { plan, configuration: self, workspace_bytes: u64::try_from(bytes).unwrap_or(0) })
    }
}

impl ExecutionPlan {
    pub fn notes(&self) -> Notes {
        self.configuration.notes
    }

    /// The memory for an execution; `workspace` has at least `workspace_bytes`.
    pub fn memory(&self, operands: Operands, workspace: u64) -> Result<Descriptor> {
        let pointer = |address: u64| address as usize as *mut std::ffi::c_void;
        let mut numbers = vec![X, W, Y];
        let mut pointers = vec![pointer(operands.x), pointer(operands.w), pointer(operands.y)];
        if let Some(bias) = operands.bias {
            numbers.push(BIAS);
            pointers.push(pointer(bias));
        }
        let pack = Descriptor::new(Kind::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?;
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &numbers)?;
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, &pointers)?;
        pack.set(Name::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, &[pointer(workspace)])?;
        pack.finalize("the memory of a plan")?;
        Ok(pack)
    }

    pub fn enqueue(&self, handle: sys::cudnnHandle_t, memory: &Descriptor) -> Result<()> {
        // SAFETY: handle, plan and pack live; the memory that the pack names is the caller's.
        let answer = unsafe { sys::cudnnBackendExecute(handle, self.plan.0, memory.0) };
        status::cudnn("execute a plan", answer)
    }
}
