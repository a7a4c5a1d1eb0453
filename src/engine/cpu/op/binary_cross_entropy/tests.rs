use candle_core::{DType, Device, Result, Tensor, Var};

use super::binary_cross_entropy;
use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Random, assert_values_close, values};

const LOGITS: [f64; 6] = [0.5, -1.25, 3.0, -40.0, 0.0, 900.0];
const TARGETS: [f64; 6] = [1.0, 0.25, 0.0, 0.0, 0.5, 1.0];

/// Produced by PyTorch 2.15 in float64, for the 2 x 3 logits and targets above:
/// `loss = torch.nn.functional.binary_cross_entropy_with_logits(logits, targets); loss.backward()`
const LOSS: f64 = 0.7967067662765278;
const GRADIENT: [f64; 6] =
    [-0.0629234447996909, -0.0045499768624485265, 0.15876235447040557, 7.080590425485981e-19, 0.0, 0.0];

#[test]
fn value_and_gradient_match_pytorch() -> Result<()> {
    for (dtype, tolerance) in [(DType::F64, 1e-15), (DType::F32, 1e-7)] {
        let tensor = |values: [f64; 6]| Tensor::from_slice(&values, (2, 3), &Device::Cpu)?.to_dtype(dtype);
        let logits = Var::from_tensor(&tensor(LOGITS)?)?;
        let loss = binary_cross_entropy(&logits, &tensor(TARGETS)?)?;
        assert_values_close(&values(&loss), &[LOSS], tolerance, "loss");
        let gradients = loss.backward()?;
        let Some(gradient) = gradients.get(&logits) else { panic!("no gradient") };
        assert_values_close(&values(gradient), &GRADIENT, tolerance, "gradient");
    }
    Ok(())
}

#[test]
fn the_gradient_matches_finite_differences() -> Result<()> {
    let mut random = Random::new(1);
    let (logits, target) = (random.tensor(&[4, 30])?, random.tensor(&[4, 30])?);
    gradients_match_differences(&[logits], |t| binary_cross_entropy(&t[0], &target))
}

#[test]
fn different_shapes_are_refused() -> Result<()> {
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu);
    assert!(binary_cross_entropy(&zeros(&[2, 3])?, &zeros(&[3, 2])?).is_err());
    Ok(())
}
