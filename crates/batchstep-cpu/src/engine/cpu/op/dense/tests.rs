use crate::engine::cpu::op::reference::{Case, Random, assert_values_close};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::thread_team::by_three;
use crate::error::Result;
use crate::network::{Dense, Shape};

/// Large enough for several tasks; the oracle is the definition.
#[test]
fn many_sizes_agree_with_plain_products() -> Result<()> {
    let mut random = Random::new(2);
    for (batch, features, outputs) in
        [(1, 600, 300), (33, 257, 130), (70, 100, 10), (2, 3, 513), (1300, 20, 5), (600, 1, 64)]
    {
        let dense = Dense { out_features: outputs, bias: false };
        let case = Case::random(dense, Shape::Flat(features), batch, &mut random)?;
        let dy = random.reals(batch * outputs);
        let (x, w) = (&case.operands[0], &case.operands[1]);
        let (mut y, mut dx, mut dw) = (vec![0.0; dy.len()], vec![0.0; x.len()], vec![0.0; w.len()]);
        for (n, o) in (0..batch).flat_map(|n| (0..outputs).map(move |o| (n, o))) {
            for i in 0..features {
                y[n * outputs + o] += x[n * features + i] * w[o * features + i];
                dx[n * features + i] += dy[n * outputs + o] * w[o * features + i];
                dw[o * features + i] += dy[n * outputs + o] * x[n * features + i];
            }
        }
        compare::<f64>(&case, &dy, [&y, &dx, &dw], 1e-12)?;
        compare::<f32>(&case, &dy, [&y, &dx, &dw], 2e-5)?;
    }
    Ok(())
}

fn compare<T: Scalar>(case: &Case, dy: &[f64], expected: [&[f64]; 3], tolerance: f64) -> Result<()> {
    let found = by_three(|| case.run::<T>(dy))?;
    for (found, expected) in [&found.y].into_iter().chain(&found.gradients).zip(expected) {
        assert_values_close(found, expected, tolerance, "y, dx or dw");
    }
    Ok(())
}
