//! The engine's promises about seeds, settings and reports.

use super::*;
use crate::engine::StepTimes;
use crate::error::Kind;

fn losses(workload: &Workload, steps: usize) -> Vec<f64> {
    let mut step = CandleEngine::cpu().prepare(workload).unwrap();
    (0..steps).map(|_| step.run().unwrap().loss.unwrap()).collect()
}

#[test]
fn the_same_seed_gives_the_same_losses_and_another_seed_others() {
    let first = losses(&workload(3), 2);
    assert_eq!(first, losses(&workload(3), 2));
    assert_ne!(first, losses(&Workload { settings: Settings { seed: 4, ..settings() }, ..workload(3) }, 2));
}

#[test]
fn a_batch_from_host_memory_takes_time_and_gives_the_same_losses() {
    let pageable = Workload { settings: Settings { data: DataPath::Pageable, ..settings() }, ..workload(2) };
    assert_eq!(losses(&pageable, 2), losses(&workload(2), 2));
    let mut engine = CandleEngine::cpu();
    assert!(engine.prepare(&pageable).unwrap().run().unwrap().h2d_s.unwrap() > 0.0);
    assert_eq!(engine.prepare(&workload(2)).unwrap().run().unwrap().h2d_s, None);
}

#[test]
fn the_phases_add_up_to_no_more_than_the_step() {
    let mut step = CandleEngine::cpu().prepare(&workload(2)).unwrap();
    let StepTimes { step_s, gpu_s, forward_s, backward_s, optimizer_s, .. } = step.run().unwrap();
    let phases = [forward_s, backward_s, optimizer_s].map(Option::unwrap);
    assert!(phases.iter().all(|phase| *phase > 0.0) && phases.iter().sum::<f64>() <= step_s);
    assert!(gpu_s.is_none());
}

#[test]
fn every_layer_reports_its_work() {
    let layers = CandleEngine::cpu().prepare(&workload(2)).unwrap().layers();
    let conv = layers.iter().find(|each| each.layer == "block2_conv" && each.direction == "forward").unwrap();
    // 2 images x 14 x 14 positions x 64 x 32 x 9 weights x 2 FLOPs; where the bias comes in, 2 x 14 x 14 x 64 more.
    assert_eq!((conv.flops, conv.operation.as_str()), (14_475_776.0, "conv2d"));
    assert!(layers.iter().all(|each| each.algorithm.is_none() && each.math_mode.as_deref() == Some("fp32")));
}

#[test]
fn tf32_becomes_fp32_and_settings_that_candle_lacks_are_refused() {
    let engine = CandleEngine::cpu();
    let tf32 = engine.in_force(&Settings { precision: Precision::Tf32, ..settings() }).unwrap();
    assert_eq!(tf32, settings());
    let refused = [
        Settings { precision: Precision::Bf16, ..settings() },
        Settings { precision: Precision::Fp16, ..settings() },
        Settings { layout: Layout::Nhwc, ..settings() },
        Settings { data: DataPath::Pinned, ..settings() },
        Settings { data: DataPath::Prefetch, ..settings() },
        Settings { algorithms: Algorithms::Autotune, ..settings() },
        Settings { algorithms: Algorithms::Fixed, ..settings() },
        Settings { launch: Launch::Graph, ..settings() },
        Settings { threads: Some(0), ..settings() },
    ];
    for asked in refused {
        let error = engine.in_force(&asked).unwrap_err();
        assert!(error.kind() == Kind::Spec && error.to_string().contains("help: "), "{error}");
    }
}

#[test]
fn a_batch_that_does_not_fit_is_refused_and_a_smaller_one_is_not() {
    let mut engine = CandleEngine::cpu();
    assert_eq!(engine.prepare(&workload(1 << 40)).err().unwrap().kind(), Kind::OutOfMemory);
    assert!(engine.prepare(&workload(1)).is_ok());
}
