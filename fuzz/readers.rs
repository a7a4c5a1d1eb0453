//! What is fuzzed: every reader of what a stranger may have written. Shared by the fuzz targets and by tests/program/corpus.rs.

use std::path::Path;

/// An experiment's spec: parsed, planned, written out and parsed again.
pub fn spec(bytes: &[u8]) {
    use batchstep::spec::{Experiment, plan::Plan};
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(experiment) = Experiment::parse(text, "fuzz.toml") else { return };
    // An experiment can be large by intent; planning it costs memory in proportion, which is not what is looked for.
    if experiment.cell_count() <= 1000 {
        let _ = Plan::new(&experiment);
    }
    let again = Experiment::parse(&experiment.to_toml(), "resolved").expect("a resolved spec reads back");
    assert_eq!(again.to_toml(), experiment.to_toml());
}

/// A table of another program, as a file of that ending.
fn table(bytes: &[u8], folder: &Path, name: &str) {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a temporary file");
    let _ = batchstep::store::Table::names(&path);
    let _ = batchstep::analysis::series(&path, &Default::default());
}

/// A table as text: CSV, Markdown, JSON, a log; the bytes say which.
pub fn csv(bytes: &[u8], folder: &Path) {
    table(bytes, folder, "fuzz.csv");
}

/// A Parquet file.
pub fn parquet(bytes: &[u8], folder: &Path) {
    table(bytes, folder, "fuzz.parquet");
}

/// The JSON documents that are read back: a run's environment, the controls beside a run.
pub fn json(bytes: &[u8], folder: &Path) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = batchstep::run::environment::RunEnvironment::from_json(text);
    }
    std::fs::write(folder.join("aa.json"), bytes).expect("a temporary file");
    let controls = batchstep::analysis::control::near(folder);
    let _ = batchstep::analysis::control::to_json(&controls);
}
