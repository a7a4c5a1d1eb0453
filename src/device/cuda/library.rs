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
        self.facts().0
    }

    /// The file's name without its version: `libcudnn.so`.
    pub fn file(self) -> &'static str {
        self.facts().1
    }

    /// A function that each version of it has; `None` where it has none that is documented.
    pub(super) fn function(self) -> Option<&'static str> {
        self.facts().2
    }

    /// The versions in the sonames to ask the loader for, newest first; it is asked for the bare name last. The soname
    /// of the builtins contains NVRTC's minor version, and NVRTC finds its own.
    pub(super) fn versions(self) -> &'static [&'static str] {
        self.facts().3
    }

    fn facts(self) -> (&'static str, &'static str, Option<&'static str>, &'static [&'static str]) {
        match self {
            Self::CublasLt => ("cuBLASLt", "libcublasLt.so", Some("cublasLtGetVersion"), &["13", "12", "11"]),
            Self::Cublas => ("cuBLAS", "libcublas.so", Some("cublasGetProperty"), &["13", "12", "11"]),
            Self::NvrtcBuiltins => ("NVRTC builtins", "libnvrtc-builtins.so", None, &[]),
            Self::Nvrtc => ("NVRTC", "libnvrtc.so", Some("nvrtcVersion"), &["13", "12", "11.2"]),
            Self::Cudnn => ("cuDNN", "libcudnn.so", Some("cudnnGetVersion"), &["9", "8"]),
        }
    }

    /// The command that installs it, for the driver's major CUDA version where that is known.
    pub fn remedy(self, cuda_major: Option<u32>) -> String {
        let old = cuda_major.is_some_and(|major| major <= 12);
        let (package, newer) = match self {
            Self::CublasLt | Self::Cublas => ("nvidia-cublas", ""),
            Self::NvrtcBuiltins | Self::Nvrtc => ("nvidia-cuda-nvrtc", ""),
            Self::Cudnn => ("nvidia-cudnn", "-cu13"),
        };
        let version = if old { "-cu12" } else { newer };
        format!("pip install {package}{version}")
    }
}
