//! In how many waves a launch occupies the GPU.

use super::Launched;
use super::tile::{self, Tile};
use crate::engine::cudnn::call::{Call, Convolution, ConvolutionKind};
use crate::network::Extent;
use crate::settings::Layout;

/// Matrices that a kernel computes: `count` of them, row after row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OutputMatrix {
    rows: usize,
    columns: usize,
    count: usize,
}

/// Tiles of the result over the blocks that work on them at a time; with up to one wave all tiles are worked on at
/// once, with 1.01 the last of them wait for a block. `launches` is how often the call launches the kernel.
///
/// Where each tile has its own block, tiles are blocks (with those that a split sum or padding adds), and the GPU holds
/// `capacity` of them. Where blocks may stay, the tiles are those of the result by the kernel's name, and if they
/// outnumber the blocks, all blocks of the launch work at a time. These may be fewer than the GPU holds: cuDNN's
/// launches leave some multiprocessors free where clusters do not fill them. Tiles beyond the result's edge that fill a
/// cluster are not counted.
///
/// `None` where the name does not give the tile size, the sum of a tile is split, or the result's sizes are not
/// certain.
pub(super) fn waves(call: &Call, launched: &Launched, launches: usize) -> Option<f64> {
    let capacity = launched.capacity?;
    if !tile::stays(&launched.name) {
        return Some(launched.blocks as f64 / capacity as f64);
    }
    // Where a call has several launches, the part of each is not known.
    let tiles = tiles(call, &launched.name).filter(|_| launches == 1)? as u64;
    let at_a_time = if tiles > launched.blocks { capacity.min(launched.blocks) } else { capacity };
    Some(tiles as f64 / at_a_time as f64)
}

/// The tiles of a call's result, for a kernel that names their size.
fn tiles(call: &Call, name: &str) -> Option<usize> {
    let tile = Tile::of(name).filter(|_| !tile::splits(name))?;
    let whole = |product: OutputMatrix, first: usize, second: usize| tile.count(first, second) * product.count;
    let row_major = |product: OutputMatrix| whole(product, product.rows, product.columns);
    let column_major = |product: OutputMatrix| whole(product, product.columns, product.rows);
    if name.contains("implicit_gemm") {
        let Call::Convolution(convolution, task) = call else { return None };
        let product = implicit(convolution, task.kind)?;
        return match task.kind {
            // The order did not matter in any launch that was examined, so it is not known.
            ConvolutionKind::BackwardWeights => {
                (row_major(product) == column_major(product)).then(|| row_major(product))
            }
            _ => Some(row_major(product)),
        };
    }
    let product = explicit(call)?;
    // The two families of cuBLASLt whose blocks stay. nvjet's tiles follow cuBLAS's column-major order, the transpose
    // of ours; those of the older kernels follow ours.
    match () {
        () if name.starts_with("nvjet") => Some(column_major(product)),
        () if name.contains("xmma_gemm") => Some(row_major(product)),
        () => None,
    }
}

/// The product that an implicit convolution is, for each group. A strided backward pass to the data is several
/// products, one for each remainder of the stride; it gives `None` here.
fn implicit(convolution: &Convolution, kind: ConvolutionKind) -> Option<OutputMatrix> {
    let Convolution { input, output, kernel, stride, groups, .. } = convolution;
    let (c, k) = (input.channels / groups, output.channels / groups);
    let (rows, columns) = match kind {
        ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu => (output.per_channel(), k),
        ConvolutionKind::BackwardData if *stride == Extent::square(1) => (input.per_channel(), c),
        ConvolutionKind::BackwardData => return None,
        ConvolutionKind::BackwardWeights => (k, c * kernel.height * kernel.width),
    };
    Some(OutputMatrix { rows, columns, count: *groups })
}

