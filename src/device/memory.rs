//! How much memory the machine has.
//!
//! Source: `/proc/meminfo`, `MemTotal` and `MemAvailable`. A control group's limit is in [`super::cgroup`].

use serde::{Deserialize, Serialize};

use super::root::{FilesystemRoot, field, kilobytes};

/// The machine's main memory, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MainMemory {
    pub total_bytes: Option<u64>,
    /// The memory that a new process could take without swapping others out.
    pub available_bytes: Option<u64>,
    pub swap_bytes: Option<u64>,
}

impl MainMemory {
    pub fn read(root: &FilesystemRoot) -> Self {
        let text = root.text("/proc/meminfo").unwrap_or_default();
        let value = |key: &str| field(&text, key).and_then(kilobytes);
        Self { total_bytes: value("MemTotal"), available_bytes: value("MemAvailable"), swap_bytes: value("SwapTotal") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::root::tests::planted;

    #[test]
    fn meminfo_is_in_kibibytes() {
        let text = "MemTotal:       24689764 kB\nMemFree: 1 kB\nMemAvailable:   23000000 kB\nSwapTotal: 0 kB\n";
        let (_guard, root) = planted(&[("proc/meminfo", text)]);
        let memory = MainMemory::read(&root);
        assert_eq!(memory.total_bytes, Some(24_689_764 * 1024));
        assert_eq!(memory.available_bytes, Some(23_000_000 * 1024));
        assert_eq!(memory.swap_bytes, Some(0));
        assert_eq!(MainMemory::read(&FilesystemRoot::at("/nonexistent")), MainMemory::default());
    }
}
