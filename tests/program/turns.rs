//! Two versions measured in turns and compared round by round; and what two runs at different times cannot show.

use std::path::Path;
use std::process::Child;

use crate::support::{
    Folder, batchstep, ends, executable, has, kill, planted, read, refused, rows, run, signal, start, stderr, stdout,
    tidy, until, write,
};

fn spec(name: &str, base_ms: u32) -> String {
    let truth = format!("base = \"{base_ms}ms\"\nnoise = {{ sd = \"0.5%\" }}");
    planted(name, "[1, 2, 3]", &truth, "decide = \"cells\"\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 2")
}

/// A program of that name, which runs batchstep behind some lines of shell.
fn script(folder: &Path, name: &str, lines: &str) -> String {
    let text = format!("#!/bin/sh\n{lines}\nexec '{}' \"$@\"\n", env!("CARGO_BIN_EXE_batchstep"));
    executable(folder, name, &text);
    format!("./{name}")
}

#[test]
#[ignore = "slow"]
fn two_specs_are_measured_in_turns_each_by_its_program() {
    let folder = Folder::new();
    let [old, new] = ["old", "new"].map(|name| script(&folder, name, &format!("echo {name} >> calls")));
    write(&folder, "a.toml", &spec("a", 20));
    write(&folder, "b.toml", &spec("b", 30));
    let arguments =
        ["compare", "--in-turns", "a.toml", "b.toml", "--rounds", "4", "--program", &old, "--program", &new];
    let output = ends(1, &folder, &[&arguments[..], &["--fail-on", "slower", "--run-arg=--device=cpu"]].concat());
    let text = stdout(&output);
    assert!(text.contains("0 SAME, 0 FASTER, 3 SLOWER, 0 AMBIGUOUS"), "{text}");
    assert!(
        text.contains("Measured in turns, in 4 rounds") && !text.contains("looks the same as slower code"),
        "{text}"
    );
    let calls = read(&folder, "calls");
    let calls: Vec<&str> = calls.lines().collect();
    let rounds: Vec<&[&str]> = calls.chunks(2).collect();
    assert_eq!(rounds.len(), 4, "{calls:?}");
    for pair in rounds.chunks(2) {
        assert!(pair[0] != ["old"; 2] && pair[0] != ["new"; 2], "{calls:?}");
        assert!(pair[0].iter().rev().eq(pair[1]), "a round is the one before it the other way round: {calls:?}");
    }
    // Each turn is a separate run, and all can be compared again; none is overwritten by a new measurement.
    assert!(folder.join("results/in-turns/b/4/steps.parquet").is_file());
    let again = run(&folder, &["compare", "--in-turns", "results/in-turns/a", "results/in-turns/b"]);
    assert_eq!((again.status.code(), stdout(&again)), (Some(0), text), "{}", stderr(&again));
    refused(
        &folder,
        &["compare", "--in-turns", "a.toml", "b.toml"],
        &["in-turns/a: turns were measured into this folder before"],
    );
}

#[test]
fn a_turn_that_fails_ends_the_comparison_with_its_message() {
    let folder = Folder::with("a.toml", &spec("a", 20));
    let compare = |arguments: &[&str]| {
        let output = ends(2, &folder, &[&["compare", "--in-turns", "a.toml", "a.toml"], arguments].concat());
        stderr(&output)
    };
    assert!(compare(&["--run-arg=--device=cuda:7x"]).contains("cuda:7x"));
    assert!(compare(&["--out", "x", "--program", "./none"]).contains("start the program"));
    assert!(compare(&["--out", "x", "--rounds", "1"]).contains("from 2 to 1000"));
    assert!(compare(&["--out", "x", "--time", "soon"]).contains("`soon` is not a time limit"));
    let three = ["--out", "x", "--program", "p", "--program", "q", "--program", "r"];
    assert!(compare(&three).contains("3 programs are named for 2 sides"));
}

/// A batchstep whose turns run, until after so many calls one hangs, and writes its number to `pid`.
fn hanging(folder: &Path, calls: usize) -> String {
    let hangs = "mkdir -p \"$3\"; echo $$ > pid; exec sleep 600";
    script(folder, "hanging", &format!("echo x >> calls\nif [ $(wc -l < calls) -gt {calls} ]; then {hangs}; fi"))
}