/// The product of a dense layer, or of a convolution of 1 x 1 taps on its input as it lies in memory. With NCHW cuDNN
/// multiplies each example by itself, and adds up the weights' gradients of all afterwards.
fn explicit(call: &Call) -> Option<OutputMatrix> {
    let (convolution, task) = match call {
        Call::Gemm(gemm) => {
            return Some(OutputMatrix { rows: gemm.product.m, columns: gemm.product.n, count: 1 });
        }
        Call::Convolution(convolution, task) => (convolution, task),
        Call::Launch(_) | Call::Zero(_) => return None,
    };
    let Convolution { input, output, kernel, stride, padding, groups, .. } = convolution;
    if *kernel != Extent::square(1) || *stride != Extent::square(1) || *padding != Extent::square(0) || *groups != 1 {
        return None;
    }
    let maps = match task.kind {
        ConvolutionKind::Forward | ConvolutionKind::ForwardBiasRelu => output,
        ConvolutionKind::BackwardData => input,
        ConvolutionKind::BackwardWeights => {
            let count = if input.layout == Layout::Nchw { input.batch } else { 1 };
            return Some(OutputMatrix { rows: output.channels, columns: input.channels, count });
        }
    };
    Some(match maps.layout {
        Layout::Nhwc => OutputMatrix { rows: maps.per_channel(), columns: maps.channels, count: 1 },
        Layout::Nchw => OutputMatrix { rows: maps.channels, columns: maps.positions(), count: maps.batch },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cudnn::call::{ConvolutionTask, Epilogue, Gemm, Product, Slice};
    use crate::engine::cudnn::feature_maps::FeatureMaps;
    use ConvolutionKind::{BackwardData, BackwardWeights, Forward};
    use Layout::{Nchw, Nhwc};

    const SLICE: Slice = Slice::new(0, 0, 4);

    /// By N, C, H = W, K, taps and stride of a convolution whose padding keeps the size, apart from the stride.
    fn call(kind: ConvolutionKind, layout: Layout, sizes: [usize; 6]) -> Call {
        let [batch, channels, size, outputs, taps, stride] = sizes;
        let input = FeatureMaps { batch, channels, height: size, width: size, layout };
        let output = FeatureMaps { channels: outputs, height: size / stride, width: size / stride, ..input };
        let task = ConvolutionTask { kind, x: SLICE, w: SLICE, y: SLICE, bias: None };
        Call::Convolution(Convolution::between(input, output, taps), task)
    }

    fn dense(m: usize, n: usize, k: usize) -> Call {
        let product = Product::plain(m, n, k);
        Call::Gemm(Gemm { product, a: SLICE, b: SLICE, c: SLICE, epilogue: Epilogue::Nothing })
    }

    fn xmma(what: &str, tile: &str) -> String {
        format!(
            "sm90_xmma_{what}_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize{tile}x32_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn"
        )
    }

    fn gemm(tile: &str) -> String {
        format!(
            "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize{tile}x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
        )
    }

    fn launched(name: &str, blocks: u64, capacity: u64) -> Launched {
        let (threads_per_block, blocks_per_multiprocessor) = (384, Some(1));
        Launched { name: name.into(), blocks, threads_per_block, blocks_per_multiprocessor, capacity: Some(capacity) }
    }

    // Names and blocks of launches of cuDNN 9.19 and cuBLASLt 13.1 for an H100 of 132 multiprocessors; tiles by hand.

    #[test]
    fn tiles_are_those_of_the_product_that_the_call_is_in_the_order_of_the_kernels_family() {
        let Call::Convolution(plain, task) = call(Forward, Nhwc, [8, 64, 16, 128, 3, 1]) else { unreachable!() };
        let grouped = Call::Convolution(Convolution { groups: 2, ..plain }, task);
        for (call, name, expected) in [
            // Of a convolution, positions by channels. VGG16, batch 33, 28 x 28: 25872 / 128 = 202.1 by 512 / 128 = 4.
            (call(Forward, Nhwc, [33, 256, 28, 512, 3, 1]), xmma("fprop", "128x128"), Some(203 * 4)),
            // ResNet50, batch 33, 28 x 28: 25872 / 256 = 101.1 by 1; the launch had 102 blocks, and 203 were the other
            // order.
            (call(Forward, Nhwc, [33, 128, 28, 128, 3, 1]), xmma("fprop", "256x128"), Some(102)),
            // VGG16, batch 8, 14 x 14: 1568 / 128 = 12.25 by 512 / 64 = 8.
            (call(BackwardData, Nhwc, [8, 512, 14, 512, 3, 1]), xmma("dgrad", "128x64"), Some(13 * 8)),
            // With stride 2 forward: 33 x 7 x 7 = 1617 / 64 = 25.3 by 512 / 128 = 4. Backward they are not certain.
            (call(Forward, Nhwc, [33, 1024, 14, 512, 1, 2]), xmma("fprop", "64x128"), Some(26 * 4)),
            (call(BackwardData, Nhwc, [8, 256, 56, 512, 1, 2]), xmma("dgrad", "128x64"), None),
            // 2048 / 128 = 16 by 64 / 64, for each of two groups.
            (grouped, xmma("fprop", "128x64"), Some(32)),
            // Of weights, where both orders agree. VGG16, 14 x 14: 512 / 128 = 4 by 4608 / 64 = 72, or 8 by 36.
            (call(BackwardWeights, Nhwc, [33, 512, 14, 512, 3, 1]), xmma("wgrad_indexed", "128x64"), Some(288)),
            // 128 / 128 by 576 / 64 = 9, or 2 by 4.5.
            (call(BackwardWeights, Nhwc, [33, 64, 112, 128, 3, 1]), xmma("wgrad_indexed", "128x64"), None),
            // Of products. ResNet50, batch 33, 14 x 14: 6468 / 64 = 101.1 by 256 / 256; the launch had 102 blocks.
            (call(Forward, Nhwc, [33, 1024, 14, 256, 1, 1]), gemm("64x256"), Some(102)),
            (dense(33, 4096, 4096), gemm("64x64"), Some(64)),
            // VGG16, batch 33: 4096 / 64 by 33 / 40.
            (dense(33, 4096, 4096), "nvjet_sm90_tst_64x40_64x16_4x1_v_bz_TNT".to_owned(), Some(64)),
            // ResNet50 in bf16, batch 33, 14 x 14: 512 / 128 = 4 by 6468 / 200 = 32.3.
            (
                call(Forward, Nhwc, [33, 256, 14, 512, 1, 1]),
                "nvjet_sm90_hsh_128x200_64x5_4x1_v_ssched_bz_coopA_TNT".to_owned(),
                Some(4 * 33),
            ),
            // With NCHW one for each example. ResNet50 in bf16, batch 33, 56 x 56: 3136 / 448 = 7 by 64 / 64, 33 times.
            (
                call(Forward, Nchw, [33, 64, 56, 64, 1, 1]),
                "nvjet_sm90_hsh_448x64_64x2_4x1_v_ssched_bz_coopB_NNN".to_owned(),
                Some(7 * 33),
            ),
            // ResNet50, batch 33, 56 x 56, weights: 1 tile; the launch had 33 blocks, and a sum over examples followed.
            (call(BackwardWeights, Nchw, [33, 64, 56, 64, 1, 1]), gemm("64x64"), Some(33)),
            // A split sum; a product's kernel in a convolution of 3 x 3 taps, as a part of something else.
            (call(Forward, Nhwc, [33, 512, 28, 512, 3, 1]), xmma("fprop", "256x128").replace("_off", "_on"), None),
            (dense(33, 4096, 4096), "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT".to_owned(), None),
            (call(Forward, Nhwc, [33, 512, 28, 512, 3, 1]), "nvjet_sm90_tst_128x64_64x8_2x4_h_bz_NTT".to_owned(), None),
            (dense(8, 4096, 4096), xmma("fprop", "128x64"), None),
        ] {
            assert_eq!(tiles(&call, &name), expected, "{name} in {call:?}");
        }
    }

    #[test]
    fn waves_are_blocks_where_a_tile_has_a_block() {
        let call = call(Forward, Nhwc, [33, 64, 56, 64, 1, 1]);
        let name = "_ZN7cutlass7Kernel2I51cutlass_80_tensorop_s1688gemm_64x128_32x3_tn_align4EEvNT_6ParamsE";
        // 809 blocks, of which the GPU holds three on each multiprocessor.
        let waves_of = |launches| waves(&call, &launched(name, 809, 396), launches).unwrap();
        assert!((waves_of(1) - 2.0429).abs() < 1e-4);
        assert_eq!(waves_of(16), waves_of(1));
        assert_eq!(waves(&call, &Launched { capacity: None, ..launched(name, 809, 1) }, 1), None);
    }

    #[test]
    fn waves_are_tiles_where_blocks_stay() {
        let name = xmma("fprop", "128x128");
        // 812 tiles for 112 blocks; 132 would fit.
        let long = call(Forward, Nhwc, [33, 256, 28, 512, 3, 1]);
        assert_eq!(waves(&long, &launched(&name, 112, 132), 1), Some(812.0 / 112.0));
        // 13 x 4 = 52 tiles, and 56 blocks to fill clusters, on 132 places.
        let short = call(Forward, Nhwc, [33, 512, 7, 512, 3, 1]);
        assert_eq!(waves(&short, &launched(&name, 56, 132), 1), Some(52.0 / 132.0));
        assert_eq!(waves(&short, &launched(&name, 112, 132), 2), None);
    }
}
