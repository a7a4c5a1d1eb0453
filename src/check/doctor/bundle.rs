//! `batchstep doctor --bundle`: one small file with everything that a maintainer needs to understand a failure on another
//! machine, and with nothing that names a person or a place.

use serde_json::{Value, json};

use super::{Evidence, Private, judge};

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

/// The document as JSON, with a newline at its end: versions, what was found, what refuses and why, the first check that fails, as `tried` says it;
/// what was wrong when a step was last checked before it was timed; and how the engines of the last run of several compared, one sentence a line.
pub fn bundle(
    evidence: &Evidence,
    tried: &Value,
    last_failure: Option<&str>,
    last_comparison: Option<&str>,
    private: &Private,
    read: &dyn Fn(&str) -> Option<String>,
) -> String {
    let Evidence { environment, driver, driver_refusal, nvml_silent, python, python_silent, pytorch_gpu, .. } =
        evidence;
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
        "gpu_engine": tried["gpu_engine"],
        "checks": tried["checks"],
        "refused_algorithms": tried["refused_algorithms"],
        "last_failed_qualification": last_failure,
        "last_comparison": last_comparison.map(|text| text.lines().collect::<Vec<_>>()),
        "findings": judge(evidence),
    });
    private.hide_in("", &mut document);
    document["variables"] = variables.into();
    format!("{document:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let refusal = "forward convolution 1x8x6x6: eng1 was refused when it was executed: NOT_SUPPORTED";
        let tried = json!({
            "gpu_engine": {"refused": "cuDNN: it does not load: /home/zaphod/lib/libz.so"},
            "checks": {"passed": 3, "first_failure": {"name": "conv2d 3x3", "workload": "..."}},
            "refused_algorithms": [refusal],
        });
        let compared = "batchstep 0.1.0\nThe first losses of cudnn and torch differ.";
        let private = Private::new(["zaphod".to_owned(), "lab7".to_owned()]);
        let variables = |name: &str| match name {
            "LD_LIBRARY_PATH" => Some("/scratch/lab7/cuda:/usr/lib".to_owned()),
            "VIRTUAL_ENV" => Some("/home/zaphod/my heart of gold".to_owned()),
            "CUDA_VISIBLE_DEVICES" => Some("GPU-8f3c6f2a-1b2c-3d4e-5f60-718293a4b5c6".to_owned()),
            _ => None,
        };
        let text = bundle(&evidence, &tried, Some("mnist_cnn: off by 0.5"), Some(compared), &private, &variables);
        for secret in ["zaphod", "lab7", "/home", "/scratch", "gold", "8f3c6f2a"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
        let document: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["checks"]["first_failure"]["name"], "conv2d 3x3");
        assert_eq!(document["checks"]["passed"], 3);
        assert_eq!(document["refused_algorithms"][0], refusal);
        let path = &document["environment"]["libraries"][0]["path"];
        assert_eq!(path, "<private>/lib/python3.12/site-packages/nvidia/cudnn/lib/libcudnn.so.9");
        assert_eq!(document["variables"]["LD_LIBRARY_PATH"], "<private>/cuda:/usr/lib");
        assert_eq!(document["last_failed_qualification"], "mnist_cnn: off by 0.5");
        assert_eq!(document["last_comparison"][1], "The first losses of cudnn and torch differ.");
        assert_eq!(document["gpu_engine"]["refused"], "cuDNN: it does not load: <private>/lib/libz.so");
    }
}
