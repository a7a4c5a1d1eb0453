use super::Windows;
use crate::engine::cpu::op::reference::Case;
use crate::error::Result;
use crate::network::{Extent, MaxPool2d, Padding, Shape};

const AROUND: Padding = Padding { top: 1, bottom: 1, left: 1, right: 1 };

fn pool(kernel: [usize; 2], stride: [usize; 2], padding: Padding) -> MaxPool2d {
    MaxPool2d { kernel: kernel.into(), stride: stride.into(), padding }
}

fn plane(height: usize, width: usize) -> Shape {
    Shape::Maps { channels: 1, height, width }
}

#[test]
fn the_first_of_equal_maxima_takes_the_gradient() -> Result<()> {
    let case = Case::new(pool([2, 2], [2, 2], Padding::default()), plane(4, 4), 1, vec![vec![1.0; 16]])?;
    let first_of_each = [1., 0., 1., 0., 0., 0., 0., 0., 1., 0., 1., 0., 0., 0., 0., 0.];
    assert_eq!(case.run::<f32>(&[1.0; 4])?.gradients[0], first_of_each);
    Ok(())
}

#[test]
fn a_nan_wins_and_padding_never_does() -> Result<()> {
    let p = pool([1, 2], [1, 2], Padding { right: 1, ..Padding::default() });
    let case = Case::new(p, plane(2, 2), 1, vec![vec![f64::NAN, 1.0, -3.0, -4.0]])?;
    let y = case.run::<f32>(&vec![0.0; case.outputs()])?.y;
    assert!(y[0].is_nan());
    assert_eq!(y[1], -3.0);
    Ok(())
}

#[test]
fn windows_that_cover_only_padding_are_refused() {
    let four = Extent::square(4);
    assert!(Windows::new(four, &pool([1, 2], [1, 1], AROUND)).is_err());
    assert!(Windows::new(four, &pool([5, 5], [1, 1], Padding::default())).is_err());
    assert!(Windows::new(four, &pool([2, 2], [1, 0], Padding::default())).is_err());
}
