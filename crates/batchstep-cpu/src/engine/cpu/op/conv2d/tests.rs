use super::geometry::Geometry;
use super::{Algorithm, Convolution};
use crate::engine::cpu::algorithm_choice::Switch;
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::reference::{Case, Random, assert_values_close};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::thread_team::by_three;
use crate::error::Result;
use crate::network::{Conv2d, Extent, Padding, Shape};
use crate::settings::Winograd;

fn layer(out_channels: usize, kernel: Extent) -> Conv2d {
    Conv2d { out_channels, kernel, stride: Extent::square(1), padding: Padding::default(), groups: 1, bias: false }
}

fn padding(top: usize, bottom: usize, left: usize, right: usize) -> Padding {
    Padding { top, bottom, left, right }
}

/// The definition, one multiplication at a time: output, and gradients of input and weights.
fn oracle(g: &Geometry, x: &[f64], w: &[f64], dy: &[f64]) -> [Vec<f64>; 3] {
    let mut y = vec![0.0; g.output_len()];
    let (mut dx, mut dw) = (vec![0.0; x.len()], vec![0.0; w.len()]);
    for (at, y) in y.iter_mut().enumerate() {
        let (plane, position) = (at / g.positions(), at % g.positions());
        let (image, out) = (plane / g.out_channels, plane % g.out_channels);
        for k in 0..g.depth() {
            let (channel, tap) = (out / g.group_out() * g.group_in() + k / g.taps(), k % g.taps());
            let row = (position / g.out_width * g.stride.height + tap / g.kernel.width).checked_sub(g.padding.top);
            let column = (position % g.out_width * g.stride.width + tap % g.kernel.width).checked_sub(g.padding.left);
            let (Some(row), Some(column)) = (row.filter(|r| *r < g.height), column.filter(|c| *c < g.width)) else {
                continue;
            };
            let from = ((image * g.in_channels + channel) * g.height + row) * g.width + column;
            *y += w[out * g.depth() + k] * x[from];
            dx[from] += w[out * g.depth() + k] * dy[at];
            dw[out * g.depth() + k] += x[from] * dy[at];
        }
    }
    [y, dx, dw]
}

/// Runs the operator in both types against [`oracle`].
fn agrees_with_the_definition(x: [usize; 4], p: &Conv2d, random: &mut Random) -> Result<()> {
    by_three(|| compare_with_the_definition(x, p, random))
}

fn compare_with_the_definition(x: [usize; 4], p: &Conv2d, random: &mut Random) -> Result<()> {
    let w = [p.out_channels, x[1] / p.groups, p.kernel.height, p.kernel.width];
    let g = Geometry::new(&x, &w, p)?;
    let (xs, ws) = (random.reals(g.input_len()), random.reals(g.weight_len()));
    let dys = random.reals(g.output_len());
    let expected = oracle(&g, &xs, &ws, &dys);
    let [batch, channels, height, width] = x;
    let case = Case::new(*p, Shape::Maps { channels, height, width }, batch, vec![xs, ws])?;
    // Rounding grows with the number of terms of a sum.
    compare_in::<f64>(&case, &dys, &expected, (1e-12, &format!("{g:?} in float64")))?;
    compare_in::<f32>(&case, &dys, &expected, (2e-5, &format!("{g:?} in float32")))
}

fn compare_in<T: Scalar>(
    case: &Case,
    dys: &[f64],
    expected: &[Vec<f64>; 3],
    (tolerance, what): (f64, &str),
) -> Result<()> {
    let found = case.run::<T>(dys)?;
    let found = [&found.y].into_iter().chain(&found.gradients);
    for ((found, expected), name) in found.zip(expected).zip(["y", "dx", "dw"]) {
        assert_values_close(found, expected, tolerance, &format!("{name} of {what}"));
    }
    Ok(())
}

#[test]
fn fifty_random_convolutions_agree_with_the_definition() -> Result<()> {
    let mut random = Random::new(2);
    for case in 0..50 {
        let kernel = Extent::new(random.integer(1, 4), random.integer(1, 4));
        let groups = [1, 1, 2, 3, 6][random.integer(0, 4)];
        let depthwise = case % 5 == 0;
        let channels = (groups * random.integer(1, 5), groups * random.integer(1, 6));
        let p = Conv2d {
            out_channels: if depthwise { channels.0 } else { channels.1 },
            kernel,
            stride: Extent::new(random.integer(1, 3), random.integer(1, 3)),
            padding: padding(random.integer(0, 3), random.integer(0, 2), random.integer(0, 3), random.integer(0, 2)),
            groups: if depthwise { channels.0 } else { groups },
            bias: false,
        };
        let size = (random.integer(4, 13), random.integer(4, 13));
        agrees_with_the_definition([random.integer(1, 5), channels.0, size.0, size.1], &p, &mut random)?;
    }
    Ok(())
}

