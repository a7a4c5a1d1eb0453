//! From a workload to a step that is ready to run: plan, algorithms, memory, programs.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Instant;

use super::arena::{ALIGNMENT, Arena};
use super::call::{Call, Convolution, ConvolutionKind};
use super::cuda::computation::Computation;
use super::cuda::trial::{self, Tried};
use super::cuda::{
    Choice, Chooser, Gpu, Memory, Placement, Policy, Program, ProgramLayout, Range, Search, StreamId, product,
    workspace_limit,
};
use super::element::Element;
use super::feed::Feed;
use super::isolated::{self, PlacedParts, See};
use super::order::StepStream;
use super::peaks;
use super::placed::Placed;
use super::plan::{Planned, StepPlan};
use super::source::Operator;
use super::step::CudnnStep;
use super::trainer::{self, CudnnTrainer};
use crate::engine::fixed::FixedAlgorithms;
use crate::engine::part::Fault;
use crate::engine::train::Trainer;
use crate::engine::{DeviceName, Engine, MemoryLimits, Peaks, SetupTimes, Step, Workload};
use crate::error::{Error, Kind, Result};
use crate::network::Direction;
use crate::settings::{Algorithms, DataPath, EngineName, Launch, Precision, Settings};

/// Left free by a step: cuDNN and cuBLASLt load kernels into device memory at their first calls.
const RESERVE: u64 = 512 << 20;

/// Executes training steps on an NVIDIA GPU.
#[derive(Debug)]
pub struct CudnnEngine {
    device: DeviceName,
    gpu: Gpu,
    convolutions: Chooser,
    /// The memory of the last step. The next one reuses it where it is large enough.
    memory: Option<Rc<Memory>>,
    fixed: FixedAlgorithms,
}

impl CudnnEngine {
    /// Opens the GPU of that index in CUDA's order.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] with what is missing and the command that installs it.
    pub fn open(ordinal: u32) -> Result<Self> {
        Ok(Self::on(Gpu::open(ordinal, source)?))
    }

    /// An engine whose calls are recorded.
    #[cfg(test)]
    pub(crate) fn recorded() -> Result<Self> {
        use crate::device::cuda::libraries::{Libraries, Search};
        let nothing = Libraries::open(&Search::new(std::path::Path::new("/nonexistent"), &|_| None), None);
        Ok(Self::on(Gpu::with(&nothing, 0, source)?))
    }

    fn on(gpu: Gpu) -> Self {
        let properties = gpu.properties();
        let device = DeviceName {
            id: format!("cuda:{}", properties.ordinal),
            name: properties.name.clone(),
            multiprocessors: Some(properties.multiprocessors),
        };
        let convolutions = Chooser::new(&gpu);
        Self { device, gpu, convolutions, memory: None, fixed: FixedAlgorithms::default() }
    }

    fn search(&self, workload: &Workload, layer: usize, direction: Direction) -> Result<Search> {
        let Workload { network, settings, .. } = workload;
        let policy = match settings.algorithms {
            Algorithms::Heuristic => Policy::Heuristic,
            Algorithms::Autotune => Policy::Autotune,
            Algorithms::Fixed => {
                Policy::Fixed(self.fixed.get(&network.name, &network.layers[layer].name, direction)?)
            }
        };
        let limit = settings.workspace_limit.unwrap_or_else(|| workspace_limit(self.gpu.properties().total_bytes));
        Ok(Search { policy, workspace_limit: limit, winograd: settings.winograd })
    }

    /// The plan of a step. A convolution is fused with its bias and ReLU where cuDNN has an algorithm for all three
    /// that is not known to be slower than the convolution and a pass over its output.
    fn plan(&self, workload: &Workload) -> Result<StepPlan> {
        let mut fuses = |layer: usize, convolution: &Convolution| -> bool {
            let Ok(search) = self.search(workload, layer, Direction::Forward) else { return false };
            let choose = |kind| self.convolutions.choose(convolution, kind, &search);
            let Ok(together) = choose(ConvolutionKind::ForwardBiasRelu) else { return false };
            match (together.seconds, choose(ConvolutionKind::Forward).ok().and_then(|alone| alone.seconds)) {
                (Some(together), Some(alone)) => together < alone + self.pass_s(convolution),
                _ => together.remark.is_none(),
            }
        };
        StepPlan::new(workload, &mut fuses)
    }

