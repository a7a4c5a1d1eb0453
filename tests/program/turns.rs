//! Two versions measured in turns and compared round by round; and what two runs at different times cannot show.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{batchstep, run, stderr, stdout, write};

fn spec(name: &str, base_ms: u32) -> String {
    format!(
        "version = 1\nname = \"{name}\"\n[sweep]\nbatch_size = [1, 2, 3]\n[engine]\nname = \"synthetic\"\n[synthetic]\nbase = \"{base_ms}ms\"\n\
         noise = {{ sd = \"0.5%\" }}\n[measure]\ndecide = \"cells\"\nblocks = {{ min = 2, max = 2 }}\nsteps_per_visit = 2\n"
    )
}

/// Without the breaks of its lines.
fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A batchstep that records each call in `calls`, and then runs.
fn noting(folder: &Path, name: &str) -> String {
    let path = write(
        folder,
        name,
        &format!("#!/bin/sh\necho {name} >> calls\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_batchstep")),
    );
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("executable");
    format!("./{name}")
}

#[test]
fn two_specs_are_measured_in_turns_each_by_its_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let (old, new) = (noting(folder.path(), "old"), noting(folder.path(), "new"));
    write(folder.path(), "a.toml", &spec("a", 20));
    write(folder.path(), "b.toml", &spec("b", 30));
    let arguments =
        ["compare", "--in-turns", "a.toml", "b.toml", "--rounds", "4", "--program", &old, "--program", &new];
    let output = run(folder.path(), &[&arguments[..], &["--fail-on", "slower", "--run-arg=--device=cpu"]].concat());
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("0 SAME, 0 FASTER, 3 SLOWER, 0 AMBIGUOUS"), "{text}");
    assert!(
        text.contains("Measured in turns, in 4 rounds") && !text.contains("looks the same as slower code"),
        "{text}"
    );
    let calls = std::fs::read_to_string(folder.path().join("calls")).expect("calls");
    let calls: Vec<&str> = calls.lines().collect();
    let rounds: Vec<&[&str]> = calls.chunks(2).collect();
    assert_eq!(rounds.len(), 4, "{calls:?}");
    for pair in rounds.chunks(2) {
        assert!(pair[0] != ["old"; 2] && pair[0] != ["new"; 2], "{calls:?}");
        assert!(pair[0].iter().rev().eq(pair[1]), "a round is the one before it the other way round: {calls:?}");
    }
    // Each turn is a separate run, and all can be compared again; none is overwritten by a new measurement.
    assert!(folder.path().join("results/in-turns/b/4/steps.parquet").is_file());
    let again = run(folder.path(), &["compare", "--in-turns", "results/in-turns/a", "results/in-turns/b"]);
    assert_eq!((again.status.code(), stdout(&again)), (Some(0), text), "{}", stderr(&again));
    let over = run(folder.path(), &["compare", "--in-turns", "a.toml", "b.toml"]);
    assert_eq!(over.status.code(), Some(2));
    assert!(stderr(&over).contains("in-turns/a: turns were measured into this folder before"), "{}", stderr(&over));
}

