//! The purpose of a kernel, by its name.

/// In increasing order of precedence for the main kernel of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Role {
    /// Converts data for the kernel that multiplies, or adds up its partial sums.
    Helper,
    /// Not known from the name: our own kernels, and all others not listed here.
    Unknown,
    /// A matrix product or a convolution.
    Multiply,
}

/// Parts of the names of helpers, in lower case. They are looked for before those of [`MULTIPLY`], since names of
/// helpers may contain one of these.
const HELPER: [&str; 18] = [
    // Layouts, element types, padding of channels.
    "nchwtonhwc",
    "nhwctonchw",
    "addpadding",
    "converttensor",
    "scalepackedtensor",
    "flip_filter",
    "region_transform",
    // Tables and counters that the main kernel reads.
    "init_device_workspace",
    "computeoffsets",
    "computeboffsets",
    "kernel_helper",
    // Sums of parts. cuBLASLt's own `splitK` names a main kernel, so it takes more of the name.
    "splitkreduce",
    "reducesplitk",
    "reduce_wgrad",
    "split_k_kernel",
    // Into the domain in which the product is made, and back.
    "winograd_nonfused",
    "generatewinogradtiles",
    // The only name that FFT's transforms have in common.
    "fft",
];

/// `scudnn`, `884cudnn` and their like end the names of cuDNN's older implicit products: `turing_fp16_s1688cudnn_...`.
const MULTIPLY: [&str; 13] = [
    "gemm",
    "gemv",
    "conv",
    "fprop",
    "dgrad",
    "wgrad",
    "winograd",
    "nvjet",
    "scudnn",
    "884cudnn",
    "1688cudnn",
    "16816cudnn",
    "mult_and_sum",
];

impl Role {
    pub fn of(name: &str) -> Self {
        let name = name.to_ascii_lowercase();
        let has = |part: &str| name.contains(part);
        match () {
            () if HELPER.into_iter().any(has) => Self::Helper,
            () if MULTIPLY.into_iter().any(has) => Self::Multiply,
            () => Self::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Names of cuDNN 9.19 and cuBLASLt 13.1; some helpers have a product's name in theirs.
    #[test]
    fn kernels_that_multiply_and_their_helpers_are_known_by_their_names() {
        let multiply = [
            "sm90_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x32_warpgroupsize1x1x1_g1_execute_segment_k_off_kernel__5x_cudnn",
            "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_warpgroupsize1x1x1_execute_segment_k_on_kernel__5x_cublas",
            "sm80_xmma_gemm_cf32cf32_f32f32_cf32_nt_n_tilesize32x64x8_stage3_warpsize2x2x1_ffma_aligna8_alignc8_execute_kernel__5x_cublas",
            "_ZN7cutlass7Kernel2I51cutlass_80_tensorop_s1688gemm_64x128_32x3_nn_align4EEvNT_6ParamsE",
            "_ZN17cutlass__5x_cudnn6KernelI79cutlass_tensorop_s1688dgrad_optimized_tf32_256x64_16x4_nhwc_unity_stride_align4EEvNT_6ParamsE",
            "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_splitK_TNT",
            "_5x_cudnn_ampere_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
            "_5x_cudnn_volta_scudnn_128x128_relu_medium_nn_v1",
            "_5x_cudnn_turing_fp16_s1688cudnn_fp16_256x64_sliced1x2_ldg8_relu_f2f_exp_small_nhwc_tn_v1",
            "_Z30pointwise_mult_and_sum_complexI6float2Li8ELi4EEvPT_S2_S2_iiiiiS0_",
            "volta_sgemm_128x128_nt",
            "_Z23implicit_convolve_sgemmIffLi1024ELi5ELi5ELi3ELi3ELi3ELi1ELb0ELb0ELb1EEviiiPKT_iPT0_S2_18kernel_conv_paramsyiffiPKS3_S7_bbii",
            "_ZN5cudnn3cnn22wgrad_alg1_engine_NHWCIffLi128ELi5ELi5ELi3ELi3ELi3ELb0ELb1EEEviiiPKT_iPT0_S4_18kernel_grad_paramsyiffiiPiS8_ii",
            "_ZN5cudnn6detail14dgrad2d_alg1_1IfLi0ELi6ELi7ELi5ELi4ELi5ELb0ELb1EEEviiiPKT_iS4_iPS2_18kernel_grad_paramsyiyifii",
            "_Z16gemmSN_NN_kernelIfLi128ELi2ELi4ELi8ELi4ELi4ELb0E30cublasGemvTensorStridedBatchedIKfES2_S0_IfEEv22cublasGemmSmallNParamsIT7_T8_T9_T_E",
        ];
        let helpers = [
            "_ZN5cudnn19engines_precompiled16nchwToNhwcKernelI6__halfS2_fLb0ELb1EL21cudnnKernelDataType_t0EEEvNS0_18nchw2nhwc_params_tIT1_EEPKT_PT0_",
            "_ZN5cudnn19engines_precompiled20convertTensor_kernelIfffL21cudnnKernelDataType_t2EEEvT1_PKT_S3_PT0_m",
            "_ZN5cudnn19engines_precompiled24scalePackedTensor_kernelIffEEvlPT_T0_",
            "_Z20nhwcAddPaddingKernelIfffLb1EL21cudnnKernelDataType_t0EEviiiiiiiiPKT_PT0_iiiiT1_S6_N5cudnn15reduced_divisorES8_S8_",
            "_ZN21cask_plugin__5x_cudnn14xmma__5x_cudnn28init_device_workspace_kernelIN14xmma__5x_cudnn13implicit_gemm5dgrad35Warp_specialized_params_nontemplateINS2_20Grid_constant_paramsEEEEEvT_b",
            "_ZN14cask__5x_cudnn20computeOffsetsKernelILb0ELb0EEEvNS_20ComputeOffsetsParamsE",
            "_ZN14xmma__5x_cudnn13implicit_gemm21strided_dgrad_indexed21kernel_helper_stage_1INS1_17Params_pre_hopperEEEvT_",
            "_ZN5cudnn3cnn24reduce_wgrad_nchw_helperIffEEvPvPKvT_ii",
            "sm80_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize32x32x64_stage3_warpsize2x2x1_tensor16x8x8_execute_split_k_kernel__5x_cublas",
            "_ZN5cudnn17winograd_nonfused24winogradForwardFilter4x4IffEEvNS0_20WinogradFilterParamsIT_T0_EE",
            "_ZN5cudnn8winograd27generateWinogradTilesKernelILi0EffEEvNS0_27GenerateWinogradTilesParamsIT0_T1_EE",
            "_Z15fft2d_r2c_32x32IfLb0ELj0ELb0EEvP6float2PKT_iiiiiiiiiN5cudnn15reduced_divisorEb4int2ii",
            "_ZN3DSE10vector_fftILi0ELi1ELi256ELi16ELi16ELi1Eff6float2EEvPT7_S3_i4int3S4_",
            "_Z11flip_filterIffEvPT0_PKT_iiii",
        ];
        multiply.iter().for_each(|name| assert_eq!(Role::of(name), Role::Multiply, "{name}"));
        helpers.iter().for_each(|name| assert_eq!(Role::of(name), Role::Helper, "{name}"));
        assert_eq!(["forward", "plane_moments", "weights_total"].map(Role::of), [Role::Unknown; 3]);
        assert!(Role::Multiply > Role::Unknown && Role::Unknown > Role::Helper);
    }
}
