//! The work of a layer: floating-point operations, and the fewest bytes that have to move.
//!
//! The convention, for a batch of training:
//! - A multiply-add is 2 FLOPs. A comparison, an addition and a multiplication are 1 each. Divisions and square roots for
//!   each channel, random numbers and index arithmetic are not counted.
//! - A convolution counts every weight of every window, those that fall on padding too, as cuDNN and the published figures
//!   do; and it counts direct convolution, whatever algorithm runs (Winograd does less, FFT other work).
//! - Bytes: each operand is read once and each result written once, as if the caches were perfect. An operand is what the
//!   mathematics needs: the gradient of a ReLU or of a max-pooling reads the layer's input. Real traffic is higher: a batch
//!   norm that does not fit in a cache reads its input twice.
//! - Flattening is a view, and the gradient of a sum is passed on: both move nothing. Where one layer feeds several, adding
//!   up their gradients is not counted, since each may be accumulated in place.
//! - The loss and the optimizer belong to no layer, and are not here.

use super::Network;
use super::layer::{Conv2d, Dense, MaxPool2d, Operation};
use crate::settings::named;

named! {
    /// What a layer does in a training step, in the order in which the step comes to it.
    Direction {
        /// From the input to the output.
        Forward = "forward",
        /// From the gradient of the output to the gradient of the input.
        BackwardData = "backward_data",
        /// From the gradient of the output to the gradients of the layer's parameters.
        BackwardWeights = "backward_weights",
    }
}

/// Work: floating-point operations, and the fewest bytes moved.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    pub flops: f64,
    pub bytes: f64,
}

/// How a layer's output comes about: each of its numbers is a sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sides {
    /// Terms of a sum: the places of a filter, or the features that go in; 1 of a layer without weights.
    pub terms: f64,
    /// Channels, or features, that come out.
    pub channels: f64,
    /// Places of a channel; 1 of features.
    pub places: f64,
}

/// The scalars that a layer handles in a batch.
struct Sizes {
    /// In all its sources together.
    input: f64,
    output: f64,
    channels: f64,
    weight: f64,
    bias: f64,
    multiply_adds: f64,
}

impl Network {
    /// The work of layer `index` in one direction, for a batch, with all tensors of `bytes_per_element`. `None` where the
    /// layer does nothing then: the input, a flattening, the parameters of a layer that has none, and the gradient of an
    /// input with no parameter before it, such as that of the first convolution.
    pub fn cost(&self, index: usize, batch: usize, direction: Direction, bytes_per_element: usize) -> Option<Cost> {
        if direction == Direction::BackwardData && !self.passes_gradient(index) {
            return None;
        }
        let operation = self.layers[index].operation;
        let sizes = self.sizes(index, batch);
        let (flops, elements) = match direction {
            Direction::Forward => forward(operation, &sizes),
            Direction::BackwardData => backward_data(operation, &sizes),
            Direction::BackwardWeights => backward_weights(operation, &sizes),
        }?;
        Some(Cost { flops, bytes: elements * bytes_per_element as f64 })
    }

    /// The multiply-adds of convolutions and dense layers for one example, forward: the figure that papers give.
    pub fn multiply_adds(&self) -> f64 {
        (0..self.layers.len()).map(|index| self.multiply_adds_of(index)).sum()
    }

    /// The same for layer `index`; 0 for a layer without weights.
    pub fn multiply_adds_of(&self, index: usize) -> f64 {
        self.sizes(index, 1).multiply_adds
    }

    /// The sides of layer `index`.
    pub fn sides(&self, index: usize) -> Sides {
        let Sizes { output, channels, weight, .. } = self.sizes(index, 1);
        Sides { terms: (weight / channels).max(1.0), channels, places: output / channels }
    }

    /// True where a gradient has to reach the input of layer `index`, because there is a parameter before it.
    pub fn passes_gradient(&self, index: usize) -> bool {
        let trained = self.trained(index);
        self.layers[index].sources.iter().any(|&source| trained[source])
    }

    /// For each of the first layers whether it, or one before it, has parameters.
    pub fn trained(&self, layers: usize) -> Vec<bool> {
        let mut trained = vec![false; layers];
        for index in 0..layers {
            trained[index] = self.trainable_of(index).next().is_some()
                || self.layers[index].sources.iter().any(|&source| trained[source]);
        }
        trained
    }

