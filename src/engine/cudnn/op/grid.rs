//! Launches of kernels with one-dimensional grids.

use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::cudnn::call::{Arg, Kernel, Launch, Slice};
use crate::engine::cudnn::element::Element;

/// The default number of threads in a block.
pub const THREADS: usize = 256;

/// A launch of that many blocks of that many threads.
pub fn blocks(kernel: Kernel, blocks: usize, threads: usize, args: Vec<Arg>) -> Launch {
    Launch { kernel, grid: [blocks as u32, 1, 1], block: [threads as u32, 1, 1], shared_bytes: 0, args }
}

/// A launch of at least `threads` threads in blocks of [`THREADS`].
pub fn line(kernel: Kernel, threads: usize, args: Vec<Arg>) -> Launch {
    blocks(kernel, threads.div_ceil(THREADS).max(1), THREADS, args)
}

/// Threads for `count` elements where each takes sixteen bytes, and each element left over has a thread of its own.
pub fn packs(element: Element, count: usize) -> usize {
    let pack = 16 / element.bytes();
    count / pack + count % pack
}

/// The argument that is read and the one that is written, where both may be one slice.
pub fn in_and_out(from: Slice, to: Slice) -> (Arg, Arg) {
    if from == to { (Arg::Update(from), Arg::Update(to)) } else { (Arg::Read(from), Arg::Write(to)) }
}

/// A rectifier as the kernels' `rectifier` argument: 0, 1 for ReLU, 2 for ReLU6.
pub fn kind(rectifier: Rectifier) -> Arg {
    Arg::I32(rectifier as i32)
}

/// A size as a kernel's `int`.
pub fn int(size: usize) -> Arg {
    Arg::I32(size as i32)
}