    /// Seconds to read and write a convolution's output, at four fifths of the memory's nominal rate.
    fn pass_s(&self, convolution: &Convolution) -> f64 {
        let bytes = 2 * convolution.output.count() * convolution.element.bytes();
        self.gpu.properties().memory_bytes_per_s().map_or(0.0, |rate| bytes as f64 / (0.8 * rate))
    }

    /// The algorithm of every convolution, by the index of its call.
    fn choices(&self, workload: &Workload, plan: &StepPlan) -> Result<BTreeMap<usize, Choice>> {
        let mut choices = BTreeMap::new();
        for (index, planned) in plan.calls.iter().enumerate() {
            let (Call::Convolution(convolution, task), Some(layer)) = (&planned.call, planned.layer) else { continue };
            let choose = || {
                let search = self.search(workload, layer, planned.direction)?;
                self.convolutions.choose(convolution, task.kind, &search)
            };
            let choice = choose().map_err(|error| error.at(&workload.network.layers[layer].name))?;
            choices.insert(index, choice);
        }
        Ok(choices)
    }

    /// Memory for a step: that of the last one, where it is large enough and no longer in use.
    fn take(&mut self, bytes: u64) -> Result<Rc<Memory>> {
        self.memory.take_if(|memory| Rc::strong_count(memory) > 1 || memory.bytes() < bytes);
        if let Some(memory) = &self.memory {
            return Ok(memory.clone());
        }
        let free = self.gpu.free_bytes()?.saturating_sub(RESERVE);
        if bytes > free {
            let gigabytes = |bytes: u64| bytes as f64 / 1e9;
            let (wanted, free) = (gigabytes(bytes), gigabytes(free));
            let what = format!("the step needs {wanted:.2} GB, and {} has {free:.2} GB free", self.device.name);
            return Err(
                Error::new(Kind::OutOfMemory, what).hint("take a smaller batch, or a smaller `workspace_limit`")
            );
        }
        let memory = Rc::new(self.gpu.allocate(bytes)?);
        self.memory = Some(memory.clone());
        Ok(memory)
    }

    fn place(&mut self, plan: StepPlan, arena: &Arena, choices: &BTreeMap<usize, Choice>) -> Result<Placed> {
        let (workspaces, bytes) = behind(arena.bytes as u64, workspaces(&plan, choices));
        let memory = self.take(bytes)?;
        let mut places = places(&plan, arena);
        let placement = Placement::in_arena(memory.address(), &places);
        let other_placement = plan.next_batch.map(|(inputs, targets)| {
            places.swap(plan.inputs.buffer.0, inputs.buffer.0);
            places.swap(plan.targets.buffer.0, targets.buffer.0);
            Placement::in_arena(memory.address(), &places)
        });
        let workspaces = workspaces.map(|range| Range { address: memory.address() + range.address, ..range });
        Ok(Placed { plan, memory, placement, other_placement, workspaces })
    }

    /// A step with its algorithms, its memory and its calls.
    fn program(&mut self, workload: &Workload) -> Result<(Placed, Vec<Program>)> {
        let plan = self.plan(workload)?;
        let choices = self.choices(workload, &plan)?;
        let arena = plan.arena();
        let placed = self.place(plan, &arena, &choices)?;
        let calls: Vec<Call> = placed.plan.calls.iter().map(|planned| planned.call.clone()).collect();
        let program = |placement: &Placement| {
            let (workspaces, order) = (placed.workspaces, Some(&placed.plan.order));
            let layout = ProgramLayout { placement, choices: &choices, workspaces, order };
            Program::new(&self.gpu, &calls, layout)
        };
        let mut programs = vec![program(&placed.placement)?];
        if let Some(placement) = &placed.other_placement {
            programs.push(program(placement)?);
        }
        Ok((placed, programs))
    }

    /// Executes once each convolution and product whose algorithm has not run before; false where one is refused.
    fn all_run(&self, plan: &StepPlan, program: &Program) -> Result<bool> {
        let tried = |(index, planned): (usize, &Planned)| {
            let computation = Computation::of(&planned.call)?;
            Some((index, Tried { computation, algorithm: program.execution(index)?.algorithm.clone() }))
        };
        self.gpu.trials().all_run(plan.calls.iter().enumerate().filter_map(tried), |index| program.attempt(index))
    }
}

