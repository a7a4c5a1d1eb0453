//! One layer's operation by itself. Parts of another engine's step are compared with it.

use super::op::activation::Rectifier;
use super::op::batch_norm::cpu::{Moments, Norm};
use super::op::conv2d::Gradients;
use super::op::filters::Filters;
use super::op::scalar::Scalar;
use super::op::{activation, batch_norm, dense, dropout, global_average_pool, max_pool2d};
use super::pass::{Choices, Kernel};
use crate::engine::dropout::Masks;
use crate::error::{Error, Result};
use crate::network::{BatchNorm, Network, Operation};
use crate::settings::Settings;

/// A layer at one batch size.
#[derive(Clone, Copy, Debug)]
pub struct Single<'a, T> {
    pub network: &'a Network,
    pub index: usize,
    pub batch: usize,
    /// In the order of [`Network::parameters_of`]. Without a bias none is added.
    pub parameters: &'a [&'a [T]],
    pub masks: Masks,
}

/// What a layer gives, and what its backward pass needs besides.
#[derive(Clone, Debug)]
pub struct Output<T> {
    pub values: Vec<T>,
    /// A batch norm's: the mean and variance of each channel in the batch.
    pub moments: Vec<Moments>,
    /// The place of each maximum of a max-pooling.
    pub winners: Vec<u32>,
}

/// The gradients of a layer.
#[derive(Clone, Debug)]
pub struct Slopes<T> {
    /// The gradient of each source; empty where they were not wanted.
    pub sources: Vec<Vec<T>>,
    /// The gradient of each parameter.
    pub parameters: Vec<Vec<T>>,
}

