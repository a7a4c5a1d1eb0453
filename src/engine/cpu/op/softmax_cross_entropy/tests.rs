use candle_core::{DType, Device, Result, Tensor};

use super::softmax_cross_entropy;
use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Random, agrees_with_pytorch, values};

#[test]
fn losses_agree_with_pytorch_also_for_large_logits() {
    agrees_with_pytorch("cross_entropy", &["input", "target"], |t| softmax_cross_entropy(&t[0], &t[1]));
    agrees_with_pytorch("cross_entropy_large", &["input", "target"], |t| softmax_cross_entropy(&t[0], &t[1]));
}

#[test]
fn equal_logits_cost_the_logarithm_of_the_number_of_classes() -> Result<()> {
    let logits = Tensor::zeros((2, 10), DType::F64, &Device::Cpu)?;
    let targets = Tensor::eye(10, DType::F64, &Device::Cpu)?.narrow(0, 3, 2)?;
    let loss = softmax_cross_entropy(&logits, &targets)?.to_scalar::<f64>()?;
    assert!((loss - 10f64.ln()).abs() < 1e-14);
    Ok(())
}

#[test]
fn an_impossible_class_that_is_not_wanted_costs_nothing() -> Result<()> {
    let logits = Tensor::new(&[[0.0f32, f32::NEG_INFINITY]], &Device::Cpu)?;
    let targets = Tensor::new(&[[1.0f32, 0.0]], &Device::Cpu)?;
    assert_eq!(values(&softmax_cross_entropy(&logits, &targets)?), [0.0]);
    Ok(())
}

#[test]
fn gradients_match_finite_differences() -> Result<()> {
    let mut random = Random::new(1);
    let inputs = [random.tensor(&[3, 5])?, random.tensor(&[3, 5])?];
    gradients_match_differences(&inputs, |t| softmax_cross_entropy(&t[0], &t[1]))
}

#[test]
fn different_shapes_are_refused() -> Result<()> {
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu);
    assert!(softmax_cross_entropy(&zeros(&[2, 3])?, &zeros(&[2, 4])?).is_err());
    assert!(softmax_cross_entropy(&zeros(&[0, 3])?, &zeros(&[0, 3])?).is_err());
    Ok(())
}
