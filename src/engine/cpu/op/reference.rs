//! Comparison with PyTorch's values and gradients, and reproducible numbers for tests.

use std::path::Path;

use candle_core::{DType, Device, Result, Tensor, Var};

/// Compares `operator`, in both types, with the case `name` of `tests/fixtures/operators.safetensors`, which
/// `scripts/fixtures/operators.py` wrote with PyTorch 2.15 in float64: the value, and the gradient of each input.
pub fn agrees_with_pytorch(name: &str, inputs: &[&str], operator: impl Fn(&[Tensor]) -> Result<Tensor>) {
    for (dtype, tolerance) in [(DType::F64, 1e-10), (DType::F32, 1e-4)] {
        compare(name, inputs, &operator, dtype, tolerance)
            .unwrap_or_else(|error| panic!("{name} in {dtype:?} failed: {error}"));
    }
}

fn compare(
    name: &str,
    inputs: &[&str],
    operator: &impl Fn(&[Tensor]) -> Result<Tensor>,
    dtype: DType,
    tolerance: f64,
) -> Result<()> {
    let leaves = inputs.iter().map(|input| Var::from_tensor(&expected(name, input)?.to_dtype(dtype)?));
    let leaves = leaves.collect::<Result<Vec<_>>>()?;
    let tensors: Vec<Tensor> = leaves.iter().map(|leaf| leaf.as_tensor().clone()).collect();
    let y = operator(&tensors)?;
    assert_close(&y, &expected(name, "y")?, tolerance, &format!("{name}/y in {dtype:?}"));
    let gradients = match y.rank() {
        0 => y.backward()?,
        _ => y.mul(&expected(name, "dy")?.to_dtype(dtype)?)?.sum_all()?.backward()?,
    };
    for (input, leaf) in inputs.iter().zip(&leaves) {
        let what = format!("{name}/d{input} in {dtype:?}");
        let Some(gradient) = gradients.get(leaf) else { panic!("{what} is missing") };
        assert_close(gradient, &expected(name, &format!("d{input}"))?, tolerance, &what);
    }
    Ok(())
}

/// One tensor of a case, in float64.
pub fn expected(name: &str, tensor: &str) -> Result<Tensor> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/operators.safetensors");
    let key = format!("{name}/{tensor}");
    match candle_core::safetensors::load(path, &Device::Cpu)?.remove(&key) {
        Some(tensor) => Ok(tensor),
        None => candle_core::bail!("no tensor {key} among the fixtures"),
    }
}

/// The elements in float64.
pub fn values(tensor: &Tensor) -> Vec<f64> {
    let flat = tensor.to_dtype(DType::F64).and_then(|tensor| tensor.flatten_all()).and_then(|flat| flat.to_vec1());
    flat.unwrap_or_else(|error| panic!("cannot read a tensor: {error}"))
}

/// Fails where an element differs by more than `tolerance` times the largest expected element (or 1, if that is larger).
pub fn assert_close(got: &Tensor, expected: &Tensor, tolerance: f64, what: &str) {
    assert_eq!(got.dims(), expected.dims(), "{what}: shapes differ");
    assert_values_close(&values(got), &values(expected), tolerance, what);
}

/// As [`assert_close`].
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

    /// A float64 tensor, uniform in [-1, 1).
    pub fn tensor(&mut self, shape: &[usize]) -> Result<Tensor> {
        Tensor::from_vec(self.reals(shape.iter().product()), shape, &Device::Cpu)
    }
}
