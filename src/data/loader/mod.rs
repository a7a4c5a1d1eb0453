//! The loader: makes the examples of a data set into batches, on several threads (workers) while the network trains, or on none.
//!
//! The seed and the epoch determine the order of the examples, and each batch is a fixed piece of it, so the batches are the
//! same, in the same order, for any number of workers. Without workers a batch is made when it is asked for, as in
//! PyTorch's DataLoader. Each worker keeps up to `prefetch` batches ready. All memory exists before the first batch.

#[cfg(test)]
mod tests;
mod workers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::data::Examples;
use crate::error::{Error, Result};
use crate::random::{Purpose, Rng, Stream};
use workers::Workers;

/// How batches are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    pub batch_size: usize,
    /// Threads that make batches; 0: the one that asks.
    pub workers: usize,
    /// Batches that each worker keeps ready, at least 1.
    pub prefetch: usize,
    pub shuffle: bool,
    pub drop_last: bool,
    pub seed: u64,
    /// Whether an example that cannot be read is left out, or ends the epoch.
    pub skip: bool,
}

/// The batches of one epoch, each a list of examples.
#[derive(Debug, Default)]
struct Batches {
    order: Vec<u32>,
    batch_size: usize,
}

impl Batches {
    /// The examples 0 to `count` - 1, in the order of the seed and the epoch, or ascending.
    fn new(count: usize, epoch: usize, options: &Options) -> Self {
        let &Options { batch_size, shuffle, drop_last, seed, .. } = options;
        let mut order: Vec<u32> = (0..count as u32).collect();
        if shuffle {
            Rng::new(Stream::new(seed, Purpose::Order, [epoch as u64, 0]).key()).shuffle(&mut order);
        }
        if drop_last {
            order.truncate(count / batch_size * batch_size);
        }
        Self { order, batch_size }
    }

    fn count(&self) -> usize {
        self.order.len().div_ceil(self.batch_size.max(1))
    }

    /// The examples of batch `number`.
    fn get(&self, number: usize) -> &[u32] {
        let start = number * self.batch_size;
        &self.order[start..(start + self.batch_size).min(self.order.len())]
    }
}

/// A batch, ready for the network.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// N x C x H x W, normalised.
    pub inputs: Vec<f32>,
    pub labels: Vec<u32>,
    /// Why examples were left out, each with the name of its file.
    pub skipped: Vec<String>,
    /// Bytes of one example, before they are normalised.
    scratch: Vec<u8>,
}

impl Loaded {
    /// Memory for batches of `examples` examples, written once.
    fn new(examples: usize, each: usize) -> Self {
        let mut batch = Self::default();
        batch.inputs.resize(examples * each, f32::NAN);
        batch.labels.resize(examples, u32::MAX);
        batch.scratch.resize(each, u8::MAX);
        batch
    }

    /// Reads the examples `indices` into this memory.
    fn fill(&mut self, examples: &Examples, indices: &[u32], skip: bool) -> Result<()> {
        let each = examples.each();
        self.skipped.clear();
        self.labels.clear();
        self.inputs.resize(indices.len() * each, 0.0);
        for &index in indices {
            let place = self.labels.len() * each;
            match read(examples, index as usize, &mut self.scratch, &mut self.inputs[place..][..each]) {
                Ok(label) => self.labels.push(label),
                // Without the remedy: it is to leave the example out.
                Err(error) if skip => self.skipped.push(error.clause()),
                Err(error) => return Err(error),
            }
        }
        self.inputs.truncate(self.labels.len() * each);
        Ok(())
    }
}

/// A reader that panics over a file is an error like any other, which names the file.
fn read(examples: &Examples, index: usize, scratch: &mut Vec<u8>, to: &mut [f32]) -> Result<u32> {
    let read = catch_unwind(AssertUnwindSafe(|| examples.read(index, scratch, to)));
    read.unwrap_or_else(|_| Err(Error::data("a worker of the loader died over this example").at(examples.name(index))))
}

/// Batches of one data set, epoch by epoch.
#[derive(Debug)]
pub struct Loader {
    examples: Arc<Examples>,
    options: Options,
    batches: Arc<Batches>,
    /// The number of the next batch.
    next: usize,
    workers: Option<Workers>,
    /// The batch handed out last.
    held: Loaded,
}

impl Loader {
    /// Starts the workers.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the system does not give the threads.
    pub fn new(examples: Arc<Examples>, options: Options) -> Result<Self> {
        let held = Loaded::new(options.batch_size.min(examples.count()), examples.each());
        let workers = match options.workers {
            0 => None,
            _ => Some(Workers::start(&examples, options)?),
        };
        let batches = Arc::new(Batches::default());
        Ok(Self { examples, options, batches, next: 0, workers, held })
    }

    /// Begins an epoch; the rest of the previous epoch is dropped.
    pub fn begin(&mut self, epoch: usize) {
        self.batches = Arc::new(Batches::new(self.examples.count(), epoch, &self.options));
        self.next = 0;
        if let Some(workers) = &self.workers {
            workers.begin(Arc::clone(&self.batches));
        }
    }

    /// The number of batches of the epoch.
    pub fn batch_count(&self) -> usize {
        self.batches.count()
    }

    /// The next batch; `None` after the last one. It waits where no worker has it ready yet.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] or [`crate::error::Kind::Io`], with the name of the file that cannot be read.
    pub fn next_batch(&mut self) -> Result<Option<&Loaded>> {
        if self.next == self.batches.count() {
            return Ok(None);
        }
        let number = self.next;
        self.next += 1;
        match &self.workers {
            None => self.held.fill(&self.examples, self.batches.get(number), self.options.skip)?,
            Some(workers) => self.held = workers.take(number, std::mem::take(&mut self.held))?,
        }
        Ok(Some(&self.held))
    }
}
