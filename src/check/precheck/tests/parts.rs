//! Parts of steps on the emulator, right and wrong ones.

use std::sync::Arc;

use super::super::parts::{check, fault};
use super::*;
use crate::engine::cpu::part::Expected;
use crate::engine::cudnn::emulated::{EVERY_OPERATOR, EmulatedEngine, KernelFault as Broken, emulator};
use crate::engine::part::{self, Numbers};
use crate::network::Shape;
use crate::network::operators::operators;
use crate::settings::{Layout, Loss, Precision};

const WAYS: [(Precision, Layout); 4] = [
    (Precision::Fp32, Layout::Nchw),
    (Precision::Tf32, Layout::Nhwc),
    (Precision::Bf16, Layout::Nhwc),
    (Precision::Fp16, Layout::Nchw),
];

fn settings(precision: Precision, layout: Layout) -> Settings {
    Settings { precision, layout, learning_rate: 1e-3, seed: 3, ..Settings::default() }
}

fn apart(engine: &mut EmulatedEngine, workload: &Workload) -> Result<(), part::Fault> {
    engine.take_apart(workload, &mut check)
}

fn passes(network: &Arc<Network>, batch_size: usize, settings: Settings) {
    let workload = Workload { network: network.clone(), batch_size, settings };
    if let Err(part::Fault { error, .. }) = apart(&mut EmulatedEngine::default(), &workload) {
        panic!("{} ({}): {error}", network.name, selftest::way(&workload));
    }
}

#[test]
#[ignore = "slow"]
fn every_operator_matches_the_cpu_engine_on_the_same_operands() {
    let Some(_) = emulator() else { return };
    for network in operators().unwrap() {
        for (precision, layout) in WAYS {
            passes(&network, 3, settings(precision, layout));
        }
    }
}

/// On 32x32 both have batch norms over one position at their end: two values of each channel, whose gradients are nothing but rounding errors.
#[test]
#[ignore = "slow"]
fn networks_with_branches_and_with_next_to_nothing_left_pass() {
    let Some(_) = emulator() else { return };
    let small = Shape::Maps { channels: 3, height: 32, width: 32 };
    let of = |name: &str, (precision, layout): (Precision, Layout)| {
        passes(&Arc::new(Network::by_name(name, small, 5).unwrap()), 2, settings(precision, layout));
    };
    of("mobilenet", WAYS[0]);
    of("resnet50", WAYS[2]);
    let mlp = Arc::new(Network::by_name("mlp", Shape::Flat(2), 1).unwrap());
    for loss in [Loss::MeanSquaredError, Loss::BinaryCrossEntropy] {
        passes(&mlp, 5, Settings { loss, ..settings(Precision::Fp32, Layout::Nchw) });
    }
}

#[test]
#[ignore = "slow"]
fn a_wrong_kernel_is_found_where_it_is_with_layer_shape_batch_size_and_number() {
    let Some(_) = emulator() else { return };
    let spec = format!(
        "{EVERY_OPERATOR}[sweep]\nbatch_size = [3]\n[train]\nprecision = \"fp32\"\n[engine]\nname = \"cudnn\"\n"
    );
    let workload = plan(&spec).cells[0].workload.clone();
    for (operator, place) in [
        ("max_pool2d", "max_pool2d_3 (max_pool2d of 8x12x12 to 8x6x6), forward, batch size 3: the output is off by"),
        (
            "depthwise_conv2d",
            "conv2d_4 (depthwise_conv2d of 8x6x6 to 8x6x6), forward, batch size 3: the output is off by",
        ),
        (
            "batch_norm",
            "batch_norm_5 with relu_6 (batch_norm of 8x6x6 to 8x6x6), forward, batch size 3: the output is off by",
        ),
        (
            "global_average_pool",
            "global_average_pool_7 (global_average_pool of 8x6x6 to 8), forward, batch size 3: the output is",
        ),
        ("loss", "the loss: the gradient of the loss is off by"),
        ("bias", "dense_8 (dense of 8 to 4), backward, batch size 3: the gradient of bias is off by"),
    ] {
        let wrong = apart(&mut EmulatedEngine::with(&[(operator, Broken::Zeros)]), &workload);
        let Err(part::Fault { operators, error }) = wrong else { panic!("{operator} was let through") };
        let error = error.to_string();
        assert!(operators.unwrap().contains(&operator) && error.starts_with(place), "{operator}: {error}");
        assert!(error.contains("(allowed: 1e-3), most of all at [") && error.contains("]: 0e0 instead of "), "{error}");
    }
}

/// By hand: one 0 among a million numbers of 1 is a relative error of 0.001, which is within every precision's limit.
#[test]
fn one_number_among_a_million_is_found_in_every_precision() {
    let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 1).unwrap());
    for precision in [Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16] {
        let workload =
            Workload { network: network.clone(), batch_size: 1, settings: settings(precision, Layout::Nchw) };
        let expected = Expected { values: vec![1.0; 1_000_000], natural_norm: 0.0 };
        let mut found = Numbers { dims: vec![1000, 10, 100], values: vec![1.0; 1_000_000] };
        assert_eq!(fault(&workload, &found, &expected), None);
        found.values[1234] = 0.0;
        let said = fault(&workload, &found, &expected).expect("a fault");
        assert!(said.starts_with("off by 1.0e-3") && said.ends_with("at [1, 2, 34]: 0e0 instead of 1e0"), "{said}");
        found.values[1234] = f32::NAN;
        assert!(fault(&workload, &found, &expected).expect("a fault").ends_with("[1, 2, 34]: NaN instead of 1e0"));
    }
}

/// 65504 is float16's largest number.
#[test]
fn an_overflow_is_no_fault_where_it_has_to_be() {
    let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 1).unwrap());
    let said = |precision, value: f32| {
        let workload =
            Workload { network: network.clone(), batch_size: 1, settings: settings(precision, Layout::Nchw) };
        let found = Numbers { dims: vec![2], values: vec![1e5, f32::INFINITY] };
        fault(&workload, &found, &Expected { values: vec![1e5, value], natural_norm: 0.0 }).is_some()
    };
    assert!(!said(Precision::Fp16, 7e4) && said(Precision::Fp16, 6e4) && said(Precision::Bf16, 7e4));
}
