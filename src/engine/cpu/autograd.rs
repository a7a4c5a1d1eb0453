//! The oracle of the tests: the operators of [`super::op`] as candle operations, one layer after the other, with the
//! gradients by candle's autograd. [`super::pass`] is compared with it.

use candle_core::Tensor;

use super::masks::Masks;
use super::op;
use super::parameters::Parameters;
use crate::error::{Error, Result};
use crate::network::{Network, Operation};
use crate::settings::Loss;

/// The network's output for a batch `x` (N x the network's input): N x features, or N x C x H x W.
///
/// A layer's output is dropped after its last use; autograd's graph keeps what the backward pass needs. Without `masks`,
/// dropout changes nothing. Batch norm always uses the statistics of the batch, as in training.
///
/// # Errors
/// [`crate::error::Kind::Engine`] with the layer's name, where shapes do not fit or memory cannot be had.
pub fn forward(network: &Network, parameters: &Parameters, x: &Tensor, masks: Option<Masks>) -> Result<Tensor> {
    let last_use = last_uses(network);
    let mut outputs: Vec<Option<Tensor>> = vec![None; network.layers.len()];
    outputs[0] = Some(x.clone());
    for (index, layer) in network.layers.iter().enumerate().skip(1) {
        let sources: Vec<Tensor> = layer
            .sources
            .iter()
            .map(|&source| if last_use[source] == index { outputs[source].take() } else { outputs[source].clone() })
            .collect::<Option<_>>()
            .ok_or_else(|| Error::engine("a source has no output").at(&layer.name))?;
        let output = apply(network, parameters, index, &sources, masks).map_err(|error| error.at(&layer.name))?;
        outputs[index] = Some(output);
    }
    outputs.pop().flatten().ok_or_else(|| Error::engine("a network without layers"))
}

/// The index of the layer that reads each layer's output last.
fn last_uses(network: &Network) -> Vec<usize> {
    let mut last_use = vec![usize::MAX; network.layers.len()];
    for (index, layer) in network.layers.iter().enumerate() {
        for &source in &layer.sources {
            last_use[source] = index;
        }
    }
    // A sum of a layer with itself takes its output twice.
    for (index, layer) in network.layers.iter().enumerate() {
        if let [a, b] = layer.sources[..]
            && a == b
            && last_use[a] == index
        {
            last_use[a] = usize::MAX;
        }
    }
    last_use
}

fn apply(
    network: &Network,
    parameters: &Parameters,
    index: usize,
    sources: &[Tensor],
    masks: Option<Masks>,
) -> Result<Tensor> {
    let x = sources.first().ok_or_else(|| Error::engine("no source"))?;
    let optional = |name| parameters.get(index, name);
    let parameter = |name| optional(name).ok_or_else(|| Error::engine(format!("no parameter {name}")));
    let output = match &network.layers[index].operation {
        Operation::Input => return Err(Error::engine("an input that is not the first layer")),
        Operation::Conv2d(conv) => op::conv2d(x, parameter("weight")?, optional("bias"), conv),
        Operation::BatchNorm(norm) => {
            let stats = parameters.stats(index).ok_or_else(|| Error::engine("no running statistics"))?;
            op::batch_norm(x, parameter("gamma")?, parameter("beta")?, stats, norm)
        }
        Operation::Relu => op::relu(x),
        Operation::Relu6 => op::relu6(x),
        Operation::MaxPool2d(pool) => op::max_pool2d(x, pool),
        Operation::GlobalAveragePool => op::global_average_pool(x),
        Operation::Flatten => x.flatten_from(1),
        Operation::Dense(_) => op::dense(x, parameter("weight")?, optional("bias")),
        Operation::Dropout { rate } => match masks {
            Some(masks) if *rate > 0.0 => op::dropout(x, *rate, masks.key(index)),
            _ => Ok(x.clone()),
        },
        Operation::Add => match sources {
            [a, b] => a + b,
            _ => return Err(Error::engine(format!("a sum of {} sources", sources.len()))),
        },
    };
    Ok(output?)
}

/// The scalar loss of a batch: `output` and `targets` of the same shape.
///
/// # Errors
/// [`crate::error::Kind::Engine`] where the shapes differ.
pub fn loss(loss: Loss, output: &Tensor, targets: &Tensor) -> Result<Tensor> {
    let loss = match loss {
        Loss::CategoricalCrossEntropy => op::softmax_cross_entropy(output, targets),
        Loss::MeanSquaredError => op::mean_squared_error(output, targets),
        Loss::BinaryCrossEntropy => op::binary_cross_entropy(output, targets),
    };
    Ok(loss?)
}

#[cfg(test)]
mod tests {
    use candle_core::{DType, Device};

    use super::*;
    use crate::network::{Builder, Shape};

    #[test]
    fn a_layer_can_be_added_to_itself_and_read_again() {
        let mut b = Builder::new("twice", Shape::Flat(3)).unwrap();
        let relu = b.then("relu", Operation::Relu).unwrap();
        let sum = b.add("sum", Operation::Add, &[relu, relu]).unwrap();
        b.add("again", Operation::Add, &[sum, relu]).unwrap();
        let again = b.last();
        b.add("both", Operation::Add, &[again, again]).unwrap();
        let network = b.finish().unwrap();
        let parameters = Parameters::new(&network, 1, DType::F64).unwrap();
        let x = Tensor::new(&[[1.0, -2.0, 3.0]], &Device::Cpu).unwrap();
        let output = forward(&network, &parameters, &x, None).unwrap();
        // By hand: 2 x (2 + 1) times the positive part.
        assert_eq!(output.to_vec2::<f64>().unwrap(), [[6.0, 0.0, 18.0]]);
    }

    #[test]
    fn a_batch_of_the_wrong_shape_names_the_layer() {
        let network = Network::by_name("mlp", Shape::Flat(2), 1).unwrap();
        let parameters = Parameters::new(&network, 1, DType::F32).unwrap();
        let x = Tensor::zeros((4, 3), DType::F32, &Device::Cpu).unwrap();
        let error = forward(&network, &parameters, &x, None).unwrap_err();
        assert!(error.to_string().starts_with("fc1: "), "{error}");
    }
}
