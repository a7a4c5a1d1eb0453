//! The kernels on the CPU against the textbook formulas in f64.

use super::cut::{ChannelLayout, Cut};
use super::*;
use crate::engine::cudnn::emulated::{EmulatedMemory, assert_each, emulator, rounded, sample};
use crate::settings::Layout;

const EPSILON: f32 = 1e-3;
const MOMENTUM: f32 = 0.99;

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

fn channel_of(maps: &FeatureMaps, at: usize) -> usize {
    let [_, step, ..] = maps.strides();
    at / step % maps.channels
}

/// Mean and biased variance of each channel.
fn moments(maps: &FeatureMaps, x: &[f32]) -> Vec<(f64, f64)> {
    let count = maps.per_channel() as f64;
    let mut mean = vec![0.0; maps.channels];
    x.iter().enumerate().for_each(|(at, x)| mean[channel_of(maps, at)] += f64::from(*x) / count);
    let mut variance = vec![0.0; maps.channels];
    for (at, x) in x.iter().enumerate() {
        let channel = channel_of(maps, at);
        variance[channel] += (f64::from(*x) - mean[channel]).powi(2) / count;
    }
    mean.into_iter().zip(variance).collect()
}

/// The relative step from one number of a type to the next.
fn step(element: Element) -> f64 {
    match element {
        Element::F32 => 1e-6,
        Element::F16 => 1e-3,
        Element::Bf16 => 8e-3,
    }
}

#[track_caller]
fn assert_close(what: &str, got: &[f32], expected: &[f64], tolerance: f64) {
    assert_each(got, expected, |size| tolerance * (1.0 + size), what);
}

struct Case {
    maps: FeatureMaps,
    element: Element,
    rectifier: Rectifier,
    memory: EmulatedMemory,
    gamma: Vec<f32>,
}

impl Case {
    fn new(maps: FeatureMaps, element: Element, rectifier: Rectifier) -> Self {
        let gamma = sample(Element::F32, 1, maps.channels).iter().map(|g| 1.5 + g).collect();
        Self { maps, element, rectifier, memory: EmulatedMemory::new(), gamma }
    }

    fn values(&self, seed: u64, scale: f32, shift: f32) -> Vec<f32> {
        sample(Element::F32, seed, self.maps.count()).iter().map(|v| rounded(self.element, v * scale + shift)).collect()
    }

    fn tensor(&mut self, values: &[f32]) -> Slice {
        self.memory.tensor(self.element, values)
    }

    fn floats(&mut self, values: &[f32]) -> Slice {
        self.memory.tensor(Element::F32, values)
    }

    fn channel_slice(&mut self) -> Slice {
        self.memory.empty(Element::F32, self.maps.channels)
    }

    fn partials(&mut self) -> Slice {
        self.memory.reserve(scratch_bytes(self.element, self.maps))
    }

    fn forward(&mut self, x: &[f32], residual: Option<&[f32]>) -> BatchNormForward {
        let beta = sample(Element::F32, 2, self.maps.channels);
        let (gamma, channels) = (self.gamma.clone(), self.maps.channels);
        BatchNormForward {
            element: self.element,
            maps: self.maps,
            rectifier: self.rectifier,
            epsilon: EPSILON,
            momentum: MOMENTUM,
            x: self.tensor(x),
            residual: residual.map(|residual| self.tensor(residual)),
            gamma: self.floats(&gamma),
            beta: self.floats(&beta),
            running_mean: self.floats(&vec![0.5; channels]),
            running_variance: self.floats(&vec![2.0; channels]),
            mean: self.channel_slice(),
            inverse_deviation: self.channel_slice(),
            y: self.memory.empty(self.element, self.maps.count()),
            partials: self.partials(),
        }
    }

