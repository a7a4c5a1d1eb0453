//! A machine whose installed NVIDIA driver refuses, and one without a GPU: work for a GPU does not run on another
//! device.

use std::path::Path;
use std::process::Command;

use crate::needs::shared_library;
use crate::support::{Folder, PIPELINE, TRAINING, batchstep, exits, parsed, read, stderr, stdout, write};

const SPEC: &str = "version = 1\nname = \"tiny\"\n[model]\nname = \"mlp\"\n[sweep]\nbatch_size = [1, 2]\n\
                    [measure]\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 2\ntime_limit = \"1min\"\n";

const NOT_HERE: &str = "there is no NVIDIA GPU here: `precision = \"tf32\"` of [train] is not for the CPU";

/// A driver that answers only `cuInit`, with a code, and the two calls that need no GPU.
fn driver(folder: &Path, code: i32) -> bool {
    let source = format!(
        "int cuInit(unsigned flags) {{ return {code}; }}\n\
         int cuDeviceGetCount(int *count) {{ *count = 0; return {code}; }}\n\
         int cuDriverGetVersion(int *version) {{ *version = 12080; return 0; }}\n"
    );
    shared_library(&source, &folder.join("driver/libcuda.so.1"))
}

fn program(folder: &Path, arguments: &[&str]) -> Command {
    let mut program = batchstep(folder);
    program.args(arguments).env("LD_LIBRARY_PATH", folder.join("driver"));
    program
}

fn runs_on_the_cpu(folder: &Path, arguments: &[&str]) {
    let output = program(folder, arguments).output().expect("the program starts");
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
}

#[test]
#[ignore = "slow"]
fn a_driver_that_refuses_ends_the_run_with_its_remedy_unless_the_cpu_is_asked_for() {
    let folder = Folder::with("tiny.toml", SPEC);
    // The fabric manager is not running; the kernel module has another version; after a suspend.
    for (code, remedy) in [(802, "nvidia-fabricmanager"), (803, "reboot"), (999, "modprobe nvidia_uvm")] {
        if !driver(&folder, code) {
            return;
        }
        let said = stderr(&exits(2, &mut program(&folder, &["run", "tiny.toml"])));
        assert!(
            said.contains(&format!(", {code})")) && said.contains(remedy) && said.contains("--device cpu"),
            "{said}"
        );
        assert!(!folder.join("results").exists(), "{code}: nothing was measured");
        let doctor = stdout(&exits(0, &mut program(&folder, &["doctor"])));
        let line = doctor.lines().find(|line| line.contains("GPU driver")).unwrap_or_default();
        assert!(line.starts_with("warning") && line.contains(&format!(", {code})")), "{doctor}");
        assert!(doctor.contains(remedy), "{doctor}");
    }
    runs_on_the_cpu(&folder, &["run", "tiny.toml", "--device", "cpu"]);
    assert!(folder.join("results/tiny/steps.parquet").is_file());
}

#[test]
#[ignore = "slow"]
fn without_a_gpu_a_spec_that_names_tf32_is_refused_and_one_that_does_not_runs_on_the_cpu() {
    let folder = Folder::new();
    if !driver(&folder, 100) {
        return;
    }
    write(&folder, "tiny.toml", SPEC);
    write(&folder, "tf32.toml", &format!("{}[train]\nprecision = \"tf32\"\n", SPEC.replace("tiny", "tf32")));
    let said = stderr(&exits(2, &mut program(&folder, &["run", "tf32.toml"])));
    assert!(said.contains(NOT_HERE) && said.contains("run with `--device cpu`"), "{said}");
    for arguments in [&["run", "tiny.toml"][..], &["run", "tf32.toml", "--device", "cpu"]] {
        runs_on_the_cpu(&folder, arguments);
    }
    // The same holds for studies that a loader feeds.
    for (name, spec) in [("training", TRAINING), ("pipeline", PIPELINE)] {
        let file = format!("{name}.toml");
        write(&folder, &file, &spec.replace("\"fp32\"", "\"tf32\""));
        let said = stderr(&exits(2, &mut program(&folder, &["run", &file])));
        assert!(said.contains(NOT_HERE), "{name}: {said}");
        assert!(said.contains("run with `--device cpu`") && !folder.join("results").join(name).exists(), "{said}");
        // With several values the other values run, and the end says what is missing.
        write(&folder, &file, &spec.replace("\"fp32\"", "[\"fp32\", \"tf32\"]"));
        let said = stderr(&exits(1, &mut program(&folder, &["run", &file])));
        assert!(said.contains("settings that nothing here supports are left out: `precision = \"tf32\"`"), "{said}");
        let stored = read(&folder, format!("results/{name}/spec.toml"));
        assert!(stored.contains("precision = \"fp32\"\n"), "{stored}");
    }
}

#[test]
fn driver_fixes_are_printed_as_commands_and_the_bundle_has_no_private_paths() {
    let folder = Folder::new();
    if !driver(&folder, 802) {
        return;
    }
    let fix = stdout(&exits(0, &mut program(&folder, &["doctor", "--fix"])));
    let (_, rest) = fix.split_once("# 1. GPU driver: ").expect("the driver comes first");
    let command = rest.lines().nth(1).unwrap_or_default();
    assert_eq!(command, "sudo systemctl enable --now nvidia-fabricmanager", "{fix}");
    assert!(fix.contains("look again before going on.\nbatchstep doctor --fix\n"), "{fix}");
    assert!(fix.lines().all(|line| !line.starts_with(' ')), "a shell script: {fix}");

    let output = exits(0, &mut program(&folder, &["doctor", "--bundle"]));
    assert!(stdout(&output).starts_with("batchstep-bundle.json: "), "{}", stdout(&output));
    let text = read(&folder, "batchstep-bundle.json");
    assert!(text.len() < 100_000, "{} bytes", text.len());
    assert!(!text.contains(&folder.display().to_string()), "{text}");
    let document = parsed(&text);
    assert_eq!(document["driver"][0], "<private>/libcuda.so.1");
    assert!(document["driver_refuses"]["what"].as_str().is_some_and(|what| what.contains("802")), "{text}");
    assert!(document["gpu_engine"]["refused"].as_str().is_some_and(|why| why.contains("802")), "{text}");
    assert!(document["checks"]["why_not"].is_string(), "{text}");
    assert!(document["environment"]["batchstep"].is_string() && document["findings"].is_array(), "{text}");
}
