//! Engines execute training steps. An [`Engine`] prepares a [`Workload`] into a [`Step`]; the step runs, times itself,
//! and reports what was executed.

pub mod cpu;
pub mod difference;
pub mod dropout;
pub mod fixed;
pub mod memory;
pub mod numbers;
pub mod part;
pub mod placement;
mod probe;
pub mod processor;
pub mod reference;
pub mod threads;
pub mod train;
pub mod work;

use std::time::Duration;

use crate::device::witnessed::Witnessed;
use crate::error::{Error, Result};
use crate::network::Shape;
pub use crate::network::Workload;
use crate::settings::Loss;
pub use crate::settings::Settings;
use crate::stats::quantile::median;
use serde::{Deserialize, Serialize};

/// The device on which an engine runs, as it names itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceName {
    /// `cpu`, `cuda:0`.
    pub id: String,
    /// `NVIDIA H200`, `Intel(R) Xeon(R) Platinum 8480C`.
    pub name: String,
    /// A GPU's streaming multiprocessors.
    pub multiprocessors: Option<u32>,
}

/// The times of one step, in seconds. `None`: not measured by this engine; it is never given as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
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
    /// The time in which gradients of several processes were averaged; a part of it overlaps the backward pass.
    pub allreduce_s: Option<f64>,
    /// The loss of this step, read outside the timed region.
    #[serde(skip)]
    pub loss: Option<f64>,
    /// What happened to the threads that computed it, where the engine knows and they are another process's.
    #[serde(skip)]
    pub witnessed: Option<Witnessed>,
    /// The counts of the process that ran it, if that is another process.
    #[serde(skip)]
    pub worker: Option<WorkerCounts>,
}

/// Threads that share the work of steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TeamTime {
    pub threads: usize,
    /// Seconds of processor time, since they began and over all of them, in which one only polled for work or for the others.
    pub polled_s: f64,
}

/// Counts of a process that ran a step for this one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct WorkerCounts {
    /// The most memory so far in this visit: allocated on a GPU, else resident.
    pub peak_memory_bytes: Option<u64>,
    /// Graphs and functions that its frameworks compiled meanwhile.
    pub compilations: Option<u64>,
    /// How often the step ran between two waits; the times are for one run.
    pub repeats: Option<u64>,
}

/// How the time of preparing a step was spent, in seconds. `None`: there is no such part, or it was not measured
/// separately.
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
#[derive(Clone, Debug, Default, PartialEq)]
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
    /// Tiles of the result over the blocks that work on them at a time. A kernel whose blocks stay for several tiles
    /// has more tiles than blocks; any other kernel has one block for each tile, and the GPU holds a limited number of
    /// blocks. `None` where this is not certain.
    pub waves: Option<f64>,
}

/// The results of a step, for checking one engine against another. Each tensor's numbers are in the order of the
/// network's definition, whatever the layout and the element type on the device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Computed {
    /// N x the network's output, before the loss.
    pub output: Vec<f64>,
    /// The trainable parameters, in the order of [`crate::network::Network::parameters`].
    pub parameters: Vec<Vec<f64>>,
    /// Their gradients.
    pub gradients: Vec<Vec<f64>>,
}

/// What a step runs inside, as a profiler sees it: all calls in one step of one kernel with one grid, or of one operator with operands of the same shapes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelTime {
    pub name: String,
    /// Blocks along x, y and z; `None`: not a kernel of a GPU.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block along x, y and z.
    pub block: Option<[u32; 3]>,
    /// The shapes of an operator's operands, as JSON: `[[15,32,16,16],[64,32,3,3]]`.
    pub shapes: Option<String>,
    pub count: u64,
    /// The time of all calls together; for an operator without the operators that it calls.
    pub seconds: f64,
}

/// Memory limits that a layer may exceed from one batch size to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryLimits {
    /// The second-level cache of a GPU.
    pub l2_bytes: Option<u64>,
    /// The most scratch memory of a convolution where the settings name none.
    pub workspace_limit_bytes: Option<u64>,
}

/// The best rates of a device, with a large matrix product and with a plain copy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Peaks {
    pub flops_per_s: f64,
    /// Bytes read and bytes written, together.
    pub bytes_per_s: f64,
}

/// A file that a step comes from, and the SHA-256 of its contents.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct SourceFile {
    pub name: String,
    pub sha256: String,
}

/// Prepares steps on one device.
pub trait Engine {
    /// The device on which it runs.
    fn device(&self) -> &DeviceName;

