//! The HTML page: written by every run and by the command, as one file that works in a browser and has the data of
//! jumps.json.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::needs;
use crate::support::{Folder, Synthetic, ends, has, parsed, read, run, stderr, stdout, succeeds, synthetic, write};

/// The JSON that the page's script reads.
fn data(page: &str) -> Value {
    let start = "<script type=\"application/json\" id=\"data\">";
    let json = page.split(start).nth(1).and_then(|rest| rest.split("</script>").next()).expect("data");
    parsed(json)
}

#[test]
fn a_run_writes_its_page_with_the_numbers_of_jumps_json() {
    let Synthetic { folder, output } = synthetic();
    assert!(stdout(output).contains("Report   results/synthetic/report.html"), "{}", stdout(output));
    let directory = folder.join("results/synthetic");
    let page = read(&directory, "report.html");
    assert!(page.len() < 3_000_000, "{} bytes", page.len());
    has(
        &page,
        &[
            "The step time of synthetic jumps up after batch size 16, 32, 48 and 64.",
            "batchstep run spec.toml",
            "environment.json",
            "Why synthetic jumps after 16",
        ],
    );
    // Nothing is loaded: attributes have no address except the empty icon and places in the page.
    for attribute in ["src=", "href=", "url(", "@import"] {
        for (at, _) in page.match_indices(attribute) {
            let rest = page[at + attribute.len()..].trim_start_matches('"');
            let inside = rest.starts_with("data:,") || rest.starts_with('#') || !page[..at].contains("<body>");
            assert!(inside || !page[..at].ends_with(' '), "{}", &page[at..page.len().min(at + 80)]);
        }
    }
    let data = data(&page);
    let stored = parsed(&read(&directory, "jumps.json"));
    assert_eq!(data["documents"][0]["jumps"], stored);
    // The chart marks the same jumps; all points and steps are there.
    let series = &data["steps"][0]["series"][0];
    let after = |jumps: &Value| -> Vec<Value> {
        jumps.as_array().expect("a list").iter().map(|jump| jump["after"].clone()).collect()
    };
    assert_eq!(after(&series["jumps"]), after(&stored["series"][0]["jumps"]));
    assert_eq!(series["center"].as_array().map(Vec::len), stored["series"][0]["points"].as_u64().map(|n| n as usize));
    let steps: u64 = series["steps"].as_array().expect("a list").iter().filter_map(Value::as_u64).sum();
    let table = batchstep::store::Table::read(&directory, &["warmup", "status"]).expect("a table");
    let counted = table.texts("warmup").expect("texts").iter().filter(|text| *text == "false" || *text == "0").count();
    assert_eq!(steps, counted as u64);
    assert_eq!(data["honesty"][0]["of"].as_u64(), Some(table.rows() as u64));

    // The command writes the same page again, and one for the metadata-free file.
    let again = ends(0, folder, &["report", "results/synthetic", "--out", "again.html"]);
    assert_eq!(stdout(&again), "again.html\n");
    assert_eq!(read(folder, "again.html"), page);
}

#[test]
fn several_runs_share_a_page_and_a_file_has_its_own() {
    let line = |batch: u32| format!("{batch},{}\n", 10.0 + f64::from(batch) + if batch > 16 { 6.0 } else { 0.0 });
    let table = |times: u32| -> String { (0..times).flat_map(|_| 1..=32).map(line).collect() };
    let folder = Folder::with("a.csv", &format!("batch_size,step_time_ms\n{}", table(3)));
    write(&folder, "b.csv", &format!("batch_size,step_time_ms\n{}", table(4)));
    let output = run(&folder, &["report", "a.csv"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "a-report.html\n"), "{}", stderr(&output));
    let output = run(&folder, &["report", "a.csv", "b.csv"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), "report.html\n"), "{}", stderr(&output));
    let data = data(&read(&folder, "report.html"));
    let names: Vec<&str> =
        data["steps"][0]["series"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(names.len() == 2 && names[0].starts_with("a:") && names[1].starts_with("b:"), "{names:?}");
    assert_eq!(data["documents"].as_array().map(Vec::len), Some(2));
    let page = read(&folder, "report.html");
    assert_eq!(page.matches("batchstep report ").count(), 1, "one command makes the whole page again");
    assert!(page.contains(">batchstep report a.csv b.csv</pre>"), "that of both files");
}

