//! The kernels on the CPU against the CPU engine's operator.

use super::*;
use crate::engine::cpu::op::max_pool2d::{self, Windows};
use crate::engine::cudnn::emulated::{EmulatedMemory, emulator, from_nchw, rounded, to_nchw};

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

/// What the CPU engine computes: y, the place of each maximum in its plane, and its place in its window.
struct Expected {
    y: Vec<f32>,
    winners: Vec<u32>,
    index: Vec<f32>,
}

/// Numbers are in the order N, C, H, W, whatever the layout.
impl Pooling {
    fn all(element: Element, rectifier: Rectifier) -> Vec<Self> {
        let mut cases = Vec::new();
        for ([batch, channels, height, width], pool) in all_cases() {
            let Extent { height: rows, width: columns } = windows([height, width], &pool).output;
            for layout in [Layout::Nchw, Layout::Nhwc] {
                let input = FeatureMaps { batch, channels, height, width, layout };
                let output = FeatureMaps { height: rows, width: columns, ..input };
                cases.push(Self { input, output, pool, element, rectifier });
            }
        }
        cases
    }

    fn windows(&self) -> Windows {
        windows([self.input.height, self.input.width], &self.pool)
    }

    fn expected(&self, x: &[f32], bias: &[f32]) -> Expected {
        let (mut y, mut winners) = (vec![0.0; self.output.count()], vec![0; self.output.count()]);
        max_pool2d::forward(&self.windows(), x, &mut y, &mut winners);
        let MaxPool2d { kernel, stride, padding } = self.pool;
        let FeatureMaps { height, width, .. } = self.output;
        let in_window = |(at, winner): (usize, &u32)| {
            let (row, column) = (*winner as usize / self.input.width, *winner as usize % self.input.width);
            let down = row + padding.top - at / width % height * stride.height;
            (down * kernel.width + column + padding.left - at % width * stride.width) as f32
        };
        let index = winners.iter().enumerate().map(in_window).collect();
        for (at, y) in y.iter_mut().enumerate() {
            let bias = bias[at / self.output.positions() % self.output.channels];
            *y = rounded(self.element, self.rectifier.range().clamp(*y + bias));
        }
        Expected { y, winners, index }
    }

    /// Compares the output and the places of the maxima.
    fn check_forward(&self, memory: &mut EmulatedMemory, x: &[f32], bias: Option<&[f32]>) -> (Expected, [Slice; 2]) {
        let emulator = emulator().expect("asked before");
        let expected = self.expected(x, bias.unwrap_or(&vec![0.0; self.input.channels]));
        let x = memory.tensor(self.element, &from_nchw(x, self.input));
        let bias = bias.map(|bias| memory.tensor(Element::F32, bias));
        let (y, index) = (memory.empty(self.element, self.output.count()), memory.reserve(self.output.count()));
        emulator.check_all(memory, [self.forward(x, bias, y, index)]);
        let what = format!("{:?} {:?} {:?}", self.element, self.input, self.pool);
        let indices: Vec<f32> = memory.bytes(index).iter().map(|place| f32::from(*place)).collect();
        assert_eq!(to_nchw(&indices, self.output), expected.index, "{what}");
        // A NaN is not equal to itself.
        let comparable = |y: &[f32]| y.iter().map(|y| if y.is_nan() { 99.0 } else { *y }).collect::<Vec<_>>();
        let found = to_nchw(&memory.read(y, self.element), self.output);
        assert_eq!(comparable(&found), comparable(&expected.y), "{what}");
        (expected, [y, index])
    }

    fn check_gradients(&self, with_bias: bool, with_other: bool) {
        let Some(emulator) = emulator() else { return };
        let mut memory = EmulatedMemory::new();
        let (x, bias) = (coarse(self.element, self.input.count(), 1), coarse(Element::F32, self.input.channels, 2));
        let bias = with_bias.then_some(bias.as_slice());
        let (expected, [y, index]) = self.check_forward(&mut memory, &x, bias);

        // Small whole numbers, whose sums are exact in every element type.
        let dy = coarse(self.element, self.output.count(), 3);
        let other = with_other.then(|| coarse(self.element, self.output.count(), 4));
        let sum = |at: usize| dy[at] + other.as_ref().map_or(0.0, |other| other[at]);
        let slope = |at: usize| self.rectifier.range().stopped(expected.y[at], sum(at));
        let slopes: Vec<f32> = (0..dy.len()).map(slope).collect();
        let mut dx = vec![0.0; x.len()];
        max_pool2d::backward(&self.windows(), &slopes, &expected.winners, &mut dx);
        dx.iter_mut().for_each(|dx| *dx = rounded(self.element, *dx));

        let mut tensor = |values: &[f32]| memory.tensor(self.element, &from_nchw(values, self.output));
        let (dy, other) = (tensor(&dy), other.map(|other| tensor(&other)));
        let to = memory.empty(self.element, self.input.count());
        emulator.check_all(&mut memory, [self.backward(dy, other, index, Some(y), to)]);
        let found = to_nchw(&memory.read(to, self.element), self.input);
        assert_eq!(found, dx, "{:?} {:?} {:?}", self.element, self.input, self.pool);
    }
}

fn windows([height, width]: [usize; 2], pool: &MaxPool2d) -> Windows {
    Windows::new(Extent { height, width }, pool).unwrap()
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
    for case in [Rectifier::Identity, Rectifier::Relu].into_iter().flat_map(|r| Pooling::all(Element::F16, r)) {
        let strange = |x: f32| match x {
            -8.0 | 3.0 => f32::NAN,
            x if x > -2.0 && x < 6.0 => f32::NEG_INFINITY,
            x => x,
        };
        let mixed: Vec<f32> = coarse(case.element, case.input.count(), 7).into_iter().map(strange).collect();
        for x in [mixed, vec![f32::NEG_INFINITY; case.input.count()]] {
            case.check_forward(&mut EmulatedMemory::new(), &x, None);
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

/// Whether images of that side, pooled in squares, are accepted.
fn check(batch: usize, channels: usize, side: usize, square: usize) -> Result<()> {
    let input = FeatureMaps { batch, channels, height: side, width: side, layout: Layout::Nchw };
    let output = FeatureMaps { height: side / square, width: side / square, ..input };
    let (element, pool, rectifier) = (Element::F32, MaxPool2d::square(square), Rectifier::Identity);
    Pooling { element, input, output, pool, rectifier }.check()
}

/// By hand, 64 channels of 256 x 256: 2^22 inputs for each example. A thread makes one of them in general, and, forward and
/// in float32, two of 2^20 outputs where the windows are of 2 x 2.
#[test]
fn windows_of_more_places_than_a_byte_tells_and_more_threads_than_32_bits_count_are_refused() {
    assert!(check(1, 3, 34, 16).is_ok());
    let error = check(1, 3, 34, 17).unwrap_err().to_string();
    assert!(error.contains("not over 17 x 17"), "{error}");
    let check = |batch, square| check(batch, 64, 256, square);
    assert!(check(1023, 4).is_ok() && check(8191, 2).is_ok());
    let error = check(1024, 4).unwrap_err().to_string();
    assert!(error.contains("2^32 threads") && error.contains("4294967296"), "{error}");
    assert!(check(8192, 2).is_err());
}