    /// The address on the bus of the GPU that its steps run on, `0000:3b:00.0` as NVML and sysfs know it, where they run on
    /// one and it says so.
    fn pci_bus_id(&self) -> Option<&str> {
        None
    }

    /// The software that executes the steps, if it is not part of this program: `PyTorch 2.11.0+cu130`.
    fn version(&self) -> Option<String> {
        None
    }

    /// Whether its steps know what they run inside: see [`Step::kernels`].
    fn profiles(&self) -> bool {
        false
    }

    /// The files from which its steps came, if they are not part of this program.
    fn files(&self) -> &[SourceFile] {
        &[]
    }

    /// Called before the first visit of each block.
    fn begin_block(&mut self) {}

    /// What the user should know at the end of a run.
    fn last_words(&mut self) -> Vec<String> {
        Vec::new()
    }

    /// The memory limits of its layers; nothing where the engine does not report them.
    fn memory_limits(&self) -> MemoryLimits {
        MemoryLimits::default()
    }

    /// Measures the best rates of the device, in the arithmetic of settings that are in force. `None`: the engine does
    /// not measure it.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn peaks(&mut self, _settings: &Settings) -> Result<Option<Peaks>> {
        Ok(None)
    }

    /// The settings that will be in force if `asked` is requested, for instance fp32 where the device has no tf32.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where a setting has no meaning on this engine; asked before a run begins.
    fn in_force(&self, asked: &Settings) -> Result<Settings>;

    /// Names the algorithms that `algorithms = "fixed"` takes. Does nothing where the engine has no choice of algorithms.
    fn fix(&mut self, _algorithms: &fixed::FixedAlgorithms) {}

    /// Allocates, initialises and uploads what the workload needs: parameters (the same for the same network and seed),
    /// optimizer state, data, buffers. Everything that precedes the first timed step happens here.
    ///
    /// # Errors
    /// [`crate::error::Kind::OutOfMemory`] where it does not fit; [`crate::error::Kind::Engine`] where the device refuses.
    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>>;

    /// The algorithms of those layers of a workload's step that may use another algorithm at another batch size: each
    /// with the layer's place in the network, in the engine's own words. Takes none of the step's memory. An engine
    /// that always computes in the same way, or does not report it, gives nothing.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn algorithms(&mut self, _workload: &Workload) -> Result<Vec<(usize, String)>> {
        Ok(Vec::new())
    }

    /// The algorithms that a library refused when they ran, in words; others replaced them.
    fn refusals(&self) -> Vec<String> {
        Vec::new()
    }

    /// Runs a step of a workload part by part, and shows `see` each part with its inputs and results. An engine that
    /// cannot be taken apart shows nothing.
    ///
    /// # Errors
    /// The failure of a part or of `see`, and which of our own operators had computed the part.
    fn take_apart(&mut self, _workload: &Workload, _see: &mut dyn part::See) -> std::result::Result<(), part::Fault> {
        Ok(())
    }

    /// Prepares a network for training on batches of a loader, each of up to `workload.batch_size` examples. Parameters
    /// follow from the seed, as in [`Engine::prepare`].
    ///
    /// # Errors
    /// As [`Engine::prepare`]; [`crate::error::Kind::Spec`] where the engine takes no batches from outside.
    fn train(&mut self, workload: &Workload) -> Result<Box<dyn train::Trainer>> {
        let _ = workload;
        Err(train::refusal(&self.device().id))
    }

    /// Whether it supports [`Engine::train`] and evaluation.
    fn trains(&self) -> bool {
        false
    }

    /// Whether all its training batches must have the workload's batch size.
    fn needs_whole_batches(&self) -> bool {
        false
    }

    /// Whether it supports [`Engine::train_alone`], with its own loader.
    fn feeds_itself(&self) -> bool {
        false
    }

    /// [`Engine::train`] for an engine that feeds itself, as PyTorch does with its DataLoader.
    ///
    /// # Errors
    /// As [`Engine::train`].
    fn train_alone(&mut self, _workload: &Workload, _feed: &train::Feed) -> Result<Box<dyn train::EpochTrainer>> {
        Err(train::refusal(&self.device().id))
    }

    /// Checks, after a step has failed, whether anything still runs. After a kernel's fault CUDA refuses every call of
    /// its process, and a GPU can fall off its bus; later steps would then fail without being at fault. One step of the
    /// smallest network is tried.
    ///
    /// # Errors
    /// The error of that step.
    fn still_works(&mut self) -> Result<()> {
        self.prepare(&probe::smallest()?)?.run().map(drop)
    }

    /// Gives back the memory that it keeps between two steps: another engine needs the device next.
    fn give_back(&mut self) {}

    /// The time of a step with next to nothing in it, in seconds: one example of two numbers through the smallest
    /// network. It is the cost of starting, synchronising and timing a step on this engine. The median of 21 steps,
    /// after three that warm up.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn smallest_step_s(&mut self) -> Result<f64> {
        let mut step = self.prepare(&probe::smallest()?)?;
        let mut times = (0..24).map(|_| Ok(step.run()?.step_s)).collect::<Result<Vec<f64>>>()?;
        Ok(median(&mut times[3..]))
    }
}

