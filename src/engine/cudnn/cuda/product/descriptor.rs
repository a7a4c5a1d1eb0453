//! The matrices of a product as cuBLASLt takes them, and its descriptors.

use std::ffi::c_void;

use crate::engine::cudnn::cuda::api::cublaslt as sys;

use crate::engine::cudnn::call::Product;
use crate::engine::cudnn::cuda::status;
use crate::error::Result;

/// A column-major matrix as cuBLASLt takes it: `rows` x `columns` with `leading` elements from column to column, and
/// whether the product uses its transpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Matrix {
    pub rows: u64,
    pub columns: u64,
    pub leading: i64,
    pub transpose: bool,
}

/// cuBLASLt's first and second operand and its result, for a row-major product: the second operand here is its first.
pub(super) fn column_major(product: &Product) -> [Matrix; 3] {
    let matrix = |rows: usize, columns: usize, transpose: bool| Matrix {
        rows: rows as u64,
        columns: columns as u64,
        leading: rows as i64,
        transpose,
    };
    let Product { m, n, k, transpose_a, transpose_b, .. } = *product;
    let first = if transpose_b { matrix(k, n, true) } else { matrix(n, k, false) };
    let second = if transpose_a { matrix(m, k, true) } else { matrix(k, m, false) };
    [first, second, matrix(n, m, false)]
}

owned!(Operation, sys::cublasLtMatmulDesc_t, sys::cublasLtMatmulDescDestroy);
owned!(MatrixLayout, sys::cublasLtMatrixLayout_t, sys::cublasLtMatrixLayoutDestroy);
owned!(Preference, sys::cublasLtMatmulPreference_t, sys::cublasLtMatmulPreferenceDestroy);

impl Operation {
    pub fn new(compute: sys::cublasComputeType_t) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        let scale = sys::cudaDataType_t::CUDA_R_32F;
        // SAFETY: it writes one pointer.
        let answer = unsafe { sys::cublasLtMatmulDescCreate(&raw mut raw, compute, scale) };
        status::cublas("describe a product", answer)?;
        Ok(Self(raw))
    }

    /// The value has the size of the attribute.
    pub fn set<T: Copy>(&self, attribute: sys::cublasLtMatmulDescAttributes_t, value: T) -> Result<()> {
        let pointer = (&raw const value).cast::<c_void>();
        // SAFETY: size_of T bytes lie there.
        let answer = unsafe { sys::cublasLtMatmulDescSetAttribute(self.0, attribute, pointer, size_of::<T>()) };
        status::cublas(format_args!("set {attribute:?}"), answer)
    }
}

impl MatrixLayout {
    pub fn new(kind: sys::cudaDataType_t, matrix: Matrix) -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: it writes one pointer.
        let answer =
            unsafe { sys::cublasLtMatrixLayoutCreate(&raw mut raw, kind, matrix.rows, matrix.columns, matrix.leading) };
        status::cublas("describe a matrix", answer)?;
        Ok(Self(raw))
    }
}

impl Preference {
    pub fn new() -> Result<Self> {
        let mut raw = std::ptr::null_mut();
        // SAFETY: it writes one pointer.
        status::cublas("describe a preference", unsafe { sys::cublasLtMatmulPreferenceCreate(&raw mut raw) })?;
        Ok(Self(raw))
    }

