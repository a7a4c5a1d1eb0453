//! Compares each operator with PyTorch (`tests/fixtures/operators.safetensors`), and three updates of each optimizer.

use crate::engine::cpu::loss::tests::{CASES, GRADIENT, LOGITS, LOSS, TARGETS};
use crate::engine::cpu::op::cases::{Case, assert_values_close, expected, pytorch_cases};
use crate::engine::cpu::optimizer::tests::{EXPECTED, GRADIENTS, RATE, START};
use crate::engine::reference::array::Array;
use crate::engine::reference::loss;
use crate::engine::reference::optimizer::{OptimizerState, updated};
use crate::network::Shape;
use crate::settings::{Loss, Settings};

#[test]
fn every_operator_agrees_with_pytorch() {
    for (name, operation) in pytorch_cases() {
        let case = Case::of_pytorch(name, operation);
        case.by_definition(&expected(name, "dy").values).agrees(name, &case, 1e-10);
    }
}

#[test]
fn losses_agree_with_pytorch() {
    for (case, kind) in CASES {
        let [output, targets] = ["input", "target"].map(|name| {
            let tensor = expected(case, name);
            let zeros = Array::zeros(tensor.dims[0], Shape::Flat(tensor.values.len() / tensor.dims[0]));
            Array { values: tensor.values, ..zeros }
        });
        let (value, gradient) = loss::loss(kind, &output, &targets);
        assert_values_close(&[value], &expected(case, "y").values, 1e-10, case);
        assert_values_close(&gradient.values, &expected(case, "dinput").values, 1e-10, case);
    }
    let of = |values: [f64; 6]| Array { values: values.to_vec(), ..Array::zeros(2, Shape::Flat(3)) };
    let (value, gradient) = loss::loss(Loss::BinaryCrossEntropy, &of(LOGITS), &of(TARGETS));
    assert_values_close(&[value], &[LOSS], 1e-15, "loss");
    assert_values_close(&gradient.values, &GRADIENT, 1e-15, "gradient");
}

#[test]
fn three_updates_of_each_optimizer_match_pytorch() {
    for (optimizer, expected) in EXPECTED {
        let settings = Settings { optimizer, learning_rate: RATE, ..Settings::default() };
        let (mut w, mut states) = (START, [OptimizerState::default(); START.len()]);
        for (step, (gradient, expected)) in (1..).zip(GRADIENTS.iter().zip(expected)) {
            for ((w, g), state) in w.iter_mut().zip(gradient).zip(&mut states) {
                *w = updated(&settings, step, *w, *g, state);
            }
            assert_values_close(&w, &expected, 2e-15, &format!("{optimizer}, update {step}"));
        }
    }
}
