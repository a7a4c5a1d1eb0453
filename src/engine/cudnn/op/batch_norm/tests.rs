//! The kernels on the CPU against the reference engine.

use super::cut::{ChannelLayout, Cut};
use super::*;
use crate::engine::cudnn::emulated::{
    EmulatedMemory, array, assert_each, emulator, from_nchw, rounded, rounding, sample, to_nchw,
};
use crate::engine::numbers::widened;
use crate::engine::reference::batch_norm as reference;
use crate::settings::Layout;

const NORM: BatchNorm = BatchNorm { epsilon: 1e-3, momentum: 0.99 };

/// Every branch: one launch and two, both layouts, each width, and sizes that divide by nothing.
const SIZES: [(usize, usize, usize, usize); 13] = [
    (1, 5, 1, 1),
    (3, 16, 1, 1),
    (17, 13, 1, 1),
    (1, 19, 7, 7),
    (17, 8, 7, 7),
    (2, 3, 13, 11),
    (1, 4, 8, 8),
    (2, 20, 14, 14),
    (9, 2, 23, 21),
    (84, 1, 14, 14),
    (2, 2, 96, 92),
    (2, 40, 17, 17),
    (4, 36, 17, 17),
];

fn all_maps() -> impl Iterator<Item = FeatureMaps> {
    let layouts = [Layout::Nchw, Layout::Nhwc];
    SIZES.into_iter().flat_map(move |(batch, channels, height, width)| {
        layouts.map(|layout| FeatureMaps { batch, channels, height, width, layout })
    })
}

#[track_caller]
fn assert_close(what: &str, got: &[f32], expected: &[f64], tolerance: f64) {
    assert_each(got, expected, |size| tolerance * (1.0 + size), what);
}

/// Numbers are in the order N, C, H, W, whatever the layout.
struct Case {
    maps: FeatureMaps,
    element: Element,
    rectifier: Rectifier,
    memory: EmulatedMemory,
    gamma: Vec<f32>,
    beta: Vec<f32>,
}

impl Case {
    fn new(maps: FeatureMaps, element: Element, rectifier: Rectifier) -> Self {
        let gamma = sample(Element::F32, 1, maps.channels).iter().map(|g| 1.5 + g).collect();
        let beta = sample(Element::F32, 2, maps.channels);
        Self { maps, element, rectifier, memory: EmulatedMemory::new(), gamma, beta }
    }

    fn values(&self, seed: u64, scale: f32, shift: f32) -> Vec<f32> {
        sample(Element::F32, seed, self.maps.count()).iter().map(|v| rounded(self.element, v * scale + shift)).collect()
    }

    fn tensor(&mut self, values: &[f32]) -> Slice {
        self.memory.tensor(self.element, &from_nchw(values, self.maps))
    }

    fn read(&self, slice: Slice) -> Vec<f32> {
        to_nchw(&self.memory.read(slice, self.element), self.maps)
    }

    fn floats(&mut self, values: &[f32]) -> Slice {
        self.memory.tensor(Element::F32, values)
    }

    fn channel_slice(&mut self) -> Slice {
        self.memory.empty(Element::F32, self.maps.channels)
    }

    /// With these statistics, or places for them.
    fn op(&mut self, [mean, inverse_deviation]: [Slice; 2]) -> BatchNormOp {
        let Self { element, maps, rectifier, .. } = *self;
        let [gamma, beta] = [self.gamma.clone(), self.beta.clone()].map(|values| self.floats(&values));
        let partials = self.memory.reserve(scratch_bytes(element, maps));
        BatchNormOp { element, maps, rectifier, gamma, beta, mean, inverse_deviation, partials }
    }

    fn channel(&self, at: usize) -> usize {
        at / self.maps.positions() % self.maps.channels
    }

    /// Mean and biased variance of each channel.
    fn moments(&self, x: &[f32]) -> Vec<(f64, f64)> {
        let (x, FeatureMaps { batch, channels, .. }) = (array(x, self.maps), self.maps);
        let mean_of = |channel: usize, term: &dyn Fn(f64) -> f64| {
            let values = (0..batch).flat_map(|n| x.plane(n, channel));
            values.map(|x| term(*x)).sum::<f64>() / self.maps.per_channel() as f64
        };
        let of = |channel: usize| {
            let mean = mean_of(channel, &|x| x);
            (mean, mean_of(channel, &|x| (x - mean).powi(2)))
        };
        (0..channels).map(of).collect()
    }

