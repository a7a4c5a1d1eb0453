//! The kernels on the CPU against plain loops, and against the CPU engine's operator.

use super::*;
use crate::engine::cpu::op::max_pool2d;
use crate::engine::cudnn::emulated::{EmulatedMemory, emulator, rounded};

/// Few different values, so that windows have ties.
fn coarse(element: Element, count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        rounded(element, ((state >> 40) % 17) as f32 - 8.0)
    };
    (0..count).map(next).collect()
}

fn pool(kernel: [usize; 2], stride: [usize; 2], padding: Padding) -> MaxPool2d {
    MaxPool2d { kernel: kernel.into(), stride: stride.into(), padding }
}

/// Batch, channels, height, width, and the pool.
fn all_cases() -> Vec<([usize; 4], MaxPool2d)> {
    let after = Padding { top: 0, bottom: 1, left: 0, right: 1 };
    let before = Padding { top: 1, bottom: 0, left: 1, right: 0 };
    vec![
        ([1, 1, 2, 2], MaxPool2d::square(2)),
        ([2, 3, 8, 16], MaxPool2d::square(2)),
        ([17, 5, 4, 4], MaxPool2d::square(2)),
        ([1, 16, 6, 14], MaxPool2d::square(2)),
        ([2, 3, 9, 8], MaxPool2d::square(2)),
        ([2, 3, 8, 9], MaxPool2d::square(2)),
        ([2, 8, 15, 13], pool([3, 3], [2, 2], Padding::all(1))),
        ([1, 3, 14, 12], pool([3, 3], [2, 2], after)),
        // Rows of 8, 6, 7 and 1 outputs, half as many as inputs, of an even and an odd number of rows.
        ([2, 8, 14, 16], pool([3, 3], [2, 2], Padding::all(1))),
        ([2, 3, 15, 12], pool([3, 3], [2, 2], Padding::all(1))),
        ([1, 8, 13, 14], pool([3, 3], [2, 2], after)),
        ([3, 16, 1, 2], pool([3, 3], [2, 2], Padding::all(1))),
        ([2, 8, 12, 16], pool([3, 3], [2, 2], before)),
        ([2, 8, 15, 9], pool([3, 3], [2, 2], Padding::NONE)),
        ([2, 8, 8, 16], pool([3, 3], [2, 2], Padding { top: 0, bottom: 2, left: 0, right: 1 })),
        ([2, 8, 8, 16], pool([3, 3], [2, 2], Padding { top: 1, bottom: 1, left: 0, right: 1 })),
        ([2, 8, 7, 9], MaxPool2d::square(2)),
        ([1, 24, 10, 6], MaxPool2d::square(2)),
        ([2, 8, 9, 7], MaxPool2d::square(3)),
        ([1, 2, 11, 12], pool([2, 4], [1, 3], Padding { top: 1, bottom: 0, left: 2, right: 1 })),
        ([1, 9, 20, 21], pool([5, 5], [3, 2], Padding::all(2))),
        ([1, 1, 20, 20], pool([16, 16], [4, 4], Padding::NONE)),
        ([2, 4, 7, 7], pool([1, 1], [3, 3], Padding::NONE)),
    ]
}

/// The results of a plain loop: y, the position of each maximum in x, and its place in the window.
struct Expected {
    y: Vec<f32>,
    source: Vec<usize>,
    index: Vec<u8>,
}

impl Pooling {
    fn all(element: Element, rectifier: Rectifier) -> Vec<Self> {
        let mut cases = Vec::new();
        for ([batch, channels, height, width], pool) in all_cases() {
            let Padding { top, bottom, left, right } = pool.padding;
            let out = |size: usize, kernel: usize, stride: usize| (size - kernel) / stride + 1;
            let out_height = out(height + top + bottom, pool.kernel.height, pool.stride.height);
            let out_width = out(width + left + right, pool.kernel.width, pool.stride.width);
            for layout in [Layout::Nchw, Layout::Nhwc] {
                let input = FeatureMaps { batch, channels, height, width, layout };
                let output = FeatureMaps { height: out_height, width: out_width, ..input };
                cases.push(Self { input, output, pool, element, rectifier });
            }
        }
        cases
    }

