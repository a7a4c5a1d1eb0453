//! The parameters of a network, with the values of [`Initial`].

use super::op::batch_norm::RunningStats;
use super::op::huge_pages::advise;
use super::op::parallel::for_each_piece;
use super::op::scalar::{Scalar, vectorised};
use crate::engine::train::Learnt;
use crate::error::{Error, Result};
use crate::network::Network;
use crate::network::initial::Initial;

/// Scalars that one task fills: enough to outweigh the task, few enough to share the work evenly.
const CHUNK: usize = 1 << 15;

/// What one layer holds.
#[derive(Debug)]
struct LayerParameters<T> {
    /// The trainable ones.
    tensors: Vec<Vec<T>>,
    stats: Option<RunningStats>,
}

/// Every parameter of a network.
#[derive(Debug)]
pub struct Parameters<T> {
    layers: Vec<LayerParameters<T>>,
}

impl<T: Scalar> Parameters<T> {
    /// Allocates the parameters of `network` and gives them the values of `seed`.
    pub fn new(network: &Network, seed: u64) -> Self {
        let layer = |index| {
            let tensors = network.trainable_of(index).map(|tensor| vec![T::ZERO; tensor.count()]).collect();
            LayerParameters { tensors, stats: None }
        };
        let mut parameters = Self { layers: (0..network.layers.len()).map(layer).collect() };
        parameters.reset(network, seed);
        parameters
    }

    /// Gives every parameter and running statistic its initial value again, in the same memory.
    pub fn reset(&mut self, network: &Network, seed: u64) {
        for (index, layer) in self.layers.iter_mut().enumerate() {
            let (trainable, state): (Vec<_>, Vec<_>) =
                network.parameters_of(index).into_iter().partition(|p| p.trainable);
            for (number, (tensor, parameter)) in layer.tensors.iter_mut().zip(&trainable).enumerate() {
                fill(tensor, Initial::of(parameter, seed, index, number));
            }
            layer.stats = state.first().map(|parameter| RunningStats::new(parameter.count()));
        }
    }

    /// Overwrites all parameters and running statistics.
    ///
    /// # Errors
    /// Where their numbers or sizes differ.
    pub fn take_over(&mut self, learnt: &Learnt) -> Result<()> {
        let own: Vec<usize> = self.iter().map(<[T]>::len).collect();
        let stats = self.layers.iter().filter(|layer| layer.stats.is_some()).count();
        if !own.iter().copied().eq(learnt.parameters.iter().map(Vec::len)) || stats != learnt.running.len() {
            let what = format!(
                "{} parameters and {} running statistics do not fit the network, which has {} and {stats}",
                learnt.parameters.len(),
                learnt.running.len(),
                own.len()
            );
            return Err(Error::engine(what));
        }
        for (own, values) in self.iter_mut().zip(&learnt.parameters) {
            own.iter_mut().zip(values).for_each(|(own, value)| *own = T::from_f64(*value));
        }
        let stats = self.layers.iter_mut().filter_map(|layer| layer.stats.as_mut());
        stats.zip(&learnt.running).try_for_each(|(stats, running)| stats.set(running))
    }

    /// The trainable tensors of layer `layer`, in the order of [`Network::parameters_of`]:
    /// a weight and its bias, or gamma and beta.
    pub fn of_layer(&self, layer: usize) -> &[Vec<T>] {
        &self.layers[layer].tensors
    }

    /// The running statistics of layer `layer`, where it is a batch norm.
    pub fn stats(&self, layer: usize) -> Option<&RunningStats> {
        self.layers[layer].stats.as_ref()
    }

    /// The same, for writing.
    pub fn stats_mut(&mut self, layer: usize) -> Option<&mut RunningStats> {
        self.layers[layer].stats.as_mut()
    }

    /// Every trainable tensor, in the order of the layers.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        self.layers.iter().flat_map(|layer| &layer.tensors).map(Vec::as_slice)
    }

    /// The same, for writing.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut [T]> {
        self.layers.iter_mut().flat_map(|layer| &mut layer.tensors).map(Vec::as_mut_slice)
    }

    /// The bytes that the trainable tensors hold.
    pub fn bytes(&self) -> u64 {
        self.iter().map(|values| size_of_val(values) as u64).sum()
    }
}

fn fill<T: Scalar>(values: &mut [T], initial: Initial) {
    advise(values);
    for_each_piece(values, CHUNK, |number, chunk| match initial {
        Initial::Constant(value) => chunk.fill(value.into()),
        initial => vectorised(
            #[inline(always)]
            || {
                let first = (number * CHUNK) as u64;
                for (index, value) in (first..).zip(chunk) {
                    *value = initial.value(index).into();
                }
            },
        ),
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::thread_team::by_three;
    use crate::network::Shape;

    fn small<T: Scalar>() -> (Network, Parameters<T>) {
        let input = Shape::Maps { channels: 3, height: 32, width: 32 };
        let network = Network::by_name("mobilenet", input, 4).unwrap();
        let parameters = Parameters::new(&network, 7);
        (network, parameters)
    }

    #[test]
    fn weights_fill_the_interval_of_glorot_and_biases_are_zero() {
        let (network, parameters) = small::<f32>();
        let layer = network.layers.iter().position(|layer| layer.name == "conv_pw_13").unwrap();
        let weight: Vec<f64> = parameters.of_layer(layer)[0].iter().copied().map(f64::from).collect();
        // 1024 channels in and out, kernel 1: sqrt(6 / 2048) = 0.054127; the variance of the law is limit^2 / 3.
        let limit = 0.054127;
        let extreme = weight.iter().fold(0.0f64, |extreme, w| extreme.max(w.abs()));
        assert!(extreme < limit && extreme > 0.9999 * limit, "{extreme}");
        let variance = weight.iter().map(|w| w * w).sum::<f64>() / weight.len() as f64;
        assert!((variance / (limit * limit / 3.0) - 1.0).abs() < 0.01, "{variance}");
        let last = network.layers.len() - 1;
        assert!(parameters.of_layer(last)[1].iter().all(|&b| b == 0.0));
        assert!(parameters.of_layer(2)[0].iter().all(|&g| g == 1.0));
    }

    #[test]
    fn values_are_the_same_in_both_types_with_any_threads_and_after_a_reset_in_the_same_memory() {
        let (network, mut parameters) = small::<f32>();
        let by_three = by_three(|| small::<f64>().1);
        for (a, b) in parameters.iter().zip(by_three.iter()) {
            assert!(a.iter().copied().map(f64::from).eq(b.iter().copied()));
        }
        let before: Vec<_> = parameters.iter().map(|values| (values.as_ptr(), values.to_vec())).collect();
        parameters.iter_mut().for_each(|values| values.fill(9.0));
        parameters.reset(&network, 7);
        assert!(parameters.iter().map(|values| (values.as_ptr(), values.to_vec())).eq(before));
    }
}
