//! Other people's data: CSV and Parquet with a batch-size and a time column.

use std::fmt::Write;

use crate::support::{Folder, ends, has, parsed, prints, read, refused, rows, run, stderr, stdout, write};
use serde_json::Value;

/// A line with a jump of 3 ms after 20, five repetitions with 0.2 % noise; times in ms.
fn csv(header: &str, separator: char, gpus: &[&str]) -> String {
    let ms = |batch: u32, _| 10.0 + 0.5 * f64::from(batch) + if batch > 20 { 3.0 } else { 0.0 };
    let mut text = format!("{header}\n");
    for (seed, gpu) in (3..).zip(gpus) {
        let table = rows(seed, 5, 1..=40, 0.002, ms).replace(',', &separator.to_string());
        text.extend(table.lines().map(|line| format!("{line}{separator}{gpu}\n")));
    }
    text
}

fn json(folder: &std::path::Path, arguments: &[&str]) -> Value {
    let output = ends(0, folder, &[&["jumps"], arguments, &["--format", "json"]].concat());
    parsed(&stdout(&output))
}

#[test]
fn a_csv_of_another_program_gives_its_jump() {
    let folder = Folder::with("a.csv", &csv("batch,rep,time_ms,gpu", ',', &["T4"]));
    let found = json(&folder, &["a.csv"]);
    let series = &found["series"][0];
    assert_eq!(series["unit"], "ms");
    assert_eq!(series["points"], 40);
    assert_eq!(series["jumps"].as_array().map(Vec::len), Some(1));
    assert_eq!(series["jumps"][0]["after"], 20);
    let size = series["jumps"][0]["size"].as_f64().expect("a number");
    assert!((size - 3.0).abs() < 0.15, "{size}");
}

#[test]
fn german_spreadsheets_and_odd_names_are_read() {
    let text = format!("\u{feff}{}", csv("Batch Size;rep;Latency (ms);gpu", ';', &["T4"]));
    let folder = Folder::with("b.csv", &text);
    assert_eq!(json(&folder, &["b.csv"])["series"][0]["jumps"][0]["after"], 20);
    let named = json(&folder, &["b.csv", "--x", "Batch Size", "--y", "Latency (ms)"]);
    assert_eq!(named["series"][0]["jumps"][0]["after"], 20);
}

#[test]
fn groups_become_series() {
    let folder = Folder::with("c.csv", &csv("batch_size,rep,step_time_ms,gpu", ',', &["T4", "V100"]));
    let found = json(&folder, &["c.csv"]);
    assert_eq!(found["series"].as_array().map(Vec::len), Some(2));
    assert_eq!(found["series"][1]["group"]["gpu"], "V100");
    let by_repetition = json(&folder, &["c.csv", "--group", "gpu,rep"]);
    assert_eq!(by_repetition["series"].as_array().map(Vec::len), Some(10));
}

/// A GPU's name that would clear the screen, give GitHub's runner a command, reverse letters, and is not valid XML.
const HOSTILE: &str = "T4\u{1b}[2J\n::error::pwned\r\u{7}\u{202e}\u{9b}1m\u{fffe}";

fn assert_harmless(text: &str) {
    let mark = |c: char| c.is_control() && !"\n\t".contains(c) || "\u{202e}\u{fffe}\u{2028}".contains(c);
    assert!(!text.contains(mark), "{text:?}");
    assert!(!text.lines().any(|line| line.trim_start().starts_with("::")), "{text:?}");
}

