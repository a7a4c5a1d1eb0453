//! What executes a training step. An [`Engine`] prepares a [`Workload`] into a [`Step`]; the step runs, times itself, and
//! says what it did.

mod automatic;
pub mod candle;
pub mod cpu;
pub mod cudnn;
pub mod data;
mod dropout;
pub mod initial;
pub(crate) mod memory;
pub mod open;
pub mod own;
pub mod part;
mod placement;
mod probe;
mod processor;
pub mod reference;
#[cfg(test)]
pub(crate) mod refusing;
pub mod synthetic;
mod threads;
pub mod torch;
pub mod train;
mod work;
pub mod worker;

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::network::{Network, Shape};
use crate::settings::Loss;
pub use crate::settings::Settings;
use crate::stats::quantile::median;
pub use cudnn::replacement::Replacement;

/// What one cell of an experiment executes.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pub network: Arc<Network>,
    pub batch_size: usize,
    pub settings: Settings,
}

/// The device an engine runs on, as it names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName {
    /// `cpu`, `cuda:0`.
    pub id: String,
    /// `NVIDIA H200`, `Intel(R) Xeon(R) Platinum 8480C`.
    pub name: String,
    /// A GPU's streaming multiprocessors.
    pub multiprocessors: Option<u32>,
}

/// The times of one step, in seconds. `None`: not measured by this engine, never 0 in its place.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StepTimes {
    /// Host clock, from a synchronised start to a synchronised end.
    pub step_s: f64,
    /// Device clock, from event to event.
    pub gpu_s: Option<f64>,
    /// Host clock, from the start until the last piece of work was queued.
    pub enqueue_s: Option<f64>,
    pub h2d_s: Option<f64>,
    pub forward_s: Option<f64>,
    pub backward_s: Option<f64>,
    pub optimizer_s: Option<f64>,
    /// While gradients of several processes were being averaged, of which a part lies beside the backward pass.
    pub allreduce_s: Option<f64>,
    /// The loss of this step, read outside the timed region.
    pub loss: Option<f64>,
    /// What the process that ran it counted, where that is another one.
    pub worker: Option<WorkerCounts>,
}

/// What a process counted of a step that it ran for this one.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkerCounts {
    /// Processor time of all its threads, in seconds.
    pub processor_s: Option<f64>,
    pub page_faults: Option<f64>,
    pub context_switches: Option<f64>,
    /// The most memory so far in this visit: allocated on a GPU, else resident.
    pub peak_memory_bytes: Option<u64>,
    /// Graphs and functions that its frameworks compiled meanwhile.
    pub compilations: Option<u64>,
    /// How often the step ran between two waits; its times are those of one.
    pub repeats: Option<u64>,
}

/// What preparing a step was spent on, in seconds. `None`: there is no such part, or it was not measured apart.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SetupTimes {
    /// Compiling the network, as `torch.compile` does.
    pub compile_s: Option<f64>,
    /// Choosing algorithms and planning memory, with compiling kernels that no cache holds.
    pub search_s: Option<f64>,
    /// Capturing the step in a CUDA graph, with the steps before it that load what it needs.
    pub capture_s: Option<f64>,
}

/// How one layer was executed in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerExecution {
    pub layer: String,
    pub operation: String,
    /// `forward`, `backward_data`, `backward_weights`.
    pub direction: &'static str,
    pub algorithm: Option<String>,
    pub workspace_bytes: Option<u64>,
    pub math_mode: Option<String>,
    pub flops: f64,
    pub bytes: f64,
    /// By the device's clock: events on a GPU, the host's clock where the processor is the device.
    pub device_s: Option<f64>,
    /// `None` off a GPU, and where the layer has no calls of its own.
    pub kernel: Option<KernelLaunch>,
    /// The operator of our own whose kernels a library's call takes the place of here, and why.
    pub replaced: Option<String>,
}

