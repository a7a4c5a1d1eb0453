//! Tests of the whole engine: against PyTorch, by what it learns, and by its promises about memory, seeds and settings.

mod learning;
mod promises;
mod pytorch;

use std::sync::Arc;

use super::super::{Settings, Workload};
use crate::network::{Network, Shape};
use crate::settings::*;

/// A resident batch, one thread pool of all cores, SGD.
fn settings() -> Settings {
    Settings {
        optimizer: Optimizer::Sgd,
        learning_rate: 0.01,
        precision: Precision::Fp32,
        seed: 3,
        ..Settings::default()
    }
}

/// `mnist_cnn`: small, and with every kind of layer but residual ones.
fn workload(batch_size: usize) -> Workload {
    let input = Shape::Maps { channels: 1, height: 28, width: 28 };
    let network = Arc::new(Network::by_name("mnist_cnn", input, 10).unwrap());
    Workload { network, batch_size, settings: settings() }
}
