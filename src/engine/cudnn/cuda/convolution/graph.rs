//! A convolution in cuDNN's graph API: the operation graph, and execution plans for it.
//!
//! Tensors have the numbers [`X`], [`W`], [`Y`] and [`BIAS`] in every direction: y is what comes out forward, so backward
//! its gradient goes in. Groups follow from the channels of x and of w. Everything that a descriptor was made from is
//! kept as long as it.

use std::rc::Rc;

use cudarc::cudnn::sys;

use super::algorithm::Algorithm;
use super::descriptor::{Descriptor, Enumeration, Kind, Name};
use super::note::Notes;
use super::operands::Operands;
use crate::engine::cudnn::call::{Convolution, ConvolutionKind};
use crate::engine::cudnn::cuda::status;
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::maps::Maps;
use crate::engine::settings::Layout;
use crate::error::Result;

/// Tensors' numbers.
const X: i64 = 1;
const W: i64 = 2;
const Y: i64 = 3;
const BIAS: i64 = 4;
/// What the convolution and the addition of the bias leave, which no memory holds.
const CONVOLVED: i64 = 5;
const BIASED: i64 = 6;

/// Every tensor of a plan begins at a multiple of 256 bytes; cuDNN asks for no more than 16.
const ALIGNMENT: i64 = 16;

/// Above CUDNN_KNOB_TYPE_COUNTS, which is 46 in cuDNN 9.28.
const MOST_KNOBS: usize = 64;

/// Above CUDNN_NUMERICAL_NOTE_TYPE_COUNT and CUDNN_BEHAVIOR_NOTE_TYPE_COUNT, which are 10 and 5.
const MOST_NOTES: usize = 32;

/// For which GPU plans are made: that of a handle of cuDNN, or one that is described and need not be there (since cuDNN
/// 9.8), as tests do.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub handle: Option<sys::cudnnHandle_t>,
    /// A CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR.
    pub device: Option<&'a Descriptor>,
}