#[test]
fn names_in_a_file_are_harmless_wherever_they_are_shown() {
    let quoted = format!("\"{HOSTILE}\"");
    let header = "batch_size,rep,\"time\u{1b}[31m\u{202e}_ms\",gpu";
    let folder = Folder::with("a.csv", &csv(header, ',', &[&quoted, "V100"]));
    let column = "time\u{1b}[31m\u{202e}_ms";
    for arguments in [
        &["jumps", "a.csv", "--y", column][..],
        &["jumps", "a.csv", "--y", column, "--format", "json"],
        &["compare", "a.csv", "a.csv", "--y", column],
        &["plot", "a.csv", "--y", column, "--format", "svg"],
        &["report", "a.csv", "--y", column],
        // Refused or unknown values are quoted in messages.
        &["jumps", "a.csv"],
        &["jumps", "a.csv", "--x", column, "--y", "a\u{7}\n::error::x"],
        &["jumps", "a\n::error::\u{1b}[2J.csv"],
    ] {
        let output = run(&folder, arguments);
        assert_harmless(&stdout(&output));
        assert_harmless(&stderr(&output));
    }
    let drawn = read(&folder, "a-step_time.svg");
    assert_harmless(&drawn);
    assert!(drawn.contains("T4\\u001b[2J\\n::error::pwned"), "the name is still to be recognised");
    let found = json(&folder, &["a.csv", "--y", column]);
    assert_eq!(found["series"].as_array().map(Vec::len), Some(2));
    for entry in std::fs::read_dir(&folder).expect("a folder").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "html") {
            let page = std::fs::read_to_string(entry.path()).expect("a page");
            let shown = page.split("<script").next().expect("what stands before the script");
            assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}', '\u{9b}']), "{shown}");
        }
    }
}

/// Three values for every multiple of 256: 800 GB/s minus the loss at small sizes, and 12 % less after 5120.
fn bandwidth(header: &str) -> String {
    let mut random = batchstep::random::Rng::new(5);
    let mut text = format!("{header}\n");
    for size in (1..=40).map(|i| 256 * i) {
        for _ in 0..3 {
            let share = if size > 5120 { 0.88 } else { 1.0 };
            let rate = 800.0 * share * f64::from(size) / (f64::from(size) + 200.0) * (1.0 + 0.003 * random.normal());
            writeln!(text, "{size},{rate:.4}").expect("a string");
        }
    }
    text
}

#[test]
fn a_rate_is_found_by_name_and_called_a_rate() {
    let folder = Folder::with("copy.csv", &bandwidth("N,gbps"));
    let found = &json(&folder, &["copy.csv"])["series"][0];
    let texts = ["x", "y", "y_kind", "unit"].map(|key| found[key].as_str().expect("a text").to_string());
    assert_eq!(texts, ["N", "gbps", "rate", "GB/s"]);
    let jump = &found["jumps"][0];
    assert_eq!((&jump["after"], &jump["after_low"], &jump["after_high"]), (&5120.into(), &5120.into(), &5120.into()));
    // By hand: at 5376 the rate falls by 12 % of 800 x 5376 / 5576 = 92.6 GB/s.
    let (size, relative) = (jump["size"].as_f64().expect("a number"), jump["relative"].as_f64().expect("a number"));
    assert!((size + 92.6).abs() < 5.0 && (relative + 0.12).abs() < 0.01, "{jump}");
    assert_eq!(jump["direction"], "down");
    let table = stdout(&run(&folder, &["jumps", "copy.csv"]));
    assert!(table.contains("GB/s") && table.contains('▼') && table.contains("changes of a rate"), "{table}");
    ends(0, &folder, &["plot", "copy.csv", "--format", "svg"]);
    let chart = read(&folder, "copy-step_time.svg");
    let has = |text: &str| chart.lines().any(|line| line.trim() == text);
    assert!(has("Bandwidth (GB/s)") && has("N") && !chart.contains("Time per"));
}

/// A jump of 3.5 % in noise of 1 %, one value for each x: the place is known only to within two.
#[test]
fn a_place_that_noise_leaves_open_is_an_interval() {
    let folder = Folder::new();
    let mut random = batchstep::random::Rng::new(2);
    let mut text = "batch_size,time_ms\n".to_string();
    for x in 1..=80 {
        let time = 100.0 * if x > 40 { 1.035 } else { 1.0 } * (1.0 + 0.01 * random.normal());
        writeln!(text, "{x},{time:.4}").expect("a string");
    }
    write(&folder, "faint.csv", &text);
    let jump = &json(&folder, &["faint.csv"])["series"][0]["jumps"][0];
    assert_eq!((&jump["after"], &jump["after_low"], &jump["after_high"]), (&40.into(), &40.into(), &41.into()));
    prints(&folder, &["jumps", "faint.csv"], &["40 (40 to 41)"]);
    ends(0, &folder, &["plot", "faint.csv", "--format", "svg"]);
    let chart = read(&folder, "faint-step_time.svg");
    assert!(chart.contains("places that a jump may have") && chart.contains("after 40 (40 to 41)"));
}

