//! What the engine promises about seeds, memory, settings and what it reports.

use std::sync::Arc;

use super::super::*;
use super::shared::{self, losses, settings, visit, workload};
use crate::engine::LayerExecution;
use crate::error::Kind;
use crate::network::{Direction, Shape};
use crate::settings::*;

fn first_weight(engine: &CpuEngine) -> Vec<f32> {
    let training = engine.last.as_ref().unwrap().borrow();
    training.parameters.of_layer(1)[0].clone()
}

#[test]
fn with_every_optimizer_the_same_seed_gives_the_same_losses_and_another_seed_others() {
    for &optimizer in Optimizer::ALL {
        let settings = Settings { optimizer, learning_rate: 1e-3, ..settings() };
        let first = shared::the_seed_decides_the_losses(&mut CpuEngine::cpu(Some(2)), &settings);
        assert_eq!(first, losses(&mut CpuEngine::cpu(Some(2)), &visit(3, settings), 3), "{optimizer}");
    }
}

#[test]
fn the_batch_size_does_not_change_the_initial_parameters() {
    let mut engine = CpuEngine::cpu(None);
    let _small = engine.prepare(&workload(1)).unwrap();
    let initial = first_weight(&engine);
    let mut large = engine.prepare(&workload(6)).unwrap();
    assert_eq!(first_weight(&engine), initial);
    large.run().unwrap();
    assert_ne!(first_weight(&engine), initial);
}

#[test]
fn the_next_visit_takes_over_the_memory_of_the_last() {
    let mut engine = CpuEngine::cpu(None);
    let address = |engine: &CpuEngine| engine.last.as_ref().map(Rc::as_ptr);
    drop(engine.prepare(&workload(2)).unwrap());
    let first = address(&engine);
    drop(engine.prepare(&workload(5)).unwrap());
    assert_eq!(address(&engine), first);
}

#[test]
fn a_step_that_is_still_in_use_keeps_its_parameters() {
    let mut engine = CpuEngine::cpu(Some(2));
    let expected = losses(&mut engine, &workload(2), 2);
    let mut kept = engine.prepare(&workload(2)).unwrap();
    assert_eq!(kept.run().unwrap().loss, Some(expected[0]));
    losses(&mut engine, &workload(2), 2);
    assert_eq!(kept.run().unwrap().loss, Some(expected[1]));
}

#[test]
fn what_engines_on_a_processor_promise_is_kept() {
    shared::a_batch_that_does_not_fit_is_refused_and_a_smaller_one_is_not(&mut CpuEngine::cpu(None));
    shared::a_batch_from_host_memory_takes_time_and_gives_the_same_losses(&mut CpuEngine::cpu(Some(2)));
    shared::the_phases_add_up_to_no_more_than_the_step(&mut CpuEngine::cpu(None));
    let nothing = [Settings { batch_padding: 0, ..settings() }, Settings { product_columns: Some(0), ..settings() }];
    shared::tf32_becomes_fp32_and_settings_that_are_lacking_are_refused(&CpuEngine::cpu(None), &nothing);
}

#[test]
fn bf16_is_refused_where_the_processor_lacks_it() {
    let bf16 = Settings { precision: Precision::Bf16, ..settings() };
    match CpuEngine::cpu(None).in_force(&bf16) {
        Ok(in_force) => assert!(bf16::is_there() && in_force == bf16),
        Err(error) => {
            assert!(!bf16::is_there() && error.to_string().contains("AVX512-BF16"), "{error}");
        }
    }
}

#[test]
fn the_step_runs_on_as_many_threads_as_asked_for() {
    let mut engine = CpuEngine::cpu(Some(3));
    let asked = visit(1, Settings { threads: Some(1), ..settings() });
    for (visit, threads) in [(workload(1), 3), (asked.clone(), 1), (workload(2), 3), (asked, 1)] {
        engine.prepare(&visit).unwrap().run().unwrap();
        assert!(engine.team(&visit.settings).unwrap().threads() == threads);
    }
    assert_eq!(engine.teams.len(), 2);
}

#[test]
fn a_loss_that_is_no_number_is_still_a_step() {
    let own = visit(2, Settings { learning_rate: f64::MAX, ..settings() });
    assert!(losses(&mut CpuEngine::cpu(None), &own, 3)[2].is_nan());
}

/// The engine reuses the memory of its last training; the next training still gets the settings that it asks for.
#[test]
fn without_winograd_the_same_step_is_computed_by_products() {
    let mut engine = CpuEngine::cpu(None);
    let mut step = |winograd| {
        let settings = Settings { winograd, ..settings() };
        let mut step = engine.prepare(&visit(3, settings)).unwrap();
        let losses = [step.run().unwrap().loss.unwrap(), step.run().unwrap().loss.unwrap()];
        let winograd =
            |layer: &LayerExecution| layer.algorithm.as_deref().is_some_and(|name| name.contains("winograd"));
        (losses, step.layers().iter().any(winograd))
    };
    let (any, never, again) = (step(Winograd::Any), step(Winograd::Never), step(Winograd::Any));
    assert_eq!((any.1, never.1), (true, false));
    assert_eq!(any, again);
    assert!(any.0.iter().zip(never.0).all(|(a, b)| (a - b).abs() < 1e-4 * a.abs()), "{any:?} {never:?}");
    let refused = engine.in_force(&Settings { winograd: Winograd::NonFused, ..settings() }).unwrap_err().to_string();
    assert!(refused.contains("use `any` or `never`"), "{refused}");
}

