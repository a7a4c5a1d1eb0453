//! Computes parts of another engine's step from that engine's operands, to locate a fault.
//!
//! The operators are those of [`super::op`], in float32, with their own gradients; unweighted sums over a batch are in double
//! precision.

use super::loss::loss_gradient;
use super::op::activation::Rectifier;
use super::single::{Single, Slopes};
use super::thread_team::with_all_cores;
use crate::engine::Workload;
use crate::engine::dropout::Masks;
use crate::engine::part::{Fused, Numbers, Quantity, Task};
use crate::error::{Error, Result};
use crate::network::{BatchNorm, Operation};

/// The expected value of a quantity.
#[derive(Clone, Debug)]
pub struct Expected {
    pub values: Vec<f32>,
    /// The norm that the quantity would have if no terms of its sums cancelled. The gradient of a bias before a batch
    /// norm is zero except for rounding errors, which are small compared with this norm.
    pub natural_norm: f64,
}

/// How far numbers are from the expected ones.
#[derive(Clone, Copy, Debug)]
pub struct Distance {
    /// The norm of the differences.
    pub all: f64,
    /// The norm of the expected numbers, or their natural norm if that is larger.
    pub scale: f64,
    /// The number that is off most, as a share of what it may be, and that share.
    pub worst: (usize, f64),
}

/// By how much a single number may be off.
#[derive(Clone, Copy, Debug)]
pub struct LimitOfOne {
    /// As a share of its expected value plus the root mean square of all.
    pub share: f64,
    /// In addition.
    pub smallest: f64,
    /// A number that should be beyond this may be anything.
    pub most: f32,
}

impl Expected {
    /// How far as many numbers are from the expected ones; `None` of none.
    pub fn distance(&self, found: &[f32], LimitOfOne { share, smallest, most }: LimitOfOne) -> Option<Distance> {
        let Self { values: expected, natural_norm } = self;
        let scale = norm(expected).max(*natural_norm).max(f64::MIN_POSITIVE);
        let mean_square = scale / (expected.len() as f64).sqrt();
        let apart = |(found, expected): (&f32, &f32)| match (*found, *expected) {
            (found, expected) if found.is_finite() => (f64::from(found) - f64::from(expected)).abs(),
            // Both overflow.
            (_, expected) if expected.is_nan() || expected.abs() > most => 0.0,
            _ => f64::INFINITY,
        };
        let pairs = || found.iter().zip(expected);
        let off = |pair: (&f32, &f32)| apart(pair) / (share * (f64::from(pair.1.abs()) + mean_square) + smallest);
        let worst = pairs().map(off).enumerate().max_by(|(_, a), (_, b)| a.total_cmp(b))?;
        let all = pairs().map(apart).map(|apart| apart * apart).sum::<f64>().sqrt();
        Some(Distance { all, scale, worst })
    }
}

/// Computes the wanted quantities of a part.
///
/// # Errors
/// [`crate::error::Kind::Engine`] where the operands do not fit the layer.
pub fn expected(workload: &Workload, task: Task, wanted: &[Quantity]) -> Result<Vec<Expected>> {
    with_all_cores(|| match task {
        Task::Forward(fused) => forward(workload, fused).map(|output| vec![output]),
        Task::Backward { fused, output, gradient } => {
            let slope = unrectified(fused.rectifier, &output.values, gradient);
            backward(workload, &fused, slope, wanted)
        }
        Task::Loss { output, targets, scale } => loss_part(workload, &output, &targets, scale).map(|part| vec![part]),
    })
}

/// The layer of a part; `None` where it passes its input on: rectifiers and sums are computed with what they are fused to.
fn single<'a>(workload: &'a Workload, fused: &Fused, parameters: &'a [&'a [f32]]) -> Option<Single<'a, f32>> {
    let Workload { network, batch_size, settings } = workload;
    let masks = Masks { seed: settings.seed, step: fused.step };
    match network.layers[fused.layer].operation {
        Operation::Relu | Operation::Relu6 | Operation::Add | Operation::Input => None,
        _ => Some(Single { network, index: fused.layer, batch: *batch_size, parameters, masks }),
    }
}

