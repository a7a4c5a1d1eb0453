//! Which size to use and which to avoid: the command, and the same beside the jumps in a run, its page, its chart and its JSON.

use serde_json::Value;

use crate::support::{
    Folder, Synthetic, batchstep, ends, experiment, has, json, parsed, planted, prints, read, refused, rows, run,
    stderr, stdout, synthetic, write,
};

/// Batch sizes 1 to 48 in six blocks: 10 ms, and 4 ms for each sixteen of which a batch has begun.
fn staircase() -> String {
    let ms = |batch: u32, _| f64::from(10 + 4 * batch.div_ceil(16));
    format!("batch_size,block,time_ms\n{}", rows(3, 6, 1..=48, 0.003, ms))
}

#[test]
fn a_file_gets_its_advice() {
    let folder = Folder::with("a.csv", &staircase());
    let output = run(&folder, &["advise", "a.csv"]);
    let said = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    // 48 of 22 ms; 16 of 14 ms are 1,143 a second, and 20 of 18 ms 1,111.
    has(
        &said,
        &[
            "  Use      48 (2,1",
            "or 47 (2,1",
            "rate still rises where the sweep ends",
            "  Avoid    17-20: fewer examples a second than 16; 33-3",
        ],
    );
    assert!(
        said.ends_with("Another batch size is another training: its learning rate and its result may differ.\n"),
        "{said}"
    );

    // The same after the jumps.
    let jumps = stdout(&run(&folder, &["jumps", "a.csv"]));
    assert!(jumps.find("2 jumps after 16 and 32") < jumps.find("  Use      48 ("), "{jumps}");
    assert!(jumps.contains(&said), "{jumps}");
    let entry = &json(&folder, &["jumps", "a.csv"])["series"][0]["advice"];
    assert_eq!(entry, &json(&folder, &["advise", "a.csv"])["series"][0]["advice"]);
    assert_eq!(
        (&entry["best"]["size"], &entry["unit"], &entry["still_rises"]),
        (&Value::from(48), &"examples/s".into(), &true.into())
    );
    assert_eq!((&entry["avoid"][0]["after"], &entry["avoid"][0]["sizes"][0]), (&Value::from(16), &Value::from(17)));
    // A baseline proves no jump, so that nothing stands on it.
    assert!(json(&folder, &["jumps", "a.csv", "--method", "pelt"])["series"][0]["advice"].is_null());
}

/// 0.5 ms for each example, and for 40 at least: the same rate from 40 on.
#[test]
fn a_plateau_is_no_rise() {
    let table = rows(4, 6, 1..=64, 0.003, |batch, _| 0.5 * f64::from(batch.max(40)));
    let folder = Folder::with("a.csv", &format!("batch_size,block,time_ms\n{table}"));
    let entry = &json(&folder, &["advise", "a.csv"])["series"][0]["advice"];
    assert!(entry["best"]["size"].as_u64().is_some_and(|size| size >= 40) && entry["still_rises"] == false, "{entry}");
}

/// `b` ran out of memory at 56 and 64; of `a` nothing larger than 48 was tried.
#[test]
#[ignore = "slow"]
fn a_larger_size_that_failed_is_not_recommended() {
    let folder = Folder::new();
    let of =
        |variant: &str| -> String { staircase().lines().skip(1).map(|line| format!("{variant},{line}\n")).collect() };
    let failed = "b,56,0,OOM\nb,64,0,OOM\n";
    write(&folder, "a.csv", &format!("variant,batch_size,block,time_ms\n{}{}{failed}", of("a"), of("b")));
    let rises = |found: &Value| -> Vec<bool> {
        let series = found["series"].as_array().cloned().unwrap_or_default();
        series.iter().filter_map(|one| one["advice"]["still_rises"].as_bool()).collect()
    };
    assert_eq!(rises(&json(&folder, &["advise", "a.csv"])), [true, false]);
    // What was read, and what was left out, as `jumps` says it.
    let said = stderr(&run(&folder, &["advise", "a.csv"]));
    has(&said, &["a.csv: `time_ms` against `batch_size`, a time; 2 series by `variant`", "2 rows", "`OOM`", "56, 64"]);

    // The same of a run: x / (10 + x) rises up to its last size.
    for (name, fails, rising) in [("all", "", true), ("some", "fails = [21, 22, 23, 24]", false)] {
        let truth = format!("base = \"10ms\"\nslope = \"1ms\"\nnoise = {{ sd = \"0.3%\" }}\n{fails}");
        let measure = "blocks = { min = 6, max = 6 }\nsteps_per_visit = 2\nseed = 1";
        write(&folder, "a.toml", &planted(name, "\"1..=24\"", &truth, measure));
        run(&folder, &["run", "a.toml"]);
        let path = format!("results/{name}");
        assert_eq!(rises(&json(&folder, &["advise", &path])), [rising], "{name}");
        let said = stderr(&run(&folder, &["advise", &path]));
        assert_eq!(said.contains("warning: 4 cells failed"), !rising, "{said}");
    }
}

