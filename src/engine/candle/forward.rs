//! The forward pass and the loss, as operations that candle's autograd records.

use candle_core::{Result, Tensor};

use super::failed;
use super::model::Model;
use crate::error::{Error, Result as OurResult};
use crate::random::{Purpose, Stream};
use crate::settings::Loss;

/// Selects the dropout masks of one step.
#[derive(Clone, Copy, Debug)]
pub struct Masks {
    pub seed: u64,
    pub step: u64,
}

/// The network's output for a batch (N x the network's input): N x features, or N x C x H x W. Without `masks` as in an
/// evaluation: running statistics in batch norms, no dropout.
///
/// # Errors
/// [`crate::error::Kind::Engine`] with the layer's name, where memory cannot be had.
pub fn forward(model: &Model, inputs: &Tensor, masks: Option<Masks>) -> OurResult<Tensor> {
    let mut outputs = vec![inputs.clone()];
    for (index, (layer, apply)) in (1_u64..).zip(model.network.layers[1..].iter().zip(&model.layers)) {
        let sources: Vec<&Tensor> = layer.sources.iter().map(|&source| &outputs[source]).collect();
        let key = masks.map(|masks| Stream::new(masks.seed, Purpose::Dropout, [index, masks.step]).key());
        outputs.push(apply(&sources, key).map_err(|error| failed(error).at(&layer.name))?);
    }
    outputs.pop().ok_or_else(|| Error::engine("a network without layers"))
}

/// The scalar loss of a batch; a categorical cross-entropy's targets are labels.
///
/// # Errors
/// candle's, where the shapes differ.
pub fn loss(loss: Loss, output: &Tensor, targets: &Tensor) -> Result<Tensor> {
    match loss {
        Loss::CategoricalCrossEntropy => candle_nn::loss::cross_entropy(output, targets),
        Loss::MeanSquaredError => candle_nn::loss::mse(output, targets),
        Loss::BinaryCrossEntropy => candle_nn::loss::binary_cross_entropy_with_logit(output, targets),
    }
}
