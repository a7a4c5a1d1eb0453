//! Which engines a run uses, on which device.

use std::collections::BTreeMap;

use super::Engine;
use super::automatic::{self, First, fastest};
use super::candle::CandleEngine;
use super::contact;
use super::cpu::CpuEngine;
pub use super::device_choice::DeviceChoice;
use super::fixed::FixedAlgorithms;
use super::reference::ReferenceEngine;
use super::synthetic::{SyntheticDevice, SyntheticEngine, Truth};
use super::torch::TorchEngine;
use crate::device::cuda::driver;
use crate::device::{self, Device};
use crate::error::{Error, Kind, Result};
use crate::os::cache::Cache;
use crate::settings::EngineName;

pub struct Engines {
    open: BTreeMap<EngineName, Box<dyn Engine>>,
    device: DeviceChoice,
    /// What `auto` means here.
    fastest: EngineName,
    /// The GPU that an opened engine drives, by its address on the bus.
    gpu: Option<String>,
    /// The device whose readings accompany the steps of a known truth.
    synthetic: Option<SyntheticDevice>,
    /// What the user should know about the choice.
    pub notices: Vec<String>,
    /// Why `auto` means the CPU although the user did not ask for the CPU.
    fallback: Option<String>,
}

/// A notice, given when steps of our own kernels are about to be timed.
const DEBUG_BUILD: &str = "this is a debug build: its steps on the CPU take several times as long as those of a release build, and may jump at \
other batch sizes; to measure, build with `cargo build --release`";

impl Engines {
    /// Opens every engine that `names` asks for.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] where an engine that was asked for by name can't run here.
    pub fn open(names: &[EngineName], device: DeviceChoice, truth: Option<&Truth>) -> Result<Self> {
        Self::open_available(names, &[], First::Cudnn, device, truth)
    }

    /// [`Engines::open`], where the engines in `optional` may be missing: each that cannot run here is left out with a
    /// notice. `first` says what `auto` takes on a GPU.
    ///
    /// # Errors
    /// As [`Engines::open`], for the other engines.
    pub fn open_available(
        names: &[EngineName],
        optional: &[EngineName],
        first: First,
        device: DeviceChoice,
        truth: Option<&Truth>,
    ) -> Result<Self> {
        let mut notices = Vec::new();
        let uses_gpu = |name: &EngineName| !matches!(name, EngineName::Cpu | EngineName::Synthetic);
        if device != DeviceChoice::Cpu
            && names.iter().any(uses_gpu)
            && let Some(died) = contact::died(device.ordinal()).filter(|died| died.in_driver())
        {
            return Err(died.error());
        }
        let fastest = fastest(device, names, first, &mut notices)?;
        let fell_back = device == DeviceChoice::Auto && fastest.is_none() && names.contains(&EngineName::Auto);
        let fallback = fell_back.then(|| "there is no NVIDIA GPU here".to_owned());
        let mut engines = Self { notices, fallback, ..Self::none(device, EngineName::Cpu) };
        if let Some((name, engine)) = fastest {
            engines.fastest = name;
            engines.add(name, engine);
        }
        for &name in names {
            match engines.open_one(name, names, truth) {
                Err(error) if error.kind() == Kind::Device && optional.contains(&name) => {
                    engines.notices.push(format!("the optional engine `{name}` is left out: {error}"));
                }
                opened => opened?,
            }
        }
        if cfg!(debug_assertions) && [EngineName::Cpu, EngineName::Candle].iter().any(|&name| engines.has(name)) {
            engines.notices.push(DEBUG_BUILD.to_owned());
        }
        Ok(engines)
    }

    /// The engine of a person's own steps, which chooses its device itself. See [`super::own::open`].
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where a device is asked for; what the engine answers.
    pub fn of_steps(device: DeviceChoice, engine: impl FnOnce() -> Result<Box<dyn Engine>>) -> Result<Self> {
        if device != DeviceChoice::Auto {
            return Err(Error::spec("a step of your own chooses its device itself")
                .at("--device")
                .hint("leave `--device` out; CUDA_VISIBLE_DEVICES says which GPUs the step sees"));
        }
        let mut engines = Self::none(device, EngineName::Python);
        engines.add(EngineName::Python, engine()?);
        Ok(engines)
    }

