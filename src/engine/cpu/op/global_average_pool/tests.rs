use candle_core::{DType, Device, Result, Tensor};

use super::global_average_pool;
use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Random, agrees_with_pytorch};

#[test]
fn the_mean_of_each_map_agrees_with_pytorch() {
    agrees_with_pytorch("average", &["x"], |t| global_average_pool(&t[0]));
}

#[test]
fn gradients_match_finite_differences() -> Result<()> {
    gradients_match_differences(&[Random::new(1).tensor(&[2, 3, 9, 8])?], |t| global_average_pool(&t[0]))
}

#[test]
fn flat_and_empty_inputs_are_refused() -> Result<()> {
    assert!(global_average_pool(&Tensor::zeros((2, 3), DType::F32, &Device::Cpu)?).is_err());
    assert!(global_average_pool(&Tensor::zeros((0, 3, 2, 2), DType::F32, &Device::Cpu)?).is_err());
    Ok(())
}
