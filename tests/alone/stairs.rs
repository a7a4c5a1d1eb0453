//! The stairs of the 2022 study, produced, found, explained and removed on this machine's processor. With
//! `batch_padding = 16` the CPU engine's Winograd convolutions compute whole batches of 16, as cuDNN's non-fused ones
//! do; without it they do not. Nothing else may run during the steps.

use std::path::Path;

use serde_json::Value;

use crate::needs::{self, Failure};
use crate::support::{Folder, run, stderr, succeeds};

const SPEC: &str = r#"
version = 1
name = "stairs"

[model]
name = "convolutions"
input = [32, 8, 8]
classes = 10

[[model.layers]]
type = "conv2d"
name = "conv1"
out_channels = 32
kernel = 3
padding = 1

[[model.layers]]
type = "conv2d"
name = "conv2"
out_channels = 32
kernel = 3
padding = 1

[[model.layers]]
type = "global_average_pool"

[[model.layers]]
type = "dense"
name = "dense"
out_features = 10

[sweep]
batch_size = "8..=40"

[train]
optimizer = "sgd"
precision = "fp32"

[engine]
name = "cpu"
threads = 1
batch_padding = [1, 16]

[measure]
layers = true
smallest_jump = "10%"
steps_per_visit = 3
time_limit = "50s"
"#;

/// After these sizes, the padding turns the next size into 32 and 48 images.
const STAIRS: [f64; 2] = [16.0, 32.0];

/// The largest relative jump that a series may hide and still be expected to show these: the padding adds up to half of
/// a step after 32, and three quarters of the time of a step here are the convolutions'.
const HIDDEN: f64 = 0.15;

/// The series in the JSON output of `command` about the run, unless other programs took so much of its time that it has too few blocks.
fn series(folder: &Path, command: &str) -> Result<Vec<Value>, Failure> {
    let output = run(folder, &[command, "results/stairs", "--format", "json"]);
    let said = stderr(&output);
    if said.contains("too early: ") {
        return Err(Failure::Noise(said));
    }
    assert!(output.status.success(), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    Ok(document["series"].as_array().expect("a list").clone())
}

/// Whether the run itself reports that it resolves jumps of the size in question.
fn resolved(folder: &Path) -> Result<(), Failure> {
    let hidden: Vec<Option<f64>> =
        series(folder, "jumps")?.iter().map(|series| series["detectable"].as_f64()).collect();
    if hidden.iter().all(|hidden| hidden.is_some_and(|hidden| hidden <= HIDDEN)) {
        return Ok(());
    }
    Err(Failure::Noise(format!(
        "jumps of {HIDDEN} and less were to be found, and these are the smallest that can be: {hidden:?}"
    )))
}

fn after(jump: &Value) -> f64 {
    jump["after"].as_f64().expect("a number")
}

/// Measures, and reports differences from the expected result.
fn measure(folder: &Path) -> Result<(), Failure> {
    let _ = std::fs::remove_dir_all(folder.join("results"));
    // A warning may be of boundaries that are still open.
    let said = stderr(&succeeds(folder, &["run", "stairs.toml"]));
    let jumps = |series: &Value| series["jumps"].as_array().expect("a list").clone();
    let explained: Vec<Vec<Value>> = series(folder, "explain")?.iter().map(jumps).collect();
    // Nothing is asked of the series without padding: the kernels' blocks of a few images make smaller jumps at the same places.
    let [_, with] = &explained[..] else { panic!("two series were measured: {explained:?}") };
    let stairs: Vec<&Value> = with.iter().filter(|jump| STAIRS.contains(&after(jump))).collect();
    if stairs.len() < STAIRS.len() {
        let places = explained.iter().map(|jumps| jumps.iter().map(after).collect::<Vec<_>>()).collect::<Vec<_>>();
        resolved(folder)?;
        return Err(Failure::Wrong(format!("with padding, jumps after {STAIRS:?}: {places:?}\n{said}")));
    }
    for jump in stairs {
        let mechanisms = jump["mechanisms"].as_array().expect("a list");
        // That is, they are gone without it, or smaller than half, beyond the doubt of the intervals.
        let padding = mechanisms.iter().find(|known| known["mechanism"] == "cpu_padding").expect("the mechanism");
        if padding["verdict"] != "shown by intervention" {
            resolved(folder)?;
            return Err(Failure::Wrong(format!("{padding}")));
        }
    }
    Ok(())
}

#[test]
#[ignore = "slow"]
fn padding_of_the_batch_makes_stairs_that_are_found_explained_and_taken_away() {
    let _alone = crate::alone();
    let folder = Folder::with("stairs.toml", SPEC);
    needs::quiet(|| measure(&folder));
}
