//! The loss of a batch, and its gradient.

use super::op::scalar::Scalar;
use super::op::{binary_cross_entropy, mean_squared_error, softmax_cross_entropy};
use crate::settings::Loss;

/// The loss of `batch` examples: `output` and `targets` have one length.
pub fn loss<T: Scalar>(loss: Loss, output: &[T], targets: &[T], batch: usize) -> T {
    match loss {
        Loss::CategoricalCrossEntropy => softmax_cross_entropy::forward(output, targets, output.len() / batch),
        Loss::MeanSquaredError => mean_squared_error::forward(output, targets),
        Loss::BinaryCrossEntropy => binary_cross_entropy::forward(output, targets),
    }
}

/// Its gradient, as long as `output`.
pub fn loss_gradient<T: Scalar>(loss: Loss, output: &[T], targets: &[T], batch: usize, dx: &mut [T]) {
    match loss {
        Loss::CategoricalCrossEntropy => softmax_cross_entropy::backward(output, targets, output.len() / batch, dx),
        Loss::MeanSquaredError => mean_squared_error::backward(output, targets, dx),
        Loss::BinaryCrossEntropy => binary_cross_entropy::backward(output, targets, dx),
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::engine::cpu::op::gradcheck::central_differences;
    use crate::engine::cpu::op::reference::{Random, assert_values_close, doubles, expected};
    use crate::error::Result;

    /// Value and gradient in both types, with a case of `tests/fixtures/operators.safetensors`.
    pub fn agrees_with_pytorch(kind: Loss, case: &str) {
        compare::<f64>(kind, case, 1e-10);
        compare::<f32>(kind, case, 1e-4);
    }

    fn compare<T: Scalar>(kind: Loss, case: &str, tolerance: f64) {
        let [output, targets] = ["input", "target"].map(|name| expected(case, name));
        let batch = output.dims[0];
        let [output, targets] =
            [output, targets].map(|tensor| tensor.values.iter().map(|value| T::from_f64(*value)).collect::<Vec<T>>());
        let value = loss(kind, &output, &targets, batch);
        assert_values_close(&[Scalar::to_f64(value)], &expected(case, "y").values, tolerance, case);
        let mut gradient = vec![T::ZERO; output.len()];
        loss_gradient(kind, &output, &targets, batch, &mut gradient);
        assert_values_close(&doubles(&gradient), &expected(case, "dinput").values, tolerance, case);
    }

    #[test]
    fn gradients_match_finite_differences() -> Result<()> {
        for kind in [Loss::CategoricalCrossEntropy, Loss::MeanSquaredError, Loss::BinaryCrossEntropy] {
            let mut random = Random::new(1);
            let (output, targets) = (random.reals(120), random.reals(120));
            let mut gradient = vec![0.0; output.len()];
            loss_gradient(kind, &output, &targets, 4, &mut gradient);
            let differences = central_differences(&output, |output| Ok(loss(kind, output, &targets, 4)))?;
            assert_values_close(&gradient, &differences, 1e-8, kind.name());
        }
        Ok(())
    }
}
