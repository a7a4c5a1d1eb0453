//! What is printed fits into the terminal, and streams that cannot be written do not end a run.

use crate::support;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

const SPEC: &str = "version = 1\nname = \"t\"\n[sweep]\nbatch_size = \"1..=20\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
                    noise = { sd = \"1%\" }\n[measure]\nblocks = { min = 5, max = 5 }\nsteps_per_visit = 3\n";

#[cfg(target_os = "linux")]
#[test]
fn a_run_ends_well_where_stderr_is_full_or_its_reader_has_gone() {
    let folder = tempfile::tempdir().expect("a folder");
    support::write(folder.path(), "t.toml", SPEC);
    let full = || File::options().write(true).open("/dev/full").expect("a device");
    let mut command = support::batchstep(folder.path());
    let full = command.args(["run", "t.toml", "--out", "full"]).stdout(full()).stderr(full()).status();

    let mut command = support::batchstep(folder.path());
    command.args(["run", "t.toml", "--out", "gone"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut first = String::new();
    BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut first).expect("a line");
    let gone = child.wait();

    let quiet = support::run(folder.path(), &["run", "t.toml", "--out", "heard"]).status.code();
    for (run, status) in [("full", full), ("gone", gone)] {
        assert_eq!(status.expect("it ends").code(), quiet, "{run}");
        assert!(folder.path().join(run).join("steps.parquet").is_file(), "{run}");
    }

    // A command that fails still says so by its exit code.
    let mut command = support::batchstep(folder.path());
    let stderr = File::options().write(true).open("/dev/full").expect("a device");
    assert_eq!(command.args(["run", "missing.toml"]).stderr(stderr).status().expect("it ends").code(), Some(2));
}

/// A line of one word, such as a path, may be longer.
#[test]
fn what_is_printed_fits_into_the_terminal() {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/runs");
    let [once, again] = ["", "-again"].map(|end| runs.join(format!("2026-11-23-epyc-2-cores-quickstart{end}")));
    let [once, again] = [&once, &again].map(|path| path.to_str().expect("text"));
    let commands: [&[&str]; 8] = [
        &["--help"],
        &["specs"],
        &["jumps", once],
        &["jumps", once, "--details"],
        &["advise", once],
        &["explain", once],
        &["compare", once, again],
        &["compare", once, again, once],
    ];
    for width in [80, 100, 120] {
        for arguments in commands {
            let mut command = support::batchstep(&runs);
            let output = command.args(arguments).env("COLUMNS", width.to_string()).output().expect("it runs");
            let text = support::stdout(&output);
            assert!(!text.is_empty(), "{arguments:?}");
            for line in text.lines().filter(|line| line.trim().contains(' ')) {
                assert!(line.chars().count() <= width, "{arguments:?} at {width}: {line}\n{text}");
            }
        }
    }
}
