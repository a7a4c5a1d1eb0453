//! One sweep in several parts: `run --shard`, `status`, `merge`, and the batch script of `submit`.

use std::path::Path;

use batchstep::store::{Begin, RunDirectory, Table};
use batchstep::study::training::TrainingRow;

use crate::support::{Folder, ends, parsed, prints, read, refused, run, start, stderr, stdout, succeeds, write};

const SPEC: &str = "version = 1\nname = \"s\"\n[sweep]\nbatch_size = \"1..=40\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
                    jumps = [{ after = 20, size = \"3ms\" }]\nnoise = { sd = \"0.3%\", visits = \"0.3%\" }\n\
                    machines = { sd = \"5%\" }\n[measure]\nblocks = { min = 16, max = 16 }\n";

fn shards(folder: &Path, numbers: &[usize], of: usize) {
    for number in numbers {
        let shard = format!("{number}/{of}");
        succeeds(folder, &["run", "s.toml", "--shard", &shard, "--node", &format!("gpu-{number}")]);
    }
}

#[test]
#[ignore = "slow"]
fn shards_become_one_run_with_its_jump_and_its_slow_machine() {
    let folder = Folder::with("s.toml", SPEC);
    shards(&folder, &[1, 2, 4], 4);
    let paths = [1, 2, 4].map(|number| format!("results/s.shard-{number}-of-4"));
    let merge = |more: &[&str]| {
        let mut arguments = vec!["merge", "results/all"];
        arguments.extend(paths.iter().map(String::as_str));
        run(&folder, &[&arguments[..], more].concat())
    };
    let output = merge(&[]);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("1 of 4 shards is missing: number 3"), "{said}");

    shards(&folder, &[3], 4);
    let output = merge(&["results/s.shard-3-of-4"]);
    let (text, said) = (stdout(&output), stderr(&output));
    assert!(!said.contains("missing"), "{said}");
    assert!(text.contains("4 runs of 4 machines, 640 visits"), "{text}");
    assert!(text.contains("1 jump after 20"), "{text}");
    assert!(text.contains("machine ") && text.contains("gpu-3"), "{text}");
    assert!(said.contains("than the middle of all"), "{said}");

    // An ordinary run directory: every command that reads one accepts it.
    let json = run(&folder, &["jumps", "results/all", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let series = &document["series"][0];
    assert_eq!(series["jumps"][0]["after"], 20);
    let nodes = series["nodes"].as_array().expect("machines");
    assert_eq!(nodes.iter().map(|node| node["visits"].as_u64()).collect::<Vec<_>>(), [Some(160); 4]);
    let plotted = run(&folder, &["plot", "results/all"]);
    assert!(plotted.status.success() && folder.join("results/all/step_time.png").is_file(), "{}", stderr(&plotted));
    run(&folder, &["plot", "results/all", "--format", "svg"]);
    run(&folder, &["report", "results/all"]);
    for name in ["step_time.svg", "honesty.svg", "report.html"] {
        let text = std::fs::read_to_string(folder.join("results/all").join(name)).expect(name);
        assert!(text.contains("Measured on 4 machines that differ by"), "{name}");
    }
    let table = Table::read(&folder.join("results/all"), &["node"]).expect("read");
    assert_eq!(table.distinct("node").expect("texts").distinct, ["gpu-1", "gpu-2", "gpu-3", "gpu-4"]);

    // One shard that a process is about to begin, and one that has not been begun.
    std::fs::create_dir(folder.join("results/s.shard-8-of-9")).expect("a folder");
    let shards = ["results/s.shard-1-of-4", "results/s.shard-8-of-9", "results/s.shard-9-of-9"];
    prints(&folder, &[&["status"], &shards[..]].concat(), &["finished", "waiting", "3 runs: 1 finished, 2 waiting"]);
}

#[test]
#[ignore = "slow"]
fn a_shard_is_not_continued_as_another_one() {
    let folder = Folder::with("s.toml", SPEC);
    shards(&folder, &[1], 4);
    refused(
        &folder,
        &["run", "s.toml", "--shard", "2/4", "--out", "results/s.shard-1-of-4", "--resume"],
        &["- shard = \"1/4\"", "+ shard = \"2/4\""],
    );
    for (arguments, words) in [
        (&["--shard", "5/4"][..], "`5/4` is not a part of a plan"),
        (&["--shard", "20/20"], "shard 20/20 is left with none"),
        (&["--shard", "2/2", "--shard-by", "cells"], "has 1 series, and shard 2/2 is left with none"),
    ] {
        refused(&folder, &[&["run", "s.toml"], arguments].concat(), &[words]);
    }
}

/// Merging only reads, and uses what exists.
#[test]
#[ignore = "slow"]
fn shards_are_merged_while_one_of_them_is_measured() {
    let slow = SPEC.replace("machines =", "hangs = [{ at = 3, for = \"200ms\" }]\nmachines =");
    let folder = Folder::with("s.toml", &slow);
    let mut child = start(&folder, &["run", "s.toml", "--shard", "1/2", "--out", "one"]);
    let mut seen = Vec::new();
    while child.try_wait().expect("a child").is_none() {
        let output = run(&folder, &["merge", "out", "one", "--no-analysis"]);
        let said = stderr(&output);
        // Before the first visit there is nothing to merge.
        assert!(
            output.status.code() == Some(1) || said.contains("contains no run") || said.contains("has begun"),
            "{said}"
        );
        if output.status.code() == Some(1) {
            seen.push(stdout(&output));
        }
    }
    assert!(!seen.is_empty(), "it ended before it could be merged");
    let output = run(&folder, &["merge", "out", "one", "--no-analysis"]);
    assert!(stdout(&output).contains("320 visits"), "{}", stdout(&output));
    let said = stderr(&output);
    assert!(said.contains("1 of 2 shards is missing: number 2") && !said.contains("not finished"), "{said}");
}

#[test]
fn a_batch_script_is_written_and_a_spec_that_every_shard_would_refuse_is_refused_at_once() {
    let folder = Folder::with("s.toml", SPEC);
    let submit =
        |nodes: &str| run(&folder, &["submit", "--slurm", "s.toml", "--nodes", nodes, "--gpus", "1", "--dry-run"]);
    let output = submit("8");
    assert!(output.status.success(), "{}", stderr(&output));
    let script = read(&folder, "results/s.shards/array.sbatch");
    assert!(script.contains("#SBATCH --array=1-8\n") && script.contains("#SBATCH --gres=gpu:1\n"), "{script}");
    let parsed =
        std::process::Command::new("bash").arg("-n").arg(folder.join("results/s.shards/array.sbatch")).status();
    assert!(parsed.expect("a shell").success());
    assert!(stderr(&submit("17")).contains("shard 17/17 is left with none"));
    assert!(stderr(&submit("0")).contains("0 is not a number of machines"));
    write(&folder, "s.toml", &SPEC.replace("5%", "6%"));
    assert!(stderr(&submit("8")).contains("the shards of another spec"));

    // A step's file is found from the copy of the spec, too.
    std::fs::create_dir(folder.join("specs")).expect("a folder");
    write(&folder.join("specs"), "step.py", "def step(batch_size):\n    return lambda: None\n");
    write(
        &folder.join("specs"),
        "own.toml",
        "version = 1\nname = \"own\"\n[engine]\nstep = \"step.py\"\n[sweep]\nbatch_size = \"1..=16\"\n",
    );
    ends(0, &folder, &["submit", "--slurm", "specs/own.toml", "--nodes", "2", "--dry-run"]);
    let copy = folder.join("results/own.shards/spec.toml").display().to_string();
    ends(0, &folder, &["run", &copy, "--dry-run"]);
    assert!(stderr(&run(&folder, &["submit", "--slurm", "specs/step.py", "--nodes", "2"])).contains("needs a spec"));
}

#[test]
#[ignore = "slow"]
fn status_shows_the_runs_that_can_be_read_and_names_the_others() {
    let folder = Folder::with("s.toml", &SPEC.replace("min = 16, max = 16", "min = 4, max = 4"));
    assert!(matches!(run(&folder, &["run", "s.toml"]).status.code(), Some(0 | 1)));
    // A study, which no sweep's plan belongs to.
    let study = "version = 1\nname = \"e\"\nkind = \"training\"\n";
    let opened = RunDirectory::open(&folder.join("epochs"), study, Begin::Anew).expect("opens");
    opened.directory.write_text("environment.json", "{}").expect("written");
    let visit = |visit| opened.directory.append(&[TrainingRow { visit, ..TrainingRow::default() }]).expect("stored");
    (0..3).for_each(visit);
    assert!(opened.directory.seal_visits::<TrainingRow, TrainingRow>(true).expect("sealed").complete);
    drop(opened);
    // Shards that nothing has been submitted of, and a spec that was damaged.
    ends(0, &folder, &["submit", "--slurm", "s.toml", "--nodes", "2", "--dry-run"]);
    std::fs::create_dir(folder.join("broken")).expect("made");
    write(&folder.join("broken"), "spec.toml", "version = 1\nname");

    let status = |paths: &[&str], code: i32| {
        let output = run(&folder, &[&["status"], paths].concat());
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        (stdout(&output), stderr(&output))
    };
    let (table, said) = status(&["results/s", "epochs", "results/s.shards", "broken"], 1);
    assert!(table.contains("3 runs: 2 finished, 1 waiting; 163 visits"), "{table}");
    assert!(said.contains("broken: spec.toml"), "{said}");
    let (json, _) = status(&["epochs", "--format", "json"], 0);
    let document = parsed(&json);
    let epochs = &document["runs"][0];
    assert!(epochs["state"] == "finished" && epochs["visits"] == 3, "{epochs}");
    assert!(status(&["broken"], 2).1.contains("broken: spec.toml"));
    // It has begun, and nothing is stored.
    std::fs::remove_file(folder.join("results/s/steps.parquet")).expect("removed");
    let (table, _) = status(&["results/s"], 0);
    assert!(table.contains("1 run: 1 silent; 0 visits"), "{table}");
}
