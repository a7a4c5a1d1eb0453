//! Matrix products through cuBLASLt.
//!
//! cuBLASLt's matrices are column-major. A row-major matrix read as column-major is its transpose, so c = a' b' is
//! computed as c^T = b'^T a'^T: the operands are exchanged, and no data is moved. A bias, one number for each column of
//! c, is then one for each row of c^T, which is what cuBLASLt's epilogues add.

mod descriptor;
mod reported;

use std::ffi::c_void;

use crate::engine::cudnn::cuda::api::cublaslt as sys;

use super::computation::{Computation, Finish};
use super::device::{Gpu, StreamId};
use super::execution::Execution;
use super::placement::{Placement, Range};
use super::status;
use super::trial::Refused;
use crate::engine::cudnn::call::{Epilogue, Gemm, Product};
use crate::engine::cudnn::element::{Element, Math};
use crate::error::{Error, Result};
use descriptor::{MatrixLayout, Operation, Preference, column_major};

/// The most workspace that algorithms may use, if the step has as much: NVIDIA's recommendation for Hopper.
pub const WORKSPACE: u64 = 32 << 20;

/// A product ready to run: descriptors, addresses, algorithm.
#[derive(Debug)]
pub(super) struct BoundProduct {
    descriptors: Descriptors,
    algorithm: sys::cublasLtMatmulAlgo_t,
    a: u64,
    b: u64,
    c: u64,
    workspace: u64,
    workspace_bytes: u64,
}

impl Gpu {
    /// The algorithm of a product, by its name, in memory with the alignments of that placement; the memory need not
    /// exist.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where cuBLASLt has none, or a slice is too small.
    pub fn product_algorithm(&self, gemm: &Gemm, placement: &Placement) -> Result<String> {
        self.bind()?;
        Ok(self.product(gemm, placement, Range { address: 0, bytes: WORKSPACE })?.1.algorithm)
    }

    /// Finds the algorithm for a product, the first that cuBLASLt's heuristics propose and that was not refused when it was executed, and binds
    /// it to its memory.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where cuBLASLt has none, or a slice is too small.
    pub(super) fn product(
        &self,
        gemm: &Gemm,
        placement: &Placement,
        workspace: Range,
    ) -> Result<(BoundProduct, Execution)> {
        let product = &gemm.product;
        let place = |slice, numbers: usize, what| placement.operand(slice, numbers * product.element.bytes(), what);
        let (a, b) = (place(gemm.a, product.m * product.k, "a")?, place(gemm.b, product.k * product.n, "b")?);
        let c = place(gemm.c, product.m * product.n, "c")?;
        let bias = match gemm.epilogue {
            Epilogue::Nothing => 0,
            Epilogue::Bias(bias) | Epilogue::BiasRelu(bias) => place(bias, product.n, "the bias")?,
        };
        let finish = Finish::of(gemm.epilogue);
        let descriptors = Descriptors::new(product, finish, bias)?;
        let alignments = [b, a, c].map(alignment);
        let proposals = descriptors.proposals(self.shared.cublaslt.0, alignments, workspace.bytes.min(WORKSPACE))?;
        let refused = self.trials().refused(&Computation::Product(*product, finish));
        let mut named = proposals.into_iter().map(|proposal| (reported::name(&proposal.0), proposal));
        let is_refused = |name: &String| refused.iter().any(|one| one.algorithm == *name);
        let found = named.find(|(name, _)| !is_refused(name));
        let remark = (!refused.is_empty()).then(|| Vec::from_iter(refused.iter().map(Refused::to_string)).join("; "));
        let Some((name, (algorithm, workspace_bytes))) = found else {
            let why = remark.map(|refused| format!(": {refused}")).unwrap_or_default();
            let what = format!("cuBLASLt has no algorithm for it on this GPU{why}");
            return Err(Error::engine(what).no_kernels_fault());
        };
        let math_mode = Some(reported::math_mode(&algorithm, product.math));
        let bound = BoundProduct { descriptors, algorithm, a, b, c, workspace: workspace.address, workspace_bytes };
        Ok((bound, Execution { algorithm: name, workspace_bytes, math_mode, remark }))
    }
}

impl BoundProduct {
    pub fn enqueue(&self, gpu: &Gpu, id: StreamId) -> Result<()> {
        let at = |address: u64| address as usize as *const c_void;
        let (one, zero) = (1.0_f32, 0.0_f32);
        let Descriptors { operation, first, second, result, .. } = &self.descriptors;
        // SAFETY: descriptors, layouts and factors live; the memory is the caller's and as large as the layouts say. The
        // scaling factors are float32, as the scale type says, and lie on the host, as the pointer mode's default says.
        let answer = unsafe {
            sys::cublasLtMatmul(
                gpu.shared.cublaslt.0,
                operation.0,
                (&raw const one).cast(),
                at(self.b),
                first.0,
                at(self.a),
                second.0,
                (&raw const zero).cast(),
                at(self.c),
                result.0,
                at(self.c).cast_mut(),
                result.0,
                &raw const self.algorithm,
                at(self.workspace).cast_mut(),
                self.workspace_bytes as usize,
                gpu.stream(id).cast(),
            )
        };
        status::cublas("multiply two matrices", answer)
    }
}

