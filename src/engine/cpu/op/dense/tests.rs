use candle_core::{DType, Device, Result, Tensor, Var};

use super::dense;
use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Random, agrees_with_pytorch, assert_close};
use crate::engine::cpu::thread_team::by_three;

#[test]
fn dense_layers_agree_with_pytorch() {
    agrees_with_pytorch("dense", &["x", "weight", "bias"], |t| dense(&t[0], &t[1], Some(&t[2])));
    agrees_with_pytorch("dense_no_bias", &["x", "weight"], |t| dense(&t[0], &t[1], None));
}

#[test]
fn gradients_match_finite_differences() -> Result<()> {
    let mut random = Random::new(1);
    let inputs = [random.tensor(&[5, 7])?, random.tensor(&[3, 7])?, random.tensor(&[3])?];
    gradients_match_differences(&inputs, |t| dense(&t[0], &t[1], Some(&t[2])))
}

/// Large enough for several tasks; candle's own products are the oracle.
#[test]
fn many_sizes_agree_with_plain_products() -> Result<()> {
    let mut random = Random::new(2);
    for (batch, features, outputs) in
        [(1, 600, 300), (33, 257, 130), (70, 100, 10), (2, 3, 513), (1300, 20, 5), (600, 1, 64)]
    {
        let (x, w) = (random.tensor(&[batch, features])?, random.tensor(&[outputs, features])?);
        let dy = random.tensor(&[batch, outputs])?;
        let expected = [x.matmul(&w.t()?)?, dy.matmul(&w)?, dy.t()?.matmul(&x)?];
        for (dtype, tolerance) in [(DType::F64, 1e-12), (DType::F32, 2e-5)] {
            let (x, w) = (Var::from_tensor(&x.to_dtype(dtype)?)?, Var::from_tensor(&w.to_dtype(dtype)?)?);
            let y = by_three(|| dense(&x, &w, None))?;
            let gradients = by_three(|| y.mul(&dy.to_dtype(dtype)?)?.sum_all()?.backward())?;
            assert_close(&y, &expected[0], tolerance, "y");
            for (leaf, expected) in [&x, &w].into_iter().zip(&expected[1..]) {
                let Some(gradient) = gradients.get(leaf) else { panic!("a gradient is missing") };
                assert_close(gradient, expected, tolerance, "gradient");
            }
        }
    }
    Ok(())
}

#[test]
fn wrong_shapes_are_refused() -> Result<()> {
    let zeros = |shape: &[usize]| Tensor::zeros(shape, DType::F32, &Device::Cpu);
    assert!(dense(&zeros(&[2, 3])?, &zeros(&[4, 5])?, None).is_err());
    assert!(dense(&zeros(&[2, 3])?, &zeros(&[4, 3])?, Some(&zeros(&[3])?)).is_err());
    assert!(dense(&zeros(&[0, 3])?, &zeros(&[4, 3])?, None).is_err());
    Ok(())
}
