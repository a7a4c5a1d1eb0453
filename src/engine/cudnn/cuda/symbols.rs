//! The functions that the engine calls of each library. cudarc looks a function up at its first call and panics where the
//! library lacks it; [`super::opened`] looks all of them up before.
//!
//! These lists leave out functions that are called only if the driver is new enough or has them:
//! `cuEventElapsedTime_v2`, `cuFuncGetName`, `cuFuncGetParamInfo`, `cuFuncLoad`.

pub const DRIVER: &[&str] = &[
    "cuCtxSetCurrent",
    "cuDeviceGet",
    "cuDeviceGetAttribute",
    "cuDeviceGetName",
    "cuDeviceGetPCIBusId",
    "cuDevicePrimaryCtxRelease_v2",
    "cuDevicePrimaryCtxRetain",
    "cuDeviceTotalMem_v2",
    "cuDriverGetVersion",
    "cuEventCreate",
    "cuEventDestroy_v2",
    "cuEventElapsedTime",
    "cuEventRecord",
    "cuEventRecordWithFlags",
    "cuEventSynchronize",
    "cuFuncGetAttribute",
    "cuFuncSetAttribute",
    "cuGetErrorName",
    "cuGetErrorString",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphGetNodes",
    "cuGraphInstantiateWithFlags",
    "cuGraphKernelNodeGetAttribute",
    "cuGraphKernelNodeGetParams_v2",
    "cuGraphLaunch",
    "cuGraphNodeGetType",
    "cuGraphUpload",
    "cuInit",
    "cuKernelGetFunction",
    "cuLaunchKernel",
    "cuMemAlloc_v2",
    "cuMemFreeHost",
    "cuMemFree_v2",
    "cuMemGetInfo_v2",
    "cuMemHostAlloc",
    "cuMemcpyDtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyHtoDAsync_v2",
    "cuMemsetD32Async",
    "cuMemsetD8Async",
    "cuModuleGetFunction",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    "cuOccupancyMaxActiveClusters",
    "cuStreamBeginCapture_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamEndCapture",
    "cuStreamSynchronize",
    "cuStreamWaitEvent",
];

pub const CUBLASLT: &[&str] = &[
    "cublasLtCreate",
    "cublasLtDestroy",
    "cublasLtGetStatusName",
    "cublasLtMatmul",
    "cublasLtMatmulAlgoCapGetAttribute",
    "cublasLtMatmulAlgoConfigGetAttribute",
    "cublasLtMatmulAlgoGetHeuristic",
    "cublasLtMatmulDescCreate",
    "cublasLtMatmulDescDestroy",
    "cublasLtMatmulDescGetAttribute",
    "cublasLtMatmulDescSetAttribute",
    "cublasLtMatmulPreferenceCreate",
    "cublasLtMatmulPreferenceDestroy",
    "cublasLtMatmulPreferenceSetAttribute",
    "cublasLtMatrixLayoutCreate",
    "cublasLtMatrixLayoutDestroy",
    "cublasLtMatrixLayoutGetAttribute",
];

pub const NVRTC: &[&str] = &[
    "nvrtcCompileProgram",
    "nvrtcCreateProgram",
    "nvrtcDestroyProgram",
    "nvrtcGetCUBIN",
    "nvrtcGetCUBINSize",
    "nvrtcGetErrorString",
    "nvrtcGetNumSupportedArchs",
    "nvrtcGetPTX",
    "nvrtcGetPTXSize",
    "nvrtcGetProgramLog",
    "nvrtcGetProgramLogSize",
    "nvrtcGetSupportedArchs",
];

pub const CUDNN: &[&str] = &[
    "cudnnBackendCreateDescriptor",
    "cudnnBackendDestroyDescriptor",
    "cudnnBackendExecute",
    "cudnnBackendFinalize",
    "cudnnBackendGetAttribute",
    "cudnnBackendSetAttribute",
    "cudnnConvolutionBackwardData",
    "cudnnConvolutionBackwardFilter",
    "cudnnConvolutionForward",
    "cudnnCreate",
    "cudnnCreateConvolutionDescriptor",
    "cudnnCreateFilterDescriptor",
    "cudnnCreateTensorDescriptor",
    "cudnnDestroy",
    "cudnnDestroyConvolutionDescriptor",
    "cudnnDestroyFilterDescriptor",
    "cudnnDestroyTensorDescriptor",
    "cudnnGetConvolution2dForwardOutputDim",
    "cudnnGetConvolutionBackwardDataAlgorithm_v7",
    "cudnnGetConvolutionBackwardDataWorkspaceSize",
    "cudnnGetConvolutionBackwardFilterAlgorithm_v7",
    "cudnnGetConvolutionBackwardFilterWorkspaceSize",
    "cudnnGetConvolutionForwardAlgorithm_v7",
    "cudnnGetConvolutionForwardWorkspaceSize",
    "cudnnGetConvolutionMathType",
    "cudnnGetErrorString",
    "cudnnGetLastErrorString",
    "cudnnSetConvolution2dDescriptor",
    "cudnnSetConvolutionGroupCount",
    "cudnnSetConvolutionMathType",
    "cudnnSetFilter4dDescriptor",
    "cudnnSetStream",
    "cudnnSetTensor4dDescriptor",
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    const WHERE_THEY_ARE: [&str; 4] = ["cuEventElapsedTime_v2", "cuFuncGetName", "cuFuncGetParamInfo", "cuFuncLoad"];

    fn sources(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let below = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
        entries.flat_map(below).filter(|path| !path.ends_with("symbols.rs") && !path.ends_with("opened.rs")).collect()
    }

    /// Whether a word is a function's name, as the libraries write them. Their types end in `_t`, except two of NVRTC.
    fn is_function(word: &str) -> bool {
        let rest = ["cudnn", "cublasLt", "nvrtc", "cu"].iter().find_map(|prefix| word.strip_prefix(prefix));
        let others = ["cuDNN", "cuBLAS", "cuBLASLt", "nvrtcResult", "nvrtcProgram"];
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
            && !word.ends_with("_t")
            && !others.contains(&word)
    }

    #[test]
    fn every_function_that_is_called_is_in_the_list_and_no_other() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/cudnn/cuda");
        let mut called = BTreeSet::new();
        for path in sources(&folder) {
            let text = std::fs::read_to_string(path).unwrap();
            let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| is_function(word));
            called.extend(words.map(String::from));
        }
        let lists = [DRIVER, CUBLASLT, NVRTC, CUDNN, &WHERE_THEY_ARE];
        let listed: BTreeSet<String> = lists.into_iter().flatten().map(|name| name.to_string()).collect();
        assert_eq!(called, listed);
    }
}