fn slices<'a>(parameters: &'a [(&'static str, Numbers)]) -> Vec<&'a [f32]> {
    parameters.iter().map(|(_, numbers)| &*numbers.values).collect()
}

fn forward(workload: &Workload, fused: Fused) -> Result<Expected> {
    let parameters = slices(&fused.parameters);
    let mut y = match single(workload, &fused, &parameters) {
        Some(single) => single.forward(&fused.input.values)?.values,
        None => fused.input.values.clone(),
    };
    let Fused { layer, input, bias, summand, rectifier, .. } = &fused;
    let natural_norm = match workload.network.layers[*layer].operation {
        // The mean over a plane.
        Operation::GlobalAveragePool => norm(&input.values) / input.dims[2..].iter().product::<usize>() as f64,
        _ => 0.0,
    };
    if let Some(Numbers { values: bias, .. }) = bias {
        let plane = y.len() / (workload.batch_size * bias.len()).max(1);
        let planes = y.chunks_exact_mut(plane.max(1)).zip(bias.iter().cycle());
        planes.for_each(|(plane, bias)| plane.iter_mut().for_each(|y| *y += bias));
    }
    if let Some(summand) = summand {
        y.iter_mut().zip(&summand.values).for_each(|(y, summand)| *y += summand);
    }
    let rectifier = rectifier.as_ref().map_or(Rectifier::Identity, Rectifier::of);
    y.iter_mut().for_each(|y| *y = rectifier.range().clamp(*y));
    Ok(Expected { values: y, natural_norm })
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

fn backward(workload: &Workload, fused: &Fused, slope: Numbers, wanted: &[Quantity]) -> Result<Vec<Expected>> {
    let Fused { layer, input, parameters, .. } = fused;
    let of_input = match workload.network.layers[*layer].operation {
        Operation::BatchNorm(batch_norm) => normalised_norm(input, &slope, parameters, batch_norm),
        _ => 0.0,
    };
    let of_slope = norm(&slope.values);
    let is_followed = |quantity: &Quantity| match quantity {
        Quantity::InputGradient => true,
        Quantity::ParameterGradient(name) => *name != "bias",
        _ => false,
    };
    let held = slices(parameters);
    let single = single(workload, fused, &held).filter(|_| wanted.iter().any(is_followed));
    let mut slopes = match single {
        Some(single) => {
            let output = single.forward(&input.values)?;
            single.backward(&input.values, &output, &slope.values, wanted.contains(&Quantity::InputGradient))?
        }
        None => Slopes { source: slope.values.clone(), parameters: Vec::new() },
    };
    let expected = |quantity: &Quantity| {
        Ok(match quantity {
            Quantity::InputGradient => Expected { values: std::mem::take(&mut slopes.source), natural_norm: of_input },
            Quantity::ParameterGradient("bias") => {
                Expected { values: sums_of_channels(&slope), natural_norm: of_slope }
            }
            Quantity::ParameterGradient(name) => {
                let place = parameters.iter().position(|(own, _)| own == name);
                let gradient = place.and_then(|place| slopes.parameters.get_mut(place)).map(std::mem::take);
                let values = gradient.ok_or_else(|| Error::engine(format!("no parameter {name}")))?;
                Expected { values, natural_norm: if *name == "weight" { 0.0 } else { of_slope } }
            }
            _ => Expected { values: slope.values.clone(), natural_norm: 0.0 },
        })
    };
    wanted.iter().map(expected).collect()
}

fn loss_part(workload: &Workload, output: &Numbers, targets: &Numbers, scale: f32) -> Result<Expected> {
    let Workload { batch_size, settings, .. } = workload;
    if output.values.len() != targets.values.len() || output.values.is_empty() {
        return Err(Error::engine("output and targets of different sizes"));
    }
    let mut values = vec![0.0; output.values.len()];
    loss_gradient(settings.loss, &output.values, &targets.values, *batch_size, &mut values);
    values.iter_mut().for_each(|value| *value *= scale);
    Ok(Expected { values, natural_norm: 0.0 })
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