    fn check_forward(&mut self, scale: f32, shift: f32, with_residual: bool) {
        let Some(emulator) = emulator() else { return };
        let x = self.values(3, scale, shift);
        let residual = with_residual.then(|| self.values(4, 2.0, 0.0));
        let statistics = [0, 1].map(|_| self.channel_slice());
        let (op, y) = (self.op(statistics), self.memory.empty(self.element, self.maps.count()));
        let running = [0.5, 2.0].map(|value| self.floats(&vec![value; self.maps.channels]));
        let (from, with) = (self.tensor(&x), residual.as_ref().map(|residual| self.tensor(residual)));
        emulator.check_all(&mut self.memory, op.forward(NORM, running, from, with, y));
        let [gamma, beta] = [&self.gamma, &self.beta].map(|values| widened(values));
        let mut expected = reference::forward(&array(&x, self.maps), &gamma, &beta, &NORM).values;
        for (at, y) in expected.iter_mut().enumerate() {
            *y = self.rectifier.range().clamp(*y + residual.as_ref().map_or(0.0, |residual| f64::from(residual[at])));
        }
        let what = format!("{:?} {:?}", self.element, self.maps);
        // The mean in float32 is off by a share of the shift.
        let float = 1e-5 + 3e-7 * f64::from((shift / scale).abs());
        assert_close(&what, &self.read(y), &expected, float.max(2.1 * rounding(self.element)));
        let (momentum, count) = (NORM.momentum, self.maps.per_channel() as f64);
        let unbiased = count / (count.max(2.0) - 1.0);
        let moments = self.moments(&x);
        let check = |slice, tolerance, of: &dyn Fn(f64, f64) -> f64| {
            let expected: Vec<f64> = moments.iter().map(|(mean, variance)| of(*mean, *variance)).collect();
            assert_close(&what, &self.memory.read(slice, Element::F32), &expected, tolerance);
        };
        check(op.mean, 1e-6, &|mean, _| mean);
        check(op.inverse_deviation, 2e-5, &|_, variance| (variance + NORM.epsilon).sqrt().recip());
        check(running[0], 1e-6, &|mean, _| momentum * 0.5 + (1.0 - momentum) * mean);
        check(running[1], 1e-5, &|_, variance| momentum * 2.0 + (1.0 - momentum) * variance * unbiased);
    }
}

/// What the backward pass computes the rectifier's mask from.
#[derive(Clone, Copy, Debug, PartialEq)]
enum MaskSource {
    Y,
    X,
}

/// Where the outputs of a backward pass go.
#[derive(Clone, Copy, Debug, PartialEq)]
enum GradientTarget {
    None,
    Fresh,
    Dy,
    Other,
}

impl Case {
    fn place(&mut self, place: GradientTarget, dy: Slice, other: Option<Slice>) -> Option<Slice> {
        match place {
            GradientTarget::None => None,
            GradientTarget::Fresh => Some(self.memory.empty(self.element, self.maps.count())),
            GradientTarget::Dy => Some(dy),
            GradientTarget::Other => other,
        }
    }

    fn check_backward(
        &mut self,
        source: MaskSource,
        with_other: bool,
        dx_place: GradientTarget,
        residual_place: GradientTarget,
    ) {
        let Some(emulator) = emulator() else { return };
        let (x, dy) = (self.values(3, 1.0, 0.3), self.values(5, 1.0, 0.1));
        let other = with_other.then(|| self.values(6, 1.0, 0.0));
        let moments = self.moments(&x);
        let inverse: Vec<f32> = moments.iter().map(|(_, v)| (v + NORM.epsilon).sqrt().recip() as f32).collect();
        let mean: Vec<f32> = moments.iter().map(|(mean, _)| *mean as f32).collect();
        let (dy_slice, other_slice) = (self.tensor(&dy), other.as_ref().map(|other| self.tensor(other)));
        let y: Vec<f32> = match source {
            // Zeros, sixes and what lies between.
            MaskSource::Y => self.values(7, 8.0, 3.0),
            // As the forward pass makes it, to the last bit.
            MaskSource::X => {
                let value = |(at, x): (usize, &f32)| {
                    let channel = self.channel(at);
                    (x - mean[channel]).mul_add(self.gamma[channel] * inverse[channel], self.beta[channel])
                };
                x.iter().enumerate().map(value).collect()
            }
        };
        let y: Vec<f32> = y.iter().map(|y| rounded(self.element, self.rectifier.range().clamp(*y))).collect();
        let statistics = [mean, inverse].map(|values| self.floats(&values));
        let (op, from) = (self.op(statistics), self.tensor(&x));
        let mask = (source == MaskSource::Y).then(|| self.tensor(&y));
        let to = Gradients {
            dy: dy_slice,
            dy_other: other_slice,
            dx: self.place(dx_place, dy_slice, other_slice).unwrap_or(dy_slice),
            d_residual: self.place(residual_place, dy_slice, other_slice),
            dgamma: self.channel_slice(),
            dbeta: self.channel_slice(),
        };
        emulator.check_all(&mut self.memory, op.backward(from, mask, to));

        let sum = |at: usize| other.as_ref().map_or(dy[at], |other| rounded(self.element, dy[at] + other[at]));
        let slope = |at: usize| self.rectifier.range().stopped(y[at], sum(at));
        let g = array(&(0..x.len()).map(slope).collect::<Vec<_>>(), self.maps);
        let (dx, dgamma, dbeta) = reference::backward(&array(&x, self.maps), &widened(&self.gamma), &g, &NORM);
        let what = format!("{:?} {:?} {dx_place:?} {residual_place:?}", self.element, self.maps);
        // One value for a channel: the true gradient is 0, and its terms are as large as 1 / sqrt(epsilon).
        assert_close(&what, &self.read(to.dx), &dx.values, (2.1 * rounding(self.element)).max(2e-5));
        let sum_tolerance = 1e-5 * (self.maps.per_channel() as f64).sqrt();
        for (sums, expected) in [(to.dbeta, dbeta), (to.dgamma, dgamma)] {
            assert_close(&what, &self.memory.read(sums, Element::F32), &expected, sum_tolerance);
        }
        if let Some(residual) = to.d_residual {
            assert_close(&what, &self.read(residual), &g.values, 1e-7);
        }
    }
}

