//! Which engines a run uses, on which device.

use std::collections::BTreeMap;

use super::candle::CandleEngine;
use super::settings::EngineName;
use super::synthetic::{SyntheticDevice, SyntheticEngine, Truth};
use super::{Engine, cudnn};
use crate::device::selector::Selector;
use crate::device::{self, Device};
use crate::error::{Error, Result};

/// Where the step shall run, as the user says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU where an engine can drive one, else the CPU.
    Auto,
    Cpu,
    /// The GPU of that index.
    Cuda(usize),
}

impl DeviceChoice {
    /// Reads `auto`, `cpu`, `cuda`, `cuda:1`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] where it is none of them.
    pub fn parse(text: &str) -> Result<Self> {
        let index = |text: &str| text.parse().ok().map(Self::Cuda);
        let choice = match text {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda(0)),
            other => other.strip_prefix("cuda:").and_then(index),
        };
        choice
            .ok_or_else(|| Error::spec(format!("`{text}` is no device")).hint("one of: auto, cpu, cuda:0, cuda:1, ..."))
    }
}

const NOT_YET: &str = "the GPU engine `cudnn` is not part of this version of batchstep";

/// What keeps the GPU engine from running here; on a machine that has all it needs, that it is not there yet.
fn no_gpu_engine() -> Error {
    match cudnn::available() {
        Err(error) => error,
        Ok(_) => Error::device(NOT_YET).hint("use `--device cpu`, or the engine `candle`"),
    }
}

/// The engines of a run, opened.
pub struct Engines {
    open: BTreeMap<EngineName, Box<dyn Engine>>,
    device: DeviceChoice,
    /// What stands beside the steps of a known truth.
    synthetic: Option<SyntheticDevice>,
    /// What the user should know about the choice.
    pub notices: Vec<String>,
}

impl Engines {
    /// Opens every engine that `names` asks for.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] where an engine that was asked for by name can't run here.
    pub fn open(names: &[EngineName], device: DeviceChoice, truth: Option<&Truth>) -> Result<Self> {
        let mut engines = Self { open: BTreeMap::new(), device, synthetic: None, notices: Vec::new() };
        for &name in names {
            let name = engines.resolve(name);
            if engines.open.contains_key(&name) {
                continue;
            }
            let engine: Box<dyn Engine> = match (name, truth) {
                (EngineName::Synthetic, Some(truth)) => {
                    let engine = SyntheticEngine::new(truth.clone())?;
                    engines.synthetic = Some(engine.covariates());
                    Box::new(engine)
                }
                (EngineName::Candle, _) => Box::new(engines.candle()?),
                (EngineName::Cudnn, _) => return Err(no_gpu_engine()),
                (other, _) => {
                    return Err(Error::device(format!(
                        "the engine `{other}` is not part of this version of batchstep"
                    ))
                    .hint("use the engine `candle`"));
                }
            };
            engines.open.insert(name, engine);
        }
        Ok(engines)
    }

    fn candle(&mut self) -> Result<CandleEngine> {
        match self.device {
            DeviceChoice::Cuda(index) => Err(no_gpu_engine().at(format!("--device cuda:{index}"))),
            DeviceChoice::Cpu => Ok(CandleEngine::cpu(None)),
            DeviceChoice::Auto => {
                if let Ok(count) = cudnn::driver::devices() {
                    self.notices.push(format!("{count} GPU here, unused: {NOT_YET}; this runs on the CPU"));
                }
                Ok(CandleEngine::cpu(None))
            }
        }
    }

    /// What every other engine is measured against: the candle engine on the CPU, in double precision.
    pub fn reference() -> Box<dyn Engine> {
        Box::new(CandleEngine::cpu(None).in_double_precision())
    }

    /// The engine that `name` means here: `auto` becomes the fastest that can run.
    pub fn resolve(&self, name: EngineName) -> EngineName {
        match name {
            EngineName::Auto => EngineName::Candle,
            other => other,
        }
    }

    /// The opened engine of that name.
    ///
    /// # Errors
    /// [`crate::error::Kind::Device`] where it was not among the names opened.
    pub fn get(&mut self, name: EngineName) -> Result<&mut dyn Engine> {
        let name = self.resolve(name);
        match self.open.get_mut(&name) {
            Some(engine) => Ok(engine.as_mut()),
            None => Err(Error::device(format!("the engine `{name}` was not opened"))),
        }
    }

    /// The device whose covariates stand beside the steps.
    pub fn selector(&self) -> Selector {
        Selector::Cpu
    }

    /// Opens that device; a known truth alone brings its own.
    pub fn open_device(&mut self) -> Box<dyn Device> {
        match self.synthetic.take() {
            Some(device) if self.open.len() == 1 => Box::new(device),
            _ => device::open(&self.selector()),
        }
    }

    /// Every opened engine with its name.
    pub fn iter(&self) -> impl Iterator<Item = (EngineName, &dyn Engine)> {
        self.open.iter().map(|(name, engine)| (*name, engine.as_ref()))
    }
}
