//! The CPU engine, posing as one that makes mistakes, or whose library refuses an algorithm in the middle of a run, for
//! tests.

use super::cpu::CpuEngine;
use super::train::Trainer;
use super::{DeviceName, Engine, Settings, Step, Workload};
use crate::error::{Error, Kind, Result};

/// The CPU engine, except that `prepare` prepares its steps.
pub fn preparing(prepare: impl FnMut(&mut CpuEngine, &Workload) -> Result<Box<dyn Step>>) -> impl Engine {
    Preparing(CpuEngine::cpu(None), prepare)
}

struct Preparing<P>(CpuEngine, P);

impl<P: FnMut(&mut CpuEngine, &Workload) -> Result<Box<dyn Step>>> Engine for Preparing<P> {
    fn device(&self) -> &DeviceName {
        self.0.device()
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        self.0.in_force(asked)
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        (self.1)(&mut self.0, workload)
    }
}

/// Refuses an algorithm when a step of `batch_size` examples is first prepared; another algorithm replaces it.
pub struct Refusing {
    engine: CpuEngine,
    batch_size: usize,
    /// Whether that first step then does not fit in memory.
    is_full: bool,
    has_refused: bool,
}

impl Refusing {
    pub const SAID: &str = "eng7 was refused when it was executed: NOT_SUPPORTED";

    pub fn at(batch_size: usize) -> Self {
        Self { engine: CpuEngine::cpu(Some(1)), batch_size, is_full: false, has_refused: false }
    }

    pub fn with_full_memory(self) -> Self {
        Self { is_full: true, ..self }
    }

    fn meet(&mut self, workload: &Workload) -> Result<()> {
        let is_first = workload.batch_size == self.batch_size && !self.has_refused;
        self.has_refused |= is_first;
        match is_first && self.is_full {
            true => Err(Error::new(Kind::OutOfMemory, "another algorithm needs more memory than there is")),
            false => Ok(()),
        }
    }
}

impl Engine for Refusing {
    fn device(&self) -> &DeviceName {
        self.engine.device()
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        self.engine.in_force(asked)
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        self.meet(workload)?;
        self.engine.prepare(workload)
    }

    fn refusals(&self) -> Vec<String> {
        if self.has_refused { vec![Self::SAID.to_owned()] } else { Vec::new() }
    }

    fn train(&mut self, workload: &Workload) -> Result<Box<dyn Trainer>> {
        self.meet(workload)?;
        self.engine.train(workload)
    }

    fn trains(&self) -> bool {
        true
    }
}
