use std::sync::Arc;

use super::*;
use crate::data::digits::{SHAPE, TrainOrTest, draw};
use crate::engine::Engine;
use crate::engine::cpu::CpuEngine;
use crate::engine::cudnn::emulated::{EmulatedEngine, emulator};
use crate::network::{BatchNorm, Builder, Conv2d, Dense, MaxPool2d, Network, Operation, Padding, Shape};
use crate::settings::{Launch, Optimizer, Settings};

#[test]
fn what_a_loaders_batch_cannot_be_copied_to_is_refused_with_a_remedy() {
    let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 3).unwrap());
    let pinned = Settings { data: DataPath::Pinned, ..Settings::default() };
    let workload = |settings| Workload { network: Arc::clone(&network), batch_size: 2, settings };
    check(&workload(pinned.clone())).unwrap();
    for settings in [
        Settings { data: DataPath::Resident, ..pinned.clone() },
        Settings { data: DataPath::Prefetch, ..pinned.clone() },
        Settings { precision: Precision::Bf16, ..pinned.clone() },
        Settings { layout: Layout::Nhwc, ..pinned.clone() },
        Settings { loss: Loss::MeanSquaredError, ..pinned.clone() },
    ] {
        assert!(check(&workload(settings)).unwrap_err().to_string().contains("help: use "));
    }
}

/// Three batches of eight drawn digits, and sixteen more to classify.
fn digits() -> (Vec<f32>, Vec<u32>) {
    let set = draw(1, TrainOrTest::Train, 40);
    let pixels = set.pixels.iter().map(|byte| f32::from(*byte) / 255.0 - 0.5);
    (pixels.collect(), set.labels.iter().map(|label| u32::from(*label)).collect())
}

/// A convolution with batch norm and dropout, so that a training and a classification compute different things.
fn with_statistics() -> Arc<Network> {
    let mut b = Builder::new("small", SHAPE).unwrap();
    b.then("conv", Conv2d { padding: Padding::all(1), ..Conv2d::square(4, 3) }).unwrap();
    b.then("norm", BatchNorm::default()).unwrap();
    b.then("relu", Operation::Relu).unwrap();
    b.then("pool", MaxPool2d::square(4)).unwrap();
    b.then("flatten", Operation::Flatten).unwrap();
    b.then("dropout", Operation::Dropout { rate: 0.2 }).unwrap();
    b.then("dense", Dense { out_features: 10, bias: true }).unwrap();
    Arc::new(b.finish().unwrap())
}

/// The losses of two epochs of three steps, and the number of correct classifications and the loss before and after.
fn trained(trainer: &mut dyn Trainer) -> (Vec<f64>, [Score; 2]) {
    let (pixels, labels) = digits();
    let each = SHAPE.count();
    let batch = |range: std::ops::Range<usize>| Batch {
        inputs: &pixels[range.start * each..range.end * each],
        labels: &labels[range],
    };
    let before = trainer.evaluate(batch(24..40)).unwrap();
    let steps = (0..2).flat_map(|_| [0..8, 8..16, 16..24]);
    let losses = steps.map(|range| trainer.step(batch(range)).unwrap().loss.unwrap()).collect();
    (losses, [before, trainer.evaluate(batch(24..40)).unwrap()])
}

/// The same network, seed and batches: the GPU's step on the emulator computes the same as the CPU engine, its running
/// statistics are those with which the CPU engine classifies, and after a reset everything begins anew.
#[test]
fn a_training_on_a_loaders_batches_matches_the_cpu_engine() {
    if emulator().is_none() {
        return;
    }
    let settings = Settings {
        precision: Precision::Fp32,
        optimizer: Optimizer::Adam,
        learning_rate: 1e-2,
        launch: Launch::Eager,
        seed: 3,
        ..Settings::default()
    };
    let workload = Workload { network: with_statistics(), batch_size: 8, settings };
    let expected = trained(CpuEngine::cpu(Some(1)).train(&workload).unwrap().as_mut());
    let step = EmulatedEngine::default().step(&workload).unwrap();
    let mut trainer = CudnnTrainer::new(Box::new(step), &workload);
    let close = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-4;
    let mut first = None;
    for _ in 0..2 {
        let (losses, scores) = trained(&mut trainer);
        assert!(losses.iter().zip(&expected.0).all(|(a, b)| close(*a, *b)), "{losses:?} {:?}", expected.0);
        for (own, cpu) in scores.iter().zip(&expected.1) {
            assert!(own.correct == cpu.correct && close(own.loss, cpu.loss), "{own:?} {cpu:?}");
        }
        assert_eq!(*first.get_or_insert_with(|| losses.clone()), losses, "the same after a reset");
        trainer.reset().unwrap();
    }
    assert!(expected.1[1].loss < expected.1[0].loss, "it learns: {:?}", expected.1);
}
