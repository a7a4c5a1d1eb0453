//! Several runs compared: in one picture, and cell by cell.

use crate::support::{Folder, ends, parsed, planted, read, refused, rows, run, stderr, stdout, tidy, write};

/// Six blocks of 40 batch sizes of a line with a jump of 30 % after each of `jumps`; times in ms, times `factor`, with 0.2 % of noise.
fn csv(seed: u64, factor: f64, jumps: &[u32]) -> String {
    let steps = |batch: u32| jumps.iter().filter(|&&jump| batch > jump).count() as f64;
    let ms = |batch, _| factor * (10.0 + 0.5 * f64::from(batch) + 4.0 * steps(batch));
    format!("batch_size,block,step_time_ms\n{}", rows(seed, 6, 1..=40, 0.002, ms))
}

#[test]
fn several_runs_are_drawn_one_by_one_and_in_one_picture() {
    let folder = Folder::with("t4.csv", &csv(1, 1.0, &[16, 32]));
    write(&folder, "h100.csv", &csv(2, 0.1, &[16]));
    let output = ends(0, &folder, &["plot", "t4.csv", "h100.csv", "--format", "svg"]);
    assert_eq!(stdout(&output), "t4-step_time.svg\nh100-step_time.svg\nruns.svg\n");
    let picture = read(&folder, "runs.svg");
    for text in ["2 runs side by side", "t4", "h100", "Both jump after 16.", "Jumps", "32", "Time per example"] {
        assert!(picture.lines().any(|line| line.trim().contains(text)), "{text} is not in the picture");
    }
    let output = run(&folder, &["plot", "t4.csv", "h100.csv", "--format", "svg", "--out", "charts"]);
    assert_eq!(stdout(&output), "charts/t4-step_time.svg\ncharts/h100-step_time.svg\ncharts/runs.svg\n");
}

#[test]
fn runs_that_cannot_share_a_picture_are_drawn_separately_and_named() {
    let folder = Folder::with("times.csv", &csv(1, 1.0, &[]));
    write(&folder, "rates.csv", &csv(2, 1.0, &[]).replace("step_time_ms", "gbps"));
    let output = ends(0, &folder, &["plot", "times.csv", "rates.csv", "--format", "svg"]);
    assert!(!folder.join("runs.svg").exists());
    assert!(stderr(&output).contains("no combined picture"), "{}", stderr(&output));
    write(&folder, "more.csv", &csv(3, 1.0, &[]));
    let output = run(&folder, &["plot", "times.csv", "rates.csv", "more.csv", "--format", "svg"]);
    assert!(stderr(&output).contains("rates.csv: not in the combined picture"), "{}", stderr(&output));
    assert!(folder.join("runs.svg").exists());
}

