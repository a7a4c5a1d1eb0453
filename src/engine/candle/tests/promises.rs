//! The engine's promises about seeds, settings and reports.

use super::*;

#[test]
fn what_engines_on_a_processor_promise_is_kept() {
    let mut engine = CandleEngine::cpu();
    shared::the_seed_decides_the_losses(&mut engine, &settings());
    shared::a_batch_that_does_not_fit_is_refused_and_a_smaller_one_is_not(&mut engine);
    shared::a_batch_from_host_memory_takes_time_and_gives_the_same_losses(&mut engine);
    shared::the_phases_add_up_to_no_more_than_the_step(&mut engine);
    let bf16 = [Settings { precision: Precision::Bf16, ..settings() }];
    shared::tf32_becomes_fp32_and_settings_that_are_lacking_are_refused(&engine, &bf16);
}

#[test]
fn every_layer_reports_its_work() {
    let layers = CandleEngine::cpu().prepare(&workload(2)).unwrap().layers();
    let conv = layers.iter().find(|each| each.layer == "block2_conv" && each.direction == "forward").unwrap();
    // 2 images x 14 x 14 positions x 64 x 32 x 9 weights x 2 FLOPs; where the bias comes in, 2 x 14 x 14 x 64 more.
    assert_eq!((conv.flops, conv.operation.as_str()), (14_475_776.0, "conv2d"));
    assert!(layers.iter().all(|each| each.algorithm.is_none() && each.math_mode.as_deref() == Some("fp32")));
}
