//! One layer against PyTorch's values and gradients, and reproducible numbers for tests.

use std::path::Path;
use std::sync::Arc;

use safetensors::SafeTensors;

use crate::engine::cpu::op::batch_norm::Moments;
use crate::engine::cpu::op::scalar::{Scalar, doubles};
use crate::engine::cpu::single::Single;
use crate::engine::cpu::thread_team::by_three;
use crate::engine::dropout::Masks;
use crate::engine::reference::array::Array;
use crate::engine::reference::pass::Pass;
use crate::network::{BatchNorm, Builder, Conv2d, Dense, Extent, MaxPool2d, Network, Operation, Padding, Shape};
use crate::random::Rng;

/// A layer with a batch and its parameters.
#[derive(Clone)]
pub struct Case {
    network: Arc<Network>,
    pub batch: usize,
    /// The input, then the parameters.
    pub operands: Vec<Vec<f64>>,
    masks: Masks,
}

/// What a layer computes.
pub struct Found {
    pub y: Vec<f64>,
    /// The gradients of the operands, in their order.
    pub gradients: Vec<Vec<f64>>,
    pub moments: Vec<Moments>,
}

impl Case {
    pub fn new(operation: impl Into<Operation>, input: Shape, batch: usize, operands: Vec<Vec<f64>>) -> Self {
        let mut builder = Builder::new("one layer", input).unwrap();
        builder.then("layer", operation).unwrap();
        Self { network: Arc::new(builder.finish().unwrap()), batch, operands, masks: Masks { seed: 7, step: 0 } }
    }

    /// The case of that name among [`pytorch_cases`].
    pub fn of_pytorch(name: &str, operation: Operation) -> Self {
        let (input, batch) = expected(name, "x").batch();
        let mut case = Self::new(operation, input, batch, Vec::new());
        case.operands = case.names().iter().map(|operand| expected(name, operand).values).collect();
        case
    }

    /// The names of the operands.
    fn names(&self) -> Vec<&'static str> {
        ["x"].into_iter().chain(self.network.trainable_of(1).map(|parameter| parameter.name)).collect()
    }

    /// The same with operands that are uniform in [-1, 1).
    pub fn random(operation: impl Into<Operation>, input: Shape, batch: usize, random: &mut Rng) -> Self {
        let mut case = Self::new(operation, input, batch, Vec::new());
        let parameters = case.network.trainable_of(1).map(|parameter| parameter.count());
        let counts: Vec<usize> = [batch * input.count()].into_iter().chain(parameters).collect();
        case.operands = counts.into_iter().map(|count| reals(random, count)).collect();
        case
    }

    /// The same with the dropout masks of another seed.
    pub fn seeded(self, seed: u64) -> Self {
        Self { masks: Masks { seed, ..self.masks }, ..self }
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.batch * self.network.output().count()
    }

    /// Computes in `T`. `dy` is the gradient of the output.
    pub fn run<T: Scalar>(&self, dy: &[f64]) -> Found {
        let converted = |values: &[f64]| -> Vec<T> { values.iter().map(|value| T::from_f64(*value)).collect() };
        let operands: Vec<Vec<T>> = self.operands.iter().map(|values| converted(values)).collect();
        let slices: Vec<&[T]> = operands.iter().map(Vec::as_slice).collect();
        let (x, parameters) = (slices[0], &slices[1..]);
        let Self { network, batch, masks, .. } = self;
        let single = Single { network, index: 1, batch: *batch, parameters, masks: *masks };
        let output = single.forward(x).unwrap();
        let slopes = single.backward(x, &output, &converted(dy), true).unwrap();
        let gradients = [&slopes.source].into_iter().chain(&slopes.parameters).map(|values| doubles(values)).collect();
        Found { y: doubles(&output.values), gradients, moments: output.moments }
    }

    /// What [`crate::engine::reference`] computes.
    pub fn by_definition(&self, dy: &[f64]) -> Found {
        let Self { network, batch, operands, masks } = self;
        let parameters = [Vec::new(), operands[1..].to_vec()];
        let pass = Pass { network, parameters: &parameters, seed: masks.seed, step: masks.step };
        let outputs = pass.forward(Array { values: operands[0].clone(), ..Array::zeros(*batch, network.input()) });
        let dy = Array { values: dy.to_vec(), ..outputs[1].clone() };
        let mut gradients = vec![pass.input_gradient(1, &outputs[0], &dy).values];
        gradients.extend(pass.parameter_gradients(1, &outputs, &dy));
        Found { y: outputs[1].values.clone(), gradients, moments: Vec::new() }
    }

    /// Compares both types, on three threads, with [`Case::by_definition`].
    pub fn agrees_with_the_definition(&self, random: &mut Rng) {
        let dy = reals(random, self.outputs());
        let expected = self.by_definition(&dy);
        // Rounding grows with the number of terms of a sum.
        for (found, tolerance) in by_three(|| [(self.run::<f64>(&dy), 1e-12), (self.run::<f32>(&dy), 2e-5)]) {
            let what = format!("{:?} for {}, to {tolerance:e}", self.network.layers[1], self.batch);
            let pairs = [(&found.y, &expected.y)].into_iter().chain(found.gradients.iter().zip(&expected.gradients));
            pairs.for_each(|(found, expected)| assert_values_close(found, expected, tolerance, &what));
        }
    }

    /// Checks the gradient of each operand, in float64 on three threads, for a random weighting of the outputs, against central
    /// differences.
    pub fn gradients_match_differences(&self) {
        let weights = reals(&mut Rng::new(77), self.outputs());
        let gradients = by_three(|| self.run::<f64>(&weights)).gradients;
        for (which, gradient) in gradients.iter().enumerate() {
            let objective = |changed: &[f64]| -> f64 {
                let mut case = self.clone();
                case.operands[which] = changed.to_vec();
                case.y().iter().zip(&weights).map(|(y, weight)| y * weight).sum()
            };
            let differences = by_three(|| central_differences(&self.operands[which], objective));
            assert_values_close(gradient, &differences, 1e-8, &format!("gradient of operand {which}"));
        }
    }

    /// The output, in float64.
    pub fn y(&self) -> Vec<f64> {
        self.run::<f64>(&vec![0.0; self.outputs()]).y
    }
}

