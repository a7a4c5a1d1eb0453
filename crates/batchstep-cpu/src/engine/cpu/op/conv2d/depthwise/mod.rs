//! Depthwise convolution with 3x3 filters, one per channel: a direct loop over the taps.
//!
//! An output row is a sum of input rows, each shifted by the tap's column and multiplied by its weight; a register
//! reads a row at an offset, with zeros beyond the row's ends, so nothing is copied or padded. With a horizontal stride
//! s, each row of the input is first split into s phases: phase i has every s-th column, from column i on. A tap then
//! reads one phase as it would read a row.

mod narrow;
mod phases;
mod rows;

use std::ops::Range;

use pulp::Arch;

use super::cpu_backward::Gradients;
use super::geometry::Geometry;
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{CHANNELS, ChannelPlanes, Shared, for_each_channels};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::{List, Scratch};
use crate::network::Extent;
use phases::Phases;
use rows::{Plane, PlaneSum, Rows, WeightGradient, rows_backward, rows_forward};

/// Rows and columns of a filter.
const K: usize = 3;

type Filter<T> = [[T; K]; K];

/// Whether a convolution is of this kind.
pub fn suits(g: &Geometry) -> bool {
    g.is_depthwise() && g.kernel == Extent::square(K) && g.padding.left < K
}

/// Whether rows are read one after the other.
fn is_successive(g: &Geometry) -> bool {
    g.stride.height == 1 && g.padding.top < K
}

/// The filter of a channel.
fn filter<T: Scalar>(weight: &[T], channel: usize) -> Filter<T> {
    std::array::from_fn(|i| std::array::from_fn(|j| weight[(channel * K + i) * K + j]))
}

/// Scalars per channel of the input or the output, whichever is larger.
fn values(g: &Geometry) -> usize {
    g.batch * (g.height * g.width).max(g.positions())
}

/// `y = rectifier(w * x + bias)`, channel by channel.
pub fn forward<T: Scalar>(g: &Geometry, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    let (x, y) = (Shared::reading(x), Shared::new(y));
    for_each_channels(g.in_channels, values(g), |channels| {
        let place = &ChannelPlanes { all: g.in_channels, channels: channels.clone() };
        // SAFETY: no two calls have a channel in common.
        unsafe { forward_channels(g, channels, (&x, place), filters, &y) };
    });
}

/// Whether the input's channels may lie at other places than the output's.
pub fn reads_anywhere(g: &Geometry) -> bool {
    !narrow::suits(g)
}

/// [`forward`] for some channels; `place` says where they lie in `x`.
///
/// # Safety
/// No other task may write to these channels of `x` meanwhile, or use those of `y`.
pub unsafe fn forward_channels<T: Scalar>(
    g: &Geometry,
    channels: Range<usize>,
    (x, place): (&Shared<'_, T>, &ChannelPlanes),
    filters: Filters<'_, T>,
    y: &Shared<'_, T>,
) {
    if narrow::suits(g) {
        assert_eq!((place.all, &place.channels), (g.in_channels, &channels), "input and output have the same layout");
        return Arch::new().dispatch(narrow::Sum {
            g,
            channels,
            from: x,
            filter: |channel| filter(filters.weight, channel),
            first: |channel| filters.bias(channel),
            range: filters.rectifier.range(),
            to: y,
        });
    }
    let (pixels, phases) = (g.height * g.width, Phases::of_input(g));
    let listed = (!is_successive(g)).then(|| rows_forward(g));
    let rows = listed.as_ref().map_or(Rows::Successive { top: g.padding.top }, |listed| Rows::Listed(listed));
    let taps = phases.taps_forward(g.padding.left, g.height);
    let mut room = Scratch::new(phases.room(g.height));
    for image in 0..g.batch {
        for (at, channel) in channels.clone().enumerate() {
            let (from, to) = (place.plane(image, at) * pixels, (image * g.in_channels + channel) * g.positions());
            // SAFETY: by the caller's promise.
            let (x, y) = unsafe { (x.get(from, pixels), y.slice(to, g.positions())) };
            Arch::new().dispatch(PlaneSum {
                from: Plane::split(phases, x, &mut room),
                filter: filter(filters.weight, channel),
                first: filters.bias(channel),
                range: filters.rectifier.range(),
                taps,
                rows,
                columns: g.out_width,
                to: y,
            });
        }
    }
}

/// The gradients that are wanted.
pub fn backward<T: Scalar>(g: &Geometry, x: &[T], weight: &[T], dy: &[T], into: Gradients<'_, T>) {
    let (x, dy) = (&Shared::reading(x), &Shared::reading(dy));
    let (dx, dw) = (into.x.map(Shared::new), into.weight.map(Shared::new));
    let slopes = Slopes { dy, dx: dx.as_ref(), dw: dw.as_ref() };
    for_each_channels(g.in_channels, values(g), |channels| {
        let place = &ChannelPlanes { all: g.in_channels, channels: channels.clone() };
        // SAFETY: no two calls have a channel in common.
        unsafe { backward_channels(g, channels, (x, place), weight, slopes) };
    });
}

/// The output's gradient, and where the gradients computed from it are written; `None` for a gradient that is not
/// wanted.
#[derive(Clone, Copy)]
pub struct Slopes<'a, T> {
    pub dy: &'a Shared<'a, T>,
    pub dx: Option<&'a Shared<'a, T>>,
    pub dw: Option<&'a Shared<'a, T>>,
}

