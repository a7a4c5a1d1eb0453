//! NVML's values for recorded GPUs, from end to end: its C interface, nvml-wrapper, a run beside the GPU, the columns of
//! `steps.parquet`, the footer of the chart.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Ended, Recorded};
use crate::analysis::{Query, analyse};
use crate::chart::chart_data::{Destination, SweepCharts};
use crate::device::{self, Covariates, Device};
use crate::engine::cudnn::recorded;
use crate::needs::shared_library;
use crate::store::{Begin, Table};

const FOLDER: &str = "BATCHSTEP_TEST_COVARIATES";
const NAME: &str = "run::tests::covariates::what_nvml_says_is_in_the_steps_and_on_the_chart";
const LIBRARY: &str = include_str!("../../device/nvml/library.c");

const SPEC: &str = "version = 1\nname = \"recorded\"\n[model]\nname = \"mlp\"\ninput = [4]\nclasses = 2\n[sweep]\nbatch_size = \"1..=6\"\n\
                    [train]\nprecision = \"fp32\"\n[engine]\nname = \"cudnn\"\n\
                    [measure]\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 1\n";

/// A GPU and what its rows must have: lanes and generations now and at most, replays, SM and memory clock (Hz), temperature,
/// power (W); NaN where the column is null.
struct ExpectedGpu {
    facts: &'static str,
    numbers: [f64; 9],
    throttle: &'static str,
    /// On the chart.
    link: &'static str,
}

const COLUMNS: [&str; 9] = [
    "pcie_link_width",
    "pcie_link_width_max",
    "pcie_link_generation",
    "pcie_link_generation_max",
    "pcie_replay_counter",
    "sm_clock_hz",
    "memory_clock_hz",
    "temperature_c",
    "power_w",
];

const NULL: f64 = f64::NAN;

const GPUS: [ExpectedGpu; 7] = [
    ExpectedGpu {
        facts: include_str!("../../device/nvml/facts/t4.txt"),
        numbers: [8.0, 16.0, 3.0, 3.0, 0.0, 585e6, 5e9, 40.0, 26.78],
        throttle: "none",
        link: "PCIe 3.0 x8",
    },
    ExpectedGpu {
        facts: include_str!("../../device/nvml/facts/v100.txt"),
        numbers: [16.0, 16.0, 3.0, 3.0, 0.0, 1.38e9, 877e6, 40.0, 58.81],
        throttle: "none",
        link: "PCIe 3.0 x16",
    },
    ExpectedGpu {
        facts: include_str!("../../device/nvml/facts/a100_mig.txt"),
        numbers: [16.0, 16.0, 4.0, 4.0, 0.0, 1.41e9, 1.215e9, 36.0, 66.92],
        throttle: "none",
        link: "PCIe 4.0 x16",
    },
    ExpectedGpu {
        facts: include_str!("../../device/nvml/facts/h100.txt"),
        numbers: [16.0, 16.0, 5.0, 5.0, 0.0, 345e6, 2.619e9, 33.0, 72.02],
        throttle: "gpu_idle",
        link: "PCIe 5.0 x16",
    },
    ExpectedGpu {
        facts: include_str!("../../device/nvml/facts/rtx_4070_laptop.txt"),
        numbers: [8.0, 8.0, 4.0, 4.0, 0.0, 210e6, 405e6, 42.0, 1.97],
        throttle: "gpu_idle",
        link: "PCIe 4.0 x8",
    },
    ExpectedGpu {
        facts: include_str!("../../device/nvml/facts/rtx_3090.txt"),
        numbers: [16.0, 16.0, 1.0, 4.0, 0.0, 0.0, 405e6, 37.0, 27.23],
        throttle: "gpu_idle",
        link: "PCIe 1.0 x16",
    },
    ExpectedGpu {
        facts: include_str!("../../device/nvml/facts/vgpu.txt"),
        numbers: [NULL, NULL, NULL, NULL, NULL, 1.23e9, 877e6, NULL, NULL],
        throttle: "",
        link: "PCIe link not read",
    },
];

/// The facts, at the address of the recorded GPU.
fn placed(facts: &str) -> String {
    let lines = facts.lines().filter(|line| !line.starts_with("bus_id ") && !line.starts_with('#'));
    lines.chain(["bus_id 00000000:03:00.0"]).map(|line| format!("{line}\n")).collect()
}

