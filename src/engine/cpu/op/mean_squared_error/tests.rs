use crate::engine::cpu::loss::{loss, loss_gradient};
use crate::engine::cpu::op::gradcheck::central_differences;
use crate::engine::cpu::op::reference::{Random, assert_values_close, doubles, expected};
use crate::engine::cpu::op::scalar::Scalar;
use crate::error::Result;
use crate::settings::Loss;

const KIND: Loss = Loss::MeanSquaredError;

/// In both types.
fn agrees_with_pytorch(case: &str) {
    compare::<f64>(case, 1e-10);
    compare::<f32>(case, 1e-4);
}

fn compare<T: Scalar>(case: &str, tolerance: f64) {
    let [output, targets] = ["input", "target"].map(|name| expected(case, name));
    let batch = output.dims[0];
    let [output, targets] =
        [output, targets].map(|tensor| tensor.values.iter().map(|value| T::from_f64(*value)).collect::<Vec<T>>());
    let value = loss(KIND, &output, &targets, batch);
    assert_values_close(&[Scalar::to_f64(value)], &expected(case, "y").values, tolerance, case);
    let mut gradient = vec![T::ZERO; output.len()];
    loss_gradient(KIND, &output, &targets, batch, &mut gradient);
    assert_values_close(&doubles(&gradient), &expected(case, "dinput").values, tolerance, case);
}

#[test]
fn the_loss_agrees_with_pytorch() {
    agrees_with_pytorch("squared_error");
}

#[test]
fn many_elements_are_summed_without_loss() {
    assert_eq!(loss(KIND, &vec![4f32; 100_100], &vec![1.0; 100_100], 100), 9.0);
}

#[test]
fn the_gradient_matches_finite_differences() -> Result<()> {
    let mut random = Random::new(1);
    let (output, targets) = (random.reals(120), random.reals(120));
    let mut gradient = vec![0.0; output.len()];
    loss_gradient(KIND, &output, &targets, 4, &mut gradient);
    let differences = central_differences(&output, |output| Ok(loss(KIND, output, &targets, 4)))?;
    assert_values_close(&gradient, &differences, 1e-8, "gradient");
    Ok(())
}
