//! The list of tests that were skipped, and why. `cargo test` runs test targets in the order of their names: this is the last.

#[allow(dead_code)]
mod needs;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::ExitCode;

fn main() -> ExitCode {
    // If its tests are listed, as by an editor, it has none.
    if std::env::args().any(|argument| argument == "--list") {
        return ExitCode::SUCCESS;
    }
    if let Err(error) = needs::required() {
        eprintln!("{error}");
        return ExitCode::FAILURE;
    }
    let record = needs::record_of(std::os::unix::process::parent_id());
    let list = listed(&fs::read_to_string(&record).unwrap_or_default());
    let folder = record.with_file_name("");
    remove_others(&folder);
    fs::create_dir_all(&folder)
        .and_then(|()| fs::write(folder.with_file_name("skipped.txt"), &list))
        .expect("writable");
    print!("\n{list}");
    if !std::env::args().any(|argument| argument == "--include-ignored") {
        println!("the slow tests were left out: `cargo test -- --include-ignored` runs them too");
    }
    ExitCode::SUCCESS
}

/// The skipped tests, grouped by what was missing and why.
fn listed(record: &str) -> String {
    let mut skipped: BTreeMap<(&str, &str), BTreeSet<&str>> = BTreeMap::new();
    for line in record.lines() {
        let [need, why, test] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
        skipped.entry((need, why)).or_default().insert(test);
    }
    if skipped.is_empty() {
        return "no test was skipped\n".to_owned();
    }
    let mut text = "skipped tests, by what they need (BATCHSTEP_REQUIRE=<names> makes a skip a failure):\n".to_owned();
    for ((need, why), tests) in skipped {
        text += &format!("{need}: {why}\n");
        text.extend(tests.into_iter().map(|test| format!("    {test}\n")));
    }
    text
}

/// The records of test runs that have ended.
fn remove_others(folder: &std::path::Path) {
    let running = |name: &str| {
        let runner = name.split('-').next().and_then(|runner| runner.parse().ok());
        runner.is_some_and(|runner| needs::record_of(runner).file_name().is_some_and(|file| file == name))
    };
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if !running(&entry.file_name().to_string_lossy()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
