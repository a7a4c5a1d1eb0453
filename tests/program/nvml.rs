//! What `batchstep doctor` makes of what NVIDIA's management library says, through its C interface.

use crate::needs::shared_library;
use crate::support::{batchstep, stdout};

const LIBRARY: &str = include_str!("../../src/device/nvml/library.c");

/// A GPU in a slot of half its lanes, cut into instances. The link of 8 of 16 lanes is the finding; the idle generation is none.
const FACTS: &str = "driver_version 580.65.06\ncuda_version 13000\nnvml_version 13.580.65.06\nbus_id 00000000:C1:00.0\n\
                     name NVIDIA A100-PCIE-40GB\ncompute_capability 80\nlink_generation_max 4\nlink_generation 1\n\
                     link_width_max 16\nlink_width 8\nmig 1\nmemory_total 42949672960\nmemory_used 0\npower_limit 250000\n";

#[test]
fn doctor_reports_the_gpu_its_link_and_its_instances() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("facts"), FACTS).expect("writable");
    if !shared_library(LIBRARY, &folder.path().join("libnvidia-ml.so.1")) {
        return;
    }
    let mut program = batchstep(folder.path());
    let output = program.arg("doctor").env("LD_LIBRARY_PATH", folder.path()).output().expect("the program starts");
    let text = stdout(&output);
    let line = |subject: &str| text.lines().find(|line| line.contains(subject)).unwrap_or_default().to_owned();
    let gpu = line("GPU 0  ");
    assert!(gpu.starts_with("warning") && gpu.contains("cut into instances (MIG)"), "{text}");
    assert!(
        gpu.contains("NVIDIA A100-PCIE-40GB, compute capability 8.0, 40.0 GiB, 250 W at most, 0000:c1:00.0"),
        "{text}"
    );
    let link = line("PCIe link of GPU 0");
    assert!(link.starts_with("warning") && link.contains("PCIe 1.0 x8 now, PCIe 4.0 x16 at most"), "{text}");
    assert!(line("NVML").contains("13.580.65.06"), "{text}");
}