/// Each shape is tiled in a different way: several depths, few columns, whole-batch sheets, several parts; less than a
/// register of columns, with several parts of the filters and several products for each.
#[test]
fn every_way_of_tiling_agrees_with_the_definition() -> Result<()> {
    let mut random = Random::new(3);
    let around = Conv2d { padding: padding(1, 1, 1, 1), ..layer(20, Extent::square(3)) };
    agrees_with_the_definition([2, 48, 17, 16], &around, &mut random)?;
    agrees_with_the_definition([9, 50, 2, 2], &around, &mut random)?;
    agrees_with_the_definition([1, 40, 3, 1], &around, &mut random)?;
    agrees_with_the_definition([3, 3, 24, 23], &around, &mut random)?;
    agrees_with_the_definition([3, 40, 2, 2], &layer(70, Extent::square(1)), &mut random)?;
    let many = Conv2d { stride: Extent::square(2), out_channels: 300, ..around };
    agrees_with_the_definition([2, 150, 4, 3], &many, &mut random)?;
    agrees_with_the_definition([40, 5, 7, 7], &Conv2d { stride: Extent::square(2), ..around }, &mut random)?;
    agrees_with_the_definition([2, 30, 19, 20], &layer(37, Extent::square(1)), &mut random)?;
    agrees_with_the_definition([3, 70, 12, 11], &layer(130, Extent::square(1)), &mut random)?;
    agrees_with_the_definition([1, 30, 40, 17], &layer(37, Extent::square(1)), &mut random)?;
    agrees_with_the_definition([70, 30, 1, 1], &layer(37, Extent::square(1)), &mut random)
}

/// Tiles that stick out, paddings of all kinds, few tiles and many, small filters' gradients and large ones.
#[test]
fn transformed_tiles_agree_with_the_definition() -> Result<()> {
    let mut random = Random::new(6);
    let mut agrees = |x: [usize; 4], out: usize, pad: Padding| {
        let p = Conv2d { padding: pad, ..layer(out, Extent::square(3)) };
        let g = Geometry::new(&x, &[out, x[1], 3, 3], &p)?;
        assert_eq!(Algorithm::of(&g, Winograd::Any, Switch::default()), Algorithm::Winograd, "{g:?}");
        agrees_with_the_definition(x, &p, &mut random)
    };
    agrees([1, 24, 24, 24], 24, padding(1, 1, 1, 1))?;
    agrees([3, 25, 13, 18], 27, padding(0, 0, 0, 0))?;
    agrees([2, 24, 19, 15], 26, padding(2, 0, 1, 2))?;
    agrees([150, 24, 2, 3], 30, padding(1, 1, 1, 1))?;
    agrees([60, 24, 3, 3], 24, padding(1, 1, 1, 1))?;
    agrees([2, 24, 3, 158], 24, padding(1, 0, 0, 1))?;
    agrees([5, 24, 50, 47], 25, padding(1, 1, 1, 1))?;
    agrees([2, 90, 23, 22], 100, padding(1, 1, 1, 1))?;
    // Few tiles: the filters are transformed in pieces, of some outputs and some inputs.
    agrees([3, 150, 8, 8], 230, padding(1, 1, 1, 1))?;
    agrees([2, 130, 13, 11], 37, padding(0, 2, 1, 0))?;
    agrees([3, 31, 14, 14], 260, padding(1, 1, 1, 1))
}

/// Planes of several registers, planes of one register, and several planes in one register, with the last register full
/// and not full.
#[test]
fn narrow_planes_of_their_own_filters_agree_with_the_definition() -> Result<()> {
    let mut random = Random::new(9);
    for (batch, channels, height, width) in [
        (1, 3, 8, 8),
        (3, 17, 7, 7),
        (2, 5, 4, 4),
        (5, 40, 3, 2),
        (4, 33, 2, 2),
        (2, 37, 1, 1),
        (1, 2, 1, 8),
        (2, 6, 20, 1),
    ] {
        let p = Conv2d { padding: padding(1, 1, 1, 1), groups: channels, ..layer(channels, Extent::square(3)) };
        agrees_with_the_definition([batch, channels, height, width], &p, &mut random)?;
    }
    Ok(())
}

#[test]
fn images_of_few_channels_agree_with_the_definition() -> Result<()> {
    let mut random = Random::new(7);
    let mut agrees = |x: [usize; 4], out: usize, pad: Padding| {
        let p = Conv2d { padding: pad, ..layer(out, Extent::square(3)) };
        let g = Geometry::new(&x, &[out, x[1], 3, 3], &p)?;
        assert_eq!(Algorithm::of(&g, Winograd::Any, Switch::default()), Algorithm::FewChannels, "{g:?}");
        agrees_with_the_definition(x, &p, &mut random)
    };
    agrees([1, 1, 3, 3], 2, padding(0, 0, 0, 0))?;
    agrees([3, 1, 28, 28], 32, padding(1, 1, 1, 1))?;
    agrees([1, 3, 70, 50], 10, padding(1, 1, 1, 1))?;
    agrees([20, 4, 5, 17], 9, padding(0, 2, 2, 0))?;
    agrees([2, 2, 33, 1], 7, padding(2, 1, 1, 1))?;
    agrees([1, 3, 2, 100], 5, padding(1, 0, 0, 1))
}