/// [`backward`] for some channels; `place` says where they lie in `x`.
///
/// # Safety
/// No other task may write to these channels of `x` and `dy` meanwhile, or use those of `dx` and `dw`.
pub unsafe fn backward_channels<T: Scalar>(
    g: &Geometry,
    channels: Range<usize>,
    (x, place): (&Shared<'_, T>, &ChannelPlanes),
    weight: &[T],
    slopes: Slopes<'_, T>,
) {
    if narrow::suits(g) {
        assert_eq!((place.all, &place.channels), (g.in_channels, &channels), "input and output have the same layout");
        // SAFETY: by the caller's promise.
        return unsafe { narrow_backward(g, channels, x, weight, slopes) };
    }
    let (pixels, phases) = (g.height * g.width, Phases::of_input(g));
    let listed = (!is_successive(g)).then(|| [rows_forward(g), rows_backward(g)]);
    let [forward, backward] = match &listed {
        // A row of the input contributes to the outputs of the rows before it.
        None => [g.padding.top, K - 1 - g.padding.top].map(|top| Rows::Successive { top }),
        Some([forward, backward]) => [Rows::Listed(forward), Rows::Listed(backward)],
    };
    let taps_forward = phases.taps_forward(g.padding.left, g.height);
    let taps_backward = |phase| phases.taps_backward(g.padding.left, phase, g.out_width);
    let taps_backward: List<_> = (0..phases.stride).map(taps_backward).collect();
    let mut room = Scratch::new(phases.room(g.height));
    let mut sums = [[[T::ZERO; K]; K]; CHANNELS];
    for image in 0..g.batch {
        for (at, (channel, sums)) in channels.clone().zip(&mut sums).enumerate() {
            let plane = image * g.in_channels + channel;
            // SAFETY: by the caller's promise.
            let (x, dy) = unsafe {
                (x.get(place.plane(image, at) * pixels, pixels), slopes.dy.get(plane * g.positions(), g.positions()))
            };
            let dy = Plane { values: dy, rows: g.out_height, columns: g.out_width };
            if slopes.dw.is_some() {
                let x = Plane::split(phases, x, &mut room);
                Arch::new().dispatch(WeightGradient { x, dy, rows: forward, taps: taps_forward, sums });
            }
            let Some(dx) = slopes.dx else { continue };
            // SAFETY: by the caller's promise.
            let dx = unsafe { dx.slice(plane * pixels, pixels) };
            let size = g.height * phases.columns();
            for (phase, taps) in taps_backward.iter().enumerate() {
                Arch::new().dispatch(PlaneSum {
                    from: dy,
                    filter: match backward {
                        // A row of the input contributes to several rows of the output; the first row of the filter
                        // multiplies the last of these.
                        Rows::Successive { .. } => {
                            let [a, b, c] = filter(weight, channel);
                            [c, b, a]
                        }
                        Rows::Listed(_) => filter(weight, channel),
                    },
                    first: T::ZERO,
                    range: Rectifier::Identity.range(),
                    taps: *taps,
                    rows: backward,
                    columns: phases.columns(),
                    to: if phases.stride == 1 { &mut *dx } else { &mut room[phase * size..][..size] },
                });
            }
            if phases.stride > 1 {
                phases.join(&room, dx);
            }
        }
    }
    if let Some(dw) = slopes.dw {
        // SAFETY: by the caller's promise.
        let dw = unsafe { dw.slice(channels.start * K * K, channels.len() * K * K) };
        dw.copy_from_slice(sums[..channels.len()].as_flattened().as_flattened());
    }
}

/// # Safety
/// As for [`backward_channels`].
unsafe fn narrow_backward<T: Scalar>(
    g: &Geometry,
    channels: Range<usize>,
    x: &Shared<'_, T>,
    weight: &[T],
    slopes: Slopes<'_, T>,
) {
    let Slopes { dy, dx, dw } = slopes;
    if let Some(dw) = dw {
        let sums = Arch::new().dispatch(narrow::WeightGradient { g, channels: channels.clone(), x, dy });
        // SAFETY: by the caller's promise.
        let dw = unsafe { dw.slice(channels.start * K * K, channels.len() * K * K) };
        dw.copy_from_slice(sums.as_flattened().as_flattened());
    }
    if let Some(dx) = dx {
        Arch::new().dispatch(narrow::Sum {
            g,
            channels,
            from: dy,
            // Turned by 180 degrees.
            filter: |channel| {
                let mut filter = filter(weight, channel).map(|[a, b, c]| [c, b, a]);
                filter.reverse();
                filter
            },
            first: |_| T::ZERO,
            range: Rectifier::Identity.range(),
            to: dx,
        });
    }
}
