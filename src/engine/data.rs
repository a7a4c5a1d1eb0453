//! The numbers of a batch, from a seed: the same for every engine.

use rayon::prelude::*;

use super::Workload;
use crate::network::Shape;
use crate::random::{Purpose, Stream};
use crate::settings::Loss;

/// The inputs, N x the network's input, uniform on [0, 1). Example `n` is the same in every batch size.
pub fn inputs(workload: &Workload) -> Vec<f32> {
    let stream = Stream::new(workload.settings.seed, Purpose::Inputs, [0, 0]);
    uniform(stream, workload.batch_size, workload.network.input())
}

/// The targets, N x the network's output: one-hot with labels of equal probability for a categorical cross-entropy, uniform
/// on [0, 1) for a squared error and for a binary cross-entropy.
pub fn targets(workload: &Workload) -> Vec<f32> {
    let output = workload.network.output();
    match workload.settings.loss {
        Loss::CategoricalCrossEntropy => {
            let mut targets = vec![0.0; workload.batch_size * output.count()];
            let rows = targets.chunks_mut(output.count());
            rows.zip(labels(workload)).for_each(|(row, label)| row[label as usize] = 1.0);
            targets
        }
        Loss::MeanSquaredError | Loss::BinaryCrossEntropy => {
            uniform(Stream::new(workload.settings.seed, Purpose::Targets, [0, 0]), workload.batch_size, output)
        }
    }
}

/// The class of each example, for a cross-entropy.
pub fn labels(workload: &Workload) -> impl Iterator<Item = u32> + use<> {
    let stream = Stream::new(workload.settings.seed, Purpose::Targets, [0, 0]);
    let classes = workload.network.output().count() as u64;
    (0..workload.batch_size as u64).map(move |example| (stream.bits(example) % classes) as u32)
}

/// The dims of a batch of `shape`.
pub fn batch_dims(batch_size: usize, shape: Shape) -> Vec<usize> {
    match shape {
        Shape::Maps { channels, height, width } => vec![batch_size, channels, height, width],
        Shape::Flat(features) => vec![batch_size, features],
    }
}

fn uniform(stream: Stream, batch_size: usize, shape: Shape) -> Vec<f32> {
    (0..batch_size * shape.count()).into_par_iter().map(|index| stream.uniform(index as u64)).collect()
}