#[test]
fn any_column_can_be_called_a_rate_and_rates_are_compared() {
    let folder = Folder::with("score.csv", &bandwidth("size,score"));
    let found = json(&folder, &["score.csv", "--y", "score", "--y-kind", "rate"]);
    assert_eq!((&found["series"][0]["y_kind"], &found["series"][0]["unit"]), (&"rate".into(), &"".into()));
    write(&folder, "ms.csv", &bandwidth("size,time_ms"));
    let found = json(&folder, &["ms.csv", "--y", "time_ms", "--y-kind", "rate"]);
    assert_eq!((&found["series"][0]["y_kind"], &found["series"][0]["unit"]), (&"rate".into(), &"".into()));
    // A rate that falls is slower.
    write(&folder, "gbps.csv", &bandwidth("batch_size,gbps"));
    write(&folder, "mbps.csv", &bandwidth("batch_size,mbps"));
    let arguments = ["compare", "gbps.csv", "mbps.csv", "--fail-on", "slower", "--format", "json"];
    let found = stdout(&ends(1, &folder, &arguments));
    assert!(found.contains("\"SLOWER\"") && !found.contains("\"FASTER\""), "{found}");
    ends(2, &folder, &["compare", "gbps.csv", "ms.csv", "--y", "gbps"]);
}

/// The sides of matrix products: the side that varies is the x; if several vary, they are named; squares are one
/// series.
#[test]
fn the_side_of_a_matrix_that_varies_is_the_size() {
    let folder = Folder::new();
    let table = |sides: &dyn Fn(u32) -> [u32; 3]| {
        let line = |i: u32| {
            let [m, n, k] = sides(i);
            format!("{m},{n},{k},{:.4}\n", 1.0 + 0.01 * f64::from(i) + if i > 20 { 0.3 } else { 0.0 })
        };
        format!("M,N,K,time_ms\n{}", (1..=40).map(line).collect::<String>())
    };
    write(&folder, "one.csv", &table(&|i| [64, 64 * i, 64]));
    let found = json(&folder, &["one.csv"]);
    assert_eq!((&found["series"][0]["x"], &found["series"][0]["points"]), (&"N".into(), &40.into()));
    assert_eq!(found["series"][0]["jumps"][0]["after"], 1280);
    write(&folder, "square.csv", &table(&|i| [64 * i, 64 * i, 64 * i]));
    let found = json(&folder, &["square.csv"]);
    assert_eq!((found["series"].as_array().map(Vec::len), &found["series"][0]["x"]), (Some(1), &"M".into()));
    write(&folder, "grid.csv", &table(&|i| [64 * (1 + i % 20), 64 * (1 + i / 20), 64]));
    // Neither column has many more values than the other, so nothing decides.
    write(&folder, "open.csv", &table(&|i| [64 * (1 + i % 7), 64 * (1 + i / 7), 64]));
    let output = ends(2, &folder, &["jumps", "open.csv"]);
    assert!(stderr(&output).contains("several columns could be the size: M, N") && stderr(&output).contains("--x"));
    let found = json(&folder, &["grid.csv"]);
    let sides: Vec<&Value> = found["series"].as_array().expect("series").iter().map(|s| &s["group"]["N"]).collect();
    assert_eq!(sides, ["64", "128", "192"]);
}