#[test]
fn several_runs_are_compared_with_the_first_and_with_each_other() {
    let folder = Folder::with("base.csv", &csv(1, 1.0, &[]));
    write(&folder, "slower.csv", &csv(2, 1.1, &[]));
    write(&folder, "again.csv", &csv(3, 1.0, &[]));
    let compared =
        |files: &[&str]| run(&folder, &[&["compare"], files, &["--margin", "5%", "--fail-on", "slower"]].concat());
    let output = compared(&["base.csv", "again.csv", "slower.csv"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    let lines: Vec<String> = text.lines().map(tidy).collect();
    for (start, end) in [
        ("SAME again: 1.00", " times base; 40 SAME, 0 DIFFERS, 0 AMBIGUOUS"),
        ("DIFFERS slower: 1.10", " times base; 0 SAME, 40 DIFFERS, 0 AMBIGUOUS"),
        ("All against each other", ""),
    ] {
        assert!(lines.iter().any(|line| line.starts_with(start) && line.ends_with(end)), "{text}\nlacks: {start}");
    }
    // By hand: 1.1 to three digits, within the noise of 240 steps of 0.2 %.
    for start in ["slower base 40 1.10", "slower again 40 1.10", "again base 40 1.00"] {
        assert!(lines.iter().any(|line| line.starts_with(start)), "{text}\nlacks: {start}");
    }
    assert_eq!(compared(&["slower.csv", "again.csv", "base.csv"]).status.code(), Some(0));
    refused(&folder, &["compare", "base.csv", "slower.csv", "--margin", "0.01"], &["`0.01` is not a margin"]);
}

/// Six blocks of 12 batch sizes in which every run is slower or faster as a whole by what `run` says; times in ms, with 0.2 % of noise.
fn one_of_several(seed: u64, run: f64, slower_at_7: f64) -> String {
    let more = |batch| if batch == 7 { 1.0 + slower_at_7 } else { 1.0 };
    let ms = |batch: u32, _| (10.0 + 0.5 * f64::from(batch)) * (1.0 + run) * more(batch);
    format!("batch_size,block,step_time_ms\n{}", rows(seed, 6, 1..=12, 0.002, ms))
}

/// The runs of both sides differ by as much as 3 % from one another, as on a machine whose clock changes: two of them would "differ".
#[test]
fn several_runs_a_side_are_compared_by_their_runs() {
    let folder = Folder::new();
    for (i, run) in [0.0, 0.02, -0.01].into_iter().enumerate() {
        write(&folder, &format!("a{i}.csv"), &one_of_several(10 + i as u64, run, 0.0));
        write(&folder, &format!("same{i}.csv"), &one_of_several(20 + i as u64, 0.01 - run, 0.0));
        write(&folder, &format!("slow{i}.csv"), &one_of_several(30 + i as u64, 0.005 - run, 0.08));
    }
    let compared = |arguments: &[&str]| {
        let output = run(&folder, &[&["compare"], arguments, &["--fail-on", "slower"]].concat());
        (output.status.code(), tidy(&stdout(&output)), stderr(&output))
    };
    // With one run a side every size differs: the machine changed by 3 %.
    let (code, text, said) = compared(&["a2.csv", "same2.csv"]);
    assert!(code == Some(1) && text.starts_with("DIFFERS at 12 of 12 sizes, most: "), "{text}");
    assert!(text.contains("one run a side cannot tell, three interleaved runs a side can"), "{text}");
    assert!(text.contains("0 SAME, 12 DIFFERS, 0 AMBIGUOUS") && !text.contains("SLOWER"), "{text}");
    assert!(said.contains("slower may be the code or the machine") && said.contains("--against"), "{said}");
    let sides = |second: &[&str]| compared(&[&["a0.csv", "a1.csv", "a2.csv", "--against"], second].concat());
    let (code, text, said) = sides(&["same0.csv", "same1.csv", "same2.csv"]);
    assert!(
        code == Some(0) && text.starts_with("No size is shown to be slower or faster 0 SAME, 0 FASTER, 0 SLOWER"),
        "{text}"
    );
    assert!(text.contains("3 runs against 3. Runs of one side differ by 1.5 % as wholes and"), "{text}");
    assert!(!said.contains("slower may be"), "{said}");
    let (code, text, said) = sides(&["slow0.csv", "slow1.csv", "slow2.csv"]);
    assert!(code == Some(1) && text.starts_with("SLOWER at 1 of 12 sizes: 7 (+7.8 %, "), "{text}");
    assert!(
        text.contains("When these were measured is not known") && said.contains("should alternate"),
        "{text}{said}"
    );
    for (second, why) in [(&["slow0.csv"][..], "one run on a side"), (&["slow0.csv", "a1.csv"], "named twice")] {
        let (code, _, said) = sides(second);
        assert!(code == Some(2) && said.contains(why), "{said}");
    }
    let output = run(
        &folder,
        &[
            "compare",
            "a0.csv",
            "a1.csv",
            "a2.csv",
            "--against",
            "slow0.csv",
            "slow1.csv",
            "slow2.csv",
            "--format",
            "json",
        ],
    );
    let found = parsed(&stdout(&output));
    assert_eq!((&found["runs"], &found["version"]), (&serde_json::json!([3, 3]), &1.into()));
    let (series, cell) = (&found["series"][0], &found["cells"][6]);
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    // By hand: 0, 2 and -1 % have the standard deviation 1.53 %, on both sides.
    assert!((number(&series["between_runs"]) - 0.0151).abs() < 0.001, "{series}");
    assert!(number(&series["between_runs_at_a_size"]) < 0.004, "{series}");
    assert!((number(&cell["between_runs"]) - 0.0151).abs() < 0.002, "{cell}");
    assert_eq!((&cell["x"], &cell["decision"]), (&7.into(), &"SLOWER".into()));
    assert!(number(&cell["low"]) < 1.08 && number(&cell["high"]) > 1.08, "{cell}");
}

/// Stored runs have their times: A B B A B A is by turns, and A A B B is not.
#[test]
#[ignore = "slow"]
fn whether_several_runs_were_measured_by_turns_is_read_from_them() {
    let folder = Folder::new();
    let spec = |name: &str, seed: u32, base_ms: u32| {
        let truth = format!("base = \"{base_ms}ms\"\nseed = {seed}\nnoise = {{ sd = \"0.5%\" }}");
        planted(name, "[1, 2, 3]", &truth, "decide = \"cells\"\nblocks = { min = 4, max = 4 }\nsteps_per_visit = 2")
    };
    for (seed, name) in ["a0", "a1", "b1", "b2", "a2", "b3", "a3"].into_iter().enumerate() {
        write(&folder, &format!("{name}.toml"), &spec(name, seed as u32, if name.starts_with('a') { 20 } else { 22 }));
        ends(0, &folder, &["run", &format!("{name}.toml")]);
    }
    let compared = |first: &[&str], second: &[&str]| {
        let path = |name: &&str| format!("results/{name}");
        let (first, second): (Vec<String>, Vec<String>) =
            (first.iter().map(path).collect(), second.iter().map(path).collect());
        let mut all = vec!["compare"];
        all.extend(first.iter().map(String::as_str).chain(["--against"]).chain(second.iter().map(String::as_str)));
        all.extend(["--fail-on", "slower"]);
        let output = ends(1, &folder, &all);
        (tidy(&stdout(&output)), stderr(&output))
    };
    let (text, said) = compared(&["a1", "a2", "a3"], &["b1", "b2", "b3"]);
    // By hand: the geometric mean of 23 / 21, 24 / 22 and 25 / 23.
    assert!(text.starts_with("SLOWER as a whole: +9.1 %, ") && text.contains("3 runs against 3"), "{text}");
    assert!(
        text.contains("Neither side was measured before the other. Of equal code, at most 5 %")
            && !text.contains("slower code"),
        "{text}"
    );
    assert!(!said.contains("may be the code"), "{said}");
    let (text, said) = compared(&["a0", "a1"], &["b1", "b2"]);
    assert!(text.contains("measured at different times") && said.contains("A, B, B, A, A, B"), "{text}{said}");
    // The rate of false alarms was counted from three runs a side on.
    assert!(text.contains("how often equal code is named is not known") && !text.contains("at most 5 %"), "{text}");
}

/// Of each of two models, only one size of the second is slower.
#[test]
fn a_listed_cell_of_several_series_is_named_with_its_series() {
    let folder = Folder::new();
    let table = |seeds: [u64; 2], slower_at_7: f64| {
        let of = |(model, text): (&str, String)| -> String {
            text.lines().skip(1).map(|line| format!("{model},{line}\n")).collect()
        };
        let [x, y] = [one_of_several(seeds[0], 0.0, 0.0), one_of_several(seeds[1], 0.0, slower_at_7)];
        format!("model,batch_size,block,step_time_ms\n{}{}", of(("x", x)), of(("y", y)))
    };
    write(&folder, "a.csv", &table([40, 41], 0.0));
    write(&folder, "b.csv", &table([42, 43], 0.08));
    let output = run(&folder, &["compare", "a.csv", "b.csv"]);
    let text = stdout(&output);
    let lines: Vec<String> = text.lines().map(tidy).collect();
    assert!(lines.iter().any(|line| line.starts_with("series batch size first second")), "{text}{}", stderr(&output));
    assert!(lines.iter().any(|line| line.starts_with("y 7 ") && line.ends_with("DIFFERS")), "{text}");
}

#[test]
fn a_constant_ratio_of_single_values_is_a_difference_and_no_rate_of_false_alarms_is_promised() {
    let folder = Folder::new();
    let row = |batch: u32| {
        let old = 5.0 + 0.1 * f64::from(batch);
        format!("{batch},{old:.1},{:.1}\n", 2.0 * old)
    };
    let rows: String = (1..=40).map(row).collect();
    write(&folder, "both.csv", &format!("batch,old_ms,new_ms\n{rows}"));
    let output = ends(1, &folder, &["compare", "both.csv", "--y", "old_ms,new_ms", "--fail-on", "slower"]);
    let text = tidy(&stdout(&output));
    assert!(text.starts_with("DIFFERS at 40 of 40 sizes, most: ") && text.contains("(+100 %, "), "{text}");
    assert!(text.contains("how often equal tables have a size that DIFFERS is not known"), "{text}");
    assert!(text.contains("Give repetitions") && !text.contains("at most 5 %"), "{text}");
}