    fn expected(&self, x: &[f32], bias: &[f32]) -> Expected {
        let [image, plane, row, column] = self.output.strides();
        let count = self.output.count();
        let mut expected = Expected { y: vec![0.0; count], source: vec![0; count], index: vec![0; count] };
        let FeatureMaps { batch, channels, height, width, .. } = self.output;
        for at in 0..batch * channels * height * width {
            let place =
                [at / width / height / channels, at / width / height % channels, at / width % height, at % width];
            let (value, source, index) = self.window(x, place);
            let to = place[0] * image + place[1] * plane + place[2] * row + place[3] * column;
            let y = self.rectifier.of((value + bias[place[1]]).into()) as f32;
            (expected.y[to], expected.source[to], expected.index[to]) = (rounded(self.element, y), source, index);
        }
        expected
    }

    fn window(&self, x: &[f32], [image, channel, row, column]: [usize; 4]) -> (f32, usize, u8) {
        let strides = self.input.strides();
        let mut best: Option<(f32, usize, u8)> = None;
        for tap in 0..self.pool.kernel.area() {
            let y = (row * self.pool.stride.height + tap / self.pool.kernel.width).wrapping_sub(self.pool.padding.top);
            let z =
                (column * self.pool.stride.width + tap % self.pool.kernel.width).wrapping_sub(self.pool.padding.left);
            if y >= self.input.height || z >= self.input.width {
                continue;
            }
            let at = image * strides[0] + channel * strides[1] + y * strides[2] + z * strides[3];
            if best.is_none_or(|(value, ..)| x[at] > value || x[at].is_nan()) {
                best = Some((x[at], at, tap as u8));
            }
        }
        best.expect("no window lies in the padding alone")
    }

    /// The output and the positions of the maxima.
    fn run(&self, memory: &mut EmulatedMemory, x: &[f32], bias: Option<&[f32]>) -> [Slice; 2] {
        let emulator = emulator().expect("asked before");
        let (x, bias) = (memory.tensor(self.element, x), bias.map(|bias| memory.tensor(Element::F32, bias)));
        let (y, index) = (memory.empty(self.element, self.output.count()), memory.reserve(self.output.count()));
        emulator.check_all(memory, [self.forward(x, bias, y, index)]);
        [y, index]
    }

    /// The gradient of the input.
    fn gradient(
        &self,
        memory: &mut EmulatedMemory,
        dy: &[f32],
        other: Option<&[f32]>,
        [y, index]: [Slice; 2],
    ) -> Vec<f32> {
        let emulator = emulator().expect("asked before");
        let (dy, other) = (memory.tensor(self.element, dy), other.map(|dy| memory.tensor(self.element, dy)));
        let dx = memory.empty(self.element, self.input.count());
        emulator.check_all(memory, [self.backward(dy, other, index, Some(y), dx)]);
        memory.read(dx, self.element)
    }

    fn check_gradients(&self, with_bias: bool, with_other: bool) {
        if emulator().is_none() {
            return;
        }
        let mut memory = EmulatedMemory::new();
        let (x, bias) = (coarse(self.element, self.input.count(), 1), coarse(Element::F32, self.input.channels, 2));
        let bias = if with_bias { bias } else { vec![0.0; self.input.channels] };
        let [y, index] = self.run(&mut memory, &x, with_bias.then_some(bias.as_slice()));
        let expected = self.expected(&x, &bias);
        let what = format!("{:?} {:?} {:?}", self.element, self.input, self.pool);
        assert_eq!(memory.read(y, self.element), expected.y, "{what}");
        assert_eq!(memory.bytes(index), expected.index, "{what}");

        // Small whole numbers, whose sums are exact in every element type.
        let dy = coarse(self.element, self.output.count(), 3);
        let other = with_other.then(|| coarse(self.element, self.output.count(), 4));
        let mut dx = vec![0.0; self.input.count()];
        for (at, source) in expected.source.iter().enumerate() {
            if self.rectifier.passes(expected.y[at]) {
                dx[*source] += dy[at] + other.as_ref().map_or(0.0, |other| other[at]);
            }
        }
        let dx: Vec<f32> = dx.into_iter().map(|dx| rounded(self.element, dx)).collect();
        let found = self.gradient(&mut memory, &dy, other.as_deref(), [y, index]);
        assert_eq!(found, dx, "{what}");
    }
}

