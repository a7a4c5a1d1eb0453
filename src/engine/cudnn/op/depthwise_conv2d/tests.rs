//! The kernels on the CPU against plain loops in f64.

use super::*;
use crate::engine::cudnn::emulated::{EmulatedMemory, assert_each, emulator, sample};

struct Sizes {
    batch: usize,
    channels: usize,
    size: Extent,
    kernel: Extent,
    stride: Extent,
    padding: Padding,
}

fn all_sizes() -> Vec<Sizes> {
    let case = |[batch, channels]: [usize; 2], size: [usize; 2], kernel: [usize; 2], stride: [usize; 2], padding| {
        Sizes { batch, channels, size: size.into(), kernel: kernel.into(), stride: stride.into(), padding }
    };
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

impl Sizes {
    fn conv(&self, element: Element, layout: Layout) -> DepthwiseConv2d {
        let Padding { top, bottom, left, right } = self.padding;
        let out = |size: usize, kernel: usize, stride: usize| (size - kernel) / stride + 1;
        let input = FeatureMaps {
            batch: self.batch,
            channels: self.channels,
            height: self.size.height,
            width: self.size.width,
            layout,
        };
        let height = out(self.size.height + top + bottom, self.kernel.height, self.stride.height);
        let width = out(self.size.width + left + right, self.kernel.width, self.stride.width);
        let output = FeatureMaps { height, width, ..input };
        DepthwiseConv2d { element, input, output, kernel: self.kernel, stride: self.stride, padding: self.padding }
    }
}

/// Calls `term(place in x, place in w, place in y)` for every product of the convolution.
fn for_each_product(conv: &DepthwiseConv2d, mut term: impl FnMut(usize, usize, usize)) {
    let at = |maps: &FeatureMaps, place: [usize; 4]| {
        place.iter().zip(maps.strides()).map(|(place, step)| place * step).sum()
    };
    let (Extent { height: kernel_height, width: kernel_width }, taps) = (conv.kernel, conv.kernel.area());
    let FeatureMaps { batch, channels, height, width, layout } = conv.output;
    let outputs = batch * channels * height * width;
    for (out, tap) in (0..outputs).flat_map(|out| (0..taps).map(move |tap| (out, tap))) {
        let (column, row) = (out % width, out / width % height);
        let (channel, image) = (out / width / height % channels, out / width / height / channels);
        let y = (row * conv.stride.height + tap / kernel_width).checked_sub(conv.padding.top);
        let x = (column * conv.stride.width + tap % kernel_width).checked_sub(conv.padding.left);
        let (Some(y), Some(x)) = (y, x) else { continue };
        if y >= conv.input.height || x >= conv.input.width {
            continue;
        }
        let weight = match layout {
            Layout::Nchw => channel * kernel_height * kernel_width + tap,
            Layout::Nhwc => tap * channels + channel,
        };
        term(at(&conv.input, [image, channel, y, x]), weight, at(&conv.output, [image, channel, row, column]));
    }
}

fn check(conv: DepthwiseConv2d) {
    let Some(emulator) = emulator() else { return };
    let DepthwiseConv2d { element, input, output, kernel, .. } = conv;
    let weights = input.channels * kernel.area();
    let x = sample(element, 1, input.count());
    let w = sample(element, 2, weights);
    let dy = sample(element, 3, output.count());
    let (mut y, mut dx, mut dw) = (vec![0.0; output.count()], vec![0.0; input.count()], vec![0.0; weights]);
    for_each_product(&conv, |at_x, at_w, at_y| {
        let (x, w, dy) = (f64::from(x[at_x]), f64::from(w[at_w]), f64::from(dy[at_y]));
        y[at_y] += x * w;
        dx[at_x] += dy * w;
        dw[at_w] += dy * x;
    });

    let mut memory = EmulatedMemory::new();
    let [x, w, dy] = [&x, &w, &dy].map(|values| memory.tensor(element, values));
    let sizes = [output.count(), input.count(), weights];
    let [out, slope_x, slope_w] = sizes.map(|count| memory.empty(element, count));
    let partials = memory.reserve(conv.scratch_bytes());
    emulator.check_all(&mut memory, [conv.forward(x, w, out)]);
    emulator.check_all(&mut memory, [conv.backward_data(dy, w, slope_x)]);
    emulator.check_all(&mut memory, conv.backward_weights(x, dy, slope_w, partials));
    let step = match element {
        Element::F32 => 1e-6,
        Element::F16 => 6e-4,
        Element::Bf16 => 5e-3,
    };
    // Products of numbers below 1, added in float32.
    for (name, found, truth, terms) in
        [("y", out, y, kernel.area()), ("dx", slope_x, dx, kernel.area()), ("dw", slope_w, dw, output.per_channel())]
    {
        let most = |size: f64| 1e-7 * terms as f64 + step * (size + 1e-2);
        assert_each(&memory.read(found, element), &truth, most, &format!("{name} of {conv:?}"));
    }
}

#[test]
fn each_map_is_convolved_with_its_filter() {
    for (sizes, layout) in all_sizes().iter().flat_map(|sizes| [Layout::Nchw, Layout::Nhwc].map(|l| (sizes, l))) {
        Element::ALL.into_iter().for_each(|element| check(sizes.conv(element, layout)));
    }
}

#[test]
fn the_weights_gradient_of_a_larger_batch_is_summed_in_parts() {
    let sizes = Sizes {
        batch: 9,
        channels: 6,
        size: Extent::new(28, 30),
        kernel: Extent::square(3),
        stride: Extent::square(1),
        padding: Padding::all(1),
    };
    for layout in [Layout::Nchw, Layout::Nhwc] {
        let conv = sizes.conv(Element::F32, layout);
        assert!(conv.cut().splits > 4, "{:?}", conv.cut());
        check(conv);
        check(DepthwiseConv2d { kernel: Extent::new(3, 2), output: FeatureMaps { width: 31, ..conv.output }, ..conv });
    }
}

#[test]
fn known_kernels_take_their_own_path() {
    let paths = |layout| all_sizes().iter().map(|sizes| sizes.conv(Element::F32, layout).path()).collect::<Vec<_>>();
    for layout in [Layout::Nchw, Layout::Nhwc] {
        for path in [Path::Three, Path::ThreeStrideTwo, Path::Five, Path::Any] {
            assert!(paths(layout).contains(&path), "{path:?}");
        }
    }
    assert!(paths(Layout::Nchw).contains(&Path::ThreeWide) && !paths(Layout::Nhwc).contains(&Path::ThreeWide));
    let columns = all_sizes().iter().map(|sizes| sizes.conv(Element::F32, Layout::Nchw).columns()).collect::<Vec<_>>();
    assert!([1, 2, 4].iter().all(|columns_of_thread| columns.contains(columns_of_thread)), "{columns:?}");
}

#[test]
fn maps_with_more_tiles_or_longer_rows_than_32_bits_count_are_refused() {
    let padding = Padding::all(1);
    let case = |batch, channels, size: [usize; 2], kernel: [usize; 2], layout| {
        let (size, kernel) = (size.into(), kernel.into());
        Sizes { batch, channels, size, kernel, stride: Extent::square(1), padding }.conv(Element::F32, layout).check()
    };
    // Tiles of 7 x 4 outputs: 2 to an image of 14 x 4, so 2^31 images have 2^32.
    let tiles = case(1 << 31, 1, [14, 4], [3, 3], Layout::Nchw).unwrap_err().to_string();
    assert!(tiles.contains("fewer than 2^32 tiles, not feature maps of 2147483648 x 1 x 14 x 4"), "{tiles}");
    assert!(case((1 << 31) - 1, 1, [14, 4], [3, 3], Layout::Nchw).is_ok());
    // The general path has a thread for each of the 4 x 4 elements.
    assert!(case(1 << 28, 1, [4, 4], [1, 3], Layout::Nchw).is_err());
    assert!(case((1 << 28) - 1, 1, [2, 2], [1, 3], Layout::Nchw).is_ok());
    // With 2 columns of padding and 16 past the end, 2^8 columns make 274 of 4 bytes for each channel.
    let most = ((1 << 31) - 1) / 4 / 274;
    assert!(case(1, most / 2 * 2, [1, 256], [3, 3], Layout::Nhwc).is_ok());
    let row = case(1, most / 2 * 2 + 2, [1, 256], [3, 3], Layout::Nhwc).unwrap_err().to_string();
    assert!(row.contains("bytes in a row"), "{row}");
    assert!(case(1, 1 << 28, [1, 1], [3, 3], Layout::Nchw).is_err(), "2^28 x 9 weights");
}