impl Found {
    /// Compares with the tensors of a case of PyTorch: the value, and the gradient of each operand.
    pub fn agrees(&self, name: &str, case: &Case, tolerance: f64) {
        let names = case.names();
        assert_eq!(self.gradients.len(), names.len(), "{name}");
        let gradients = names.iter().map(|operand| format!("d{operand}")).zip(&self.gradients);
        for (tensor, values) in [("y".to_owned(), &self.y)].into_iter().chain(gradients) {
            let what = format!("{name}/{tensor}, to {tolerance:e}");
            assert_values_close(values, &expected(name, &tensor).values, tolerance, &what);
        }
    }
}

/// The operators of the cases of `tests/fixtures/operators.safetensors`, which `scripts/fixtures/operators.py` wrote with PyTorch
/// 2.15 in float64. Output channels and kernels come from the weights.
pub fn pytorch_cases() -> Vec<(&'static str, Operation)> {
    let (none, around, norm) = (Padding::NONE, Padding::all(1), BatchNorm { epsilon: 1e-3, momentum: 0.9 });
    let corner = Padding { bottom: 1, right: 1, ..none };
    let convolutions = [
        ("conv_3x3", [1, 1], around, 1),
        ("conv_batch_1", [1, 1], around, 1),
        ("conv_no_padding", [1, 1], none, 1),
        ("conv_stride_2", [2, 2], around, 1),
        ("conv_asymmetric", [2, 2], corner, 1),
        ("conv_uneven", [3, 1], Padding { top: 1, bottom: 0, left: 2, right: 3 }, 1),
        ("conv_7x7_stem", [2, 2], Padding::all(3), 1),
        ("conv_1x1", [1, 1], none, 1),
        ("conv_1x1_stride_2", [2, 2], none, 1),
        ("conv_tiny_maps", [1, 1], around, 1),
        ("conv_groups", [1, 1], around, 2),
        ("depthwise", [1, 1], around, 4),
        ("depthwise_stride_2", [2, 2], around, 3),
        ("depthwise_asymmetric", [2, 2], corner, 3),
        ("depthwise_stride_3", [3, 2], Padding { top: 0, bottom: 2, left: 1, right: 0 }, 2),
    ];
    let convolutions = convolutions.map(|(name, stride, padding, groups)| {
        let dims = expected(name, "weight").dims;
        let (kernel, bias) = (Extent::new(dims[2], dims[3]), found(name, "bias").is_some());
        (name, Conv2d { out_channels: dims[0], kernel, stride: stride.into(), padding, groups, bias }.into())
    });
    let pools = [
        ("pool_2x2", [2, 2], [2, 2], none),
        ("pool_3x3_stride_2", [3, 3], [2, 2], around),
        // The cases of this and of the rectifiers hold values at which the gradient is a convention.
        ("pool_ties", [3, 3], [2, 2], around),
        ("pool_overlap_asymmetric", [3, 2], [1, 2], Padding { top: 2, right: 1, ..none }),
    ];
    let pools = pools.map(|(name, kernel, stride, padding)| {
        (name, MaxPool2d { kernel: kernel.into(), stride: stride.into(), padding }.into())
    });
    let dense = ["dense", "dense_no_bias"].map(|name| {
        let out_features = expected(name, "weight").dims[0];
        (name, Dense { out_features, bias: found(name, "bias").is_some() }.into())
    });
    let others = [
        ("norm_maps", norm.into()),
        ("norm_flat", norm.into()),
        ("relu", Operation::Relu),
        ("relu6", Operation::Relu6),
        ("average", Operation::GlobalAveragePool),
    ];
    convolutions.into_iter().chain(pools).chain(dense).chain(others).collect()
}

