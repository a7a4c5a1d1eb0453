use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Case, Random, agrees_with_pytorch};
use crate::error::Result;
use crate::network::{Operation, Shape};

#[test]
fn the_mean_of_each_map_agrees_with_pytorch() {
    agrees_with_pytorch("average", &["x"], Operation::GlobalAveragePool);
}

#[test]
fn gradients_match_finite_differences() -> Result<()> {
    let input = Shape::Maps { channels: 3, height: 9, width: 8 };
    gradients_match_differences(&Case::random(Operation::GlobalAveragePool, input, 2, &mut Random::new(1))?)
}
