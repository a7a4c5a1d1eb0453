//! How much memory a step of candle takes on the host.

use crate::engine::{Workload, memory};
use crate::error::Result;
use crate::network::{MaxPool2d, Network, Operation};

/// The number of tensors, each as large as the largest output, that the gradient of one operation needs at a time: its
/// input, the old and the new sum, and masks and products in between.
const BACKWARD: f64 = 8.0;

/// Refuses a workload that does not fit in memory.
///
/// # Errors
/// As [`memory::check`].
pub fn check(workload: &Workload, bytes_per_scalar: u64) -> Result<()> {
    memory::check("the step needs", step_bytes(workload, bytes_per_scalar))
}

fn step_bytes(workload: &Workload, bytes_per_scalar: u64) -> u64 {
    let Workload { network, batch_size, settings } = workload;
    let copies = settings.optimizer.state_copies() as f64;
    let counts = network.parameters().map(|(_, parameter)| parameter.count() as f64);
    let (all, largest) = counts.fold((0.0, 0.0f64), |(all, largest), count| (all + count, largest.max(count)));
    // A gradient keeps the two tensors whose sum it is, even if one is zeros; an update makes new tensors of a
    // variable's size before the result is copied into the old one.
    let parameters = all * (4.0 + copies) + 6.0 * largest;
    let outputs = network.layers.iter().map(|layer| layer.output.count() as f64);
    let held: f64 = (0..network.layers.len()).map(|index| graph_scalars(network, index)).sum();
    let maps = held + BACKWARD * outputs.fold(0.0, f64::max);
    ((parameters + maps * *batch_size as f64) * bytes_per_scalar as f64) as u64 + memory::SLACK
}

/// The scalars of layer `index` that the graph keeps until the backward pass, for one example.
fn graph_scalars(network: &Network, index: usize) -> f64 {
    let output = network.layers[index].output.count() as f64;
    let input = network.sources(index).next().map_or(0.0, |source| source.count() as f64);
    match network.layers[index].operation {
        // The result, for groups both separate and joined; the sum with the bias; the input, if it is padded
        // beforehand.
        Operation::Conv2d(conv) => {
            output * (1.0 + f64::from(u8::from(conv.groups > 1)) + f64::from(u8::from(conv.bias))) + input
        }
        Operation::Dense(_) => 2.0 * output,
        // For each channel: minus the mean, its square, divided by the deviation, times gamma, plus beta.
        Operation::BatchNorm(_) => 6.0 * output,
        Operation::Relu6 => 2.0 * output,
        // The mask, scaled, and the product.
        Operation::Dropout { .. } => 3.0 * output,
        // k places of a window and k - 1 maxima, along rows and along columns.
        Operation::MaxPool2d(MaxPool2d { kernel, stride, .. }) => {
            2.0 * kernel.height as f64 * input / stride.height as f64 + 2.0 * kernel.width as f64 * output
        }
        _ => output,
    }
}
