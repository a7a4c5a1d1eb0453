use super::*;
use crate::engine::cpu::op::dropout::apply;
use crate::engine::cudnn::emulated::{EmulatedMemory, RECTIFIERS, emulator, from_nchw, rounded, sample, to_nchw};
use crate::engine::dropout::Mask;
use crate::random::{Purpose, Stream};

/// Counts below, at, and above whole packs and blocks.
const COUNTS: [usize; 6] = [1, 7, 8, 17, 2048, 4099];

fn maps(batch: usize, channels: usize, height: usize, width: usize, layout: Layout) -> FeatureMaps {
    FeatureMaps { batch, channels, height, width, layout }
}

fn cases() -> impl Iterator<Item = (Element, usize)> {
    Element::ALL.into_iter().flat_map(|element| COUNTS.map(|count| (element, count)))
}

#[test]
fn a_sum_is_rounded_once_wherever_it_goes() {
    let Some(emulator) = emulator() else { return };
    for (element, count) in cases() {
        let (a_values, b_values) = (sample(element, 1, count), sample(element, 2, count));
        let sum: Vec<f32> = a_values.iter().zip(&b_values).map(|(a, b)| rounded(element, a + b)).collect();
        for place in 0..3 {
            let mut memory = EmulatedMemory::new();
            let (a, b) = (memory.tensor(element, &a_values), memory.tensor(element, &b_values));
            let y = [a, b, memory.empty(element, count)][place];
            emulator.check_all(&mut memory, [add(element, a, b, y)]);
            assert_eq!(memory.read(y, element), sum, "{element:?} {count} {place}");
        }
    }
}

#[test]
fn rectifiers_and_their_gradients_are_exact() {
    let Some(emulator) = emulator() else { return };
    for ((element, count), rectifier) in cases().flat_map(|case| RECTIFIERS.map(|rectifier| (case, rectifier))) {
        let mut values: Vec<f32> = sample(element, 3, count).iter().map(|x| rounded(element, x * 10.0)).collect();
        values[0] = if count > 7 { 6.0 } else { 0.0 };
        let expected: Vec<f32> = values.iter().map(|x| rectifier.range().clamp(*x)).collect();
        let gradients = sample(element, 4, count);
        let passed: Vec<f32> =
            values.iter().zip(&gradients).map(|(x, dy)| rectifier.range().stopped(*x, *dy)).collect();
        for in_place in [false, true] {
            let mut memory = EmulatedMemory::new();
            let (x, dy) = (memory.tensor(element, &values), memory.tensor(element, &gradients));
            let y = if in_place { x } else { memory.empty(element, count) };
            let dx = if in_place { dy } else { memory.empty(element, count) };
            emulator.check_all(&mut memory, [rectify(element, rectifier, x, y)]);
            assert_eq!(memory.read(y, element), expected, "{element:?} {count} {rectifier:?}");
            emulator.check_all(&mut memory, [rectify_backward(element, rectifier, y, dy, dx)]);
            assert_eq!(memory.read(dx, element), passed, "{element:?} {count} {rectifier:?}");
        }
    }
}

#[test]
fn a_nan_passes_a_rectifier() {
    let Some(emulator) = emulator() else { return };
    for (element, rectifier) in Element::ALL.into_iter().flat_map(|e| RECTIFIERS.map(|r| (e, r))) {
        let mut memory = EmulatedMemory::new();
        let x = memory.tensor(element, &[f32::NAN, f32::INFINITY]);
        emulator.check_all(&mut memory, [rectify(element, rectifier, x, x)]);
        let y = memory.read(x, element);
        assert!(y[0].is_nan() && y[1] == if rectifier == Rectifier::Relu6 { 6.0 } else { f32::INFINITY }, "{y:?}");
    }
}