    fn sizes(&self, index: usize, batch: usize) -> Sizes {
        let layer = &self.layers[index];
        let batch = batch as f64;
        let (mut weight, mut bias) = (0.0, 0.0);
        for parameter in self.parameters_of(index) {
            match parameter.name {
                "weight" => weight = parameter.count() as f64,
                "bias" => bias = parameter.count() as f64,
                _ => {}
            }
        }
        // Each output channel's weights meet each of its positions once.
        let positions = layer.output.count() as f64 / layer.output.channels() as f64;
        Sizes {
            input: self.sources(index).map(|source| source.count() as f64).sum::<f64>() * batch,
            output: layer.output.count() as f64 * batch,
            channels: layer.output.channels() as f64,
            weight,
            bias,
            multiply_adds: weight * positions * batch,
        }
    }
}

/// FLOPs and scalars moved.
type FlopsAndScalars = Option<(f64, f64)>;

fn forward(operation: Operation, s: &Sizes) -> FlopsAndScalars {
    let moved = s.input + s.output;
    match operation {
        Operation::Input | Operation::Flatten => None,
        Operation::Conv2d(Conv2d { bias, .. }) | Operation::Dense(Dense { bias, .. }) => {
            let bias_additions = if bias { s.output } else { 0.0 };
            Some((2.0 * s.multiply_adds + bias_additions, moved + s.weight + s.bias))
        }
        // For each element: add to the mean (1), subtract it and add the square (3), scale and shift (2). For each channel:
        // gamma and beta read, the running pair read and written.
        Operation::BatchNorm(_) => Some((6.0 * s.input, moved + 6.0 * s.channels)),
        Operation::Relu | Operation::Dropout { .. } | Operation::Add => Some((s.output, moved)),
        Operation::Relu6 => Some((2.0 * s.output, moved)),
        Operation::MaxPool2d(MaxPool2d { kernel, .. }) => Some(((kernel.area() as f64 - 1.0) * s.output, moved)),
        Operation::GlobalAveragePool => Some((s.input, moved)),
    }
}

fn backward_data(operation: Operation, s: &Sizes) -> FlopsAndScalars {
    match operation {
        Operation::Input | Operation::Flatten | Operation::Add => None,
        Operation::Conv2d(_) | Operation::Dense(_) => Some((2.0 * s.multiply_adds, s.output + s.weight + s.input)),
        // dx = a * dy + b * x + c with factors for each channel, from gamma, the batch's mean and variance, and the
        // gradients of gamma and beta.
        Operation::BatchNorm(_) => Some((4.0 * s.input, s.output + 2.0 * s.input + 5.0 * s.channels)),
        Operation::Relu => Some((s.output, s.output + 2.0 * s.input)),
        Operation::Relu6 => Some((2.0 * s.output, s.output + 2.0 * s.input)),
        // Each gradient is added at the place of its maximum.
        Operation::MaxPool2d(_) => Some((s.output, s.output + 2.0 * s.input)),
        Operation::GlobalAveragePool | Operation::Dropout { .. } => Some((s.output, s.output + s.input)),
    }
}