    fn check_forward(&mut self, scale: f32, shift: f32, with_residual: bool) {
        let Some(emulator) = emulator() else { return };
        let x = self.values(3, scale, shift);
        let residual = with_residual.then(|| self.values(4, 2.0, 0.0));
        let op = self.forward(&x, residual.as_deref());
        emulator.check_all(&mut self.memory, op.launches());
        let moments = moments(&self.maps, &x);
        let (beta, count) = (sample(Element::F32, 2, self.maps.channels), self.maps.per_channel() as f64);
        let expected = |at: usize| {
            let channel = channel_of(&self.maps, at);
            let (mean, variance) = moments[channel];
            let z = (f64::from(x[at]) - mean) / (variance + f64::from(EPSILON)).sqrt();
            let sum = z * f64::from(self.gamma[channel]) + f64::from(beta[channel]);
            self.rectifier.of(sum + residual.as_ref().map_or(0.0, |residual| f64::from(residual[at])))
        };
        let what = format!("{:?} {:?}", self.element, self.maps);
        let y: Vec<f64> = (0..x.len()).map(expected).collect();
        // The mean in float32 is off by a share of the shift.
        let float = 1e-5 + 3e-7 * f64::from((shift / scale).abs());
        assert_close(&what, &self.memory.read(op.y, self.element), &y, float.max(step(self.element)));
        let momentum = f64::from(MOMENTUM);
        let unbiased = count / (count.max(2.0) - 1.0);
        let floats = |slice| self.memory.read(slice, Element::F32);
        let each = |of: &dyn Fn(f64, f64) -> f64| moments.iter().map(|(m, v)| of(*m, *v)).collect::<Vec<_>>();
        assert_close(&what, &floats(op.mean), &each(&|mean, _| mean), 1e-6);
        let inverse = each(&|_, variance| (variance + f64::from(EPSILON)).sqrt().recip());
        assert_close(&what, &floats(op.inverse_deviation), &inverse, 2e-5);
        let running = each(&|mean, _| momentum * 0.5 + (1.0 - momentum) * mean);
        assert_close(&what, &floats(op.running_mean), &running, 1e-6);
        let running = each(&|_, variance| momentum * 2.0 + (1.0 - momentum) * variance * unbiased);
        assert_close(&what, &floats(op.running_variance), &running, 1e-5);
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
        let moments = moments(&self.maps, &x);
        let inverse: Vec<f32> = moments.iter().map(|(_, v)| (v + f64::from(EPSILON)).sqrt().recip() as f32).collect();
        let mean: Vec<f32> = moments.iter().map(|(mean, _)| *mean as f32).collect();
        let (dy_slice, other_slice) = (self.tensor(&dy), other.as_ref().map(|other| self.tensor(other)));
        let (gamma, beta) = (self.gamma.clone(), sample(Element::F32, 2, self.maps.channels));
        let y: Vec<f32> = match source {
            // Zeros, sixes and what lies between.
            MaskSource::Y => self.values(7, 8.0, 3.0),
            // As the forward pass makes it, to the last bit.
            MaskSource::X => {
                let value = |(at, x): (usize, &f32)| {
                    let channel = channel_of(&self.maps, at);
                    (x - mean[channel]).mul_add(gamma[channel] * inverse[channel], beta[channel])
                };
                x.iter().enumerate().map(value).collect()
            }
        };
        let y: Vec<f32> = y.iter().map(|y| rounded(self.element, self.rectifier.of(f64::from(*y)) as f32)).collect();
        let op = BatchNormBackward {
            element: self.element,
            maps: self.maps,
            rectifier: self.rectifier,
            x: self.tensor(&x),
            y: (source == MaskSource::Y).then(|| self.tensor(&y)),
            beta: self.floats(&beta),
            gamma: self.floats(&gamma),
            mean: self.floats(&mean),
            inverse_deviation: self.floats(&inverse),
            dy: dy_slice,
            dy_other: other_slice,
            dx: self.place(dx_place, dy_slice, other_slice).unwrap_or(dy_slice),
            d_residual: self.place(residual_place, dy_slice, other_slice),
            dgamma: self.channel_slice(),
            dbeta: self.channel_slice(),
            partials: self.partials(),
        };
        emulator.check_all(&mut self.memory, op.launches());

        let g: Vec<f64> = (0..x.len())
            .map(|at| match &other {
                _ if !self.rectifier.passes(y[at]) => 0.0,
                Some(other) => f64::from(rounded(self.element, dy[at] + other[at])),
                None => f64::from(dy[at]),
            })
            .collect();
        let mut sums = vec![(0.0, 0.0); self.maps.channels];
        let z = |at: usize, channel: usize| (f64::from(x[at]) - moments[channel].0) * f64::from(inverse[channel]);
        for (at, g) in g.iter().enumerate() {
            let channel = channel_of(&self.maps, at);
            sums[channel].0 += g;
            sums[channel].1 += g * z(at, channel);
        }
        let count = self.maps.per_channel() as f64;
        let dx = |at: usize| {
            let channel = channel_of(&self.maps, at);
            let slope = f64::from(self.gamma[channel]) * f64::from(inverse[channel]);
            slope * (g[at] - sums[channel].0 / count - z(at, channel) * sums[channel].1 / count)
        };
        let dx: Vec<f64> = (0..x.len()).map(dx).collect();
        let what = format!("{:?} {:?} {dx_place:?} {residual_place:?}", self.element, self.maps);
        // One value for a channel: the true gradient is 0, and its terms are as large as 1 / sqrt(epsilon).
        let tolerance = step(self.element).max(2e-5);
        assert_close(&what, &self.memory.read(op.dx, self.element), &dx, tolerance);
        let sum_tolerance = 1e-5 * count.sqrt();
        let floats = |slice| self.memory.read(slice, Element::F32);
        assert_close(&what, &floats(op.dbeta), &sums.iter().map(|sums| sums.0).collect::<Vec<_>>(), sum_tolerance);
        assert_close(&what, &floats(op.dgamma), &sums.iter().map(|sums| sums.1).collect::<Vec<_>>(), sum_tolerance);
        if let Some(residual) = op.d_residual {
            assert_close(&what, &self.memory.read(residual, self.element), &g, 1e-7);
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
fn the_batch_is_normalised_and_the_running_statistics_follow() {
    for maps in all_maps() {
        Case::new(maps, Element::F32, Rectifier::Identity).check_forward(1.0, 0.0, false);
        Case::new(maps, Element::F32, Rectifier::Relu6).check_forward(3.0, 1.0, true);
        Case::new(maps, Element::F16, Rectifier::Relu).check_forward(3.0, 1.0, true);
        Case::new(maps, Element::Bf16, Rectifier::Relu).check_forward(3.0, 1.0, false);
    }
}

#[test]
fn a_mean_far_from_zero_costs_no_digits() {
    for maps in all_maps() {
        Case::new(maps, Element::F32, Rectifier::Identity).check_forward(1.0, 1000.0, false);
    }
}

#[test]
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
