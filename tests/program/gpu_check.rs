//! `scripts/gpu-check` with a CPU instead of the GPU.

use std::path::Path;
use std::process::{Command, Output};

use crate::needs;
use crate::support::{Folder, read, stderr, stdout};

/// The script in a folder; `None` where there is no Python to run it.
fn gpu_check(folder: &Path, arguments: &[&str]) -> Option<Output> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/gpu-check");
    let mut command = Command::new("python3");
    command.arg(script).arg("run").args(["--device", "cpu", "--binary", env!("CARGO_BIN_EXE_batchstep")]);
    let output = command.args(arguments).env("OUT", folder.join("out")).current_dir(folder).output();
    output.inspect_err(|error| needs::missing("python", format!("python3: {error}"))).ok()
}

#[test]
#[ignore = "slow"]
fn a_part_that_fails_is_kept_and_does_not_stop_the_next() {
    let folder = Folder::new();
    // There is no GPU engine on a CPU; the synthetic experiment keeps its own.
    let parts = ["--parts", "quickstart,synthetic", "--engine", "cudnn", "--work", "work", "--box", "synthetic=300"];
    let Some(output) = gpu_check(&folder, &parts) else { return };
    let (text, work) = (stdout(&output), folder.join("work"));
    assert_eq!(output.status.code(), Some(2), "{text}{}", stderr(&output));
    let line = |start: &str| text.lines().rev().any(|line| line.starts_with(start));
    assert!(line("failed    quickstart") && line("done      synthetic"), "{text}");
    let failure = read(&work, "00-quickstart.stderr");
    assert!(failure.contains("GPU"), "{failure}");
    let table = read(&work, "01-synthetic.stdout");
    assert!(table.contains("4 jumps after 16, 32, 48 and 64"), "{table}");
    assert!(work.join("synthetic/steps.parquet").is_file());
    let size = folder.join("out/gpu-check.tar.xz").metadata().expect("an archive").len();
    assert!(size > 1000 && size < 16 << 20, "{size} bytes");
    let summary = read(&folder, "out/summary.txt");
    assert!(text.ends_with(&summary), "{summary}");
}

#[test]
fn parts_and_boxes_that_do_not_exist_are_refused_at_once() {
    let folder = Folder::new();
    let cases = [(["--parts", "vgg61"], "`vgg61` is neither"), (["--box", "doctor=soon"], "--box doctor=soon")];
    for (arguments, message) in cases {
        let Some(output) = gpu_check(&folder, &arguments) else { return };
        assert!(!output.status.success() && stderr(&output).contains(message), "{}", stderr(&output));
    }
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 0);
}