    /// The value has the size of the attribute.
    pub fn set<T: Copy>(&self, attribute: sys::cublasLtMatmulPreferenceAttributes_t, value: T) -> Result<()> {
        let pointer = (&raw const value).cast::<c_void>();
        // SAFETY: size_of T bytes lie there.
        let answer = unsafe { sys::cublasLtMatmulPreferenceSetAttribute(self.0, attribute, pointer, size_of::<T>()) };
        status::cublas(format_args!("set {attribute:?}"), answer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cuda::libraries::{self, Library};
    use crate::engine::cudnn::element::{Element, Math};

    fn product(m: usize, n: usize, k: usize, transpose_a: bool, transpose_b: bool) -> Product {
        Product { element: Element::F32, math: Math::Fp32, m, n, k, transpose_a, transpose_b }
    }

    /// Element (i, j) of op(A) for a column-major matrix, as the cuBLAS documentation defines it.
    fn at(values: &[f64], matrix: Matrix, i: usize, j: usize) -> f64 {
        let (row, column) = if matrix.transpose { (j, i) } else { (i, j) };
        assert!(row < matrix.rows as usize && column < matrix.columns as usize);
        values[row + column * matrix.leading as usize]
    }

    #[test]
    fn every_combination_of_transposes_gives_the_row_major_product() {
        let (m, n, k) = (3, 5, 4);
        let a: Vec<f64> = (0..m * k).map(|i| (i * 7 % 11) as f64 - 5.0).collect();
        let b: Vec<f64> = (0..k * n).map(|i| (i * 5 % 13) as f64 - 6.0).collect();
        for (transpose_a, transpose_b) in [(false, false), (false, true), (true, false), (true, true)] {
            let row_major = |i: usize, j: usize| -> f64 {
                let left = |l: usize| if transpose_a { a[l * m + i] } else { a[i * k + l] };
                let right = |l: usize| if transpose_b { b[j * k + l] } else { b[l * n + j] };
                (0..k).map(|l| left(l) * right(l)).sum()
            };
            let [first, second, result] = column_major(&product(m, n, k, transpose_a, transpose_b));
            assert_eq!((result.rows, result.columns, result.leading), (n as u64, m as u64, n as i64));
            let mut c = vec![f64::NAN; m * n];
            for column in 0..m {
                for row in 0..n {
                    let sum = (0..k).map(|l| at(&b, first, row, l) * at(&a, second, l, column)).sum();
                    c[row + column * result.leading as usize] = sum;
                }
            }
            for i in 0..m {
                for j in 0..n {
                    assert_eq!(c[i * n + j], row_major(i, j), "{transpose_a} {transpose_b} at {i}, {j}");
                }
            }
        }
    }

    /// A number of at most eight bytes, as a call writes it.
    fn number(call: impl Fn(*mut c_void, *mut usize) -> sys::cublasStatus_t) -> u64 {
        let (mut value, mut written) = (0_u64, 0);
        status::cublas("report an attribute", call((&raw mut value).cast(), &raw mut written)).unwrap();
        value
    }

    #[test]
    fn a_layout_is_read_back_as_it_was_made() {
        if !libraries::is_loaded(Library::CublasLt) {
            return;
        }
        let [first, ..] = column_major(&product(64, 4096, 25088, false, true));
        let layout = MatrixLayout::new(sys::cudaDataType_t::CUDA_R_16BF, first).unwrap();
        let read = |attribute: sys::cublasLtMatrixLayoutAttribute_t| {
            // SAFETY: eight bytes, the size of the three attributes below.
            number(|at, written| unsafe { sys::cublasLtMatrixLayoutGetAttribute(layout.0, attribute, at, 8, written) })
        };
        use sys::cublasLtMatrixLayoutAttribute_t as A;
        assert_eq!(read(A::CUBLASLT_MATRIX_LAYOUT_ROWS), 25088);
        assert_eq!(read(A::CUBLASLT_MATRIX_LAYOUT_COLS), 4096);
        assert_eq!(read(A::CUBLASLT_MATRIX_LAYOUT_LD), 25088);
    }

    #[test]
    fn a_product_is_read_back_as_it_was_made() {
        if !libraries::is_loaded(Library::CublasLt) {
            return;
        }
        use sys::cublasLtMatmulDescAttributes_t as A;
        let operation = Operation::new(sys::cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32).unwrap();
        operation.set(A::CUBLASLT_MATMUL_DESC_TRANSA, 1_i32).unwrap();
        operation.set(A::CUBLASLT_MATMUL_DESC_EPILOGUE, 6_u32).unwrap();
        operation.set(A::CUBLASLT_MATMUL_DESC_BIAS_POINTER, 0x7f00_0000_0100_u64).unwrap();
        let read = |attribute: A, size: usize| {
            // SAFETY: at most eight bytes.
            number(|at, written| unsafe {
                sys::cublasLtMatmulDescGetAttribute(operation.0, attribute, at, size, written)
            })
        };
        // CUBLAS_COMPUTE_32F_FAST_TF32, CUBLAS_OP_T, CUBLAS_OP_N, CUBLASLT_EPILOGUE_RELU_BIAS of the headers.
        assert_eq!(read(A::CUBLASLT_MATMUL_DESC_COMPUTE_TYPE, 4), 77);
        assert_eq!(read(A::CUBLASLT_MATMUL_DESC_TRANSA, 4), 1);
        assert_eq!(read(A::CUBLASLT_MATMUL_DESC_TRANSB, 4), 0);
        assert_eq!(read(A::CUBLASLT_MATMUL_DESC_EPILOGUE, 4), 6);
        assert_eq!(read(A::CUBLASLT_MATMUL_DESC_BIAS_POINTER, 8), 0x7f00_0000_0100);
    }

    #[test]
    fn a_value_of_the_wrong_size_is_refused_with_the_attributes_name() {
        if !libraries::is_loaded(Library::CublasLt) {
            return;
        }
        let preference = Preference::new().unwrap();
        let wrong =
            preference.set(sys::cublasLtMatmulPreferenceAttributes_t::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, 1_u8);
        let error = wrong.unwrap_err().to_string();
        assert!(error.contains("MAX_WORKSPACE_BYTES: CUBLAS_STATUS_INVALID_VALUE"), "{error}");
    }
}