/// The kernel that does most of a layer's work in one direction, as it is launched.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelLaunch {
    /// As its library names it.
    pub name: String,
    /// Thread blocks.
    pub blocks: u64,
    pub threads_per_block: u32,
    /// Blocks that a multiprocessor holds at a time (CUDA's occupancy).
    pub blocks_per_multiprocessor: Option<u32>,
    /// Tiles of the result over the blocks that work on them at a time. A kernel whose blocks stay for several tiles has more
    /// tiles than blocks; any other one has a block for each, of which the GPU holds so many. `None` where it is not sure.
    pub waves: Option<f64>,
}

/// What a step computed, for checking one engine against another: each tensor's numbers in the order of the network's
/// definition, whatever the layout and the element type on the device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Computed {
    /// N x the network's output, before the loss.
    pub output: Vec<f64>,
    /// The trainable parameters, in the order of [`Network::parameters`].
    pub parameters: Vec<Vec<f64>>,
    /// Their gradients.
    pub gradients: Vec<Vec<f64>>,
}

/// Limits of memory that a layer may pass from one batch size to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The second-level cache of a GPU.
    pub l2_bytes: Option<u64>,
    /// The most scratch memory of a convolution where the settings name none.
    pub workspace_limit_bytes: Option<u64>,
}

/// What a device reaches at best, with a large matrix product and with a plain copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    pub flops_per_s: f64,
    /// Bytes read and bytes written, together.
    pub bytes_per_s: f64,
}

/// Prepares steps on one device.
pub trait Engine {
    /// The device it runs on.
    fn device(&self) -> &DeviceName;

    /// What executes the steps, where that is no part of this program: `PyTorch 2.11.0+cu130`.
    fn version(&self) -> Option<String> {
        None
    }

    /// The files that its steps came from, where they are no part of this program.
    fn files(&self) -> &[own::SourceFile] {
        &[]
    }

    /// Called before the first visit of each block.
    fn begin_block(&mut self) {}

    /// What the user should know at the end of a run.
    fn last_words(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The limits of memory that its layers meet; nothing where it does not say.
    fn memory_limits(&self) -> MemoryLimits {
        MemoryLimits::default()
    }

    /// Measures what the device reaches at best in the arithmetic of settings that are in force. `None`: the engine does not
    /// measure it.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn peaks(&mut self, _settings: &Settings) -> Result<Option<Peaks>> {
        Ok(None)
    }

    /// The settings that will be in force when `asked` is asked for, for instance fp32 where the device has no tf32.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where a setting has no meaning on this engine; asked before a run begins.
    fn in_force(&self, asked: &Settings) -> Result<Settings>;

    /// Names the algorithms that `algorithms = "fixed"` takes. Does nothing where the engine has no choice of algorithms.
    fn fix(&mut self, _algorithms: &cudnn::fixed::FixedAlgorithms) {}

