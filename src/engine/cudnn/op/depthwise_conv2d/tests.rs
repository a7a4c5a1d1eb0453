//! The kernels on the CPU against the reference engine.

use super::*;
use crate::engine::cudnn::emulated::{
    EmulatedMemory, array, assert_each, emulator, from_nchw, rounding, sample, to_nchw,
};
use crate::engine::numbers::narrowed;
use crate::engine::reference::convolution as reference;
use crate::network::{Conv2d, Shape};

/// Every path, in each layout.
fn all(element: Element, layout: Layout) -> Vec<DepthwiseConv2d> {
    let case = |maps, size, kernel, stride, padding| conv(element, layout, maps, size, [kernel, stride], padding);
    let after = Padding { top: 0, bottom: 1, left: 0, right: 1 };
    let odd = Padding { top: 2, bottom: 0, left: 1, right: 3 };
    vec![
        case([1, 2], [1, 1], [3, 3], [1, 1], Padding::all(1)),
        case([2, 6], [7, 7], [3, 3], [1, 1], Padding::all(1)),
        case([17, 34], [7, 9], [3, 3], [1, 1], Padding::all(1)),
        case([2, 3], [13, 11], [3, 3], [1, 1], Padding::NONE),
        case([2, 3], [15, 12], [3, 3], [1, 1], Padding::all(1)),
        case([3, 5], [7, 14], [3, 3], [1, 1], Padding { top: 2, bottom: 0, left: 1, right: 1 }),
        case([2, 2], [6, 4], [3, 3], [1, 1], Padding { top: 0, bottom: 0, left: 1, right: 1 }),
        case([2, 2], [1, 2], [3, 3], [1, 1], Padding::all(1)),
        case([2, 2], [9, 8], [3, 3], [1, 1], Padding { top: 1, bottom: 1, left: 2, right: 0 }),
        case([1, 4], [16, 8], [3, 3], [2, 2], after),
        case([2, 4], [15, 13], [3, 3], [2, 2], Padding::all(1)),
        case([2, 4], [9, 18], [3, 3], [2, 2], odd),
        case([1, 5], [8, 8], [3, 3], [2, 2], after),
        case([2, 4], [11, 9], [5, 5], [1, 1], Padding::all(2)),
        case([1, 2], [7, 8], [5, 5], [1, 1], odd),
        case([2, 3], [9, 10], [7, 7], [3, 3], Padding::all(3)),
        case([3, 2], [6, 9], [2, 3], [1, 2], Padding { top: 0, bottom: 1, left: 2, right: 0 }),
        case([1, 2], [7, 7], [1, 1], [3, 2], Padding::NONE),
    ]
}

/// By batch and channels, size, kernel and stride.
fn conv(
    element: Element,
    layout: Layout,
    [batch, channels]: [usize; 2],
    [height, width]: [usize; 2],
    [kernel, stride]: [[usize; 2]; 2],
    padding: Padding,
) -> DepthwiseConv2d {
    let Padding { top, bottom, left, right } = padding;
    let input = FeatureMaps { batch, channels, height, width, layout };
    let out = |size: usize, axis: usize| (size - kernel[axis]) / stride[axis] + 1;
    let output = FeatureMaps { height: out(height + top + bottom, 0), width: out(width + left + right, 1), ..input };
    DepthwiseConv2d { element, input, output, kernel: kernel.into(), stride: stride.into(), padding }
}

