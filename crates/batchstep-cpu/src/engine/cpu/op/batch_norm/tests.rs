use super::{Moments, RunningStats};
use crate::engine::cpu::op::cases::{Case, assert_values_close, expected, reals};
use crate::network::{BatchNorm, Shape};
use crate::random::Rng;

const P: BatchNorm = BatchNorm { epsilon: 1e-3, momentum: 0.9 };

/// The running means and variances after one batch with these moments, of `count` values each.
fn running(moments: &[Moments], count: usize, momentum: f64) -> (Vec<f64>, Vec<f64>) {
    let mut stats = RunningStats::new(moments.len());
    stats.update(moments, count, momentum);
    stats.0.iter().map(|moments| (moments.mean, moments.variance)).unzip()
}

#[test]
fn running_statistics_agree_with_pytorch() {
    for name in ["norm_maps", "norm_flat"] {
        let case = Case::of_pytorch(name, P.into());
        let moments = case.run::<f64>(&vec![0.0; case.outputs()]).moments;
        let (mean, variance) = running(&moments, case.outputs() / moments.len(), P.momentum);
        assert_values_close(&mean, &expected(name, "mean").values, 1e-12, "running mean");
        assert_values_close(&variance, &expected(name, "variance").values, 1e-12, "running variance");
    }
}

/// A mean a thousand times the deviation: squares minus the square of the mean would lose all digits in float32.
#[test]
fn a_large_mean_does_not_cost_the_variance() {
    for (batch, side) in [(4, 30), (100, 6)] {
        let (count, plane) = (batch * 3 * side * side, side * side);
        let x: Vec<f64> = reals(&mut Rng::new(2), count).iter().map(|x| f64::from((x + 1000.0) as f32)).collect();
        let operands = vec![x.clone(), vec![1.0; 3], vec![0.0; 3]];
        let case = Case::new(P, Shape::Maps { channels: 3, height: side, width: side }, batch, operands);
        let moments = case.run::<f32>(&vec![0.0; count]).moments;
        for (channel, variance) in running(&moments, 3600, 0.0).1.iter().enumerate() {
            let values: Vec<f64> = x.chunks(plane).skip(channel).step_by(3).flatten().copied().collect();
            let mean = values.iter().sum::<f64>() / 3600.0;
            let expected = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 3599.0;
            assert!((variance / expected - 1.0).abs() < 1e-5, "{variance} instead of {expected}");
        }
    }
}

#[test]
fn one_value_per_channel_gives_beta_and_finite_statistics() {
    let operands = vec![vec![3.0, -2.0], vec![2.0, 2.0], vec![0.5, 0.25]];
    let found = Case::new(P, Shape::Flat(2), 1, operands).run::<f32>(&[1.0, 1.0]);
    assert_eq!(found.y, [0.5, 0.25]);
    assert_eq!(found.gradients[0], [0.0, 0.0]);
    // By hand: 0.9 * 0 + 0.1 * 3, 0.9 * 0 + 0.1 * -2; 0.9 * 1 + 0.1 * 0.
    let (mean, variance) = running(&found.moments, 1, P.momentum);
    assert_values_close(&mean, &[0.3, -0.2], 1e-12, "running mean");
    assert_values_close(&variance, &[0.9, 0.9], 1e-12, "running variance");
}