#[test]
fn wishes_change_the_advice() {
    let folder = Folder::with("a.csv", &staircase());
    // A step of 33 or more takes 22 ms, one of 17 or more 18 ms.
    let entry = &json(&folder, &["advise", "a.csv", "--latency", "20ms"])["series"][0]["advice"];
    assert_eq!(
        (&entry["best"]["size"], &entry["latency_s"], &entry["still_rises"]),
        (&Value::from(32), &0.02.into(), &false.into())
    );
    // 32 of 18 ms are 1,778 a second, a fifth less than 2,182.
    let entry = &json(&folder, &["advise", "a.csv", "--within", "20%"])["series"][0]["advice"];
    assert_eq!(entry["smallest_within"]["size"], 32, "{entry}");
    for (wish, text) in
        [("--within=5", "share from 0%"), ("--latency=fast", "time"), ("--work=a*b", "formula in one column")]
    {
        refused(&folder, &["advise", "a.csv", wish], &[text]);
    }
}

#[test]
fn without_a_rate_or_an_error_there_is_no_advice() {
    let folder = Folder::with("side.csv", &staircase().replace("batch_size", "N"));
    let output = ends(1, &folder, &["advise", "side.csv"]);
    assert!(stdout(&output).contains("no advice, as `N` counts no examples, tokens or bytes"), "{}", stdout(&output));
    assert!(!stdout(&run(&folder, &["jumps", "side.csv"])).contains("advice"));
    let output = run(&folder, &["advise", "side.csv", "--work", "2*N"]);
    assert!(
        stdout(&output).contains("(2*N)/s)") && !stdout(&output).contains("another training"),
        "{}",
        stdout(&output)
    );
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));

    let once: String = staircase().lines().take(49).map(|line| format!("{line}\n")).collect();
    write(&folder, "once.csv", &once);
    for command in ["advise", "jumps"] {
        prints(&folder, &[command, "once.csv"], &["no advice, as fewer than two sizes were measured 4 times"]);
    }
    let none = &json(&folder, &["advise", "once.csv"])["series"][0];
    assert!(none["advice"].is_null() && none["no_advice"].is_string(), "{none}");
}

#[test]
#[ignore = "slow"]
fn a_run_its_page_and_its_chart_say_the_same() {
    let Synthetic { folder, output } = synthetic();
    let said = stdout(output);
    let (table, advice, cause) =
        (said.find("4 jumps after"), said.find("  Use  "), said.find("  Likely   another algorithm"));
    assert!(table < advice && advice < cause && table.is_some(), "{said}");
    assert!(said.lines().count() <= 25, "{said}");
    let kept = parsed(&read(folder, "results/synthetic/jumps.json"));
    assert_eq!(kept["series"][0]["advice"], json(folder, &["advise", "results/synthetic"])["series"][0]["advice"]);
    assert_eq!(kept["series"][0]["advice"]["avoid"][0]["sizes"][0], 17);
    let page = read(folder, "results/synthetic/report.html");
    has(
        &page,
        &[
            "Which size to use",
            "fewer examples a second than the size before the jump",
            "Another batch size is another training",
        ],
    );
    assert!(page.contains("\"avoid\":[17,18"), "the page's chart shades the same sizes");
    run(folder, &["plot", "results/synthetic", "--format", "svg", "--out", "charts"]);
    assert!(read(folder, "charts/step_time.svg").contains("sizes to avoid"));
}

/// 1 GiB, and 32 MiB for each example.
#[test]
fn the_memory_of_the_best_size_is_its_peak() {
    let folder = Folder::new();
    let row = |line: &str| {
        let batch: u64 = line.split(',').next().and_then(|batch| batch.parse().ok()).expect("a batch size");
        format!("{line},{}\n", (1 << 30) + batch * (32 << 20))
    };
    let table: String = staircase().lines().skip(1).map(row).collect();
    write(&folder, "m.csv", &format!("batch_size,block,time_ms,peak_memory_bytes\n{table}"));
    prints(&folder, &["advise", "m.csv"], &["  Memory   48 takes 2.50 GiB, 47 takes 2.47 GiB\n"]);
    let memory = &json(&folder, &["jumps", "m.csv"])["series"][0]["advice"]["memory"];
    assert_eq!((&memory["size"], &memory["peak_bytes"]), (&Value::from(48), &Value::from(2_684_354_560.0)));
    assert!(memory["total_bytes"].is_null() && memory["fits_about"].is_null(), "{memory}");
}

