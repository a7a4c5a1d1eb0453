//! Compares each operator with PyTorch (`tests/fixtures/operators.safetensors`), and three updates of each optimizer.

use crate::engine::cpu::op::reference::{Fixture, assert_values_close, expected, found};
use crate::engine::cpu::optimizer::tests::{EXPECTED, GRADIENTS, RATE, START};
use crate::engine::reference::array::Array;
use crate::engine::reference::optimizer::{OptimizerState, updated};
use crate::engine::reference::{batch_norm, convolution, dense, loss, pointwise, pooling};
use crate::network::{BatchNorm, Conv2d, Extent, MaxPool2d, Padding, Shape};
use crate::settings::{Loss, Settings};

/// A tensor of a case; a vector is one example.
fn array(case: &str, tensor: &str) -> Array {
    let Fixture { dims, values } = expected(case, tensor);
    let (batch, channels, height, width) = match dims[..] {
        [batch, channels, height, width] => (batch, channels, height, width),
        [batch, features] => (batch, features, 1, 1),
        [features] => (1, features, 1, 1),
        _ => panic!("{dims:?}"),
    };
    Array { batch, channels, height, width, values }
}

fn numbers(case: &str, tensor: &str) -> Vec<f64> {
    expected(case, tensor).values
}

/// Compares with the tensors of that name.
fn agree(case: &str, found: &[(&str, &[f64])]) {
    for (tensor, found) in found {
        assert_values_close(found, &numbers(case, tensor), 1e-10, &format!("{case}/{tensor}"));
    }
}

fn shape(array: &Array) -> Shape {
    match *array {
        Array { channels, height: 1, width: 1, .. } => Shape::Flat(channels),
        Array { channels, height, width, .. } => Shape::Maps { channels, height, width },
    }
}

/// Output channels and kernel come from the weights.
fn convolution_agrees(case: &str, stride: [usize; 2], [top, bottom, left, right]: [usize; 4], groups: usize) {
    let (x, weight, dy) = (array(case, "x"), array(case, "weight"), array(case, "dy"));
    let bias = found(case, "bias").map(|bias| bias.values);
    let padding = Padding { top, bottom, left, right };
    let (kernel, stride) = (Extent::new(weight.height, weight.width), stride.into());
    let conv = Conv2d { out_channels: weight.batch, kernel, stride, padding, groups, bias: bias.is_some() };
    let y = convolution::forward(&x, &weight.values, bias.as_deref(), &conv, shape(&dy));
    let dx = convolution::input_gradient(&x, &weight.values, &dy, &conv);
    let dw = convolution::weight_gradient(&x, &dy, &conv);
    agree(case, &[("y", &y.values), ("dx", &dx.values), ("dweight", &dw)]);
    if conv.bias {
        agree(case, &[("dbias", &convolution::bias_gradient(&dy))]);
    }
}

#[test]
fn convolutions_agree_with_pytorch() {
    convolution_agrees("conv_3x3", [1, 1], [1; 4], 1);
    convolution_agrees("conv_no_padding", [1, 1], [0; 4], 1);
    convolution_agrees("conv_stride_2", [2, 2], [1; 4], 1);
    convolution_agrees("conv_asymmetric", [2, 2], [0, 1, 0, 1], 1);
    convolution_agrees("conv_uneven", [3, 1], [1, 0, 2, 3], 1);
    convolution_agrees("conv_7x7_stem", [2, 2], [3; 4], 1);
    convolution_agrees("conv_1x1", [1, 1], [0; 4], 1);
    convolution_agrees("conv_1x1_stride_2", [2, 2], [0; 4], 1);
    convolution_agrees("conv_groups", [1, 1], [1; 4], 2);
    convolution_agrees("conv_tiny_maps", [1, 1], [1; 4], 1);
    convolution_agrees("depthwise", [1, 1], [1; 4], 4);
    convolution_agrees("depthwise_stride_2", [2, 2], [1; 4], 3);
    convolution_agrees("depthwise_asymmetric", [2, 2], [0, 1, 0, 1], 3);
    convolution_agrees("depthwise_stride_3", [3, 2], [0, 2, 1, 0], 2);
}

