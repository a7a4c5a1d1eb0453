//! The initial values of a training: parameters, inputs and targets, the same numbers as the CPU engine's
//! (`engine/cpu/parameters.rs` and `data.rs`). A `key` is [`crate::random::Stream::key`].

use super::grid::{int, line};
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::network::data::side;
use crate::settings::Layout;

fn kernel(name: &'static str, element: Element) -> Kernel {
    Kernel { operator: "initial", name, element }
}

/// A thread for each element of `dst`; its number is the kernel's second argument, before `others`.
fn launch(name: &'static str, element: Element, dst: Slice, others: &[Arg]) -> Launch {
    let count = dst.bytes / element.bytes();
    line(kernel(name, element), count, [&[Arg::Write(dst), Arg::I64(count as i64)], others].concat())
}

/// Weights of K x C x P, uniform on [-limit, limit) by their index in that order, in the order K x P x C where
/// `channels_last`: `dst` in floats, and `working` the same rounded to `element`.
pub fn weights(
    element: Element,
    dst: Slice,
    working: Option<Slice>,
    key: u64,
    limit: f32,
    [channels, positions]: [usize; 2],
    channels_last: bool,
) -> Launch {
    let (count, working) = (dst.bytes / 4, working.map_or(Arg::Null, Arg::Write));
    let mut args = vec![Arg::Write(dst), working, Arg::I64(count as i64), Arg::U64(key), Arg::F32(limit)];
    args.extend([int(channels), int(positions), Arg::I32(channels_last.into())]);
    line(kernel("weights", element), count, args)
}

/// Inputs, uniform on [0, 1) by their index in N x C x H x W.
pub fn inputs(element: Element, maps: FeatureMaps, dst: Slice, key: u64) -> Launch {
    let channels_last = Arg::I32((maps.layout == Layout::Nhwc).into());
    launch("inputs", element, dst, &[Arg::U64(key), int(maps.channels), int(maps.positions()), channels_last])
}

/// One-hot targets, N x `classes` floats, with labels of equal probability.
pub fn one_hot(dst: Slice, classes: usize, key: u64) -> Launch {
    launch("one_hot", Element::F32, dst, &[int(classes), Arg::U64(key)])
}

/// Targets: floats that are uniform on [0, 1).
pub fn uniform_targets(dst: Slice, key: u64) -> Launch {
    launch("uniform_targets", Element::F32, dst, &[Arg::U64(key)])
}

/// Points of a square grid, N x 2, row by row, as [`crate::network::data::PeaksPoint::of`].
pub fn points(element: Element, dst: Slice, batch: usize) -> Launch {
    launch("points", element, dst, &[int(side(batch))])
}

/// The heights of the surface `peaks` at those points, N floats, as [`crate::network::data::PeaksPoint::height`].
pub fn heights(dst: Slice, batch: usize) -> Launch {
    launch("heights", Element::F32, dst, &[int(side(batch))])
}

/// The same float everywhere.
pub fn fill(dst: Slice, value: f32) -> Launch {
    launch("fill", Element::F32, dst, &[Arg::F32(value)])
}
