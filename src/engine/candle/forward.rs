//! The forward pass and the loss, as operations that candle's autograd records.

use candle_core::{D, Result, Tensor, bail};
use candle_nn::{Activation, Module as _, ModuleT as _};

use super::failed;
use super::model::{Model, Module};
use super::op::dropout;
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
    for (index, layer) in model.network.layers.iter().enumerate().skip(1) {
        let sources: Vec<&Tensor> = layer.sources.iter().map(|&source| &outputs[source]).collect();
        let key = masks.map(|masks| Stream::new(masks.seed, Purpose::Dropout, [index as u64, masks.step]).key());
        let output = apply(&model.modules[index], &sources, key).map_err(|error| failed(error).at(&layer.name))?;
        outputs.push(output);
    }
    outputs.pop().ok_or_else(|| Error::engine("a network without layers"))
}

/// `key` is the dropout mask's key; `None` without training.
fn apply(module: &Module, sources: &[&Tensor], key: Option<u64>) -> Result<Tensor> {
    match (module, sources) {
        (Module::Add, [a, b]) => *a + *b,
        (Module::Convolution(conv), [x]) => conv.forward(x),
        (Module::BatchNorm(norm), [x]) if key.is_some() => norm.forward_train(x),
        (Module::BatchNorm(norm), [x]) => norm.forward_t(x, false),
        (Module::Relu, [x]) => x.relu(),
        (Module::Relu6, [x]) => Activation::Relu6.forward(x),
        (Module::MaxPool(pool), [x]) => pool.forward(x),
        (Module::GlobalAveragePool, [x]) => x.mean((D::Minus2, D::Minus1)),
        (Module::Flatten, [x]) => x.flatten_from(1),
        (Module::Dense(dense), [x]) => dense.forward(x),
        (Module::Dropout(rate), [x]) => key.map_or_else(|| Ok((*x).clone()), |key| dropout::dropout(x, *rate, key)),
        _ => bail!("a layer with {} sources", sources.len()),
    }
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
