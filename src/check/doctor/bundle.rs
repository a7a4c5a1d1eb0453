//! `batchstep doctor --bundle`: one small file with everything that a maintainer needs to understand a failure on another
//! machine, and with nothing that names a person or a place.

use serde_json::{Value, json};

use super::{Checked, Evidence, Finding, Private, Tried};

/// The variables that decide which GPU, libraries and Python are taken.
const VARIABLES: [&str; 12] = [
    "BATCHSTEP_PYTHON",
    "CONDA_PREFIX",
    "CUDA_DEVICE_ORDER",
    "CUDA_HOME",
    "CUDA_LAUNCH_BLOCKING",
    "CUDA_MPS_PIPE_DIRECTORY",
    "CUDA_VISIBLE_DEVICES",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NVIDIA_DRIVER_CAPABILITIES",
    "NVIDIA_VISIBLE_DEVICES",
    "VIRTUAL_ENV",
];

/// The document: versions, what was found, what refuses and why, the first check that fails.
pub struct Bundle<'a> {
    pub evidence: &'a Evidence,
    pub findings: &'a [Finding],
    pub tried: &'a Tried,
    /// What was wrong when a step was last checked before it was timed.
    pub last_failure: Option<String>,
    /// How the engines of the last run of several compared, one sentence a line.
    pub last_comparison: Option<String>,
}

impl Bundle<'_> {
    /// As JSON, with a newline at its end.
    pub fn to_json(&self, private: &Private, read: &dyn Fn(&str) -> Option<String>) -> String {
        let Evidence { environment, driver, driver_refusal, nvml_silent, python, python_silent, pytorch_gpu, .. } =
            self.evidence;
        let checked = match &self.tried.checked {
            Checked::Not(why) => json!({"why_not": why}),
            Checked::Passed(count) => json!({"passed": count}),
            Checked::Failed { after, check } => json!({"passed": after, "first_failure": check}),
        };
        let variables: serde_json::Map<String, Value> = VARIABLES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), private.hide_paths(&read(name)?).into())))
            .collect();
        let mut document = json!({
            "version": 1,
            "environment": environment,
            "driver": driver,
            "driver_refuses": driver_refusal.as_ref().map(|refusal| json!({"what": refusal.what, "remedy": refusal.remedy})),
            "nvml_silent": nvml_silent,
            "python": python,
            "python_silent": python_silent,
            "pytorch_gpu": pytorch_gpu.as_ref().map(|answer| answer.as_ref().map_or_else(|why| format!("refused: {why}"), Clone::clone)),
            "gpu_engine": match &self.tried.engine {
                Ok(software) => json!({"opens": software}),
                Err(why) => json!({"refused": why}),
            },
            "checks": checked,
            "refused_algorithms": self.tried.refusals,
            "last_failed_qualification": self.last_failure,
            "last_comparison": self.last_comparison.as_ref().map(|text| text.lines().collect::<Vec<_>>()),
            "findings": self.findings,
        });
        private.hide_in(&mut document);
        document["variables"] = variables.into();
        format!("{document:#}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::doctor::judge;
    use crate::device::cuda::libraries::{Library, LibraryReport};
    use crate::device::environment::Environment;

    #[test]
    fn a_bundle_contains_the_failures_and_nothing_private() {
        let library = LibraryReport {
            library: Library::Cudnn,
            path: Some("/home/zaphod/envs/x/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9".into()),
            origin: Some("$VIRTUAL_ENV".into()),
            version: Some("9.19.0".into()),
            problem: Some("it does not load: /home/zaphod/lib/libz.so: no such file".into()),
            passed_over: Vec::new(),
        };
        let environment = Environment { libraries: vec![library], ..Environment::default() };
        let driver = Some(("/usr/lib64/libcuda.so.1".to_owned(), Some((12, 8))));
        let evidence = Evidence { environment, driver, ..Evidence::default() };
        let findings = judge(&evidence);
        let check = json!({"name": "conv2d 3x3", "workload": "..."});
        let tried = Tried {
            engine: Err("cuDNN: it does not load: /home/zaphod/lib/libz.so".into()),
            checked: Checked::Failed { after: 3, check },
            refusals: vec!["forward convolution 1x8x6x6: eng1 was refused when it was executed: NOT_SUPPORTED".into()],
        };
        let bundle = Bundle {
            evidence: &evidence,
            findings: &findings,
            tried: &tried,
            last_failure: Some("mnist_cnn: off by 0.5".into()),
            last_comparison: Some("batchstep 0.1.0\nThe first losses of cudnn and torch differ.".into()),
        };
        let private = Private::new(["zaphod".to_owned(), "lab7".to_owned()]);
        let variables = |name: &str| match name {
            "LD_LIBRARY_PATH" => Some("/scratch/lab7/cuda:/usr/lib".to_owned()),
            "VIRTUAL_ENV" => Some("/home/zaphod/my heart of gold".to_owned()),
            "CUDA_VISIBLE_DEVICES" => Some("GPU-8f3c6f2a-1b2c-3d4e-5f60-718293a4b5c6".to_owned()),
            _ => None,
        };
        let text = bundle.to_json(&private, &variables);
        for secret in ["zaphod", "lab7", "/home", "/scratch", "gold", "8f3c6f2a"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["checks"]["first_failure"]["name"], "conv2d 3x3");
        assert_eq!(document["checks"]["passed"], 3);
        assert!(document["refused_algorithms"][0].as_str().is_some_and(|one| one.contains("NOT_SUPPORTED")), "{text}");
        let path = &document["environment"]["libraries"][0]["path"];
        assert_eq!(path, "<private>/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
        assert_eq!(document["variables"]["LD_LIBRARY_PATH"], "<private>/cuda:/usr/lib");
        assert_eq!(document["last_failed_qualification"], "mnist_cnn: off by 0.5");
        assert_eq!(document["last_comparison"][1], "The first losses of cudnn and torch differ.");
        assert_eq!(document["gpu_engine"]["refused"], "cuDNN: it does not load: <private>/lib/libz.so");
    }
}
