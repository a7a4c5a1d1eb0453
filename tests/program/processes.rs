//! Several PyTorch processes, from the spec to the table and the chart.

use batchstep::store::Table;

use crate::needs;
use crate::support::{Folder, batchstep, ends, executable, has, read, run, stderr, stdout};

const SPEC: &str = r#"version = 1
name = "p"
[model]
name = "mlp"
[sweep]
batch_size = [4, 8]
[train]
optimizer = "sgd"
loss = "mean_squared_error"
precision = "fp32"
[engine]
name = "torch"
processes = [1, 2]
scaling = ["weak", "strong"]
threads = 1
[measure]
decide = "cells"
blocks = { min = 2, max = 2 }
steps_per_visit = 2
"#;

#[test]
fn a_run_with_two_processes_says_how_efficient_they_are() {
    let folder = Folder::with("p.toml", SPEC);
    let output = run(&folder, &["run", "p.toml", "--device", "cpu", "--details"]);
    if output.status.code() == Some(2) && stderr(&output).contains("BATCHSTEP_PYTHON") {
        return needs::missing("torch", stderr(&output));
    }
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", stderr(&output));
    let text = stdout(&output);
    has(
        &text,
        &["Processes: data parallel training", "in all-reduce", "2 processes: ", "reach 95 %", "efficiency.png"],
    );
    let run_directory = folder.join("results/p");
    let mut reduced = 0;
    let columns = ["processes", "allreduce_time_s", "step_time_s"];
    Table::scan(&run_directory, &columns, &mut |batch| {
        let (processes, steps) = (batch.numbers("processes")?, batch.numbers("step_time_s")?);
        for ((processes, step), time) in processes.into_iter().zip(steps).zip(batch.numbers("allreduce_time_s")?) {
            // One process averages nothing.
            assert!(if processes == 1.0 { time.is_nan() } else { time > 0.0 && time < step }, "{processes} {time}");
            reduced += usize::from(processes == 2.0);
        }
        Ok(())
    })
    .expect("steps");
    // Two batch sizes, two scalings, two blocks, at least two steps.
    assert!(reduced >= 16, "{reduced}");
    ends(0, &folder, &["plot", "results/p", "--format", "svg", "--out", "drawn"]);
    let svg = read(&folder, "drawn/efficiency.svg");
    assert!(svg.contains("Efficiency (%)") && svg.contains("strong, 2 processes"), "{svg}");
}

/// A fake PyTorch: every process of a group answers, and the second one dies in its first step.
const DIES: &str = r#"#!/bin/sh
read -r line; echo '{"ok": {"torch": "2.9", "device": "cpu", "device_name": null, "capability": null, "distributed": true}}'
while read -r line; do
  case "$line" in
    *'"rank":1'*) second=1; echo '{"ok": {}}';;
    *'"do":"host"'*) echo '{"ok": {"port": 1}}';;
    *'"do":"step"'*) test "$second" && { echo 'the GPU has fallen off the bus' >&2; exit 7; }; test "$grouped" && exec sleep 600
      echo '{"ok": {"step_s": 0.01, "gpu_s": null, "enqueue_s": null, "h2d_s": null, "forward_s": null, "backward_s": null, "optimizer_s": null, "loss": "1.0"}}';;
    *'"rank":0'*) grouped=1; echo '{"ok": {}}';;
    *) echo '{"ok": {}}';;
  esac
done
"#;

#[test]
#[ignore = "slow"]
fn a_process_that_dies_ends_its_cells_and_not_the_run() {
    let folder = Folder::with("p.toml", &SPEC.replace("scaling = [\"weak\", \"strong\"]", ""));
    let python = executable(&folder, "python3", DIES);
    let mut command = batchstep(&folder);
    let output = command.args(["run", "p.toml", "--device", "cpu"]).env("BATCHSTEP_PYTHON", &python).output();
    let output = output.expect("the program starts");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    has(&message, &["process 2 of 2", "exit status: 7", "the GPU has fallen off the bus"]);
    // A single process continues: its cells have all of their visits.
    let (mut one, mut failed) = (0, 0);
    Table::scan(&folder.join("results/p"), &["processes", "status"], &mut |batch| {
        for (processes, status) in batch.numbers("processes")?.into_iter().zip(batch.texts("status")?) {
            one += usize::from(processes == 1.0 && status == "ok");
            failed += usize::from(processes == 2.0 && status == "failed");
        }
        Ok(())
    })
    .expect("steps");
    assert!(one >= 8 && failed == 2, "{one} {failed}: {message}");
}
