//! The main job from the spec to the jumps, on a known truth.

use crate::support::{self, experiment, run, stderr, stdout};
use serde_json::Value;

fn jumps(folder: &std::path::Path, path: &str) -> Value {
    let output = run(folder, &["jumps", path, "--format", "json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn after(document: &Value) -> Vec<i64> {
    let jumps = document["series"][0]["jumps"].as_array().expect("a list");
    jumps.iter().map(|jump| jump["after"].as_i64().expect("a whole number")).collect()
}

#[test]
fn the_synthetic_experiment_finds_exactly_the_planted_jumps() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &["run", &experiment("method/synthetic.toml"), "--details"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let directory = folder.path().join("results/synthetic");
    for file in [
        "spec.toml",
        "environment.json",
        "steps.parquet",
        "cells.parquet",
        "layers.parquet",
        "jumps.json",
        "step_time.png",
        "honesty.png",
    ] {
        assert!(directory.join(file).is_file(), "{file} is missing");
    }
    let document = jumps(folder.path(), "results/synthetic");
    assert_eq!(document["version"], 1);
    assert_eq!(after(&document), [16, 32, 48, 64]);
    // Planted: 4, 5, 6 and 7 ms; drift raises all of them by up to 3 %.
    let planted = [4e-3, 5e-3, 6e-3, 7e-3];
    for (jump, planted) in document["series"][0]["jumps"].as_array().expect("a list").iter().zip(planted) {
        let (size, low, high) = (jump["size"].as_f64(), jump["low"].as_f64(), jump["high"].as_f64());
        let (size, low, high) = (size.expect("size"), low.expect("low"), high.expect("high"));
        assert!((size / planted - 1.0).abs() < 0.1, "{jump}");
        assert!(low <= size && size <= high && high - low < 0.5 * planted, "{jump}");
        assert_eq!(jump["direction"], "up");
    }
    // The formula's parts are its layers: the part with the jumps explains each of them, within the drift of 3 %.
    for (jump, planted) in document["series"][0]["jumps"].as_array().expect("a list").iter().zip(planted) {
        let causes = jump["causes"].as_array().expect("a list");
        assert_eq!(causes.len(), 1, "{jump}");
        assert_eq!((&causes[0]["layer"], &causes[0]["direction"]), (&"planted".into(), &"forward".into()));
        let step = causes[0]["step"]["size_s"].as_f64().expect("a size");
        assert!((step / planted - 1.0).abs() < 1e-9, "{jump}");
        let share = jump["layers_together"]["share"].as_f64().expect("a share");
        assert!((share - 1.0).abs() < 0.1, "{jump}");
    }
    let why = "Why synthetic jumps after 16: all layers together step by";
    let text = stdout(&output);
    assert!(text.contains(why) && text.contains("formula:before_all -> formula:after_16"), "{text}");
    let stored = std::fs::read_to_string(directory.join("jumps.json")).expect("a file");
    let stored: Value = serde_json::from_str(&stored).expect("JSON");
    assert_eq!(stored["series"][0]["jumps"], document["series"][0]["jumps"]);
}

#[test]
fn a_run_without_jumps_finds_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = "version = 1\nname = \"flat\"\n[sweep]\nexecutes = 8\n[engine]\nname = \"synthetic\"\n[synthetic]\nbase = \"5ms\"\nslope = \"1ms\"\nnoise = { sd = \"1%\", outliers = \"2%\", outlier_size = \"50%\" }\ndrift = { amplitude = \"5%\", steps = 800 }\n[measure]\nblocks = { min = 6, max = 6 }\n";
    support::write(folder.path(), "flat.toml", spec);
    let output = run(folder.path(), &["run", "flat.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let document = jumps(folder.path(), "results/flat");
    assert_eq!(after(&document), [] as [i64; 0]);
    // Six visits of five steps of 1 %, 70 sizes: from some tenths of a percent to some percent.
    let detectable = document["series"][0]["detectable"].as_f64().expect("a number");
    assert!((0.002..0.05).contains(&detectable), "{detectable}");
}

#[test]
fn the_run_stops_when_it_knows_enough() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = "version = 1\nname = \"quiet\"\n[sweep]\nbatch_size = \"1..=20\"\n[engine]\nname = \"synthetic\"\n[synthetic]\nnoise = { sd = \"0.05%\" }\n[measure]\nblocks = { min = 3, max = 30 }\nsmallest_jump = \"2%\"\n";
    support::write(folder.path(), "quiet.toml", spec);
    let output = run(folder.path(), &["run", "quiet.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let cells =
        batchstep::store::Table::read(&folder.path().join("results/quiet/cells.parquet"), &["stop_reason", "blocks"]);
    let cells = cells.expect("a table");
    assert!(cells.texts("stop_reason").expect("texts").iter().all(|reason| reason == "converged"));
    assert!(cells.numbers("blocks").expect("numbers").iter().all(|&blocks| blocks < 10.0));
}

#[test]
fn a_dry_run_prints_a_spec_that_reads_back_and_runs_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &["run", &experiment("study.toml"), "--dry-run"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("560; the first 4 blocks visit all"), "{}", stdout(&output));
    assert!(!folder.path().join("results").exists());
    let spec = stdout(&output);
    let spec = spec.split("\n\nPlan").next().expect("a spec");
    batchstep::spec::Experiment::parse(spec, "dry-run").expect("reads back");
}

#[test]
fn a_second_run_keeps_the_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = "version = 1\nname = \"twice\"\n[sweep]\nbatch_size = \"1..=10\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n[measure]\nblocks = { max = 3 }\n";
    support::write(folder.path(), "twice.toml", spec);
    for _ in 0..2 {
        let output = run(folder.path(), &["run", "twice.toml"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert!(folder.path().join("results/twice.1/steps.parquet").is_file());
    assert!(folder.path().join("results/twice/steps.parquet").is_file());
    let output = run(folder.path(), &["run", "twice.toml", "--resume"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("nothing is left to resume"));
}

#[test]
fn a_comparison_names_the_slower_cells_and_can_fail_a_build() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = |name: &str, seed: u32, jumps: &str| {
        format!(
            "version = 1\nname = \"{name}\"\n[sweep]\nbatch_size = \"1..=20\"\n[engine]\nname = \"synthetic\"\n[synthetic]\nseed = {seed}\njumps = {jumps}\nnoise = {{ sd = \"0.5%\" }}\n[measure]\nblocks = {{ min = 8, max = 8 }}\n"
        )
    };
    support::write(folder.path(), "a.toml", &spec("a", 1, "[]"));
    support::write(folder.path(), "b.toml", &spec("b", 2, "[{ after = 15, size = \"5ms\" }]"));
    assert_eq!(run(folder.path(), &["run", "a.toml", "b.toml"]).status.code(), Some(0));
    let output = run(folder.path(), &["compare", "results/a", "results/b"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let slower =
        |text: &str| text.lines().filter(|line| line.trim_end().ends_with("SLOWER") && line.contains("ms")).count();
    assert_eq!(slower(&stdout(&output)), 5, "{}", stdout(&output));
    let failing = run(folder.path(), &["compare", "results/a", "results/b", "--fail-on", "slower"]);
    assert_eq!(failing.status.code(), Some(1));
    let fine = run(folder.path(), &["compare", "results/b", "results/a", "--fail-on", "slower"]);
    assert_eq!(fine.status.code(), Some(0));
    let refused = run(folder.path(), &["compare", "results/a", "results/b", "--margin", "0.01"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn a_range_that_excludes_its_end_is_reported_with_its_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = "version = 1\nname = \"r\"\n[sweep]\nbatch_size = \"1..70\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n[measure]\nblocks = { max = 2 }\n";
    support::write(folder.path(), "r.toml", spec);
    let notice = "batchstep: the batch sizes are 1 to 69; `1..=70` is the range that has 70 in it too";
    let output = run(folder.path(), &["run", "r.toml", "--dry-run"]);
    assert!(stderr(&output).contains(notice), "{}", stderr(&output));
    assert!(stdout(&output).contains("batch size 1 to 69\n"), "{}", stdout(&output));
    assert!(stderr(&run(folder.path(), &["run", "r.toml"])).contains(notice));
}
