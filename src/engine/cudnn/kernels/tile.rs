//! What a kernel's name says about its tiles.

/// The part of a result that a block makes at a time, in the order in which the name has its two sizes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tile {
    pub first: usize,
    pub second: usize,
}

/// The first GPU generation, as in `sm90`, whose kernels may stay on a multiprocessor for several tiles. On older ones,
/// each tile had its own block in every launch that was examined.
const STAYING: u32 = 90;

impl Tile {
    /// `tilesize128x64x32` of NVIDIA's xmma kernels, and `nvjet_sm90_hsh_128x64_...` of cuBLASLt's; `None` in other
    /// names.
    pub fn of(name: &str) -> Option<Self> {
        let sizes = match name.split_once("tilesize") {
            Some((_, sizes)) => sizes,
            None => {
                name.strip_prefix("nvjet_")?.split('_').find(|part| part.starts_with(|c: char| c.is_ascii_digit()))?
            }
        };
        let mut sizes = sizes.split(|c: char| !c.is_ascii_digit()).map(str::parse);
        let (first, second) = (sizes.next()?.ok()?, sizes.next()?.ok()?);
        (first > 0 && second > 0).then_some(Self { first, second })
    }

    /// How many tiles cover a result of `first` x `second` numbers.
    pub fn count(self, first: usize, second: usize) -> usize {
        first.div_ceil(self.first) * second.div_ceil(self.second)
    }
}

/// Whether a block may stay for several tiles, so that the number of blocks does not give the number of tiles. The
/// kernels that cuDNN compiles itself (`cudnn_generated_...`) do not name a generation.
pub(super) fn stays(name: &str) -> bool {
    let generation = |text: &str| {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse::<u32>().ok()
    };
    let unnamed = name.starts_with("nvjet") || name.starts_with("cudnn_generated");
    unnamed || name.split("sm").skip(1).filter_map(generation).any(|number| number >= STAYING)
}

/// Whether several blocks share a tile's sum. No name gives the number of parts.
pub(super) fn splits(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["segment_k_on", "splitk", "split_k", "streamk", "stream_k"].into_iter().any(|part| name.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FPROP: &str = "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize256x64x32_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn";
    const OLDER: &str = "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x64x32_stage5_warpsize2x2x1_g1_tensor16x8x8_execute_kernel__5x_cudnn";
    const CUTLASS: &str = "_ZN7cutlass7Kernel2I51cutlass_80_tensorop_s1688gemm_64x128_32x3_nn_align4EEvNT_6ParamsE";

    // Names of cuDNN 9.19 and cuBLASLt 13.1.
    #[test]
    fn tiles_are_read_from_names() {
        let tile = |first, second| Some(Tile { first, second });
        assert_eq!(Tile::of(FPROP), tile(256, 64));
        assert_eq!(Tile::of("nvjet_sm90_hsh_128x272_64x4_4x2_h_ssched_bz_coopA_TNT"), tile(128, 272));
        assert_eq!(Tile::of("nvjet_hsh_64x8_64x16_4x1_v_bz_TNT"), tile(64, 8));
        assert_eq!([CUTLASS, "forward_3x3", "nvjet_sm90", "tilesize0x4x4"].map(Tile::of), [None; 4]);
    }

    #[test]
    fn blocks_may_stay_since_hopper() {
        assert!(stays(FPROP) && stays("nvjet_hsh_64x8_64x16_4x1_v_bz_TNT"));
        assert!(stays("cutlass3x_sm100_tensorop_s128x256x16gemm_f16"));
        assert!(
            ![OLDER, CUTLASS, "plane_moments", "turing_fp16_s1688gemm_fp16_128x256_ldg8_f2f_nt"].into_iter().any(stays)
        );
    }
}
