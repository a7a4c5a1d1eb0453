use crate::engine::cpu::loss::loss;
use crate::engine::cpu::loss::tests::agrees_with_pytorch;
use crate::settings::Loss;

#[test]
fn the_loss_agrees_with_pytorch() {
    agrees_with_pytorch(Loss::MeanSquaredError, "squared_error");
}

#[test]
fn many_elements_are_summed_without_loss() {
    assert_eq!(loss(Loss::MeanSquaredError, &vec![4f32; 100_100], &vec![1.0; 100_100], 100), 9.0);
}
