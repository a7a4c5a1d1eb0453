//! What a user can do about an error code of a library's call. cuda.h, cudnn_graph.h and cublas_api.h name the codes.

const MEMORY: &str = "other programs may hold the GPU's memory (`nvidia-smi` lists them); else take a smaller batch, or a smaller \
                      `workspace_limit` in [engine]";

const KERNEL: &str = "a kernel failed, and CUDA refuses all that follows in the same process: start again with `--resume`, which leaves \
                      this cell out; `batchstep selftest` finds the operator";

const DRIVER: &str = "the driver or the GPU does not work any more: `sudo dmesg | grep -i xid` shows why; restart the machine or its \
                      driver, and continue with `--resume`";

const OTHER: &str = "`batchstep doctor` shows the driver and the libraries that are used; `batchstep selftest` finds what else they refuse";

/// NVRTC itself fails if a part of it is missing or has another version.
const NVRTC: &str = "NVRTC and its builtins must have one version: `batchstep doctor` shows where they are; where that is so, please report it";

const HOST_MEMORY: &str = "the machine's memory is full: end other programs, or continue later with `--resume`";

const PARTS: &str = "all parts of cuDNN must be in one folder and have one version: `batchstep doctor` shows where it is; \
                     install it again";

/// The remedy for a CUresult.
pub(super) fn of_driver(code: u32) -> &'static str {
    match code {
        2 => MEMORY,
        // Illegal instruction, address, ...: caused by a kernel.
        700 | 702 | 710 | 714..=719 => KERNEL,
        // Not initialised, shut down; the device is unavailable, lost, or has an uncorrectable error.
        3 | 4 | 46 | 101 | 214 | 220 | 226 | 721 | 999 => DRIVER,
        900..=908 => "run it with `launch = \"eager\"` in [engine]",
        _ => OTHER,
    }
}

/// The remedy for a cudnnStatus_t.
pub(super) fn of_cudnn(code: u32) -> &'static str {
    match code {
        1001 | 1002 | 1008 | 3008 | 3009 => PARTS,
        4003 | 4004 => MEMORY,
        5001 => KERNEL,
        _ => OTHER,
    }
}

/// The remedy for an nvrtcResult.
pub(super) fn of_nvrtc(code: u32) -> &'static str {
    match code {
        1 => HOST_MEMORY,
        _ => NVRTC,
    }
}

/// The remedy for a cublasStatus_t.
pub(super) fn of_cublas(code: u32) -> &'static str {
    match code {
        3 => MEMORY,
        13 => KERNEL,
        _ => OTHER,
    }
}
