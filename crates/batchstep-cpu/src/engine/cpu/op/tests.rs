//! What holds of every operator: PyTorch's values and gradients, and finite differences.

use super::cases::{Case, Random, expected, pytorch_cases};
use crate::error::Result;
use crate::network::{BatchNorm, Conv2d, Dense, Extent, MaxPool2d, Operation, Padding, Shape};

#[test]
fn every_operator_agrees_with_pytorch() -> Result<()> {
    for (name, operation) in pytorch_cases() {
        let (case, dy) = (Case::of_pytorch(name, operation), expected(name, "dy").values);
        case.run::<f64>(&dy)?.agrees(name, &case, 1e-10);
        case.run::<f32>(&dy)?.agrees(name, &case, 1e-4);
    }
    Ok(())
}

#[test]
fn gradients_match_finite_differences() -> Result<()> {
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
    let (around, mut random) = (Padding::all(1), Random::new(1));
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
        Case::random(operation, input, batch, &mut random)?.gradients_match_differences()?;
    }
    // Values on both sides of 0 and of 6.
    let x: Vec<f64> = Random::new(1).reals(120).iter().map(|x| 10.0 * x + 0.5).collect();
    for rectifier in [Operation::Relu, Operation::Relu6] {
        Case::new(rectifier, Shape::Flat(40), 3, vec![x.clone()])?.gradients_match_differences()?;
    }
    Ok(())
}

#[test]
fn a_nan_passes_through_a_rectifier() -> Result<()> {
    let x = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    for (rectifier, largest) in [(Operation::Relu, f64::INFINITY), (Operation::Relu6, 6.0)] {
        let y = Case::new(rectifier, Shape::Flat(3), 1, vec![x.clone()])?.run::<f32>(&[0.0; 3])?.y;
        assert!(y[0].is_nan());
        assert_eq!(y[1..], [largest, 0.0]);
    }
    Ok(())
}

#[test]
fn the_first_of_equal_maxima_takes_the_gradient() -> Result<()> {
    let plane = Shape::Maps { channels: 1, height: 4, width: 4 };
    let case = Case::new(MaxPool2d::square(2), plane, 1, vec![vec![1.0; 16]])?;
    let first_of_each = [1., 0., 1., 0., 0., 0., 0., 0., 1., 0., 1., 0., 0., 0., 0., 0.];
    assert_eq!(case.run::<f32>(&[1.0; 4])?.gradients[0], first_of_each);
    Ok(())
}

#[test]
fn a_nan_wins_and_padding_never_does() -> Result<()> {
    let (pair, plane) = (Extent::new(1, 2), Shape::Maps { channels: 1, height: 2, width: 2 });
    let p = MaxPool2d { kernel: pair, stride: pair, padding: Padding { right: 1, ..Padding::NONE } };
    let case = Case::new(p, plane, 1, vec![vec![f64::NAN, 1.0, -3.0, -4.0]])?;
    let y = case.run::<f32>(&vec![0.0; case.outputs()])?.y;
    assert!(y[0].is_nan());
    assert_eq!(y[1], -3.0);
    Ok(())
}
