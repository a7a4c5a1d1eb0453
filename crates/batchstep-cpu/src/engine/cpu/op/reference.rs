//! One layer against PyTorch's values and gradients, and reproducible numbers for tests.

use std::path::Path;
use std::sync::Arc;

use safetensors::SafeTensors;

use crate::engine::cpu::masks::Masks;
use crate::engine::cpu::op::batch_norm::cpu::Moments;
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::single::Single;
use crate::error::Result;
use crate::network::{Builder, Network, Operation, Shape};

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
    /// # Errors
    /// Where the network refuses the operation.
    pub fn new(operation: impl Into<Operation>, input: Shape, batch: usize, operands: Vec<Vec<f64>>) -> Result<Self> {
        let mut builder = Builder::new("one layer", input)?;
        builder.then("layer", operation)?;
        Ok(Self { network: Arc::new(builder.finish()?), batch, operands, masks: Masks { seed: 7, step: 0 } })
    }

    /// The same with operands that are uniform in [-1, 1).
    ///
    /// # Errors
    /// As [`Case::new`].
    pub fn random(operation: impl Into<Operation>, input: Shape, batch: usize, random: &mut Random) -> Result<Self> {
        let mut case = Self::new(operation, input, batch, Vec::new())?;
        let trainable = case.network.parameters_of(1).into_iter().filter(|parameter| parameter.trainable);
        let parameters = trainable.map(|parameter| parameter.count());
        let counts: Vec<usize> = [batch * input.count()].into_iter().chain(parameters).collect();
        case.operands = counts.into_iter().map(|count| random.reals(count)).collect();
        Ok(case)
    }

    /// The same with the dropout masks of another seed.
    pub fn seeded(self, seed: u64) -> Self {
        Self { masks: Masks { seed, ..self.masks }, ..self }
    }

    /// The operation on these operands.
    pub fn with(&self, operands: Vec<Vec<f64>>) -> Self {
        Self { operands, ..self.clone() }
    }

    /// The number of outputs.
    pub fn outputs(&self) -> usize {
        self.batch * self.network.output().count()
    }

    /// Computes in `T`. `dy` is the gradient of the output.
    ///
    /// # Errors
    /// Where the operands do not fit the layer.
    pub fn run<T: Scalar>(&self, dy: &[f64]) -> Result<Found> {
        let converted = |values: &[f64]| -> Vec<T> { values.iter().map(|value| T::from_f64(*value)).collect() };
        let operands: Vec<Vec<T>> = self.operands.iter().map(|values| converted(values)).collect();
        let slices: Vec<&[T]> = operands.iter().map(Vec::as_slice).collect();
        let (source, parameters) = slices.split_at(1);
        let Self { network, batch, masks, .. } = self;
        let single = Single { network, index: 1, batch: *batch, parameters, masks: Some(*masks) };
        let output = single.forward(source)?;
        let slopes = single.backward(source, &output, &converted(dy), true)?;
        let gradients = slopes.sources.iter().chain(&slopes.parameters).map(|values| doubles(values)).collect();
        Ok(Found { y: doubles(&output.values), gradients, moments: output.moments })
    }

    /// The output, in float64.
    ///
    /// # Errors
    /// As [`Case::run`].
    pub fn y(&self) -> Result<Vec<f64>> {
        Ok(self.run::<f64>(&vec![0.0; self.outputs()])?.y)
    }
}

pub fn doubles<T: Scalar>(values: &[T]) -> Vec<f64> {
    values.iter().map(|value| Scalar::to_f64(*value)).collect()
}

/// Compares an operation, in both types, with the case `name` of `tests/fixtures/operators.safetensors`, which
/// `scripts/fixtures/operators.py` wrote with PyTorch 2.15 in float64: the value, and the gradient of each operand.
pub fn agrees_with_pytorch(name: &str, operands: &[&str], operation: impl Into<Operation>) {
    let values = operands.iter().map(|operand| expected(name, operand).values).collect();
    let (input, batch) = expected(name, "x").batch();
    let case = Case::new(operation, input, batch, values).unwrap_or_else(|error| panic!("{name}: {error}"));
    compare::<f64>(name, operands, &case, 1e-10);
    compare::<f32>(name, operands, &case, 1e-4);
}

fn compare<T: Scalar>(name: &str, operands: &[&str], case: &Case, tolerance: f64) {
    let found = case.run::<T>(&expected(name, "dy").values).unwrap_or_else(|error| panic!("{name}: {error}"));
    let what = |tensor: &str| format!("{name}/{tensor} in {}", std::any::type_name::<T>());
    assert_values_close(&found.y, &expected(name, "y").values, tolerance, &what("y"));
    assert_eq!(found.gradients.len(), operands.len(), "{name}");
    for (operand, gradient) in operands.iter().zip(&found.gradients) {
        let tensor = format!("d{operand}");
        assert_values_close(gradient, &expected(name, &tensor).values, tolerance, &what(&tensor));
    }
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

/// Reproducible numbers: Knuth's 64-bit linear congruential generator (MMIX).
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66)
    }

    /// Uniform in [-1, 1).
    pub fn real(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    /// Uniform in `low..=high`.
    pub fn integer(&mut self, low: usize, high: usize) -> usize {
        low + ((self.real() + 1.0) / 2.0 * (high - low + 1) as f64) as usize
    }

    pub fn reals(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.real()).collect()
    }
}
