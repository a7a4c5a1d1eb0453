//! Plans on paper, and plans that run on emulated kernels and are compared with the reference engine.

use std::sync::Arc;

use super::*;
use crate::engine::cudnn::arena::{Arena, check};
use crate::engine::cudnn::order::conflict;
use crate::network::{BatchNorm, Builder, Conv2d, Dense, MaxPool2d, NAMES, Padding};
use crate::settings::{Launch as LaunchMode, Loss, Optimizer, Precision};

pub fn settings() -> Settings {
    Settings { learning_rate: 1e-3, launch: LaunchMode::Eager, seed: 3, ..Settings::default() }
}

pub fn workload(name: &str, batch_size: usize, settings: Settings) -> Workload {
    let (input, classes) = Network::default_input(name).unwrap();
    Workload { network: Arc::new(Network::by_name(name, input, classes).unwrap()), batch_size, settings }
}

fn plan(workload: &Workload) -> StepPlan {
    StepPlan::new(workload, &mut |_, _| false).unwrap()
}

fn calls(plan: &StepPlan) -> Vec<Call> {
    plan.calls.iter().map(|planned| planned.call.clone()).collect()
}

#[test]
fn no_two_live_buffers_overlap_and_nothing_is_read_before_it_is_written() {
    for name in NAMES {
        for (precision, layout) in [(Precision::Tf32, Layout::Nchw), (Precision::Fp16, Layout::Nhwc)] {
            for batch in [1, 17, 70] {
                let data = if batch == 17 { DataPath::Prefetch } else { DataPath::Resident };
                let loss = if *name == "mlp" { Loss::MeanSquaredError } else { Loss::CategoricalCrossEntropy };
                for streams in [1, 2] {
                    let settings = Settings { precision, layout, data, loss, streams, ..settings() };
                    let plan = StepPlan::new(&workload(name, batch, settings), &mut |_, _| batch == 70).unwrap();
                    let (calls, arena) = (calls(&plan), plan.arena());
                    let in_order = calls.iter().zip(&plan.order.0).map(|(call, of)| Lasting { call, end: of.end });
                    let mut problems = check::problems(&plan.buffers, in_order, &arena);
                    problems.extend(unordered(&plan, &arena));
                    assert!(problems.is_empty(), "{name} {precision} {layout} {batch} {streams}: {problems:?}");
                }
            }
        }
    }
}

/// Pairs of calls that touch the same memory, where one of them writes and neither waits for the other. This is derived
/// only from each call's waits: the last calls of both streams that have finished when it starts.
fn unordered(plan: &StepPlan, arena: &Arena) -> Vec<String> {
    let place = |slice: Slice| Slice::new(0, arena.offset(slice), slice.bytes);
    let placed: Vec<Call> = plan.calls.iter().map(|planned| planned.call.moved(&mut { place })).collect();
    let order = &plan.order.0;
    // For each stream: its last call, and the calls that had finished when that started.
    let mut last: [(Option<usize>, [Option<usize>; 2]); 2] = Default::default();
    let mut problems = Vec::new();
    for (index, call) in placed.iter().enumerate() {
        let own = usize::from(order[index].stream == StepStream::Side);
        let (before, mut done) = last[own];
        done[own] = before;
        done[1 - own] = done[1 - own].max(order[index].wait);
        for (earlier, other) in placed.iter().enumerate().take(index) {
            let stream = usize::from(order[earlier].stream == StepStream::Side);
            if Some(earlier) > done[stream] && conflict(other, call) {
                problems.push(format!("calls {earlier} and {index} meet in memory, and neither waits"));
            }
        }
        last[own] = (Some(index), done);
    }
    problems
}

#[test]
fn a_layer_of_our_own_kernels_is_refused_where_non_fused_winograd_is_wanted() {
    let planned = |name: &str, winograd| {
        let settings = Settings { winograd, ..settings() };
        StepPlan::new(&workload(name, 2, settings), &mut |_, _| false).err().map(|error| error.to_string())
    };
    let refused = planned("mobilenet", Winograd::NonFused).expect("a refusal");
    for words in ["conv_dw_1", "depthwise", "`winograd = \"any\"`"] {
        assert!(refused.contains(words), "{refused}");
    }
    assert_eq!([planned("mobilenet", Winograd::Never), planned("vgg16", Winograd::NonFused)], [None, None]);
}

#[test]
fn with_one_stream_nothing_waits() {
    let plan = plan(&workload("resnet50", 2, settings()));
    assert!(plan.order.0.iter().all(|call| call.stream == StepStream::Main));
    assert!(
        plan.order.0.iter().all(|call| call.wait.is_none())
            && plan.order.0.iter().map(|call| call.end).eq(0..plan.calls.len())
    );
}

