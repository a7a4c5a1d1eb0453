//! What the evidence means: a plain function, so that every kind of machine is a test.

#[cfg(test)]
mod tests;

use super::{Evidence, Finding, Status};
use crate::device::counters::Lacking;
use crate::device::cuda::libraries::{LibraryReport, PassedOver};
use crate::device::cuda::refusal::Refusal;
use crate::device::environment::Environment;
use crate::device::nvml::GpuFacts;
use crate::device::sysfs::Link;
use crate::engine::cudnn::cuda::OLDEST;

/// The findings, from the processor outwards.
pub fn judge(evidence: &Evidence) -> Vec<Finding> {
    let environment = &evidence.environment;
    let mut findings = vec![cpu(environment), memory(environment), governor(environment), load(environment)];
    findings.push(counters(environment));
    findings.push(driver(evidence));
    findings.push(nvml(evidence));
    findings.extend(gpus(evidence));
    findings.extend(libraries(evidence));
    findings.push(pytorch(evidence));
    findings
}

fn ok(subject: impl Into<String>, detail: impl Into<String>) -> Finding {
    Finding { status: Status::Ok, ..missing(subject, detail, None) }
}

pub(super) fn missing(subject: impl Into<String>, detail: impl Into<String>, remedy: Option<&str>) -> Finding {
    let remedy = remedy.map(str::to_string);
    Finding { subject: subject.into(), status: Status::Missing, detail: detail.into(), remedy, commands: Vec::new() }
}

pub(super) fn warning(subject: impl Into<String>, detail: impl Into<String>, remedy: Option<&str>) -> Finding {
    Finding { status: Status::Warning, ..missing(subject, detail, remedy) }
}

impl Finding {
    /// With the commands of its remedy.
    pub(super) fn by(self, commands: &[&str]) -> Self {
        Self { commands: commands.iter().map(|command| (*command).to_owned()).collect(), ..self }
    }
}

fn cpu(environment: &Environment) -> Finding {
    let cpu = &environment.cpu;
    let mut parts = vec![cpu.model.clone()];
    match (cpu.physical_cores, cpu.logical_cores) {
        (Some(physical), Some(logical)) => parts.push(format!("{physical} cores, {logical} threads")),
        (None, Some(logical)) => parts.push(format!("{logical} threads")),
        _ => {}
    }
    let vectors = [(cpu.avx512f, "AVX-512"), (cpu.avx2, "AVX2")];
    parts.extend(vectors.iter().find(|vector| vector.0).map(|vector| vector.1.to_string()));
    parts.extend(environment.cpu_clock_hz.map(|hz| format!("{:.2} GHz now", hz / 1e9)));
    parts.extend(cpu.hypervisor.then(|| "virtual machine".to_string()));
    if let (Some(physical), Some(logical)) = (cpu.physical_cores, cpu.logical_cores)
        && logical > physical
    {
        parts.push("hyper-threads share a core, so that a program on one slows the other".into());
    }
    let allowed = environment.limits.cpus.len();
    if cpu.logical_cores.is_some_and(|logical| allowed > 0 && allowed < logical) {
        parts.push(format!("this process may use {allowed} of them"));
    }
    let Some(quota) = environment.limits.quota_cores else { return ok("CPU", parts.join(", ")) };
    parts.push(format!("the container may use {quota:.2} cores' time"));
    if let Some((times, seconds)) = environment.limits.stopped.filter(|(times, _)| *times > 0) {
        parts.push(format!("its quota has stopped it {times} times, for {seconds:.1} s in all"));
    }
    let remedy = "give the container whole CPUs (docker: --cpuset-cpus instead of --cpus): a quota stops steps midway";
    warning("CPU", parts.join(", "), Some(remedy))
}

fn memory(environment: &Environment) -> Finding {
    let memory = &environment.memory;
    let Some(total) = memory.total_bytes else {
        return warning("memory", "/proc/meminfo does not give its size", None);
    };
    let mut detail = gibibytes(total);
    if let Some(available) = memory.available_bytes {
        detail += &format!(", {} available", gibibytes(available));
    }
    if let Some(limit) = environment.limits.memory_limit_bytes.filter(|limit| *limit < total) {
        detail += &format!(", the container may use {}", gibibytes(limit));
    }
    ok("memory", detail)
}

