//! The task file for rented GPUs.

use std::path::Path;
use std::process::{Command, Output};

use crate::needs;
use crate::support::{Folder, executable, read, root, stderr, stdout, write};

const SWEEP: &str = "scripts/skypilot/sweep.yaml";

/// `scripts/skypilot/check` on this file; `None`, and a recorded skip, if it lacks something.
fn check(file: &Path) -> Option<Output> {
    let script = root().join("scripts/skypilot/check");
    let environment = std::env::var_os("VIRTUAL_ENV").map(|home| Path::new(&home).join("bin/python"));
    let python = environment.filter(|python| python.is_file()).unwrap_or_else(|| "python3".into());
    let output = match Command::new(&python).arg(script).arg(file).output() {
        Ok(output) => output,
        Err(error) => {
            needs::missing("skypilot", format!("{}: {error}", python.display()));
            return None;
        }
    };
    if output.status.code() == Some(77) {
        needs::missing("skypilot", stderr(&output));
        return None;
    }
    Some(output)
}

#[test]
fn the_task_file_is_valid_by_skypilots_schemas() {
    let Some(output) = check(&root().join(SWEEP)) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("ok: "), "{}", stdout(&output));
}

#[test]
fn a_wrong_task_file_is_refused_with_the_place() {
    let folder = Folder::new();
    let text = read(root(), SWEEP);
    let wrong = text.replace("name: batchstep", "nme: batchstep").replace("disk_size", "disk").replace("_CACHED", "S");
    let file = write(&folder, "wrong.yaml", &wrong);
    let Some(output) = check(&file) else { return };
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    for problem in ["'nme' was unexpected", "resources: Additional", "file_mounts./results.mode: 'MOUNTS' is none of"] {
        assert!(stderr(&output).contains(problem), "{problem} is not in {}", stderr(&output));
    }
}

/// The task's commands, with programs of the same names that record how they were called.
#[test]
fn each_node_of_a_task_runs_a_shard_into_its_own_folder() {
    let folder = Folder::new();
    let text = read(root(), SWEEP);
    let (_, script) = text.split_once("\nrun: |\n").expect("a script");
    let bin = folder.join("batchstep/bin");
    std::fs::create_dir_all(&bin).expect("a folder");
    write(&bin, "activate", &format!("PATH={}:$PATH\n", bin.display()));
    let programs =
        [("nvidia-smi", "echo 'NVIDIA H200'"), ("batchstep", "[ \"$1\" = doctor ] || { echo \"$@\"; exit $CODE; }")];
    for (name, body) in programs {
        executable(&bin, name, &format!("#!/bin/sh\n{body}\n"));
    }
    let run = |nodes: &str, rank: &str, code: &str| {
        let mut command = Command::new("bash");
        command.args(["-c", script]).env("HOME", &*folder).env("SPEC", "vgg16").env("OPTIONS", "--time 20min");
        command.env("SKYPILOT_NUM_NODES", nodes).env("SKYPILOT_NODE_RANK", rank).env("CODE", code);
        command.output().expect("bash starts")
    };
    let spec = folder.join("experiments/vgg16.toml");
    let expected = |out: &str, more: &str| {
        format!("run {} --device cuda:0 --out {out} --resume --time 20min{more}\n", spec.display())
    };
    let one = run("1", "0", "0");
    assert_eq!(stdout(&one), expected("/results/vgg16-NVIDIA-H200", ""), "{}", stderr(&one));
    let third = run("8", "2", "0");
    assert_eq!(stdout(&third), expected("/results/vgg16-NVIDIA-H200-3-of-8", " --shard 3/8"), "{}", stderr(&third));
    // Warnings do not fail the task; a failure does.
    assert!(run("1", "0", "1").status.success() && !run("1", "0", "2").status.success());
}