#[test]
fn the_members_of_a_staircase_are_one_line_in_the_table_and_all_in_the_json() {
    let folder = Folder::new();
    let mut random = batchstep::random::Rng::new(7);
    let mut text = "num_tokens,latency_us\n".to_string();
    for x in 1..=100 {
        let time = (100.0 + 10.0 * f64::from(x / 8)) * (1.0 + 0.003 * random.normal());
        writeln!(text, "{x},{time:.3}").expect("a string");
    }
    write(&folder, "stairs.csv", &text);
    let found = &json(&folder, &["stairs.csv"])["series"][0];
    // After 7, 15, ..., 95: twelve.
    let after: Vec<i64> =
        found["jumps"].as_array().expect("jumps").iter().filter_map(|j| j["after"].as_i64()).collect();
    assert_eq!(after, (1..=12).map(|k| 8 * k - 1).collect::<Vec<i64>>());
    assert_eq!(found["period"]["unconfirmed"], Value::Array(vec![]));
    let table = stdout(&run(&folder, &["jumps", "stairs.csv"]));
    assert_eq!(table.matches('▲').count(), 1, "{table}");
    assert!(table.contains("every 8 from 7, 12 times"), "{table}");
}

/// Every line: a file, arguments, and what the refusal must say. All exit with 2 and write nothing.
#[test]
fn bad_data_gets_one_message_and_exit_code_2() {
    let folder = Folder::with("nocolumn.csv", "a,c,d\n1,2,3\n2,3,4\n");
    write(&folder, "text.csv", "batch_size,time_ms\n1,2\n2,fast\n");
    write(&folder, "ragged.csv", "batch_size,time_ms\n1,2\n2\n");
    write(&folder, "empty.csv", "");
    write(&folder, "header.csv", "batch_size,time_ms\n");
    write(&folder, "broken.parquet", "PAR1 and then something else");
    std::fs::write(folder.join("bytes.csv"), [0xff, 0xfe, 0x00, 0x80]).expect("writable");
    std::fs::create_dir(folder.join("folder")).expect("a folder");
    let cases: &[(&[&str], &[&str])] = &[
        (&["nocolumn.csv"], &["nocolumn.csv", "a, c, d", "--x"]),
        (&["ragged.csv"], &["ragged.csv:3", "1 fields", "2"]),
        (&["empty.csv"], &["empty.csv: the file is empty", "a row of column names"]),
        (&["header.csv"], &["header.csv", "no row"]),
        (&["broken.parquet"], &["broken.parquet", "damaged"]),
        (&["bytes.csv"], &["bytes.csv"]),
        (&["folder"], &["folder", "run directory"]),
        (&["missing.csv"], &["missing.csv", "no such file"]),
        (&["text.csv", "--y", "tyme_ms"], &["did you mean `time_ms`?"]),
    ];
    let before = std::fs::read_dir(&folder).expect("a folder").count();
    for (arguments, parts) in cases {
        for command in ["jumps", "plot"] {
            let output = ends(2, &folder, &[&[command], *arguments].concat());
            let message = stderr(&output);
            assert!(message.starts_with("batchstep: ") && stdout(&output).is_empty(), "{message}");
            for part in *parts {
                assert!(message.contains(part), "{command} {arguments:?} says: {message}\nlacks: {part}");
            }
        }
    }
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), before);
}

#[test]
#[ignore = "slow"]
fn a_truncated_parquet_of_ours_is_refused() {
    let spec = "version = 1\nname = \"s\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n[measure]\nblocks = { max = 2 }\nsteps_per_visit = 2\n";
    let folder = Folder::with("s.toml", spec);
    ends(0, &folder, &["run", "s.toml"]);
    let path = folder.join("results/s/steps.parquet");
    let bytes = std::fs::read(&path).expect("a file");
    for length in [0, 3, 4, 100, bytes.len() / 2, bytes.len() - 1] {
        let cut = folder.join("cut.parquet");
        std::fs::write(&cut, &bytes[..length]).expect("writable");
        refused(&folder, &["jumps", "cut.parquet"], &["cut.parquet"]);
    }
    // The whole file, moved elsewhere and renamed, is complete in itself.
    std::fs::write(folder.join("mailed.parquet"), &bytes).expect("writable");
    assert_eq!(json(&folder, &["mailed.parquet"])["series"][0]["points"], 70);
}

