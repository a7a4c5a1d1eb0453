use std::sync::Arc;

use super::*;
use crate::engine::Engine;
use crate::engine::cudnn::emulated::{EVERY_OPERATOR, EmulatedEngine, emulator};
use crate::engine::cudnn::engine::CudnnEngine;
use crate::engine::cudnn::plan::tests::emulated::every_way_of_a_gradient;
use crate::engine::cudnn::recorded;
use crate::settings::Precision;
use crate::spec::Experiment;
use crate::spec::plan::Plan;

/// A workload with every operator that a library can compute, at batch size 3.
fn workload(train: &str, engine: &str) -> Workload {
    let spec =
        format!("{EVERY_OPERATOR}[sweep]\nbatch_size = [3]\n[train]\n{train}\n[engine]\nname = \"cudnn\"\n{engine}");
    let plan = Plan::new(&Experiment::parse(&spec, "all.toml").unwrap()).unwrap();
    plan.cells[0].workload.clone()
}

/// The results that are shown, each with its layer and the sizes of its numbers.
fn shown(engine: &mut dyn Engine, workload: &Workload) -> Vec<(String, Quantity, Vec<usize>)> {
    let mut shown = Vec::new();
    let seen = engine.take_apart(workload, &mut |part: Part| {
        let name = match &part.task {
            Task::Forward(fused) | Task::Backward { fused, .. } => workload.network.layers[fused.layer].name.clone(),
            Task::Loss { .. } => "loss".to_owned(),
        };
        for (quantity, numbers) in part.found {
            assert_eq!(numbers.values.len(), numbers.dims.iter().product::<usize>());
            shown.push((name.clone(), quantity, numbers.dims));
        }
        Ok(())
    });
    seen.unwrap_or_else(|Fault { error, .. }| panic!("{error}"));
    // In float16, steps whose gradients overflow come first.
    let first = shown.iter().rposition(|(_, of, _)| *of == Quantity::LossGradient).unwrap_or_default();
    let forward = shown[..first].iter().rev().take_while(|(_, of, _)| *of == Quantity::Output).count();
    shown.split_off(first - forward)
}

/// By hand: each layer except the rectifiers, which are computed with others, gives an output; each except the first
/// gives a gradient to the layer before it, and each parameter has a gradient. The pooling adds the bias of the first
/// convolution. The bias of the second is never added, because a batch norm follows.
const SHOWN: [(&str, Quantity, &[usize]); 18] = [
    ("conv2d_1", Quantity::Output, &[3, 8, 12, 12]),
    ("max_pool2d_3", Quantity::Output, &[3, 8, 6, 6]),
    ("conv2d_4", Quantity::Output, &[3, 8, 6, 6]),
    ("batch_norm_5", Quantity::Output, &[3, 8, 6, 6]),
    ("global_average_pool_7", Quantity::Output, &[3, 8]),
    ("dense_8", Quantity::Output, &[3, 4]),
    ("loss", Quantity::LossGradient, &[3, 4]),
    ("dense_8", Quantity::InputGradient, &[3, 8]),
    ("dense_8", Quantity::ParameterGradient("weight"), &[4, 8]),
    ("dense_8", Quantity::ParameterGradient("bias"), &[4]),
    ("global_average_pool_7", Quantity::InputGradient, &[3, 8, 6, 6]),
    ("batch_norm_5", Quantity::InputGradient, &[3, 8, 6, 6]),
    ("batch_norm_5", Quantity::ParameterGradient("gamma"), &[8]),
    ("batch_norm_5", Quantity::ParameterGradient("beta"), &[8]),
    ("conv2d_4", Quantity::InputGradient, &[3, 8, 6, 6]),
    ("conv2d_4", Quantity::ParameterGradient("weight"), &[8, 1, 3, 3]),
    ("max_pool2d_3", Quantity::InputGradient, &[3, 8, 12, 12]),
    ("max_pool2d_3", Quantity::ParameterGradient("bias"), &[8]),
];

#[test]
fn every_layer_is_shown_in_both_directions() {
    if emulator().is_none() {
        return;
    }
    for settings in ["precision = \"fp32\"", "precision = \"fp16\"\nlayout = \"nhwc\""] {
        let shown = shown(&mut EmulatedEngine::default(), &workload(settings, ""));
        let mut expected: Vec<_> =
            SHOWN.iter().map(|(name, of, dims)| (name.to_string(), *of, dims.to_vec())).collect();
        expected.push(("conv2d_1".into(), Quantity::ParameterGradient("weight"), vec![8, 3, 3, 3]));
        assert_eq!(shown, expected, "{settings}");
    }
}

/// A GPU that accepts every call and computes nothing: the memory is read back as it was filled. It runs in its own
/// process, like every recording.
#[test]
fn the_gpus_engine_runs_every_part_with_its_own_calls() {
    const NAME: &str = "engine::cudnn::isolated::tests::the_gpus_engine_runs_every_part_with_its_own_calls";
    if !recorded::is_apart(NAME) {
        return;
    }
    recorded::begin(None);
    let mut engine = CudnnEngine::recorded().unwrap();
    let workload = workload("precision = \"fp32\"\ndata = \"prefetch\"", "streams = 2\n");
    let before = recorded::held_bytes();
    let calls =
        || recorded::called().iter().filter(|(call, _)| call.name == "cuLaunchKernel").map(|(_, n)| n).sum::<usize>();
    assert_eq!(shown(&mut engine, &workload).len(), SHOWN.len() + 1);
    let plan = StepPlan::new(&workload, &mut |_, _| false).unwrap();
    let own = plan.calls.iter().filter(|planned| matches!(planned.call, Call::Launch(_))).count();
    assert!(calls() > own, "{} launches of {own}", calls());
    assert_eq!(recorded::held_bytes(), before, "the memory of a step that was taken apart is kept");
    // The memory of a step is kept for the next one, until another engine's turn comes.
    drop(engine.prepare(&workload).unwrap());
    let kept = recorded::held_bytes();
    engine.give_back();
    assert!(recorded::held_bytes() < kept, "{kept} bytes are kept");
}

#[test]
fn the_gradients_of_a_layer_with_several_readers_are_shown_one_by_one() {
    if emulator().is_none() {
        return;
    }
    let settings = Settings { precision: Precision::Fp32, layout: Layout::Nhwc, ..Settings::default() };
    let workload = Workload { network: Arc::new(every_way_of_a_gradient()), batch_size: 3, settings };
    let shown = shown(&mut EmulatedEngine::default(), &workload);
    let of = |name: &str| shown.iter().filter(|(layer, ..)| layer == name).map(|(_, of, _)| *of).collect::<Vec<_>>();
    assert_eq!(of("sum"), [Quantity::Output, Quantity::InputGradient, Quantity::SummandGradient]);
    assert_eq!(of("drop"), [Quantity::Output, Quantity::InputGradient]);
}