#[derive(Debug)]
struct Descriptors {
    operation: Operation,
    first: MatrixLayout,
    second: MatrixLayout,
    result: MatrixLayout,
    element: Element,
}

impl Descriptors {
    fn new(product: &Product, finish: Finish, bias: u64) -> Result<Self> {
        let [first, second, result] = column_major(product);
        let kind = data_type(product.element);
        let operation = Operation::new(compute_type(product.math))?;
        use sys::cublasLtMatmulDescAttributes_t as A;
        // CUBLAS_OP_N of cublas_api.h is 0, CUBLAS_OP_T is 1.
        operation.set(A::CUBLASLT_MATMUL_DESC_TRANSA, i32::from(first.transpose))?;
        operation.set(A::CUBLASLT_MATMUL_DESC_TRANSB, i32::from(second.transpose))?;
        let epilogue = match finish {
            Finish::Nothing => sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_DEFAULT,
            Finish::Bias => sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS,
            Finish::BiasRelu => sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_RELU_BIAS,
        };
        operation.set(A::CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue as u32)?;
        if finish != Finish::Nothing {
            // Its element type is by default that of the result.
            operation.set(A::CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias)?;
        }
        Ok(Self {
            operation,
            first: MatrixLayout::new(kind, first)?,
            second: MatrixLayout::new(kind, second)?,
            result: MatrixLayout::new(kind, result)?,
            element: product.element,
        })
    }

    /// The algorithms that the heuristics propose, each with its workspace, the best first.
    fn proposals(
        &self,
        handle: sys::cublasLtHandle_t,
        alignments: [u32; 3],
        workspace: u64,
    ) -> Result<Vec<(sys::cublasLtMatmulAlgo_t, u64)>> {
        use sys::cublasLtMatmulPreferenceAttributes_t as A;
        let preference = Preference::new()?;
        preference.set(A::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace)?;
        let [first, second, result] = alignments;
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, first)?;
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, second)?;
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, result)?;
        preference.set(A::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, result)?;
        if self.element != Element::F32 {
            // Partial sums are never added in 16 bits.
            let scheme = sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE as u32;
            preference.set(A::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, scheme)?;
        }
        let mut results = [HeuristicResult::default(); 8];
        let mut count = 0;
        let most = results.len() as i32;
        let (a, b, c) = (self.first.0, self.second.0, self.result.0);
        // SAFETY: the descriptors live; room for `most` results of the same form.
        let answer = unsafe {
            use sys::cublasLtMatmulAlgoGetHeuristic as propose;
            let found = results.as_mut_ptr().cast();
            propose(handle, self.operation.0, a, b, c, c, preference.0, most, found, &raw mut count)
        };
        if answer == sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED {
            return Ok(Vec::new());
        }
        status::cublas("find an algorithm for a product", answer)?;
        let count = usize::try_from(count).unwrap_or(0).min(results.len());
        let usable = |found: &&HeuristicResult| found.status == 0 && found.workspace as u64 <= workspace;
        let proposed = results[..count].iter().filter(usable);
        Ok(proposed
            .map(|found| (sys::cublasLtMatmulAlgo_t { data: found.algorithm }, found.workspace as u64))
            .collect())
    }
}

/// cublasLtMatmulHeuristicResult_t with its status as a number: a newer cuBLASLt may return one that the bindings do
/// not know.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct HeuristicResult {
    algorithm: [u64; 8],
    workspace: usize,
    status: u32,
    waves: f32,
    reserved: [i32; 4],
}

const _: () = assert!(size_of::<HeuristicResult>() == size_of::<sys::cublasLtMatmulHeuristicResult_t>());

fn compute_type(math: Math) -> sys::cublasComputeType_t {
    match math {
        Math::Fp32 | Math::Half => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
        Math::Tf32 => sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32,
    }
}

fn data_type(element: Element) -> sys::cudaDataType_t {
    match element {
        Element::F32 => sys::cudaDataType_t::CUDA_R_32F,
        Element::F16 => sys::cudaDataType_t::CUDA_R_16F,
        Element::Bf16 => sys::cudaDataType_t::CUDA_R_16BF,
    }
}

/// The largest power of two, at most 256, that divides an address.
fn alignment(address: u64) -> u32 {
    1 << address.trailing_zeros().min(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alignment_is_the_largest_power_of_two_up_to_256() {
        assert_eq!(
            [0x7f00_0000_0000, 0x1100, 0x1080, 0x1010, 0x1002, 0x1001].map(alignment),
            [256, 256, 128, 16, 2, 1]
        );
    }
}