/// Offsets and sizes of the buffers of a plan.
fn places(plan: &StepPlan, arena: &Arena) -> Vec<(u64, u64)> {
    arena.offsets.iter().zip(&plan.buffers).map(|(&offset, buffer)| (offset as u64, buffer.bytes as u64)).collect()
}

fn source(operator: &str, element: Element) -> Option<String> {
    Some(Operator::by_name(operator)?.source(element))
}

/// The bytes that the algorithms of each stream need while they run, the main stream's first.
fn workspaces(plan: &StepPlan, choices: &BTreeMap<usize, Choice>) -> [u64; 2] {
    [StepStream::Main, StepStream::Side].map(|stream| {
        let own = plan.calls.iter().enumerate().filter(|(_, planned)| planned.stream == stream);
        let bytes = own.filter_map(|(index, planned)| match &planned.call {
            Call::Convolution(..) => choices.get(&index).map(Choice::workspace_bytes),
            Call::Gemm(_) => Some(product::WORKSPACE),
            Call::Launch(_) | Call::Zero(_) => None,
        });
        bytes.max().unwrap_or(0).next_multiple_of(ALIGNMENT as u64)
    })
}

/// Where the workspaces of the main stream and of the side stream lie behind the buffers of a step, by their offsets in its
/// memory, and the bytes of this memory.
fn behind(buffers: u64, [main, side]: [u64; 2]) -> ([Range; 2], u64) {
    let workspaces = [Range { address: buffers, bytes: main }, Range { address: buffers + main, bytes: side }];
    (workspaces, buffers + main + side)
}

impl Engine for CudnnEngine {
    fn device(&self) -> &DeviceName {
        &self.device
    }

    fn pci_bus_id(&self) -> Option<&str> {
        Some(&self.gpu.properties().pci_bus_id)
    }

    fn version(&self) -> Option<String> {
        Some(self.gpu.properties().software())
    }

    fn memory_limits(&self) -> MemoryLimits {
        let properties = self.gpu.properties();
        let limit = workspace_limit(properties.total_bytes);
        MemoryLimits { l2_bytes: Some(properties.l2_bytes), workspace_limit_bytes: Some(limit) }
    }

    fn peaks(&mut self, settings: &Settings) -> Result<Option<Peaks>> {
        let memory = self.take(peaks::bytes(settings.precision))?;
        peaks::measure(&self.gpu, &memory, settings.precision).map(Some)
    }