/// A run beside that GPU.
fn run(folder: &Path) -> (Recorded, Ended) {
    let sweep = Recorded::new(SPEC, folder);
    recorded::begin(None);
    let ended = sweep.go(Begin::Anew, device::open(Some("0000:03:00.0")));
    (sweep, ended)
}

/// The child's part: its loader finds the library with the facts.
fn look(facts: &Path) {
    for gpu in &GPUS {
        std::fs::write(facts, placed(gpu.facts)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (sweep, ended) = run(folder.path());
        assert!(ended.result.unwrap().complete && ended.said.is_empty(), "{:?}", ended.said);
        let table = Table::read(&sweep.path, &[&COLUMNS[..], &["throttle_reasons"]].concat()).unwrap();
        for (name, expected) in COLUMNS.iter().zip(gpu.numbers) {
            let numbers = table.numbers(name).unwrap();
            let is = |number: &f64| *number == expected || number.is_nan() && expected.is_nan();
            assert!(!numbers.is_empty() && numbers.iter().all(is), "{name} of {}: {numbers:?}", gpu.link);
        }
        assert!(table.texts("throttle_reasons").unwrap().iter().all(|reasons| reasons == gpu.throttle), "{}", gpu.link);
        let found = analyse(&sweep.path, &Query::default(), None).unwrap();
        let destination = Destination { extension: "svg".to_owned(), ..Destination::in_run(folder.path().to_owned()) };
        let figures = SweepCharts::of(&sweep.path, &found, &[]);
        let drawn: String =
            figures.draw(&destination).unwrap().iter().map(|path| std::fs::read_to_string(path).unwrap()).collect();
        assert!(drawn.contains(gpu.link), "{} is not on the chart", gpu.link);
    }
    // NVML_ERROR_GPU_IS_LOST for everything but the address: the run goes on, with nulls, and says so.
    let lost: String = placed(GPUS[0].facts)
        .lines()
        .map(|line| match line.split_once(' ') {
            Some((name, _)) if name != "bus_id" => format!("{name} !15\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    std::fs::write(facts, lost).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (sweep, ended) = run(folder.path());
    assert!(ended.result.unwrap().complete);
    let environment = std::fs::read_to_string(sweep.path.join("environment.json")).unwrap();
    assert!(environment.contains("fell off the bus"), "{environment}");
    let table = Table::read(&sweep.path, &["sm_clock_hz", "pcie_link_width"]).unwrap();
    assert!(table.numbers("sm_clock_hz").unwrap().iter().all(|clock| clock.is_nan()));
    assert!(table.numbers("pcie_link_width").unwrap().iter().all(|width| width.is_nan()));
}

/// A GPU whose clock is low unless it is at work.
struct Idling;

impl Device for Idling {
    fn read(&mut self) -> Covariates {
        let sm_clock_hz = Some(if recorded::is_at_work() { 1.98e9 } else { 345e6 });
        Covariates { sm_clock_hz, ..Covariates::default() }
    }
}

/// Every reading of a visit meets the GPU at work, also where the layers are timed and where the step is a graph.
fn look_at_work() {
    for more in ["layers = true\n", "[engine]\nname = \"cudnn\"\nlaunch = \"graph\"\n"] {
        let spec = format!(
            "{}{more}",
            if more.starts_with('[') { SPEC.replace("[engine]\nname = \"cudnn\"\n", "") } else { SPEC.into() }
        );
        let folder = tempfile::tempdir().unwrap();
        let sweep = Recorded::new(&spec, folder.path());
        recorded::begin(None);
        let ended = sweep.go(Begin::Anew, Box::new(Idling));
        assert!(ended.result.unwrap().complete, "{:?}", ended.said);
        let clocks = Table::read(&sweep.path, &["sm_clock_hz"]).unwrap().numbers("sm_clock_hz").unwrap();
        assert!(!clocks.is_empty() && clocks.iter().all(|&clock| clock == 1.98e9), "{clocks:?}");
    }
}

#[test]
#[ignore = "slow"]
fn what_nvml_says_is_in_the_steps_and_on_the_chart() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        look_at_work();
        return look(&PathBuf::from(folder).join("facts"));
    }
    let folder = tempfile::tempdir().unwrap();
    if !shared_library(LIBRARY, &folder.path().join("libnvidia-ml.so.1")) {
        return;
    }
    std::fs::write(folder.path().join("facts"), "").unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args([NAME, "--exact", "--nocapture"]).env(FOLDER, folder.path()).env("LD_LIBRARY_PATH", folder.path());
    let output = child.env("XDG_CACHE_HOME", folder.path().join("cache")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
