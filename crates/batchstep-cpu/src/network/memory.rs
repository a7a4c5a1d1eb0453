//! How much memory training takes: an estimate, so that a cell that cannot fit is refused and not killed.

use super::Network;
use super::layer::Operation;

/// Everything is counted in fp32.
const BYTES_PER_SCALAR: u64 = 4;

impl Network {
    /// The bytes that a step has to keep between forward and backward, in fp32: the batch, and the output of every layer
    /// but of flattenings, which are views.
    pub fn activation_bytes(&self, batch: usize) -> u64 {
        let kept = self.layers.iter().filter(|layer| layer.operation != Operation::Flatten);
        let scalars = kept.fold(0, |sum: u64, layer| sum.saturating_add(layer.output.count() as u64));
        scalars.saturating_mul(batch as u64).saturating_mul(BYTES_PER_SCALAR)
    }

    /// An estimate of the peak memory of a training step, in bytes of fp32:
    ///
    /// - every parameter and running statistic once;
    /// - every gradient of a parameter once;
    /// - the optimizer's state: `optimizer_state_copies` scalars for each trainable one (SGD 0, momentum and RMSprop 1,
    ///   Adam and AdamW 2);
    /// - [`Network::activation_bytes`];
    /// - the gradients of activations that are alive together at the worst moment of the backward pass.
    ///
    /// It is the peak of an engine that keeps every output to the end of the step, as candle's autograd does. An engine that
    /// works in place or shares buffers needs less. Workspaces, indices of maxima, and the allocator's own loss are not in
    /// it: leave a margin.
    pub fn training_bytes(&self, batch: usize, optimizer_state_copies: usize) -> u64 {
        let trainable = self.trainable_count() as u64;
        let copies = (optimizer_state_copies as u64).saturating_add(1);
        let state = trainable.saturating_mul(copies).saturating_add(self.parameter_count() as u64);
        let gradients = self.peak_gradient_scalars().saturating_mul(batch as u64);
        state.saturating_add(gradients).saturating_mul(BYTES_PER_SCALAR).saturating_add(self.activation_bytes(batch))
    }

    /// The most scalars, for one example, that gradients of activations hold at one moment: a layer's own goes when those of
    /// its sources are there; a skip connection's waits until its source's turn.
    fn peak_gradient_scalars(&self) -> u64 {
        let size = |index: usize| self.layers[index].output.count() as u64;
        let last = self.layers.len() - 1;
        let mut alive = vec![false; self.layers.len()];
        alive[last] = true;
        let (mut now, mut peak) = (size(last), size(last));
        for index in (1..=last).rev().filter(|&index| self.passes_gradient(index)) {
            // A view shares its buffer with its source: the gradient only changes its owner.
            let view = self.layers[index].operation == Operation::Flatten;
            for &source in self.layers[index].sources.iter().filter(|&&source| source > 0) {
                // A second gradient of one source lives beside the first until both are added up.
                let beside = if view { 0 } else { size(source) };
                peak = peak.max(now.saturating_add(beside));
                if !alive[source] {
                    alive[source] = true;
                    now = now.saturating_add(size(source));
                }
            }
            now = now.saturating_sub(size(index));
        }
        peak
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Builder, Conv2d, Dense, Shape};
    use super::*;

    // By hand: mlp 2-20-5-1 has 171 parameters; it keeps 2 + 20 + 20 + 5 + 5 + 1 = 53 numbers for each example; the most
    // gradients at once are those of fc1_relu and fc1, 20 + 20.
    #[test]
    fn the_memory_of_a_perceptron_matches_a_hand_calculation() {
        let network = Network::by_name("mlp", Shape::Flat(2), 1).unwrap();
        assert_eq!(network.activation_bytes(10), 4 * 530);
        assert_eq!(network.training_bytes(10, 0), 4 * (171 + 171 + 530 + 400));
        assert_eq!(network.training_bytes(10, 2), 4 * (171 + 171 + 2 * 171 + 530 + 400));
    }

    // 2x3x3 everywhere, 18 numbers. At the sum: its own gradient, and those of `a` and `b`. At `b`: its own, that of `a` from
    // the skip, and the second one of `a` beside it.
    #[test]
    fn a_skip_connection_holds_its_gradient() {
        let mut b = Builder::new("test", Shape::Maps { channels: 2, height: 3, width: 3 }).unwrap();
        let a = b.then("a", Conv2d { bias: false, ..Conv2d::square(2, 1) }).unwrap();
        let other = b.then("b", Operation::Relu).unwrap();
        b.add("sum", Operation::Add, &[a, other]).unwrap();
        let network = b.finish().unwrap();
        assert_eq!(network.peak_gradient_scalars(), 3 * 18);
        assert_eq!(network.training_bytes(1, 0), 4 * (4 + 4 + 4 * 18 + 3 * 18));
    }

    #[test]
    fn a_flattening_takes_no_extra_memory() {
        let mut b = Builder::new("test", Shape::Maps { channels: 2, height: 3, width: 3 }).unwrap();
        b.then("conv", Conv2d::square(2, 1)).unwrap();
        b.then("flatten", Operation::Flatten).unwrap();
        b.then("fc", Dense { out_features: 1, bias: false }).unwrap();
        let network = b.finish().unwrap();
        assert_eq!(network.activation_bytes(1), 4 * (18 + 18 + 1));
        assert_eq!(network.peak_gradient_scalars(), 18 + 1);
    }

    #[test]
    fn an_absurd_batch_saturates() {
        let network = Network::by_name("mlp", Shape::Flat(2), 1).unwrap();
        assert_eq!(network.training_bytes(usize::MAX, usize::MAX), u64::MAX);
    }
}