/// Some of them make polars panic; that is our error, reported once.
#[test]
fn damaged_parquet_files_give_one_message_each_and_no_panic_on_the_screen() {
    let folder = Folder::new();
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/parquet");
    let mut refused = 0;
    for file in corpus.read_dir().expect("a corpus") {
        let path = file.expect("an entry").path();
        let output = run(&folder, &["jumps", path.to_str().expect("UTF-8 path")]);
        let message = stderr(&output);
        assert!(!message.contains("panicked") && !message.contains("backtrace"), "{message}");
        if output.status.code() == Some(2) {
            refused += 1;
            assert_eq!(message.matches("batchstep: ").count(), 1, "{message}");
        }
    }
    assert!(refused >= 4, "{refused}");
}

/// Its batch sizes are 16 bits wide, its times jump by 2 ms after 12, its `price` is a decimal; see `src/store/sheet.rs`.
#[test]
fn a_parquet_column_of_a_type_that_is_not_read_is_named_with_a_remedy() {
    let folder = Folder::new();
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus/parquet/types.parquet");
    std::fs::copy(path, folder.join("types.parquet")).expect("copied");
    let found = json(&folder, &["types.parquet"]);
    let series = &found["series"][0];
    assert_eq!((&series["x"], &series["y"], &series["points"]), (&"batch".into(), &"time_ms".into(), &24.into()));
    assert_eq!(series["jumps"][0]["after"], 12);
    let size = series["jumps"][0]["size"].as_f64().expect("a number");
    assert!((size - 2.0).abs() < 0.1, "{size}");
    prints(&folder, &["jumps", "types.parquet"], &["columns of other types are left out: price (decimal"]);
    let message = stderr(&ends(2, &folder, &["jumps", "types.parquet", "--y", "price"]));
    assert!(
        message.contains("price (decimal") && message.contains("float64") && !message.contains("damaged"),
        "{message}"
    );
}

#[test]
fn a_chart_says_forecast_only_if_nothing_in_it_was_measured() {
    let folder = Folder::new();
    let row = |(batch, noise): (u32, u32)| {
        let time = 5.0 + 0.2 * f64::from(batch);
        format!("{batch},{:.4},{time:.4}\n", time * (1.0 + 0.001 * f64::from((7 * batch + 3 * noise) % 5)))
    };
    let rows: String = (0..3).flat_map(|noise| (1..=20).map(move |batch| (batch, noise))).map(row).collect();
    write(&folder, "a.csv", &format!("batch,time_ms,predicted_ms\n{rows}"));
    let drawn = |y: &[&str]| {
        ends(0, &folder, &[&["plot", "a.csv", "--format", "svg"], y].concat());
        read(&folder, "a-step_time.svg")
    };
    // Twenty sizes, three times; what is predicted is no step.
    let measured: &[&str] = &[];
    for y in [measured, &["--y", "time_ms,predicted_ms"], &["--y", "predicted_ms,time_ms"]] {
        let chart = drawn(y);
        assert!(chart.contains("60 steps") && !chart.contains("not measured") && !chart.contains("Forecast"), "{y:?}");
    }
    let chart = drawn(&["--y", "predicted_ms"]);
    assert!(chart.contains("Forecast, not measured") && chart.contains("60 values, forecast and not measured"));
}

#[test]
fn rows_without_a_number_are_counted_and_named() {
    let folder = Folder::new();
    let mut text = csv("batch,rep,time_ms,gpu", ',', &["T4"]);
    text.insert_str(0, "# measured on a Tuesday\n");
    text.push_str("41,0,,T4\n42,0,nan,T4\n,1,3.5,T4\n43,0,inf,T4\n");
    write(&folder, "gaps.csv", &text);
    for command in ["jumps", "plot", "report"] {
        let output = ends(0, &folder, &[command, "gaps.csv"]);
        // A comment, the names of the columns, and 200 rows precede them.
        for said in [
            "gaps.csv: 3 rows without a number in `time_ms` are left out; the first is line 203",
            "gaps.csv: 1 row without a number in `batch` is left out; the first is line 205",
        ] {
            assert!(stderr(&output).contains(said), "{command}: {}\nlacks: {said}", stderr(&output));
        }
    }
    let left_out = &json(&folder, &["gaps.csv"])["series"][0]["left_out"];
    let expected = serde_json::json!({
        "column": "time_ms", "rows": 3, "first_line": 203, "sizes": [41, 42, 43], "more_sizes": false, "said": "nan"
    });
    assert_eq!(left_out[0], expected);
}