#[test]
fn the_sizes_of_these_tests_reach_every_kernel_at_every_width() {
    for element in Element::ALL {
        let mut seen = Vec::new();
        for cut in all_maps().map(|maps| Cut::new(element, maps)) {
            let branch = (std::mem::discriminant(&cut.kind), cut.width);
            if !seen.contains(&branch) {
                seen.push(branch);
            }
        }
        // Two kinds for rows, of 4 or 1 at once, and two for planes, of a pack, 4 or 1.
        assert_eq!(seen.len(), if element == Element::F32 { 8 } else { 10 }, "{element:?}");
    }
    let split =
        Cut::new(Element::F32, FeatureMaps { batch: 2, channels: 2, height: 96, width: 92, layout: Layout::Nchw });
    assert!(matches!(split.kind, ChannelLayout::Planes { splits: 3, .. }), "{split:?}");
}

#[test]
#[ignore = "slow"]
fn the_batch_is_normalised_and_the_running_statistics_follow() {
    for maps in all_maps() {
        Case::new(maps, Element::F32, Rectifier::Identity).check_forward(1.0, 0.0, false);
        Case::new(maps, Element::F32, Rectifier::Relu6).check_forward(3.0, 1.0, true);
        Case::new(maps, Element::F16, Rectifier::Relu).check_forward(3.0, 1.0, true);
        Case::new(maps, Element::Bf16, Rectifier::Relu).check_forward(3.0, 1.0, false);
    }
}

#[test]
#[ignore = "slow"]
fn a_mean_far_from_zero_costs_no_digits() {
    for maps in all_maps() {
        Case::new(maps, Element::F32, Rectifier::Identity).check_forward(1.0, 1000.0, false);
    }
}

#[test]
#[ignore = "slow"]
fn gradients_follow_the_formula_through_rectifiers_and_residuals() {
    use Element::{Bf16, F16, F32};
    use GradientTarget::{Dy, Fresh, None, Other};
    use MaskSource::{X, Y};
    use Rectifier::{Identity, Relu, Relu6};
    let cases = [
        (F32, Identity, Y, false, Fresh, None),
        (F32, Relu6, Y, false, Dy, None),
        (F16, Relu, Y, false, Fresh, Dy),
        (Bf16, Relu, Y, true, Dy, Other),
        (F32, Relu, Y, true, Other, Dy),
        (F32, Relu, Y, true, Dy, None),
        (F16, Identity, Y, true, Fresh, Fresh),
        (F32, Relu6, X, false, Dy, None),
        (F16, Relu, X, false, Dy, None),
        (Bf16, Relu6, X, true, Other, None),
        (F32, Relu, X, true, Fresh, None),
    ];
    for (maps, case) in all_maps().flat_map(|maps| cases.map(|case| (maps, case))) {
        let (element, rectifier, source, with_other, dx, residual) = case;
        Case::new(maps, element, rectifier).check_backward(source, with_other, dx, residual);
    }
}
