//! Checks whether published launch grids equal those of the formulas, and whether the published times step where a cache overflows.

use batchstep::analysis::mechanisms::formulas::{Family, Kernel, WINOGRAD_BATCH};
use batchstep::predict::published_kernels::model::{Assumptions, KernelModel};
use batchstep::predict::published_kernels::{GpuFigures, LayerLaunch, Published};
use batchstep::stats::quantile::median;

pub const FAMILIES: [(Family, &str); 4] = [
    (Family::NonFusedWinograd, "non-fused Winograd"),
    (Family::FusedWinograd, "fused Winograd"),
    (Family::ImplicitProduct, "implicit product"),
    (Family::Dense, "dense"),
];

/// How many launches of a kernel family on one GPU have exactly the grid of its formula.
#[derive(Clone, Debug, PartialEq)]
pub struct ExactGrids {
    pub family: &'static str,
    pub gpu: String,
    pub launches: usize,
    pub exact: usize,
    /// With non-fused Winograd's batch padded to 8, and not at all; for the other families the same as `exact`.
    pub exact_padded_to_8: usize,
    pub exact_unpadded: usize,
}

/// By family, then by GPU. The split of a dense layer's sum, along z, is not in its formula and is not compared.
pub fn shares(published: &Published) -> Vec<ExactGrids> {
    let mut shares = Vec::new();
    for (family, name) in FAMILIES {
        for (place, gpu) in published.gpus.iter().enumerate() {
            let mut share = ExactGrids {
                family: name,
                gpu: gpu.name.clone(),
                launches: 0,
                exact: 0,
                exact_padded_to_8: 0,
                exact_unpadded: 0,
            };
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

/// Launches on either side below which nothing is said about a GPU's cache.
pub const FEWEST_AT_THE_CACHE: usize = 20;

/// The times of convolutions on one GPU where input, output and weights just fit into its second-level cache, and where they no longer do.
#[derive(Clone, Debug, PartialEq)]
pub struct AtTheCache {
    pub gpu: String,
    /// Launches that move 0.8 to 1 times the cache's size, and 1 to 1.25 times.
    pub below: usize,
    pub above: usize,
    /// The ratio of the medians above and below the boundary, of times divided by those of the model, which has no cache; 1 means no step.
    pub ratio: f64,
}

/// By GPU; without those that have too few launches there.
pub fn at_the_cache(published: &Published) -> Vec<AtTheCache> {
    let of = |(place, gpu): (usize, &GpuFigures)| {
        let launches = || published.launches.iter().filter(move |launch| launch.gpu == place);
        let model = KernelModel::fit(published, launches(), Assumptions::BOTH);
        let relative =
            |launch: &LayerLaunch| Some(launch.time_s / model.time(launch.kernel?, &launch.layer, launch.batch, gpu)?);
        let within = |low: f64, high: f64| -> Vec<f64> {
            let moved = |launch: &LayerLaunch| launch.layer.bytes(launch.batch) / gpu.l2_bytes as f64;
            launches().filter(|launch| moved(launch) > low && moved(launch) <= high).filter_map(relative).collect()
        };
        let (mut below, mut above) = (within(0.8, 1.0), within(1.0, 1.25));
        (below.len().min(above.len()) >= FEWEST_AT_THE_CACHE).then(|| AtTheCache {
            gpu: gpu.name.clone(),
            below: below.len(),
            above: above.len(),
            ratio: median(&mut above) / median(&mut below),
        })
    };
    published.gpus.iter().enumerate().filter_map(of).collect()
}
