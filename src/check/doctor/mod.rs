//! `batchstep doctor`: what this machine has, what it lacks, and the command that installs each missing part.
//!
//! Gathering and judging are separate: [`Evidence::gather`] examines the machine, [`judge`] is a pure function of the evidence,
//! and [`render`] writes the findings for a person.

mod bundle;
mod fix;
mod judge;
mod private;
mod render;
mod topology;
mod tried;

use serde::Serialize;

use crate::device::cuda::driver;
use crate::device::cuda::libraries;
use crate::device::cuda::refusal::Refusal;
use crate::device::environment::Environment;
use crate::device::nvml::{self, GpuFacts};
use crate::device::python::{self, Python};
use crate::device::root::FilesystemRoot;
use crate::engine::torch;
use crate::settings::named;
pub use bundle::bundle;
pub use fix::render_fix;
pub use judge::judge;
pub use private::Private;
pub use render::render;
pub use topology::{Examined, examine_topology, render_topology};
pub use tried::{not_tried, try_by, try_here};

named! {
    #[derive(Serialize)]
    #[serde(rename_all = "lowercase")]
    Status {
        Ok = "ok",
        /// It is not there. What needs it cannot be done; the rest can.
        Missing = "missing",
        /// It is there, and something about it touches results.
        Warning = "warning",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// `CPU`, `cuDNN`, `PCIe link of GPU 0`.
    pub subject: String,
    pub status: Status,
    /// What was found, in one line.
    pub detail: String,
    /// The command, or the action, that fixes it.
    pub remedy: Option<String>,
    /// The remedy as commands, in their order; none where it takes a person.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
}

/// What was found, before anyone judged it.
#[derive(Clone, Debug, Default)]
pub struct Evidence {
    /// With its libraries, whether there is a GPU or not.
    pub environment: Environment,
    /// The driver's library: its path, and the newest CUDA that it runs.
    pub driver: Option<(String, Option<(u32, u32)>)>,
    /// Why it gives no GPU, where it refuses.
    pub driver_refusal: Option<Refusal>,
    /// Why NVML does not answer; `None` where it does.
    pub nvml_silent: Option<String>,
    pub python: Option<Python>,
    /// Why Python does not answer; `None` where it does, or was not asked.
    pub python_silent: Option<String>,
    /// The GPU that PyTorch sees, or why it sees none; `None`: not asked, since there is no GPU or no PyTorch.
    pub pytorch_gpu: Option<Result<String, String>>,
    /// A Python environment is active: its packages are where libraries are looked for.
    pub in_environment: bool,
}

impl Evidence {
    /// Asks the machine. Python starts while the libraries load, since both take a while.
    ///
    /// Never fails; on a machine without a GPU it takes about as long as `python3` takes to start, and on one with a GPU and
    /// PyTorch, the seconds that PyTorch takes.
    pub fn gather() -> Self {
        let python = std::thread::spawn(|| python::python().cloned().map_err(str::to_owned));
        let mut environment = Environment::ask(&FilesystemRoot::system());
        if environment.gpus.is_empty() {
            environment.gpus = driver::gpus().into_iter().map(GpuFacts::from).collect();
        }
        environment.libraries = libraries::load().found().to_vec();
        let driver = driver::driver().map(|driver| {
            let path = driver.path.as_ref().map_or("libcuda.so.1".into(), |path| path.display().to_string());
            (path, driver.cuda_version())
        });
        let python = python.join().unwrap_or_else(|_| Err("it could not be asked".to_owned()));
        let (python, python_silent) = python.map_or_else(|why| (None, Some(why)), |python| (Some(python), None));
        let asked = python.as_ref().is_some_and(|python| python.torch.is_some()) && !environment.gpus.is_empty();
        let pytorch_gpu = asked.then(|| torch::gpu().map_err(|error| error.to_string()));
        let in_environment = ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().any(|name| std::env::var_os(name).is_some());
        let (driver_refusal, nvml_silent) = (driver::refusal(), nvml::available().err().map(str::to_string));
        Self { environment, driver, driver_refusal, nvml_silent, python, python_silent, pytorch_gpu, in_environment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::cuda::libraries::{Libraries, Search};
    use crate::device::root::tests::planted;

    fn examine_planted(files: &[(&str, &str)]) -> Vec<Finding> {
        let (guard, root) = planted(files);
        let mut environment = Environment::read(&root);
        environment.libraries = Libraries::open(&Search::new(guard.path(), &|_| None), None).found().to_vec();
        judge(&Evidence { environment, nvml_silent: Some("it was not asked".into()), ..Evidence::default() })
    }

    #[test]
    fn an_empty_machine_is_examined_without_failing() {
        let findings = examine_planted(&[]);
        let status = |subject: &str| findings.iter().find(|finding| finding.subject == subject).map(|f| f.status);
        assert_eq!(status("CPU"), Some(Status::Ok));
        assert!(serde_json::to_string(&findings).unwrap().contains(r#""status":"ok""#));
        assert_eq!(status("GPU driver"), Some(Status::Missing));
        assert_eq!((status("cuDNN"), status("GPU libraries")), (None, Some(Status::Ok)));
        assert_eq!(status("GPU"), Some(Status::Missing));
    }

    #[test]
    fn a_library_that_does_not_load_is_reported_with_its_path() {
        let findings = examine_planted(&[("usr/local/cuda/lib64/libcudnn.so.9", "")]);
        let cudnn = findings.iter().find(|finding| finding.subject == "cuDNN").unwrap();
        assert_eq!(cudnn.status, Status::Warning);
        assert!(cudnn.detail.contains("usr/local/cuda/lib64/libcudnn.so.9: it does not load"), "{}", cudnn.detail);
    }
}