fn governor(environment: &Environment) -> Finding {
    let subject = "frequency governor";
    let cpu = &environment.cpu;
    let turbo = match cpu.turbo {
        Some(true) => ", turbo on",
        Some(false) => ", turbo off",
        None => "",
    };
    match cpu.governor.as_deref() {
        None => ok(subject, "the kernel shows none here; the host sets the clock"),
        Some("performance") => ok(subject, format!("performance{turbo}")),
        Some(other) => {
            let detail = format!("{other}{turbo}: the CPU's clock follows the load");
            let command = "sudo cpupower frequency-set -g performance";
            warning(subject, detail, Some(command)).by(&[command])
        }
    }
}

fn load(environment: &Environment) -> Finding {
    let subject = "load";
    let Some([minute, ..]) = environment.load_average else {
        return ok(subject, "/proc/loadavg does not give it");
    };
    let cores = environment.cpu.logical_cores.unwrap_or(1) as f64;
    let detail = format!("{minute:.2} processes on average over the last minute");
    // Half the cores busy with something else leaves a CPU measurement no quiet neighbour.
    if minute > cores / 2.0 {
        warning(subject, detail, Some("end what else runs on this machine, or expect noise in CPU step times"))
    } else {
        ok(subject, detail)
    }
}

fn counters(environment: &Environment) -> Finding {
    let subject = "performance counters";
    let counters = &environment.counters;
    if counters.cycles && counters.instructions {
        let there = "cycles and instructions can be counted";
        if counters.lacking.is_empty() {
            return ok(subject, format!("{there}, and so can cache and branch events"));
        }
        let named = |lacking: &Lacking| format!("{} ({})", lacking.name, lacking.why);
        let named: Vec<String> = counters.lacking.iter().map(named).collect();
        let detail = format!("{there}; these cannot, so their columns are null: {}", named.join(", "));
        let remedy = "jumps are still distinguished from a slow clock; for the others measure on hardware, or have the host pass all of its counters on";
        return missing(subject, detail, Some(remedy));
    }
    let why = counters.refused.as_deref().unwrap_or("they were not asked");
    let level = counters.paranoid.map(|level| format!(" (kernel.perf_event_paranoid is {level})")).unwrap_or_default();
    let rest = "page faults, context switches and processor time are counted all the same";
    let remedy = if counters.forbidden {
        "sudo sysctl kernel.perf_event_paranoid=1; in a container also --cap-add PERFMON"
    } else {
        "measure on hardware, or have the host pass its counters on (KVM: -cpu host,pmu=on)"
    };
    let remedy = counters.refused.is_some().then_some(remedy);
    let found = missing(subject, format!("cycles cannot be counted: {why}{level}; {rest}"), remedy);
    if counters.forbidden { found.by(&["sudo sysctl kernel.perf_event_paranoid=1"]) } else { found }
}

fn driver(evidence: &Evidence) -> Finding {
    let subject = "GPU driver";
    let found = evidence.driver.as_ref().map(|(path, cuda)| {
        let version = evidence.environment.driver.version.as_deref().unwrap_or("of unknown version");
        let cuda = cuda.map_or("unknown".to_string(), |(major, minor)| format!("{major}.{minor}"));
        format!("{version}, runs CUDA up to {cuda} ({path})")
    });
    match (&evidence.driver_refusal, found) {
        (None, None) => without_driver(&evidence.environment),
        (None, Some(detail)) => ok(subject, detail),
        (Some(Refusal { what, remedy, commands }), found) => {
            let detail = found.map_or(format!("installed, but {what}"), |found| format!("{found}; {what}"));
            warning(subject, detail, Some(remedy)).by(commands)
        }
    }
}

