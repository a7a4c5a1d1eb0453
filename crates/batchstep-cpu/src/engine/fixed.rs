//! Fixed algorithms: those of an earlier run, by layer.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::network::Direction;

/// The algorithm of each convolution, by network, layer and direction. With the same algorithm at every batch size, a
/// jump that remains was not caused by a change of algorithm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FixedAlgorithms {
    names: BTreeMap<(String, String, &'static str), String>,
}

impl FixedAlgorithms {
    /// Sets the algorithm of a layer, as `layers.parquet` names it.
    pub fn insert(&mut self, network: &str, layer: &str, direction: Direction, algorithm: &str) {
        self.names.insert((network.to_owned(), layer.to_owned(), direction.name()), algorithm.to_owned());
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The algorithm of a layer.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the earlier run had none.
    pub fn get(&self, network: &str, layer: &str, direction: Direction) -> Result<String> {
        let key = (network.to_owned(), layer.to_owned(), direction.name());
        self.names.get(&key).cloned().ok_or_else(|| {
            let what = format!("no algorithm is fixed for {network}, {layer}, {}", direction.name());
            Error::engine(what).hint("take them from a run of the same network on the same engine")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_algorithm_is_found_by_layer_and_direction_or_missed_in_words() {
        let mut fixed = FixedAlgorithms::default();
        assert!(fixed.is_empty());
        fixed.insert("vgg16", "block1_conv1", Direction::Forward, "graph:eng28");
        assert_eq!(fixed.get("vgg16", "block1_conv1", Direction::Forward).unwrap(), "graph:eng28");
        let error = fixed.get("vgg16", "block1_conv1", Direction::BackwardData).unwrap_err().to_string();
        assert!(error.contains("vgg16, block1_conv1, backward_data"), "{error}");
    }
}
