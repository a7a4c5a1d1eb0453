//! The highest rates that the processor reaches: a large matrix product and a triad, with the threads of a step.

use std::time::{Duration, Instant};

use rayon::ThreadPool;
use rayon::prelude::*;

use super::blocking::Factors;
use super::op::product::{Matrix, MatrixMut, Write, multiply};
use crate::engine::Peaks;
use crate::random::{Purpose, Stream};

/// Rows and columns of the product for up to [`FEW`] threads, 2 GFLOP on 12 MiB, and for more. On two cores, 512 to 2048 rows reach the same
/// rate within 2 %.
const SIDES: [usize; 2] = [1024, 2048];
const FEW: usize = 8;
/// Rows of a task, where our own product is used.
const ROWS: usize = 64;
/// Numbers of each of the triad's three arrays: 64 MiB, more than the caches of most processors hold.
const LENGTH: usize = 1 << 24;
/// Numbers of one task of the triad.
const CHUNK: usize = 1 << 16;
/// The least number of timed repetitions, after an untimed one.
const REPETITIONS: usize = 5;
/// Repetitions continue for this long: it takes a while until an idle processor has raised its clock and other
/// processes have yielded.
const TIME: Duration = Duration::from_millis(300);

/// Measures both; takes a second.
pub fn measure(pool: &ThreadPool, factors: Factors) -> Peaks {
    Peaks { flops_per_s: product(pool, factors), bytes_per_s: triad(pool) }
}

fn product(pool: &ThreadPool, factors: Factors) -> f64 {
    let side = SIDES[usize::from(pool.current_num_threads() > FEW)];
    let stream = Stream::new(0, Purpose::Inputs, [0, 0]);
    let matrix = |first: usize| -> Vec<f32> {
        (first..first + side * side).map(|index| 2.0 * stream.uniform(index as u64) - 1.0).collect()
    };
    let (a, b, mut y) = (matrix(0), matrix(side * side), vec![0f32; side * side]);
    let best = fastest(|| {
        pool.install(|| match factors {
            Factors::Exact => multiply_exactly(pool, side, &mut y, &a, &b),
            Factors::Bf16 => {
                let b = Matrix::new(&b, side, side, side);
                y.par_chunks_mut(ROWS * side).zip(a.par_chunks(ROWS * side)).for_each(|(y, a)| {
                    let (y, a) = (MatrixMut::new(y, ROWS, side, side), Matrix::new(a, ROWS, side, side));
                    multiply(y, a, b, Write::Overwrite, factors);
                });
            }
        })
    });
    2.0 * (side as f64).powi(3) / best
}

/// `y = a b`, row by row, by a library that is made for large products; ours are for those of a step.
fn multiply_exactly(pool: &ThreadPool, side: usize, y: &mut [f32], a: &[f32], b: &[f32]) {
    let row = side.cast_signed();
    let threads = match pool.current_num_threads() {
        1 => gemm::Parallelism::None,
        several => gemm::Parallelism::Rayon(several),
    };
    assert!([y.len(), a.len(), b.len()] == [side * side; 3]);
    // SAFETY: three matrices of `side` rows and columns; `y` is not read.
    unsafe {
        gemm::gemm(
            side,
            side,
            side,
            y.as_mut_ptr(),
            1,
            row,
            false,
            a.as_ptr(),
            1,
            row,
            b.as_ptr(),
            1,
            row,
            0.0,
            1.0,
            false,
            false,
            false,
            threads,
        );
    }
}

/// The seconds of the fastest of several repetitions.
fn fastest(mut work: impl FnMut()) -> f64 {
    work();
    let (begin, mut best, mut repetitions) = (Instant::now(), f64::INFINITY, 0);
    while repetitions < REPETITIONS || begin.elapsed() < TIME {
        let start = Instant::now();
        work();
        best = best.min(start.elapsed().as_secs_f64());
        repetitions += 1;
    }
    best
}

/// a = b + s c, as McCalpin's STREAM counts it: two arrays read and one written.
fn triad(pool: &ThreadPool) -> f64 {
    let (b, c) = (vec![1f32; LENGTH], vec![2f32; LENGTH]);
    let mut a = vec![0f32; LENGTH];
    let mut s = 0.0;
    let best = fastest(|| {
        s += 1.0;
        pool.install(|| {
            let pairs = b.par_chunks(CHUNK).zip(c.par_chunks(CHUNK));
            a.par_chunks_mut(CHUNK).zip(pairs).for_each(|(a, (b, c))| {
                a.iter_mut().zip(b).zip(c).for_each(|((a, b), c)| *a = b + s * c);
            });
        });
        std::hint::black_box(&a);
    });
    (3 * 4 * LENGTH) as f64 / best
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_multiplies_and_moves() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let peaks = measure(&pool, Factors::Exact);
        assert!(peaks.flops_per_s > 1e6 && peaks.flops_per_s < 1e15, "{peaks:?}");
        assert!(peaks.bytes_per_s > 1e6 && peaks.bytes_per_s < 1e14, "{peaks:?}");
    }
}
