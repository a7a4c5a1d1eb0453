//! The kernels on the CPU against plain sums in f64.

use super::*;
use crate::engine::cudnn::emulated::{EmulatedMemory, emulator, rounded};

const SIZES: [(usize, usize, usize, usize); 7] =
    [(1, 1, 1, 1), (1, 8, 7, 7), (17, 24, 7, 7), (2, 13, 13, 11), (3, 64, 4, 4), (2, 72, 9, 5), (1, 3, 30, 31)];

fn noise(element: Element, count: usize) -> Vec<f32> {
    let mut state = 7u64;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        rounded(element, (state >> 40) as f32 / (1u64 << 23) as f32 - 0.5)
    };
    (0..count).map(next).collect()
}

#[track_caller]
fn assert_close(element: Element, maps: FeatureMaps, got: &[f32], expected: &[f64]) {
    let step = match element {
        Element::F32 => 1e-6,
        Element::F16 => 6e-4,
        Element::Bf16 => 5e-3,
    };
    assert_eq!(got.len(), expected.len());
    for (got, expected) in got.iter().zip(expected) {
        let error = (f64::from(*got) - expected).abs();
        assert!(error <= step * (expected.abs() + 1e-2), "{element:?} {maps:?}: {got}, not {expected}");
    }
}

fn check(element: Element, maps: FeatureMaps) {
    let Some(emulator) = emulator() else { return };
    let (planes, positions) = (maps.batch * maps.channels, maps.positions());
    let plane_of = |at: usize| match maps.layout {
        Layout::Nchw => at / positions,
        Layout::Nhwc => at / (maps.channels * positions) * maps.channels + at % maps.channels,
    };
    let (x, dy) = (noise(element, maps.count()), noise(element, planes));
    let mut means = vec![0.0; planes];
    x.iter().enumerate().for_each(|(at, x)| means[plane_of(at)] += f64::from(*x) / positions as f64);
    let shares: Vec<f64> = (0..maps.count()).map(|at| f64::from(dy[plane_of(at)]) / positions as f64).collect();

    let mut memory = EmulatedMemory::new();
    let (x, y) = (memory.tensor(element, &x), memory.empty(element, planes));
    emulator.check_all(&mut memory, GlobalAveragePoolForward { element, maps, x, y }.launches());
    assert_close(element, maps, &memory.read(y, element), &means);
    let (dy, dx) = (memory.tensor(element, &dy), memory.empty(element, maps.count()));
    emulator.check_all(&mut memory, GlobalAveragePoolBackward { element, maps, dy, dx }.launches());
    assert_close(element, maps, &memory.read(dx, element), &shares);
}

#[test]
fn each_map_becomes_its_mean_and_hands_its_gradient_to_all_places() {
    for (batch, channels, height, width) in SIZES {
        for layout in [Layout::Nchw, Layout::Nhwc] {
            let maps = FeatureMaps { batch, channels, height, width, layout };
            Element::ALL.into_iter().for_each(|element| check(element, maps));
        }
    }
}
