//! Which kernel of a layer does most of its work, and in how many waves. This is arithmetic on names and sizes; from
//! the GPU it takes only what the driver reports about a launch ([`Launched`]).
//!
//! The forms of the names and the order of their tiles were inferred from what cuDNN 9.19 and cuBLASLt 13.1 launch for
//! VGG16, ResNet50 and MobileNet where the driver describes a GPU of compute capability 7.5, 8.0 or 9.0; only the
//! libraries' host code ran. No library documents its names; if a name is not understood, nothing is reported.

mod role;
mod tile;
mod waves;

use std::collections::BTreeMap;

use super::call::Call;
use crate::engine::KernelLaunch;
use role::Role;

/// One launch of a kernel, as the driver reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launched {
    /// As its library names it; mangled where it is C++.
    pub name: String,
    pub blocks: u64,
    pub threads_per_block: u32,
    /// Blocks that a multiprocessor holds at a time.
    pub blocks_per_multiprocessor: Option<u32>,
    /// Blocks that the whole GPU holds at a time.
    pub capacity: Option<u64>,
}

impl Launched {
    fn threads(&self) -> u64 {
        self.blocks * u64::from(self.threads_per_block)
    }
}

/// The kernel that does most of the work of a layer in one direction, of all launches of its calls. Kernels that
/// multiply take precedence over others, and those over kernels that only convert data or add up partial sums
/// ([`Role`]): a layout conversion has a thread for each element, and often more threads than the product. Within a
/// role it is the kernel with the most threads in all its launches; the largest of these launches is reported.
pub fn main(launches: &[(&Call, Launched)]) -> Option<KernelLaunch> {
    let mut kernels: BTreeMap<&str, Vec<(&Call, &Launched)>> = BTreeMap::new();
    for (call, launched) in launches {
        kernels.entry(&launched.name).or_default().push((call, launched));
    }
    let rank = |name: &str, launches: &[(&Call, &Launched)]| {
        (Role::of(name), launches.iter().map(|(_, launched)| launched.threads()).sum::<u64>())
    };
    let (_, own) = kernels.into_iter().max_by_key(|(name, launches)| rank(name, launches))?;
    let (call, launched) = own.iter().max_by_key(|(_, launched)| launched.threads())?;
    Some(KernelLaunch {
        name: launched.name.clone(),
        blocks: launched.blocks,
        threads_per_block: launched.threads_per_block,
        blocks_per_multiprocessor: launched.blocks_per_multiprocessor,
        waves: waves::waves(call, launched, own.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cudnn::call::Slice;

    fn launched(name: &str, blocks: u64, threads_per_block: u32) -> Launched {
        let name = name.to_string();
        Launched { name, blocks, threads_per_block, blocks_per_multiprocessor: Some(2), capacity: Some(264) }
    }

    fn main_of(launches: &[(&str, u64, u32)]) -> KernelLaunch {
        let call = Call::Zero(Slice::new(0, 0, 4));
        let launched = launches.iter().map(|&(name, blocks, threads)| (&call, launched(name, blocks, threads)));
        let launches: Vec<_> = launched.collect();
        main(&launches).unwrap()
    }

    const TO_NHWC: &str = "_ZN5cudnn19engines_precompiled16nchwToNhwcKernelIfffLb0ELb1EL21cudnnKernelDataType_t0EEEvNS0_18nchw2nhwc_params_tIT1_EEPKT_PT0_";
    const TO_NCHW: &str = "_ZN5cudnn19engines_precompiled16nhwcToNchwKernelIfffLb1ELb0EL21cudnnKernelDataType_t0EEEvNS0_18nhwc2nchw_params_tIT1_EEPKT_PT0_";

    // ResNet50, batch 8, NCHW, the first convolution in bf16 for an H100; cuDNN 9.19.
    #[test]
    fn a_convolution_between_layout_conversions_is_found_though_they_have_more_threads() {
        let fprop = "_ZN17cutlass__5x_cudnn6KernelI72cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8EEvNT_6ParamsE";
        let kernel = main_of(&[(TO_NHWC, 12544, 256), (TO_NHWC, 128, 256), (fprop, 392, 128), (TO_NCHW, 6272, 256)]);
        assert_eq!((kernel.name.as_str(), kernel.blocks, kernel.threads_per_block), (fprop, 392, 128));
        assert_eq!(kernel.blocks_per_multiprocessor, Some(2));
        // 392 blocks of 264.
        assert!((kernel.waves.unwrap() - 1.4848).abs() < 1e-4);
    }

    // ResNet50, batch 33, NHWC, weights of a 3 x 3 convolution in tf32 for an H100; cuDNN 9.19.
    #[test]
    fn the_kernel_that_adds_up_a_split_sum_is_not_the_main_one() {
        let stem = "sm90_xmma_wgrad_indexed_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x64x32_warpgroupsize1x1x1_g1_execute";
        let (main, sum) = (format!("{stem}_segment_k_on_kernel__5x_cudnn"), format!("{stem}_split_k_kernel__5x_cudnn"));
        let init = "_ZN21cask_plugin__5x_cudnn14xmma__5x_cudnn28init_device_workspace_kernelIN14xmma__5x_cudnn13implicit_gemm13wgrad_indexed23Warp_specialized_paramsINS2_20Grid_constant_paramsEEEEEvT_b";
        // Even where it has more threads.
        assert_eq!(main_of(&[(init, 1, 1), (&main, 126, 384), (&sum, 4096, 128)]).name, main);
    }

    // VGG16, batch 8, NCHW, weights in fp32 for an H100; cuDNN 9.19: Winograd's transforms around a product.
    #[test]
    fn the_product_between_winograds_transforms_is_the_main_one() {
        let data = "_ZN5cudnn17winograd_nonfused20winogradWgradData4x4IffEEvNS0_18WinogradDataParamsIT_T0_EE";
        let output =
            "_ZN5cudnn17winograd_nonfused22winogradWgradOutput4x4IffEEvNS0_25WinogradWgradOutputParamsIT_T0_EE";
        let product = "_ZN7cutlass7Kernel2I41cutlass_80_simt_sgemm_64x64_8x5_nt_align1EEvNT_6ParamsE";
        assert_eq!(main_of(&[(data, 1568, 256), (product, 72, 128), (output, 32, 256)]).name, product);
    }

    #[test]
    fn among_equals_the_most_threads_decide_and_all_launches_count() {
        assert_eq!(main_of(&[("plane_gradient_sums", 64, 256), ("plane_gradient", 512, 256)]).name, "plane_gradient");
        let kernel = main_of(&[("a_gemm", 30, 128), ("b_gemm", 20, 128), ("b_gemm", 18, 128)]);
        assert_eq!((kernel.name.as_str(), kernel.blocks), ("b_gemm", 20));
        assert_eq!(main(&[]), None);
    }
}
