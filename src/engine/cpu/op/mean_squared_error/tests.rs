use candle_core::{DType, Device, Result, Tensor};

use super::mean_squared_error;
use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Random, agrees_with_pytorch, values};

#[test]
fn the_loss_agrees_with_pytorch() {
    agrees_with_pytorch("squared_error", &["input", "target"], |t| mean_squared_error(&t[0], &t[1]));
}

#[test]
fn many_elements_are_summed_without_loss() -> Result<()> {
    let ones = Tensor::ones((100, 1001), DType::F32, &Device::Cpu)?;
    assert_eq!(values(&mean_squared_error(&ones.affine(4.0, 0.0)?, &ones)?), [9.0]);
    Ok(())
}

#[test]
fn gradients_match_finite_differences() -> Result<()> {
    let mut random = Random::new(1);
    let inputs = [random.tensor(&[4, 30])?, random.tensor(&[4, 30])?];
    gradients_match_differences(&inputs, |t| mean_squared_error(&t[0], &t[1]))
}

#[test]
fn different_shapes_are_refused() -> Result<()> {
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu);
    assert!(mean_squared_error(&zeros(&[2, 3])?, &zeros(&[3, 2])?).is_err());
    Ok(())
}
