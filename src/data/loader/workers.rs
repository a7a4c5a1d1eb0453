//! The threads that make batches ahead of time.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use super::{Batches, Loaded, Options};
use crate::data::Examples;
use crate::error::{Error, Result};

/// Running workers; they end when this is dropped.
#[derive(Debug)]
pub struct Workers {
    shared: Arc<LoaderQueue>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct LoaderQueue {
    state: Mutex<LoaderState>,
    /// Something to do for the workers: room for another batch, a new epoch, the end.
    room: Condvar,
    /// Something for the consumer.
    ready: Condvar,
    /// Batches that may be made and not yet handed out.
    capacity: usize,
    skip: bool,
}

#[derive(Debug, Default)]
struct LoaderState {
    batches: Arc<Batches>,
    /// Counts epochs, so that a batch of an epoch that was broken off is not taken for one of the next.
    epoch: u64,
    /// The next batch that no worker has begun.
    next: usize,
    /// Batches handed out.
    taken: usize,
    done: BTreeMap<usize, Result<Loaded>>,
    free: Vec<Loaded>,
    ends: bool,
}

impl LoaderQueue {
    fn lock(&self) -> MutexGuard<'_, LoaderState> {
        // No worker panics while it holds the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Workers {
    /// Starts `options.workers` threads.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the system does not give them.
    pub fn start(examples: &Arc<Examples>, options: Options) -> Result<Self> {
        let capacity = options.workers * options.prefetch.max(1);
        let batch = options.batch_size.min(examples.count());
        let free = (0..capacity).map(|_| Loaded::new(batch, examples.each())).collect();
        let shared = Arc::new(LoaderQueue {
            state: Mutex::new(LoaderState { free, ..LoaderState::default() }),
            room: Condvar::new(),
            ready: Condvar::new(),
            capacity,
            skip: options.skip,
        });
        let mut workers = Self { shared, threads: Vec::with_capacity(options.workers) };
        for number in 0..options.workers {
            let (shared, examples) = (Arc::clone(&workers.shared), Arc::clone(examples));
            let thread = thread::Builder::new().name(format!("loader-{number}"));
            let thread = thread.spawn(move || work(&shared, &examples));
            let refused =
                |error| Error::engine(format!("cannot start {} workers of the loader: {error}", options.workers));
            workers.threads.push(thread.map_err(refused)?);
        }
        Ok(workers)
    }

    /// Begins an epoch.
    pub fn begin(&self, batches: Arc<Batches>) {
        let mut state = self.shared.lock();
        let stale = std::mem::take(&mut state.done);
        state.free.extend(stale.into_values().filter_map(Result::ok));
        (state.batches, state.next, state.taken) = (batches, 0, 0);
        state.epoch += 1;
        self.shared.room.notify_all();
    }

    /// Takes batch `number` in exchange for memory that is not used any more.
    ///
    /// # Errors
    /// What its worker said.
    pub fn take(&self, number: usize, used: Loaded) -> Result<Loaded> {
        let mut state = self.shared.lock();
        state.free.push(used);
        loop {
            if let Some(batch) = state.done.remove(&number) {
                state.taken = number + 1;
                self.shared.room.notify_one();
                return batch;
            }
            state = self.shared.ready.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.shared.lock().ends = true;
        self.shared.room.notify_all();
        self.threads.drain(..).for_each(|thread| drop(thread.join()));
    }
}

fn work(shared: &LoaderQueue, examples: &Examples) {
    let mut state = shared.lock();
    loop {
        if state.ends {
            return;
        }
        let (number, epoch) = (state.next, state.epoch);
        if number == state.batches.count() || number >= state.taken + shared.capacity {
            state = shared.room.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        state.next += 1;
        let batches = Arc::clone(&state.batches);
        let mut batch = state.free.pop().unwrap_or_default();
        drop(state);
        let filled = batch.fill(examples, batches.get(number), shared.skip);
        state = shared.lock();
        match filled {
            _ if state.epoch != epoch => state.free.push(batch),
            Ok(()) => drop(state.done.insert(number, Ok(batch))),
            Err(error) => {
                state.free.push(batch);
                state.done.insert(number, Err(error));
            }
        }
        shared.ready.notify_one();
    }
}
