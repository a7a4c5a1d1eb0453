//! The oracle of the tests: one layer after the other by [`super::single`], with an array for every output and every
//! gradient. [`super::pass`] is compared with it.

use super::masks::Masks;
use super::op::scalar::Scalar;
use super::parameters::Parameters;
use super::single::{Output, Single};
use crate::error::Result;
use crate::network::Network;

/// The output of every layer for the batch `x` (N x the network's input); the first is empty.
///
/// Without `masks`, dropout changes nothing. Batch norm always uses the statistics of the batch, as in training.
///
/// # Errors
/// [`crate::error::Kind::Engine`] with the layer's name, where the batch does not fit.
pub fn forward<T: Scalar>(
    network: &Network,
    parameters: &Parameters<T>,
    x: &[T],
    masks: Option<Masks>,
) -> Result<Vec<Output<T>>> {
    let batch = x.len() / network.input().count();
    let mut outputs = vec![Output { values: Vec::new(), moments: Vec::new(), winners: Vec::new() }];
    for index in 1..network.layers.len() {
        let held: Vec<&[T]> = parameters.of_layer(index).collect();
        let single = Single { network, index, batch, parameters: &held, masks };
        let output = single.forward(&sources(network, index, x, &outputs))?;
        outputs.push(output);
    }
    Ok(outputs)
}

/// The gradient of every parameter, in the order of [`Parameters::iter`], from the gradient of the network's output.
///
/// # Errors
/// As [`forward`].
pub fn backward<T: Scalar>(
    network: &Network,
    parameters: &Parameters<T>,
    x: &[T],
    masks: Option<Masks>,
    (outputs, slope): (&[Output<T>], Vec<T>),
) -> Result<Vec<Vec<T>>> {
    let batch = x.len() / network.input().count();
    let last = network.layers.len() - 1;
    let mut slopes: Vec<Vec<T>> = outputs.iter().map(|output| vec![T::ZERO; output.values.len()]).collect();
    slopes[0] = vec![T::ZERO; x.len()];
    slopes[last] = slope;
    let mut gradients = Vec::new();
    for index in (1..=last).rev() {
        let held: Vec<&[T]> = parameters.of_layer(index).collect();
        let single = Single { network, index, batch, parameters: &held, masks };
        let found = single.backward(&sources(network, index, x, outputs), &outputs[index], &slopes[index], true)?;
        for (&source, slope) in network.layers[index].sources.iter().zip(&found.sources) {
            slopes[source].iter_mut().zip(slope).for_each(|(total, slope)| *total += *slope);
        }
        gradients.push(found.parameters);
    }
    Ok(gradients.into_iter().rev().flatten().collect())
}

fn sources<'a, T>(network: &Network, index: usize, x: &'a [T], outputs: &'a [Output<T>]) -> Vec<&'a [T]> {
    let output = |&source: &usize| if source == 0 { x } else { &*outputs[source].values };
    network.layers[index].sources.iter().map(output).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Builder, Operation, Shape};

    #[test]
    fn a_layer_can_be_added_to_itself_and_read_again() {
        let mut b = Builder::new("twice", Shape::Flat(3)).unwrap();
        let relu = b.then("relu", Operation::Relu).unwrap();
        let sum = b.add("sum", Operation::Add, &[relu, relu]).unwrap();
        b.add("again", Operation::Add, &[sum, relu]).unwrap();
        let again = b.last();
        b.add("both", Operation::Add, &[again, again]).unwrap();
        let network = b.finish().unwrap();
        let parameters = Parameters::new(&network, 1);
        let x = [1.0, -2.0, 3.0];
        let outputs = forward(&network, &parameters, &x, None).unwrap();
        // By hand: 2 x (2 + 1) times the positive part.
        assert_eq!(outputs[outputs.len() - 1].values, [6.0, 0.0, 18.0]);
    }

    #[test]
    fn a_batch_of_the_wrong_shape_names_the_layer() {
        let network = Network::by_name("mlp", Shape::Flat(2), 1).unwrap();
        let parameters = Parameters::<f32>::new(&network, 1);
        let error = forward(&network, &parameters, &[0.0; 13], None).unwrap_err();
        assert!(error.to_string().starts_with("fc1: "), "{error}");
    }
}
