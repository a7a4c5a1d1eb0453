use candle_core::{DType, Device, Result, Tensor, Var};

use super::{RunningStats, batch_norm};
use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Random, agrees_with_pytorch, assert_values_close, expected, values};
use crate::network::BatchNorm;

const P: BatchNorm = BatchNorm { epsilon: 1e-3, momentum: 0.9 };

fn compare(case: &str, channels: usize) -> Result<()> {
    agrees_with_pytorch(case, &["x", "gamma", "beta"], |t| {
        batch_norm(&t[0], &t[1], &t[2], &RunningStats::new(channels), &P)
    });
    let stats = RunningStats::new(channels);
    batch_norm(&expected(case, "x")?, &expected(case, "gamma")?, &expected(case, "beta")?, &stats, &P)?;
    assert_values_close(&stats.mean(), &values(&expected(case, "mean")?), 1e-12, "running mean");
    assert_values_close(&stats.variance(), &values(&expected(case, "variance")?), 1e-12, "running variance");
    Ok(())
}

#[test]
fn feature_maps_agree_with_pytorch() -> Result<()> {
    compare("norm_maps", 5)
}

#[test]
fn flat_features_agree_with_pytorch() -> Result<()> {
    compare("norm_flat", 4)
}

#[test]
fn gradients_match_finite_differences() -> Result<()> {
    let mut random = Random::new(1);
    for shape in [&[3, 4, 2, 3][..], &[5, 4][..], &[6, 4, 3, 2][..], &[34, 4, 1, 2][..]] {
        let inputs = [random.tensor(shape)?, random.tensor(&[4])?, random.tensor(&[4])?];
        gradients_match_differences(&inputs, |t| batch_norm(&t[0], &t[1], &t[2], &RunningStats::new(4), &P))?;
    }
    Ok(())
}

/// A mean a thousand times the deviation: squares minus the square of the mean would lose all digits in float32.
#[test]
fn a_large_mean_does_not_cost_the_variance() -> Result<()> {
    large_means_do_not_cost_the_variance((4, 3, 30, 30))?;
    large_means_do_not_cost_the_variance((100, 3, 6, 6))
}

fn large_means_do_not_cost_the_variance(shape: (usize, usize, usize, usize)) -> Result<()> {
    let mut random = Random::new(2);
    let noise = random.reals(shape.0 * shape.1 * shape.2 * shape.3);
    let (ones, zeros) = (Tensor::ones(3, DType::F32, &Device::Cpu)?, Tensor::zeros(3, DType::F32, &Device::Cpu)?);
    let x = Tensor::from_vec(noise, shape, &Device::Cpu)?.affine(1.0, 1000.0)?.to_dtype(DType::F32)?;
    let stats = RunningStats::new(3);
    batch_norm(&x, &ones, &zeros, &stats, &BatchNorm { epsilon: 1e-3, momentum: 0.0 })?;
    for (channel, variance) in stats.variance().iter().enumerate() {
        let values = values(&x.narrow(1, channel, 1)?);
        let mean = values.iter().sum::<f64>() / 3600.0;
        let expected = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 3599.0;
        assert!((variance / expected - 1.0).abs() < 1e-5, "{variance} instead of {expected}");
    }
    Ok(())
}

#[test]
fn one_value_per_channel_gives_beta_and_finite_statistics() -> Result<()> {
    let x = Var::from_tensor(&Tensor::new(&[[3.0f32, -2.0]], &Device::Cpu)?)?;
    let (gamma, beta) = (Tensor::new(&[2.0f32, 2.0], &Device::Cpu)?, Tensor::new(&[0.5f32, 0.25], &Device::Cpu)?);
    let stats = RunningStats::new(2);
    let y = batch_norm(&x, &gamma, &beta, &stats, &P)?;
    assert_eq!(values(&y), [0.5, 0.25]);
    let gradients = y.sum_all()?.backward()?;
    assert_eq!(gradients.get(&x).map(values), Some(vec![0.0, 0.0]));
    // By hand: 0.9 * 0 + 0.1 * 3, 0.9 * 0 + 0.1 * -2; 0.9 * 1 + 0.1 * 0.
    assert_values_close(&stats.mean(), &[0.3, -0.2], 1e-12, "running mean");
    assert_values_close(&stats.variance(), &[0.9, 0.9], 1e-12, "running variance");
    Ok(())
}

#[test]
fn wrong_channels_are_refused() -> Result<()> {
    let ones = Tensor::ones(3, DType::F32, &Device::Cpu)?;
    let x = Tensor::ones((2, 4), DType::F32, &Device::Cpu)?;
    let error = batch_norm(&x, &ones, &ones, &RunningStats::new(3), &P).map(|_| ()).map_err(|error| error.to_string());
    assert!(error.is_err_and(|error| error.contains("4 channels")));
    Ok(())
}
