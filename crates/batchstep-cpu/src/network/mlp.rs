//! A tiny perceptron: its training step is almost all overhead, with hardly any arithmetic.

use super::Network;
use super::build::Builder;
use super::layer::{Dense, Operation, Shape};
use crate::error::Result;

/// Dense layers of 20, 5 and `outputs` features, with ReLU between them; made to fit a surface over two inputs.
///
/// # Errors
/// [`crate::error::Kind::Spec`] where `input` is not flat, or `outputs` is 0.
pub fn mlp(input: Shape, outputs: usize) -> Result<Network> {
    let mut b = Builder::new("mlp", input)?;
    for (i, features) in (1..).zip([20, 5]) {
        b.then(format!("fc{i}"), Dense { out_features: features, bias: true })?;
        b.then(format!("fc{i}_relu"), Operation::Relu)?;
    }
    b.then("output", Dense { out_features: outputs, bias: true })?;
    b.finish()
}
