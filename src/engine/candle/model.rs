//! A network as candle-nn's layers over variables with the initial values of [`crate::network::initial`].

use std::sync::Arc;

use candle_core::{D, DType, Device, Result, Tensor, Var, bail};
use candle_nn::{Activation, BatchNorm, Linear, Module as _, ModuleT as _};
use rayon::prelude::*;

use super::op::convolution::Convolution;
use super::op::dropout::dropout;
use super::op::max_pool::MaxPool;
use crate::network::initial::Initial;
use crate::network::{self, Extent, Network, Operation, Parameter, Shape};

/// A layer's output, from the outputs of its sources and the key of a dropout mask, which there is only in training.
pub type Layer = Box<dyn Fn(&[&Tensor], Option<u64>) -> Result<Tensor> + Send + Sync>;

/// The layers of a network and the variables that they share with the optimizer.
pub struct Model {
    pub network: Arc<Network>,
    /// Those of the network after its input.
    pub layers: Vec<Layer>,
    /// Every trainable tensor, in the order of [`Network::parameters`].
    pub vars: Vec<Var>,
}

impl Model {
    /// The network at its initial parameters.
    pub fn new(network: Arc<Network>, seed: u64, dtype: DType) -> Result<Self> {
        let mut model = Self { network, layers: Vec::new(), vars: Vec::new() };
        for index in 1..model.network.layers.len() {
            let trainable = model.network.trainable_of(index).enumerate();
            let vars = trainable
                .map(|(number, parameter)| variable(&parameter, Initial::of(&parameter, seed, index, number), dtype))
                .collect::<Result<Vec<Var>>>()?;
            let tensors: Vec<Tensor> = vars.iter().map(|var| var.as_tensor().clone()).collect();
            model.layers.push(layer(&model.network, index, &tensors)?);
            model.vars.extend(vars);
        }
        Ok(model)
    }
}

fn variable(parameter: &Parameter, initial: Initial, dtype: DType) -> Result<Var> {
    let values: Vec<f32> = (0..parameter.count() as u64).into_par_iter().map(|index| initial.value(index)).collect();
    Var::from_tensor(&Tensor::from_vec(values, parameter.dims.as_slice(), &Device::Cpu)?.to_dtype(dtype)?)
}

/// Layer `index`; `tensors` are its parameters: weight and bias where it has one, or gamma and beta.
fn layer(network: &Network, index: usize, tensors: &[Tensor]) -> Result<Layer> {
    let source = network.sources(index).next();
    let bias = tensors.get(1).cloned();
    Ok(match (network.layers[index].operation, source, tensors) {
        (Operation::Conv2d(conv), Some(Shape::Maps { height, width, .. }), [weight, ..]) => {
            let conv = Convolution::new(&conv, Extent { height, width }, weight.clone(), bias);
            Box::new(move |x, _| conv.forward(x[0]))
        }
        (Operation::BatchNorm(norm), _, [gamma, beta]) => {
            let norm = batch_norm(&norm, gamma, beta)?;
            Box::new(move |x, key| norm.forward_t(x[0], key.is_some()))
        }
        (Operation::Relu, ..) => Box::new(|x, _| x[0].relu()),
        (Operation::Relu6, ..) => Box::new(|x, _| Activation::Relu6.forward(x[0])),
        (Operation::MaxPool2d(pool), Some(Shape::Maps { height, width, .. }), _) => {
            let pool = MaxPool::new(&pool, Extent { height, width });
            Box::new(move |x, _| pool.forward(x[0]))
        }
        (Operation::GlobalAveragePool, ..) => Box::new(|x, _| x[0].mean((D::Minus2, D::Minus1))),
        (Operation::Flatten, ..) => Box::new(|x, _| x[0].flatten_from(1)),
        (Operation::Dense(_), _, [weight, ..]) => {
            let dense = Linear::new(weight.clone(), bias);
            Box::new(move |x, _| dense.forward(x[0]))
        }
        (Operation::Dropout { rate }, ..) => {
            Box::new(move |x, key| key.map_or_else(|| Ok(x[0].clone()), |key| dropout(x[0], rate, key)))
        }
        (Operation::Add, ..) => Box::new(|x, _| x[0] + x[1]),
        (operation, ..) => bail!("a {} without its parameters or its source", operation.name()),
    })
}

/// candle's momentum is the weight of the batch, as PyTorch's; ours is the weight of the past.
fn batch_norm(norm: &network::BatchNorm, gamma: &Tensor, beta: &Tensor) -> Result<BatchNorm> {
    let (mean, variance) = (gamma.detach().zeros_like()?, gamma.detach().ones_like()?);
    let (channels, momentum) = (gamma.elem_count(), 1.0 - norm.momentum);
    BatchNorm::new_with_momentum(channels, mean, variance, gamma.clone(), beta.clone(), norm.epsilon, momentum)
}
