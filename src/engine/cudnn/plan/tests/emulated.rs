//! Plans that run on emulated kernels.

use super::*;
use crate::check::selftest;
use crate::engine::Engine;
use crate::engine::cpu::parameters::Parameters;
use crate::engine::cudnn::emulated::{EmulatedEngine, EmulatedMemory, emulator, rounded, to_nchw};
use crate::engine::numbers::widened;
use crate::engine::open::Engines;
use crate::engine::train::Running;
use crate::network::data;
use crate::network::operators::operators;
use crate::settings::Examples;

#[test]
#[ignore = "slow"]
fn two_streams_compute_the_very_same_step_however_late_one_is() {
    if emulator().is_none() {
        return;
    }
    let mut engine = EmulatedEngine::default();
    let small = |side| Shape::Maps { channels: 3, height: side, width: side };
    for (name, side) in [("mnist_cnn", 32), ("mobilenet", 32), ("resnet50", 32)] {
        let network = Arc::new(Network::by_name(name, small(side), 5).unwrap());
        let mut train = |streams: usize| {
            let settings = Settings { streams, precision: Precision::Fp32, ..settings() };
            let workload = Workload { network: network.clone(), batch_size: 2, settings };
            let mut step = engine.prepare(&workload).unwrap();
            let losses = [0, 1].map(|_| step.run().unwrap().loss);
            (losses, step.computed().unwrap())
        };
        assert_eq!(train(1), train(2), "{name}");
    }
}

fn check(workloads: &[Workload]) {
    if emulator().is_none() {
        return;
    }
    let mut engine = EmulatedEngine::default();
    for check in selftest::checks(&mut engine, Engines::reference().as_mut(), workloads).unwrap() {
        assert!(check.passed(), "{check:#?}");
    }
}

/// Everything that is kept begins as the CPU engine's, to the last bit.
#[test]
fn parameters_statistics_and_batches_begin_as_the_cpu_engines() {
    let Some(emulator) = emulator() else { return };
    let peaks = Arc::new(Network::by_name("mlp", Shape::Flat(2), 1).unwrap());
    let peaks = [1, 16, 1000].map(|batch_size| {
        let settings = Settings { examples: Examples::Peaks, loss: Loss::MeanSquaredError, ..settings() };
        Workload { network: peaks.clone(), batch_size, settings }
    });
    let networks = operators().unwrap().into_iter();
    let mut networks = networks.filter(|n| ["depthwise_conv2d 3x3", "batch_norm"].contains(&n.name.as_str()));
    let [depthwise, norm] = [networks.next(), networks.next()].map(Option::unwrap);
    let drawn = Loss::ALL.iter().flat_map(|loss| [&depthwise, &norm].map(|network| (*loss, network)));
    let drawn = drawn.map(|(loss, network)| Workload {
        network: network.clone(),
        batch_size: 5,
        settings: Settings { loss, ..settings() },
    });
    let ways = Precision::ALL.iter().flat_map(|p| Layout::ALL.iter().map(move |l| (*p, *l)));
    for (of, (precision, layout)) in drawn.chain(peaks).flat_map(|of| ways.clone().map(move |way| (of.clone(), way))) {
        let workload = Workload { settings: Settings { precision, layout, ..of.settings.clone() }, ..of };
        let Workload { network, settings, batch_size } = &workload;
        let plan = plan(&workload);
        let mut memory = EmulatedMemory::of(&plan.buffers.iter().map(|buffer| buffer.bytes).collect::<Vec<_>>());
        plan.initial.iter().for_each(|call| emulator.check(&mut memory, call));
        let rounded = |values: Vec<f32>| values.iter().map(|x| rounded(plan.element, *x)).collect::<Vec<_>>();

        let learnt = plan.learnt(&mut |slice| Ok(memory.bytes(slice).to_vec())).unwrap();
        let expected = Parameters::<f32>::new(network, settings.seed);
        assert_eq!(learnt.parameters, expected.iter().map(widened).collect::<Vec<_>>(), "{settings:?}");
        for Running { mean, variance } in learnt.running {
            assert!(mean.iter().all(|x| *x == 0.0) && variance.iter().all(|x| *x == 1.0));
        }
        for placed in plan.parameters.iter().filter(|placed| placed.is_weight) {
            let master = memory.read(plan.parameters.master(placed), Element::F32);
            assert_eq!(memory.read(plan.parameters.value(placed), plan.element), rounded(master), "{settings:?}");
        }
        let maps = FeatureMaps::new(*batch_size, network.input(), layout);
        let inputs = to_nchw(&memory.read(plan.inputs, plan.element), maps);
        assert_eq!(inputs, rounded(data::inputs(&workload)), "{settings:?}");
        // Two libraries' exp may differ in the last bit of a double, and so, rarely, in the last bit of a float.
        let last_bit = if settings.examples == Examples::Peaks { 1e-6 } else { 0.0 };
        for (own, expected) in memory.read(plan.targets, Element::F32).iter().zip(data::targets(&workload)) {
            assert!((own - expected).abs() <= last_bit * expected.abs().max(1e-3), "{own} {expected}");
        }
    }
}

fn variants(network: &Network, batch_size: usize, precisions: &[Precision]) -> Vec<Workload> {
    let network = Arc::new(network.clone());
    let each = precisions.iter().flat_map(|&precision| [Layout::Nchw, Layout::Nhwc].map(|l| (precision, l)));
    each.map(|(precision, layout)| {
        let settings = Settings { precision, layout, optimizer: Optimizer::Sgd, ..settings() };
        Workload { network: network.clone(), batch_size, settings }
    })
    .collect()
}

