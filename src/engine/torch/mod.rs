//! PyTorch, in its own process: the same networks, parameters, data and settings, for side-by-side figures.
//!
//! PyTorch is used in its fastest form (see `torch/worker/`) and timed like every engine: from a synchronised start to a
//! synchronised end, with the loss read afterwards. Three things differ from the other engines, none to PyTorch's
//! disadvantage: targets are class indices, dropout is PyTorch's own (so its masks differ), and the settings `launch` and
//! `compile` are separate: `launch = "graph"` captures the whole step in one CUDA graph, compiled or not, and `compile
//! = "max-autotune"` compiles without graphs of its own. With `processes` above 1, a step is a step of data parallel
//! training.

mod group;
mod message;
mod parallel;
mod step;
#[cfg(test)]
mod tests;
mod training;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;

use super::memory;
use super::train::{self, EpochTrainer, Feed};
use super::worker::{self, Patience, Process, Program, ProgramHost, Worker};
use super::{DeviceName, Engine, SetupTimes, Step, Workload, check_shapes, processor, refuse, work};
use crate::device::interpreter;
use crate::error::{Error, Kind, Result};
use crate::settings::{Algorithms, Compile, DataPath, EngineName, Examples, Launch, Precision, Settings};
use parallel::{ParallelStep, Split};
use step::TorchStep;
use training::TorchTraining;

const TEXT: &str = concat!(
    include_str!("../worker/python/pipes.py"),
    include_str!("worker/numbers.py"),
    include_str!("worker/network.py"),
    include_str!("../worker/python/clock.py"),
    include_str!("../worker/python/witness.py"),
    include_str!("worker/layers.py"),
    include_str!("worker/feed.py"),
    include_str!("worker/step.py"),
    include_str!("worker/training.py"),
    include_str!("worker/parallel.py"),
    include_str!("../worker/python/kernels.py"),
    include_str!("../worker/python/serve.py"),
    include_str!("worker/requests.py"),
);

/// The first GPU as PyTorch names it. Takes the seconds that PyTorch takes to start.
///
/// # Errors
/// [`Kind::Device`] with the reason why PyTorch cannot use one.
pub fn gpu() -> Result<String> {
    let patience = Patience { start: Duration::from_secs(60), ..Patience::USUAL };
    Ok(TorchEngine::open_with(interpreter::interpreter(), "cuda:0", patience)?.device.name)
}

#[derive(Debug)]
pub struct TorchEngine {
    device: DeviceName,
    opened: TorchReport,
    connection: Rc<RefCell<Connection>>,
}

/// What PyTorch reports about itself and its device.
#[derive(Clone, Debug, Deserialize)]
struct TorchReport {
    torch: String,
    device: String,
    device_name: Option<String>,
    /// The compute capability of a GPU: major, minor.
    capability: Option<(u32, u32)>,
    #[serde(default)]
    multiprocessors: Option<u32>,
    pci_bus_id: Option<String>,
    #[serde(default)]
    gpus: usize,
    /// Whether this PyTorch was built with `torch.distributed`.
    #[serde(default)]
    distributed: bool,
}

impl TorchEngine {
    /// Starts PyTorch on `device`: `cpu`, `cuda:0`, or `auto` for a GPU where PyTorch sees one.
    ///
    /// # Errors
    /// [`Kind::Device`] where there is no Python, no PyTorch in it, or no such device.
    pub fn open(device: &str) -> Result<Self> {
        Self::open_with(interpreter::interpreter(), device, Patience::USUAL)
    }

    fn open_with(interpreter: PathBuf, device: &str, patience: Patience) -> Result<Self> {
        let remedy = format!(
            "`python3 -m venv ~/batchstep-env && . ~/batchstep-env/bin/activate && pip install torch` (https://pytorch.org has the variants), or name a \
             Python that has it in {}",
            interpreter::VARIABLE
        );
        let (name, environment) = ("PyTorch".to_owned(), Vec::new());
        let place = ProgramHost::Python(interpreter);
        let program = Program { name, place, text: TEXT, environment, remedy, is_heard: false };
        let worker = Worker::new(program, message::open(device), patience);
        let mut connection = Connection { worker, opened_on: String::new(), others: Vec::new(), grouped: 0 };
        let opened = connection.connect().map_err(|error| match error.kind() {
            Kind::Device => error,
            _ => Error::device(error.to_string()).at("starting PyTorch"),
        })?;
        let device = match &opened.device_name {
            Some(name) => {
                DeviceName { id: opened.device.clone(), name: name.clone(), multiprocessors: opened.multiprocessors }
            }
            None => processor::device_name(),
        };
        Ok(Self { device, opened, connection: Rc::new(RefCell::new(connection)) })
    }
}

impl Engine for TorchEngine {
    fn device(&self) -> &DeviceName {
        &self.device
    }

    fn pci_bus_id(&self) -> Option<&str> {
        self.opened.pci_bus_id.as_deref()
    }

    fn version(&self) -> Option<String> {
        Some(format!("PyTorch {}", self.opened.torch))
    }

    fn profiles(&self) -> bool {
        true
    }

