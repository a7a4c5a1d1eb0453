//! One layer's operation by itself. Parts of another engine's step are compared with it.

use super::op::activation::Rectifier;
use super::op::batch_norm::Moments;
use super::op::filters::Filters;
use super::op::scalar::Scalar;
use super::pass::memory_plan::is_in_place;
use super::pass::{self, Choices, Kernel};
use crate::engine::dropout::Masks;
use crate::error::{Error, Result};
use crate::network::{Layer, Network, Operation};
use crate::settings::Settings;

/// A layer of one source at one batch size.
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
    /// The gradient of the source; empty where it was not wanted.
    pub source: Vec<T>,
    /// The gradient of each parameter.
    pub parameters: Vec<Vec<T>>,
}

impl<T: Scalar> Single<'_, T> {
    /// The output, from the output of its source. Batch norm uses the statistics of the batch, as in training.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the operands do not fit the layer.
    pub fn forward(self, x: &[T]) -> Result<Output<T>> {
        let kernel = self.kernel(x)?;
        let mut values = vec![T::ZERO; self.batch * self.layer().output.count()];
        let (mut moments, mut winners) = (Vec::new(), Vec::new());
        match kernel {
            Kernel::Normalisation(planes, _) => moments.resize(planes.channels, Moments::default()),
            Kernel::MaxPool(_) => winners.resize(values.len(), 0),
            _ => {}
        }
        kernel.forward(x, self.filters(), Some(self.masks), &mut values, (&mut moments, &mut winners));
        Ok(Output { values, moments, winners })
    }

    /// The gradients, from `dy`, the gradient of `output`; that of the source only where it is `wanted`.
    ///
    /// # Errors
    /// As [`Single::forward`].
    pub fn backward(self, x: &[T], output: &Output<T>, dy: &[T], wanted: bool) -> Result<Slopes<T>> {
        let kernel = self.kernel(x)?;
        let mut parameters: Vec<Vec<T>> = self.parameters.iter().map(|values| vec![T::ZERO; values.len()]).collect();
        let (mut slope, mut dx) = (dy.to_vec(), vec![T::ZERO; if wanted { x.len() } else { 0 }]);
        let into = wanted.then_some(&mut *dx);
        let slopes = pass::LayerSlopes { dy: &mut slope, dx: into, parameters: &mut parameters };
        let kept = (&*output.moments, &*output.winners);
        kernel.backward((x, &output.values), self.filters(), Some(self.masks), slopes, kept);
        let source = if wanted && is_in_place(&self.layer().operation) { slope } else { dx };
        Ok(Slopes { source, parameters })
    }

    /// Checks the operands.
    fn kernel(self, x: &[T]) -> Result<Kernel> {
        let Self { network, index, batch, .. } = self;
        let refused = |what: &str| Error::engine(what).at(&self.layer().name);
        if !network.sources(index).map(|shape| batch * shape.count()).eq([x.len()]) {
            return Err(refused("operands of another size"));
        }
        let mut pairs = network.trainable_of(index).zip(self.parameters);
        let fits = pairs.all(|(parameter, values)| parameter.count() == values.len());
        let needed = match self.layer().operation {
            Operation::Conv2d(_) | Operation::Dense(_) => 1,
            Operation::BatchNorm(_) => 2,
            _ => 0,
        };
        if !fits || self.parameters.len() < needed {
            return Err(refused("parameters of another size"));
        }
        Kernel::new(network, index, batch, Choices::from(&Settings::default()))
    }

    fn layer(&self) -> &Layer {
        &self.network.layers[self.index]
    }

    fn filters(&self) -> Filters<'_, T> {
        let weight = self.parameters.first().copied().unwrap_or_default();
        let bias = self.parameters.get(1).copied();
        Filters { weight, bias, rectifier: Rectifier::of(&self.layer().operation) }
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
        let error = single.forward(&[0.0; 13]).unwrap_err();
        assert!(error.to_string().starts_with("fc1: "), "{error}");
    }
}
