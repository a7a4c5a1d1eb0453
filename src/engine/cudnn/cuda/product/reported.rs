//! What cuBLASLt reports about an algorithm.

use crate::engine::cudnn::cuda::api::cublaslt as sys;

use crate::engine::cudnn::element::Math;

/// `cublaslt:66{tile=20,stages=24,splitk=1,reduction=0,swizzle=0,custom=0}`: the algorithm's own configuration, numbers of
/// one cuBLASLt version.
pub(super) fn name(algorithm: &sys::cublasLtMatmulAlgo_t) -> String {
    use sys::cublasLtMatmulAlgoConfigAttributes_t as A;
    let read = |attribute: A| {
        let (mut value, mut written) = (0_u32, 0);
        // SAFETY: four bytes, the size of each of these attributes.
        let answer = unsafe {
            let buffer = (&raw mut value).cast();
            sys::cublasLtMatmulAlgoConfigGetAttribute(algorithm, attribute, buffer, 4, &raw mut written)
        };
        (answer == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS).then_some(value)
    };
    let parts = [
        ("tile", A::CUBLASLT_ALGO_CONFIG_TILE_ID),
        ("stages", A::CUBLASLT_ALGO_CONFIG_STAGES_ID),
        ("splitk", A::CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
        ("reduction", A::CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
        ("swizzle", A::CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
        ("custom", A::CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION),
    ];
    let parts = parts.map(|(name, attribute)| read(attribute).map(|value| format!("{name}={value}")));
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    let number = read(A::CUBLASLT_ALGO_CONFIG_ID).map_or("?".into(), |number| number.to_string());
    format!("cublaslt:{number}{{{}}}", parts.join(","))
}

/// What the algorithm reports about its arithmetic: CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS, cublasLt.h.
pub(super) fn math_mode(algorithm: &sys::cublasLtMatmulAlgo_t, asked: Math) -> String {
    let (mut flags, mut written) = (0_u64, 0);
    let attribute = sys::cublasLtMatmulAlgoCapAttributes_t::CUBLASLT_ALGO_CAP_NUMERICAL_IMPL_FLAGS;
    // SAFETY: eight bytes, the attribute's size.
    let answer = unsafe {
        let buffer = (&raw mut flags).cast();
        sys::cublasLtMatmulAlgoCapGetAttribute(algorithm, attribute, buffer, 8, &raw mut written)
    };
    match answer == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS {
        true => implementation(flags),
        false => format!("asked for {}", if asked == Math::Tf32 { "tf32" } else { "float32 sums" }),
    }
}

/// The flags in words: the instruction, what sums are kept in, and what numbers go in.
fn implementation(flags: u64) -> String {
    // CUBLASLT_NUMERICAL_IMPL_FLAGS_*: operation in bits 0 to 7, accumulator in 8 to 15, input in 16 to 23.
    let names = [
        (0, "fma"),
        (1, "hmma"),
        (2, "imma"),
        (3, "dmma"),
        (8, "sum_16f"),
        (9, "sum_32f"),
        (10, "sum_64f"),
        (11, "sum_32i"),
        (16, "in_16f"),
        (17, "in_16bf"),
        (18, "in_tf32"),
        (19, "in_32f"),
        (20, "in_64f"),
    ];
    let names: Vec<&str> = names.iter().filter(|(bit, _)| flags >> bit & 1 == 1).map(|(_, name)| *name).collect();
    if names.is_empty() { format!("flags_{flags:#x}") } else { names.join("+") }
}

#[cfg(test)]
mod tests {
    use super::*;

    // CUBLASLT_NUMERICAL_IMPL_FLAGS_HMMA | ..._ACCUMULATOR_32F | ..._INPUT_TF32 of cublasLt.h: 0x02, 0x02 << 8, 0x04 << 16.
    #[test]
    fn the_flags_are_reported_in_words() {
        assert_eq!(implementation(0x04_02_02), "hmma+sum_32f+in_tf32");
        assert_eq!(implementation(0x08_02_01), "fma+sum_32f+in_32f");
        assert_eq!(implementation(0x02_02_02), "hmma+sum_32f+in_16bf");
        assert_eq!(implementation(1 << 32), "flags_0x100000000");
    }
}
