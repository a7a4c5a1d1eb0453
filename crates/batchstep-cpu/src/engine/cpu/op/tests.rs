//! The operators against PyTorch, finite differences and their definitions, and what single ones promise.

use super::cases::{Case, expected, pytorch_cases, reals};
use crate::engine::cpu::thread_team::by_three;
use crate::network::{BatchNorm, Conv2d, Dense, Extent, MaxPool2d, Operation, Padding, Shape};
use crate::random::Rng;

#[test]
fn every_operator_agrees_with_pytorch() {
    for (name, operation) in pytorch_cases() {
        let (case, dy) = (Case::of_pytorch(name, operation), expected(name, "dy").values);
        case.run::<f64>(&dy).agrees(name, &case, 1e-10);
        case.run::<f32>(&dy).agrees(name, &case, 1e-4);
    }
}

#[test]
fn gradients_match_finite_differences() {
    let maps = |channels, height, width| Shape::Maps { channels, height, width };
    let conv = |groups| {
        let padding = Padding { top: 1, bottom: 0, left: 2, right: 1 };
        let (kernel, stride) = (Extent::new(3, 2), Extent::new(2, 1));
        Operation::Conv2d(Conv2d { out_channels: 4, kernel, stride, padding, groups, bias: true })
    };
    let pool = |kernel: [usize; 2], stride: [usize; 2], padding| {
        Operation::MaxPool2d(MaxPool2d { kernel: kernel.into(), stride: stride.into(), padding })
    };
    let norm = Operation::BatchNorm(BatchNorm { epsilon: 1e-3, momentum: 0.9 });
    let (around, mut random) = (Padding::all(1), Rng::new(1));
    for (operation, input, batch) in [
        (conv(1), maps(4, 5, 4), 2),
        (conv(2), maps(4, 5, 4), 2),
        (conv(4), maps(4, 5, 4), 2),
        (norm, maps(4, 2, 3), 3),
        (norm, Shape::Flat(4), 5),
        (norm, maps(4, 3, 2), 6),
        (norm, maps(4, 1, 2), 34),
        (pool([2, 2], [2, 2], Padding::NONE), maps(3, 6, 5), 2),
        (pool([3, 3], [2, 2], around), maps(3, 6, 5), 2),
        (pool([2, 3], [1, 2], around), maps(3, 6, 5), 2),
        (Operation::GlobalAveragePool, maps(3, 9, 8), 2),
        (Operation::Dense(Dense { out_features: 3, bias: true }), Shape::Flat(7), 5),
        (Operation::Dropout { rate: 0.4 }, Shape::Flat(40), 1),
    ] {
        Case::random(operation, input, batch, &mut random).gradients_match_differences();
    }
    // Values on both sides of 0 and of 6.
    let x: Vec<f64> = reals(&mut Rng::new(1), 120).iter().map(|x| 10.0 * x + 0.5).collect();
    for rectifier in [Operation::Relu, Operation::Relu6] {
        Case::new(rectifier, Shape::Flat(40), 3, vec![x.clone()]).gradients_match_differences();
    }
}

#[test]
fn a_nan_passes_through_a_rectifier() {
    let x = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    for (rectifier, largest) in [(Operation::Relu, f64::INFINITY), (Operation::Relu6, 6.0)] {
        let y = Case::new(rectifier, Shape::Flat(3), 1, vec![x.clone()]).run::<f32>(&[0.0; 3]).y;
        assert!(y[0].is_nan());
        assert_eq!(y[1..], [largest, 0.0]);
    }
}

#[test]
fn of_a_window_the_first_maximum_wins_or_a_nan_and_padding_never() {
    let plane = |side| Shape::Maps { channels: 1, height: side, width: side };
    let case = Case::new(MaxPool2d::square(2), plane(4), 1, vec![vec![1.0; 16]]);
    let first_of_each = [1., 0., 1., 0., 0., 0., 0., 0., 1., 0., 1., 0., 0., 0., 0., 0.];
    assert_eq!(case.run::<f32>(&[1.0; 4]).gradients[0], first_of_each);
    let pair = Extent::new(1, 2);
    let p = MaxPool2d { kernel: pair, stride: pair, padding: Padding { right: 1, ..Padding::NONE } };
    let y = Case::new(p, plane(2), 1, vec![vec![f64::NAN, 1.0, -3.0, -4.0]]).run::<f32>(&[0.0; 2]).y;
    assert!(y[0].is_nan() && y[1] == -3.0, "{y:?}");
}

/// Large enough for several tasks.
#[test]
fn dense_layers_of_many_sizes_agree_with_the_definition() {
    let mut random = Rng::new(2);
    for (batch, features, out_features) in
        [(1, 600, 300), (33, 257, 130), (70, 100, 10), (2, 3, 513), (1300, 20, 5), (600, 1, 64)]
    {
        let dense = Dense { out_features, bias: false };
        Case::random(dense, Shape::Flat(features), batch, &mut random).agrees_with_the_definition(&mut random);
    }
}

/// Dropout of ones.
fn dropout(count: usize, rate: f64, seed: u64) -> Case {
    Case::new(Operation::Dropout { rate }, Shape::Flat(count), 1, vec![vec![1.0; count]]).seeded(seed)
}

#[test]
fn a_mask_follows_from_its_seed_alone() {
    let y = |seed| dropout(10_000, 0.5, seed).y();
    assert_eq!(y(7), y(7));
    let differing = y(7).iter().zip(y(8)).filter(|(a, b)| **a != *b).count();
    // Independent masks differ in half of the places, within 5 standard deviations of 50 each.
    assert!((4750..=5250).contains(&differing), "{differing} of 10000 places differ");
    let case = dropout(300_000, 0.3, 1);
    assert_eq!(by_three(|| case.y()), case.y());
}

#[test]
fn the_share_of_zeros_is_the_rate_and_the_others_are_scaled_in_both_directions() {
    for rate in [0.1, 0.5, 0.8] {
        let found = dropout(100_000, rate, 3).run::<f32>(&[1.0; 100_000]);
        let zeros = found.y.iter().filter(|y| **y == 0.0).count() as f64;
        let deviation = (100_000.0 * rate * (1.0 - rate)).sqrt();
        assert!((zeros - 100_000.0 * rate).abs() < 5.0 * deviation, "{zeros} zeros at rate {rate}");
        assert!(found.y.iter().all(|y| *y == 0.0 || (y - 1.0 / (1.0 - rate)).abs() < 1e-6));
        assert_eq!(found.gradients[0], found.y);
    }
    assert_eq!(dropout(100, 0.0, 3).y(), [1.0; 100]);
}
