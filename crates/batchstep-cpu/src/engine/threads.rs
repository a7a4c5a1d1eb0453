//! Thread pools, one for each number of threads ever asked for.
//!
//! If a pool uses every processor, each of its threads is bound to one. A step wakes them several times a millisecond,
//! and Linux may put two threads on one processor until it balances the load milliseconds later. In a virtual machine
//! with two processors, a third of the visits took 1.5 to 1.9 times as long because of that.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use super::processor;
use crate::error::{Error, Result};

/// The set of `threads` threads, which `start` starts where no set of as many is known; `None`: one for each core that the
/// process may use.
///
/// # Errors
/// Those of `start`.
pub fn of<P: Clone>(
    known: &mut BTreeMap<usize, P>,
    threads: Option<usize>,
    start: impl FnOnce(usize) -> Result<P>,
) -> Result<P> {
    let threads = threads.unwrap_or_else(processor::cores);
    Ok(match known.entry(threads) {
        Entry::Occupied(set) => set.get().clone(),
        Entry::Vacant(place) => place.insert(start(threads)?).clone(),
    })
}

/// A pool of `threads` threads.
///
/// # Errors
/// [`crate::error::Kind::Engine`] where the system does not give the threads.
pub fn pool(threads: usize) -> Result<Arc<ThreadPool>> {
    let processors = allowed_processors();
    let pool = ThreadPoolBuilder::new()
        .num_threads(threads)
        .thread_name(|number| format!("step-{number}"))
        .start_handler(move |number| {
            if processors.len() == threads {
                keep_on(processors[number]);
            }
        })
        .build();
    pool.map(Arc::new).map_err(|error| Error::engine(format!("cannot start {threads} threads: {error}")))
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