#[test]
fn the_first_maximum_of_each_window_is_found_and_gets_the_gradient() {
    for case in Pooling::all(Element::F32, Rectifier::Identity) {
        case.check_gradients(false, false);
    }
}

#[test]
fn bias_rectifier_and_a_second_gradient_are_part_of_it() {
    for element in Element::ALL {
        Pooling::all(element, Rectifier::Relu).iter().for_each(|case| case.check_gradients(true, true));
    }
    Pooling::all(Element::F16, Rectifier::Relu6).iter().for_each(|case| case.check_gradients(true, false));
}

#[test]
fn a_nan_wins_its_window_and_of_only_minus_infinities_the_first_wins() {
    if emulator().is_none() {
        return;
    }
    let case = |values: [f32; 4], layout| {
        let input = FeatureMaps { batch: 1, channels: 1, height: 2, width: 2, layout };
        let output = FeatureMaps { height: 1, width: 1, ..input };
        let pool = MaxPool2d::square(2);
        let case = Pooling { input, output, pool, element: Element::F32, rectifier: Rectifier::Relu };
        let mut memory = EmulatedMemory::new();
        let [y, index] = case.run(&mut memory, &values, None);
        (memory.read(y, Element::F32)[0], memory.bytes(index)[0])
    };
    for layout in [Layout::Nchw, Layout::Nhwc] {
        let (y, index) = case([1.0, f32::NAN, 2.0, 0.0], layout);
        assert!(y.is_nan() && index == 1, "{y} from {index}");
        assert_eq!(case([f32::NEG_INFINITY; 4], layout), (0.0, 0));
    }
}

#[test]
fn nan_and_infinity_are_found_where_a_plain_loop_finds_them() {
    if emulator().is_none() {
        return;
    }
    // A NaN is not equal to itself.
    let comparable = |y: &f32| if y.is_nan() { 99.0 } else { *y };
    for case in Pooling::all(Element::F16, Rectifier::Identity) {
        let strange = |x: f32| match x {
            -8.0 | 3.0 => f32::NAN,
            x if x > -2.0 && x < 6.0 => f32::NEG_INFINITY,
            x => x,
        };
        let mixed: Vec<f32> = coarse(case.element, case.input.count(), 7).into_iter().map(strange).collect();
        for x in [mixed, vec![f32::NEG_INFINITY; case.input.count()]] {
            let mut memory = EmulatedMemory::new();
            let [y, index] = case.run(&mut memory, &x, None);
            let expected = case.expected(&x, &vec![0.0; case.input.channels]);
            let (y, what) = (memory.read(y, case.element), format!("{:?} {:?}", case.input, case.pool));
            assert_eq!(memory.bytes(index), expected.index, "{what}");
            let (y, expected): (Vec<f32>, Vec<f32>) =
                (y.iter().map(comparable).collect(), expected.y.iter().map(comparable).collect());
            assert_eq!(y, expected, "{what}");
        }
    }
}

