//! One round of a visit: a short measurement of every stage by itself, of the two sides, and of all together.

use std::sync::Arc;

use super::files::Files;
use super::sides;
use super::stages::{self, Done, Loaded, Ready, While};
use super::together::{Fed, together};
use crate::data::Examples;
use crate::data::loader::{Loader, Options};
use crate::engine::train::Trainer;
use crate::error::Result;

/// How long the loader runs by itself, and how long the two sides run at once, as a share of the time of all together.
const SIDES: f64 = 0.5;

/// All that a visit measures with.
pub struct Stages {
    pub files: Files,
    /// The share of the files' pages in the page cache before the visit.
    pub resident: f64,
    pub loaded: Loaded,
    pub examples: Arc<Examples>,
    pub options: Options,
    /// Batches for the training without the loader.
    pub batches: Vec<Ready>,
    pub trainer: Box<dyn Trainer>,
    /// The threads of a stage that workers do.
    pub threads: usize,
    pub cores: usize,
    pub engine_threads: usize,
}

/// What a visit has found so far.
#[derive(Debug, Default)]
pub struct VisitResults {
    /// Each stage and each side with its name, in the order in which they are measured.
    pub alone: Vec<(&'static str, Done)>,
    pub fed: Option<Fed>,
}

impl VisitResults {
    fn add(&mut self, name: &'static str, done: Done) {
        match self.alone.iter_mut().find(|(known, before)| *known == name && before.threads == done.threads) {
            Some((_, before)) => *before = before.and(done),
            None => self.alone.push((name, done)),
        }
    }
}

impl Stages {
    /// Measures every stage for `stage_s`, all together for `together_s`.
    pub fn round(&mut self, found: &mut VisitResults, stage_s: f64, together_s: f64) -> Result<()> {
        self.stages(found, stage_s)?;
        let training = While { threads: self.engine_threads, seconds: 2.0 * stage_s };
        let consumed = stages::step(self.trainer.as_mut(), &self.batches, training)?;
        found.add("copy", consumed.copy);
        found.add("step", consumed.step);
        let options = self.options;
        let mut loader = Loader::new(Arc::clone(&self.examples), options)?;
        found.add("loader", sides::loader(&mut loader, options, SIDES * together_s)?);
        let fed = together(&mut loader, self.trainer.as_mut(), options, together_s)?;
        found.fed = Some(match found.fed.take() {
            Some(before) => before.and(fed),
            None => fed,
        });
        let during = While { seconds: SIDES * together_s, ..training };
        let both = sides::beside(&mut loader, self.trainer.as_mut(), &self.batches, options, during)?;
        found.add("loader_beside", both.loader);
        found.add("step_beside", both.training);
        // Where the training is the bottleneck, few of the workers work at a time.
        if options.workers > 1 {
            let half = Options { workers: options.workers.div_ceil(2), ..options };
            let mut loader = Loader::new(Arc::clone(&self.examples), half)?;
            let both = sides::beside(&mut loader, self.trainer.as_mut(), &self.batches, half, during)?;
            found.add("loader_half", both.loader);
            found.add("step_half", both.training);
        }
        Ok(())
    }

    /// Measures the stages of the workers with one thread, for the demands of the model, then with all threads, for the ceilings.
    fn stages(&self, found: &mut VisitResults, seconds: f64) -> Result<()> {
        let Self { files, loaded, options, threads, .. } = self;
        for threads in if *threads == 1 { vec![1] } else { vec![1, *threads] } {
            let during = While { threads, seconds };
            found.add("read", stages::read(files, during)?);
            found.add("decode", stages::decode(files, loaded, during)?);
            found.add("transform", stages::transform(files, loaded, options.batch_size, during)?);
            found.add("batch", stages::batch(*options, during)?);
        }
        Ok(())
    }
}