/// One tensor of a case, in float64.
pub struct Fixture {
    pub dims: Vec<usize>,
    pub values: Vec<f64>,
}

impl Fixture {
    /// The shape of one example, and how many there are.
    fn batch(&self) -> (Shape, usize) {
        match self.dims[..] {
            [batch, channels, height, width] => (Shape::Maps { channels, height, width }, batch),
            [batch, features] => (Shape::Flat(features), batch),
            _ => (Shape::Flat(self.values.len()), 1),
        }
    }
}

/// A tensor of a case.
///
/// # Panics
/// Where there is none.
pub fn expected(name: &str, tensor: &str) -> Fixture {
    found(name, tensor).unwrap_or_else(|| panic!("no tensor {name}/{tensor} among the fixtures"))
}

/// A tensor of a case, where there is one.
pub fn found(name: &str, tensor: &str) -> Option<Fixture> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/operators.safetensors");
    let bytes = std::fs::read(path).expect("the fixtures are there");
    let tensors = SafeTensors::deserialize(&bytes).expect("the fixtures are readable");
    let tensor = tensors.tensor(&format!("{name}/{tensor}")).ok()?;
    assert_eq!(tensor.dtype(), safetensors::Dtype::F64, "{name}");
    let values = tensor.data().as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect();
    Some(Fixture { dims: tensor.shape().to_vec(), values })
}

/// Fails where an element differs by more than `tolerance` times the largest expected element (or 1, if that is larger).
pub fn assert_values_close(got: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}: lengths differ");
    let scale = expected.iter().fold(1.0f64, |scale, value| scale.max(value.abs()));
    for (i, (got, expected)) in got.iter().zip(expected).enumerate() {
        let error = (got - expected).abs();
        assert!(error <= tolerance * scale, "{what}: element {i} is {got}, expected {expected}");
    }
}

/// Half the distance between the two points of a difference: with float64 the rounding (1e-16 / h) and the curvature
/// (h^2) both stay below 1e-9 for functions of size 1.
const STEP: f64 = 1e-5;

/// The gradient of `objective` at a point.
pub fn central_differences(at: &[f64], objective: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let mut point = at.to_vec();
    let mut differences = Vec::with_capacity(at.len());
    for i in 0..at.len() {
        point[i] = at[i] + STEP;
        let above = objective(&point);
        point[i] = at[i] - STEP;
        let below = objective(&point);
        point[i] = at[i];
        differences.push((above - below) / (2.0 * STEP));
    }
    differences
}

/// Numbers that are uniform in [-1, 1).
pub fn reals(random: &mut Rng, count: usize) -> Vec<f64> {
    (0..count).map(|_| 2.0 * random.uniform() - 1.0).collect()
}
