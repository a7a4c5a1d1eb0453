//! `batchstep explain`: its output for a run, for published times, and for incomplete input.

use std::path::Path;

use crate::needs;
use crate::published_kernels::fetched;
use crate::support::{Folder, ends, has, parsed, refused, run, stderr, stdout, synthetic, tidy, write};
use serde_json::Value;

#[test]
fn the_forecast_of_vgg16_steps_after_multiples_of_sixteen_on_every_published_gpu() {
    let Some(data) = fetched() else { return };
    let folder = Folder::new();
    for gpu in ["t4", "v100", "p100", "p4", "a100"] {
        let data = data.to_str().expect("UTF-8 path");
        let arguments = ["explain", "--published", "vgg16", "--gpu", gpu, "--data", data, "--format", "json"];
        let output = ends(0, &folder, &arguments);
        let document = parsed(&stdout(&output));
        let mut steps: Vec<(f64, i64)> = (document["steps"].as_array().expect("steps").iter())
            .map(|step| (step["size_s"].as_f64().expect("seconds"), step["after"].as_i64().expect("a size")))
            .collect();
        steps.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut largest: Vec<i64> = steps.iter().take(4).map(|step| step.1).collect();
        largest.sort_unstable();
        // The four jumps of the 2022 study.
        assert_eq!(largest, [16, 32, 48, 64], "{gpu}");
        assert_eq!(document["layers"].as_array().map(Vec::len), Some(13));
        assert!(document["error"]["median"].as_f64().is_some_and(|error| error < 0.2), "{}", document["error"]);
    }
}

#[test]
fn missing_parts_are_reported_with_the_command_that_installs_them() {
    let folder = Folder::with("times.csv", "batch_size,step_time_s\n1,0.1\n2,0.2\n");
    let cases: [(&[&str], &str); 8] = [
        (&[], "there is nothing to explain"),
        (&["times.csv"], "layers = true"),
        (&["absent"], "no layers.parquet"),
        (&["--published", "vgg61", "--gpu", "t4"], "no network is called `vgg61`"),
        (&["--published", "vgg16"], "`--gpu t4`"),
        (&["--published", "vgg16", "--gpu", "t4"], "scripts/fetch-published"),
        (&["--published", "vgg16", "--gpu", "t4", "times.csv"], "takes no run"),
        (&["times.csv", "--gpu", "t4"], "--published NETWORK"),
    ];
    for (arguments, message) in cases {
        refused(&folder, &[&["explain"], arguments].concat(), &[message, "help: "]);
    }
    let from = |data: &Path, network: &str, gpu: &str, message: &str| {
        let data = data.to_str().expect("UTF-8 path");
        let arguments = ["explain", "--published", network, "--gpu", gpu, "--data", data];
        refused(&folder, &arguments, &[message, "help: "]);
    };
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/published/neusight/kernels.csv");
    from(&sample, "vgg16", "h100", "there are: ");
    from(&sample, "vgg16", "t4", "fewer than 40 published launches");
    let Some(data) = fetched() else { return };
    from(&data, "mobilenet", "t4", "no layer of `mobilenet`");
}

/// The synthetic engine's layer changes its algorithm at the planted jumps: this is consistent, but no size is predicted.
#[test]
fn a_run_is_explained_as_text_and_as_json() {
    let folder = &synthetic().folder;
    has(&stdout(&ends(0, folder, &["explain", "results/synthetic"])), &["another algorithm", "consistent", "no size"]);
    let document = parsed(&stdout(&run(folder, &["explain", "results/synthetic", "--format", "json"])));
    let mechanism = &document["series"][0]["jumps"][0]["mechanisms"][0];
    let expected = (&Value::from("other_algorithm"), &Value::from("consistent"));
    assert_eq!((&mechanism["mechanism"], &mechanism["verdict"]), expected);
    assert_eq!(
        (&document["version"], &document["series"][0]["jumps"][0]["after"]),
        (&Value::from(1), &Value::from(16))
    );
}

/// What `explain` says of a stored run, in single spaces, by series.
fn explained(run_name: &str) -> Vec<String> {
    let path = format!("experiments/runs/{run_name}");
    let output = ends(0, Path::new(env!("CARGO_MANIFEST_DIR")), &["explain", &path]);
    let text = stdout(&output);
    text.split("Why ").skip(1).map(tidy).collect()
}

/// With non-fused Winograd forced, VGG16 jumps after 16 by 7.9 ms, most of it in the layers whose batch is padded. Left to itself, cuDNN
/// changes to an FFT there, and the step jumps by 24 ms, of which one more round of blocks would be 1.3 ms.
#[test]
fn a_jump_three_times_as_large_does_not_contradict_the_mechanism_of_the_other_series() {
    let series = explained("2026-11-27-h200-why-sixteen");
    let [any, never, forced] = &series[..] else { panic!("{series:#?}") };
    for heuristics in [any, never] {
        assert!(heuristics.contains("Likely another algorithm (consistent at 1 of 1 jump;"), "{heuristics}");
    }
    assert!(forced.contains("Likely non-fused Winograd pads the batch to 16 (consistent at 2 of 2 jumps;"), "{forced}");
    assert!(forced.contains("Changed jumps with winograd = any: after 16 larger;"), "{forced}");
    assert!(!forced.contains("winograd = any it predicts no step there"), "{forced}");
}

#[test]
fn a_variable_of_the_environment_that_takes_a_jump_away_is_named_by_itself() {
    let series = explained("2026-11-26-epyc-2-cores-keras");
    let sentence = "Likely with TF_ENABLE_ONEDNN_OPTS = 0, the jump after 15 is gone (shown by intervention)";
    assert!(series[0].contains(sentence), "{series:#?}");
}

/// Nothing is written where a file is missing or damaged.
#[test]
fn fetching_refuses_anything_but_the_published_data() {
    let folder = Folder::new();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/fetch-published");
    let fetch = |from: &str| {
        let mut command = std::process::Command::new("python3");
        let output = command.arg(&script).args(["--from", from, "--out", "out"]).current_dir(&folder).output();
        output.inspect_err(|error| needs::missing("python", format!("python3: {error}"))).ok()
    };
    std::fs::create_dir(folder.join("checkout")).expect("a folder");
    let refused = |from: &str, message: &str| {
        let Some(output) = fetch(from) else { return };
        let text = stderr(&output);
        assert!(!output.status.success() && text.contains(message), "{text}");
        assert!(!folder.join("out").exists());
    };
    refused("absent", "there is no such folder or file");
    refused("checkout", "LICENSE cannot be read");
    write(&folder.join("checkout"), "LICENSE", "another text");
    refused("checkout", "another commit");
    write(&folder, "archive.zip", "no archive");
    refused("archive.zip", "neither a folder nor");
}
