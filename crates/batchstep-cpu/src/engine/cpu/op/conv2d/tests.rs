use super::geometry::Geometry;
use super::{Algorithm, Convolution};
use crate::engine::cpu::algorithm_choice::WinogradThreshold;
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cpu::op::cases::{Case, assert_values_close, reals};
use crate::engine::cpu::op::filters::Filters;
use crate::network::{Conv2d, Extent, Padding, Shape};
use crate::random::Rng;
use crate::settings::Winograd;

fn layer(out_channels: usize, kernel: Extent) -> Conv2d {
    Conv2d { out_channels, kernel, stride: Extent::square(1), padding: Padding::default(), groups: 1, bias: false }
}

fn geometry([batch, channels, height, width]: [usize; 4], p: &Conv2d) -> crate::error::Result<Geometry> {
    Geometry::new(batch, Shape::Maps { channels, height, width }, p)
}

fn padding(top: usize, bottom: usize, left: usize, right: usize) -> Padding {
    Padding { top, bottom, left, right }
}

fn agrees_with_the_definition(x: [usize; 4], p: &Conv2d, random: &mut Rng) {
    let [batch, channels, height, width] = x;
    Case::random(*p, Shape::Maps { channels, height, width }, batch, random).agrees_with_the_definition(random);
}

/// Uniform in `low..=high`.
fn integer(random: &mut Rng, low: usize, high: usize) -> usize {
    low + random.below(high - low + 1)
}

#[test]
fn fifty_random_convolutions_agree_with_the_definition() {
    let mut random = Rng::new(2);
    for case in 0..50 {
        let kernel = Extent::new(integer(&mut random, 1, 4), integer(&mut random, 1, 4));
        let groups = [1, 1, 2, 3, 6][integer(&mut random, 0, 4)];
        let depthwise = case % 5 == 0;
        let channels = (groups * integer(&mut random, 1, 5), groups * integer(&mut random, 1, 6));
        let p = Conv2d {
            out_channels: if depthwise { channels.0 } else { channels.1 },
            kernel,
            stride: Extent::new(integer(&mut random, 1, 3), integer(&mut random, 1, 3)),
            padding: padding(
                integer(&mut random, 0, 3),
                integer(&mut random, 0, 2),
                integer(&mut random, 0, 3),
                integer(&mut random, 0, 2),
            ),
            groups: if depthwise { channels.0 } else { groups },
            bias: false,
        };
        let size = (integer(&mut random, 4, 13), integer(&mut random, 4, 13));
        agrees_with_the_definition([integer(&mut random, 1, 5), channels.0, size.0, size.1], &p, &mut random);
    }
}

/// Each shape is tiled in a different way: several depths, few columns, whole-batch sheets, several parts; less than a
/// register of columns, with several parts of the filters and several products for each.
#[test]
fn every_way_of_tiling_agrees_with_the_definition() {
    let mut random = Rng::new(3);
    let around = Conv2d { padding: Padding::all(1), ..layer(20, Extent::square(3)) };
    let (strided, pointwise) = (Conv2d { stride: Extent::square(2), ..around }, |out| layer(out, Extent::square(1)));
    for (x, p) in [
        ([2, 48, 17, 16], around),
        ([9, 50, 2, 2], around),
        ([1, 40, 3, 1], around),
        ([3, 3, 24, 23], around),
        ([3, 40, 2, 2], pointwise(70)),
        ([2, 150, 4, 3], Conv2d { out_channels: 300, ..strided }),
        ([40, 5, 7, 7], strided),
        ([2, 30, 19, 20], pointwise(37)),
        ([3, 70, 12, 11], pointwise(130)),
        ([1, 30, 40, 17], pointwise(37)),
        ([70, 30, 1, 1], pointwise(37)),
    ] {
        agrees_with_the_definition(x, &p, &mut random);
    }
}

