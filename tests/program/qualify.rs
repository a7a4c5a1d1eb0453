//! An engine's results are checked before it is timed, if that is requested.

use std::path::Path;
use std::process::Output;

use batchstep::store::{Table, files};

use crate::needs::shared_library;
use crate::support::{Folder, PIPELINE, TRAINING, batchstep, parsed, read, stderr, write};

const SPEC: &str = "version = 1\nname = \"q\"\n[model]\nname = \"mlp\"\n[sweep]\nbatch_size = [4, 8, 16, 32]\n[train]\nprecision = \"fp32\"\n\
                    loss = \"mean_squared_error\"\n[engine]\nname = \"cpu\"\n[measure]\nblocks = { min = 3, max = 3 }\nsteps_per_visit = 2\n";

fn run(folder: &Path, more: &[&str]) -> Output {
    let mut command = batchstep(folder);
    command.env("XDG_CACHE_HOME", folder.join("cache")).args(["run", "q.toml", "--out", "run"]).args(more);
    let output = command.output().expect("starts");
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    output
}

/// The column's values without consecutive repetitions; `None` for a null.
fn qualified(folder: &Path) -> Vec<Option<f64>> {
    qualified_in(folder, files::STEPS)
}

fn qualified_in(folder: &Path, file: &str) -> Vec<Option<f64>> {
    let table = Table::read(&folder.join("run").join(file), &["qualified"]).expect("read");
    let values = table.numbers("qualified").expect("numbers");
    let mut values: Vec<Option<f64>> = values.into_iter().map(|value| (!value.is_nan()).then_some(value)).collect();
    values.dedup();
    values
}

#[test]
#[ignore = "slow"]
fn a_checked_engine_says_so_once_and_every_row_has_it() {
    let folder = Folder::with("q.toml", SPEC);
    let first = stderr(&run(&folder, &["--qualify", "always"]));
    assert!(first.contains("checking cpu's step of mlp at batch sizes 31 and 32"), "{first}");
    assert_eq!(qualified(&folder), [Some(1.0)]);
    let second = stderr(&run(&folder, &["--qualify", "always"]));
    assert!(!second.contains("checking"), "{second}");
    assert_eq!(qualified(&folder), [Some(1.0)]);
    // The CPU engine is not checked without a request.
    let third = stderr(&run(&folder, &[]));
    assert!(!third.contains("checking"), "{third}");
    assert_eq!(qualified(&folder), [None]);
}

const FIT: &str = "version = 1\nkind = \"fit\"\nname = \"q\"\n[sweep]\nbatch_size = [16]\n[engine]\nname = \"cpu\"\n[measure]\nepochs = 2\n";

#[test]
#[ignore = "slow"]
fn fits_trainings_and_pipelines_are_checked_as_sweeps_are() {
    for (spec, file) in [(FIT, "fit.parquet"), (TRAINING, "epochs.parquet"), (PIPELINE, "pipeline.parquet")] {
        let folder = Folder::with("q.toml", &spec.replace("\"auto\"", "\"cpu\""));
        let said = stderr(&run(&folder, &["--qualify", "always"]));
        assert!(said.contains("checking cpu's step of"), "{said}");
        assert_eq!(qualified_in(&folder, file), [Some(1.0)]);
        run(&folder, &[]);
        assert_eq!(qualified_in(&folder, file), [None]);
    }
}

/// The driver's library belongs to the tests and answers with recorded facts; nothing runs on a GPU.
#[test]
#[ignore = "slow"]
fn what_passed_with_one_driver_is_checked_again_with_the_next() {
    let folder = Folder::new();
    const LIBRARY: &str = include_str!("../../src/device/nvml/library.c");
    if !shared_library(LIBRARY, &folder.join("libnvidia-ml.so.1")) {
        return;
    }
    write(&folder, "q.toml", SPEC);
    let is_checked = |driver: &str| {
        write(&folder, "facts", &format!("driver_version {driver}\n"));
        let mut command = batchstep(&folder);
        command.env("XDG_CACHE_HOME", folder.join("cache")).env("LD_LIBRARY_PATH", &*folder);
        let arguments = ["run", "q.toml", "--out", "run", "--device", "cpu", "--qualify", "always"];
        stderr(&command.args(arguments).output().expect("starts")).contains("checking cpu's step")
    };
    let checked = ["570.86.15", "570.86.15", "580.65.06"].map(is_checked);
    assert_eq!(checked, [true, false, true]);
}

/// What a report needs of a run with two engines: how their times and first losses compare, and where each jumps.
#[test]
#[ignore = "slow"]
fn how_two_engines_compared_is_taken_along_in_the_bundle() {
    let folder = Folder::with("q.toml", &SPEC.replace("name = \"cpu\"", "name = [\"cpu\", \"candle\"]\nthreads = 1"));
    run(&folder, &[]);
    let mut command = batchstep(&folder);
    command.env("XDG_CACHE_HOME", folder.join("cache")).args(["doctor", "--bundle", "b.json"]);
    let output = command.output().expect("starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = read(&folder, "b.json");
    let document = parsed(&text);
    let lines = document["last_comparison"].as_array().expect("lines");
    let said = |what: &str| lines.iter().any(|line| line.as_str().is_some_and(|line| line.contains(what)));
    assert!(said("The first losses of ") && said("candle") && said("batchstep 0.1.0"), "{text}");
}
