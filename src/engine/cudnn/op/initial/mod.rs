//! The initial values of a training: parameters, inputs and targets, the same numbers as the CPU engine's
//! (`engine/cpu/parameters.rs` and `data.rs`). A `key` is [`crate::random::Stream::key`].

#[cfg(test)]
mod tests;

use super::grid::line;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::feature_maps::FeatureMaps;
use crate::engine::data::side;
use crate::settings::Layout;

fn launch(name: &'static str, element: Element, count: usize, args: Vec<Arg>) -> Vec<Launch> {
    vec![line(Kernel { operator: "initial", name, element }, count, args)]
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
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
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
        launch("weights", element, count, args)
    }
}

/// Inputs, uniform on [0, 1) by their index in N x C x H x W.
#[derive(Clone, Copy, Debug)]
pub struct Inputs {
    pub element: Element,
    pub maps: FeatureMaps,
    pub dst: Slice,
    pub key: u64,
}

impl Inputs {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let Self { element, maps, dst, key } = *self;
        let args = vec![
            Arg::Write(dst),
            Arg::I64(maps.count() as i64),
            Arg::U64(key),
            Arg::I32(maps.channels as i32),
            Arg::I32(maps.positions() as i32),
            Arg::I32((maps.layout == Layout::Nhwc).into()),
        ];
        launch("inputs", element, maps.count(), args)
    }
}

/// One-hot targets with labels of equal probability.
#[derive(Clone, Copy, Debug)]
pub struct OneHot {
    /// N x K floats.
    pub dst: Slice,
    pub batch: usize,
    pub classes: usize,
    pub key: u64,
}

impl OneHot {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let Self { dst, batch, classes, key } = *self;
        let count = batch * classes;
        let args = vec![Arg::Write(dst), Arg::I64(count as i64), Arg::I32(classes as i32), Arg::U64(key)];
        launch("one_hot", Element::F32, count, args)
    }
}

/// Targets that are uniform on [0, 1).
#[derive(Clone, Copy, Debug)]
pub struct UniformTargets {
    /// `count` floats.
    pub dst: Slice,
    pub count: usize,
    pub key: u64,
}

impl UniformTargets {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let Self { dst, count, key } = *self;
        launch("uniform_targets", Element::F32, count, vec![Arg::Write(dst), Arg::I64(count as i64), Arg::U64(key)])
    }
}

/// Points of a square grid, row by row, as [`crate::engine::data::PeaksPoint::of`].
#[derive(Clone, Copy, Debug)]
pub struct Points {
    pub element: Element,
    /// N x 2.
    pub dst: Slice,
    pub batch: usize,
}

impl Points {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let Self { element, dst, batch } = *self;
        let args = vec![Arg::Write(dst), Arg::I64(2 * batch as i64), Arg::I32(side(batch) as i32)];
        launch("points", element, 2 * batch, args)
    }
}

/// The heights of the surface `peaks` at those points, as [`crate::engine::data::PeaksPoint::height`].
#[derive(Clone, Copy, Debug)]
pub struct Heights {
    /// N floats.
    pub dst: Slice,
    pub batch: usize,
}

impl Heights {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let Self { dst, batch } = *self;
        let args = vec![Arg::Write(dst), Arg::I64(batch as i64), Arg::I32(side(batch) as i32)];
        launch("heights", Element::F32, batch, args)
    }
}

/// The same float everywhere.
#[derive(Clone, Copy, Debug)]
pub struct Fill {
    pub dst: Slice,
    pub count: usize,
    pub value: f32,
}

impl Fill {
    /// One launch.
    pub fn launches(&self) -> Vec<Launch> {
        let Self { dst, count, value } = *self;
        launch("fill", Element::F32, count, vec![Arg::Write(dst), Arg::I64(count as i64), Arg::F32(value)])
    }
}