impl Target<'_> {
    /// Names the target to a descriptor that has an attribute for it.
    fn tell(&self, descriptor: &Descriptor, handle: Option<Name>, device: Option<Name>) -> Result<()> {
        if let (Some(name), Some(handle)) = (handle, self.handle) {
            descriptor.set_handle(name, handle)?;
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
    _parts: Vec<Descriptor>,
}

/// An engine with its knobs set, as heuristics propose it or a name says it.
#[derive(Debug)]
pub struct Configuration {
    config: Descriptor,
    /// Kept for `config`, where it was made by hand.
    _parts: Vec<Descriptor>,
    engine: i64,
    knobs: Vec<(i32, i64)>,
    pub notes: Notes,
    /// cuDNN compiles the kernel when the plan is finalised: seconds, not milliseconds.
    pub compiles: bool,
    /// It wants the weights in an order of its own.
    pub reorders: bool,
}

/// An execution plan, ready for any memory.
#[derive(Debug)]
pub struct Plan {
    plan: Descriptor,
    configuration: Configuration,
    pub workspace_bytes: u64,
}

/// A plan with the memory that it works on.
#[derive(Debug)]
pub struct Bound {
    plan: Rc<Plan>,
    pack: Descriptor,
}

/// Sources of engine configurations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i32)]
pub enum Heuristics {
    /// CUDNN_HEUR_MODE_B: a model of the GPU; more accurate than A, and slower on the CPU.
    Accurate = 1,
    /// CUDNN_HEUR_MODE_A: a table.
    Fast = 3,
    /// CUDNN_HEUR_MODE_FALLBACK: whatever computes it at all.
    Fallback = 2,
}

impl Operation {
    /// # Errors
    /// [`crate::error::Kind::Engine`] where cuDNN cannot say such a convolution.
    pub fn new(convolution: &Convolution, kind: ConvolutionKind, target: Target) -> Result<Self> {
        let mut parts = Vec::new();
        let operations = match kind {
            ConvolutionKind::ForwardBiasRelu => fused(convolution, &mut parts)?,
            _ => vec![single(convolution, kind, &mut parts)?],
        };
        let graph = Descriptor::new(Kind::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?;
        graph.set_descriptors(Name::CUDNN_ATTR_OPERATIONGRAPH_OPS, &operations.iter().collect::<Vec<_>>())?;
        target.tell(&graph, Some(Name::CUDNN_ATTR_OPERATIONGRAPH_HANDLE), None)?;
        graph.finalize("the operation graph")?;
        parts.extend(operations);
        Ok(Self { graph, _parts: parts })
    }

    /// The number of engines that cuDNN has for such a graph, usable or not.
    #[cfg(test)]
    pub fn engine_count(&self) -> Result<i64> {
        self.graph.integer(Name::CUDNN_ATTR_OPERATIONGRAPH_ENGINE_GLOBAL_COUNT)
    }

    /// What heuristics propose, best first; each is read when its turn comes, since reading all takes longer than the
    /// heuristics do.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the heuristics have nothing to say on such a graph.
    pub fn propose(
        &self,
        heuristics: Heuristics,
        target: Target,
    ) -> Result<impl Iterator<Item = Result<Configuration>>> {
        let asked = Descriptor::new(Kind::CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)?;
        asked.set_descriptors(Name::CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, &[&self.graph])?;
        asked.set_number(Name::CUDNN_ATTR_ENGINEHEUR_MODE, Enumeration::HeuristicMode, heuristics as i32)?;
        target.tell(&asked, None, Some(Name::CUDNN_ATTR_ENGINEHEUR_DEVICEPROP))?;
        asked.finalize("the heuristics")?;
        let results = Name::CUDNN_ATTR_ENGINEHEUR_RESULTS;
        let count = asked.count(results)?;
        let configs = asked.descriptors(results, Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, count)?;
        Ok(configs.into_iter().map(Configuration::read))
    }

    /// An engine by its number with its knobs set.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where this cuDNN has no such engine for this graph, or no such knob.
    pub fn configure(&self, engine: i64, knobs: &[(i32, i64)], target: Target) -> Result<Configuration> {
        let chosen = Descriptor::new(Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR)?;
        chosen.set_descriptors(Name::CUDNN_ATTR_ENGINE_OPERATION_GRAPH, &[&self.graph])?;
        chosen.set_integers(Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX, &[engine])?;
        target.tell(&chosen, None, Some(Name::CUDNN_ATTR_ENGINE_DEVICEPROP))?;
        chosen.finalize(&format!("engine {engine}"))?;
        let mut parts = vec![];
        for (kind, value) in knobs {
            let knob = Descriptor::new(Kind::CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR)?;
            knob.set_number(Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, Enumeration::KnobType, *kind)?;
            knob.set_integers(Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, &[*value])?;
            knob.finalize(&format!("knob {kind}"))?;
            parts.push(knob);
        }
        let config = Descriptor::new(Kind::CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)?;
        config.set_descriptors(Name::CUDNN_ATTR_ENGINECFG_ENGINE, &[&chosen])?;
        if !parts.is_empty() {
            config.set_descriptors(Name::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, &parts.iter().collect::<Vec<_>>())?;
        }
        config.finalize(&format!("engine {engine} with its knobs"))?;
        parts.push(chosen);
        let read = Configuration::read(config)?;
        Ok(Configuration { _parts: parts, ..read })
    }
}

impl Configuration {
    fn read(config: Descriptor) -> Result<Self> {
        let engines = Name::CUDNN_ATTR_ENGINECFG_ENGINE;
        let engine = config.descriptors(engines, Kind::CUDNN_BACKEND_ENGINE_DESCRIPTOR, 1)?;
        let Some(engine) = engine.into_iter().next() else {
            return Err(crate::error::Error::engine("cuDNN gave a configuration of no engine"));
        };
        let choices = Name::CUDNN_ATTR_ENGINECFG_KNOB_CHOICES;
        let mut knobs = Vec::new();
        // Asked for their count alone, cuDNN 9.28 says that there are none.
        for knob in config.descriptors(choices, Kind::CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, MOST_KNOBS)? {
            let kinds = knob.numbers(Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, Enumeration::KnobType, 1)?;
            let value = knob.integer(Name::CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE)?;
            knobs.extend(kinds.first().map(|kind| (*kind, value)));
        }
        let notes = engine.numbers(Name::CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, Enumeration::NumericalNote, MOST_NOTES)?;
        let behaviour =
            engine.numbers(Name::CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, Enumeration::BehaviourNote, MOST_NOTES)?;
        Ok(Self {
            engine: engine.integer(Name::CUDNN_ATTR_ENGINE_GLOBAL_INDEX)?,
            knobs,
            notes: Notes::from_numbers(&notes),
            // CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION, ..._REQUIRES_FILTER_INT8x32_REORDER, ..._REQUIRES_BIAS_...
            compiles: behaviour.contains(&0),
            reorders: behaviour.contains(&1) || behaviour.contains(&2),
            config,
            _parts: vec![engine],
        })
    }

    /// Its name.
    pub fn algorithm(&self) -> Algorithm {
        Algorithm::Graph { engine: self.engine, knobs: self.knobs.clone() }
    }

    /// Makes the execution plan.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the engine does not compute this after all, as is usual for some.
    pub fn plan(self, target: Target) -> Result<Plan> {
        let plan = Descriptor::new(Kind::CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR)?;
        let (handle, device) = (Name::CUDNN_ATTR_EXECUTION_PLAN_HANDLE, Name::CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP);
        target.tell(&plan, Some(handle), Some(device))?;
        plan.set_descriptors(Name::CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, &[&self.config])?;
        plan.finalize(&format!("the plan of {}", self.algorithm()))?;
        let bytes = plan.integer(Name::CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)?;
        Ok(Plan { plan, configuration: self, workspace_bytes: u64::try_from(bytes).unwrap_or(0) })
    }
}

impl Plan {
    /// What its engine says about its numbers.
    pub fn notes(&self) -> Notes {
        self.configuration.notes
    }

    /// Binds the plan to memory; `workspace` has at least `workspace_bytes`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn bind(self: &Rc<Self>, operands: Operands, workspace: u64) -> Result<Bound> {
        let pointer = |address: u64| address as usize as *mut std::ffi::c_void;
        let mut numbers = vec![X, W, Y];
        let mut pointers = vec![pointer(operands.x), pointer(operands.w), pointer(operands.y)];
        if let Some(bias) = operands.bias {
            numbers.push(BIAS);
            pointers.push(pointer(bias));
        }
        let pack = Descriptor::new(Kind::CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR)?;
        pack.set_integers(Name::CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, &numbers)?;
        pack.set_pointers(Name::CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, &pointers)?;
        pack.set_pointers(Name::CUDNN_ATTR_VARIANT_PACK_WORKSPACE, &[pointer(workspace)])?;
        pack.finalize("the memory of a plan")?;
        Ok(Bound { plan: self.clone(), pack })
    }
}

impl Bound {
    /// Starts the work on the stream of the handle.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`].
    pub fn enqueue(&self, handle: sys::cudnnHandle_t) -> Result<()> {
        // SAFETY: handle, plan and pack live; the memory that the pack names is the caller's.
        let answer = unsafe { sys::cudnnBackendExecute(handle, self.plan.plan.raw(), self.pack.raw()) };
        status::cudnn("execute a plan", answer)
    }
}

/// A convolution alone.
fn single(convolution: &Convolution, kind: ConvolutionKind, parts: &mut Vec<Descriptor>) -> Result<Descriptor> {
    let element = data_type(convolution.element);
    let y = tensor(Y, &convolution.output, element, false)?;
    let operation = convolve(convolution, kind, &y, parts)?;
    parts.push(y);
    Ok(operation)
}

/// A convolution, the addition of a bias for each channel, and the rectifier. What is between them is float32.
fn fused(convolution: &Convolution, parts: &mut Vec<Descriptor>) -> Result<Vec<Descriptor>> {
    let element = data_type(convolution.element);
    let output = &convolution.output;
    let convolved = tensor(CONVOLVED, output, FLOAT, true)?;
    let biased = tensor(BIASED, output, FLOAT, true)?;
    let y = tensor(Y, output, element, false)?;
    let one = Maps { batch: 1, height: 1, width: 1, ..*output };
    let bias = tensor(BIAS, &one, element, false)?;
    let first = convolve(convolution, ConvolutionKind::Forward, &convolved, parts)?;
    let add = pointwise(sys::cudnnPointwiseMode_t::CUDNN_POINTWISE_ADD, parts, [&convolved, &biased], Some(&bias))?;
    let rectify = pointwise(sys::cudnnPointwiseMode_t::CUDNN_POINTWISE_RELU_FWD, parts, [&biased, &y], None)?;
    parts.extend([convolved, biased, y, bias]);
    Ok(vec![first, add, rectify])
}

/// The convolution of one direction whose tensor y, or its gradient, is given.
fn convolve(
    convolution: &Convolution,
    kind: ConvolutionKind,
    y: &Descriptor,
    parts: &mut Vec<Descriptor>,
) -> Result<Descriptor> {
    let element = data_type(convolution.element);
    let x = tensor(X, &convolution.input, element, false)?;
    let w = tensor(W, &weights(convolution), element, false)?;
    let shape = Descriptor::new(Kind::CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR)?;
    let pair = |(first, second): (usize, usize)| [first as i64, second as i64];
    let correlation = sys::cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION as i32;
    shape.set_number(Name::CUDNN_ATTR_CONVOLUTION_COMP_TYPE, Enumeration::DataType, FLOAT)?;
    shape.set_number(Name::CUDNN_ATTR_CONVOLUTION_CONV_MODE, Enumeration::ConvolutionMode, correlation)?;
    shape.set_integers(Name::CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, &[2])?;
    shape.set_integers(Name::CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, &pair(convolution.padding))?;
    shape.set_integers(Name::CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, &pair(convolution.padding))?;
    shape.set_integers(Name::CUDNN_ATTR_CONVOLUTION_DILATIONS, &[1, 1])?;
    shape.set_integers(Name::CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, &pair(convolution.stride))?;
    shape.finalize("a convolution")?;
    let names = names(kind);
    let operation = Descriptor::new(names.operation)?;
    operation.set_descriptors(names.x, &[&x])?;
    operation.set_descriptors(names.w, &[&w])?;
    operation.set_descriptors(names.y, &[y])?;
    operation.set_descriptors(names.shape, &[&shape])?;
    operation.set_float(names.alpha, 1.0)?;
    operation.set_float(names.beta, 0.0)?;
    operation.finalize("the operation of a convolution")?;
    parts.extend([x, w, shape]);
    Ok(operation)
}

/// What a direction's operation and its attributes are called.
struct Names {
    operation: Kind,
    x: Name,
    w: Name,
    y: Name,
    shape: Name,
    alpha: Name,
    beta: Name,
}

fn names(kind: ConvolutionKind) -> Names {
    match kind {
        ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu => Names {
            operation: Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
            x: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
            w: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
            y: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
            shape: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
            alpha: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
            beta: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA,
        },
        ConvolutionKind::BackwardData => Names {
            operation: Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
            x: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
            w: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
            y: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
            shape: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
            alpha: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
            beta: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA,
        },
        ConvolutionKind::BackwardWeights => Names {
            operation: Kind::CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
            x: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
            w: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
            y: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
            shape: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
            alpha: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
            beta: Name::CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA,
        },
    }
}

/// An operation on single numbers, from the first of `ends` to the second, in float32.
fn pointwise(
    mode: sys::cudnnPointwiseMode_t,
    parts: &mut Vec<Descriptor>,
    ends: [&Descriptor; 2],
    second: Option<&Descriptor>,
) -> Result<Descriptor> {
    let what = Descriptor::new(Kind::CUDNN_BACKEND_POINTWISE_DESCRIPTOR)?;
    what.set_number(Name::CUDNN_ATTR_POINTWISE_MODE, Enumeration::PointwiseMode, mode as i32)?;
    what.set_number(Name::CUDNN_ATTR_POINTWISE_MATH_PREC, Enumeration::DataType, FLOAT)?;
    what.finalize("a pointwise function")?;
    let operation = Descriptor::new(Kind::CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)?;
    operation.set_descriptors(Name::CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, &[&what])?;
    operation.set_descriptors(Name::CUDNN_ATTR_OPERATION_POINTWISE_XDESC, &[ends[0]])?;
    if let Some(second) = second {
        operation.set_descriptors(Name::CUDNN_ATTR_OPERATION_POINTWISE_BDESC, &[second])?;
    }
    operation.set_descriptors(Name::CUDNN_ATTR_OPERATION_POINTWISE_YDESC, &[ends[1]])?;
    operation.finalize("a pointwise operation")?;
    parts.push(what);
    Ok(operation)
}

/// cudnnDataType_t, as a number.
const FLOAT: i32 = sys::cudnnDataType_t::CUDNN_DATA_FLOAT as i32;

fn data_type(element: Element) -> i32 {
    match element {
        Element::F32 => FLOAT,
        Element::F16 => sys::cudnnDataType_t::CUDNN_DATA_HALF as i32,
        Element::Bf16 => sys::cudnnDataType_t::CUDNN_DATA_BFLOAT16 as i32,
    }
}

/// The weights, K x (C / groups) x R x S, as maps of their own: the layouts order both the same way.
fn weights(convolution: &Convolution) -> Maps {
    Maps {
        batch: convolution.output.channels,
        channels: convolution.input.channels / convolution.groups.max(1),
        height: convolution.kernel.0,
        width: convolution.kernel.1,
        layout: convolution.input.layout,
    }
}

/// The sizes and strides of a tensor for cuDNN, along N, C, H, W whatever the layout.
fn dimensions(maps: &Maps) -> ([i64; 4], [i64; 4]) {
    let sizes = [maps.batch, maps.channels, maps.height, maps.width].map(|size| size as i64);
    (sizes, maps.strides().map(|stride| stride as i64))
}

fn tensor(number: i64, maps: &Maps, data_type: i32, is_virtual: bool) -> Result<Descriptor> {
    let (sizes, strides) = dimensions(maps);
    let tensor = Descriptor::new(Kind::CUDNN_BACKEND_TENSOR_DESCRIPTOR)?;
    tensor.set_number(Name::CUDNN_ATTR_TENSOR_DATA_TYPE, Enumeration::DataType, data_type)?;
    tensor.set_integers(Name::CUDNN_ATTR_TENSOR_DIMENSIONS, &sizes)?;
    tensor.set_integers(Name::CUDNN_ATTR_TENSOR_STRIDES, &strides)?;
    tensor.set_integers(Name::CUDNN_ATTR_TENSOR_UNIQUE_ID, &[number])?;
    tensor.set_integers(Name::CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, &[ALIGNMENT])?;
    if is_virtual {
        tensor.set_flag(Name::CUDNN_ATTR_TENSOR_IS_VIRTUAL, true)?;
    }
    let layout = if maps.layout == Layout::Nhwc { "NHWC" } else { "NCHW" };
    tensor.finalize(&format!("a tensor of {sizes:?}, {layout}"))?;
    Ok(tensor)
}
