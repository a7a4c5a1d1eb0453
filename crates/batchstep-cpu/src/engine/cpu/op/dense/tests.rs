use crate::engine::cpu::op::cases::{Case, Random};
use crate::error::Result;
use crate::network::{Dense, Shape};

/// Large enough for several tasks.
#[test]
fn many_sizes_agree_with_the_definition() -> Result<()> {
    let mut random = Random::new(2);
    for (batch, features, out_features) in
        [(1, 600, 300), (33, 257, 130), (70, 100, 10), (2, 3, 513), (1300, 20, 5), (600, 1, 64)]
    {
        let dense = Dense { out_features, bias: false };
        Case::random(dense, Shape::Flat(features), batch, &mut random)?.agrees_with_the_definition(&mut random)?;
    }
    Ok(())
}