    /// The operators that kernels of our own compute in the step of a workload, and that a library's calls could compute instead.
    fn replaceable(&self, _workload: &Workload) -> Vec<&'static str> {
        Vec::new()
    }

    /// Has a library compute these operators, and no other, in every step that is prepared from now on.
    fn replace(&mut self, _replacements: &[Replacement]) {}

    /// Allocates, initialises and uploads what the workload needs: parameters (the same for the same network and seed),
    /// optimizer state, data, buffers. All that happens before the first timed step happens here.
    ///
    /// # Errors
    /// [`crate::error::Kind::OutOfMemory`] where it does not fit; [`crate::error::Kind::Engine`] where the device refuses.
    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>>;

    /// What computes the layers of a workload's step, where that may be another algorithm at another batch size: by the layer's place in the network, in the
    /// engine's own words. Takes none of the step's memory. An engine that always computes in the same way, or does not say, gives nothing.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn algorithms(&mut self, _workload: &Workload) -> Result<Vec<(usize, String)>> {
        Ok(Vec::new())
    }

    /// The algorithms that a library refused when they ran, in words; others took their places.
    fn refusals(&self) -> Vec<String> {
        Vec::new()
    }

    /// Runs a step of a workload part by part, in memory where something that no call may touch lies around everything that a call writes, and
    /// shows `see` each part with what it was given and what it computed. An engine that is not taken apart shows nothing.
    ///
    /// # Errors
    /// What a part, `see`, or the memory around it fails with, and which operators of our own had computed it.
    fn take_apart(&mut self, _workload: &Workload, _see: &mut dyn part::See) -> std::result::Result<(), part::Fault> {
        Ok(())
    }

    /// Prepares a network that is trained on batches of a loader, each of up to `workload.batch_size` examples. Parameters are
    /// those of the seed, as in [`Engine::prepare`].
    ///
    /// # Errors
    /// As [`Engine::prepare`]; [`crate::error::Kind::Spec`] where the engine takes no batches from outside.
    fn train(&mut self, workload: &Workload) -> Result<Box<dyn train::Trainer>> {
        let _ = workload;
        Err(train::refusal(&self.device().id))
    }

    /// Whether it trains by [`Engine::train`], and evaluates.
    fn trains(&self) -> bool {
        false
    }

    /// Whether all batches that it trains on must have the workload's batch size.
    fn needs_whole_batches(&self) -> bool {
        false
    }

    /// Whether it trains by [`Engine::train_alone`], with a loader of its own.
    fn feeds_itself(&self) -> bool {
        false
    }

    /// The same for an engine that feeds itself, as PyTorch does with its DataLoader.
    ///
    /// # Errors
    /// As [`Engine::train`].
    fn train_alone(&mut self, _workload: &Workload, _feed: &train::Feed) -> Result<Box<dyn train::EpochTrainer>> {
        Err(train::refusal(&self.device().id))
    }

    /// Asked after a step has failed: does anything run at all? After a kernel's fault CUDA refuses every call of its process,
    /// and a GPU can fall off its bus; what came next would fail for no reason of its own. One step of the smallest network
    /// is tried.
    ///
    /// # Errors
    /// What that step says.
    fn still_works(&mut self) -> Result<()> {
        self.prepare(&probe::smallest()?)?.run().map(drop)
    }

    /// The time of a step with next to nothing in it, in seconds: one example of two numbers through the smallest network. It
    /// is what starting, synchronising and timing a step costs on this engine. The median of 21 steps, after three that
    /// warm up.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn smallest_step_s(&mut self) -> Result<f64> {
        let mut step = self.prepare(&probe::smallest()?)?;
        let mut times = (0..24).map(|_| Ok(step.run()?.step_s)).collect::<Result<Vec<f64>>>()?;
        Ok(median(&mut times[3..]))
    }
}

/// One prepared training step: batch to device, forward, loss, backward, optimizer update.
pub trait Step {
    /// Says that it will be run at least so many times from now on.
    fn expect(&mut self, _steps: usize) {}

    /// Runs one step, synchronised before its start and after its end, and times it.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn run(&mut self) -> Result<StepTimes>;

    /// What preparing it was spent on.
    fn setup(&self) -> SetupTimes {
        SetupTimes::default()
    }

    /// What was executed for each layer and direction.
    fn layers(&self) -> Vec<LayerExecution>;

    /// Measures the device time of each layer, outside the steps that count; [`Step::layers`] holds it from then on. Does
    /// nothing where the engine has no device clock.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn time_layers(&mut self) -> Result<()> {
        Ok(())
    }

    /// What the last step computed; before the first one, the initial parameters. `None`: the engine does not report it.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn computed(&self) -> Result<Option<Computed>> {
        Ok(None)
    }
}

/// Refuses what cannot be trained whatever the engine.
fn check_shapes(workload: &Workload) -> Result<()> {
    if workload.batch_size == 0 {
        return Err(Error::spec("a batch of 0 examples").hint("start the sweep at 1"));
    }
    data::check(&workload.network, &workload.settings)?;
    let output = workload.network.output();
    if workload.settings.loss == Loss::CategoricalCrossEntropy && !matches!(output, Shape::Flat(_)) {
        return Err(Error::spec("a cross-entropy needs one number for each class, and the network ends in maps")
            .at(&workload.network.name)
            .hint("end it with `flatten` or `global_average_pool`, or use `mean_squared_error`"));
    }
    Ok(())
}
