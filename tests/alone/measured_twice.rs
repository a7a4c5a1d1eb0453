//! Real time that is measured twice gives the same answer, and the true one. Nothing else may run during these steps.

use std::path::Path;
use std::process::{Command, Output};

use crate::needs;
use crate::support::{self, Folder, executable, jumps, stderr, stdout, write};

/// A process that replaces PyTorch. Its steps keep a core busy for 2 ms, plus 0.2 ms for each example, plus `JUMP_S`
/// beyond `AFTER` examples, all multiplied by `SLOWDOWN`; it reports the time that has really passed.
const PROCESS: &str = r#"#!/usr/bin/env python3
import json, os, sys, time

slowdown, batch = float(os.environ["SLOWDOWN"]), 0

def step():
    start = time.perf_counter()
    end = start + slowdown * (0.002 + 0.0002 * batch + (0.0015 if batch > 9 else 0.0))
    while time.perf_counter() < end:
        pass
    return {"step_s": time.perf_counter() - start, "loss": "1.0"}

for line in sys.stdin:
    request = json.loads(line)
    answer = {}
    if request["do"] == "open":
        answer = {"torch": "none", "device": "cpu", "device_name": None, "capability": None}
    elif request["do"] == "prepare":
        batch = request["batch_size"]
    elif request["do"] == "step":
        answer = step()
    print(json.dumps({"ok": answer}), flush=True)
"#;
const AFTER: f64 = 9.0;
const JUMP_S: f64 = 0.0015;

fn spec(name: &str) -> String {
    format!(
        "version = 1\nname = \"{name}\"\n[model]\nname = \"mlp\"\n[sweep]\nbatch_size = \"1..=16\"\n[train]\nprecision = \"fp32\"\n[engine]\nname = \"torch\"\n[measure]\nblocks = {{ min = 12, max = 12 }}\nsteps_per_visit = 3\n"
    )
}

fn batchstep(folder: &Path, slowdown: &str, arguments: &[&str]) -> Output {
    let mut command = support::batchstep(folder);
    command.args(arguments).env("SLOWDOWN", slowdown);
    command.env("BATCHSTEP_PYTHON", folder.join("process")).output().expect("it starts")
}

/// Measures a run and returns its jumps.
fn measure(folder: &Path, slowdown: &str, name: &str) -> Vec<[f64; 4]> {
    write(folder, &format!("{name}.toml"), &spec(name));
    let output = batchstep(folder, slowdown, &["run", &format!("{name}.toml"), "--device", "cpu"]);
    // 1: done, with a warning, such as visits that never became steady.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    jumps(folder, name)
}

/// The exit code and the text of a comparison that fails on a slower cell.
fn compare(folder: &Path, second: &str) -> (Option<i32>, String) {
    let arguments = ["compare", "results/a", second, "--margin", "10%", "--fail-on", "slower"];
    let output = batchstep(folder, "1", &arguments);
    (output.status.code(), stdout(&output))
}

/// Measures the same twice, and once with every step a quarter longer; reports differences from the truth.
fn measure_twice(folder: &Path) -> Result<(), needs::Failure> {
    let (a, b, slower) = (measure(folder, "1", "a"), measure(folder, "1", "b"), measure(folder, "1.25", "slower"));
    for (jumps, planted) in [(&a, JUMP_S), (&b, JUMP_S), (&slower, 1.25 * JUMP_S)] {
        // The interval holds the truth in 95 of 100 cases; its own width on either side is allowed for chance.
        let right = |[after, size, low, high]: &[f64; 4]| {
            *after == AFTER && (size - planted).abs() <= (high - low).max(0.02 * planted)
        };
        if jumps.len() != 1 || !right(&jumps[0]) {
            return Err(format!("one jump of {planted} s after {AFTER} was planted: {jumps:?}").into());
        }
    }
    let (code, text) = compare(folder, "results/b");
    if code != Some(0) || !text.contains("16 SAME, 0 DIFFERS, 0 AMBIGUOUS") {
        return Err(text.into());
    }
    let (code, text) = compare(folder, "results/slower");
    let found = code != Some(0) && text.contains("0 SAME, 16 DIFFERS, 0 AMBIGUOUS");
    if found { Ok(()) } else { Err(text.into()) }
}

#[test]
#[ignore = "slow"]
fn a_planted_jump_is_found_twice_and_compare_distinguishes_the_same_from_a_quarter_more() {
    let _alone = crate::alone();
    if let Err(error) = Command::new("python3").arg("--version").output() {
        return needs::missing("python", format!("python3: {error}"));
    }
    let folder = Folder::new();
    executable(&folder, "process", PROCESS);
    needs::quiet(|| {
        let _ = std::fs::remove_dir_all(folder.join("results"));
        measure_twice(&folder)
    });
}
