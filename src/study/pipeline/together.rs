//! All stages together: the loader feeds the training, in the steady state.

use std::collections::BTreeSet;
use std::time::Instant;

use super::scheduling::Clocks;
use super::sides::{Drain, made_ahead};
use super::storage_bytes;
use crate::data::loader::{Loader, Options};
use crate::engine::train::{Batch, Trainer};
use crate::error::Result;

/// A window has at least this many batches of each worker.
const ROUNDS: usize = 4;

/// What came out of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fed {
    pub images: u64,
    pub batches: usize,
    pub elapsed_s: f64,
    pub clocks: Clocks,
    /// The time in which the training had no batch.
    pub wait_s: f64,
    pub storage_bytes: Option<u64>,
    /// Why images were left out, warm-up included: a line for each, with the name of its file.
    pub skipped: BTreeSet<String>,
}

impl Fed {
    /// Both together: what another window added.
    pub fn and(mut self, more: Self) -> Self {
        self.skipped.extend(more.skipped);
        Self {
            images: self.images + more.images,
            batches: self.batches + more.batches,
            elapsed_s: self.elapsed_s + more.elapsed_s,
            clocks: self.clocks.and(more.clocks),
            wait_s: self.wait_s + more.wait_s,
            storage_bytes: self.storage_bytes.zip(more.storage_bytes).map(|(a, b)| a + b),
            skipped: self.skipped,
        }
    }
}

/// Trains for `seconds` or a little longer. The loader's buffers have reached their level when the window begins, and it begins and ends
/// after a batch of the same worker, since workers that began together also finish together.
pub fn together(loader: &mut Loader, trainer: &mut dyn Trainer, options: Options, seconds: f64) -> Result<Fed> {
    let round = options.workers.max(1);
    let mut skipped = BTreeSet::new();
    let mut drain = Drain::new(loader);
    let mut turn = |fed: &mut Fed| -> Result<()> {
        let asked = Instant::now();
        drain.batch(|batch| {
            fed.wait_s += asked.elapsed().as_secs_f64();
            // Each epoch skips the same file again.
            skipped.extend(batch.skipped.iter().map(|why| why.lines().next().unwrap_or_default().to_owned()));
            // All its images may be among those left out.
            if !batch.labels.is_empty() {
                trainer.step(Batch { inputs: &batch.inputs, labels: &batch.labels })?;
                fed.images += batch.labels.len() as u64;
                fed.batches += 1;
            }
            Ok(())
        })?
    };
    let mut before = Fed::default();
    while before.batches < made_ahead(options) {
        turn(&mut before)?;
    }
    let mut fed = Fed::default();
    let (stored, clocks, start) = (storage_bytes(), Clocks::now(), Instant::now());
    while fed.batches < ROUNDS * round || !fed.batches.is_multiple_of(round) || start.elapsed().as_secs_f64() < seconds
    {
        turn(&mut fed)?;
    }
    fed.elapsed_s = start.elapsed().as_secs_f64();
    fed.clocks = Clocks::now().since(clocks);
    fed.storage_bytes = storage_bytes().zip(stored).map(|(after, before)| after.saturating_sub(before));
    fed.skipped = skipped;
    Ok(fed)
}
