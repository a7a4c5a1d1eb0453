//! Whether the launch grids that others published are those of the formulas.

use super::Published;
use crate::mechanism::{Family, Kernel, WINOGRAD_BATCH};

/// How many launches of a kernel family on one GPU have exactly the grid of its formula.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    pub family: Family,
    pub gpu: String,
    pub launches: usize,
    pub exact: usize,
    /// With non-fused Winograd's batch padded to 8, and not at all; of the other families the same as `exact`.
    pub exact_padded_to_8: usize,
    pub exact_unpadded: usize,
}

/// By family, then by GPU. The split of a dense layer's sum, along z, is not in its formula and is not compared.
pub fn shares(published: &Published) -> Vec<Share> {
    let mut shares = Vec::new();
    for family in Family::ALL {
        for (place, gpu) in published.gpus.iter().enumerate() {
            let mut share =
                Share { family, gpu: gpu.name.clone(), launches: 0, exact: 0, exact_padded_to_8: 0, exact_unpadded: 0 };
            for launch in published.launches.iter().filter(|launch| launch.gpu == place) {
                let Some(kernel) = launch.kernel.filter(|kernel| kernel.family() == family) else { continue };
                let compared = if let Kernel::Dense(_) = kernel { 2 } else { 3 };
                let fits = |padding: usize| {
                    let grid = kernel.grid_padded(&launch.layer, launch.batch, padding);
                    usize::from(grid[..compared] == launch.grid[..compared])
                };
                share.launches += 1;
                share.exact += fits(WINOGRAD_BATCH);
                share.exact_padded_to_8 += fits(8);
                share.exact_unpadded += fits(1);
            }
            if share.launches > 0 {
                shares.push(share);
            }
        }
    }
    shares
}

/// Launches of 3 x 3 convolutions and dense layers that no formula knows.
pub fn unknown(published: &Published) -> usize {
    published.launches.iter().filter(|launch| launch.kernel.is_none()).count()
}
