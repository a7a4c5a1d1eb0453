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

#[test]
fn libraries_newer_than_the_driver_are_a_warning_with_the_older_package_or_a_note_where_there_is_another() {
    let mut evidence = h200();
    let why = "it is built for CUDA 13";
    evidence.environment.libraries[0].problem = Some(why.into());
    let cublas = one(&evidence, "cuBLAS");
    assert!(cublas.detail.contains(&format!("libcublas.so: {why}")), "{}", cublas.detail);
    assert_eq!((cublas.status, cublas.remedy.as_deref()), (Status::Warning, Some("pip install nvidia-cublas-cu12")));
    assert_eq!(one(&evidence, "GPU driver").status, Status::Ok);
    let passed_over = vec![PassedOver { path: "/new/libcudnn.so.9".into(), why: why.into() }];
    evidence.environment.libraries[1].passed_over = passed_over;
    let cudnn = one(&evidence, "cuDNN");
    assert_eq!(cudnn.status, Status::Ok);
    assert!(cudnn.detail.ends_with("; passed over: /new/libcudnn.so.9: it is built for CUDA 13"), "{}", cudnn.detail);
}

#[test]
fn a_driver_that_refuses_is_a_warning_with_its_remedy() {
    let evidence = Evidence { driver_refusal: Some(Refusal::of(802, "")), ..h200() };
    let finding = one(&evidence, "GPU driver");
    assert_eq!(finding.status, Status::Warning);
    assert!(finding.detail.ends_with("is not running (CUDA_ERROR_SYSTEM_NOT_READY, 802)"), "{}", finding.detail);
    assert!(finding.remedy.is_some_and(|remedy| remedy.contains("nvidia-fabricmanager")));
}

#[test]
fn a_drivers_library_that_does_not_load_is_no_missing_one() {
    let refusal = Refusal::unloadable("libcuda.so.1: file too short");
    let finding = one(&Evidence { driver: None, driver_refusal: Some(refusal), ..h200() }, "GPU driver");
    assert_eq!(finding.status, Status::Warning);
    assert!(finding.detail.contains("does not load: libcuda.so.1: file too short"), "{}", finding.detail);
    assert!(finding.remedy.is_some_and(|remedy| remedy.contains("reinstall the NVIDIA driver")));
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
    let finding = one(&evidence, "GPU libraries");
    assert_eq!(finding.status, Status::Missing);
    assert_eq!(finding.remedy.as_deref(), Some("pip install nvidia-cuda-nvrtc-cu12 nvidia-cudnn-cu12"));
    assert!(judge(&evidence).iter().all(|finding| finding.subject != "cuDNN"));
    assert_eq!(one(&evidence, "cuBLAS").status, Status::Ok);
    evidence.driver = None;
    let finding = one(&evidence, "GPU libraries");
    assert_eq!((finding.status, finding.remedy), (Status::Ok, None));
}

#[test]
fn counters_that_are_missing_have_the_remedy_of_their_cause() {
    let refused = Counters { refused: Some("not permitted".into()), paranoid: Some(4), ..Counters::default() };
    let mut evidence = Evidence::default();
    evidence.environment.counters = Counters { forbidden: true, ..refused.clone() };
    let finding = one(&evidence, "performance counters");
    let detail = "cycles cannot be counted: not permitted (kernel.perf_event_paranoid is 4); page faults";
    assert!(finding.detail.starts_with(detail), "{}", finding.detail);
    assert_eq!(finding.status, Status::Missing);
    assert!(finding.remedy.is_some_and(|remedy| remedy.starts_with("sudo sysctl kernel.perf_event_paranoid=1")));
    let lacks = |name: &str| Lacking { name: name.into(), why: "no such counter".into() };
    let some = Counters { cycles: true, instructions: true, ..Counters::default() };
    evidence.environment.counters = some.clone();
    assert_eq!(one(&evidence, "performance counters").status, Status::Ok);
    evidence.environment.counters = Counters { lacking: vec![lacks("cache_misses"), lacks("branch_misses")], ..some };
    let finding = one(&evidence, "performance counters");
    let detail = "cycles and instructions can be counted; these cannot, so their columns are null: cache_misses (no such counter), \
                  branch_misses (no such counter)";
    assert_eq!((finding.status, finding.detail.as_str()), (Status::Missing, detail));
    evidence.environment.counters = refused;
    assert!(one(&evidence, "performance counters").remedy.is_some_and(|remedy| remedy.contains("pmu=on")));
}

#[test]
fn every_missing_part_names_the_command_that_installs_it() {
    let mut evidence = Evidence::default();
    evidence.environment.cpu.governor = Some("powersave".into());
    let remedy = |subject: &str| one(&evidence, subject).remedy.unwrap_or_default();
    assert_eq!(remedy("frequency governor"), "sudo cpupower frequency-set -g performance");
    assert_eq!(remedy("PyTorch"), "install Python 3.10 or later, or name one in BATCHSTEP_PYTHON");
    evidence.python_silent = Some("python3 did not answer within 30 s".into());
    assert_eq!(one(&evidence, "PyTorch").detail, "python3 did not answer within 30 s");
    // Nothing that can be installed makes a GPU.
    assert_eq!(one(&evidence, "GPU driver").remedy, None);
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
    assert_eq!(one(&evidence, "PyTorch").status, Status::Ok);
    evidence.pytorch_gpu = Some(Err("PyTorch sees no GPU; it was built without CUDA\n  help: no".into()));
    let finding = one(&evidence, "PyTorch");
    assert_eq!(finding.status, Status::Warning);
    assert!(finding.detail.ends_with("PyTorch sees no GPU; it was built without CUDA"), "{}", finding.detail);
    evidence.pytorch_gpu = Some(Ok("NVIDIA H200".into()));
    assert!(one(&evidence, "PyTorch").detail.ends_with("sees NVIDIA H200"));
}

#[test]
fn a_quota_on_processor_time_is_a_warning() {
    let mut evidence = Evidence::default();
    evidence.environment.limits = ResourceLimits { quota_cores: Some(1.5), ..ResourceLimits::default() };
    let finding = one(&evidence, "CPU");
    assert_eq!(finding.status, Status::Warning);
    assert!(finding.detail.contains("1.50 cores"), "{}", finding.detail);
    evidence.environment.limits.stopped = Some((0, 0.0));
    assert!(!one(&evidence, "CPU").detail.contains("stopped"));
    evidence.environment.limits.stopped = Some((7, 2.5));
    let detail = one(&evidence, "CPU").detail;
    assert!(detail.ends_with("its quota has stopped it 7 times, for 2.5 s in all"), "{detail}");
}

#[test]
fn hyper_threads_are_named_with_their_effect() {
    let mut evidence = Evidence::default();
    let cpu = &mut evidence.environment.cpu;
    (cpu.physical_cores, cpu.logical_cores) = (Some(2), Some(4));
    let shared = "2 cores, 4 threads, hyper-threads share a core, so that a program on one slows the other";
    assert!(one(&evidence, "CPU").detail.ends_with(shared), "{}", one(&evidence, "CPU").detail);
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