#[test]
fn the_pools_of_known_networks_have_kernels_of_their_own() {
    let kernels = |layout, width, channels, pool: MaxPool2d| {
        let input = FeatureMaps { batch: 1, channels, height: 112, width, layout };
        let out = if pool.kernel.height == 3 {
            (width + pool.padding.left + pool.padding.right - 3) / 2 + 1
        } else {
            width / 2
        };
        let output = FeatureMaps { height: 56, width: out, ..input };
        let pooling = Pooling { element: Element::F32, input, output, pool, rectifier: Rectifier::Identity };
        (pooling.forward_path().kernel, pooling.backward_path().kernel)
    };
    let resnet = pool([3, 3], [2, 2], Padding::all(1));
    assert_eq!(kernels(Layout::Nchw, 112, 64, resnet), ("forward_3x3", "backward_3x3"));
    assert_eq!(kernels(Layout::Nhwc, 112, 64, resnet), ("forward", "backward_3x3_cells"));
    assert_eq!(kernels(Layout::Nchw, 113, 64, resnet), ("forward", "backward"));
    assert_eq!(kernels(Layout::Nchw, 112, 64, MaxPool2d::square(2)), ("forward_2x2", "backward_2x2"));
    assert_eq!(kernels(Layout::Nhwc, 112, 64, MaxPool2d::square(2)), ("forward", "backward_2x2_cells"));
    assert_eq!(kernels(Layout::Nhwc, 112, 63, MaxPool2d::square(2)), ("forward", "backward"));
    assert_eq!(kernels(Layout::Nhwc, 112, 64, MaxPool2d::square(3)), ("forward", "backward"));
}

#[test]
fn the_cpu_engine_says_the_same() {
    if emulator().is_none() {
        return;
    }
    for case in Pooling::all(Element::F32, Rectifier::Identity).iter().filter(|case| case.input.layout == Layout::Nchw)
    {
        let mut memory = EmulatedMemory::new();
        let (x, dy) = (coarse(case.element, case.input.count(), 5), coarse(case.element, case.output.count(), 6));
        let windows =
            max_pool2d::Windows::new(Extent { height: case.input.height, width: case.input.width }, &case.pool)
                .unwrap();
        let (mut y, mut winners) = (vec![0.0; dy.len()], vec![0; dy.len()]);
        max_pool2d::forward(&windows, &x, &mut y, &mut winners);
        let mut dx = vec![0.0; x.len()];
        max_pool2d::backward(&windows, &dy, &winners, &mut dx);

        let found = case.run(&mut memory, &x, None);
        assert_eq!(memory.read(found[0], Element::F32), y, "{:?}", case.pool);
        assert_eq!(case.gradient(&mut memory, &dy, None, found), dx, "{:?}", case.pool);
    }
}

/// Whether images of that side, pooled in squares, are accepted.
fn check(batch: usize, channels: usize, side: usize, square: usize) -> Result<()> {
    let input = FeatureMaps { batch, channels, height: side, width: side, layout: Layout::Nchw };
    let output = FeatureMaps { height: side / square, width: side / square, ..input };
    let (element, pool, rectifier) = (Element::F32, MaxPool2d::square(square), Rectifier::Identity);
    Pooling { element, input, output, pool, rectifier }.check()
}

#[test]
fn a_window_of_more_places_than_a_byte_can_tell_is_refused() {
    assert!(check(1, 3, 34, 16).is_ok());
    let error = check(1, 3, 34, 17).unwrap_err().to_string();
    assert!(error.contains("not over 17 x 17"), "{error}");
}

/// By hand, 64 channels of 256 x 256: 2^22 inputs for each example. A thread makes one of them in general, and, forward and
/// in float32, two of 2^20 outputs where the windows are of 2 x 2.
#[test]
fn work_for_more_threads_than_32_bits_count_is_refused() {
    let check = |batch, square| check(batch, 64, 256, square);
    assert!(check(1023, 4).is_ok() && check(8191, 2).is_ok());
    let error = check(1024, 4).unwrap_err().to_string();
    assert!(error.contains("2^32 threads") && error.contains("4294967296"), "{error}");
    assert!(check(8192, 2).is_err());
}