#[test]
fn a_mask_matches_the_cpu_engine_in_either_layout() {
    let Some(emulator) = emulator() else { return };
    let shapes = [(1, 5, 1, 1), (17, 4099, 1, 1), (2, 3, 5, 7), (3, 16, 4, 4), (1, 1, 1, 9)];
    let (seed, layer, number, rate) = (11, 20, 6, 0.4);
    for (element, layout) in Element::ALL.into_iter().flat_map(|e| Layout::ALL.iter().map(move |l| (e, *l))) {
        for (n, c, h, w) in shapes {
            let maps = maps(n, c, h, w, layout);
            let values = sample(element, 5, maps.count());
            let key = Stream::new(seed, Purpose::Dropout, [layer, number]).key();
            let mut expected = values.clone();
            apply(Mask::new(rate, key), &mut expected);
            let expected: Vec<f32> = expected.into_iter().map(|y| rounded(element, y)).collect();
            for in_place in [false, true] {
                let mut memory = EmulatedMemory::new();
                let step = memory.reserve(8);
                memory.bytes_mut(step).copy_from_slice(&number.to_le_bytes());
                let x = memory.tensor(element, &from_nchw(&values, maps));
                let y = if in_place { x } else { memory.empty(element, maps.count()) };
                let dropout = Dropout { element, maps, x, y, rate, seed, layer, step };
                emulator.check_all(&mut memory, [dropout.launch()]);
                assert_eq!(to_nchw(&memory.read(y, element), maps), expected, "{element:?} {maps:?}");
            }
        }
    }
}

#[test]
#[ignore = "slow"]
fn a_transposition_is_the_same_maps_in_the_other_layout() {
    let Some(emulator) = emulator() else { return };
    let shapes = [(1, 1, 1, 1), (2, 3, 5, 7), (1, 33, 8, 8), (17, 64, 1, 31), (1, 7, 40, 1), (2, 512, 7, 7)];
    for (element, (n, c, h, w)) in Element::ALL.into_iter().flat_map(|e| shapes.map(|s| (e, s))) {
        for (from, to) in [(Layout::Nchw, Layout::Nhwc), (Layout::Nhwc, Layout::Nchw)] {
            let (from, into) = (maps(n, c, h, w, from), maps(n, c, h, w, to));
            let values = sample(element, 6, from.count());
            let mut memory = EmulatedMemory::new();
            let x = memory.tensor(element, &from_nchw(&values, from));
            let y = memory.empty(element, from.count());
            emulator.check_all(&mut memory, [transpose(element, from, x, y)]);
            assert_eq!(to_nchw(&memory.read(y, element), into), values, "{element:?} {from:?} {to}");
        }
    }
}

#[test]
#[ignore = "slow"]
fn padding_puts_zeros_around_and_cropping_takes_them_away() {
    let Some(emulator) = emulator() else { return };
    let shapes = [(1, 1, 1, 1), (2, 3, 5, 7), (1, 16, 9, 3), (17, 4, 2, 150), (1, 20, 3, 3)];
    let margins = [[1, 1, 1, 1], [3, 3, 3, 3], [0, 1, 0, 1], [2, 0, 0, 3]];
    for (element, layout) in Element::ALL.into_iter().flat_map(|e| Layout::ALL.iter().map(move |l| (e, *l))) {
        for ((n, c, h, w), [top, bottom, left, right]) in shapes.into_iter().flat_map(|s| margins.map(|m| (s, m))) {
            let small = maps(n, c, h, w, layout);
            let large = maps(n, c, h + top + bottom, w + left + right, layout);
            let values = sample(element, 7, small.count());
            let mut memory = EmulatedMemory::new();
            let x = memory.tensor(element, &from_nchw(&values, small));
            let (y, back) = (memory.empty(element, large.count()), memory.empty(element, small.count()));
            let padding = Padding { top, bottom, left, right };
            emulator.check_all(&mut memory, [pad(element, small, padding, x, y)]);
            let mut expected = vec![0.0; large.count()];
            for (i, value) in values.iter().enumerate() {
                let (plane, row, column) = (i / (h * w), i / w % h, i % w);
                expected[(plane * large.height + row + top) * large.width + column + left] = *value;
            }
            assert_eq!(to_nchw(&memory.read(y, element), large), expected, "{element:?} {small:?} {padding:?}");
            emulator.check_all(&mut memory, [crop(element, small, padding, y, back)]);
            assert_eq!(to_nchw(&memory.read(back, element), small), values, "{element:?} {small:?} {padding:?}");
        }
    }
}