    /// `tf32` becomes `fp32` where the GPU has no such mode; `threads` is a setting of the CPU engines and is dropped.
    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        let properties = self.gpu.properties();
        let mut settings = Settings { threads: None, ..asked.of(EngineName::Cudnn) };
        if asked.precision == Precision::Tf32 && !properties.has_tf32_and_bf16() {
            settings.precision = Precision::Fp32;
        }
        if asked.precision == Precision::Bf16 && !properties.has_tf32_and_bf16() {
            let what = format!("{} does not multiply in bf16", properties.name);
            return Err(Error::spec(what).hint("use `fp16` or `fp32`"));
        }
        if asked.algorithms == Algorithms::Fixed && self.fixed.is_empty() {
            let hint = "name the run that they come from: fixed_from = \"results/...\" in [engine]";
            return Err(Error::spec("`algorithms = \"fixed\"` without algorithms").hint(hint));
        }
        Ok(settings)
    }

    fn give_back(&mut self) {
        self.memory.take_if(|memory| Rc::strong_count(memory) == 1);
    }

    fn fix(&mut self, algorithms: &FixedAlgorithms) {
        self.fixed = algorithms.clone();
    }

    fn refusals(&self) -> Vec<String> {
        self.gpu.trials().all_refused()
    }

    fn trains(&self) -> bool {
        true
    }

    fn needs_whole_batches(&self) -> bool {
        true
    }

    fn train(&mut self, workload: &Workload) -> Result<Box<dyn Trainer>> {
        trainer::check(workload)?;
        Ok(Box::new(CudnnTrainer::new(Box::new(self.step(workload)?), workload)))
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        Ok(Box::new(self.step(workload)?))
    }

    /// The algorithms of the convolutions and of the products.
    fn algorithms(&mut self, workload: &Workload) -> Result<Vec<(usize, String)>> {
        let workload = Workload { settings: self.in_force(&workload.settings)?, ..workload.clone() };
        self.make_room(&workload.settings);
        let plan = self.plan(&workload)?;
        let choices = self.choices(&workload, &plan)?;
        // Every step's memory begins at a multiple of this, whatever its address.
        let placement = Placement::in_arena(ALIGNMENT as u64, &places(&plan, &plan.arena()));
        let mut algorithms = Vec::new();
        for (index, Planned { call, layer, direction, .. }) in plan.calls.iter().enumerate() {
            let name = match (call, choices.get(&index)) {
                (Call::Convolution(_, task), Some(choice)) => format!("{:?} {}", task.kind, choice.algorithm),
                (Call::Gemm(gemm), _) => {
                    format!("{} {}", direction.name(), self.gpu.product_algorithm(gemm, &placement)?)
                }
                _ => continue,
            };
            algorithms.extend(layer.map(|layer| (layer, name)));
        }
        Ok(algorithms)
    }

    /// If a step cannot be prepared, the part that causes this fails as well, and is named.
    fn take_apart(&mut self, workload: &Workload, see: See) -> Result<(), Fault> {
        // Preparing the step makes known which algorithms are refused when they run.
        let prepared = match self.step(workload) {
            // The GPU no longer works, so no part is to blame.
            Err(error) if self.gpu.synchronize(StreamId::Compute).is_err() => return Err(error.into()),
            prepared => prepared.map(drop),
        };
        let settings = isolated::in_turn(&self.in_force(&workload.settings)?);
        let workload = Workload { settings, ..workload.clone() };
        let plan = self.plan(&workload)?;
        let (arena, choices) = (Arena::apart(&plan.buffers), self.choices(&workload, &plan)?);
        let placed = self.place(plan, &arena, &choices)?;
        placed.begin(&self.gpu)?;
        let mut parts = PlacedParts { gpu: self.gpu.clone(), placed, arena, choices };
        let seen = isolated::take_apart(&mut parts, &workload, see);
        drop(parts);
        // Released: it is larger than the memory of any later step.
        self.memory = None;
        seen.and(prepared.map_err(Fault::from))
    }
}

impl CudnnEngine {
    /// To be called before a search: algorithms are measured in separate memory, for which the last step's memory would
    /// leave no room.
    fn make_room(&mut self, settings: &Settings) {
        if settings.algorithms == Algorithms::Autotune {
            self.give_back();
        }
    }

    fn step(&mut self, workload: &Workload) -> Result<CudnnStep> {
        if workload.batch_size == 0 {
            return Err(Error::spec("a batch of 0 examples").hint("start the sweep at 1"));
        }
        self.gpu.settle()?;
        let settings = self.in_force(&workload.settings)?;
        let workload = Workload { settings, ..workload.clone() };
        self.make_room(&workload.settings);
        let begun = Instant::now();
        let (placed, programs) = trial::until_all_run(|| {
            let (placed, programs) = self.program(&workload)?;
            let all = self.all_run(&placed.plan, &programs[0])?;
            Ok(all.then_some((placed, programs)))
        })?;
        let search_s = Some(begun.elapsed().as_secs_f64());
        placed.begin(&self.gpu)?;
        let feed = match workload.settings.data {
            DataPath::Resident => None,
            path => Some(Feed::new(&self.gpu, &placed, path)?),
        };
        let begun = Instant::now();
        let captured = workload.settings.launch == Launch::Graph;
        if captured {
            // A graph is captured from calls that have run once; after that run everything gets its initial value
            // again.
            programs.iter().try_for_each(|program| program.enqueue(0..program.len()))?;
            placed.begin(&self.gpu)?;
        }
        let mut step = CudnnStep::new(self.gpu.clone(), workload, placed, programs, feed)?;
        let capture_s = captured.then(|| begun.elapsed().as_secs_f64());
        step.setup = SetupTimes { compile_s: None, search_s, capture_s };
        Ok(step)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspaces_overlap_neither_the_buffers_nor_each_other_and_fit() {
        let range = |address, bytes| Range { address, bytes };
        assert_eq!(behind(4096, [512, 256]), ([range(4096, 512), range(4608, 256)], 4864));
    }
}