/// Paddings of all kinds, several bands of rows, several parts of the batch and of the taps.
#[test]
fn parts_of_images_as_they_lie_agree_with_the_definition() -> Result<()> {
    let mut random = Random::new(8);
    let mut agrees = |x: [usize; 4], out: usize, [height, width]: [usize; 2], pad: Padding| {
        let p = Conv2d { padding: pad, ..layer(out, Extent::new(height, width)) };
        let g = Geometry::new(&x, &[out, x[1], height, width], &p)?;
        assert_eq!(Algorithm::of(&g, Winograd::Never, Switch::default()), Algorithm::Implicit, "{g:?}");
        agrees_with_the_definition(x, &p, &mut random)
    };
    agrees([1, 16, 12, 12], 16, [5, 5], padding(2, 2, 2, 2))?;
    agrees([5, 17, 13, 18], 35, [5, 3], padding(0, 1, 2, 0))?;
    agrees([2, 33, 31, 47], 18, [1, 7], padding(0, 0, 3, 3))?;
    agrees([3, 16, 37, 50], 17, [7, 4], padding(3, 0, 1, 3))?;
    agrees([1, 18, 9, 90], 19, [2, 1], padding(1, 1, 0, 0))?;
    agrees([11, 16, 16, 16], 22, [3, 3], padding(2, 1, 0, 2))?;
    agrees([1, 16, 64, 60], 16, [4, 2], padding(0, 3, 1, 0))
}

#[test]
fn bias_and_rectifier_come_after_the_products_in_every_way() -> Result<()> {
    let mut random = Random::new(7);
    let around = Conv2d { padding: padding(1, 1, 1, 1), bias: true, ..layer(26, Extent::square(3)) };
    for (algorithm, x, p) in [
        (Algorithm::Unfolded, [2, 5, 9, 8], around),
        (Algorithm::FewChannels, [2, 3, 9, 8], around),
        (Algorithm::Implicit, [2, 16, 19, 18], Conv2d { out_channels: 20, ..around }),
        (Algorithm::Winograd, [2, 24, 21, 19], around),
        (Algorithm::Pointwise, [2, 7, 12, 13], Conv2d { bias: true, ..layer(26, Extent::square(1)) }),
        (Algorithm::Depthwise, [2, 26, 9, 8], Conv2d { groups: 26, ..around }),
        (Algorithm::Depthwise, [2, 26, 9, 18], Conv2d { groups: 26, ..around }),
    ] {
        let w = [p.out_channels, x[1] / p.groups, p.kernel.height, p.kernel.width];
        let g = Geometry::new(&x, &w, &p)?;
        let convolution = Convolution::new(&x, &w, &p, Winograd::Any, Switch::default())?;
        assert_eq!(convolution.algorithm, algorithm);
        let (xs, ws) = (random.reals(g.input_len()), random.reals(g.weight_len()));
        let bias = random.reals(p.out_channels);
        let run = |bias, rectifier| {
            let mut y = vec![0.0; g.output_len()];
            convolution.forward(&xs, Filters { weight: &ws, bias, rectifier }, &mut y);
            y
        };
        let plain = run(None, Rectifier::Identity);
        let planes = plain.chunks_exact(g.positions()).zip(bias.iter().cycle());
        let expected: Vec<f64> = planes.flat_map(|(plane, b)| plane.iter().map(move |y| (y + b).max(0.0))).collect();
        assert_values_close(&run(Some(&bias), Rectifier::Relu), &expected, 1e-14, &format!("{algorithm:?}"));
    }
    Ok(())
}

#[test]
fn wrong_shapes_are_refused_with_the_reason() {
    let p = layer(2, Extent::square(3));
    let refused = |x: &[usize], p: &Conv2d| match Geometry::new(x, &[2, 3, 3, 3], p) {
        Ok(_) => String::new(),
        Err(error) => error.to_string(),
    };
    assert!(refused(&[0, 3, 8, 8], &p).contains("the batch is empty"));
    assert!(refused(&[1, 4, 8, 8], &p).contains("the weights must be [2, 4, 3, 3]"));
    assert!(refused(&[1, 3, 2, 8], &p).contains("does not fit"));
    assert!(refused(&[1, 3, 8, 8], &Conv2d { groups: 2, ..p }).contains("do not split into 2 groups"));
    assert!(refused(&[1, 3, 8, 8], &Conv2d { stride: Extent::new(0, 1), ..p }).contains("does not fit"));
}