#[test]
#[ignore = "slow"]
fn every_operator_matches_the_reference() {
    for network in operators().unwrap() {
        for batch in [1, 4] {
            check(&variants(&network, batch, &[Precision::Fp32, Precision::Bf16]));
        }
        check(&variants(&network, 3, &[Precision::Fp16]));
    }
}

#[test]
fn every_optimizer_updates_as_the_reference_does() {
    let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 3).unwrap());
    for &optimizer in Optimizer::ALL {
        for &loss in Loss::ALL {
            let settings = Settings { optimizer, loss, precision: Precision::Fp32, ..settings() };
            check(&[Workload { network: network.clone(), batch_size: 9, settings }]);
        }
    }
}

#[test]
fn known_networks_match_the_reference_on_small_images() {
    let digits = Network::by_name("mnist_cnn", Shape::Maps { channels: 1, height: 28, width: 28 }, 10).unwrap();
    check(&variants(&digits, 3, &[Precision::Fp32, Precision::Bf16]));
    for (name, side) in [("vgg16", 32), ("mobilenet", 64), ("resnet50", 64)] {
        let small = Shape::Maps { channels: 3, height: side, width: side };
        check(&variants(&Network::by_name(name, small, 5).unwrap(), 2, &[Precision::Fp32]));
    }
}

/// The selftest's own checks of that network, at the batch size and with the optimizer, in fp16 and both layouts.
fn in_fp16(name: &str, batch_size: usize, optimizer: Optimizer) -> Vec<Workload> {
    let of = |layout| {
        let settings = Settings { precision: Precision::Fp16, layout, optimizer, ..settings() };
        let checks = selftest::workloads(&settings).unwrap().into_iter();
        checks.filter(|check| check.network.name == name && check.batch_size == batch_size)
    };
    [Layout::Nchw, Layout::Nhwc].into_iter().flat_map(of).filter(|w| w.settings.optimizer == optimizer).collect()
}

/// At the first loss scale of 65536 these gradients overflow in float16. The step is then repeated on the same
/// parameters, and it must be the same step: with the dropout masks of the reference's first step.
#[test]
#[ignore = "slow"]
fn a_step_that_overflows_is_repeated_with_the_same_dropout_masks() {
    if emulator().is_none() {
        return;
    }
    for workload in in_fp16("dropout", 1, Optimizer::Sgd).into_iter().chain(in_fp16("mnist_cnn", 8, Optimizer::Sgd)) {
        let mut step = EmulatedEngine::default().prepare(&workload).unwrap();
        step.run().unwrap();
        let gradients = step.computed().unwrap().unwrap().gradients;
        assert!(gradients.iter().flatten().any(|value| !value.is_finite()), "{}", workload.network.name);
        check(&[workload]);
    }
}

/// The selftest's checks of the optimizers, on a network of two convolutions and dropout.
#[test]
#[ignore = "slow"]
fn the_checks_of_the_optimizers_pass_in_16_bits() {
    let of = |precision| selftest::workloads(&Settings { precision, ..settings() }).unwrap().into_iter();
    let checks = [Precision::Bf16, Precision::Fp16].into_iter().flat_map(of);
    check(&checks.filter(|check| check.network.name == "mnist_cnn").collect::<Vec<_>>());
}

/// A network with everything that the built-in networks lack: outputs with several readers of every kind, separate
/// rectifiers and sums, a pooling whose output is read twice, a flattening that no dense layer reads.
pub fn every_way_of_a_gradient() -> Network {
    let mut b = Builder::new("variants", Shape::Maps { channels: 2, height: 6, width: 5 }).unwrap();
    let conv = b.then("conv", Conv2d { padding: Padding::all(1), ..Conv2d::square(4, 3) }).unwrap();
    let relu = b.then("relu", Operation::Relu).unwrap();
    let relu6 = b.add("relu6", Operation::Relu6, &[conv]).unwrap();
    let sum = b.add("sum", Operation::Add, &[relu, relu6]).unwrap();
    let norm = b.then("bn", BatchNorm::default()).unwrap();
    let twice = b.add("twice", Operation::Add, &[sum, norm]).unwrap();
    let other = b.add("conv2", Conv2d::square(4, 1), &[sum]).unwrap();
    b.add("thrice", Operation::Add, &[twice, other]).unwrap();
    b.then("thrice_relu", Operation::Relu).unwrap();
    let pool = b.then("pool", MaxPool2d::square(2)).unwrap();
    b.add("left", Conv2d { bias: false, ..Conv2d::square(4, 1) }, &[pool]).unwrap();
    let left = b.then("left_relu", Operation::Relu).unwrap();
    let drop = b.add("drop", Operation::Dropout { rate: 0.25 }, &[pool]).unwrap();
    b.add("meet", Operation::Add, &[left, drop]).unwrap();
    b.then("flatten", Operation::Flatten).unwrap();
    b.then("flat_bn", BatchNorm::default()).unwrap();
    b.then("flat_relu", Operation::Relu6).unwrap();
    b.then("fc", Dense { out_features: 3, bias: false }).unwrap();
    b.finish().unwrap()
}

#[test]
fn every_way_of_a_gradient_is_gone() {
    check(&variants(&every_way_of_a_gradient(), 3, &[Precision::Fp32]));
}