    /// `tf32` becomes `fp32` where the device lacks it: on a CPU, and on GPUs before compute capability 8.0.
    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        let TorchReport { gpus, distributed, .. } = self.opened;
        let (on_gpu, processes) = (self.opened.capability.is_some(), asked.processes);
        let what = "PyTorch does not let the algorithm of a layer be chosen";
        refuse(asked.algorithms == Algorithms::Fixed, what, "use `heuristic` or `autotune`")?;
        let hint = "leave `threads` out to use all cores";
        refuse(asked.threads == Some(0), "a step cannot run on 0 threads", hint)?;
        let needs_gpu = |is_asked: bool, setting: &str, hint| {
            let what = format!("`{setting}` needs a GPU, and PyTorch runs on the CPU here");
            refuse(is_asked && !on_gpu, what, hint)
        };
        needs_gpu(asked.algorithms == Algorithms::Autotune, "algorithms = \"autotune\"", "use `heuristic`")?;
        needs_gpu(asked.launch == Launch::Graph, "launch = \"graph\"", "use `eager`")?;
        needs_gpu(asked.data == DataPath::Pinned, "data = \"pinned\"", "use `resident` or `pageable`")?;
        needs_gpu(asked.data == DataPath::Prefetch, "data = \"prefetch\"", "use `resident` or `pageable`")?;
        needs_gpu(asked.precision == Precision::Fp16, "precision = \"fp16\"", "use `fp32` or `bf16`")?;
        let what = "this PyTorch was built without torch.distributed";
        refuse(processes != 1 && !distributed, what, "use `processes = 1`")?;
        let what = format!("`processes = {processes}` needs as many GPUs, and PyTorch sees {gpus}");
        let is_short = processes != 1 && on_gpu && processes > gpus;
        refuse(is_short, what, "use fewer processes, or `--device cpu`")?;
        let several = |is_asked: bool, what: &str, hint| {
            let what = format!("several processes and {what} do not go together here");
            refuse(is_asked && processes != 1, what, hint)
        };
        several(asked.launch == Launch::Graph, "`launch = \"graph\"`", "use `eager`")?;
        several(asked.examples == Examples::Peaks, "`examples = \"peaks\"`", "use `processes = 1`")?;
        several(asked.compile != Compile::None, "a compiled network", "use `compile = \"none\"`")?;
        let has_tf32 = self.opened.capability.is_some_and(|capability| capability >= (8, 0));
        let precision = match asked.precision {
            Precision::Tf32 if !has_tf32 => Precision::Fp32,
            other => other,
        };
        Ok(Settings { precision, ..asked.of(EngineName::Torch) })
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        let settings = self.in_force(&workload.settings)?;
        let workload = Workload { settings, ..workload.clone() };
        check_shapes(&workload)?;
        let on_gpu = self.opened.capability.is_some();
        let split = Split::of(&workload)?;
        let whole = split.whole(&workload);
        if !on_gpu {
            // The system would promise memory that it does not have, and kill the process when the memory is used.
            memory::check_step(&whole, 4, 0)?;
        }
        if split.processes > 1 {
            let id = self.connection.borrow_mut().prepare_split(&workload, split, on_gpu)?;
            let (connection, layers) = (Rc::clone(&self.connection), work::layers(&whole));
            return Ok(Box::new(ParallelStep { id, processes: split.processes, connection, layers }));
        }
        let (id, setup) = self.connection.borrow_mut().prepare(|id| message::prepare(id, &workload))?;
        let connection = Rc::clone(&self.connection);
        let layers = work::layers(&workload);
        Ok(Box::new(TorchStep { id, setup, connection, layers, workload, on_gpu_s: None }))
    }

    fn feeds_itself(&self) -> bool {
        true
    }

    fn train_alone(&mut self, workload: &Workload, feed: &Feed) -> Result<Box<dyn EpochTrainer>> {
        let settings = self.in_force(&workload.settings)?;
        let workload = Workload { settings, ..workload.clone() };
        train::check(&workload)?;
        let what = "a training of whole epochs runs in one process here";
        refuse(workload.settings.processes > 1, what, "use `processes = 1`, or a sweep, which times steps")?;
        let what = "PyTorch's training loop here does not capture its steps";
        refuse(workload.settings.launch == Launch::Graph, what, "use `launch = \"eager\"`")?;
        if self.opened.capability.is_none() {
            memory::check_step(&workload, 4, 0)?;
        }
        let (id, _) = self.connection.borrow_mut().prepare(|id| message::train(id, &workload, feed))?;
        Ok(Box::new(TorchTraining { id, connection: Rc::clone(&self.connection) }))
    }
}

/// The process, which is restarted after it was lost, and the further processes of a group.
#[derive(Debug)]
struct Connection {
    worker: Worker,
    /// The name of the device that the first process opened.
    opened_on: String,
    /// The further processes of data parallel training, by rank.
    others: Vec<Process>,
    /// The number of processes in the current group; 0: there is none.
    grouped: usize,
}

impl Connection {
    fn connect(&mut self) -> Result<TorchReport> {
        let answer = self.worker.connect()?;
        let opened: TorchReport = worker::read(answer, "PyTorch did not open")?;
        self.opened_on.clone_from(&opened.device);
        Ok(opened)
    }

    /// Ends all processes.
    fn end(&mut self) {
        self.worker.process = None;
        self.end_others();
    }

    fn end_others(&mut self) {
        self.others.clear();
        self.grouped = 0;
    }

    /// The number of a step, and how the time of preparing it was spent.
    fn prepare(&mut self, request: impl FnOnce(u64) -> serde_json::Value) -> Result<(u64, SetupTimes)> {
        let prepared = self.worker.prepare(request);
        let (id, answer) = self.heeding(prepared)?;
        let seconds = |name: &str| answer.get(name).and_then(serde_json::Value::as_f64);
        let setup = SetupTimes { compile_s: seconds("compile_s"), search_s: None, capture_s: seconds("capture_s") };
        Ok((id, setup))
    }

    fn ask(&mut self, request: &serde_json::Value, patience: Duration) -> Result<serde_json::Value> {
        let answer = self.worker.ask(request, patience);
        self.heeding(answer)
    }

    /// A group is lost with its first process.
    fn heeding<T>(&mut self, answer: Result<T>) -> Result<T> {
        if self.worker.process.is_none() {
            self.end_others();
        }
        answer
    }
}