/// By hand, VGG16: 16 layers have weights; the update waits for the last gradients, those of the first convolution.
#[test]
fn vgg16_has_a_gradient_of_weights_beside_each_layer() {
    let plan = plan(&workload("vgg16", 8, Settings { streams: 2, ..settings() }));
    let side: Vec<usize> =
        (0..plan.calls.len()).filter(|&call| plan.order.0[call].stream == StepStream::Side).collect();
    assert_eq!(side.len(), 16);
    assert!(side.iter().all(|&call| plan.calls[call].direction == Direction::BackwardWeights));
    let update = plan.calls.last().unwrap();
    assert_eq!(
        (update.stream, plan.order.0.last().and_then(|call| call.wait)),
        (StepStream::Main, side.last().copied())
    );
}

#[test]
fn every_parameter_gets_its_gradient_and_the_update_comes_last() {
    for name in NAMES {
        let workload = workload(name, 2, settings());
        let plan = plan(&workload);
        let written: Vec<Slice> = calls(&plan).iter().flat_map(Call::writes).collect();
        for placed in plan.parameters.iter() {
            let idle = placed.name == "bias" && workload.network.has_idle_bias(placed.layer);
            let times = written.iter().filter(|slice| **slice == plan.parameters.gradient(placed)).count();
            assert_eq!(times, usize::from(!idle), "{name} layer {} {}", placed.layer, placed.name);
        }
        let phases: Vec<Phase> = plan.calls.iter().map(|planned| planned.phase).collect();
        assert!(phases.is_sorted(), "{name}");
        let updates = plan.calls.iter().filter(|planned| planned.phase == Phase::Optimizer).count();
        assert_eq!(updates, 2, "one launch for the step's numbers, one for all parameters");
    }
}

/// By hand, VGG16: each of 13 convolutions and 3 dense layers has a forward call and one for its weights, all but the first
/// one for its input; 8 convolutions are rectified in place, 5 by their poolings, and the dense layers by their products.
#[test]
fn vgg16_is_the_calls_of_a_hand_count() {
    let plan = plan(&workload("vgg16", 8, settings()));
    let count = |wanted: &dyn Fn(&Call) -> bool| plan.calls.iter().filter(|planned| wanted(&planned.call)).count();
    assert_eq!(count(&|call| matches!(call, Call::Convolution(..))), 13 + 13 + 12);
    assert_eq!(count(&|call| matches!(call, Call::Gemm(_))), 9);
    let launches = |operator: &str| count(&|call| matches!(call, Call::Launch(l) if l.kernel.operator == operator));
    assert_eq!(launches("max_pool2d"), 10);
    let kernels = |name: &str| count(&|call| matches!(call, Call::Launch(l) if l.kernel.name == name));
    assert_eq!(kernels("bias_rectify"), 8);
    assert_eq!(launches("elementwise"), 0);
    assert_eq!(launches("loss") + launches("advance") + launches("optimizer"), 3);

    let fused = StepPlan::new(&workload("vgg16", 8, settings()), &mut |_, _| true).unwrap();
    assert_eq!(fused.calls.len(), plan.calls.len() - 8);
}

/// ResNet50 adds at the end of each of 16 blocks, all of them inside a batch norm; the gradients of a block's input come
/// from two readers, and are added as the batch norm before them, or the pooling before the first, reads them.
#[test]
fn resnet50_passes_over_no_map_only_to_add() {
    let plan = plan(&workload("resnet50", 4, settings()));
    let adds = plan
        .calls
        .iter()
        .filter(|planned| matches!(&planned.call, Call::Launch(launch) if launch.kernel.operator == "elementwise"));
    assert_eq!(adds.count(), 0);
}

/// What a training of VGG16 must hold at batch 64: parameters, gradients and mean squares (3 x 138.4 M numbers), and every
/// output that the backward pass reads. By hand, for each example: 13.55 M numbers of 13 convolutions, less 6.12 M of
/// the five before a pooling, for which only the maxima are read; 1.53 M of the poolings, with a byte for each; 0.15 M
/// inputs.
#[test]
fn the_memory_of_a_plan_is_little_more_than_the_minimum() {
    for streams in [1, 2] {
        let plan = plan(&workload("vgg16", 64, Settings { streams, ..settings() }));
        let arena = plan.arena();
        let kept = 3.0 * 138.4e6 * 4.0 + 64.0 * (4.0 * (13.55e6 - 6.12e6 + 1.53e6 + 0.15e6) + 1.53e6);
        let bytes = arena.bytes as f64;
        assert!(bytes > kept && bytes < 1.1 * kept, "{streams}: {bytes:.3e} bytes, of which {kept:.3e} must be");
    }
}

