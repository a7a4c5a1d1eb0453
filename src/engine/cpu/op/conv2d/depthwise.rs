//! Depthwise convolution: one small filter per channel, a direct loop over its taps.
//!
//! A padded plane is first taken apart into one plane per phase of the stride: phase (a, b) holds the pixels whose row
//! is a and whose column is b modulo the stride. On these planes a convolution of any stride has stride 1, so that an
//! output row, and even the whole output laid out with the rows of the phases, is a sum of shifted, contiguous runs:
//! `out[q] = sum over taps of w[tap] * phase[tap][q + shift[tap]]`. The values between two output rows are never read.

use rayon::prelude::*;

use super::cpu_backward::Gradients;
use super::geometry::Geometry;
use super::unfold::copy;
use crate::engine::cpu::op::filters::Filters;
use crate::engine::cpu::op::parallel::{Shared, for_each_task, piece};
use crate::engine::cpu::op::scalar::{Scalar, sum, vectorised};
use crate::engine::cpu::op::scratch::Scratch;
use crate::network::Extent;

/// Outputs that are computed together, in registers.
const CHUNK: usize = 32;

/// How a plane is laid out in phases.
struct Phases {
    /// Columns of one phase, and of the output in its layout.
    width: usize,
    rows: usize,
    /// Elements of one phase, with room for the last chunk's reads and writes.
    len: usize,
    /// The largest distance within a phase between an output and a value that it is made of.
    reach: usize,
    /// Outputs in the phases' layout, up to the last true one.
    run: usize,
    /// For each tap of the kernel: where its value for output 0 lies.
    shifts: Vec<usize>,
    /// For each phase: its taps, and where their values lie in it.
    taps: Vec<Vec<(usize, usize)>>,
}

impl Phases {
    fn new(g: &Geometry) -> Self {
        let reach = ((g.kernel.height - 1) / g.stride.height, (g.kernel.width - 1) / g.stride.width);
        let (rows, width) = (g.out_height + reach.0, g.out_width + reach.1);
        let run = (g.out_height - 1) * width + g.out_width;
        let reach = reach.0 * width + reach.1;
        let len = (run + reach).next_multiple_of(CHUNK) + reach;
        let shift = |tap: usize| {
            let (i, j) = (tap / g.kernel.width, tap % g.kernel.width);
            let phase = (i % g.stride.height) * g.stride.width + j % g.stride.width;
            phase * len + (i / g.stride.height) * width + j / g.stride.width
        };
        let shifts: Vec<usize> = (0..g.taps()).map(shift).collect();
        let mut taps = vec![Vec::new(); g.stride.height * g.stride.width];
        shifts.iter().enumerate().for_each(|(tap, shift)| taps[shift / len].push((tap, shift % len)));
        Self { width, rows, len, reach, run, shifts, taps }
    }

    /// Calls `at(phase element, plane element, count)` for every run of pixels of a row that lie in one phase; the
    /// plane's elements of a run are the horizontal stride apart.
    #[inline(always)]
    fn for_each_run(&self, g: &Geometry, mut at: impl FnMut(usize, usize, usize)) {
        let (Extent { height: step_y, width: step_x }, pad) = (g.stride, g.padding);
        for y in 0..g.height {
            let (phase_y, row) = ((y + pad.top) % step_y, (y + pad.top) / step_y);
            if row >= self.rows {
                continue;
            }
            for x in 0..step_x.min(g.width) {
                let (phase_x, column) = ((x + pad.left) % step_x, (x + pad.left) / step_x);
                let count = (g.width - x).div_ceil(step_x).min(self.width.saturating_sub(column));
                if count > 0 {
                    let phase = phase_y * step_x + phase_x;
                    at(phase * self.len + row * self.width + column, y * g.width + x, count);
                }
            }
        }
    }