#[test]
fn decimal_commas_are_read_where_they_are_nothing_else_and_named_where_they_may_be() {
    let folder = Folder::new();
    write(&folder, "de.csv", &csv("batch;rep;time_ms;gpu", ';', &["T4"]).replace('.', ","));
    let jump = &json(&folder, &["de.csv"])["series"][0]["jumps"][0];
    assert_eq!(jump["after"], 20);
    assert!((jump["size"].as_f64().expect("a number") - 3.0).abs() < 0.15, "{jump}");
    let refused = |name: &str, text: &str, said: &str| {
        write(&folder, name, text);
        let output = ends(2, &folder, &["jumps", name]);
        assert!(stderr(&output).contains(said), "{}\nlacks: {said}", stderr(&output));
    };
    refused("thousands.csv", "batch\ttime_ms\n1\t1,234\n2\t2,345\n", "a comma may be decimal or divide thousands");
    refused("fields.csv", "batch,time_ms\n1,1,5\n2,2,5\n", "separate the fields by semicolons or tabs");
}

#[test]
fn the_results_of_a_table_are_graded_by_its_file() {
    let folder = Folder::with("theirs.csv", &csv("batch,rep,time_ms,gpu", ',', &["T4"]));
    ends(0, &folder, &["report", "theirs.csv"]);
    let page = read(&folder, "theirs-report.html");
    assert!(page.contains("from theirs.csv</span>") && !page.contains("measured here"), "the grade of the answer");
}

#[test]
fn times_in_different_units_are_compared() {
    let folder = Folder::new();
    let text = |header: &str, factor: f64| {
        let row = |i: u32| format!("{},{},{}\n", i % 4 + 1, i / 4, factor * (1.0 + 0.01 * f64::from(i * 7 % 5)));
        format!("batch_size,block,{header}\n{}", (0..24).map(row).collect::<String>())
    };
    write(&folder, "s.csv", &text("time_s", 0.002));
    write(&folder, "ms.csv", &text("time_ms", 3.0));
    let output = ends(0, &folder, &["compare", "s.csv", "ms.csv"]);
    // By hand: 3 ms over 2 ms.
    assert!(stdout(&output).matches("1.500 ").count() >= 4, "{}", stdout(&output));
    write(&folder, "bare.csv", &text("time", 2.0));
    refused(&folder, &["compare", "s.csv", "bare.csv"], &["`time`, which names no unit", "_ms"]);
}

#[test]
fn a_chart_and_a_page_name_the_command_with_the_columns_that_were_asked_for() {
    let folder = Folder::with("a.csv", &csv("n,rep,t_ms,card", ',', &["T4"]));
    let asked = ["--x", "n", "--y", "t_ms", "--group", "card"];
    for (arguments, file, made) in [
        (
            &["plot", "a.csv", "--format", "svg"][..],
            "a-step_time.svg",
            "batchstep plot a.csv --x n --y t_ms --group card",
        ),
        (&["report", "a.csv", "--out", "a.html"], "a.html", "batchstep report a.csv --x n --y t_ms --group card"),
    ] {
        ends(0, &folder, &[arguments, &asked].concat());
        let text = read(&folder, file);
        assert!(text.contains(made), "{made}");
    }
}

#[test]
fn a_column_of_endless_names_is_refused_with_the_limit() {
    let row = |row: usize| format!("{},{row}.5,{row:0>40000}\n", row % 8 + 1);
    let folder = Folder::with("a.csv", &format!("batch_size,time_ms,gpu\n{}", (0..450).map(row).collect::<String>()));
    let output = ends(2, &folder, &["jumps", "a.csv"]);
    let said = stderr(&output);
    has(&said, &["`gpu` holds more than 16777216 bytes of different names", "--group"]);
}
