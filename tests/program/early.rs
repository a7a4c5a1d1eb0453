//! A run with fewer complete blocks than it asks for reports only that, everywhere, and says how to continue.

use crate::support::{Folder, ends, parsed, planted, read, run, stderr, stdout, tidy, write};
use serde_json::Value;

/// Twelve batch sizes with a jump that cannot be overlooked. One of them really takes time, so that the time limit ends
/// the run early.
const SPEC: &str = "version = 1\nname = \"early\"\n[sweep]\nbatch_size = \"1..=12\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
                    jumps = [{ after = 6, size = \"50ms\" }]\nnoise = { sd = \"1%\", visits = \"1%\" }\n\
                    hangs = [{ at = 3, for = \"250ms\" }]\n[measure]\nblocks = { min = 4, max = 4 }\nsteps_per_visit = 1\n";

#[test]
#[ignore = "slow"]
fn too_few_blocks_report_nothing_but_how_to_go_on() {
    let folder = Folder::with("early.toml", SPEC);
    let output = run(&folder, &["run", "early.toml", "--time", "300ms"]);
    let (said, warned) = (stdout(&output), stderr(&output));
    assert_eq!(output.status.code(), Some(1), "{warned}");
    let is_early = |text: &str| text.to_lowercase().contains("too early: ") && text.contains(" of 4 blocks");
    assert!(is_early(&said) && is_early(&warned), "{said}{warned}");
    assert!(!said.contains("jump after") && !said.contains("no jump") && !said.contains("Alarms"), "{said}");

    let document = parsed(&read(&folder, "results/early/jumps.json"));
    let series = &document["series"][0];
    assert_eq!((&series["too_early"]["of"], series["jumps"].as_array().map(Vec::len)), (&Value::from(4), Some(0)));
    assert_eq!((&series["p_value"], series["kinks"].as_array().map(Vec::len)), (&Value::Null, Some(0)));
    assert_eq!(document["warnings"][0]["kind"], "too_early");
    let page = read(&folder, "results/early/report.html");
    let shown = page.split("<script type=\"application/json\"").next().expect("a part");
    assert!(is_early(shown) && shown.contains("--resume") && !shown.contains("no jump"), "{shown}");

    // The same from the stored data, by every command and method.
    for arguments in [
        &["jumps", "results/early"][..],
        &["jumps", "results/early", "--method", "pelt"],
        &["jumps", "results/early/steps.parquet"],
        &["explain", "results/early"],
        &["plot", "results/early", "--format", "svg"],
        &["report", "results/early"],
    ] {
        let output = run(&folder, arguments);
        let text = stdout(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {}", stderr(&output));
        assert!(is_early(&stderr(&output)) && !text.contains("jump after"), "{arguments:?}: {text}");
    }
    let chart = read(&folder, "results/early/step_time.svg");
    assert!(is_early(&chart) && !chart.contains("jump"), "{chart}");
    let compared = ends(2, &folder, &["compare", "results/early", "results/early"]);
    assert!(is_early(&stderr(&compared)) && stderr(&compared).contains("--resume"), "{}", stderr(&compared));

    // What it says to do leads to the answer.
    let mut said = said;
    let mut warned = warned;
    for _ in 0..10 {
        if !is_early(&said) {
            break;
        }
        let flat = tidy(&warned);
        let command = flat.split("continue with `batchstep ").nth(1).and_then(|rest| rest.split('`').next());
        let output = run(&folder, &command.expect("a command").split(' ').collect::<Vec<_>>());
        (said, warned) = (stdout(&output), stderr(&output));
    }
    assert!(said.contains("1 jump after 6"), "{said}{warned}");
}

/// A run that has ended keeps its warnings: every reader shows the same list.
#[test]
#[ignore = "slow"]
fn the_warnings_of_a_run_are_one_list_for_the_terminal_the_page_and_the_json() {
    let folder = Folder::new();
    // Noise of 10 % in each visit: slightly more than four blocks cannot decide on a jump of 1 %.
    let spec =
        planted("early", "\"1..=20\"", "noise = { visits = \"10%\" }", "blocks = { max = 5 }\nsteps_per_visit = 1");
    write(&folder, "early.toml", &spec);
    let open = "the tests during the run neither show nor rule out jumps of 1 % at";
    let output = ends(1, &folder, &["run", "early.toml"]);
    assert!(tidy(&stderr(&output)).contains(open), "{}", stderr(&output));
    let heading = stdout(&output);
    assert!(heading.contains("synthetic: Jumps below") && !heading.contains("No jump"), "{heading}");

    let shown = |page: String| page.split("<script type=\"application/json\"").next().unwrap_or_default().to_owned();
    let page = shown(read(&folder, "results/early/report.html"));
    assert!(tidy(&page).contains(&open.replace("1 %", "1\u{202f}%")) || tidy(&page).contains(open), "{page}");
    assert!(!page.contains("has no jump"), "the headline says more than is known: {page}");
    let document = parsed(&read(&folder, "results/early/jumps.json"));
    let warnings = document["warnings"].as_array().expect("a list");
    assert!(warnings.iter().any(|warning| warning["kind"] == "undecided"), "{warnings:?}");
    assert!(warnings.iter().all(|warning| warning["message"].is_string() && warning["help"].is_string()));

    // The same again from the stored run, by commands that read it, and by a resumed run that has nothing left to do.
    let json = run(&folder, &["jumps", "results/early", "--format", "json"]);
    assert_eq!(parsed(&stdout(&json)), document);
    assert!(tidy(&stderr(&json)).contains(open), "{}", stderr(&json));
    run(&folder, &["report", "results/early", "--out", "again.html"]);
    assert_eq!(shown(read(&folder, "again.html")), page);
    let resumed = ends(1, &folder, &["run", "early.toml", "--resume"]);
    assert!(tidy(&stderr(&resumed)).contains(open), "{}", stderr(&resumed));
    assert_eq!(parsed(&read(&folder, "results/early/jumps.json")), document);
}