/// How long threads sleep before a step where other programs hold the processors. Beside eight programs on two processors, of steps of 1.5 ms by one thread 60 % were undisturbed
/// without it, 90 % after 1 ms and 98 % after 3 ms (Linux 6.18, seen once with a program in C that is not kept); longer sleeps gained nothing.
pub const REST: Duration = Duration::from_millis(3);

/// One prepared training step: batch to device, forward, loss, backward, optimizer update.
pub trait Step {
    /// Announces that it will be run at least `_steps` times from now on.
    fn expect(&mut self, _steps: usize) {}

    /// Lets its threads sleep before the next step, and begins that on all of them at once if the engine can see to it. Linux gives a processor sooner, and for longer, to a thread that
    /// has slept, so that fewer steps are interrupted.
    fn rest(&mut self) {
        std::thread::sleep(REST);
    }

    /// Runs one step, synchronised before its start and after its end, and times it.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn run(&mut self) -> Result<StepTimes>;

    /// The threads that share its work, where the engine counts what they do.
    fn team(&self) -> Option<TeamTime> {
        None
    }

    /// How the time of preparing it was spent.
    fn setup(&self) -> SetupTimes {
        SetupTimes::default()
    }

    /// What was executed for each layer and direction; nothing where the engine does not know.
    fn layers(&self) -> Vec<LayerExecution> {
        Vec::new()
    }

    /// Measures the device time of each layer, outside the steps that count; [`Step::layers`] holds it from then on. Does
    /// nothing where the engine has no device clock.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn time_layers(&mut self) -> Result<()> {
        Ok(())
    }

    /// Calls `look` while the device runs further steps, which do not count: a GPU that idles lowers its clock and its link.
    /// Calls it without any where the device is the processor, which does not wait for this program.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn at_work(&mut self, look: &mut dyn FnMut()) -> Result<()> {
        look();
        Ok(())
    }

    /// The kernels of one more step, as a profiler sees them; empty without a profiler.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn kernels(&mut self) -> Result<Vec<KernelTime>> {
        Ok(Vec::new())
    }

    /// The results of the last step; before the first step, the initial parameters. `None`: the engine does not report
    /// it.
    ///
    /// # Errors
    /// As [`Engine::prepare`].
    fn computed(&self) -> Result<Option<Computed>> {
        Ok(None)
    }
}

/// Device time of the steps behind a reading of a GPU's clock, power and link; the readings take some milliseconds.
pub const AT_WORK_S: f64 = 0.02;

/// How many steps of that length keep a device at work for [`AT_WORK_S`].
pub fn steps_at_work(step_s: f64) -> usize {
    (AT_WORK_S / step_s.max(1e-6)).ceil().clamp(1.0, 200.0) as usize
}

/// Lets the device begin with what it was given: a reading at once could still meet it idle.
pub fn let_it_begin() {
    std::thread::sleep(std::time::Duration::from_secs_f64(AT_WORK_S / 8.0));
}

/// Refuses settings for a reason, with what to do, where it applies.
///
/// # Errors
/// [`crate::error::Kind::Spec`].
pub fn refuse(applies: bool, what: impl Into<String>, hint: &str) -> Result<()> {
    if applies { Err(Error::spec(what).hint(hint)) } else { Ok(()) }
}

/// Refuses workloads that no engine can train.
///
/// # Errors
/// [`crate::error::Kind::Spec`], with what no engine can train.
pub fn check_shapes(workload: &Workload) -> Result<()> {
    refuse(workload.batch_size == 0, "a batch of 0 examples", "start the sweep at 1")?;
    Workload::check(&workload.network, &workload.settings)?;
    let output = workload.network.output();
    if workload.settings.loss == Loss::CategoricalCrossEntropy && !matches!(output, Shape::Flat(_)) {
        return Err(Error::spec("a cross-entropy needs one number for each class, and the network ends in maps")
            .at(&workload.network.name)
            .hint("end it with `flatten` or `global_average_pool`, or use `mean_squared_error`"));
    }
    Ok(())
}