    fn none(device: DeviceChoice, fastest: EngineName) -> Self {
        let (open, notices) = (BTreeMap::new(), Vec::new());
        Self { open, device, fastest, gpu: None, synthetic: None, notices, fallback: None }
    }

    fn add(&mut self, name: EngineName, engine: Box<dyn Engine>) {
        self.gpu = self.gpu.take().or_else(|| engine.pci_bus_id().map(str::to_owned));
        self.open.insert(name, engine);
    }

    /// Notifies every engine that a block begins.
    pub fn begin_block(&mut self) {
        self.open.values_mut().for_each(|engine| engine.begin_block());
    }

    /// The engines' notices at the end of a run.
    pub fn last_words(&mut self) -> Vec<String> {
        self.open.values_mut().flat_map(|engine| engine.last_words()).collect()
    }

    fn open_one(&mut self, name: EngineName, names: &[EngineName], truth: Option<&Truth>) -> Result<()> {
        let name = self.resolve(name);
        if self.open.contains_key(&name) {
            return Ok(());
        }
        let opened: Box<dyn Engine> = match (name, truth) {
            (EngineName::Synthetic, Some(truth)) => {
                let engine = SyntheticEngine::new(truth.clone())?;
                self.synthetic = Some(engine.covariates());
                Box::new(engine)
            }
            (EngineName::Cpu, _) => Box::new(self.cpu()?),
            (EngineName::Cudnn, _) => self.cudnn()?,
            (EngineName::Candle, _) => Box::new(self.candle(names)?),
            (EngineName::Torch, _) => Box::new(self.torch(names)?),
            (other, _) => {
                return Err(Error::device(format!("the engine `{other}` is not part of this version of batchstep"))
                    .hint("use the engine `cpu`"));
            }
        };
        self.add(name, opened);
        Ok(())
    }

    /// Whether the engine that `name` means here was opened.
    pub fn has(&self, name: EngineName) -> bool {
        self.open.contains_key(&self.resolve(name))
    }

    fn cudnn(&self) -> Result<Box<dyn Engine>> {
        if self.device == DeviceChoice::Cpu {
            return Err(Error::device("the engine `cudnn` runs on a GPU, and the device asked for is the CPU")
                .hint("leave `--device cpu` out, or use the engine `cpu`"));
        }
        automatic::cudnn(self.device.ordinal())
    }

    fn cpu(&self) -> Result<CpuEngine> {
        match self.device {
            DeviceChoice::Cuda(index) => Err(Error::device("the engine `cpu` runs on the CPU")
                .at(format!("--device cuda:{index}"))
                .hint("use the engine `cudnn`, or `--device cpu`")),
            DeviceChoice::Cpu | DeviceChoice::Auto => {
                let thresholds = Cache::of_user("switches", &|name| std::env::var_os(name));
                Ok(CpuEngine::cpu(None).measuring(thresholds))
            }
        }
    }

    /// candle runs on the CPU; where the other engines of the run may take a GPU, a notice says so.
    fn candle(&mut self, names: &[EngineName]) -> Result<CandleEngine> {
        if let DeviceChoice::Cuda(index) = self.device {
            let error = Error::device("the engine `candle` runs only on the CPU").at(format!("--device cuda:{index}"));
            return Err(error.hint("use the engine `cudnn` or `torch`, or `--device cpu`"));
        }
        if self.device == DeviceChoice::Auto && !names.contains(&EngineName::Cpu) && driver::has_gpu()? {
            self.notices.push("the engine `candle` runs on the CPU".to_owned());
        }
        Ok(CandleEngine::cpu())
    }

    /// PyTorch runs on the same device as the other engines of the run: with the engine `cpu`, on the CPU.
    fn torch(&self, names: &[EngineName]) -> Result<TorchEngine> {
        let place = match self.device {
            DeviceChoice::Cuda(index) => format!("cuda:{index}"),
            DeviceChoice::Cpu => "cpu".to_owned(),
            DeviceChoice::Auto if names.contains(&EngineName::Cpu) => "cpu".to_owned(),
            DeviceChoice::Auto => {
                // PyTorch would silently use the CPU where the driver refuses.
                driver::has_gpu()?;
                "auto".to_owned()
            }
        };
        TorchEngine::open(&place)
    }

