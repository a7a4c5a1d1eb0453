//! Thread pools, one for each number of threads ever asked for.
//!
//! If a pool uses every processor, each of its threads is bound to one. A step wakes them several times a millisecond,
//! and Linux may put two threads on one processor until it balances the load milliseconds later. In a virtual machine
//! with two processors, a third of the visits took 1.5 to 1.9 times as long because of that.

use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::processor;
use crate::error::{Error, Result};

/// The pools of an engine.
#[derive(Debug, Default)]
pub struct Pools(Vec<Arc<ThreadPool>>);

impl Pools {
    /// The pool of `threads` threads; `None`: one for each core that the process may use.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the system does not give the threads.
    pub fn of(&mut self, threads: Option<usize>) -> Result<Arc<ThreadPool>> {
        let threads = threads.unwrap_or_else(processor::cores);
        if let Some(pool) = self.0.iter().find(|pool| pool.current_num_threads() == threads) {
            return Ok(pool.clone());
        }
        let processors = allowed_processors();
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("step-{number}"))
            .start_handler(move |number| {
                if processors.len() == threads {
                    keep_on(processors[number]);
                }
            })
            .build()
            .map_err(|error| Error::engine(format!("cannot start {threads} threads: {error}")))?;
        self.0.push(Arc::new(pool));
        Ok(self.0[self.0.len() - 1].clone())
    }
}

/// The logical processors that this process may use.
pub fn allowed_processors() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|processor| allowed.is_set(*processor)).collect()
}

/// Binds this thread to a processor. If the system refuses, it may run on any, as before.
pub fn keep_on(processor: usize) {
    keep_within(&[processor]);
}

/// Binds this thread, and the threads and processes that it starts later, to some processors. Whether the system allows that.
pub fn keep_within(processors: &[usize]) -> bool {
    let mut only = CpuSet::new();
    processors.iter().filter(|processor| **processor < CpuSet::MAX_CPU).for_each(|processor| only.set(*processor));
    sched_setaffinity(None, &only).is_ok()
}