    /// Takes a plane apart. The padding's places in `phases` must be zero already.
    #[inline(always)]
    fn split<T: Scalar>(&self, g: &Geometry, plane: &[T], phases: &mut [T]) {
        self.for_each_run(g, |to, from, count| {
            let to = &mut phases[to..to + count];
            match g.stride.width {
                1 => copy(to, &plane[from..from + count]),
                step => to.iter_mut().zip(plane[from..].iter().step_by(step)).for_each(|(to, from)| *to = *from),
            }
        });
    }

    /// Puts a plane together again; pixels that no output saw stay as they are.
    #[inline(always)]
    fn join<T: Scalar>(&self, g: &Geometry, phases: &[T], plane: &mut [T]) {
        self.for_each_run(g, |from, to, count| {
            let from = &phases[from..from + count];
            match g.stride.width {
                1 => copy(&mut plane[to..to + count], from),
                step => plane[to..].iter_mut().step_by(step).zip(from).for_each(|(to, from)| *to = *from),
            }
        });
    }

    fn storage<T: Scalar>(&self, g: &Geometry) -> Scratch<T> {
        Scratch::zeros(g.stride.height * g.stride.width * self.len)
    }

    fn output_storage<T: Scalar>(&self) -> Scratch<T> {
        Scratch::zeros(self.run.next_multiple_of(CHUNK))
    }

    /// An output's gradient, with zeros before and after it.
    fn slope_storage<T: Scalar>(&self) -> Scratch<T> {
        Scratch::zeros(self.reach + self.len)
    }
}

/// `y = rectifier(w * x + bias)`, channel by channel.
pub fn forward<T: Scalar>(g: &Geometry, x: &[T], filters: Filters<'_, T>, y: &mut [T]) {
    let layout = Phases::new(g);
    let values = filters.rectifier.range::<T>();
    let planes = piece(g.batch * g.in_channels, g.positions() * g.taps() / 4);
    let scratch = || (layout.storage(g), layout.output_storage());
    y.par_chunks_mut(planes * g.positions()).enumerate().for_each_init(scratch, |(phases, out), (i, y)| {
        let x = x[i * planes * g.height * g.width..].chunks_exact(g.height * g.width);
        for (plane, (x, y)) in x.zip(y.chunks_exact_mut(g.positions())).enumerate() {
            let channel = (i * planes + plane) % g.in_channels;
            let filter = &filters.weight[channel * g.taps()..(channel + 1) * g.taps()];
            let bias = filters.bias(channel);
            vectorised(
                #[inline(always)]
                || {
                    layout.split(g, x, phases);
                    correlate(&layout, filter, bias, phases, out);
                    for (y, out) in y.chunks_exact_mut(g.out_width).zip(out.chunks(layout.width)) {
                        y.iter_mut().zip(out).for_each(|(y, out)| *y = values.clamp(*out));
                    }
                },
            );
        }
    });
}

/// One plane's outputs in the phases' layout.
#[inline(always)]
fn correlate<T: Scalar>(layout: &Phases, filter: &[T], bias: T, phases: &[T], out: &mut [T]) {
    for (chunk, out) in out.chunks_exact_mut(CHUNK).enumerate() {
        let mut total = [bias; CHUNK];
        for (w, shift) in filter.iter().zip(&layout.shifts) {
            let values = &phases[chunk * CHUNK + shift..][..CHUNK];
            for lane in 0..CHUNK {
                total[lane] += *w * values[lane];
            }
        }
        out.copy_from_slice(&total);
    }
}

