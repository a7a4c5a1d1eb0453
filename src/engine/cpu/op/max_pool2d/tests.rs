use candle_core::{Device, Result, Tensor, Var};

use super::max_pool2d;
use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Random, agrees_with_pytorch, values};
use crate::network::{MaxPool2d, Padding};

const AROUND: Padding = Padding { top: 1, bottom: 1, left: 1, right: 1 };

fn pool(kernel: [usize; 2], stride: [usize; 2], padding: Padding) -> MaxPool2d {
    MaxPool2d { kernel: kernel.into(), stride: stride.into(), padding }
}

#[test]
fn pooling_agrees_with_pytorch() {
    let compare = |case: &str, p: MaxPool2d| agrees_with_pytorch(case, &["x"], |t| max_pool2d(&t[0], &p));
    compare("pool_2x2", pool([2, 2], [2, 2], Padding::default()));
    compare("pool_3x3_stride_2", pool([3, 3], [2, 2], AROUND));
    compare("pool_ties", pool([3, 3], [2, 2], AROUND));
    compare("pool_overlap_asymmetric", pool([3, 2], [1, 2], Padding { top: 2, bottom: 0, left: 0, right: 1 }));
}

#[test]
fn gradients_match_finite_differences() -> Result<()> {
    let mut random = Random::new(1);
    for p in [pool([2, 2], [2, 2], Padding::default()), pool([3, 3], [2, 2], AROUND), pool([2, 3], [1, 2], AROUND)] {
        gradients_match_differences(&[random.tensor(&[2, 3, 6, 5])?], |t| max_pool2d(&t[0], &p))?;
    }
    Ok(())
}

#[test]
fn the_first_of_equal_maxima_takes_the_gradient() -> Result<()> {
    let x = Var::from_tensor(&Tensor::ones((1, 1, 4, 4), candle_core::DType::F32, &Device::Cpu)?)?;
    let gradients = max_pool2d(&x, &pool([2, 2], [2, 2], Padding::default()))?.sum_all()?.backward()?;
    let first_of_each = [1., 0., 1., 0., 0., 0., 0., 0., 1., 0., 1., 0., 0., 0., 0., 0.];
    assert_eq!(gradients.get(&x).map(values), Some(first_of_each.to_vec()));
    Ok(())
}

#[test]
fn a_nan_wins_and_padding_never_does() -> Result<()> {
    let x = Tensor::new(&[[[[f32::NAN, 1.0], [-3.0, -4.0]]]], &Device::Cpu)?;
    let y = values(&max_pool2d(&x, &pool([1, 2], [1, 2], Padding { right: 1, ..Padding::default() }))?);
    assert!(y[0].is_nan());
    assert_eq!(y[1], -3.0);
    Ok(())
}

#[test]
fn windows_that_cover_only_padding_are_refused() -> Result<()> {
    let x = Tensor::ones((1, 1, 4, 4), candle_core::DType::F32, &Device::Cpu)?;
    assert!(max_pool2d(&x, &pool([1, 2], [1, 1], AROUND)).is_err());
    assert!(max_pool2d(&x, &pool([5, 5], [1, 1], Padding::default())).is_err());
    assert!(max_pool2d(&x, &pool([2, 2], [1, 0], Padding::default())).is_err());
    Ok(())
}
