//! Which examples are in which batch.

use std::ops::Range;

use crate::random::{Purpose, Rng, Stream};

/// How the order of the examples is cut into batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    pub batch_size: usize,
    /// Leaves out what is too little for a whole batch.
    pub drop_last: bool,
}

/// The batches of one epoch, each a list of examples.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batches {
    order: Vec<u32>,
    batch_size: usize,
}

impl Batches {
    /// The examples 0 to `count` - 1, in the order of the seed and the epoch, or ascending without a seed.
    ///
    /// ```
    /// use batchstep::data::loader::{Batches, Batching};
    /// let batches = Batches::new(5, None, 0, Batching { batch_size: 2, drop_last: false });
    /// assert_eq!((0..batches.count()).map(|n| batches.get(n).to_vec()).collect::<Vec<_>>(), [vec![0, 1], vec![2, 3], vec![4]]);
    /// ```
    pub fn new(count: usize, seed: Option<u64>, epoch: usize, cut: Batching) -> Self {
        let mut order: Vec<u32> = (0..count as u32).collect();
        if let Some(seed) = seed {
            Rng::new(Stream::new(seed, Purpose::Order, [epoch as u64, 0]).key()).shuffle(&mut order);
        }
        if cut.drop_last {
            order.truncate(count / cut.batch_size * cut.batch_size);
        }
        Self { order, batch_size: cut.batch_size }
    }

    pub fn count(&self) -> usize {
        self.order.len().div_ceil(self.batch_size.max(1))
    }

    /// The examples of batch `number`.
    ///
    /// # Panics
    /// If there is no such batch.
    pub fn get(&self, number: usize) -> &[u32] {
        &self.order[self.range(number)]
    }

    fn range(&self, number: usize) -> Range<usize> {
        let start = number * self.batch_size;
        start..(start + self.batch_size).min(self.order.len())
    }
}
