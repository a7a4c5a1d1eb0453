use super::*;
use crate::engine::cudnn::emulated::{
    EmulatedMemory, RECTIFIERS, assert_close, emulator, from_nchw, rounded, rounding, sample, to_nchw,
};

/// N, C, H, W: one part and several, whole packs and not, few channels and many, flat features.
const SHAPES: [(usize, usize, usize, usize); 11] = [
    (1, 1, 1, 1),
    (2, 3, 5, 7),
    (17, 8, 7, 7),
    (1, 3, 64, 64),
    (3, 16, 28, 28),
    (70, 12, 14, 14),
    (900, 2, 2, 2),
    (1, 100, 1, 1),
    (70, 24, 1, 1),
    (17, 1001, 1, 1),
    (400, 5, 1, 1),
];

fn cases() -> Vec<(Element, Rectifier, FeatureMaps)> {
    let mut cases = Vec::new();
    for (batch, channels, height, width) in SHAPES {
        for (element, rectifier) in Element::ALL.into_iter().flat_map(|e| RECTIFIERS.map(|r| (e, r))) {
            for layout in [Layout::Nchw, Layout::Nhwc] {
                cases.push((element, rectifier, FeatureMaps { batch, channels, height, width, layout }));
            }
        }
    }
    cases
}

fn channel(maps: FeatureMaps, i: usize) -> usize {
    i / maps.positions() % maps.channels
}

/// Values on both sides of 0 and of 6.
fn wide(element: Element, seed: u64, count: usize) -> Vec<f32> {
    sample(element, seed, count).iter().map(|x| rounded(element, x * 9.0)).collect()
}

#[test]
fn a_bias_is_added_to_its_channel_and_rectified() {
    let Some(emulator) = emulator() else { return };
    for (element, rectifier, maps) in cases() {
        let (values, bias_values) = (wide(element, 1, maps.count()), sample(Element::F32, 2, maps.channels));
        let mut memory = EmulatedMemory::new();
        let xy = memory.tensor(element, &from_nchw(&values, maps));
        let bias = memory.tensor(Element::F32, &bias_values);
        emulator.check_all(&mut memory, [add_and_rectify(element, maps, rectifier, bias, xy)]);
        let sum = |(i, x): (usize, &f32)| x + bias_values[channel(maps, i)];
        let sums = values.iter().enumerate().map(sum);
        let expected: Vec<f32> = sums.map(|sum| rounded(element, rectifier.range().clamp(sum))).collect();
        assert_eq!(to_nchw(&memory.read(xy, element), maps), expected, "{element:?} {rectifier:?} {maps:?}");
    }
}

#[test]
#[ignore = "slow"]
fn the_gradient_of_a_bias_is_the_sum_of_the_gradients_that_pass() {
    let Some(emulator) = emulator() else { return };
    for (element, rectifier, maps) in cases() {
        let (y_values, dy_values) = (wide(element, 3, maps.count()), sample(element, 4, maps.count()));
        let clamped: Vec<f32> =
            y_values.iter().map(|y| if rectifier == Rectifier::Relu6 { y.min(6.0) } else { *y }).collect();
        let mut memory = EmulatedMemory::new();
        let (y, dy) =
            (memory.tensor(element, &from_nchw(&clamped, maps)), memory.tensor(element, &from_nchw(&dy_values, maps)));
        let dbias = memory.empty(Element::F32, maps.channels);
        let partials = memory.reserve(BiasGradient::scratch_bytes(element, maps) + 64);
        let y = (rectifier != Rectifier::Identity).then_some(y);
        let gradient = BiasGradient { element, maps, rectifier, y, dy, dbias, partials };
        emulator.check_all(&mut memory, gradient.launches());
        let masked: Vec<f32> =
            clamped.iter().zip(&dy_values).map(|(y, dy)| rectifier.range().stopped(*y, *dy)).collect();
        let what = format!("{element:?} {rectifier:?} {maps:?}");
        assert_eq!(to_nchw(&memory.read(dy, element), maps), masked, "{what}");
        let mut sums = vec![0.0; maps.channels];
        masked.iter().enumerate().for_each(|(i, dy)| sums[channel(maps, i)] += f64::from(*dy));
        // float32 sums of up to 13720 numbers, by threads and then in pairs.
        assert_close(&memory.read(dbias, Element::F32), &sums, 128.0 * rounding(Element::F32), &what);
    }
}

#[test]
fn large_maps_are_split_over_enough_blocks_and_small_ones_are_not() {
    let maps = |batch, channels, height, layout| FeatureMaps { batch, channels, height, width: height, layout };
    let blocks = |maps| {
        let parts = LaunchLayout::new(Element::F32, maps);
        parts.across * parts.parts
    };
    for layout in [Layout::Nchw, Layout::Nhwc] {
        assert!(blocks(maps(1, 64, 224, layout)) >= 500, "{}", blocks(maps(1, 64, 224, layout)));
        assert!(blocks(maps(64, 512, 14, layout)) >= 1000, "{}", blocks(maps(64, 512, 14, layout)));
    }
    assert_eq!(BiasGradient::scratch_bytes(Element::F32, maps(1, 4096, 1, Layout::Nchw)), 0);
}