    /// One engine, for tests.
    #[cfg(test)]
    pub(crate) fn of(name: EngineName, engine: Box<dyn Engine>) -> Self {
        let device = if name == EngineName::Cudnn { DeviceChoice::Auto } else { DeviceChoice::Cpu };
        Self { open: BTreeMap::from([(name, engine)]), ..Self::none(device, name) }
    }

    /// The engine with which every other engine is compared.
    pub fn reference() -> Box<dyn Engine> {
        Box::new(ReferenceEngine::default())
    }

    /// The CPU engine, for workloads that are too large for [`Engines::reference`].
    pub fn cpu_reference() -> Box<dyn Engine> {
        Box::new(CpuEngine::cpu(None))
    }

    /// Closes an engine that the run does without.
    pub fn close(&mut self, name: EngineName) {
        self.open.remove(&name);
    }

    /// The engine that `name` means here: `auto` becomes the fastest that can run.
    pub fn resolve(&self, name: EngineName) -> EngineName {
        match name {
            EngineName::Auto => self.fastest,
            other => other,
        }
    }

    /// Why `auto` means the CPU here although the user did not ask for the CPU; `None` if `auto` does not, or the user did.
    pub fn fallback(&self) -> Option<&str> {
        self.fallback.as_deref()
    }

    /// As on a machine without a GPU, for tests.
    #[cfg(test)]
    pub(crate) fn fall_back(&mut self, why: &str) {
        self.fallback = Some(why.to_owned());
    }

    /// The opened engine of that name.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] where it was not among the names opened.
    pub fn get(&mut self, name: EngineName) -> Result<&mut dyn Engine> {
        let name = self.resolve(name);
        let others = self.open.iter_mut().filter(|(other, _)| **other != name);
        others.for_each(|(_, engine)| engine.give_back());
        match self.open.get_mut(&name) {
            Some(engine) => Ok(engine.as_mut()),
            None => Err(Error::device(format!("the engine `{name}` was not opened"))),
        }
    }

    /// The address on the bus of the GPU whose covariates are recorded with the steps; `None` for the processor.
    pub fn gpu(&self) -> Option<&str> {
        self.gpu.as_deref()
    }

    /// Names the algorithms that `algorithms = "fixed"` takes on the GPU.
    pub fn fix(&mut self, algorithms: &FixedAlgorithms) {
        self.open.values_mut().for_each(|engine| engine.fix(algorithms));
    }

    /// Opens that device; if only a known truth runs, it brings its own.
    pub fn open_device(&mut self) -> Box<dyn Device> {
        match self.synthetic.take() {
            Some(device) if self.open.len() == 1 => Box::new(device),
            _ => device::open(self.gpu()),
        }
    }

    /// The time of the smallest step of every opened engine that can run it; see [`Engine::smallest_step_s`].
    pub fn smallest_steps(&mut self) -> BTreeMap<EngineName, f64> {
        self.open.iter_mut().filter_map(|(name, engine)| Some((*name, engine.smallest_step_s().ok()?))).collect()
    }

    pub fn iter(&self) -> impl Iterator<Item = (EngineName, &dyn Engine)> {
        self.open.iter().map(|(name, engine)| (*name, engine.as_ref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_the_cpu_gets_it_without_a_word_whatever_the_driver() {
        let mut engines = Engines::open(&[EngineName::Auto], DeviceChoice::Cpu, None).unwrap();
        assert_eq!((engines.resolve(EngineName::Auto), engines.fallback()), (EngineName::Cpu, None));
        engines.notices.retain(|notice| notice != DEBUG_BUILD);
        assert!(engines.notices.is_empty(), "{:?}", engines.notices);
    }

    #[test]
    fn candle_on_a_gpu_is_refused_with_the_engines_that_run_there() {
        let error = Engines::none(DeviceChoice::Cuda(1), EngineName::Cpu).candle(&[]).err().unwrap();
        let text = error.to_string();
        assert!(error.kind() == Kind::Device && text.contains("cuda:1") && text.contains("cudnn"), "{text}");
    }
}
