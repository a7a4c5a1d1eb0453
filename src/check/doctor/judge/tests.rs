use std::path::PathBuf;

use super::*;
use crate::device::cgroup::ResourceLimits;
use crate::device::counters::{Counters, Lacking};
use crate::device::cuda::libraries::Library;
use crate::device::python::Python;

fn found(library: Library, version: &str) -> LibraryReport {
    let path = Some(PathBuf::from(format!("/cuda/lib64/{}", library.file())));
    let (origin, version) = (Some("$CUDA_HOME".into()), Some(version.into()));
    LibraryReport { library, path, origin, version, problem: None, passed_over: Vec::new() }
}

/// A machine with one GPU.
fn h200() -> Evidence {
    let gpu = GpuFacts { name: "NVIDIA H200".into(), ..GpuFacts::default() };
    let libraries = vec![found(Library::Cublas, "13.1.0"), found(Library::Cudnn, "9.19.0")];
    let environment = Environment { gpus: vec![gpu], libraries, ..Environment::default() };
    Evidence { environment, driver: Some(("/usr/lib64/libcuda.so.1".into(), Some((12, 8)))), ..Evidence::default() }
}

fn one(evidence: &Evidence, subject: &str) -> Finding {
    judge(evidence).into_iter().find(|finding| finding.subject == subject).unwrap()
}

/// Checks the status of a finding, and that these words are in its line and in its remedy; `None`: it has none.
fn finds(evidence: &Evidence, subject: &str, status: Status, detail: &str, remedy: Option<&str>) {
    let finding = one(evidence, subject);
    assert_eq!(finding.status, status, "{finding:?}");
    assert!(finding.detail.contains(detail), "{finding:?}");
    assert_eq!(finding.remedy.is_some(), remedy.is_some(), "{finding:?}");
    assert!(finding.remedy.iter().all(|found| found.contains(remedy.unwrap_or_default())), "{finding:?}");
}

#[test]
fn libraries_newer_than_the_driver_are_a_warning_with_the_older_package_or_a_note_where_there_is_another() {
    let mut evidence = h200();
    let why = "it is built for CUDA 13";
    evidence.environment.libraries[0].problem = Some(why.into());
    let detail = format!("libcublas.so: {why}");
    finds(&evidence, "cuBLAS", Status::Warning, &detail, Some("pip install nvidia-cublas-cu12"));
    finds(&evidence, "GPU driver", Status::Ok, "", None);
    let passed_over = vec![PassedOver { path: "/new/libcudnn.so.9".into(), why: why.into() }];
    evidence.environment.libraries[1].passed_over = passed_over;
    finds(&evidence, "cuDNN", Status::Ok, "; passed over: /new/libcudnn.so.9: it is built for CUDA 13", None);
}

#[test]
fn a_driver_that_refuses_or_does_not_load_is_a_warning_with_its_remedy_and_no_missing_one() {
    let evidence = Evidence { driver_refusal: Some(Refusal::of(802, "")), ..h200() };
    let detail = "is not running (CUDA_ERROR_SYSTEM_NOT_READY, 802)";
    finds(&evidence, "GPU driver", Status::Warning, detail, Some("nvidia-fabricmanager"));
    let refusal = Refusal::unloadable("libcuda.so.1: file too short");
    let evidence = Evidence { driver: None, driver_refusal: Some(refusal), ..h200() };
    let detail = "does not load: libcuda.so.1: file too short";
    finds(&evidence, "GPU driver", Status::Warning, detail, Some("reinstall the NVIDIA driver"));
}

#[test]
fn libraries_that_are_missing_make_one_line_with_one_command() {
    let missing = |library| LibraryReport {
        path: None,
        version: None,
        problem: Some("it was not found".into()),
        ..found(library, "")
    };
    let mut evidence = h200();
    evidence.environment.libraries = [Library::Nvrtc, Library::NvrtcBuiltins, Library::Cudnn]
        .map(missing)
        .into_iter()
        .chain([found(Library::Cublas, "12.8.0")])
        .collect();
    let remedy = one(&evidence, "GPU libraries").remedy;
    assert_eq!(remedy.as_deref(), Some("pip install nvidia-cuda-nvrtc-cu12 nvidia-cudnn-cu12"));
    finds(&evidence, "GPU libraries", Status::Missing, "", Some(""));
    assert!(judge(&evidence).iter().all(|finding| finding.subject != "cuDNN"));
    finds(&evidence, "cuBLAS", Status::Ok, "", None);
    evidence.driver = None;
    finds(&evidence, "GPU libraries", Status::Ok, "", None);
}

#[test]
fn counters_that_are_missing_have_the_remedy_of_their_cause() {
    let subject = "performance counters";
    let refused = Counters { refused: Some("not permitted".into()), paranoid: Some(4), ..Counters::default() };
    let some = Counters { cycles: true, instructions: true, ..Counters::default() };
    let lacks = |name: &str| Lacking { name: name.into(), why: "no such counter".into() };
    let lacking = vec![lacks("cache_misses"), lacks("branch_misses")];
    let detail = "cycles and instructions can be counted; these cannot, so their columns are null: cache_misses (no such counter), \
                  branch_misses (no such counter)";
    for (counters, status, detail, remedy) in [
        (
            Counters { forbidden: true, ..refused.clone() },
            Status::Missing,
            "cycles cannot be counted: not permitted (kernel.perf_event_paranoid is 4); page faults",
            Some("sudo sysctl kernel.perf_event_paranoid=1"),
        ),
        (some.clone(), Status::Ok, "", None),
        (Counters { lacking, ..some }, Status::Missing, detail, Some("measure on hardware")),
        (refused, Status::Missing, "", Some("pmu=on")),
    ] {
        let mut evidence = Evidence::default();
        evidence.environment.counters = counters;
        finds(&evidence, subject, status, detail, remedy);
    }
}

