//! The gradient of the weights: for each tap, the output's gradient times the values that the tap reads.

use std::ops::Range;

use super::super::cpu::{cut, enough_tasks};
use super::super::geometry::Geometry;
use super::sheet::Sheet;
use super::{axes, bands};
use crate::engine::cpu::blocking::VECTOR;
use crate::engine::cpu::op::parallel::{Shared, for_each_piece, for_each_task, threads};
use crate::engine::cpu::op::product::{Matrix, MatrixMut, Write, multiply, transpose};
use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::scratch::{List, Scratch};

/// The most scalars of all copies of the gradient together; a single copy may have more.
const COPIES: usize = 4 << 20;

/// Each task takes one of some parts of the bands of the batch's images, and some of the taps.
fn parts_and_taps(g: &Geometry, bands: usize, threads: usize) -> [List<Range<usize>>; 2] {
    let (all, wanted) = (g.batch * bands, enough_tasks(threads));
    let parts: List<_> = cut(all, wanted.min(all).min(COPIES / g.weight_len()).max(1), 1).collect();
    let taps = cut(g.taps(), wanted.div_ceil(parts.len()).min(g.taps()), 1).collect();
    [parts, taps]
}

/// The lengths of the tasks' work, in the order in which they are taken.
pub fn pieces(g: &Geometry, threads: usize) -> Vec<usize> {
    let [rows, columns] = axes(g);
    let [parts, taps] = parts_and_taps(g, bands(rows, columns).len(), threads);
    parts.iter().flat_map(|part| taps.iter().map(|taps| part.len() * taps.len())).collect()
}

/// Filters whose copies a task adds up.
const TOGETHER: usize = 8;

/// `dw`. A task adds up a part of the batch in its own copy, of the shape taps x outputs x channels; the copies are
/// added at the end, always in the same order.
pub fn weight_gradient<T: Scalar>(g: &Geometry, x: &[T], dy: &[T], dw: &mut [T]) {
    let [rows, columns] = axes(g);
    let bands = bands(rows, columns);
    let most = bands.iter().map(Range::len).max().unwrap_or(1);
    let sheet = Sheet::new(rows, columns, most);
    let (places, stride) = (sheet.places(), sheet.sums(most).next_multiple_of(VECTOR));
    let [parts, taps] = parts_and_taps(g, bands.len(), threads());
    let (from, to, plane) = (g.in_channels, g.out_channels, g.height * g.width);
    let mut copies = Scratch::new(parts.len() * g.weight_len());
    let shared = Shared::new(&mut copies);
    let scratch = || {
        let room = || Scratch::new(from * sheet.len);
        // Between the rows the gradients stay zero.
        (room(), room(), Scratch::zeros(to * stride))
    };
    for_each_task(parts.len() * taps.len(), scratch, |(planes, turned, slopes), task| {
        let (part, taps) = (task / taps.len(), &taps[task % taps.len()]);
        for (i, unit) in parts[part].clone().enumerate() {
            let (image, band) = (unit / bands.len(), &bands[unit % bands.len()]);
            let source = x[image * from * plane..][..from * plane].chunks_exact(plane);
            source.zip(planes.chunks_exact_mut(sheet.len)).for_each(|(source, to)| sheet.fill(source, band, to));
            // SAFETY: the planes have these rows and columns, and there is room for as many.
            unsafe {
                transpose::copy(planes.as_ptr(), [1, sheet.len], [sheet.len, from], turned.as_mut_ptr(), from);
            }
            let dy = dy[image * to * g.positions()..][..to * g.positions()].chunks_exact(g.positions());
            for (dy, slopes) in dy.zip(slopes.chunks_exact_mut(stride)) {
                let dy = dy[band.start * g.out_width..band.end * g.out_width].chunks_exact(g.out_width);
                dy.zip(slopes.chunks_mut(sheet.pitch)).for_each(|(dy, to)| to[..g.out_width].copy_from_slice(dy));
            }
            let sums = sheet.sums(band.len());
            let slopes = Matrix::new(slopes, to, sums, stride);
            for tap in taps.clone() {
                let start = (part * g.taps() + tap) * to * from;
                // SAFETY: these taps of this copy belong to this task.
                let target = unsafe { MatrixMut::shared(&shared, start, to, from, from) };
                let seen = Matrix::new(&turned[places[tap] * from..], sums, from, from);
                let mode = if i == 0 { Write::Overwrite } else { Write::AddTo };
                multiply(target, slopes, seen, mode, g.factors());
            }
        }
    });
    let copies = &*copies;
    for_each_piece(dw, TOGETHER * g.depth(), |number, dw| {
        for (output, dw) in (number * TOGETHER..).zip(dw.chunks_exact_mut(g.depth())) {
            for (at, dw) in dw.iter_mut().enumerate() {
                let (channel, tap) = (at / g.taps(), at % g.taps());
                let place = (tap * to + output) * from + channel;
                *dw = copies[place..].iter().step_by(g.weight_len()).fold(T::ZERO, |sum, copy| sum + *copy);
            }
        }
    });
}