/// A region, a file with a gap and sizes that span too much: what a page says of them is what they are called.
#[test]
fn a_page_changes_no_name_and_claims_nothing_that_was_not_searched() {
    let folder = Folder::new();
    let mut text = "region,batch_size,step_time_us\nus-east-1,1,\n".to_owned();
    for (n, batch) in (0..4).flat_map(|_| 1..=16).enumerate() {
        for region in ["us-east-1", "us-west-2"] {
            text += &format!("{region},{batch},{}\n", 10.0 + f64::from(batch) + 0.01 * (n % 5) as f64);
        }
    }
    write(&folder, "us.csv", &text);
    succeeds(&folder, &["report", "us.csv"]);
    let page = read(&folder, "us-report.html");
    let body = page.split("<script type=\"application/json\"").next().expect("a part");
    assert!(body.contains("us-east-1") && body.contains("batchstep report us.csv"), "{body}");
    assert!(!body.contains("\u{b5}s-") && !body.contains("\u{b5}s.csv") && !body.contains("Us.csv"), "{body}");
    assert!(body.contains("us.csv: 1 row without a number in `step_time_us` is left out"), "{body}");
    let line =
        |power: i32| format!("{},{}\n", 1u64 << power, 10.0 + 1e-4 * 2f64.powi(power) + f64::from(power % 3) * 0.01);
    // Zero has no logarithm.
    let times: String = (0..4).flat_map(|_| 0..=30).map(line).chain(["0,10.0\n".to_owned()]).collect();
    write(&folder, "wide.csv", &format!("bytes,latency_us\n{times}"));
    succeeds(&folder, &["report", "wide.csv"]);
    let page = read(&folder, "wide-report.html");
    assert!(page.contains("No jump was looked for: the sizes span too many orders of magnitude"), "{page}");
    assert!(!page.contains("has no jump"), "{page}");
}

#[test]
fn every_command_has_two_examples() {
    let folder = Folder::new();
    let help = stdout(&run(&folder, &["--help"]));
    let groups = help.split_once("\nMeasure\n").and_then(|(_, rest)| rest.split_once("\nOptions:"));
    let commands: Vec<&str> = groups
        .map_or("", |(groups, _)| groups)
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    assert!(commands.len() >= 9, "{commands:?}");
    for command in commands {
        let help = stdout(&run(&folder, &[command, "--help"]));
        let examples: Vec<&str> = help.split("Examples:\n").nth(1).unwrap_or_default().lines().collect();
        let lines = examples.iter().filter(|line| line.starts_with(&format!("  batchstep {command}"))).count();
        assert_eq!(lines, 2, "{command}:\n{help}");
    }
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(&folder, &["completions", shell]);
        let script = stdout(&output);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        has(&script, &["report", "compare", "fail-on", "smallest-jump"]);
    }
    let bash = write(&folder, "batchstep.bash", &stdout(&run(&folder, &["completions", "bash"])));
    let script = "source \"$1\"; COMP_WORDS=(batchstep rep); COMP_CWORD=1; _batchstep batchstep rep batchstep; echo \"${COMPREPLY[*]}\"";
    let output = Command::new("bash").args(["-c", script, "bash"]).arg(bash).output().expect("bash");
    assert_eq!(stdout(&output).trim(), "report", "{}", stderr(&output));
    ends(0, &folder, &["man", "man"]);
    for (page, text) in
        [("batchstep.1", "batchstep"), ("batchstep-report.1", "Examples"), ("batchstep-run.1", "smallest")]
    {
        let text_of = read(&folder.join("man"), page);
        assert!(text_of.starts_with(".") && text_of.contains(".TH") && text_of.contains(text), "{page}:\n{text_of}");
    }
}

#[test]
#[ignore = "slow"]
fn the_page_works_in_a_browser() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let checked = Command::new("node")
        .arg(root.join("scripts/check-report"))
        .arg(synthetic().folder.join("results/synthetic"))
        .env("BATCHSTEP", env!("CARGO_BIN_EXE_batchstep"))
        .output();
    let Ok(checked) = checked else { return needs::missing("chromium", "node is not installed") };
    match checked.status.code() {
        Some(77) => needs::missing("chromium", stderr(&checked)),
        code => assert_eq!(code, Some(0), "{}{}", stdout(&checked), stderr(&checked)),
    }
}