/// A container has the driver of its host, and WSL that of Windows.
fn without_driver(environment: &Environment) -> Finding {
    let absent = |remedy| missing("GPU driver", "libcuda.so.1 was not found", remedy);
    let has = |text: &Option<String>, word: &str| text.as_ref().is_some_and(|text| text.to_lowercase().contains(word));
    if environment.gpus.is_empty() {
        return absent(None);
    }
    if environment.container.is_some() {
        return absent(Some("start the container with the GPUs of its host (docker: --gpus all; apptainer: --nv)"));
    }
    if has(&environment.kernel, "microsoft") {
        return absent(Some("install the NVIDIA driver on Windows, not within WSL: https://www.nvidia.com/drivers"));
    }
    let found = absent(Some("install the NVIDIA driver: https://www.nvidia.com/drivers"));
    if !has(&environment.os, "ubuntu") {
        return found;
    }
    found.by(&[
        "sudo apt-get update",
        "sudo apt-get install --yes ubuntu-drivers-common",
        "sudo ubuntu-drivers install --gpgpu",
        "sudo reboot",
    ])
}

fn nvml(evidence: &Evidence) -> Finding {
    match &evidence.nvml_silent {
        None => {
            let version = evidence.environment.driver.nvml_version.as_deref().unwrap_or("of unknown version");
            ok("NVML", version)
        }
        Some(why) => missing("NVML", format!("{why}; clocks, power and temperature of a GPU will be null"), None),
    }
}

fn gpus(evidence: &Evidence) -> Vec<Finding> {
    let gpus = &evidence.environment.gpus;
    if gpus.is_empty() {
        return vec![missing("GPU", "none by NVIDIA; batchstep measures the CPU here", None)];
    }
    let both = |(index, facts): (usize, &GpuFacts)| [gpu(index, facts), pcie(index, &facts.link)];
    gpus.iter().enumerate().flat_map(both).collect()
}

fn gpu(index: usize, facts: &GpuFacts) -> Finding {
    let subject = format!("GPU {index}");
    let mut parts = vec![facts.name.clone()];
    parts.extend(facts.compute_capability.as_ref().map(|at| format!("compute capability {at}")));
    parts.extend(facts.memory_bytes.map(gibibytes));
    parts.extend(facts.power_limit_w.map(|watts| format!("{watts:.0} W at most")));
    parts.extend(facts.address.clone());
    if facts.mig == Some(true) {
        let remedy = "measure on a whole GPU: instances of one GPU share its clocks, its power and its link";
        return warning(subject, format!("{}, cut into instances (MIG)", parts.join(", ")), Some(remedy));
    }
    if facts.compute_capability.as_deref().and_then(version).is_some_and(|at| at < OLDEST) {
        let (major, minor) = OLDEST;
        let what = format!(
            "{}; it is older than {major}.{minor}, the oldest that the engine `cudnn` runs on",
            parts.join(", ")
        );
        return warning(subject, what, Some("use the engine `torch` with a PyTorch that supports this GPU"));
    }
    ok(subject, parts.join(", "))
}

