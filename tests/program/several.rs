//! Several runs compared: in one picture, and cell by cell.

use std::fmt::Write;

use crate::support::{run, stderr, stdout, write};

/// Six blocks of 40 batch sizes of a line with a jump of 30 % after each of `jumps`; times in ms, times `factor`, with 0.2 % of noise.
fn csv(seed: u64, factor: f64, jumps: &[u32]) -> String {
    let mut random = batchstep::random::Rng::new(seed);
    let mut text = String::from("batch_size,block,step_time_ms\n");
    for block in 0..6 {
        for batch in 1..=40u32 {
            let steps = jumps.iter().filter(|&&jump| batch > jump).count() as f64;
            let time = factor * (10.0 + 0.5 * f64::from(batch) + 4.0 * steps) * (1.0 + 0.002 * random.normal());
            writeln!(text, "{batch},{block},{time:.6}").expect("a string");
        }
    }
    text
}

#[test]
fn several_runs_are_drawn_one_by_one_and_in_one_picture() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "t4.csv", &csv(1, 1.0, &[16, 32]));
    write(folder.path(), "h100.csv", &csv(2, 0.1, &[16]));
    let output = run(folder.path(), &["plot", "t4.csv", "h100.csv", "--format", "svg"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(stdout(&output), "t4-step_time.svg\nh100-step_time.svg\nruns.svg\n");
    let picture = std::fs::read_to_string(folder.path().join("runs.svg")).expect("a picture");
    for text in ["2 runs side by side", "t4", "h100", "Both jump after 16.", "Jumps", "32", "Time per example"] {
        assert!(picture.lines().any(|line| line.trim().contains(text)), "{text} is not in the picture");
    }
    let output = run(folder.path(), &["plot", "t4.csv", "h100.csv", "--format", "svg", "--out", "charts"]);
    assert_eq!(stdout(&output), "charts/t4-step_time.svg\ncharts/h100-step_time.svg\ncharts/runs.svg\n");
}

#[test]
fn runs_that_cannot_share_a_picture_are_drawn_separately_and_named() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "times.csv", &csv(1, 1.0, &[]));
    write(folder.path(), "rates.csv", &csv(2, 1.0, &[]).replace("step_time_ms", "gbps"));
    let output = run(folder.path(), &["plot", "times.csv", "rates.csv", "--format", "svg"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(!folder.path().join("runs.svg").exists());
    assert!(stderr(&output).contains("no combined picture"), "{}", stderr(&output));
    write(folder.path(), "more.csv", &csv(3, 1.0, &[]));
    let output = run(folder.path(), &["plot", "times.csv", "rates.csv", "more.csv", "--format", "svg"]);
    assert!(stderr(&output).contains("rates.csv: not in the combined picture"), "{}", stderr(&output));
    assert!(folder.path().join("runs.svg").exists());
}

#[test]
fn several_runs_are_compared_with_the_first_and_with_each_other() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "base.csv", &csv(1, 1.0, &[]));
    write(folder.path(), "slower.csv", &csv(2, 1.1, &[]));
    write(folder.path(), "again.csv", &csv(3, 1.0, &[]));
    let compared = |files: &[&str]| {
        run(folder.path(), &[&["compare"], files, &["--margin", "5%", "--fail-on", "slower"]].concat())
    };
    let output = compared(&["base.csv", "again.csv", "slower.csv"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    let tidy: Vec<String> = text.lines().map(|l| l.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for (start, end) in [
        ("SAME again: 1.00", " times base; 40 SAME, 0 FASTER, 0 SLOWER, 0 AMBIGUOUS"),
        ("SLOWER slower: 1.10", " times base; 0 SAME, 0 FASTER, 40 SLOWER, 0 AMBIGUOUS"),
        ("All against each other", ""),
    ] {
        assert!(tidy.iter().any(|line| line.starts_with(start) && line.ends_with(end)), "{text}\nlacks: {start}");
    }
    // By hand: 1.1 to three digits, within the noise of 240 steps of 0.2 %.
    for start in ["slower base 40 1.10", "slower again 40 1.10", "again base 40 1.00"] {
        assert!(tidy.iter().any(|line| line.starts_with(start)), "{text}\nlacks: {start}");
    }
    assert_eq!(compared(&["slower.csv", "again.csv", "base.csv"]).status.code(), Some(0));
}
