//! How long each layer takes in each direction.

use std::cell::RefCell;
use std::time::Instant;

use crate::network::Direction;

/// The times of a network's layers in one step, in seconds on the host's clock; a rectifier that the layer before
/// applies while writing its output counts with that layer.
#[derive(Debug)]
pub struct Watch(RefCell<Vec<[Option<f64>; Direction::ALL.len()]>>);

impl Watch {
    /// For a network of `layers` layers.
    pub fn new(layers: usize) -> Self {
        Self(RefCell::new(vec![[None; Direction::ALL.len()]; layers]))
    }

    /// The seconds of a layer in a direction; `None` where it did no work of its own.
    pub fn seconds(&self, layer: usize, direction: Direction) -> Option<f64> {
        self.0.borrow()[layer][direction as usize]
    }

    /// Runs the work of a layer, timed if there is a watch.
    pub fn time<R>(watch: Option<&Self>, layer: usize, direction: Direction, work: impl FnOnce() -> R) -> R {
        let Some(watch) = watch else { return work() };
        let start = Instant::now();
        let result = work();
        *watch.0.borrow_mut()[layer][direction as usize].get_or_insert(0.0) += start.elapsed().as_secs_f64();
        result
    }
}
