//! The two sides of the pipeline, loader and training, each on its own data: the rate of the loader while the training rests, and the rates of
//! both while they run at the same time, or in turn if one thread does both. No batch passes between them, so neither waits for the other.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::scheduling::Clocks;
use super::stages::{self, Done, Ready, While};
use crate::data::loader::{Loaded, Loader, Options};
use crate::device::counters::thread_time;
use crate::engine::train::Trainer;
use crate::error::{Error, Result};

/// The work of the two sides while both ran.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beside {
    pub loader: Done,
    pub training: Done,
}

/// Takes the batches of a loader, one epoch after the other.
pub struct Drain<'a> {
    loader: &'a mut Loader,
    epoch: usize,
}

impl<'a> Drain<'a> {
    pub fn new(loader: &'a mut Loader) -> Self {
        loader.begin(0);
        Self { loader, epoch: 0 }
    }

    /// Goes on until no batch is left that was made ahead of time.
    fn settled(loader: &'a mut Loader, options: Options) -> Result<Self> {
        let mut drain = Self::new(loader);
        for _ in 0..made_ahead(options) {
            drain.take()?;
        }
        Ok(drain)
    }

    /// The images of the next batch, which is dropped.
    fn take(&mut self) -> Result<u64> {
        self.batch(|batch| batch.labels.len() as u64)
    }

    /// Lets `work` have the next batch.
    pub fn batch<T>(&mut self, work: impl FnOnce(&Loaded) -> T) -> Result<T> {
        for _ in 0..2 {
            if let Some(batch) = self.loader.next_batch()? {
                return Ok(work(batch));
            }
            self.epoch += 1;
            self.loader.begin(self.epoch);
        }
        Err(Error::data("the data set makes no batch"))
    }
}

/// The batches that a loader has at hand, or its workers in their hands, when its buffers have reached their level.
pub fn made_ahead(options: Options) -> usize {
    options.workers.max(1) * (options.prefetch + 1)
}

/// Runs the loader by itself, for `seconds` or a little longer: whole rounds of its workers, since workers that began together also finish together.
pub fn loader(loader: &mut Loader, options: Options, seconds: f64) -> Result<Done> {
    let round = options.workers.max(1);
    let mut drain = Drain::settled(loader, options)?;
    stages::counted(While { threads: round, seconds }, || (0..round).map(|_| drain.take()).sum())
}

/// Runs loader and training at the same time, for `during.seconds`; the training's batches are ready.
pub fn beside(
    loader: &mut Loader,
    trainer: &mut dyn Trainer,
    batches: &[Ready],
    options: Options,
    during: While,
) -> Result<Beside> {
    if options.workers == 0 {
        return in_turn(Drain::settled(loader, options)?, trainer, batches, during);
    }
    let (begun, ended) = (Barrier::new(2), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let drained = scope.spawn(|| {
            let settled = Drain::settled(loader, options);
            begun.wait();
            let mut drain = settled?;
            let start = Instant::now();
            let mut done = Done { threads: options.workers, ..Done::default() };
            loop {
                let images = drain.take()?;
                // What comes after the training has ended was made without it.
                if ended.load(Ordering::Relaxed) && done.images > 0 {
                    return Ok::<Done, Error>(done);
                }
                done.images += images;
                done.elapsed_s = start.elapsed().as_secs_f64();
            }
        });
        begun.wait();
        let clocks = Clocks::now();
        let training = stages::step(trainer, batches, during);
        let spent = Clocks::now().since(clocks);
        ended.store(true, Ordering::Relaxed);
        let drained = drained.join().map_err(|_| Error::data("the thread that takes the batches died"))?;
        let (mut drained, training) = (drained?, training?.whole());
        // Scaled to the time of the counted batches: the first step does not count for the training either.
        let loader_s = (spent.own_s - spent.training_s).max(0.0);
        drained.cpu_s = loader_s * drained.elapsed_s / training.elapsed_s.max(f64::MIN_POSITIVE);
        Ok(Beside { loader: drained, training })
    })
}

/// Runs both on one thread, a batch of each in turn: each side finds in the caches what the other side left of its data.
fn in_turn(mut drain: Drain, trainer: &mut dyn Trainer, batches: &[Ready], during: While) -> Result<Beside> {
    let mut in_turn = batches.iter().cycle();
    let mut next = || in_turn.next().ok_or_else(|| Error::data("no batch is ready"));
    // The first step does not count.
    trainer.step(next()?.batch())?;
    let (clocks, start) = (Clocks::now(), Instant::now());
    let mut loader = Done { threads: 1, ..Done::default() };
    let mut training = Done { threads: during.threads, ..Done::default() };
    while training.images == 0 || start.elapsed().as_secs_f64() < during.seconds {
        let (asked, cpu) = (Instant::now(), thread_time());
        loader.images += drain.take()?;
        loader.elapsed_s += asked.elapsed().as_secs_f64();
        loader.cpu_s += thread_time() - cpu;
        let (batch, begun) = (next()?, Instant::now());
        trainer.step(batch.batch())?;
        training.elapsed_s += begun.elapsed().as_secs_f64();
        training.images += batch.labels.len() as u64;
    }
    training.cpu_s = (Clocks::now().since(clocks).own_s - loader.cpu_s).max(0.0);
    Ok(Beside { loader, training })
}