/// As the workflow runs it, on runs whose times are planted.
#[test]
fn the_action_fails_where_a_batch_size_is_slower() {
    let folder = Folder::new();
    let table = |factor: f64| -> String {
        let mut text = "batch_size,step_time_ms,block\n".to_owned();
        for (block, batch) in (0..12).flat_map(|block| (1..=8).map(move |batch| (block, batch))) {
            let noise = 1.0 + 0.002 * (f64::from(block * 8 + batch) * 12.9898).sin();
            text += &format!("{batch},{},{block}\n", (10.0 + f64::from(batch)) * noise * factor);
        }
        text
    };
    write(&folder, "before.csv", &table(1.0));
    write(&folder, "same.csv", &table(1.0));
    write(&folder, "slower.csv", &table(1.1));
    let program = Path::new(env!("CARGO_BIN_EXE_batchstep")).parent().expect("a folder").to_owned();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let action_with = |baseline: &str, candidate: &str, fail: &str, in_turns: &str| {
        let [summary, outputs] = ["summary.md", "outputs"].map(|name| folder.join(name));
        for file in [&summary, &outputs] {
            let _ = std::fs::remove_file(file);
        }
        let done = Command::new("bash")
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/compare-action"))
            .current_dir(&folder)
            .env("PATH", &path)
            .env("BASELINE", baseline)
            .env("CANDIDATE", candidate)
            .env("FAIL", fail)
            .env("IN_TURNS", in_turns)
            .env("GITHUB_STEP_SUMMARY", &summary)
            .env("GITHUB_OUTPUT", &outputs)
            .output()
            .expect("bash");
        (
            done.status.code(),
            std::fs::read_to_string(summary).unwrap_or_default(),
            std::fs::read_to_string(outputs).unwrap_or_default(),
            stdout(&done),
        )
    };
    let action_of = |baseline: &str, candidate: &str, fail: &str| action_with(baseline, candidate, fail, "false");
    let action = |candidate: &str, fail: &str| action_of("before.csv", candidate, fail);
    let (code, summary, outputs, _) = action("same.csv", "slower");
    assert_eq!((code, outputs.as_str()), (Some(0), "slower=false\n"), "{summary}");
    assert!(summary.contains("No batch size is shown to be slower") && summary.contains("SAME"), "{summary}");
    let (code, summary, outputs, _) = action("slower.csv", "slower");
    assert_eq!((code, outputs.as_str()), (Some(1), "slower=true\n"), "{summary}");
    assert!(summary.contains("got slower") && summary.contains("DIFFERS") && !summary.contains("SLOWER"), "{summary}");
    let (code, _, _, log) = action("slower.csv", "never");
    assert!(code == Some(0) && log.contains("\n::warning ") && !log.contains("::error "), "{log}");
    // Which size, and by how much; a percent sign is a code there.
    let (_, _, _, log) = action("slower.csv", "slower");
    let said = log.lines().find(|line| line.starts_with("::error ")).expect("an error");
    assert!(said.contains("DIFFERS at ") && said.contains("(+10 %25, "), "{said}");
    // Several runs a side, a line each; with these the verdict is on the code.
    for (name, factor) in [("before2", 1.001), ("before3", 0.999), ("slower2", 1.101), ("slower3", 1.099)] {
        write(&folder, &format!("{name}.csv"), &table(factor));
    }
    let [before, slower] = ["before", "slower"].map(|name| format!("{name}.csv\n  {name}2.csv\n\n{name}3.csv\n"));
    let (code, summary, outputs, log) = action_of(&before, &slower, "slower");
    assert_eq!((code, outputs.as_str()), (Some(1), "slower=true\n"), "{summary}");
    let said = log.lines().find(|line| line.starts_with("::error ")).expect("an error");
    assert!(said.contains("SLOWER as a whole: +10 %25") && !said.contains("DIFFERS"), "{said}");
    assert_eq!(action_of(&slower, &before, "slower").0, Some(0));
    // In turns there is one of each, also where its line ends; with several it is refused before anything is compared.
    let (code, summary, _, _) = action_with("before.csv\n", "same.csv\n", "slower", "true");
    assert!(code == Some(0) && summary.contains("Measured in turns, in 12 rounds"), "{summary}");
    for (baseline, candidate) in [(&before[..], "slower.csv"), ("before.csv", &slower[..])] {
        let (code, summary, _, log) = action_with(baseline, candidate, "slower", "true");
        assert!(code == Some(2) && summary.is_empty() && log.contains("give one line in `baseline`"), "{log}{summary}");
    }
    assert_ne!(action_of("before.csv", " \n\n", "slower").0, Some(0));
    // One against several shows nothing of what differs between the first side's runs.
    assert_eq!(action(&slower, "slower").0, Some(2));
    assert_eq!(action("missing.csv", "slower").0, Some(2));
    assert_eq!(action("same.csv", "sometimes").0, Some(2));
    // No input is taken for an option, and none for a command to the runner.
    for option in ["--help", "--version", "-h"] {
        let (code, summary, outputs, _) = action(option, "slower");
        assert_eq!((code, outputs.as_str()), (Some(2), "slower=false\n"), "{option}: {summary}");
    }
    let foreign = "::error::x";
    let text = std::fs::read_to_string(folder.join("slower.csv")).expect("readable");
    write(&folder, "foreign.csv", &text.replace("step_time_ms", foreign));
    let (_, _, _, log) = action("foreign.csv", "x\n::error::x");
    assert_eq!(log.lines().filter(|line| line.starts_with("::")).count(), 1, "{log}");
    let (_, summary, _, log) = action("foreign.csv", "slower");
    assert!(summary.contains(foreign), "{summary}");
    let (before, after) = log.split_once("::stop-commands::").expect("commands are stopped");
    let (token, stopped) = after.split_once('\n').expect("a line");
    let (stopped, rest) = stopped.split_once(&format!("\n::{token}::\n")).expect("and go on");
    assert!(token.len() == 32 && before.is_empty() && stopped.contains(foreign) && !rest.contains(foreign), "{log}");
}

