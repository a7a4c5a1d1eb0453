//! What `batchstep doctor` reports from the answers of NVIDIA's management library, through its C interface.

use crate::needs::shared_library;
use crate::support::{Folder, batchstep, stdout, write};

const LIBRARY: &str = include_str!("../../src/device/nvml/library.c");

/// A GPU of recorded facts, whose sources are in their files, and the expected lines about it and its link: the status,
/// and words.
struct Recorded {
    facts: &'static str,
    gpu: (&'static str, &'static [&'static str]),
    link: (&'static str, &'static str),
}

const GPUS: [Recorded; 8] = [
    Recorded {
        facts: include_str!("../../src/device/nvml/facts/t4.txt"),
        gpu: ("ok", &["Tesla T4, compute capability 7.5, 15.0 GiB, 70 W at most, 0000:00:1e.0"]),
        link: ("warning", "PCIe 3.0 x8 now, PCIe 3.0 x16 at most"),
    },
    Recorded {
        facts: include_str!("../../src/device/nvml/facts/v100.txt"),
        gpu: ("warning", &["Tesla V100-PCIE-32GB, compute capability 7.0, 31.7 GiB, 250 W at most", "older than 7.5"]),
        link: ("ok", "PCIe 3.0 x16 now, PCIe 3.0 x16 at most"),
    },
    Recorded {
        facts: include_str!("../../src/device/nvml/facts/a100_mig.txt"),
        gpu: (
            "warning",
            &["NVIDIA A100-SXM4-40GB, compute capability 8.0, 40.0 GiB, 400 W", "cut into instances (MIG)"],
        ),
        link: ("ok", "PCIe 4.0 x16 now, PCIe 4.0 x16 at most"),
    },
    Recorded {
        facts: include_str!("../../src/device/nvml/facts/h100.txt"),
        gpu: ("ok", &["NVIDIA H100 80GB HBM3, compute capability 9.0, 79.6 GiB, 700 W at most, 0000:19:00.0"]),
        link: ("ok", "PCIe 5.0 x16 now, PCIe 5.0 x16 at most"),
    },
    Recorded {
        facts: include_str!("../../src/device/nvml/facts/rtx_4070_laptop.txt"),
        gpu: ("ok", &["NVIDIA GeForce RTX 4070 Laptop GPU, compute capability 8.9, 8.0 GiB, 61 W at most"]),
        // It has only eight lanes.
        link: ("ok", "PCIe 4.0 x8 now, PCIe 4.0 x8 at most"),
    },
    Recorded {
        facts: include_str!("../../src/device/nvml/facts/rtx_3090.txt"),
        gpu: ("ok", &["NVIDIA GeForce RTX 3090, compute capability 8.6, 24.0 GiB, 200 W at most"]),
        // The generation drops while the GPU idles.
        link: ("ok", "PCIe 1.0 x16 now, PCIe 4.0 x16 at most"),
    },
    Recorded {
        facts: include_str!("../../src/device/nvml/facts/vgpu.txt"),
        gpu: ("warning", &["GRID V100D-8C, compute capability 7.0, 8.0 GiB", "older than 7.5"]),
        link: ("missing", "neither NVML nor sysfs reports it"),
    },
    // Made up, because no record has both: a slot with half of its lanes, and a GPU cut into instances. Both are
    // reported.
    Recorded {
        facts: "driver_version 580.65.06\ncuda_version 13000\nnvml_version 13.580.65.06\nbus_id 00000000:C1:00.0\n\
                name NVIDIA A100-PCIE-40GB\ncompute_capability 80\nlink_generation_max 4\nlink_generation 1\n\
                link_width_max 16\nlink_width 8\nmig 1\nmemory_total 42949672960\nmemory_used 0\npower_limit 250000\n",
        gpu: (
            "warning",
            &["NVIDIA A100-PCIE-40GB, compute capability 8.0, 40.0 GiB, 250 W at most, 0000:c1:00.0", "(MIG)"],
        ),
        link: ("warning", "PCIe 1.0 x8 now, PCIe 4.0 x16 at most"),
    },
];

/// What doctor says with the library in this folder, whose answers are in its file `facts`.
fn doctor(folder: &Folder, facts: &str) -> String {
    write(folder, "facts", facts);
    let output = batchstep(folder).arg("doctor").env("LD_LIBRARY_PATH", &**folder).output();
    stdout(&output.expect("the program starts"))
}

#[test]
#[ignore = "slow"]
fn doctor_names_each_recorded_gpu_and_the_lanes_that_its_link_lacks() {
    let folder = Folder::new();
    if !shared_library(LIBRARY, &folder.join("libnvidia-ml.so.1")) {
        return;
    }
    for Recorded { facts, gpu, link } in &GPUS {
        let text = doctor(&folder, facts);
        let line = |subject: &str| text.lines().find(|line| line.contains(subject)).unwrap_or_default().to_owned();
        let (of_gpu, of_link) = (line("GPU 0  "), line("PCIe link of GPU 0"));
        assert!(of_gpu.starts_with(gpu.0) && gpu.1.iter().all(|words| of_gpu.contains(words)), "{text}");
        assert!(of_link.starts_with(link.0) && of_link.contains(link.1), "{text}");
        let version = facts.lines().find_map(|line| line.strip_prefix("nvml_version ")).unwrap_or("of unknown version");
        assert!(line("NVML").contains(version), "{text}");
    }
}

/// NVML_ERROR_LIB_RM_VERSION_MISMATCH is 18: after an update of the driver without a restart.
#[test]
fn doctor_says_why_nvml_cannot_begin() {
    let folder = Folder::new();
    if !shared_library(LIBRARY, &folder.join("libnvidia-ml.so.1")) {
        return;
    }
    let text = doctor(&folder, "init !18\n");
    let line = text.lines().find(|line| line.contains("NVML")).unwrap_or_default();
    assert!(line.starts_with("missing") && line.contains("mismatch"), "{text}");
}