/// A comparison in turns under way, and the number of the process that hangs in it.
fn under_way(folder: &Path, program: &str) -> (Child, String) {
    write(folder, "a.toml", &spec("a", 20));
    let arguments = ["compare", "--in-turns", "a.toml", "a.toml", "--rounds", "3", "--program", program];
    let child = start(folder, &arguments);
    let pid = || std::fs::read_to_string(folder.join("pid")).unwrap_or_default();
    until("a turn hangs", || pid().ends_with('\n'));
    (child, pid().trim().to_owned())
}

#[test]
#[ignore = "slow"]
fn a_signal_ends_the_turn_under_way_and_the_complete_rounds_can_be_compared() {
    for (calls, rounds) in [(1, 0), (4, 2)] {
        let folder = Folder::new();
        let program = hanging(&folder, calls);
        let (child, pid) = under_way(&folder, &program);
        signal(&child, "-TERM");
        let output = child.wait_with_output().expect("an end");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(&format!("results/in-turns: stopped by a signal after {rounds} of 3 rounds")), "{said}");
        assert!(!Path::new("/proc").join(pid).exists(), "the turn goes on");

        let again = "`batchstep compare --in-turns results/in-turns/a results/in-turns/b`";
        let over = run(&folder, &["compare", "--in-turns", "a.toml", "a.toml"]);
        for said in [said, stderr(&over)] {
            assert!(said.contains("`--out DIR`") && said.contains(again) == (rounds >= 2), "{said}");
        }
        // What is not complete has another name.
        let round = rounds + 1;
        let aside = ["a", "b"].map(|side| folder.join(format!("results/in-turns/{side}/{round}-unfinished")));
        assert_eq!(aside.iter().filter(|turn| turn.is_dir()).count(), 1);
        if rounds >= 2 {
            has(
                &stdout(&ends(0, &folder, &["compare", "--in-turns", "results/in-turns/a", "results/in-turns/b"])),
                &["in 2 rounds"],
            );
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_comparison_that_is_killed_leaves_no_turn_behind() {
    let folder = Folder::new();
    let program = hanging(&folder, 0);
    let (child, pid) = under_way(&folder, &program);
    kill(child);
    // A zombie is over; it has nothing in its memory.
    let is_there = || std::fs::read_to_string(format!("/proc/{pid}/cmdline")).is_ok_and(|line| !line.is_empty());
    until("the turn ends", || !is_there());
}

/// Two runs of the same spec, between which the machine got slower.
#[test]
#[ignore = "slow"]
fn of_two_runs_at_two_times_the_verdict_carries_that_the_machine_may_have_changed() {
    let folder = Folder::with("a.toml", &spec("a", 20).replace("max = 2", "max = 8").replace("min = 2", "min = 8"));
    write(&folder, "b.toml", &spec("b", 22).replace("max = 2", "max = 8").replace("min = 2", "min = 8"));
    ends(0, &folder, &["run", "a.toml", "b.toml"]);
    let output = ends(1, &folder, &["compare", "results/a", "results/b", "--fail-on", "slower"]);
    let text = tidy(&stdout(&output));
    assert!(text.contains("measured at different times"), "{text}");
    assert!(text.contains("looks the same as slower code"), "{text}");
    assert!(stderr(&output).contains("slower may be the code or the machine"), "{}", stderr(&output));
}

/// A table for each side, whose blocks were measured in turns on a machine that gets slower with every block.
#[test]
fn tables_with_blocks_that_were_measured_in_turns_are_compared_block_by_block() {
    let folder = Folder::new();
    let table = |later: f64| {
        let ms = |batch, block| 10.0 * f64::from(batch) * (1.0 + 0.05 * (f64::from(block) + later));
        format!("batch_size,block,step_time_ms\n{}", rows(later.to_bits(), 8, 1..=10, 0.002, ms))
    };
    write(&folder, "first.csv", &table(0.0));
    write(&folder, "in-turns.csv", &table(0.01));
    write(&folder, "after.csv", &table(8.0));
    let compare = |arguments: &[&str]| {
        let output = run(&folder, &[&["compare", "first.csv"], arguments, &["--fail-on", "slower"]].concat());
        (output.status.code(), tidy(&stdout(&output)))
    };
    let (code, text) = compare(&["in-turns.csv", "--in-turns", "--margin", "2%"]);
    assert!(code == Some(0) && text.contains("10 SAME, 0 FASTER, 0 SLOWER, 0 AMBIGUOUS"), "{text}");
    let (code, text) = compare(&["after.csv"]);
    assert!(code == Some(1) && text.contains("When these were measured is not known"), "{text}");
    // A gate that does not know does not pass: a size that is missing, or a single round.
    let first = read(&folder, "first.csv");
    let kept = |keeps: &dyn Fn(&str) -> bool| -> String {
        first.lines().filter(|line| line.starts_with("batch") || keeps(line)).map(|line| format!("{line}\n")).collect()
    };
    write(&folder, "no7.csv", &kept(&|line| !line.starts_with("7,")));
    write(&folder, "one.csv", &kept(&|line| line.contains(",3,")));
    // Each round with its own line of names, as `>>` makes it, is one table.
    let rounds = (0..8).map(|block| kept(&|line| line.contains(&format!(",{block},"))));
    write(&folder, "names.csv", &rounds.collect::<String>());
    let gate = |second: &str| {
        let arguments = ["compare", "--in-turns", "first.csv", second, "--fail-on", "slower"];
        let output = run(&folder, &arguments);
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
    write(&folder, "bare.csv", "batch_size,step_time_ms\n1,2\n2,3\n");
    let output = batchstep(&folder).args(["compare", "--in-turns", "first.csv", "bare.csv"]).output().expect("starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the column `block`"), "{}", stderr(&output));
}

/// A step of one's own, whose name is that of its shell; it prints 10 µs for each example more than `base_us`.
fn own_step(shell: &str, base_us: u32, sizes: &str) -> String {
    format!(
        "version = 1\nname = \"{shell}\"\n[sweep]\nbatch_size = {sizes}\n[engine]\n\
         command = [\"{shell}\", \"-c\", \"echo took $(({base_us} + 10 * {{batch_size}})) us\"]\n\
         seconds = {{ pattern = 'took ([0-9.]+) us', unit = \"us\" }}\n\
         [measure]\ndecide = \"cells\"\nblocks = {{ min = 2, max = 2 }}\nsteps_per_visit = 1\ntime_limit = \"30min\"\n"
    )
}

#[test]
#[ignore = "slow"]
fn versions_of_a_step_of_ones_own_are_compared_whatever_they_are_called() {
    let folder = Folder::with("before.toml", &own_step("sh", 100, "[1, 2, 3]"));
    write(&folder, "after.toml", &own_step("bash", 200, "[1, 2, 3]"));
    let output = ends(0, &folder, &["compare", "--in-turns", "before.toml", "after.toml", "--rounds", "2"]);
    // By hand: 210, 220 and 230 µs over 110, 120 and 130.
    let text = tidy(&stdout(&output));
    assert!(text.contains("0 SAME, 0 FASTER, 3 SLOWER") && text.contains("1.909") && text.contains("1.769"), "{text}");
    assert!(stderr(&output).contains("the step `sh` is compared with `bash`"), "{}", stderr(&output));
    let [a, b, again] = ["a/1", "b/1", "a/2"].map(|turn| format!("results/in-turns/{turn}"));
    let output = run(&folder, &["compare", &a, &b]);
    assert!(stdout(&output).starts_with("DIFFERS at 3 of 3 sizes"), "{}{}", stdout(&output), stderr(&output));
    let output = run(&folder, &["compare", &a, &b, &again]);
    assert!(tidy(&stdout(&output)).contains("1.909 DIFFERS 1.000"), "{}{}", stdout(&output), stderr(&output));
}

#[test]
fn specs_with_no_cell_in_common_are_refused_before_they_are_measured() {
    let folder = Folder::with("a.toml", &spec("a", 20));
    write(&folder, "sizes.toml", &spec("b", 20).replace("[1, 2, 3]", "[4, 5]"));
    write(&folder, "step.toml", &own_step("sh", 100, "[1, 2, 3]"));
    let refusal = |second: &str| {
        let output = ends(2, &folder, &["compare", "--in-turns", "a.toml", second]);
        assert!(!folder.join("results").exists(), "{}", stderr(&output));
        tidy(&stderr(&output))
    };
    let said = refusal("sizes.toml");
    assert!(
        said.contains("sizes.toml: this spec has no cell in common with the first: sizes 1, 2, 3 against 4, 5"),
        "{said}"
    );
    assert!(said.contains("measure the same sizes") && !said.contains("block"), "{said}");
    let said = refusal("step.toml");
    assert!(said.contains("against `sh`") && said.contains("called after its file"), "{said}");
}
