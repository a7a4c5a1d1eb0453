//! What the processor reaches at best: a large matrix product, and a triad, with the threads of a step.

use std::time::{Duration, Instant};

use candle_core::{Device, Tensor};
use rayon::ThreadPool;
use rayon::prelude::*;

use crate::engine::Peaks;
use crate::error::Result;

/// Rows and columns of the product: 17 GFLOP on 48 MiB.
const SIDE: usize = 2048;
/// Numbers of each of the triad's three arrays: 64 MiB, more than the caches of most processors hold.
const LENGTH: usize = 1 << 24;
/// Numbers of one task of the triad.
const CHUNK: usize = 1 << 16;
/// The best of at least so many counts, after one that does not.
const TRIALS: usize = 5;
/// And of as many as fit into this time: a processor that was idle, or a neighbour, takes a while to give way.
const TIME: Duration = Duration::from_millis(300);

/// Measures both; takes a second on two cores.
///
/// # Errors
/// candle's, where memory cannot be had.
pub fn measure(pool: &ThreadPool) -> Result<Peaks> {
    Ok(Peaks { flops_per_s: product(pool)?, bytes_per_s: triad(pool)? })
}

fn product(pool: &ThreadPool) -> Result<f64> {
    let matrix = || Tensor::rand(-1f32, 1f32, (SIDE, SIDE), &Device::Cpu);
    let (a, b) = (matrix()?, matrix()?);
    let best = fastest(|| pool.install(|| a.matmul(&b)).map(drop))?;
    Ok(2.0 * (SIDE as f64).powi(3) / best)
}

/// The seconds of the fastest of several trials.
fn fastest(mut trial: impl FnMut() -> candle_core::Result<()>) -> Result<f64> {
    trial()?;
    let (begin, mut best, mut trials) = (Instant::now(), f64::INFINITY, 0);
    while trials < TRIALS || begin.elapsed() < TIME {
        let start = Instant::now();
        trial()?;
        best = best.min(start.elapsed().as_secs_f64());
        trials += 1;
    }
    Ok(best)
}

/// a = b + s c, as McCalpin's STREAM counts it: two arrays read and one written.
fn triad(pool: &ThreadPool) -> Result<f64> {
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
        Ok(())
    })?;
    Ok((3 * 4 * LENGTH) as f64 / best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_processor_multiplies_and_moves() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let peaks = measure(&pool).unwrap();
        assert!(peaks.flops_per_s > 1e6 && peaks.flops_per_s < 1e15, "{peaks:?}");
        assert!(peaks.bytes_per_s > 1e6 && peaks.bytes_per_s < 1e14, "{peaks:?}");
    }
}
