//! The mechanisms' formulas compared with launches that others published: a sample, and all of them if
//! `scripts/fetch-published` has fetched them.

use std::path::{Path, PathBuf};

use batchstep::analysis::mechanisms::formulas::{Kernel, KnownOperation, LayerSizes, Tile};
use batchstep::predict::published_kernels::{GpuFigures, LayerLaunch, Published};

use crate::needs;

#[path = "../../examples/tables/published_check.rs"]
mod check;

fn sample() -> Published {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/published/neusight/kernels.csv");
    Published::read(&path).expect("the sample")
}

/// The published times where `scripts/fetch-published` has put them, or where `BATCHSTEP_PUBLISHED` says; `None`, and a
/// skip, if they are missing.
pub fn fetched() -> Option<PathBuf> {
    let usual = Path::new(env!("CARGO_MANIFEST_DIR")).join(batchstep::predict::published_kernels::PATH);
    let path = std::env::var_os("BATCHSTEP_PUBLISHED").map_or(usual, PathBuf::from);
    if path.is_file() {
        return Some(path);
    }
    needs::missing("published", format!("{}: fetch it with scripts/fetch-published", path.display()));
    None
}

fn all() -> Option<Published> {
    fetched().map(|path| Published::read(&path).expect("the published data"))
}

/// Each family's launches have the grids of its formula; how many grids another padding gives as well.
fn check_grids(published: &Published, launches: [usize; 4]) -> [usize; 4] {
    let shares = check::shares(published);
    std::array::from_fn(|at| {
        let (_, family) = check::FAMILIES[at];
        let own = || shares.iter().filter(|share| share.family == family);
        assert_eq!(own().map(|share| share.launches).sum::<usize>(), launches[at], "{family}");
        assert_eq!(own().map(|share| share.exact).sum::<usize>(), launches[at], "{family}");
        own().map(|share| share.exact_padded_to_8.max(share.exact_unpadded)).sum()
    })
}

#[test]
fn every_launch_of_the_sample_has_the_grid_of_its_formula() {
    let published = sample();
    // No other padding gives the grids of the launches of non-fused Winograd.
    assert_eq!(check_grids(&published, [10, 8, 10, 10]), [0, 8, 10, 10]);
    // Two convolutions use another kernel.
    assert_eq!((published.launches.len(), check::unknown(&published)), (40, 2));
    assert_eq!(published.gpus.len(), 6);
}

/// One launch of each family on the T4, with its grid as published and as calculated by hand.
#[test]
fn grids_of_the_sample_are_those_calculated_by_hand() {
    let published = sample();
    let grid = |kernel: Kernel, batch: usize, sizes: [usize; 3]| {
        let gpu = published.find("t4").expect("the T4");
        let [inputs, outputs, side] = sizes;
        let is_it = |launch: &&LayerLaunch| {
            let LayerSizes { inputs: i, outputs: o, height: h, .. } = launch.layer;
            launch.gpu == gpu && launch.batch == batch && [i, o, h] == sizes && launch.kernel == Some(kernel)
        };
        let launch =
            published.launches.iter().find(is_it).unwrap_or_else(|| panic!("{kernel:?} {inputs} {outputs} {side}"));
        assert_eq!(launch.layer.product == KnownOperation::Dense, matches!(kernel, Kernel::Dense(_)));
        launch.grid
    };
    let tile = |first, second| Tile { first, second };
    // 17 images are padded to 32 of 5 x 5 tiles each: cd(800, 128) = 7, cd(862, 64) = 14. Padded to 8, cd(600, 128) = 5; not at all, 4.
    assert_eq!(grid(Kernel::NonFusedWinograd(tile(128, 64)), 17, [172, 862, 19]), [7, 14, 36]);
    // 5 cd(758, 32) = 120, cd(24, 8) = 3, cd(24, 16) = 2.
    assert_eq!(grid(Kernel::FusedWinograd { images: 1, rows: 4, columns: 8 }, 5, [119, 758, 24]), [120, 3, 2]);
    // cd(55 * 25, 128) = 11, cd(569, 32) = 18.
    assert_eq!(grid(Kernel::ImplicitProduct(tile(128, 32)), 55, [1701, 569, 5]), [11, 18, 1]);
    // cd(532, 128) = 5, cd(166, 64) = 3, and the sum is split into 4 parts, which the formula does not give.
    assert_eq!(grid(Kernel::Dense(tile(128, 64)), 166, [251, 532, 1]), [5, 3, 4]);
}

/// If all of the data are there, the sample is a part of them.
#[test]
fn the_sample_is_a_part_of_the_published_launches() {
    let Some(all) = all() else { return };
    let sample = sample();
    for launch in &sample.launches {
        let gpu = all.gpus.iter().position(|gpu| *gpu == sample.gpus[launch.gpu]).expect("the GPU");
        let wanted = LayerLaunch { gpu, ..launch.clone() };
        assert!(all.launches.contains(&wanted), "{launch:?}");
    }
}

#[test]
fn every_published_grid_matches_its_formula() {
    let Some(published) = all() else { return };
    let [other, ..] = check_grids(&published, [9_848, 8_170, 5_897, 32_224]);
    assert!(other < 9_848 * 3 / 4, "another padding fits {other} of non-fused Winograd");
    assert_eq!((published.launches.len(), check::unknown(&published)), (56_886, 747));
}

/// Times of a product by the rates of a GPU, on layers whose data are up to twice the cache: they have a step there only if they are half as long
/// again from there on. The model's factors take up a part of it.
#[test]
fn a_step_where_the_cache_overflows_is_seen_where_there_is_one() {
    let (product, l2_bytes) = (KnownOperation::Convolution3x3, 4 << 20);
    let name = "Test T4".to_owned();
    let gpu = GpuFigures { name, multiprocessors: 40, flops_per_s: 8e12, bytes_per_s: 3e11, l2_bytes };
    let kernel = Kernel::ImplicitProduct(Tile { first: 128, second: 64 });
    let launch = |at: usize, factor: f64| {
        let (side, batch) = (8 + at % 29, 1 + at % 17);
        let layer = LayerSizes { product, inputs: 16 + at % 71, outputs: 64, height: side, width: side };
        let rounds = kernel.blocks(&layer, batch).div_ceil(40) as f64;
        let time_s = 5e-5 + 1e-6 * rounds * layer.inputs as f64;
        let time_s = time_s * if layer.bytes(batch) > l2_bytes as f64 { factor } else { 1.0 };
        LayerLaunch { gpu: 0, layer, batch, kernel: Some(kernel), grid: kernel.grid(&layer, batch), time_s }
    };
    let ratio = |factor: f64| {
        let launches = (0..2000).map(|at| launch(at, factor)).collect();
        let found = check::at_the_cache(&Published { gpus: vec![gpu.clone()], launches });
        assert!(found[0].below.min(found[0].above) >= check::FEWEST_AT_THE_CACHE, "{found:?}");
        found[0].ratio
    };
    assert!((ratio(1.0) - 1.0).abs() < 0.02 && ratio(1.5) > 1.2, "{} {}", ratio(1.0), ratio(1.5));
}
