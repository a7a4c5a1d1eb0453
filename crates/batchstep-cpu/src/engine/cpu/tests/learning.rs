//! The engine learns: classes of images, and a surface from points as PyTorch does.

use super::super::training::Training;
use super::*;
use crate::engine::train::Score;
use crate::network::data;
use crate::random::{Purpose, Stream};

/// A 28 x 28 image of class `number % 10`: stripes, upright or not, that are 2 to 6 pixels apart; `number` also determines
/// their shift and the noise.
fn stripes(number: u64) -> Vec<f32> {
    let random = Stream::new(5, Purpose::Inputs, [number, 0]);
    let (class, shift) = ((number % 10) as usize, (random.uniform(0) * 60.0) as usize);
    let pixel = |index: usize| {
        let along = if class.is_multiple_of(2) { index % 28 } else { index / 28 };
        let bright = (along + shift).is_multiple_of(2 + class / 2);
        f32::from(u8::from(bright)) + 0.6 * (random.uniform(10 + index as u64) - 0.5)
    };
    (0..28 * 28).map(pixel).collect()
}

/// Images `first..first + count`, and their labels one-hot.
fn images(first: u64, count: usize) -> (Vec<f32>, Vec<f32>) {
    let numbers = first..first + count as u64;
    let images = numbers.clone().flat_map(stripes).collect();
    (images, numbers.flat_map(|number| (0..10).map(move |k| f32::from(u8::from(k == number % 10)))).collect())
}

/// The share of 500 unseen images that are classified correctly after 80 steps of 32.
fn classified(seed: u64) -> f64 {
    let Workload { network, settings, .. } = workload(1);
    let settings = Settings { optimizer: Optimizer::Adam, learning_rate: 2e-3, seed, ..settings };
    let mut training = Training::<f32>::new(network, &settings);
    for step in 0..80 {
        let (images, labels) = images(step * 32, 32);
        training.step(&images, &labels).unwrap();
    }
    let (images, labels) = images(1_000_000, 500);
    let scores = training.evaluate(&images, &labels).unwrap();
    Score::of(&scores, &(0..500).map(|number| number % 10).collect::<Vec<_>>()).accuracy().unwrap()
}

/// Guessing classifies a tenth correctly.
#[test]
fn mnist_cnn_learns_to_tell_stripes_from_every_seed() {
    let shares: Vec<f64> = (1..=3).map(classified).collect();
    assert!(shares.iter().all(|share| *share > 0.8), "{shares:?}");
}

/// A fit as PyTorch makes it; see `scripts/fixtures/peaks.py`.
#[derive(serde::Deserialize)]
struct PytorchFit {
    seed: u64,
    points: usize,
    learning_rate: f64,
    losses: Vec<After>,
}

#[derive(serde::Deserialize)]
struct After {
    updates: usize,
    double: f64,
}

/// Expected values: `tests/fixtures/peaks.json`, produced by `scripts/fixtures/peaks.py` with PyTorch in float64. With
/// these seeds it takes 150 updates until rounding errors of 1e-16 have grown to 1e-10 of the loss.
#[test]
fn in_double_precision_a_fit_follows_pytorch_for_150_updates() {
    let fits: Vec<PytorchFit> =
        serde_json::from_str(include_str!("../../../../../../tests/fixtures/peaks.json")).unwrap();
    for PytorchFit { seed, points, learning_rate, losses } in fits {
        let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 1).unwrap());
        let (optimizer, loss, examples) = (Optimizer::Adam, Loss::MeanSquaredError, Examples::Peaks);
        let settings = Settings { optimizer, loss, examples, learning_rate, seed, ..settings() };
        let workload = Workload { network: network.clone(), batch_size: points, settings: settings.clone() };
        let mut training = Training::<f64>::new(network, &settings);
        let [places, heights] = [data::inputs(&workload), data::targets(&workload)]
            .map(|values| values.into_iter().map(f64::from).collect::<Vec<f64>>());
        for updates in 0..=150 {
            let own = training.step(&places, &heights).unwrap().loss.unwrap();
            for After { double, .. } in losses.iter().filter(|loss| loss.updates == updates) {
                assert!((own / double - 1.0).abs() < 1e-9, "seed {seed} after {updates}: {own} {double}");
            }
        }
    }
}
