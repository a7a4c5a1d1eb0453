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
pub(crate) mod tests {
    use super::*;
    use crate::engine::cpu::op::cases::{Random, assert_values_close, central_differences, expected};
    use crate::engine::cpu::op::scalar::doubles;
    use crate::error::Result;
    use Loss::{BinaryCrossEntropy, CategoricalCrossEntropy, MeanSquaredError};

    /// The cases of `tests/fixtures/operators.safetensors`.
    pub(crate) const CASES: [(&str, Loss); 3] = [
        ("cross_entropy", CategoricalCrossEntropy),
        ("cross_entropy_large", CategoricalCrossEntropy),
        ("squared_error", MeanSquaredError),
    ];

    /// Logits and targets of 2 x 3, and what PyTorch 2.15 makes of them in float64:
    /// `loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets); loss.backward()`
    pub(crate) const LOGITS: [f64; 6] = [0.5, -1.25, 3.0, -40.0, 0.0, 900.0];
    pub(crate) const TARGETS: [f64; 6] = [1.0, 0.25, 0.0, 0.0, 0.5, 1.0];
    pub(crate) const LOSS: f64 = 0.7967067662765278;
    pub(crate) const GRADIENT: [f64; 6] =
        [-0.0629234447996909, -0.0045499768624485265, 0.15876235447040557, 7.080590425485981e-19, 0.0, 0.0];

    /// Value and gradient for `batch` examples.
    fn computed<T: Scalar>(kind: Loss, [output, targets]: [&[f64]; 2], batch: usize) -> (f64, Vec<f64>) {
        let [output, targets] =
            [output, targets].map(|values| values.iter().map(|value| T::from_f64(*value)).collect::<Vec<T>>());
        let mut gradient = vec![T::ZERO; output.len()];
        loss_gradient(kind, &output, &targets, batch, &mut gradient);
        (loss(kind, &output, &targets, batch).to_f64(), doubles(&gradient))
    }

    #[test]
    fn values_and_gradients_agree_with_pytorch() {
        for (case, kind) in CASES {
            let [output, targets] = ["input", "target"].map(|name| expected(case, name));
            let operands = [&output.values[..], &targets.values];
            let [value, gradient] = ["y", "dinput"].map(|name| expected(case, name).values);
            let in_both =
                [computed::<f64>(kind, operands, output.dims[0]), computed::<f32>(kind, operands, output.dims[0])];
            for (found, tolerance) in in_both.iter().zip([1e-10, 1e-4]) {
                assert_values_close(&[found.0], &value, tolerance, case);
                assert_values_close(&found.1, &gradient, tolerance, case);
            }
        }
        let in_both = [
            computed::<f64>(BinaryCrossEntropy, [&LOGITS, &TARGETS], 2),
            computed::<f32>(BinaryCrossEntropy, [&LOGITS, &TARGETS], 2),
        ];
        for (found, tolerance) in in_both.iter().zip([1e-15, 1e-7]) {
            assert_values_close(&[found.0], &[LOSS], tolerance, "loss");
            assert_values_close(&found.1, &GRADIENT, tolerance, "gradient");
        }
    }

    #[test]
    fn gradients_match_finite_differences() -> Result<()> {
        for kind in [CategoricalCrossEntropy, MeanSquaredError, BinaryCrossEntropy] {
            let mut random = Random::new(1);
            let (output, targets) = (random.reals(120), random.reals(120));
            let mut gradient = vec![0.0; output.len()];
            loss_gradient(kind, &output, &targets, 4, &mut gradient);
            let differences = central_differences(&output, |output| Ok(loss(kind, output, &targets, 4)))?;
            assert_values_close(&gradient, &differences, 1e-8, kind.name());
        }
        Ok(())
    }

    #[test]
    fn equal_logits_cost_the_logarithm_of_the_number_of_classes() {
        let mut targets = [0.0; 20];
        (targets[3], targets[14]) = (1.0, 1.0);
        let value: f64 = loss(CategoricalCrossEntropy, &[0.0; 20], &targets, 2);
        assert!((value - 10f64.ln()).abs() < 1e-14);
    }

    #[test]
    fn an_impossible_class_that_is_not_wanted_costs_nothing() {
        assert_eq!(loss(CategoricalCrossEntropy, &[0.0f32, f32::NEG_INFINITY], &[1.0, 0.0], 1), 0.0);
    }

    #[test]
    fn many_elements_are_summed_without_loss() {
        assert_eq!(loss(MeanSquaredError, &vec![4f32; 100_100], &vec![1.0; 100_100], 100), 9.0);
    }
}