#[test]
fn a_turn_that_fails_ends_the_comparison_with_its_message() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "a.toml", &spec("a", 20));
    let compare = |arguments: &[&str]| {
        let output = run(folder.path(), &[&["compare", "--in-turns", "a.toml", "a.toml"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", stderr(&output));
        stderr(&output)
    };
    assert!(compare(&["--run-arg=--device=cuda:7x"]).contains("cuda:7x"));
    assert!(compare(&["--out", "x", "--program", "./none"]).contains("start the program"));
    assert!(compare(&["--out", "x", "--rounds", "1"]).contains("from 2 to 1000"));
    assert!(compare(&["--out", "x", "--time", "soon"]).contains("`soon` is not a time limit"));
    let three = ["--out", "x", "--program", "p", "--program", "q", "--program", "r"];
    assert!(compare(&three).contains("3 programs are named for 2 sides"));
}

/// Two runs of the same spec, between which the machine got slower.
#[test]
fn of_two_runs_at_two_times_the_verdict_carries_that_the_machine_may_have_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "a.toml", &spec("a", 20).replace("max = 2", "max = 8").replace("min = 2", "min = 8"));
    write(folder.path(), "b.toml", &spec("b", 22).replace("max = 2", "max = 8").replace("min = 2", "min = 8"));
    assert_eq!(run(folder.path(), &["run", "a.toml", "b.toml"]).status.code(), Some(0));
    let output = run(folder.path(), &["compare", "results/a", "results/b", "--fail-on", "slower"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = tidy(&stdout(&output));
    assert!(text.contains("measured at different times"), "{text}");
    assert!(text.contains("looks the same as slower code"), "{text}");
    assert!(stderr(&output).contains("slower may be the code or the machine"), "{}", stderr(&output));
}

/// A table for each side, whose blocks were measured in turns on a machine that gets slower with every block.
#[test]
fn tables_with_blocks_that_were_measured_in_turns_are_compared_block_by_block() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = |later: f64| {
        let mut random = batchstep::random::Rng::new(later.to_bits());
        let mut text = "batch_size,block,step_time_ms\n".to_owned();
        for block in 0..8 {
            let machine = 1.0 + 0.05 * (f64::from(block) + later);
            for batch in 1..=10 {
                let time = 10.0 * f64::from(batch) * machine * (1.0 + 0.002 * random.normal());
                text.push_str(&format!("{batch},{block},{time}\n"));
            }
        }
        text
    };
    write(folder.path(), "first.csv", &table(0.0));
    write(folder.path(), "in-turns.csv", &table(0.01));
    write(folder.path(), "after.csv", &table(8.0));
    let compare = |arguments: &[&str]| {
        let output = run(folder.path(), &[&["compare", "first.csv"], arguments, &["--fail-on", "slower"]].concat());
        (output.status.code(), tidy(&stdout(&output)))
    };
    let (code, text) = compare(&["in-turns.csv", "--in-turns", "--margin", "2%"]);
    assert!(code == Some(0) && text.contains("10 SAME, 0 FASTER, 0 SLOWER, 0 AMBIGUOUS"), "{text}");
    let (code, text) = compare(&["after.csv"]);
    assert!(code == Some(1) && text.contains("When these were measured is not known"), "{text}");
    // A gate that does not know does not pass: a size that is missing, or a single round.
    let first = std::fs::read_to_string(folder.path().join("first.csv")).expect("readable");
    let kept = |keeps: &dyn Fn(&str) -> bool| -> String {
        first.lines().filter(|line| line.starts_with("batch") || keeps(line)).map(|line| format!("{line}\n")).collect()
    };
    write(folder.path(), "no7.csv", &kept(&|line| !line.starts_with("7,")));
    write(folder.path(), "one.csv", &kept(&|line| line.contains(",3,")));
    // Each round with its own line of names, as `>>` makes it, is one table.
    let rounds = (0..8).map(|block| kept(&|line| line.contains(&format!(",{block},"))));
    write(folder.path(), "names.csv", &rounds.collect::<String>());
    let gate = |second: &str| {
        let arguments = ["compare", "--in-turns", "first.csv", second, "--fail-on", "slower"];
        let output = run(folder.path(), &arguments);
        (output.status.code(), stdout(&output), stderr(&output))
    };
    let (code, _, said) = gate("no7.csv");
    assert!(code == Some(2) && said.contains("only the first has 7,"), "{said}");
    let (code, _, said) = gate("one.csv");
    assert!(code == Some(2) && said.contains("too little to judge any size"), "{said}");
    assert!(said.contains("rounds that only first has are left out: 0, 1, 2, 4, 5, 6, 7"), "{said}");
    let (code, text, said) = gate("names.csv");
    assert!(code == Some(0) && text.contains("in 8 rounds") && said.contains("7 times more"), "{text}{said}");
    // The first line is the verdict, whatever the margin; of one run a side it is not a verdict on the code.
    let (code, text) = compare(&["after.csv", "--margin", "2%"]);
    assert!(code == Some(1) && text.starts_with("DIFFERS at 10 of 10 sizes, most: "), "{text}");
    assert!(text.contains("one run a side cannot tell, three interleaved runs a side can (--against)"), "{text}");
    write(folder.path(), "bare.csv", "batch_size,step_time_ms\n1,2\n2,3\n");
    let output =
        batchstep(folder.path()).args(["compare", "--in-turns", "first.csv", "bare.csv"]).output().expect("starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the column `block`"), "{}", stderr(&output));
}