/// The padded examples are zeros, and products are cut only between whole sums: loss and update stay the same.
#[test]
fn padding_the_batch_and_cutting_products_leave_the_step_as_it_is() {
    let mut engine = CpuEngine::cpu(None);
    let mut losses = |batch_padding, product_columns| {
        let settings = Settings { batch_padding, product_columns, ..settings() };
        let mut step = engine.prepare(&visit(3, settings)).unwrap();
        [(); 3].map(|()| step.run().unwrap().loss.unwrap())
    };
    let plain = losses(1, None);
    for (batch_padding, product_columns) in [(16, None), (5, None), (1, Some(32)), (64, Some(7)), (1, None)] {
        let other = losses(batch_padding, product_columns);
        let near = plain.iter().zip(other).all(|(a, b)| (a - b).abs() < 1e-5 * a.abs());
        assert!(near, "{batch_padding} {product_columns:?}: {other:?}, not {plain:?}");
    }
    assert!(plain[2] < plain[0]);
}

/// Only the factors of products are rounded, to 8 bits: the first loss is off by less than a hundredth, and the layers
/// say which of them round. With three examples a dense layer has too few columns for rounding.
#[test]
fn in_bf16_a_step_is_nearly_the_same_and_layers_say_where_they_round() {
    if !bf16::is_there() {
        return eprintln!("skipped: this processor has no products of bfloat16");
    }
    let mut engine = CpuEngine::cpu(None);
    let mut step = |precision| {
        let settings = Settings { precision, ..settings() };
        let mut step = engine.prepare(&visit(3, settings)).unwrap();
        (step.run().unwrap().loss.unwrap(), step.layers())
    };
    let (exact, rounded, again) = (step(Precision::Fp32), step(Precision::Bf16), step(Precision::Fp32));
    assert_eq!(exact.0, again.0);
    assert!(exact.0 != rounded.0 && (exact.0 - rounded.0).abs() < 1e-2 * exact.0, "{} {}", exact.0, rounded.0);
    let mode = |name: &str| {
        let layer = rounded.1.iter().find(|layer| layer.layer == name && layer.direction == "forward");
        layer.and_then(|layer| layer.math_mode.clone())
    };
    // One channel, computed directly; by Winograd's algorithm; by a product; by a product of three columns.
    let modes = ["block1_conv", "block2_conv", "block3_conv", "predictions"].map(mode);
    assert_eq!(modes, ["fp32", "fp32", "bf16", "fp32"].map(|mode| Some(mode.to_owned())));
}

#[test]
fn every_layer_reports_its_work() {
    let mut step = CpuEngine::cpu(None).prepare(&workload(3)).unwrap();
    let layers = step.layers();
    let conv =
        |direction| layers.iter().find(|each| each.layer == "block2_conv" && each.direction == direction).unwrap();
    // 3 images x 14 x 14 positions x 64 x 32 x 9 weights x 2 FLOPs; where the bias comes in, 3 x 14 x 14 x 64 more.
    for (direction, flops) in
        [("forward", 21_713_664.0), ("backward_data", 21_676_032.0), ("backward_weights", 21_713_664.0)]
    {
        assert_eq!(conv(direction).flops, flops);
        assert_eq!(conv(direction).algorithm.as_deref(), Some("winograd_4x4_3x3"));
    }
    assert!(!layers.iter().any(|each| each.layer == "block1_conv" && each.direction == "backward_data"));
    assert!(layers.iter().all(|each| each.device_s.is_none() && each.math_mode.as_deref() == Some("fp32")));

    step.time_layers().unwrap();
    let timed = step.layers();
    assert!(timed.iter().zip(&layers).all(|(timed, each)| LayerExecution { device_s: None, ..timed.clone() } == *each));
    let seconds = |name: &str| {
        timed.iter().filter(|each| each.layer.ends_with(name)).map(|each| each.device_s).collect::<Vec<_>>()
    };
    assert!(seconds("_conv").iter().all(|seconds| seconds.is_some_and(|seconds| seconds > 0.0)), "{timed:?}");
    // A rectifier that its convolution applies while writing has no forward time of its own.
    assert!(seconds("_relu").contains(&None), "{timed:?}");
}

#[test]
fn a_cross_entropy_of_maps_is_refused() {
    let spec = crate::network::Conv2d::square(4, 3);
    let mut builder = crate::network::Builder::new("maps", Shape::Maps { channels: 1, height: 8, width: 8 }).unwrap();
    builder.then("conv", spec).unwrap();
    let network = Arc::new(builder.finish().unwrap());
    let visit = Workload { network, batch_size: 2, settings: settings() };
    assert_eq!(CpuEngine::cpu(None).prepare(&visit).err().unwrap().kind(), Kind::Spec);
    let visit = Workload { settings: Settings { loss: Loss::MeanSquaredError, ..settings() }, ..visit };
    assert!(losses(&mut CpuEngine::cpu(None), &visit, 2)[1].is_finite());
}

// mnist_cnn's second and third convolution, from 32 to 32 and to 64 channels.
#[test]
fn convolutions_change_their_algorithm_where_the_machine_is_known_to() {
    let folder = tempfile::tempdir().unwrap();
    let machine = CpuEngine::cpu(None).device.name.clone();
    let own = visit(64, Settings { threads: Some(1), ..settings() });
    let algorithms = |threshold: &str| {
        let cache = algorithm_choice::tests::known(folder.path(), &machine, 1, threshold);
        let step = CpuEngine::cpu(None).measuring(cache).prepare(&own).unwrap();
        let forward = step.layers().into_iter().filter(|layer| layer.direction == Direction::Forward.name());
        forward.filter_map(|layer| layer.algorithm).map(|name| name.starts_with("winograd")).collect::<Vec<_>>()
    };
    let always = algorithms("0 0");
    assert!(always.contains(&true) && !algorithms("inf inf").contains(&true), "{always:?}");
}
