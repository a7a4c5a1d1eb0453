//! Computes parts of another engine's step from that engine's operands, to locate a fault.
//!
//! The operators are those of [`op`], in float32, with their own gradients; unweighted sums over a batch are in double
//! precision.

use candle_core::{Device, Result as Computed, Tensor, Var, bail};

use super::masks::Masks;
use super::op;
use super::thread_team::with_all_cores;
use crate::engine::Workload;
use crate::engine::part::{Fused, Numbers, Quantity, Task};
use crate::error::Result;
use crate::network::{BatchNorm, Conv2d, Operation};
use crate::settings::Loss;

/// The expected value of a quantity.
#[derive(Clone, Debug)]
pub struct Expected {
    pub values: Vec<f32>,
    /// The norm that the quantity would have if no terms of its sums cancelled. The gradient of a bias before a batch
    /// norm is zero except for rounding errors, which are small compared with this norm.
    pub natural_norm: f64,
}

/// Computes the wanted quantities of a part.
///
/// # Errors
/// [`crate::error::Kind::Engine`] where the operands do not fit the layer.
pub fn expected(workload: &Workload, task: Task, wanted: &[Quantity]) -> Result<Vec<Expected>> {
    let all = with_all_cores(|| match task {
        Task::Forward(fused) => forward(workload, fused).map(|output| vec![output]),
        Task::Backward { fused, output, gradient } => {
            let slope = unrectified(fused.rectifier, &output.values, gradient);
            backward(workload, fused, slope, wanted)
        }
        Task::Loss { output, targets, scale } => {
            loss_gradient(workload.settings.loss, output, targets, scale).map(|gradient| vec![gradient])
        }
    });
    Ok(all?)
}