fn backward_weights(operation: Operation, s: &Sizes) -> FlopsAndScalars {
    match operation {
        Operation::Conv2d(Conv2d { bias, .. }) | Operation::Dense(Dense { bias, .. }) => {
            let bias_additions = if bias { s.output } else { 0.0 };
            Some((2.0 * s.multiply_adds + bias_additions, s.input + s.output + s.weight + s.bias))
        }
        // For each element: normalise it (2), add dy * x^ (2), add dy (1). For each channel: mean and variance read, two
        // gradients written.
        Operation::BatchNorm(_) => Some((5.0 * s.input, s.input + s.output + 4.0 * s.channels)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{BatchNorm, Builder, Shape};
    use super::*;

    /// 2x4x4 -> conv 3x3 to 3 channels -> 3x2x2 -> batch norm -> ReLU -> max-pool 2x2 -> flatten -> dense to 5.
    fn tiny() -> Network {
        let mut b = Builder::new("tiny", Shape::Maps { channels: 2, height: 4, width: 4 }).unwrap();
        b.then("conv", Conv2d::square(3, 3)).unwrap();
        b.then("bn", BatchNorm::default()).unwrap();
        b.then("relu", Operation::Relu).unwrap();
        b.then("pool", MaxPool2d::square(2)).unwrap();
        b.then("flatten", Operation::Flatten).unwrap();
        b.then("fc", Dense { out_features: 5, bias: true }).unwrap();
        b.finish().unwrap()
    }

    #[test]
    fn the_sides_of_each_layer_match_a_hand_calculation() {
        let network = tiny();
        let of = |layer| {
            let Sides { terms, channels, places } = network.sides(layer);
            [terms, channels, places]
        };
        // 2 channels x 3 x 3; batch norm; pooled to one place; 3 features to 5.
        assert_eq!([1, 2, 4, 6].map(of), [[18.0, 3.0, 4.0], [1.0, 3.0, 4.0], [1.0, 3.0, 1.0], [3.0, 5.0, 1.0]]);
    }

    fn cost(flops: f64, elements: f64) -> Option<Cost> {
        Some(Cost { flops, bytes: 4.0 * elements })
    }

    // By hand, for a batch of 10. Convolution: 54 weights at 4 positions are 216 multiply-adds for each example; 320 numbers
    // go in, 120 come out, 57 are parameters. Dense: 15 weights; 30 in, 50 out, 20 parameters.
    #[test]
    fn the_work_of_each_layer_matches_a_hand_calculation() {
        let network = tiny();
        let of = |layer, direction| network.cost(layer, 10, direction, 4);
        use Direction::{BackwardData, BackwardWeights, Forward};
        assert_eq!(of(1, Forward), cost(4320.0 + 120.0, 320.0 + 57.0 + 120.0));
        assert_eq!(of(1, BackwardData), None);
        assert_eq!(of(1, BackwardWeights), cost(4320.0 + 120.0, 320.0 + 120.0 + 57.0));
        assert_eq!(of(2, Forward), cost(6.0 * 120.0, 240.0 + 18.0));
        assert_eq!(of(2, BackwardData), cost(4.0 * 120.0, 360.0 + 15.0));
        assert_eq!(of(2, BackwardWeights), cost(5.0 * 120.0, 240.0 + 12.0));
        assert_eq!(of(3, Forward), cost(120.0, 240.0));
        assert_eq!(of(3, BackwardData), cost(120.0, 360.0));
        assert_eq!(of(3, BackwardWeights), None);
        assert_eq!(of(4, Forward), cost(3.0 * 30.0, 120.0 + 30.0));
        assert_eq!(of(4, BackwardData), cost(30.0, 30.0 + 240.0));
        assert_eq!(of(5, Forward), None);
        assert_eq!(of(6, Forward), cost(300.0 + 50.0, 30.0 + 20.0 + 50.0));
        assert_eq!(of(6, BackwardData), cost(300.0, 50.0 + 15.0 + 30.0));
        assert_eq!(of(6, BackwardWeights), cost(300.0 + 50.0, 30.0 + 50.0 + 20.0));
    }

    // A depthwise 3x3 convolution has 9 multiply-adds for each output, whatever the number of channels: 9 * 6 * 4 * 4.
    #[test]
    fn a_depthwise_convolution_works_channel_by_channel() {
        let mut b = Builder::new("test", Shape::Maps { channels: 6, height: 6, width: 6 }).unwrap();
        b.then("dw", Conv2d { groups: 6, bias: false, ..Conv2d::square(6, 3) }).unwrap();
        let network = b.finish().unwrap();
        assert_eq!(network.multiply_adds(), 864.0);
        assert_eq!(network.cost(1, 2, Direction::Forward, 2).unwrap().flops, 4.0 * 864.0);
        assert_eq!(network.cost(1, 2, Direction::Forward, 2).unwrap().bytes, 2.0 * (2.0 * (216.0 + 96.0) + 54.0));
    }

    #[test]
    fn no_gradient_reaches_the_data() {
        let mut b = Builder::new("test", Shape::Maps { channels: 2, height: 4, width: 4 }).unwrap();
        b.then("relu", Operation::Relu).unwrap();
        b.then("conv", Conv2d::square(2, 1)).unwrap();
        b.add("sum", Operation::Add, &[1, 2]).unwrap();
        b.then("last", Conv2d::square(2, 1)).unwrap();
        let network = b.finish().unwrap();
        let passes: Vec<bool> = (0..5).map(|index| network.passes_gradient(index)).collect();
        assert_eq!(passes, [false, false, false, true, true]);
    }
}
