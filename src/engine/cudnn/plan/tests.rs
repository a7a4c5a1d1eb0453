//! Plans on paper, and in [`emulated`] plans that run on emulated kernels and are compared with the reference engine.

pub mod emulated;

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

/// The launches of an operator's kernels.
fn launches(plan: &StepPlan, operator: &str) -> usize {
    let is_own = |planned: &&Planned| matches!(&planned.call, Call::Launch(l) if l.kernel.operator == operator);
    plan.calls.iter().filter(is_own).count()
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
                    let in_order = calls.iter().zip(plan.order.0.iter().map(|of| of.end));
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
    assert_eq!(count(&|call| matches!(call, Call::Launch(l) if l.kernel.name == "bias_rectify")), 8);
    let operators = ["max_pool2d", "elementwise", "loss", "advance", "optimizer"];
    assert_eq!(operators.map(|operator| launches(&plan, operator)), [10, 0, 1, 1, 1]);
    let fused = StepPlan::new(&workload("vgg16", 8, settings()), &mut |_, _| true).unwrap();
    assert_eq!(fused.calls.len(), plan.calls.len() - 8);
}

/// ResNet50 adds at the end of each of 16 blocks, all of them inside a batch norm; the gradients of a block's input come
/// from two readers, and are added as the batch norm before them, or the pooling before the first, reads them. VGG16's
/// flattening moves nothing, since a dense layer reads it.
#[test]
fn no_map_is_passed_over_only_to_add_or_to_flatten() {
    for (name, layout) in [("resnet50", Layout::Nchw), ("vgg16", Layout::Nchw), ("vgg16", Layout::Nhwc)] {
        let plan = plan(&workload(name, 2, Settings { layout, ..settings() }));
        assert_eq!(launches(&plan, "elementwise"), 0, "{name} {layout}");
    }
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