fn check(conv: DepthwiseConv2d) {
    let Some(emulator) = emulator() else { return };
    let DepthwiseConv2d { element, input, output, kernel, stride, padding } = conv;
    let FeatureMaps { channels, layout, .. } = input;
    let of_weights = FeatureMaps { batch: 1, channels, height: kernel.height, width: kernel.width, layout };
    let all = [(1, input), (2, of_weights), (3, output)];
    let [x, w, dy] = all.map(|(seed, maps)| array(&sample(element, seed, maps.count()), maps));
    let definition = Conv2d { out_channels: channels, kernel, stride, padding, groups: channels, bias: false };
    let shape = Shape::Maps { channels, height: output.height, width: output.width };
    let y = reference::forward(&x, &w.values, None, &definition, shape).values;
    let dx = reference::input_gradient(&x, &w.values, &dy, &definition).values;
    let dw = reference::weight_gradient(&x, &dy, &definition);

    let mut memory = EmulatedMemory::new();
    let [x, w, dy] = [(x, input), (w, of_weights), (dy, output)]
        .map(|(array, maps)| memory.tensor(element, &from_nchw(&narrowed(&array.values), maps)));
    let [out, slope_x, slope_w] = [output, input, of_weights].map(|maps| memory.empty(element, maps.count()));
    let partials = memory.reserve(conv.scratch_bytes());
    emulator.check_all(&mut memory, [conv.forward(x, w, out)]);
    emulator.check_all(&mut memory, [conv.backward_data(dy, w, slope_x)]);
    emulator.check_all(&mut memory, conv.backward_weights(x, dy, slope_w, partials));
    // Products of numbers below 1, added in float32.
    for (name, found, maps, truth, terms) in [
        ("y", out, output, y, kernel.area()),
        ("dx", slope_x, input, dx, kernel.area()),
        ("dw", slope_w, of_weights, dw, output.per_channel()),
    ] {
        let most = |size: f64| 1e-7 * terms as f64 + (1e-6 + 1.25 * rounding(element)) * (size + 1e-2);
        assert_each(&to_nchw(&memory.read(found, element), maps), &truth, most, &format!("{name} of {conv:?}"));
    }
}

#[test]
#[ignore = "slow"]
fn each_map_is_convolved_with_its_filter() {
    for (element, layout) in Element::ALL.into_iter().flat_map(|e| [Layout::Nchw, Layout::Nhwc].map(|l| (e, l))) {
        all(element, layout).into_iter().for_each(check);
    }
}

#[test]
fn the_weights_gradient_of_a_larger_batch_is_summed_in_parts() {
    for layout in [Layout::Nchw, Layout::Nhwc] {
        let conv = conv(Element::F32, layout, [9, 6], [28, 30], [[3, 3], [1, 1]], Padding::all(1));
        assert!(conv.cut().splits > 4, "{:?}", conv.cut());
        check(conv);
        check(DepthwiseConv2d { kernel: Extent::new(3, 2), output: FeatureMaps { width: 31, ..conv.output }, ..conv });
    }
}

#[test]
fn known_kernels_take_their_own_path() {
    let paths = |layout| all(Element::F32, layout).iter().map(DepthwiseConv2d::path).collect::<Vec<_>>();
    for layout in [Layout::Nchw, Layout::Nhwc] {
        for path in [Path::Three, Path::ThreeStrideTwo, Path::Five, Path::Any] {
            assert!(paths(layout).contains(&path), "{path:?}");
        }
    }
    assert!(paths(Layout::Nchw).contains(&Path::ThreeWide) && !paths(Layout::Nhwc).contains(&Path::ThreeWide));
    let columns = all(Element::F32, Layout::Nchw).iter().map(DepthwiseConv2d::columns).collect::<Vec<_>>();
    assert!([1, 2, 4].iter().all(|columns_of_thread| columns.contains(columns_of_thread)), "{columns:?}");
}

#[test]
fn maps_with_more_tiles_than_32_bits_count_are_refused() {
    let case = |batch, size: [usize; 2], kernel: [usize; 2]| {
        conv(Element::F32, Layout::Nchw, [batch, 1], size, [kernel, [1, 1]], Padding::all(1)).check()
    };
    // Tiles of 7 x 4 outputs: 2 to an image of 14 x 4, so 2^31 images have 2^32.
    let tiles = case(1 << 31, [14, 4], [3, 3]).unwrap_err().to_string();
    assert!(tiles.contains("fewer than 2^32 tiles, not feature maps of 2147483648 x 1 x 14 x 4"), "{tiles}");
    assert!(case((1 << 31) - 1, [14, 4], [3, 3]).is_ok());
    // The general path has a thread for each of the 4 x 4 elements.
    assert!(case(1 << 28, [4, 4], [1, 3]).is_err());
    assert!(case((1 << 28) - 1, [2, 2], [1, 3]).is_ok());
}
