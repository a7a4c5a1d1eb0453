//! The mechanisms by name, each with its formula and its source.

use super::{Family, Kernel, KnownOperation, LayerSizes, WINOGRAD_BATCH};
use crate::engine::cpu::blocking::Blocking;
use crate::network::Direction;
use crate::settings::named;

named! {
    /// What may make a layer's work grow in a step.
    Mechanism {
        WinogradPadding = "winograd_padding",
        FusedWinogradTiles = "fused_winograd_tiles",
        ImplicitProductTiles = "implicit_product_tiles",
        DenseTiles = "dense_tiles",
        Rounds = "rounds",
        OtherAlgorithm = "other_algorithm",
        WorkspaceLimit = "workspace_limit",
        CacheOverflow = "cache_overflow",
        OwnKernel = "own_kernel",
        CpuVectors = "cpu_vectors",
        CpuReadings = "cpu_readings",
        CpuThreads = "cpu_threads",
        CpuPadding = "cpu_padding",
    }
}

impl Mechanism {
    pub fn meaning(self) -> &'static str {
        match self {
            Self::WinogradPadding => "non-fused Winograd pads the batch to 16",
            Self::FusedWinogradTiles => "blocks of the fused Winograd take several images",
            Self::ImplicitProductTiles => "tiles of the implicit product",
            Self::DenseTiles => "tiles of the dense product over the batch",
            Self::Rounds => "one more round of blocks over the multiprocessors",
            Self::OtherAlgorithm => "another algorithm",
            Self::WorkspaceLimit => "an algorithm's workspace no longer fits",
            Self::CacheOverflow => "what a layer moves no longer fits into a cache",
            Self::OwnKernel => "another kernel of batchstep's own",
            Self::CpuVectors => "dense products compute whole vectors of examples",
            Self::CpuReadings => "a dense layer's input gradient reads the weights once for every six examples",
            Self::CpuThreads => "a convolution's pieces do not divide evenly among the threads",
            Self::CpuPadding => "Winograd's products work on the padded batch",
        }
    }

    /// The amount of work; B the batch, cd division rounded up.
    pub fn formula(self) -> &'static str {
        match self {
            Self::WinogradPadding => "16 cd(B, 16) images",
            Self::FusedWinogradTiles => "cd(B, images of a block) blocks",
            Self::ImplicitProductTiles => "cd(B H W, tile) blocks",
            Self::DenseTiles => "cd(B, tile) blocks",
            Self::Rounds => "cd(blocks, those that the GPU holds)",
            Self::OtherAlgorithm => "read back from the library; no size is predicted",
            Self::WorkspaceLimit => {
                "workspace(B) <= limit < workspace(B + 1), on the line through the last two sizes; no size is predicted"
            }
            Self::CacheOverflow => "bytes(B) <= cache < bytes(B + 1); at most bytes(B + 1) / rate of a copy",
            Self::OwnKernel => "the function that chooses it; no size is predicted",
            Self::CpuVectors => "16 cd(p cd(B, p), 16) examples, p = batch_padding",
            Self::CpuReadings => "cd(B, 6) readings; each takes at most bytes of the weights / rate of a copy",
            Self::CpuThreads => {
                "threads x the work of the busiest one, which takes the next piece when it is done with one"
            }
            Self::CpuPadding => "p cd(B, p) images, p = batch_padding",
        }
    }

    /// The grade of its evidence, the origin of the formula, and how it was checked.
    pub fn source(self) -> &'static str {
        match self {
            Self::WinogradPadding => {
                "measured by others: the grids of 9,848 launches, all exact (forward); measured here: of 375 on an H200, all exact (forward and gradient of the data)"
            }
            Self::FusedWinogradTiles => "measured by others: the grids of 8,170 launches, all exact (forward)",
            Self::ImplicitProductTiles => "measured by others: the grids of 5,897 launches, all exact (forward)",
            Self::DenseTiles => "measured by others: the grids of 32,224 launches, all exact (forward)",
            Self::Rounds => "formula: CUDA's execution model, and the launch that was read back",
            Self::OtherAlgorithm => "read back in this run: layers.parquet",
            Self::WorkspaceLimit => {
                "formula: workspaces read back in this run, and the limit of its settings or its engine"
            }
            Self::CacheOverflow => {
                "hypothesis: the published times show no step where the second-level cache overflows"
            }
            Self::OwnKernel => {
                "formula: crates/batchstep-cpu/src/engine/cpu/op/{conv2d, dense} and src/engine/cudnn/op/batch_norm/cut.rs, which compute with it"
            }
            Self::CpuVectors | Self::CpuReadings | Self::CpuPadding => {
                "formula: crates/batchstep-cpu/src/engine/cpu/blocking.rs, which computes with it"
            }
            Self::CpuThreads => {
                "formula: crates/batchstep-cpu/src/engine/cpu/op/conv2d/shares.rs, by the pieces that are computed"
            }
        }
    }

    /// Whether its size is an upper bound instead of an expected value.
    pub fn is_bound(self) -> bool {
        matches!(self, Self::CacheOverflow | Self::CpuReadings)
    }

    /// Whether it may also make the step faster: another kernel may be better; more work never is.
    pub fn may_be_faster(self) -> bool {
        matches!(self, Self::OtherAlgorithm | Self::WorkspaceLimit | Self::OwnKernel)
    }

    /// The mechanism of a kernel family's tiles or padding.
    pub fn of_family(family: Family) -> Self {
        match family {
            Family::NonFusedWinograd => Self::WinogradPadding,
            Family::FusedWinograd => Self::FusedWinogradTiles,
            Family::ImplicitProduct => Self::ImplicitProductTiles,
            Family::Dense => Self::DenseTiles,
        }
    }
}

/// The work of a layer's GPU kernel along the batch, in the unit of its mechanism's formula.
pub fn kernel_work(kernel: Kernel, layer: &LayerSizes, batch: usize) -> f64 {
    let work = match kernel {
        Kernel::NonFusedWinograd(_) => batch.next_multiple_of(WINOGRAD_BATCH),
        Kernel::FusedWinograd { images, .. } => batch.div_ceil(images),
        Kernel::ImplicitProduct(tile) => (batch * layer.height * layer.width).div_ceil(tile.first),
        Kernel::Dense(tile) => batch.div_ceil(tile.second),
    };
    work as f64
}

/// The work of a layer on the CPU engine in one direction, where a mechanism covers it; `winograd`: whether a
/// convolution is computed by Winograd's algorithm.
pub fn cpu_work(
    layer: &LayerSizes,
    direction: Direction,
    winograd: bool,
    batch: usize,
    blocking: Blocking,
) -> Option<(Mechanism, f64)> {
    let (mechanism, work) = match (layer.product, direction) {
        (KnownOperation::Dense, Direction::Forward) => (Mechanism::CpuVectors, blocking.dense_columns(batch)),
        (KnownOperation::Convolution3x3, _) if winograd => (Mechanism::CpuPadding, blocking.winograd_images(batch)),
        _ => return None,
    };
    Some((mechanism, work as f64))
}