#[test]
fn a_flattening_moves_nothing_where_a_dense_layer_reads_it() {
    for layout in [Layout::Nchw, Layout::Nhwc] {
        let workload = workload("vgg16", 2, Settings { layout, ..settings() });
        let plan = plan(&workload);
        let moved = plan.calls.iter().any(|p| matches!(&p.call, Call::Launch(l) if l.kernel.operator == "elementwise"));
        assert!(!moved, "{layout}");
    }
}

#[test]
fn a_network_that_ends_in_maps_is_refused() {
    let mut b = Builder::new("maps", Shape::Maps { channels: 2, height: 4, width: 4 }).unwrap();
    b.then("conv", Conv2d::square(2, 1)).unwrap();
    let network = Arc::new(b.finish().unwrap());
    let error =
        StepPlan::new(&Workload { network, batch_size: 1, settings: settings() }, &mut |_, _| false).unwrap_err();
    assert!(error.to_string().contains("flat features"), "{error}");
}

#[test]
fn maps_that_the_kernels_cannot_count_are_refused_with_the_layer() {
    // 32 x 32 positions of the largest feature maps: 2^31 - 4096 of one channel at batch 2^21 - 4.
    let mut b = Builder::new("small", Shape::Maps { channels: 3, height: 32, width: 32 }).unwrap();
    b.then("pool", Operation::GlobalAveragePool).unwrap();
    b.then("dense", Dense { out_features: 5, bias: true }).unwrap();
    let network = Arc::new(b.finish().unwrap());
    let refusal = |batch_size| {
        let workload = Workload { network: network.clone(), batch_size, settings: settings() };
        StepPlan::new(&workload, &mut |_, _| false).err().map(|error| error.to_string())
    };
    assert_eq!(refusal((1 << 21) - 4), None);
    let error = refusal((1 << 21) - 3).unwrap();
    assert!(error.contains("2^31 - 4096 in one channel, which has 2097149 x 32 x 32"), "{error}");
    assert!(error.contains("input"), "{error}");
    assert!(refusal(usize::MAX).unwrap().contains("in one channel"));
    let huge = FeatureMaps { batch: 1, channels: 1 << 11, height: 1 << 10, width: 1 << 10, layout: Layout::Nhwc };
    assert!(huge.check().unwrap_err().to_string().contains("in one example"));
}

mod emulated {
    use super::*;
    use crate::check::selftest;
    use crate::engine::Engine;
    use crate::engine::cudnn::emulated::{EmulatedEngine, emulator};
    use crate::engine::open::Engines;
    use crate::network::operators::operators;

    #[test]
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

    /// On images of that side.
    fn matches_the_reference(network: &str, side: usize) {
        let small = Shape::Maps { channels: 3, height: side, width: side };
        check(&variants(&Network::by_name(network, small, 5).unwrap(), 2, &[Precision::Fp32]));
    }

    #[test]
    fn vgg16_matches_the_reference() {
        matches_the_reference("vgg16", 32);
    }

    #[test]
    fn mobilenet_matches_the_reference() {
        matches_the_reference("mobilenet", 64);
    }

    #[test]
    fn resnet50_matches_the_reference() {
        matches_the_reference("resnet50", 64);
    }

    #[test]
    fn mnist_cnn_matches_the_reference() {
        let digits = Network::by_name("mnist_cnn", Shape::Maps { channels: 1, height: 28, width: 28 }, 10).unwrap();
        check(&variants(&digits, 3, &[Precision::Fp32, Precision::Bf16]));
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
    fn a_step_that_overflows_is_repeated_with_the_same_dropout_masks() {
        if emulator().is_none() {
            return;
        }
        for workload in in_fp16("dropout", 1, Optimizer::Sgd).into_iter().chain(in_fp16("mnist_cnn", 8, Optimizer::Sgd))
        {
            let mut step = EmulatedEngine::default().prepare(&workload).unwrap();
            step.run().unwrap();
            let gradients = step.computed().unwrap().unwrap().gradients;
            assert!(gradients.iter().flatten().any(|value| !value.is_finite()), "{}", workload.network.name);
            check(&[workload]);
        }
    }

    /// The selftest's checks of the optimizers, on a network of two convolutions and dropout.
    #[test]
    fn the_checks_of_the_optimizers_pass_in_16_bits() {
        let of = |precision| selftest::workloads(&Settings { precision, ..settings() }).unwrap().into_iter();
        let checks = [Precision::Bf16, Precision::Fp16].into_iter().flat_map(of);
        check(&checks.filter(|check| check.network.name == "mnist_cnn").collect::<Vec<_>>());
    }

    /// A network with everything that the built-in networks lack: outputs with several readers of every kind, separate
    /// rectifiers and sums, a pooling whose output is read twice, a flattening that no dense layer reads.
    #[test]
    fn every_way_of_a_gradient_is_gone() {
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
        let network = b.finish().unwrap();
        check(&variants(&network, 3, &[Precision::Fp32]));
    }
}
