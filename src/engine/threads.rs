//! Thread pools, one for each number of threads ever asked for.

use std::sync::Arc;

use rayon::{ThreadPool, ThreadPoolBuilder};

use super::processor;
use crate::error::{Error, Result};

/// The pools of an engine.
#[derive(Debug, Default)]
pub struct Pools(Vec<Arc<ThreadPool>>);

impl Pools {
    /// The pool of so many threads; `None`: of all cores that the process may use.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the system does not give the threads.
    pub fn of(&mut self, threads: Option<usize>) -> Result<Arc<ThreadPool>> {
        let threads = threads.unwrap_or_else(processor::cores);
        if let Some(pool) = self.0.iter().find(|pool| pool.current_num_threads() == threads) {
            return Ok(pool.clone());
        }
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|number| format!("step-{number}"))
            .build()
            .map_err(|error| Error::engine(format!("cannot start {threads} threads: {error}")))?;
        self.0.push(Arc::new(pool));
        Ok(self.0[self.0.len() - 1].clone())
    }

    /// The number of pools started.
    #[cfg(test)]
    pub fn count(&self) -> usize {
        self.0.len()
    }
}