/// A run of three dense layers with four jumps: the answer fits on a screen, and `--details` shows the rest.
#[test]
#[ignore = "slow"]
fn the_answer_is_short_and_the_details_are_one_flag_away() {
    let folder = Folder::new();
    let stored = experiment("runs/2026-11-23-epyc-2-cores-quickstart");
    for (command, kept, hidden) in [
        (
            "jumps",
            [
                "4 jumps after 16, 32, 48 and 64",
                "  Use  ",
                "  Likely   dense products compute whole vectors of examples",
            ],
            "  Alarms  ",
        ),
        ("explain", ["Why three_dense jumps", "  Likely   ", "whole vectors of examples"], "  Basis  "),
    ] {
        let output = batchstep(&folder).args([command, &stored]).env("COLUMNS", "100").output();
        let brief = stdout(&output.expect("the program starts"));
        assert!(brief.lines().count() <= 25, "{brief}");
        assert!(kept.iter().all(|text| brief.contains(text)) && !brief.contains(hidden), "{brief}");
        assert!(brief.contains("`--details`"), "{brief}");
        let all = stdout(&run(&folder, &[command, &stored, "--details"]));
        assert!(all.contains(hidden) && all.contains(kept[0]), "{all}");
    }
}

/// Series that do not fit on a screen with a table of each.
#[test]
fn many_series_have_a_sentence_each() {
    let of = |gpu: usize| staircase().lines().skip(1).map(|line| format!("{line},gpu{gpu:02}\n")).collect::<String>();
    let text: String = (0..13).map(of).collect();
    let folder = Folder::with("many.csv", &format!("batch_size,block,time_ms,gpu\n{text}"));
    let brief = stdout(&run(&folder, &["jumps", "many.csv"]));
    assert_eq!(brief.matches(": 2 jumps after 16 and 32").count(), 10, "{brief}");
    assert!(brief.contains("and 3 more series, 3 of them with jumps: `--details`"), "{brief}");
    assert!(brief.lines().count() <= 25, "{brief}");
    let all = stdout(&run(&folder, &["jumps", "many.csv", "--details"]));
    assert_eq!(all.matches(": 2 jumps after 16 and 32").count(), 13, "{all}");
}

/// Twelve lines, 10 ms and 0.5 ms for each example, and a staircase, the last of the table.
#[test]
fn of_many_series_those_with_jumps_are_shown() {
    let folder = Folder::new();
    let mut text = "batch_size,block,time_ms,gpu\n".to_owned();
    for gpu in 0..12 {
        let line = rows(8 + gpu, 6, 1..=48, 0.003, |batch, _| 10.0 + 0.5 * f64::from(batch));
        text.extend(line.lines().map(|line| format!("{line},gpu{gpu:02}\n")));
    }
    text.extend(staircase().lines().skip(1).map(|line| format!("{line},gpu12\n")));
    write(&folder, "many.csv", &text);
    let brief = stdout(&run(&folder, &["jumps", "many.csv"]));
    has(
        &brief,
        &["gpu12: 2 jumps after 16 and 32", "gpu12: which batch size to use", "and 3 more series: `--details`"],
    );
    let all = stdout(&run(&folder, &["jumps", "many.csv", "--details"]));
    assert!(all.find("gpu00: ") < all.find("gpu12: 2 jumps"), "all are in the order of the table: {all}");
}

/// Two runs of one step: their series have the same label.
#[test]
fn series_of_several_runs_are_told_apart_by_their_runs() {
    let folder = Folder::new();
    let names = ["2026-11-23-epyc-2-cores-quickstart", "2026-11-23-epyc-2-cores-quickstart-again"];
    let [first, second] = names.map(|name| experiment(&format!("runs/{name}")));
    let said = stdout(&run(&folder, &["jumps", &first, &second]));
    for name in names {
        for text in [format!("three_dense, {name}: 4 jumps"), format!("three_dense, {name}: which batch size to use")] {
            assert!(said.contains(&text), "no `{text}` in {said}");
        }
    }
    let said = stdout(&run(&folder, &["explain", &first, &second]));
    assert!(names.iter().all(|name| said.contains(&format!("Why three_dense, {name} jumps"))), "{said}");
    let alone = stdout(&run(&folder, &["jumps", &first]));
    assert!(alone.starts_with("three_dense: 4 jumps"), "{alone}");
    let group = &json(&folder, &["jumps", &first, &second])["series"][1]["group"];
    assert_eq!(group, &serde_json::json!({"model": "three_dense"}));
}

/// What `jumps` says of how a table was read, for programs as well.
#[test]
fn the_json_says_how_the_table_was_read() {
    let folder = Folder::with("a.csv", &(staircase() + "64,6,OOM\n"));
    let [jumps, advice] = ["jumps", "advise"].map(|command| json(&folder, &[command, "a.csv"]));
    for key in ["x", "y", "y_kind", "read_as", "left_out"] {
        assert!(!advice["series"][0][key].is_null(), "no {key}: {advice}");
        assert_eq!(advice["series"][0][key], jumps["series"][0][key], "{key}");
    }
    assert_eq!(advice["warnings"], jumps["warnings"]);
    assert_eq!(advice["warnings"][0]["sizes"], serde_json::json!([64]));
}
