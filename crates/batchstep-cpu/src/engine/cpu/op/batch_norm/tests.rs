use super::RunningStats;
use super::cpu::Moments;
use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Case, Random, agrees_with_pytorch, assert_values_close, expected};
use crate::error::Result;
use crate::network::{BatchNorm, Shape};

const P: BatchNorm = BatchNorm { epsilon: 1e-3, momentum: 0.9 };

/// The running statistics after one batch with these moments, of `count` values each.
fn running(moments: &[Moments], count: usize, momentum: f64) -> RunningStats {
    let stats = RunningStats::new(moments.len());
    stats.update(moments, count, momentum);
    stats
}

fn compare(case: &str, input: Shape, batch: usize) -> Result<()> {
    agrees_with_pytorch(case, &["x", "gamma", "beta"], P);
    let operands = ["x", "gamma", "beta"].map(|name| expected(case, name).values).to_vec();
    let one = Case::new(P, input, batch, operands)?;
    let moments = one.run::<f64>(&vec![0.0; one.outputs()])?.moments;
    let stats = running(&moments, one.outputs() / moments.len(), P.momentum);
    assert_values_close(&stats.mean(), &expected(case, "mean").values, 1e-12, "running mean");
    assert_values_close(&stats.variance(), &expected(case, "variance").values, 1e-12, "running variance");
    Ok(())
}

#[test]
fn feature_maps_agree_with_pytorch() -> Result<()> {
    let dims = expected("norm_maps", "x").dims;
    compare("norm_maps", Shape::Maps { channels: dims[1], height: dims[2], width: dims[3] }, dims[0])
}

#[test]
fn flat_features_agree_with_pytorch() -> Result<()> {
    let dims = expected("norm_flat", "x").dims;
    compare("norm_flat", Shape::Flat(dims[1]), dims[0])
}

#[test]
fn gradients_match_finite_differences() -> Result<()> {
    let mut random = Random::new(1);
    let maps = |height, width| Shape::Maps { channels: 4, height, width };
    for (batch, input) in [(3, maps(2, 3)), (5, Shape::Flat(4)), (6, maps(3, 2)), (34, maps(1, 2))] {
        gradients_match_differences(&Case::random(P, input, batch, &mut random)?)?;
    }
    Ok(())
}

/// A mean a thousand times the deviation: squares minus the square of the mean would lose all digits in float32.
#[test]
fn a_large_mean_does_not_cost_the_variance() -> Result<()> {
    large_means_do_not_cost_the_variance(4, 30)?;
    large_means_do_not_cost_the_variance(100, 6)
}

fn large_means_do_not_cost_the_variance(batch: usize, side: usize) -> Result<()> {
    let plane = side * side;
    let x: Vec<f64> = Random::new(2).reals(batch * 3 * plane).iter().map(|x| f64::from((x + 1000.0) as f32)).collect();
    let operands = vec![x.clone(), vec![1.0; 3], vec![0.0; 3]];
    let case = Case::new(P, Shape::Maps { channels: 3, height: side, width: side }, batch, operands)?;
    let moments = case.run::<f32>(&vec![0.0; x.len()])?.moments;
    for (channel, variance) in running(&moments, 3600, 0.0).variance().iter().enumerate() {
        let values: Vec<f64> = x.chunks(plane).skip(channel).step_by(3).flatten().copied().collect();
        let mean = values.iter().sum::<f64>() / 3600.0;
        let expected = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 3599.0;
        assert!((variance / expected - 1.0).abs() < 1e-5, "{variance} instead of {expected}");
    }
    Ok(())
}

#[test]
fn one_value_per_channel_gives_beta_and_finite_statistics() -> Result<()> {
    let operands = vec![vec![3.0, -2.0], vec![2.0, 2.0], vec![0.5, 0.25]];
    let found = Case::new(P, Shape::Flat(2), 1, operands)?.run::<f32>(&[1.0, 1.0])?;
    assert_eq!(found.y, [0.5, 0.25]);
    assert_eq!(found.gradients[0], [0.0, 0.0]);
    // By hand: 0.9 * 0 + 0.1 * 3, 0.9 * 0 + 0.1 * -2; 0.9 * 1 + 0.1 * 0.
    let stats = running(&found.moments, 1, P.momentum);
    assert_values_close(&stats.mean(), &[0.3, -0.2], 1e-12, "running mean");
    assert_values_close(&stats.variance(), &[0.9, 0.9], 1e-12, "running variance");
    Ok(())
}