#[test]
fn pooling_agrees_with_pytorch() {
    let cases = [
        ("pool_2x2", [2, 2], [2, 2], [0; 4]),
        ("pool_3x3_stride_2", [3, 3], [2, 2], [1; 4]),
        ("pool_ties", [3, 3], [2, 2], [1; 4]),
        ("pool_overlap_asymmetric", [3, 2], [1, 2], [2, 0, 0, 1]),
    ];
    for (case, kernel, stride, [top, bottom, left, right]) in cases {
        let pool =
            MaxPool2d { kernel: kernel.into(), stride: stride.into(), padding: Padding { top, bottom, left, right } };
        let (x, dy) = (array(case, "x"), array(case, "dy"));
        let y = pooling::max_forward(&x, &pool, shape(&dy));
        agree(case, &[("y", &y.values), ("dx", &pooling::max_input_gradient(&x, &dy, &pool).values)]);
    }
    let (x, dy) = (array("average", "x"), array("average", "dy"));
    let y = pooling::average_forward(&x, shape(&dy));
    agree("average", &[("y", &y.values), ("dx", &pooling::average_input_gradient(&x, &dy).values)]);
}

#[test]
fn batch_norm_agrees_with_pytorch() {
    let norm = BatchNorm { epsilon: 1e-3, momentum: 0.9 };
    for case in ["norm_maps", "norm_flat"] {
        let (x, dy, gamma) = (array(case, "x"), array(case, "dy"), numbers(case, "gamma"));
        let y = batch_norm::forward(&x, &gamma, &numbers(case, "beta"), &norm);
        let (dx, d_gamma, d_beta) = batch_norm::backward(&x, &gamma, &dy, &norm);
        agree(case, &[("y", &y.values), ("dx", &dx.values), ("dgamma", &d_gamma), ("dbeta", &d_beta)]);
    }
}

#[test]
fn dense_layers_agree_with_pytorch() {
    for case in ["dense", "dense_no_bias"] {
        let (x, dy, weight) = (array(case, "x"), array(case, "dy"), numbers(case, "weight"));
        let bias = found(case, "bias").map(|bias| bias.values);
        let y = dense::forward(&x, &weight, bias.as_deref(), shape(&dy));
        let (dx, dw) = (dense::input_gradient(&x, &weight, &dy), dense::weight_gradient(&x, &dy));
        agree(case, &[("y", &y.values), ("dx", &dx.values), ("dweight", &dw)]);
        if bias.is_some() {
            agree(case, &[("dbias", &dense::bias_gradient(&dy))]);
        }
    }
}

#[test]
fn rectifiers_and_losses_agree_with_pytorch() {
    let (x, dy) = (array("relu", "x"), array("relu", "dy"));
    agree("relu", &[("y", &pointwise::relu(&x).values), ("dx", &pointwise::relu_input_gradient(&x, &dy).values)]);
    let (x, dy) = (array("relu6", "x"), array("relu6", "dy"));
    agree("relu6", &[("y", &pointwise::relu6(&x).values), ("dx", &pointwise::relu6_input_gradient(&x, &dy).values)]);
    for (case, kind) in [
        ("cross_entropy", Loss::CategoricalCrossEntropy),
        ("cross_entropy_large", Loss::CategoricalCrossEntropy),
        ("squared_error", Loss::MeanSquaredError),
    ] {
        let (value, gradient) = loss::loss(kind, &array(case, "input"), &array(case, "target"));
        agree(case, &[("y", &[value]), ("dinput", &gradient.values)]);
    }
}

/// The numbers from crates/batchstep-cpu/src/engine/cpu/op/binary_cross_entropy/tests.rs, computed by PyTorch.
#[test]
fn a_binary_cross_entropy_matches_pytorch() {
    let of = |values: [f64; 6]| {
        let mut array = Array::zeros(2, Shape::Flat(3));
        array.values.copy_from_slice(&values);
        array
    };
    let (logits, targets) = (of([0.5, -1.25, 3.0, -40.0, 0.0, 900.0]), of([1.0, 0.25, 0.0, 0.0, 0.5, 1.0]));
    let (value, gradient) = loss::loss(Loss::BinaryCrossEntropy, &logits, &targets);
    assert_values_close(&[value], &[0.7967067662765278], 1e-15, "loss");
    let expected = [-0.0629234447996909, -0.0045499768624485265, 0.15876235447040557, 7.080590425485981e-19, 0.0, 0.0];
    assert_values_close(&gradient.values, &expected, 1e-15, "gradient");
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