#[test]
fn every_missing_part_names_the_command_that_installs_it() {
    let mut evidence = Evidence::default();
    evidence.environment.cpu.governor = Some("powersave".into());
    let remedy = |subject: &str| one(&evidence, subject).remedy.unwrap_or_default();
    assert_eq!(remedy("frequency governor"), "sudo cpupower frequency-set -g performance");
    assert_eq!(remedy("PyTorch"), "install Python 3.10 or later, or name one in BATCHSTEP_PYTHON");
    evidence.python_silent = Some("python3 did not answer within 30 s".into());
    finds(&evidence, "PyTorch", Status::Missing, "python3 did not answer within 30 s", Some(""));
    // Nothing that can be installed makes a GPU.
    finds(&evidence, "GPU driver", Status::Missing, "", None);
}

#[test]
fn a_pytorch_that_cannot_use_the_gpu_is_a_warning() {
    let python = Python {
        executable: "/usr/bin/python3".into(),
        version: "3.12.3".into(),
        folders: Vec::new(),
        torch: Some("2.11.0+cpu".into()),
        torch_cuda: None,
    };
    let mut evidence = Evidence { python: Some(python), ..h200() };
    finds(&evidence, "PyTorch", Status::Ok, "2.11.0+cpu", None);
    evidence.pytorch_gpu = Some(Err("PyTorch sees no GPU; it was built without CUDA\n  help: no".into()));
    finds(&evidence, "PyTorch", Status::Warning, "PyTorch sees no GPU; it was built without CUDA", Some(""));
    assert!(!one(&evidence, "PyTorch").detail.contains("help"));
    evidence.pytorch_gpu = Some(Ok("NVIDIA H200".into()));
    finds(&evidence, "PyTorch", Status::Ok, "sees NVIDIA H200", None);
}

#[test]
fn a_quota_on_processor_time_is_a_warning() {
    let mut evidence = Evidence::default();
    evidence.environment.limits = ResourceLimits { quota_cores: Some(1.5), ..ResourceLimits::default() };
    evidence.environment.limits.stopped = Some((0, 0.0));
    finds(&evidence, "CPU", Status::Warning, "1.50 cores", Some(""));
    assert!(!one(&evidence, "CPU").detail.contains("stopped"));
    evidence.environment.limits.stopped = Some((7, 2.5));
    finds(&evidence, "CPU", Status::Warning, "its quota has stopped it 7 times, for 2.5 s in all", Some(""));
}

#[test]
fn hyper_threads_are_named_with_their_effect() {
    let mut evidence = Evidence::default();
    let cpu = &mut evidence.environment.cpu;
    (cpu.physical_cores, cpu.logical_cores) = (Some(2), Some(4));
    let shared = "2 cores, 4 threads, hyper-threads share a core, so that a program on one slows the other";
    finds(&evidence, "CPU", Status::Ok, shared, None);
    evidence.environment.cpu.physical_cores = Some(4);
    assert!(!one(&evidence, "CPU").detail.contains("hyper-threads"));
}

/// A GPU on the bus and no driver: what mends it depends on whose kernel it is.
#[test]
fn a_missing_driver_has_the_commands_of_the_system_it_is_missing_on() {
    let mut evidence = h200();
    evidence.driver = None;
    let commands = |evidence: &Evidence| one(evidence, "GPU driver").commands;
    evidence.environment.os = Some("Fedora Linux 42".into());
    assert!(commands(&evidence).is_empty(), "another system than Ubuntu: by hand");
    evidence.environment.os = Some("Ubuntu 24.04.3 LTS".into());
    assert_eq!(commands(&evidence).last().map(String::as_str), Some("sudo reboot"));
    assert!(commands(&evidence).contains(&"sudo ubuntu-drivers install --gpgpu".to_owned()));
    evidence.environment.kernel = Some("5.15.167.4-microsoft-standard-WSL2".into());
    let finding = one(&evidence, "GPU driver");
    assert!(finding.commands.is_empty() && finding.remedy.unwrap().contains("on Windows"));
    evidence.environment.container = Some("docker".into());
    assert!(one(&evidence, "GPU driver").remedy.unwrap().contains("--gpus all"));
}

#[test]
fn libraries_are_installed_in_an_environment_which_is_made_where_none_is_active() {
    let mut evidence = h200();
    evidence.environment.libraries[1].problem = Some("it does not load".into());
    let commands = one(&evidence, "cuDNN").commands;
    assert_eq!(commands[..2], ["python3 -m venv ~/batchstep-env", ". ~/batchstep-env/bin/activate"]);
    assert_eq!(commands[2], "pip install nvidia-cudnn-cu12");
    evidence.in_environment = true;
    assert_eq!(one(&evidence, "cuDNN").commands, ["pip install nvidia-cudnn-cu12"]);
}
