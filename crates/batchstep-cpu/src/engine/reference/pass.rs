//! The layers of a network one after the other, forward and backward.

use super::array::Array;
use super::pointwise::{self, Mask};
use super::{batch_norm, convolution, dense, pooling};
use crate::network::{Network, Operation};

/// A network with its parameters, at one step of its training.
pub struct Pass<'a> {
    pub network: &'a Network,
    /// For each layer its trainable tensors.
    pub parameters: &'a [Vec<Vec<f64>>],
    pub seed: u64,
    pub step: u64,
}

impl Pass<'_> {
    /// The output of every layer.
    pub fn forward(&self, inputs: Array) -> Vec<Array> {
        let mut outputs = vec![inputs];
        for layer in 1..self.network.layers.len() {
            let output = self.output(layer, &outputs);
            outputs.push(output);
        }
        outputs
    }

    fn output(&self, layer: usize, outputs: &[Array]) -> Array {
        let (sources, shape) = (&self.network.layers[layer].sources, self.network.layers[layer].output);
        let (x, parameters) = (&outputs[sources[0]], &self.parameters[layer]);
        let bias = parameters.get(1).map(Vec::as_slice);
        match &self.network.layers[layer].operation {
            Operation::Input | Operation::Flatten => Array { values: x.values.clone(), ..Array::zeros(x.batch, shape) },
            Operation::Conv2d(conv) => convolution::forward(x, &parameters[0], bias, conv, shape),
            Operation::Dense(_) => dense::forward(x, &parameters[0], bias, shape),
            Operation::BatchNorm(norm) => batch_norm::forward(x, &parameters[0], &parameters[1], norm),
            Operation::Relu => pointwise::relu(x),
            Operation::Relu6 => pointwise::relu6(x),
            Operation::MaxPool2d(pool) => pooling::max_forward(x, pool, shape),
            Operation::GlobalAveragePool => pooling::average_forward(x, shape),
            Operation::Dropout { rate } => self.mask(layer, *rate).apply(x),
            Operation::Add => pointwise::add(x, &outputs[sources[1]]),
        }
    }

    /// The gradients of all parameters; `dy` is the gradient of the network's output.
    pub fn backward(&self, outputs: &[Array], dy: Array) -> Vec<Vec<Vec<f64>>> {
        let mut of_outputs: Vec<Option<Array>> = vec![None; outputs.len()];
        let mut of_parameters = vec![Vec::new(); outputs.len()];
        of_outputs[outputs.len() - 1] = Some(dy);
        for layer in (1..outputs.len()).rev() {
            let Some(dy) = of_outputs[layer].take() else { continue };
            of_parameters[layer] = self.parameter_gradients(layer, outputs, &dy);
            for &source in self.network.layers[layer].sources.iter().filter(|&&source| source != 0) {
                let dx = self.input_gradient(layer, &outputs[source], &dy);
                of_outputs[source] = Some(match of_outputs[source].take() {
                    Some(other) => pointwise::add(&other, &dx),
                    None => dx,
                });
            }
        }
        of_parameters
    }

    pub fn parameter_gradients(&self, layer: usize, outputs: &[Array], dy: &Array) -> Vec<Vec<f64>> {
        let x = &outputs[self.network.layers[layer].sources[0]];
        let of_weights = match &self.network.layers[layer].operation {
            Operation::Conv2d(conv) => convolution::weight_gradient(x, dy, conv),
            Operation::Dense(_) => dense::weight_gradient(x, dy),
            Operation::BatchNorm(norm) => {
                let (_, d_gamma, d_beta) = batch_norm::backward(x, &self.parameters[layer][0], dy, norm);
                return vec![d_gamma, d_beta];
            }
            _ => return Vec::new(),
        };
        let has_bias = self.parameters[layer].len() > 1;
        [of_weights].into_iter().chain(has_bias.then(|| convolution::bias_gradient(dy))).collect()
    }

    /// The gradient of one source of a layer, whose value is `x`.
    pub fn input_gradient(&self, layer: usize, x: &Array, dy: &Array) -> Array {
        let parameters = &self.parameters[layer];
        match &self.network.layers[layer].operation {
            Operation::Input | Operation::Add => dy.clone(),
            Operation::Flatten => Array { values: dy.values.clone(), ..*x },
            Operation::Conv2d(conv) => convolution::input_gradient(x, &parameters[0], dy, conv),
            Operation::Dense(_) => dense::input_gradient(x, &parameters[0], dy),
            Operation::BatchNorm(norm) => batch_norm::backward(x, &parameters[0], dy, norm).0,
            Operation::Relu => pointwise::relu_input_gradient(x, dy),
            Operation::Relu6 => pointwise::relu6_input_gradient(x, dy),
            Operation::MaxPool2d(pool) => pooling::max_input_gradient(x, dy, pool),
            Operation::GlobalAveragePool => pooling::average_input_gradient(x, dy),
            Operation::Dropout { rate } => self.mask(layer, *rate).apply(dy),
        }
    }

    fn mask(&self, layer: usize, rate: f64) -> Mask {
        Mask { rate, seed: self.seed, layer, step: self.step }
    }
}
