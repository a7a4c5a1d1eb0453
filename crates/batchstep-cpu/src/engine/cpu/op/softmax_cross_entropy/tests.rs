use crate::engine::cpu::loss::loss;
use crate::engine::cpu::loss::tests::agrees_with_pytorch;
use crate::settings::Loss;

const KIND: Loss = Loss::CategoricalCrossEntropy;

#[test]
fn losses_agree_with_pytorch_also_for_large_logits() {
    agrees_with_pytorch(KIND, "cross_entropy");
    agrees_with_pytorch(KIND, "cross_entropy_large");
}

#[test]
fn equal_logits_cost_the_logarithm_of_the_number_of_classes() {
    let mut targets = [0.0; 20];
    (targets[3], targets[14]) = (1.0, 1.0);
    let value: f64 = loss(KIND, &[0.0; 20], &targets, 2);
    assert!((value - 10f64.ln()).abs() < 1e-14);
}

#[test]
fn an_impossible_class_that_is_not_wanted_costs_nothing() {
    assert_eq!(loss(KIND, &[0.0f32, f32::NEG_INFINITY], &[1.0, 0.0], 1), 0.0);
}
