use candle_core::{Device, Result, Tensor};

use super::{relu, relu6};
use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Random, agrees_with_pytorch, values};

/// The cases hold 0, -0 and 6, where the gradient is a convention.
#[test]
fn both_rectifiers_agree_with_pytorch() {
    agrees_with_pytorch("relu", &["x"], |t| relu(&t[0]));
    agrees_with_pytorch("relu6", &["x"], |t| relu6(&t[0]));
}

#[test]
fn gradients_match_finite_differences() -> Result<()> {
    let x = Random::new(1).tensor(&[3, 40])?.affine(10.0, 0.5)?;
    gradients_match_differences(std::slice::from_ref(&x), |t| relu(&t[0]))?;
    gradients_match_differences(&[x], |t| relu6(&t[0]))
}

#[test]
fn a_nan_passes_through() -> Result<()> {
    let x = Tensor::new(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY], &Device::Cpu)?;
    let y = values(&relu(&x)?);
    assert!(y[0].is_nan());
    assert_eq!(y[1..], [f64::INFINITY, 0.0]);
    let y = values(&relu6(&x)?);
    assert!(y[0].is_nan());
    assert_eq!(y[1..], [6.0, 0.0]);
    Ok(())
}
