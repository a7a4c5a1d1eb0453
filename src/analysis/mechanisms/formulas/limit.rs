//! Memory limits that a layer may exceed from one batch size to the next: the workspace that its algorithm may use, and
//! the caches.

use super::WINOGRAD_BATCH;

/// The scratch memory of a layer's algorithm at one batch size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workspace {
    pub batch: usize,
    pub bytes: f64,
}

/// The bytes of scratch memory that an algorithm would need at `batch`, extrapolated from those that it took at smaller
/// sizes, `taken`, ascending: along the line through the last two, or in proportion to the batch if there is only one.
/// Non-fused Winograd keeps the transformed tiles of the padded batch, so its memory is proportional to the padded
/// batch. `None` where `taken` is empty.
///
/// ```
/// use batchstep::analysis::mechanisms::formulas::limit::{Workspace, workspace};
/// // Copies of input and output, 64 channels of 224x224 in float32: 42 images no longer fit into 1 GiB.
/// let copies = |batch: usize| Workspace { batch, bytes: (2 * batch * 64 * 224 * 224 * 4) as f64 };
/// assert!(copies(41).bytes <= (1 << 30) as f64);
/// assert_eq!(workspace(&[copies(40), copies(41)], 42, false), Some(1_078_984_704.0));
/// ```
pub fn workspace(taken: &[Workspace], batch: usize, non_fused_winograd: bool) -> Option<f64> {
    let last = taken.last()?;
    let padded = |batch: usize| batch.next_multiple_of(WINOGRAD_BATCH) as f64;
    let in_proportion = last.bytes * batch as f64 / last.batch.max(1) as f64;
    Some(match taken {
        _ if non_fused_winograd => last.bytes * padded(batch) / padded(last.batch.max(1)),
        [.., before, last] if before.batch < last.batch => {
            let slope = (last.bytes - before.bytes) / (last.batch - before.batch) as f64;
            last.bytes + slope * (batch as f64 - last.batch as f64)
        }
        _ => in_proportion,
    })
}

/// A cache that all of a device's processors share, or one core's own on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cache {
    pub level: u32,
    pub bytes: u64,
}

/// The largest cache that holds `before` bytes but not `behind`: the bytes that a layer reads and writes at two batch
/// sizes.
pub fn overflowed(caches: &[Cache], before: f64, behind: f64) -> Option<Cache> {
    let passed = |cache: &&Cache| before <= cache.bytes as f64 && behind > cache.bytes as f64;
    caches.iter().filter(passed).max_by_key(|cache| cache.bytes).copied()
}
