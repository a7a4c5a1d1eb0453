//! The kernels on the CPU against plain sums in f64.

use super::*;
use crate::engine::cudnn::emulated::{EmulatedMemory, assert_each, emulator, rounding, sample};

const SIZES: [(usize, usize, usize, usize); 7] =
    [(1, 1, 1, 1), (1, 8, 7, 7), (17, 24, 7, 7), (2, 13, 13, 11), (3, 64, 4, 4), (2, 72, 9, 5), (1, 3, 30, 31)];

fn check(element: Element, maps: FeatureMaps) {
    let Some(emulator) = emulator() else { return };
    let (planes, positions) = (maps.batch * maps.channels, maps.positions());
    let plane_of = |at: usize| match maps.layout {
        Layout::Nchw => at / positions,
        Layout::Nhwc => at / (maps.channels * positions) * maps.channels + at % maps.channels,
    };
    let (x, dy) = (sample(element, 7, maps.count()), sample(element, 8, planes));
    let mut means = vec![0.0; planes];
    x.iter().enumerate().for_each(|(at, x)| means[plane_of(at)] += f64::from(*x) / positions as f64);
    let shares: Vec<f64> = (0..maps.count()).map(|at| f64::from(dy[plane_of(at)]) / positions as f64).collect();

    let compare = |got: &[f32], truth: &[f64]| {
        let most = |size: f64| (1e-6 + 1.25 * rounding(element)) * (size + 2e-2);
        assert_each(got, truth, most, &format!("{element:?} {maps:?}"));
    };
    let mut memory = EmulatedMemory::new();
    let (x, y) = (memory.tensor(element, &x), memory.empty(element, planes));
    emulator.check_all(&mut memory, [forward(element, maps, x, y)]);
    compare(&memory.read(y, element), &means);
    let (dy, dx) = (memory.tensor(element, &dy), memory.empty(element, maps.count()));
    emulator.check_all(&mut memory, [backward(element, maps, dy, dx)]);
    compare(&memory.read(dx, element), &shares);
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
