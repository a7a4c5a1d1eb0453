//! The main job from the spec to the jumps, on a known truth.

use crate::support::{Folder, ends, experiment, json, parsed, planted, read, run, stderr, stdout, synthetic, write};
use serde_json::Value;

fn after(document: &Value) -> Vec<i64> {
    let jumps = document["series"][0]["jumps"].as_array().expect("a list");
    jumps.iter().map(|jump| jump["after"].as_i64().expect("a whole number")).collect()
}

#[test]
fn the_synthetic_experiment_finds_exactly_the_planted_jumps() {
    let folder = &synthetic().folder;
    let directory = folder.join("results/synthetic");
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
    let document = json(folder, &["jumps", "results/synthetic"]);
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
        // The formula's parts are its layers: the part with the jumps explains each of them, within the drift of 3 %.
        let causes = jump["causes"].as_array().expect("a list");
        assert_eq!(causes.len(), 1, "{jump}");
        assert_eq!((&causes[0]["layer"], &causes[0]["direction"]), (&"planted".into(), &"forward".into()));
        let step = causes[0]["step"]["size_s"].as_f64().expect("a size");
        assert!((step / planted - 1.0).abs() < 1e-9, "{jump}");
        let share = jump["layers_together"]["share"].as_f64().expect("a share");
        assert!((share - 1.0).abs() < 0.1, "{jump}");
    }
    let why = "Why synthetic jumps after 16: all layers together step by";
    let text = stdout(&ends(0, folder, &["run", "synthetic", "--resume", "--details"]));
    assert!(text.contains(why) && text.contains("formula:before_all -> formula:after_16"), "{text}");
    let stored = parsed(&read(&directory, "jumps.json"));
    assert_eq!(stored["series"][0]["jumps"], document["series"][0]["jumps"]);
}

#[test]
#[ignore = "slow"]
fn a_run_without_jumps_finds_none() {
    let spec = "version = 1\nname = \"flat\"\n[sweep]\nexecutes = 8\n[engine]\nname = \"synthetic\"\n[synthetic]\nbase = \"5ms\"\nslope = \"1ms\"\nnoise = { sd = \"1%\", outliers = \"2%\", outlier_size = \"50%\" }\ndrift = { amplitude = \"5%\", steps = 800 }\n[measure]\nblocks = { min = 6, max = 6 }\n";
    let folder = Folder::with("flat.toml", spec);
    ends(0, &folder, &["run", "flat.toml"]);
    let document = json(&folder, &["jumps", "results/flat"]);
    assert_eq!(after(&document), [] as [i64; 0]);
    // Six visits of five steps of 1 %, 70 sizes: from some tenths of a percent to some percent.
    let detectable = document["series"][0]["detectable"].as_f64().expect("a number");
    assert!((0.002..0.05).contains(&detectable), "{detectable}");
}

#[test]
#[ignore = "slow"]
fn the_run_stops_when_it_knows_enough() {
    let folder = Folder::new();
    let spec = planted(
        "quiet",
        "\"1..=20\"",
        "noise = { sd = \"0.05%\" }",
        "blocks = { min = 3, max = 30 }\nsmallest_jump = \"2%\"",
    );
    write(&folder, "quiet.toml", &spec);
    ends(0, &folder, &["run", "quiet.toml"]);
    let cells = batchstep::store::Table::read(&folder.join("results/quiet/cells.parquet"), &["stop_reason", "blocks"]);
    let cells = cells.expect("a table");
    assert!(cells.texts("stop_reason").expect("texts").iter().all(|reason| reason == "converged"));
    assert!(cells.numbers("blocks").expect("numbers").iter().all(|&blocks| blocks < 10.0));
}

#[test]
fn a_dry_run_prints_a_spec_that_reads_back_and_runs_nothing() {
    let folder = Folder::new();
    let output = ends(0, &folder, &["run", &experiment("study.toml"), "--dry-run"]);
    assert!(stdout(&output).contains("560; the first 4 blocks visit all"), "{}", stdout(&output));
    assert!(!folder.join("results").exists());
    let spec = stdout(&output);
    let spec = spec.split("\n\nPlan").next().expect("a spec");
    batchstep::spec::Experiment::parse(spec, "dry-run").expect("reads back");
}

#[test]
#[ignore = "slow"]
fn a_second_run_keeps_the_first() {
    let spec = planted("twice", "\"1..=10\"", "", "blocks = { max = 3 }");
    let folder = Folder::with("twice.toml", &spec);
    for _ in 0..2 {
        ends(0, &folder, &["run", "twice.toml"]);
    }
    assert!(folder.join("results/twice.1/steps.parquet").is_file());
    assert!(folder.join("results/twice/steps.parquet").is_file());
    let output = ends(0, &folder, &["run", "twice.toml", "--resume"]);
    assert!(stderr(&output).contains("nothing is left to resume"));
}

#[test]
#[ignore = "slow"]
fn a_range_that_excludes_its_end_is_reported_with_its_values() {
    let spec = planted("r", "\"1..70\"", "", "blocks = { max = 2 }");
    let folder = Folder::with("r.toml", &spec);
    let notice = "batchstep: the batch sizes are 1 to 69; `1..=70` is the range that has 70 in it too";
    let output = run(&folder, &["run", "r.toml", "--dry-run"]);
    assert!(stderr(&output).contains(notice), "{}", stderr(&output));
    assert!(stdout(&output).contains("batch size 1 to 69\n"), "{}", stdout(&output));
    assert!(stderr(&run(&folder, &["run", "r.toml"])).contains(notice));
}
