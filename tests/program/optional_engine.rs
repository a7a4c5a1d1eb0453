//! An engine that may be missing, and the experiment that needs it: `experiments/why_sixteen.toml`.

use crate::support::{Folder, batchstep, ends, experiment, has, read, refused, run, stderr, stdout, tidy, write};

const SPEC: &str = r#"
version = 1
name = "two"
[model]
name = "mlp"
[sweep]
batch_size = [4, 8]
[train]
precision = "fp32"
loss = "mean_squared_error"
[engine]
name = ["cpu", "torch"]
optional = ["torch"]
winograd = ["any", "never"]
compile = ["none", "default"]
[measure]
blocks = { min = 2, max = 2 }
decide = "cells"
steps_per_visit = 1
seed = 1
"#;

/// The run uses the engines that are available, and can be resumed with them.
#[test]
#[ignore = "slow"]
fn an_optional_engine_that_is_missing_is_left_out_with_a_notice() {
    let folder = Folder::with("two.toml", SPEC);
    let without_python = |arguments: &[&str]| {
        let mut command = batchstep(&folder);
        command.env("BATCHSTEP_PYTHON", "/nonexistent/python3").args(arguments).output().expect("the program starts")
    };
    let output = without_python(&["run", "two.toml", "--out", "run"]);
    let text = stderr(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{text}");
    has(&text, &["the optional engine `torch` is left out", "/nonexistent/python3"]);
    let spec = read(&folder, "run/spec.toml");
    assert!(spec.contains("name = \"cpu\"") && !spec.contains("torch") && !spec.contains("optional"), "{spec}");
    let again = without_python(&["run", "two.toml", "--out", "run", "--resume"]);
    assert!(matches!(again.status.code(), Some(0 | 1)), "{}", stderr(&again));
    // What only PyTorch varies is left out with it: the stored spec is one that can be run.
    let again = without_python(&["run", "run/spec.toml", "--dry-run"]);
    assert!(again.status.code() == Some(0) && stdout(&again).contains("cells      4"), "{}", stderr(&again));
    let status = without_python(&["status", "run"]);
    assert_eq!(status.status.code(), Some(0), "{}", stderr(&status));
    // Without the word, its absence ends the run.
    write(&folder, "needed.toml", &SPEC.replace("optional = [\"torch\"]\n", ""));
    let output = without_python(&["run", "needed.toml", "--out", "needed"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    has(&stderr(&output), &["/nonexistent/python3", "help: ", "pip install torch"]);
    assert!(!folder.join("needed").exists());
}

/// A spec for a GPU runs the part that a CPU can run, says what it leaves out, and can be resumed like this.
#[test]
#[ignore = "slow"]
fn values_that_only_a_gpu_has_are_left_out_with_a_warning() {
    let folder = Folder::new();
    let spec = std::fs::read_to_string(experiment("gpu/pcie.toml")).expect("readable");
    let small = spec
        .replace("name = \"vgg16\"\ninput = [3, 224, 224]\nclasses = 1000", "name = \"mlp\"")
        .replace("optimizer = \"rmsprop\"", "optimizer = \"rmsprop\"\nloss = \"mean_squared_error\"")
        .replace("\"1..=70\"", "[1, 2]")
        .replace("smallest_jump = \"2%\"", "blocks = { min = 2, max = 2 }\ndecide = \"cells\"\nsteps_per_visit = 1");
    assert!(small.contains("name = \"mlp\"") && small.contains("steps_per_visit"), "{small}");
    write(&folder, "pcie.toml", &small);
    let text = stderr(&ends(1, &folder, &["run", "pcie.toml", "--device", "cpu", "--out", "run"]));
    assert!(text.contains("batchstep: left out: `data = \"pinned\"` applies only to GPUs"), "{text}");
    let tidy = tidy(&text);
    assert!(tidy.contains("warning: settings that nothing here supports are left out: `data = \"pinned\"`"), "{text}");
    assert!(tidy.contains("`data = \"prefetch\"`") && tidy.contains("help: run the spec on a device"), "{text}");
    let resolved = read(&folder, "run/spec.toml");
    assert!(resolved.contains("data = [\"resident\", \"pageable\"]"), "{resolved}");
    ends(1, &folder, &["run", "pcie.toml", "--device", "cpu", "--out", "run", "--resume"]);
    // If no value of an axis is left, the run is refused.
    write(&folder, "gpu.toml", &small.replace("[\"resident\", \"pageable\", \"pinned\", \"prefetch\"]", "\"pinned\""));
    refused(&folder, &["run", "gpu.toml", "--device", "cpu", "--out", "gpu"], &["applies only to GPUs"]);
}

/// 27 batch sizes under three settings on the GPU engine, and once with PyTorch.
#[test]
fn why_sixteen_is_planned_without_a_gpu_and_refused_where_it_cannot_run() {
    let folder = Folder::new();
    let spec = experiment("why_sixteen.toml");
    let planned = run(&folder, &["run", &spec, "--dry-run"]);
    let text = stdout(&planned);
    assert_eq!(planned.status.code(), Some(0), "{}", stderr(&planned));
    has(&text, &["winograd = [\"any\", \"never\", \"nonfused\"]", "cells      108"]);
    assert!(stderr(&planned).contains("the engine `torch` is optional"), "{}", stderr(&planned));
    let refused = run(&folder, &["run", &spec, "--device", "cpu", "--out", "run"]);
    let text = stderr(&refused);
    assert!(
        refused.status.code() == Some(2) && text.contains("`cudnn` runs on a GPU") && text.contains("help: "),
        "{text}"
    );
    assert!(!folder.join("run").exists());
}