#[test]
fn every_algorithm_agrees_with_the_definition() {
    use Algorithm::{FewChannels, Implicit, Winograd as Tiles};
    let cases = [
        // Tiles that stick out, paddings of all kinds, few tiles and many, small filters' gradients and large ones.
        (Tiles, [1, 24, 24, 24], 24, [3, 3], Padding::all(1)),
        (Tiles, [3, 25, 13, 18], 27, [3, 3], Padding::NONE),
        (Tiles, [2, 24, 19, 15], 26, [3, 3], padding(2, 0, 1, 2)),
        (Tiles, [150, 24, 2, 3], 30, [3, 3], Padding::all(1)),
        (Tiles, [60, 24, 3, 3], 24, [3, 3], Padding::all(1)),
        (Tiles, [2, 24, 3, 158], 24, [3, 3], padding(1, 0, 0, 1)),
        (Tiles, [5, 24, 50, 47], 25, [3, 3], Padding::all(1)),
        (Tiles, [2, 90, 23, 22], 100, [3, 3], Padding::all(1)),
        // Few tiles: the filters are transformed in pieces, of some outputs and some inputs.
        (Tiles, [3, 150, 8, 8], 230, [3, 3], Padding::all(1)),
        (Tiles, [2, 130, 13, 11], 37, [3, 3], padding(0, 2, 1, 0)),
        (Tiles, [3, 31, 14, 14], 260, [3, 3], Padding::all(1)),
        (FewChannels, [1, 1, 3, 3], 2, [3, 3], Padding::NONE),
        (FewChannels, [3, 1, 28, 28], 32, [3, 3], Padding::all(1)),
        (FewChannels, [1, 3, 70, 50], 10, [3, 3], Padding::all(1)),
        (FewChannels, [20, 4, 5, 17], 9, [3, 3], padding(0, 2, 2, 0)),
        (FewChannels, [2, 2, 33, 1], 7, [3, 3], padding(2, 1, 1, 1)),
        (FewChannels, [1, 3, 2, 100], 5, [3, 3], padding(1, 0, 0, 1)),
        // Paddings of all kinds, several bands of rows, several parts of the batch and of the taps.
        (Implicit, [1, 16, 12, 12], 16, [5, 5], Padding::all(2)),
        (Implicit, [5, 17, 13, 18], 35, [5, 3], padding(0, 1, 2, 0)),
        (Implicit, [2, 33, 31, 47], 18, [1, 7], padding(0, 0, 3, 3)),
        (Implicit, [3, 16, 37, 50], 17, [7, 4], padding(3, 0, 1, 3)),
        (Implicit, [1, 18, 9, 90], 19, [2, 1], padding(1, 1, 0, 0)),
        (Implicit, [11, 16, 16, 16], 22, [3, 3], padding(2, 1, 0, 2)),
        (Implicit, [1, 16, 64, 60], 16, [4, 2], padding(0, 3, 1, 0)),
    ];
    let mut random = Rng::new(6);
    for (algorithm, x, out, kernel, padding) in cases {
        let p = Conv2d { padding, ..layer(out, kernel.into()) };
        let winograd = if algorithm == Implicit { Winograd::Never } else { Winograd::Any };
        let g = geometry(x, &p).unwrap();
        assert_eq!(Algorithm::of(&g, winograd, WinogradThreshold::default()), algorithm, "{g:?}");
        agrees_with_the_definition(x, &p, &mut random);
    }
}

/// Planes of several registers, planes of one register, and several planes in one register, with the last register full
/// and not full.
#[test]
fn narrow_planes_of_their_own_filters_agree_with_the_definition() {
    let mut random = Rng::new(9);
    let first = [[1, 3, 8, 8], [3, 17, 7, 7], [2, 5, 4, 4], [5, 40, 3, 2]];
    for x in first.into_iter().chain([[4, 33, 2, 2], [2, 37, 1, 1], [1, 2, 1, 8], [2, 6, 20, 1]]) {
        let p = Conv2d { padding: Padding::all(1), groups: x[1], ..layer(x[1], Extent::square(3)) };
        agrees_with_the_definition(x, &p, &mut random);
    }
}

#[test]
fn bias_and_rectifier_come_after_the_products_in_every_way() {
    let mut random = Rng::new(7);
    let around = Conv2d { padding: Padding::all(1), bias: true, ..layer(26, Extent::square(3)) };
    for (algorithm, x, p) in [
        (Algorithm::Unfolded, [2, 5, 9, 8], around),
        (Algorithm::FewChannels, [2, 3, 9, 8], around),
        (Algorithm::Implicit, [2, 16, 19, 18], Conv2d { out_channels: 20, ..around }),
        (Algorithm::Winograd, [2, 24, 21, 19], around),
        (Algorithm::Pointwise, [2, 7, 12, 13], Conv2d { bias: true, ..layer(26, Extent::square(1)) }),
        (Algorithm::Depthwise, [2, 26, 9, 8], Conv2d { groups: 26, ..around }),
        (Algorithm::Depthwise, [2, 26, 9, 18], Conv2d { groups: 26, ..around }),
    ] {
        let [batch, channels, height, width] = x;
        let input = Shape::Maps { channels, height, width };
        let convolution = Convolution::new(batch, input, &p, Winograd::Any, WinogradThreshold::default()).unwrap();
        assert_eq!(convolution.algorithm, algorithm);
        let g = convolution.geometry;
        let (xs, ws) = (reals(&mut random, g.input_len()), reals(&mut random, g.weight_len()));
        let bias = reals(&mut random, p.out_channels);
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
}

#[test]
fn an_empty_batch_is_refused() {
    let error = geometry([0, 3, 8, 8], &layer(2, Extent::square(3))).unwrap_err();
    assert!(error.to_string().contains("the batch is empty"));
}