/// The layer's operation with its parameters as tensors.
struct Held {
    x: Tensor,
    parameters: Vec<(&'static str, Tensor)>,
}

impl Held {
    /// Autograd follows the tensors whose gradients are wanted.
    fn new(input: Numbers, parameters: Vec<(&'static str, Numbers)>, wanted: &[Quantity]) -> Computed<Self> {
        let x = tensor(input, wanted.contains(&Quantity::InputGradient))?;
        let held = |(name, numbers)| Ok((name, tensor(numbers, wanted.contains(&Quantity::ParameterGradient(name)))?));
        Ok(Self { x, parameters: parameters.into_iter().map(held).collect::<Computed<_>>()? })
    }

    fn get(&self, name: &str) -> Computed<&Tensor> {
        match self.parameters.iter().find(|(own, _)| *own == name) {
            Some((_, tensor)) => Ok(tensor),
            None => bail!("no parameter {name}"),
        }
    }

    /// N x the layer's output, without bias, added layer and rectifier.
    fn operation(&self, workload: &Workload, layer: usize, step: u64) -> Computed<Tensor> {
        let x = &self.x;
        match &workload.network.layers[layer].operation {
            Operation::Conv2d(conv) => op::conv2d(x, self.get("weight")?, None, &Conv2d { bias: false, ..*conv }),
            Operation::Dense(_) => op::dense(x, self.get("weight")?, None),
            Operation::BatchNorm(norm) => {
                let (gamma, beta) = (self.get("gamma")?, self.get("beta")?);
                op::batch_norm(x, gamma, beta, &op::RunningStats::new(gamma.elem_count()), norm)
            }
            Operation::MaxPool2d(pool) => op::max_pool2d(x, pool),
            Operation::GlobalAveragePool => op::global_average_pool(x),
            Operation::Dropout { rate } => {
                op::dropout(x, *rate, Masks { seed: workload.settings.seed, step }.key(layer))
            }
            Operation::Flatten => x.flatten_from(1),
            Operation::Relu | Operation::Relu6 | Operation::Add | Operation::Input => Ok(x.clone()),
        }
    }
}

fn forward(workload: &Workload, fused: Fused) -> Computed<Expected> {
    let Fused { layer, input, parameters, bias, summand, rectifier, step } = fused;
    let natural_norm = match workload.network.layers[layer].operation {
        // The mean over a plane.
        Operation::GlobalAveragePool => norm(&input.values) / input.dims[2..].iter().product::<usize>() as f64,
        _ => 0.0,
    };
    let mut y = Held::new(input, parameters, &[])?.operation(workload, layer, step)?;
    if let Some(bias) = bias {
        let mut dims = vec![1; y.rank()];
        dims[1] = bias.values.len();
        y = y.broadcast_add(&tensor(Numbers { dims, ..bias }, false)?)?;
    }
    if let Some(summand) = summand {
        y = (y + tensor(summand, false)?)?;
    }
    y = match rectifier {
        Some(Operation::Relu) => op::relu(&y)?,
        Some(Operation::Relu6) => op::relu6(&y)?,
        _ => y,
    };
    Ok(Expected { values: numbers(&y)?, natural_norm })
}

/// The gradient in front of a rectifier.
fn unrectified(rectifier: Option<Operation>, output: &[f32], mut gradient: Numbers) -> Numbers {
    let passes = |y: f32| match rectifier {
        Some(Operation::Relu) => y > 0.0,
        Some(Operation::Relu6) => y > 0.0 && y < 6.0,
        _ => true,
    };
    gradient.values.iter_mut().zip(output).filter(|(_, y)| !passes(**y)).for_each(|(slope, _)| *slope = 0.0);
    gradient
}

fn backward(workload: &Workload, fused: Fused, slope: Numbers, wanted: &[Quantity]) -> Computed<Vec<Expected>> {
    let Fused { layer, input, parameters, step, .. } = fused;
    let of_input = match workload.network.layers[layer].operation {
        Operation::BatchNorm(batch_norm) => normalised_norm(&input, &slope, &parameters, batch_norm),
        _ => 0.0,
    };
    let of_slope = norm(&slope.values);
    let held = Held::new(input, parameters, wanted)?;
    let is_followed = |quantity: &Quantity| match quantity {
        Quantity::InputGradient => true,
        Quantity::ParameterGradient(name) => *name != "bias",
        _ => false,
    };
    let followed = match wanted.iter().any(is_followed) {
        true => {
            let y = held.operation(workload, layer, step)?;
            Some((&y * tensor(slope.clone(), false)?)?.sum_all()?.backward()?)
        }
        false => None,
    };
    let gradient = |of: &Tensor| match followed.as_ref().and_then(|gradients| gradients.get(of)) {
        Some(gradient) => numbers(gradient),
        None => bail!("the operation passes no gradient"),
    };
    let expected = |quantity: &Quantity| {
        Ok(match quantity {
            Quantity::InputGradient => Expected { values: gradient(&held.x)?, natural_norm: of_input },
            Quantity::ParameterGradient("bias") => {
                Expected { values: sums_of_channels(&slope), natural_norm: of_slope }
            }
            Quantity::ParameterGradient("weight") => {
                Expected { values: gradient(held.get("weight")?)?, natural_norm: 0.0 }
            }
            Quantity::ParameterGradient(name) => {
                Expected { values: gradient(held.get(name)?)?, natural_norm: of_slope }
            }
            _ => Expected { values: slope.values.clone(), natural_norm: 0.0 },
        })
    };
    wanted.iter().map(expected).collect()
}

fn loss_gradient(loss: Loss, output: Numbers, targets: Numbers, scale: f32) -> Computed<Expected> {
    let (output, targets) = (tensor(output, true)?, tensor(targets, false)?);
    let loss = match loss {
        Loss::CategoricalCrossEntropy => op::softmax_cross_entropy(&output, &targets)?,
        Loss::MeanSquaredError => op::mean_squared_error(&output, &targets)?,
        Loss::BinaryCrossEntropy => op::binary_cross_entropy(&output, &targets)?,
    };
    match loss.backward()?.get(&output) {
        Some(gradient) => Ok(Expected { values: numbers(&(gradient * f64::from(scale))?)?, natural_norm: 0.0 }),
        None => bail!("the loss passes no gradient"),
    }
}

fn tensor(Numbers { dims, values }: Numbers, is_followed: bool) -> Computed<Tensor> {
    match is_followed {
        true => Ok(Var::from_vec(values, dims, &Device::Cpu)?.into_inner()),
        false => Tensor::from_vec(values, dims, &Device::Cpu),
    }
}

fn numbers(tensor: &Tensor) -> Computed<Vec<f32>> {
    tensor.flatten_all()?.to_vec1()
}

fn norm(values: &[f32]) -> f64 {
    values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt()
}

/// The numbers of N x C x ..., channel by channel.
fn by_channel(of: &Numbers) -> impl Iterator<Item = impl Iterator<Item = f64>> {
    let (channels, size) = (of.dims[1], of.dims[2..].iter().product::<usize>().max(1));
    let plane = move |channel: usize| of.values.chunks_exact(size).skip(channel).step_by(channels).flatten();
    (0..channels).map(move |channel| plane(channel).map(|value| f64::from(*value)))
}

fn sums_of_channels(slope: &Numbers) -> Vec<f32> {
    by_channel(slope).map(|channel| channel.sum::<f64>() as f32).collect()
}

/// The norm of `gamma / deviation * slope`. A batch norm's gradient is this without its mean and its part along the
/// input; with two values in a channel, nothing is left of it.
fn normalised_norm(
    input: &Numbers,
    slope: &Numbers,
    parameters: &[(&'static str, Numbers)],
    batch_norm: BatchNorm,
) -> f64 {
    let gammas = parameters.iter().find(|(name, _)| *name == "gamma").map_or(&[][..], |(_, gamma)| &gamma.values);
    let channels = by_channel(input).zip(by_channel(slope)).zip(gammas);
    let squares = channels.map(|((input, slope), gamma)| {
        let values: Vec<f64> = input.collect();
        let count = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
        f64::from(*gamma).powi(2) / (variance + batch_norm.epsilon) * slope.map(|slope| slope.powi(2)).sum::<f64>()
    });
    squares.sum::<f64>().sqrt()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::network::{Builder, Dense, Network, Shape};
    use crate::settings::Settings;

    fn workload(network: Network) -> Workload {
        Workload { network: Arc::new(network), batch_size: 2, settings: Settings::default() }
    }

    fn flat(features: usize, values: &[f32]) -> Numbers {
        Numbers { dims: vec![values.len() / features, features], values: values.to_vec() }
    }

    /// By hand: x = (1, 2) and (3, 4), w = (1, -1), bias 2, summand 10: 1 - 2 + 2 + 10 = 11 and 3 - 4 + 2 + 10 = 11.
    /// Backward, the slopes are 5 and 7, and the second one belongs to an output of 0.
    #[test]
    fn fused_parts_match_a_hand_calculation() {
        let mut b = Builder::new("n", Shape::Flat(2)).unwrap();
        b.then("fc", Dense { out_features: 1, bias: true }).unwrap();
        let workload = workload(b.finish().unwrap());
        let fused = Fused {
            layer: 1,
            input: flat(2, &[1.0, 2.0, 3.0, 4.0]),
            parameters: vec![("weight", flat(2, &[1.0, -1.0]))],
            bias: Some(Numbers { dims: vec![1], values: vec![2.0] }),
            summand: Some(flat(1, &[10.0, 10.0])),
            rectifier: Some(Operation::Relu),
            step: 0,
        };
        let forward = expected(&workload, Task::Forward(fused.clone()), &[Quantity::Output]).unwrap();
        assert_eq!(forward[0].values, [11.0, 11.0]);
        let wanted = [
            Quantity::InputGradient,
            Quantity::SummandGradient,
            Quantity::ParameterGradient("weight"),
            Quantity::ParameterGradient("bias"),
        ];
        let task = Task::Backward { fused, output: flat(1, &[11.0, 0.0]), gradient: flat(1, &[5.0, 7.0]) };
        let found = expected(&workload, task, &wanted).unwrap();
        let values: Vec<&[f32]> = found.iter().map(|expected| expected.values.as_slice()).collect();
        assert_eq!(values, [&[5.0, -5.0, 0.0, 0.0][..], &[5.0, 0.0], &[5.0, 10.0], &[5.0]]);
    }

    /// A channel has two values, 1 and 3. Without its mean and its part along them, nothing is left of a gradient but a
    /// term of epsilon, so rounding errors are compared. By hand: the variance is 1, so that the gradient (4, 0) has
    /// the natural norm 2 x 4 / sqrt(1 + 0.001).
    #[test]
    fn a_gradient_that_cancels_is_compared_with_its_terms() {
        let mut b = Builder::new("n", Shape::Flat(1)).unwrap();
        b.then("bn", BatchNorm { epsilon: 1e-3, ..BatchNorm::default() }).unwrap();
        let workload = workload(b.finish().unwrap());
        let one = |value| Numbers { dims: vec![1], values: vec![value] };
        let fused = Fused {
            layer: 1,
            input: flat(1, &[1.0, 3.0]),
            parameters: vec![("gamma", one(2.0)), ("beta", one(0.0))],
            bias: None,
            summand: None,
            rectifier: None,
            step: 0,
        };
        let task = Task::Backward { fused, output: flat(1, &[0.0; 2]), gradient: flat(1, &[4.0, 0.0]) };
        let found = expected(&workload, task, &[Quantity::InputGradient]).unwrap();
        assert!((found[0].natural_norm - 8.0 / 1.001_f64.sqrt()).abs() < 1e-9);
        assert!(norm(&found[0].values) < 0.01, "{:?}", found[0].values);
    }
}
