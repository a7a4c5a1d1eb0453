//! The kernels of cuDNN and cuBLAS whose launch grids follow from the sizes of a layer.

use super::{KnownOperation, LayerSizes};

/// Non-fused Winograd pads the batch to a multiple of this.
pub const WINOGRAD_BATCH: usize = 16;

/// Outputs of a tile of non-fused Winograd, in height and in width; and components of a transformed tile, of 6 x 6 inputs.
const NON_FUSED: (usize, usize) = (4, 36);

/// Output channels of a block of the fused Winograd kernels.
const FUSED_CHANNELS: usize = 32;

/// Outputs of a tile of the fused Winograd, in height and in width.
const FUSED: usize = 2;

/// The part of a product's result that one block of threads computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tile {
    /// Along the pixels, or a dense layer's outputs: the first number in the kernel's name.
    pub first: usize,
    /// Along the output channels, or a dense layer's examples: the second.
    pub second: usize,
}

/// A kernel family with its tile sizes, which its name gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kernel {
    /// Non-fused Winograd, F(4 x 4, 3 x 3): transforms, 36 products of tiles by channels (an `sgemm`), and a transform back. The batch is
    /// padded to a multiple of 16. Grid: cd(16 cd(B, 16) cd(H, 4) cd(W, 4), first) x cd(K, second) x 36, where cd is division rounded up, K the output channels.
    NonFusedWinograd(Tile),
    /// Fused Winograd, F(2 x 2, 3 x 3): a block has 32 output channels and tiles of `images` images, `rows` x `columns` in each, as the
    /// digits after `tile` in its name say. Grid: cd(B, images) cd(K, 32) x cd(H, 2 rows) x cd(W, 2 columns).
    FusedWinograd { images: usize, rows: usize, columns: usize },
    /// A convolution as one product, unfolded while it runs. Grid: cd(B H W, first) x cd(K, second) x 1.
    ImplicitProduct(Tile),
    /// A dense layer's product. Grid: cd(K, first) x cd(B, second), times the parts into which the sum is split.
    Dense(Tile),
}

/// A kernel without its tile sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    NonFusedWinograd,
    FusedWinograd,
    ImplicitProduct,
    Dense,
}

impl Family {
    /// The family of a kernel by its name and its launch grid, whatever program launched it. `None` where the name says nothing.
    pub fn of(name: &str, grid: [u32; 3]) -> Option<Self> {
        let name = name.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
        let (_, components) = NON_FUSED;
        match () {
            () if has(&["winograd_nonfused", "winogradnonfused"]) => Some(Self::NonFusedWinograd),
            // Its product has one launch for all components of a transformed tile.
            () if has(&["sgemm"]) && grid[2] as usize == components => Some(Self::NonFusedWinograd),
            () if has(&["winograd"]) => Some(Self::FusedWinograd),
            () if has(&["implicit", "scudnn", "fprop", "dgrad", "wgrad"]) => Some(Self::ImplicitProduct),
            () if has(&["gemm", "gemv"]) => Some(Self::Dense),
            () => None,
        }
    }

    /// Why its work grows by steps, as a formula of [`Kernel::grid`] has it.
    pub fn steps(self) -> &'static str {
        match self {
            Self::NonFusedWinograd => "non-fused Winograd, which pads the batch to a multiple of 16",
            Self::FusedWinograd => "fused Winograd, which computes whole groups of images",
            Self::ImplicitProduct => "a convolution as one product, in whole tiles of pixels",
            Self::Dense => "a product in whole tiles",
        }
    }
}

impl Kernel {
    /// The family and the tiles of the kernel `main` of an operation, one of `launched`, all kernels that the operation launched, as
    /// their libraries name them. `None` for others: FFT's, direct convolution's, and those that do not name their tile.
    pub fn of(product: KnownOperation, main: &str, launched: &str) -> Option<Self> {
        let (main, launched) = (main.to_ascii_lowercase(), launched.to_ascii_lowercase());
        match product {
            KnownOperation::Dense => tile(&main, "sgemm_").map(Self::Dense),
            KnownOperation::Convolution3x3 if launched.contains("winograd_nonfused") => {
                tile(&main, "sgemm_").or_else(|| tile(&main, "tilesize")).map(Self::NonFusedWinograd)
            }
            KnownOperation::Convolution3x3 if main.contains("winograd") => {
                let mut digits = main.split_once("_tile")?.1.bytes().map_while(|byte| (byte as char).to_digit(10));
                let mut digit = || digits.next().filter(|&digit| digit > 0).map(|digit| digit as usize);
                Some(Self::FusedWinograd { images: digit()?, rows: digit()?, columns: digit()? })
            }
            KnownOperation::Convolution3x3 => tile(&main, "scudnn_").map(Self::ImplicitProduct),
        }
    }

    pub fn family(self) -> Family {
        match self {
            Self::NonFusedWinograd(_) => Family::NonFusedWinograd,
            Self::FusedWinograd { .. } => Family::FusedWinograd,
            Self::ImplicitProduct(_) => Family::ImplicitProduct,
            Self::Dense(_) => Family::Dense,
        }
    }

    /// Blocks of the launch along x, y and z; for a dense layer whose sum is split, those of one part.
    pub fn grid(self, layer: &LayerSizes, batch: usize) -> [usize; 3] {
        self.grid_padded(layer, batch, WINOGRAD_BATCH)
    }

    /// The grid if non-fused Winograd padded the batch to a multiple of `padding`, to compare the formula with
    /// alternatives.
    pub fn grid_padded(self, layer: &LayerSizes, batch: usize, padding: usize) -> [usize; 3] {
        let LayerSizes { outputs, height, width, .. } = *layer;
        match self {
            Self::NonFusedWinograd(tile) => {
                let (side, components) = NON_FUSED;
                let tiles = batch.next_multiple_of(padding) * height.div_ceil(side) * width.div_ceil(side);
                [tiles.div_ceil(tile.first), outputs.div_ceil(tile.second), components]
            }
            Self::FusedWinograd { images, rows, columns } => [
                batch.div_ceil(images) * outputs.div_ceil(FUSED_CHANNELS),
                height.div_ceil(FUSED * rows),
                width.div_ceil(FUSED * columns),
            ],
            Self::ImplicitProduct(tile) => {
                [(batch * height * width).div_ceil(tile.first), outputs.div_ceil(tile.second), 1]
            }
            Self::Dense(tile) => [outputs.div_ceil(tile.first), batch.div_ceil(tile.second), 1],
        }
    }

    pub fn blocks(self, layer: &LayerSizes, batch: usize) -> usize {
        self.grid(layer, batch).into_iter().product()
    }
}

/// The two sizes after `word`, as in `volta_sgemm_128x64_nn`; words of letters in between are skipped, as in
/// `sgemm_largek_lds64_128x64`. A third size, along the sum, is left out, as in `tilesize64x256x8`.
fn tile(name: &str, word: &str) -> Option<Tile> {
    let sizes = |part: &str| {
        let mut sizes = part.split('x');
        Some(Tile { first: sizes.next()?.parse().ok()?, second: sizes.next()?.parse().ok()? })
    };
    let tile = name.split_once(word)?.1.split('_').find_map(sizes)?;
    (tile.first > 0 && tile.second > 0).then_some(tile)
}