/// `7.5` as (7, 5).
fn version(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn pcie(index: usize, link: &Link) -> Finding {
    let subject = format!("PCIe link of GPU {index}");
    let text = |generation: Option<u32>, width: Option<u32>| {
        let parts =
            [generation.map(|generation| format!("PCIe {generation}.0")), width.map(|width| format!("x{width}"))];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { "unknown".to_owned() } else { parts.join(" ") }
    };
    if link.is_unknown() {
        return missing(subject, "neither NVML nor sysfs reports it; its columns will be null", None);
    }
    let (now, most) = (text(link.generation, link.width), text(link.generation_max, link.width_max));
    let detail = format!("{now} now, {most} at most (idle links drop their generation)");
    // A link that idles keeps its lanes: fewer of them are a matter of the slot, the riser or the seat of the card.
    let remedy = "move the card to a slot with all its lanes, or leave it where it is: the width is recorded";
    let is_narrow = link.width.zip(link.width_max).is_some_and(|(now, most)| now < most);
    if is_narrow { warning(subject, detail, Some(remedy)) } else { ok(subject, detail) }
}

/// The libraries of the GPU engine. Without a driver they are of no use, and one line says so. With one, the missing
/// libraries share one line, with the one command that installs them all.
fn libraries(evidence: &Evidence) -> Vec<Finding> {
    let subject = "GPU libraries";
    let (absent, there): (Vec<&LibraryReport>, Vec<&LibraryReport>) =
        evidence.environment.libraries.iter().partition(|found| found.problem.is_some() && found.path.is_none());
    let mut findings: Vec<Finding> = there.into_iter().map(|found| library(found, evidence)).collect();
    if absent.is_empty() {
        return findings;
    }
    findings.push(if evidence.driver.is_none() {
        ok(subject, "not needed: there is no NVIDIA driver to use them with")
    } else {
        let mut packages: Vec<String> = Vec::new();
        let all = absent.iter().map(|found| remedy(found, evidence).trim_start_matches(PIP).to_owned());
        all.for_each(|package| packages.extend((!packages.contains(&package)).then_some(package)));
        let names: Vec<&str> = absent.iter().map(|found| found.library.name()).collect();
        let detail = format!("not found: {}", names.join(", "));
        let command = format!("{PIP}{}", packages.join(" "));
        installed(missing(subject, detail, Some(&command)), evidence, &command)
    });
    findings
}

const PIP: &str = "pip install ";

/// pip needs an environment of its own on most systems, and an active one is where libraries are looked for.
fn installed(finding: Finding, evidence: &Evidence, command: &str) -> Finding {
    match evidence.in_environment {
        true => finding.by(&[command]),
        false => finding.by(&["python3 -m venv ~/batchstep-env", ". ~/batchstep-env/bin/activate", command]),
    }
}

/// The command that installs a library for the newest CUDA that the driver runs.
fn remedy(found: &LibraryReport, evidence: &Evidence) -> String {
    let newest = evidence.driver.as_ref().and_then(|driver| driver.1);
    found.library.remedy(newest.map(|version| version.0))
}

fn library(found: &LibraryReport, evidence: &Evidence) -> Finding {
    let subject = found.library.name();
    let remedy = remedy(found, evidence);
    let path = found.path.as_ref().map(|path| path.display().to_string());
    match (&found.problem, path) {
        (None, path) => {
            let version = found.version.as_deref().unwrap_or("of unknown version");
            let origin = found.origin.as_deref().unwrap_or("unknown");
            let passed = |PassedOver { path, why }: &PassedOver| format!("; passed over: {}: {why}", path.display());
            let passed: String = found.passed_over.iter().map(passed).collect();
            ok(subject, format!("{version}, {} (from {origin}){passed}", path.unwrap_or_default()))
        }
        (Some(problem), Some(path)) => {
            installed(warning(subject, format!("{path}: {problem}"), Some(&remedy)), evidence, &remedy)
        }
        (Some(problem), None) => installed(missing(subject, problem, Some(&remedy)), evidence, &remedy),
    }
}

fn pytorch(evidence: &Evidence) -> Finding {
    let Some(python) = &evidence.python else {
        let why = evidence.python_silent.as_deref().unwrap_or("python3 was not found");
        let remedy = "install Python 3.10 or later, or name one in BATCHSTEP_PYTHON";
        return missing("PyTorch", why, Some(remedy));
    };
    let Some(version) = &python.torch else {
        let detail = format!(
            "not installed in Python {}; on a GPU its steps are measured first, and side-by-side runs need it",
            python.version
        );
        let command = "pip install torch";
        return installed(missing("PyTorch", detail, Some(command)), evidence, command);
    };
    let cuda = python.torch_cuda.as_ref().map_or("CPU only".to_string(), |cuda| format!("CUDA {cuda}"));
    let found = format!("{version}, {cuda} (Python {}, {})", python.version, python.executable.display());
    match &evidence.pytorch_gpu {
        None => ok("PyTorch", found),
        Some(Ok(gpu)) => ok("PyTorch", format!("{found}, sees {gpu}")),
        Some(Err(why)) => {
            let why = why.lines().next().unwrap_or_default();
            let remedy = "install the PyTorch for this driver's CUDA: https://pytorch.org/get-started/locally";
            warning("PyTorch", format!("{found}; it cannot use the GPU: {why}"), Some(remedy))
        }
    }
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}
