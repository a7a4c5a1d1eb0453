//! cuDNN's poolings and batch norms by plain loops in float64, by their definitions.

use super::memory::Memory;
use super::order::{from_nchw, to_nchw};
use crate::engine::cudnn::call::Slice;
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::engine::cudnn::replacement::{LibraryCall, Norm, NormTask, Pool, PoolTask, Taken};

/// Executes a call.
///
/// # Panics
/// Where a slice does not have the size that the call says.
pub fn call(memory: &mut Memory, call: &LibraryCall) {
    match call {
        LibraryCall::Pool(pool, task) => pooling(memory, pool, task),
        LibraryCall::Norm(norm, task) => normalisation(memory, norm, task),
    }
}

fn planes(memory: &Memory, slice: Slice, element: Element, maps: FeatureMaps) -> Vec<f64> {
    assert_eq!(slice.bytes, maps.count() * element.bytes(), "{slice:?} for {maps:?}");
    to_nchw(&memory.read(slice, element), maps).into_iter().map(f64::from).collect()
}

fn write(memory: &mut Memory, slice: Slice, stored: (Element, FeatureMaps), values: &[f64]) {
    let values: Vec<f32> = values.iter().map(|value| *value as f32).collect();
    memory.write(slice, stored.0, &from_nchw(&values, stored.1));
}

/// The inputs of each window, by the index of its output.
fn windows(pool: &Pool, mut visit: impl FnMut(usize, &[usize])) {
    let Pool { input, output, window, stride, padding, .. } = *pool;
    assert_eq!((input.batch, input.channels, input.layout), (output.batch, output.channels, output.layout));
    let along = |at: usize, size: usize, stride: usize, window: usize, padding: usize| {
        let inside = (at * stride..at * stride + window).filter_map(move |place| place.checked_sub(padding));
        inside.filter(move |place| *place < size)
    };
    for plane in 0..output.batch * output.channels {
        for (p, q) in (0..output.height).flat_map(|p| (0..output.width).map(move |q| (p, q))) {
            let rows = along(p, input.height, stride.height, window.height, padding.height);
            let inputs: Vec<usize> = rows
                .flat_map(|h| {
                    let columns = along(q, input.width, stride.width, window.width, padding.width);
                    columns.map(move |w| (plane * input.height + h) * input.width + w)
                })
                .collect();
            visit((plane * output.height + p) * output.width + q, &inputs);
        }
    }
}

fn pooling(memory: &mut Memory, pool: &Pool, task: &PoolTask) {
    let Pool { element, taken, input, output, window, .. } = *pool;
    let chosen = |x: &[f64], inputs: &[usize]| {
        inputs.iter().copied().reduce(|best, at| if x[at] > x[best] { at } else { best }).expect("a window has inputs")
    };
    let share = 1.0 / window.area() as f64;
    match *task {
        PoolTask::Forward { x, y } => {
            let (x, mut values) = (planes(memory, x, element, input), vec![0.0; output.count()]);
            windows(pool, |at, inputs| {
                values[at] = match taken {
                    Taken::Maximum => x[chosen(&x, inputs)],
                    Taken::Mean => share * inputs.iter().map(|&from| x[from]).sum::<f64>(),
                };
            });
            write(memory, y, (element, output), &values);
        }
        PoolTask::Backward { x, dy, dx, .. } => {
            let (x, dy) = (planes(memory, x, element, input), planes(memory, dy, element, output));
            let mut sums = vec![0.0; input.count()];
            windows(pool, |at, inputs| match taken {
                Taken::Maximum => sums[chosen(&x, inputs)] += dy[at],
                Taken::Mean => inputs.iter().for_each(|&to| sums[to] += share * dy[at]),
            });
            write(memory, dx, (element, input), &sums);
        }
    }
}

fn normalisation(memory: &mut Memory, norm: &Norm, task: &NormTask) {
    let Norm { element, maps, epsilon, momentum } = *norm;
    let of_channel = FeatureMaps { batch: 1, height: 1, width: 1, ..maps };
    let float = (Element::F32, of_channel);
    let channel = |at: usize| at / maps.positions() % maps.channels;
    let count = maps.per_channel() as f64;
    let numbers = |memory: &Memory, slice| planes(memory, slice, Element::F32, of_channel);
    let sums = |values: &dyn Fn(usize) -> f64| {
        let mut sums = vec![0.0; maps.channels];
        (0..maps.count()).for_each(|at| sums[channel(at)] += values(at));
        sums
    };
    match *task {
        NormTask::Forward { x, gamma, beta, running_mean, running_variance, mean, inverse_deviation, y } => {
            let x = planes(memory, x, element, maps);
            let means: Vec<f64> = sums(&|at| x[at]).iter().map(|sum| sum / count).collect();
            let squares = sums(&|at| (x[at] - means[channel(at)]).powi(2));
            let inverse: Vec<f64> = squares.iter().map(|sum| 1.0 / (sum / count + f64::from(epsilon)).sqrt()).collect();
            let (gamma, beta) = (numbers(memory, gamma), numbers(memory, beta));
            let value = |at: usize| {
                let c = channel(at);
                gamma[c] * (x[at] - means[c]) * inverse[c] + beta[c]
            };
            let values: Vec<f64> = (0..x.len()).map(value).collect();
            write(memory, y, (element, maps), &values);
            let unbiased: Vec<f64> = squares.iter().map(|sum| sum / (count - 1.0).max(1.0)).collect();
            let kept = f64::from(momentum);
            for (slice, batch) in [(running_mean, &means), (running_variance, &unbiased)] {
                let old = numbers(memory, slice);
                let new: Vec<f64> = old.iter().zip(batch).map(|(old, new)| kept * old + (1.0 - kept) * new).collect();
                write(memory, slice, float, &new);
            }
            write(memory, mean, float, &means);
            write(memory, inverse_deviation, float, &inverse);
        }
        NormTask::Backward { x, dy, gamma, mean, inverse_deviation, dgamma, dbeta, dx } => {
            let (x, dy) = (planes(memory, x, element, maps), planes(memory, dy, element, maps));
            let (gamma, mean) = (numbers(memory, gamma), numbers(memory, mean));
            let inverse = numbers(memory, inverse_deviation);
            let normal = |at: usize| (x[at] - mean[channel(at)]) * inverse[channel(at)];
            let (of_gamma, of_beta) = (sums(&|at| dy[at] * normal(at)), sums(&|at| dy[at]));
            let value = |at: usize| {
                let c = channel(at);
                gamma[c] * inverse[c] * (dy[at] - of_beta[c] / count - normal(at) * of_gamma[c] / count)
            };
            let values: Vec<f64> = (0..x.len()).map(value).collect();
            write(memory, dx, (element, maps), &values);
            write(memory, dgamma, float, &of_gamma);
            write(memory, dbeta, float, &of_beta);
        }
    }
}