/// The gradients that are wanted; a task owns some channels of the whole batch.
pub fn backward<T: Scalar>(g: &Geometry, x: &[T], weight: &[T], dy: &[T], into: Gradients<'_, T>) {
    let layout = Phases::new(g);
    let (dx_shared, dw_shared) = (into.x.map(Shared::new), into.weight.map(Shared::new));
    let channels = piece(g.in_channels, g.batch * g.positions() * g.taps() / 2);
    let scratch = || (layout.storage(g), layout.storage(g), layout.slope_storage());
    for_each_task(g.in_channels.div_ceil(channels), scratch, |(phases, slopes, rows), task| {
        for channel in task * channels..((task + 1) * channels).min(g.in_channels) {
            let mut sums = vec![[T::ZERO; CHUNK]; g.taps()];
            for plane in (channel..g.batch * g.in_channels).step_by(g.in_channels) {
                let dy = &dy[plane * g.positions()..(plane + 1) * g.positions()];
                let pixels = g.height * g.width;
                vectorised(
                    #[inline(always)]
                    || {
                        let rows_of_dy = rows[layout.reach..].chunks_mut(layout.width);
                        for (row, dy) in rows_of_dy.zip(dy.chunks_exact(g.out_width)) {
                            copy(&mut row[..g.out_width], dy);
                        }
                        if dw_shared.is_some() {
                            layout.split(g, &x[plane * pixels..(plane + 1) * pixels], phases);
                            add_weight_gradient(&layout, phases, &rows[layout.reach..], &mut sums);
                        }
                        if let Some(dx) = &dx_shared {
                            spread(&layout, &weight[channel * g.taps()..][..g.taps()], rows, slopes);
                            // SAFETY: this channel belongs to this task.
                            let dx = unsafe { dx.slice(plane * pixels, pixels) };
                            dx.fill(T::ZERO);
                            layout.join(g, slopes, dx);
                        }
                    },
                );
            }
            if let Some(dw) = &dw_shared {
                // SAFETY: this channel belongs to this task.
                let dw = unsafe { dw.slice(channel * g.taps(), g.taps()) };
                dw.iter_mut().zip(&sums).for_each(|(dw, sums)| *dw = sum(sums));
            }
        }
    });
}

/// `sums[tap] += dy[q] * phase[q + shift]` for all q, in as many partial sums as a chunk has lanes; `dy` is zero between two
/// output rows and after the last.
#[inline(always)]
fn add_weight_gradient<T: Scalar>(layout: &Phases, phases: &[T], dy: &[T], sums: &mut [[T; CHUNK]]) {
    let chunks = dy.as_chunks::<CHUNK>().0.iter().take(layout.run.div_ceil(CHUNK)).enumerate();
    let values = |chunk: usize, shift: usize| &phases[chunk * CHUNK + shift..][..CHUNK];
    // Taps by threes, so that one load of dy serves three and the sums stay in registers.
    let (threes, rest) = sums.as_chunks_mut::<3>();
    for (sums, shifts) in threes.iter_mut().zip(layout.shifts.as_chunks::<3>().0) {
        let [mut a, mut b, mut c] = *sums;
        for (chunk, dy) in chunks.clone() {
            let (x, y, z) = (values(chunk, shifts[0]), values(chunk, shifts[1]), values(chunk, shifts[2]));
            for lane in 0..CHUNK {
                a[lane] += dy[lane] * x[lane];
                b[lane] += dy[lane] * y[lane];
                c[lane] += dy[lane] * z[lane];
            }
        }
        *sums = [a, b, c];
    }
    for (sums, shift) in rest.iter_mut().zip(layout.shifts.as_chunks::<3>().1) {
        let mut a = *sums;
        for (chunk, dy) in chunks.clone() {
            let x = values(chunk, *shift);
            for lane in 0..CHUNK {
                a[lane] += dy[lane] * x[lane];
            }
        }
        *sums = a;
    }
}

/// `dphase[q] = sum over the phase's taps of w[tap] * dy[q - shift]`, where `dy` has zeros before and after it.
#[inline(always)]
fn spread<T: Scalar>(layout: &Phases, filter: &[T], dy: &[T], slopes: &mut [T]) {
    for (taps, slopes) in layout.taps.iter().zip(slopes.chunks_exact_mut(layout.len)) {
        for (chunk, slopes) in slopes.as_chunks_mut::<CHUNK>().0.iter_mut().enumerate() {
            let mut total = [T::ZERO; CHUNK];
            for &(tap, shift) in taps {
                let (w, dy) = (filter[tap], &dy[layout.reach + chunk * CHUNK - shift..][..CHUNK]);
                for lane in 0..CHUNK {
                    total[lane] += w * dy[lane];
                }
            }
            *slopes = total;
        }
    }
}
