//! A network as candle-nn's layers over variables with the initial values of [`crate::engine::initial`].

use std::sync::Arc;

use candle_core::{DType, Device, Result, Tensor, Var, bail};
use candle_nn::{BatchNorm, Linear};
use rayon::prelude::*;

use super::op::convolution::Convolution;
use super::op::max_pool::MaxPool;
use crate::engine::initial::Initial;
use crate::network::{self, Extent, Network, Operation, Parameter, Shape};

#[derive(Debug)]
pub enum Module {
    Input,
    Convolution(Convolution),
    BatchNorm(BatchNorm),
    Relu,
    Relu6,
    MaxPool(MaxPool),
    GlobalAveragePool,
    Flatten,
    Dense(Linear),
    Dropout(f64),
    Add,
}

/// The layers of a network and the variables that they share with the optimizer.
#[derive(Debug)]
pub struct Model {
    pub network: Arc<Network>,
    pub modules: Vec<Module>,
    /// Every trainable tensor, in the order of [`Network::parameters`].
    pub vars: Vec<Var>,
}

impl Model {
    /// The network at its initial parameters.
    pub fn new(network: Arc<Network>, seed: u64, device: &Device, dtype: DType) -> Result<Self> {
        let mut model = Self { network, modules: Vec::new(), vars: Vec::new() };
        for index in 0..model.network.layers.len() {
            let trainable = model.network.parameters_of(index).into_iter().filter(|parameter| parameter.trainable);
            let vars = trainable.enumerate().map(|(number, parameter)| {
                variable(&parameter, Initial::of(&parameter, seed, index, number), device, dtype)
            });
            let vars = vars.collect::<Result<Vec<Var>>>()?;
            let tensors: Vec<Tensor> = vars.iter().map(|var| var.as_tensor().clone()).collect();
            model.modules.push(module(&model.network, index, &tensors)?);
            model.vars.extend(vars);
        }
        Ok(model)
    }
}

fn variable(parameter: &Parameter, initial: Initial, device: &Device, dtype: DType) -> Result<Var> {
    let values: Vec<f32> = (0..parameter.count() as u64).into_par_iter().map(|index| initial.value(index)).collect();
    Var::from_tensor(
        &Tensor::from_vec(values, parameter.dims.as_slice(), &Device::Cpu)?.to_dtype(dtype)?.to_device(device)?,
    )
}

/// Layer `index`; `tensors` are its parameters: weight and bias where it has one, or gamma and beta.
fn module(network: &Network, index: usize, tensors: &[Tensor]) -> Result<Module> {
    let source = network.sources(index).next();
    let bias = tensors.get(1).cloned();
    Ok(match (network.layers[index].operation, source, tensors) {
        (Operation::Input, ..) => Module::Input,
        (Operation::Conv2d(conv), Some(Shape::Maps { height, width, .. }), [weight, ..]) => {
            Module::Convolution(Convolution::new(&conv, Extent { height, width }, weight.clone(), bias)?)
        }
        (Operation::BatchNorm(norm), _, [gamma, beta]) => Module::BatchNorm(batch_norm(&norm, gamma, beta)?),
        (Operation::Relu, ..) => Module::Relu,
        (Operation::Relu6, ..) => Module::Relu6,
        (Operation::MaxPool2d(pool), Some(Shape::Maps { height, width, .. }), _) => {
            Module::MaxPool(MaxPool::new(&pool, Extent { height, width }))
        }
        (Operation::GlobalAveragePool, ..) => Module::GlobalAveragePool,
        (Operation::Flatten, ..) => Module::Flatten,
        (Operation::Dense(_), _, [weight, ..]) => Module::Dense(Linear::new(weight.clone(), bias)),
        (Operation::Dropout { rate }, ..) => Module::Dropout(rate),
        (Operation::Add, ..) => Module::Add,
        (operation, ..) => bail!("a {} without its parameters or its source", operation.name()),
    })
}

/// candle's momentum is the weight of the batch, as PyTorch's; ours is the weight of the past.
fn batch_norm(norm: &network::BatchNorm, gamma: &Tensor, beta: &Tensor) -> Result<BatchNorm> {
    let (mean, variance) = (gamma.detach().zeros_like()?, gamma.detach().ones_like()?);
    let (channels, momentum) = (gamma.elem_count(), 1.0 - norm.momentum);
    BatchNorm::new_with_momentum(channels, mean, variance, gamma.clone(), beta.clone(), norm.epsilon, momentum)
}