impl<T: Scalar> Single<'_, T> {
    /// The output, from the outputs of its sources. Batch norm uses the statistics of the batch, as in training.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the operands do not fit the layer.
    pub fn forward(self, sources: &[&[T]]) -> Result<Output<T>> {
        let kernel = self.kernel(sources)?;
        let mut y = vec![T::ZERO; self.batch * self.network.layers[self.index].output.count()];
        let (mut moments, mut winners) = (Vec::new(), Vec::new());
        let x = sources[0];
        let bias = self.parameters.get(1).copied();
        match kernel {
            Kernel::Input | Kernel::View => y.copy_from_slice(x),
            Kernel::Convolution(convolution) => convolution.forward(x, self.filters(bias), &mut y),
            Kernel::Dense(sizes) => dense::forward(sizes, x, self.filters(bias), &mut y),
            Kernel::Normalisation(planes, p) => {
                moments = vec![Moments::default(); planes.channels];
                batch_norm::cpu::forward(planes, x, self.norm(p), &mut y, &mut moments);
            }
            Kernel::Rectifier => activation::forward(self.rectifier(), x, &mut y),
            Kernel::MaxPool(windows) => {
                winners = vec![0; y.len()];
                max_pool2d::forward(&windows, x, &mut y, &mut winners);
            }
            Kernel::Average(pixels) => global_average_pool::forward(x, pixels, &mut y),
            Kernel::Dropout(rate) => {
                y.copy_from_slice(x);
                dropout::apply(self.masks.of(self.index, rate), &mut y);
            }
            Kernel::Sum => activation::sum(Rectifier::Identity, x, sources[1], &mut y),
        }
        Ok(Output { values: y, moments, winners })
    }

    /// The gradients, from `dy`, the gradient of `output`; those of the sources only where they are `wanted`.
    ///
    /// # Errors
    /// As [`Single::forward`].
    pub fn backward(self, sources: &[&[T]], output: &Output<T>, dy: &[T], wanted: bool) -> Result<Slopes<T>> {
        let kernel = self.kernel(sources)?;
        let x = sources[0];
        let mut parameters: Vec<Vec<T>> = self.parameters.iter().map(|values| vec![T::ZERO; values.len()]).collect();
        let mut dx = vec![T::ZERO; if wanted { x.len() } else { 0 }];
        // Gradients that are computed in place.
        let mut slope = dy.to_vec();
        let in_place = match kernel {
            Kernel::Convolution(convolution) => {
                let (weight, bias) = parameters.split_at_mut(1);
                let into = Gradients { x: wanted.then_some(&mut *dx), weight: weight.first_mut().map(|dw| &mut **dw) };
                convolution.backward(x, self.parameters[0], dy, into);
                bias.iter_mut().for_each(|db| convolution.bias_gradient(dy, db));
                false
            }
            Kernel::Dense(sizes) => {
                if wanted {
                    dense::input_gradient(sizes, self.parameters[0], dy, &mut dx);
                }
                dense::weight_gradient(sizes, x, dy, &mut parameters[0]);
                parameters.iter_mut().skip(1).for_each(|db| dense::bias_gradient(sizes, dy, db));
                false
            }
            Kernel::MaxPool(windows) => {
                if wanted {
                    max_pool2d::backward(&windows, dy, &output.winners, &mut dx);
                }
                false
            }
            Kernel::Average(pixels) => {
                if wanted {
                    global_average_pool::backward(dy, pixels, &mut dx);
                }
                false
            }
            Kernel::Normalisation(planes, p) => {
                if let [dgamma, dbeta] = &mut parameters[..] {
                    let norm = self.norm(p);
                    batch_norm::cpu::backward(planes, x, norm, &output.moments, &mut slope, [dgamma, dbeta]);
                }
                true
            }
            Kernel::Rectifier => {
                activation::backward(self.rectifier(), &output.values, &mut slope);
                true
            }
            Kernel::Dropout(rate) => {
                dropout::apply(self.masks.of(self.index, rate), &mut slope);
                true
            }
            Kernel::Input | Kernel::View | Kernel::Sum => true,
        };
        let dx = if in_place && wanted { slope } else { dx };
        Ok(Slopes { sources: vec![dx; sources.len()], parameters })
    }

    /// Checks the operands.
    fn kernel(self, sources: &[&[T]]) -> Result<Kernel> {
        let Self { network, index, batch, .. } = self;
        let expected = network.sources(index).map(|shape| batch * shape.count());
        if sources.is_empty() || !expected.eq(sources.iter().map(|source| source.len())) {
            return Err(Error::engine("operands of another size").at(&network.layers[index].name));
        }
        let fits = network
            .trainable_of(index)
            .zip(self.parameters)
            .all(|(parameter, values)| parameter.count() == values.len());
        let needed = match network.layers[index].operation {
            Operation::Conv2d(_) | Operation::Dense(_) => 1,
            Operation::BatchNorm(_) => 2,
            _ => 0,
        };
        if !fits || self.parameters.len() < needed {
            return Err(Error::engine("parameters of another size").at(&network.layers[index].name));
        }
        Kernel::new(network, index, batch, Choices::from(&Settings::default()))
    }

    fn filters<'b>(&'b self, bias: Option<&'b [T]>) -> Filters<'b, T> {
        Filters { weight: self.parameters[0], bias, rectifier: Rectifier::Identity }
    }

    fn norm(&self, p: BatchNorm) -> Norm<'_, T> {
        let [gamma, beta] = [0, 1].map(|number| self.parameters[number]);
        Norm { gamma, beta, epsilon: p.epsilon, rectifier: Rectifier::Identity }
    }

    fn rectifier(&self) -> Rectifier {
        Rectifier::of(&self.network.layers[self.index].operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::Shape;

    #[test]
    fn operands_of_the_wrong_size_name_the_layer() {
        let network = Network::by_name("mlp", Shape::Flat(2), 1).unwrap();
        let parameters: &[&[f32]] = &[&[0.0; 40], &[0.0; 20]];
        let single = Single { network: &network, index: 1, batch: 6, parameters, masks: Masks { seed: 1, step: 0 } };
        let error = single.forward(&[&[0.0; 13]]).unwrap_err();
        assert!(error.to_string().starts_with("fc1: "), "{error}");
    }
}
