//! The initial values of a training: parameters, inputs and targets, the same numbers as the CPU engine's
//! (`engine/cpu/parameters.rs` and `data.rs`). A `key` is [`crate::random::Stream::key`].

use super::grid::line;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::engine::data::side;
use crate::settings::Layout;

fn kernel(name: &'static str, element: Element) -> Kernel {
    Kernel { operator: "initial", name, element }
}

/// A thread for each element of `dst`; its number is the kernel's second argument, before `others`.
fn launch(name: &'static str, element: Element, dst: Slice, others: &[Arg]) -> Launch {
    let count = dst.bytes / element.bytes();
    line(kernel(name, element), count, [&[Arg::Write(dst), Arg::I64(count as i64)], others].concat())
}

/// Weights of K x C x P, uniform on [-limit, limit) by their index in that order.
#[derive(Clone, Copy, Debug)]
pub struct Uniform {
    pub element: Element,
    /// `count` floats.
    pub dst: Slice,
    /// The same rounded to `element`.
    pub working: Option<Slice>,
    /// K x C x P.
    pub count: usize,
    pub key: u64,
    pub limit: f32,
    /// C: input channels of a group.
    pub channels: usize,
    /// P: the window's positions.
    pub positions: usize,
    /// They are stored in the order K x P x C.
    pub channels_last: bool,
}

impl Uniform {
    pub fn launch(&self) -> Launch {
        let Self { element, dst, working, count, key, limit, channels, positions, channels_last } = *self;
        let args = vec![
            Arg::Write(dst),
            working.map_or(Arg::Null, Arg::Write),
            Arg::I64(count as i64),
            Arg::U64(key),
            Arg::F32(limit),
            Arg::I32(channels as i32),
            Arg::I32(positions as i32),
            Arg::I32(channels_last.into()),
        ];
        line(kernel("weights", element), count, args)
    }
}

/// Inputs, uniform on [0, 1) by their index in N x C x H x W.
pub fn inputs(element: Element, maps: FeatureMaps, dst: Slice, key: u64) -> Launch {
    let [channels, positions] = [maps.channels, maps.positions()].map(|size| Arg::I32(size as i32));
    let channels_last = Arg::I32((maps.layout == Layout::Nhwc).into());
    launch("inputs", element, dst, &[Arg::U64(key), channels, positions, channels_last])
}

/// One-hot targets, N x `classes` floats, with labels of equal probability.
pub fn one_hot(dst: Slice, classes: usize, key: u64) -> Launch {
    launch("one_hot", Element::F32, dst, &[Arg::I32(classes as i32), Arg::U64(key)])
}

/// Targets: floats that are uniform on [0, 1).
pub fn uniform_targets(dst: Slice, key: u64) -> Launch {
    launch("uniform_targets", Element::F32, dst, &[Arg::U64(key)])
}

/// Points of a square grid, N x 2, row by row, as [`crate::engine::data::PeaksPoint::of`].
pub fn points(element: Element, dst: Slice, batch: usize) -> Launch {
    launch("points", element, dst, &[Arg::I32(side(batch) as i32)])
}

/// The heights of the surface `peaks` at those points, N floats, as [`crate::engine::data::PeaksPoint::height`].
pub fn heights(dst: Slice, batch: usize) -> Launch {
    launch("heights", Element::F32, dst, &[Arg::I32(side(batch) as i32)])
}

/// The same float everywhere.
pub fn fill(dst: Slice, value: f32) -> Launch {
    launch("fill", Element::F32, dst, &[Arg::F32(value)])
}
