//! Which libraries a driver runs: NVIDIA's minor-version compatibility.
//!
//! A driver runs libraries of its own major version of CUDA, with any minor version, and of older major versions.
//! Source: "CUDA Compatibility", Minor Version Compatibility, table 1
//! (<https://docs.nvidia.com/deploy/cuda-compatibility/>), and table 2 of the CUDA Toolkit's release notes.

/// The oldest driver on Linux for each major version of CUDA.
const OLDEST_DRIVER: [(u32, &str); 3] = [(11, "450.80.02"), (12, "525.60.13"), (13, "580.65.06")];

/// Why a driver that runs CUDA up to `newest` does not run a library built for CUDA `major`; `None` where it does.
pub(super) fn too_new(major: u32, newest: (u32, u32)) -> Option<String> {
    if major <= newest.0 {
        return None;
    }
    let (most, minor) = newest;
    let oldest = OLDEST_DRIVER.iter().find(|known| known.0 == major);
    let needs =
        oldest.map_or("a newer NVIDIA driver".into(), |known| format!("the NVIDIA driver {} or newer", known.1));
    Some(format!("it is built for CUDA {major}, which needs {needs}; this driver runs CUDA up to {most}.{minor}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_runs_its_own_major_version_and_older_ones() {
        assert_eq!(too_new(12, (12, 0)), None);
        assert_eq!(too_new(11, (12, 4)), None);
        let why = too_new(13, (12, 8)).unwrap();
        assert!(why.contains("needs the NVIDIA driver 580.65.06 or newer; this driver runs CUDA up to 12.8"), "{why}");
        assert!(too_new(12, (11, 4)).unwrap().contains("525.60.13"));
        assert!(too_new(14, (13, 0)).unwrap().contains("a newer NVIDIA driver"));
    }
}
