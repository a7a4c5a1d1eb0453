use crate::engine::cpu::loss::{loss, loss_gradient};
use crate::engine::cpu::op::gradcheck::central_differences;
use crate::engine::cpu::op::reference::{Random, assert_values_close, doubles, expected};
use crate::engine::cpu::op::scalar::Scalar;
use crate::error::Result;
use crate::settings::Loss;

const KIND: Loss = Loss::CategoricalCrossEntropy;

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
fn losses_agree_with_pytorch_also_for_large_logits() {
    agrees_with_pytorch("cross_entropy");
    agrees_with_pytorch("cross_entropy_large");
}

#[test]
fn equal_logits_cost_the_logarithm_of_the_number_of_classes() {
    let mut targets = [0.0; 20];
    (targets[3], targets[14]) = (1.0, 1.0);
    let value: f64 = loss(KIND, &[0.0; 20], &targets, 2);
    assert!((value - 10f64.ln()).abs() < 1e-14);
}

#[test]
fn an_impossible_class_that_is_not_wanted_costs_nothing() {
    assert_eq!(loss(KIND, &[0.0f32, f32::NEG_INFINITY], &[1.0, 0.0], 1), 0.0);
}

#[test]
fn the_gradient_matches_finite_differences() -> Result<()> {
    let mut random = Random::new(1);
    let (output, targets) = (random.reals(15), random.reals(15));
    let mut gradient = vec![0.0; output.len()];
    loss_gradient(KIND, &output, &targets, 3, &mut gradient);
    let differences = central_differences(&output, |output| Ok(loss(KIND, output, &targets, 3)))?;
    assert_values_close(&gradient, &differences, 1e-8, "gradient");
    Ok(())
}