/// Things that others can change are referenced by their content, and the Action installs the version to which it
/// belongs.
#[test]
fn workflows_pin_actions_by_commit_and_the_action_installs_its_own_version() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let read = |name: &str| std::fs::read_to_string(root.join(name)).expect(name);
    let mut used = 0;
    for name in ["action.yml", ".github/workflows/release.yml", "docs/compare-in-ci.md"] {
        // What lies in the checkout is of its commit.
        let is_foreign = |line: &&str| line.trim_start().starts_with("- uses: ") && !line.contains("uses: ./");
        for line in read(name).lines().filter(is_foreign) {
            let (action, pin) = line.split_once('@').expect("a version");
            let commit = pin.split_whitespace().next().expect("a commit");
            // Our own releases are referenced by their tags.
            let ours = action.ends_with("OWNER/batchstep") && commit == concat!("v", env!("CARGO_PKG_VERSION"));
            assert!(ours || commit.len() == 40 && commit.chars().all(|c| c.is_ascii_hexdigit()), "{name}: {line}");
            used += 1;
        }
    }
    assert!(used >= 8, "{used}");
    let pinned = concat!("    default: batchstep==", env!("CARGO_PKG_VERSION"), "\n");
    assert!(read("action.yml").contains(pinned), "action.yml");
}

/// GitHub reads the file as YAML, where a plain value must not hold a colon with a space behind it, nor begin with a character that means something.
#[test]
fn the_values_of_the_action_are_valid_yaml() {
    let text = read(Path::new(env!("CARGO_MANIFEST_DIR")), "action.yml");
    // What is indented more than `run: |` is a text of its own.
    let mut block: Option<usize> = None;
    let mut values = 0;
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let indent = line.len() - line.trim_start().len();
        if block.is_some_and(|begin| indent > begin) {
            continue;
        }
        let (key, value) = line.split_once(':').unwrap_or_else(|| panic!("no key: {line}"));
        let value = value.trim();
        block = (value == "|").then_some(indent);
        assert!(!key.contains(['"', '`']), "{line}");
        let quoted = |mark: char| value.len() > 1 && value.starts_with(mark) && value.ends_with(mark);
        let is_plain = !value.contains(": ")
            && !value.contains(" #")
            && !value.starts_with(['`', '@', '%', '&', '*', '!', '[', '{', '"', '\'']);
        assert!(quoted('"') || quoted('\'') || is_plain, "needs quotes: {line}");
        values += 1;
    }
    assert!(values > 30, "{values}");
}
