//! The CUDA libraries that the GPU engine uses: their names, their files, and the commands that install them.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Library {
    #[serde(rename = "cuBLASLt")]
    CublasLt,
    #[serde(rename = "cuBLAS")]
    Cublas,
    #[serde(rename = "NVRTC builtins")]
    NvrtcBuiltins,
    #[serde(rename = "NVRTC")]
    Nvrtc,
    #[serde(rename = "cuDNN")]
    Cudnn,
}

impl Library {
    /// All libraries, in the order in which they are loaded.
    pub const ALL: [Self; 5] = [Self::CublasLt, Self::Cublas, Self::NvrtcBuiltins, Self::Nvrtc, Self::Cudnn];

    pub fn name(self) -> &'static str {
        match self {
            Self::CublasLt => "cuBLASLt",
            Self::Cublas => "cuBLAS",
            Self::NvrtcBuiltins => "NVRTC builtins",
            Self::Nvrtc => "NVRTC",
            Self::Cudnn => "cuDNN",
        }
    }

    /// The file's name without its version: `libcudnn.so`.
    pub fn file(self) -> &'static str {
        match self {
            Self::CublasLt => "libcublasLt.so",
            Self::Cublas => "libcublas.so",
            Self::NvrtcBuiltins => "libnvrtc-builtins.so",
            Self::Nvrtc => "libnvrtc.so",
            Self::Cudnn => "libcudnn.so",
        }
    }

    /// A function that each version of it has; `None` where it has none that is documented.
    pub(super) fn function(self) -> Option<&'static str> {
        match self {
            Self::CublasLt => Some("cublasLtGetVersion"),
            Self::Cublas => Some("cublasGetProperty"),
            Self::NvrtcBuiltins => None,
            Self::Nvrtc => Some("nvrtcVersion"),
            Self::Cudnn => Some("cudnnGetVersion"),
        }
    }

    /// The sonames to ask the loader for, newest first. The soname of the builtins contains NVRTC's minor version, and
    /// NVRTC finds its own.
    pub(super) fn sonames(self) -> &'static [&'static str] {
        match self {
            Self::CublasLt => &["libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so.11", "libcublasLt.so"],
            Self::Cublas => &["libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so"],
            Self::NvrtcBuiltins => &["libnvrtc-builtins.so"],
            Self::Nvrtc => &["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"],
            Self::Cudnn => &["libcudnn.so.9", "libcudnn.so.8", "libcudnn.so"],
        }
    }

    /// The command that installs it, for the driver's major CUDA version where that is known.
    pub fn remedy(self, cuda_major: Option<u32>) -> String {
        let old = cuda_major.is_some_and(|major| major <= 12);
        let package = match (self, old) {
            (Self::CublasLt | Self::Cublas, false) => "nvidia-cublas",
            (Self::CublasLt | Self::Cublas, true) => "nvidia-cublas-cu12",
            (Self::NvrtcBuiltins | Self::Nvrtc, false) => "nvidia-cuda-nvrtc",
            (Self::NvrtcBuiltins | Self::Nvrtc, true) => "nvidia-cuda-nvrtc-cu12",
            (Self::Cudnn, false) => "nvidia-cudnn-cu13",
            (Self::Cudnn, true) => "nvidia-cudnn-cu12",
        };
        format!("pip install {package}")
    }
}
