//! The device that a user asks for.

use crate::error::{Error, Result};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU where there is one, else the CPU.
    Auto,
    Cpu,
    /// The GPU of that index.
    Cuda(usize),
}

impl DeviceChoice {
    /// The number of the GPU, where it is one.
    pub(super) fn ordinal(self) -> u32 {
        match self {
            Self::Cuda(index) => u32::try_from(index).unwrap_or(u32::MAX),
            Self::Auto | Self::Cpu => 0,
        }
    }

    /// Reads `auto`, `cpu`, `cuda`, `cuda:1`.
    ///
    /// # Errors
    /// [`crate::error::Kind::Spec`] for any other text.
    pub fn parse(text: &str) -> Result<Self> {
        let index = |text: &str| text.parse().ok().map(Self::Cuda);
        let choice = match text {
            "auto" => Some(Self::Auto),
            "cpu" => Some(Self::Cpu),
            "cuda" => Some(Self::Cuda(0)),
            other => other.strip_prefix("cuda:").and_then(index),
        };
        choice.ok_or_else(|| {
            Error::spec(format!("`{text}` is not a device"))
                .hint("one of: auto, cpu, and for a GPU cuda:0, cuda:1, ... (`batchstep doctor` lists them)")
        })
    }
}
