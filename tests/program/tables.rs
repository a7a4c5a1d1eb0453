//! Tables as people have them, through the program: its notes on their columns, standard input, comparisons.

use std::io::Write;
use std::process::Stdio;

use crate::support::{batchstep, run, stderr, stdout, write};
use serde_json::Value;

/// Times of two columns at 24 sizes, of which the second jumps by 2 after 16.
fn columns(row: impl Fn(u32, f64, f64) -> String) -> String {
    let mut random = batchstep::random::Rng::new(5);
    let mut noise = || 1.0 + 0.002 * random.normal();
    (1..=24)
        .map(|n| {
            let flat = 4.0 + 0.1 * f64::from(n);
            row(n, flat * noise(), (flat + if n > 16 { 2.0 } else { 0.0 }) * noise())
        })
        .collect()
}

#[test]
fn the_first_line_names_the_columns_and_standard_input_is_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "| n | old | new |\n|--|--|--|\n".to_string()
        + &columns(|n, a, b| format!("| {n} | {a:.4} ms | **{b:.4} ms** |\n"));
    let mut child = batchstep(folder.path())
        .args(["jumps", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
    let output = child.wait_with_output().expect("an end");
    let said = stdout(&output);
    let first = said.lines().next().unwrap_or_default();
    assert_eq!(first, "-: `old (ms)`, `new (ms)` against `n`, times; 2 series", "{said}");
    assert!(said.contains("new (ms): 1 jump after 16") && said.contains("old (ms): No jump"), "{said}");
}

#[test]
fn rows_of_errors_are_left_out_by_their_sizes() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "batch,time\n".to_string() + &columns(|n, a, _| format!("{n},{a:.4} ms\n")) + "32,OOM\n64,CUDA error\n";
    write(folder.path(), "a.csv", &text);
    let output = run(folder.path(), &["jumps", "a.csv"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("2 rows") && said.contains("`OOM`") && said.contains("32, 64"), "{said}");
}

#[test]
fn two_columns_are_compared_and_one_value_for_each_size_gives_no_nan() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = "batch,ours_ms,theirs_s\n".to_string() + &columns(|n, a, b| format!("{n},{b:.4},{:.7}\n", a / 1000.0));
    write(folder.path(), "a.csv", &text);
    write(folder.path(), "b.csv", &text);
    let compared = |arguments: &[&str]| -> Value {
        let output = run(folder.path(), &[&["compare"], arguments, &["--format", "json"]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).expect("JSON")
    };
    let decisions = |found: &Value, decision: &str| -> Vec<i64> {
        let cells = found["cells"].as_array().cloned().unwrap_or_default();
        cells.iter().filter(|cell| cell["decision"] == decision).filter_map(|cell| cell["x"].as_i64()).collect()
    };
    let found = compared(&["a.csv", "--y", "ours_ms,theirs_s"]);
    assert_eq!(decisions(&found, "FASTER"), (17..=24).collect::<Vec<i64>>(), "{found}");
    assert!(found["yardstick"].as_f64().is_some_and(|yardstick| yardstick < 0.02), "{found}");
    let same = compared(&["a.csv", "b.csv", "--y", "ours_ms"]);
    assert!(decisions(&same, "FASTER").is_empty() && decisions(&same, "SLOWER").is_empty());
    write(folder.path(), "short.csv", "batch,ours_ms\n1,2\n2,3\n3,4\n");
    let output = run(folder.path(), &["compare", "short.csv", "short.csv"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("one value for each of 3 sizes") && stderr(&output).contains("repetitions"));
}

/// The output of `jumps` for a table.
fn said(text: &str, arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "a.csv", text);
    let output = run(folder.path(), &[&["jumps", "a.csv"], arguments].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    stdout(&output)
}

#[test]
fn kernels_of_one_table_are_series_and_rates_fall_by_less_than_all() {
    let text = columns(|n, a, b| format!("{n},plain,{a:.4}\n{n},tiled,{b:.4}\n"));
    let found = said(&format!("size,kernel,ms\n{text}"), &[]);
    assert!(found.starts_with("a.csv: `ms` against `size`, a time; 2 series by `kernel`"), "{found}");
    assert!(found.contains("tiled: 1 jump after 16") && found.contains("plain: No jump"), "{found}");
    let text = columns(|n, a, b| format!("{n},{:.3}\n", 900.0 * a / b));
    let found: Value = serde_json::from_str(&said(&format!("n_ctx,t/s\n{text}"), &["--format", "json"])).expect("JSON");
    let series = &found["series"][0];
    assert_eq!((&series["y_kind"], &series["jumps"][0]["after"]), (&"rate".into(), &16.into()), "{found}");
    assert!(series["jumps"][0]["relative"].as_f64().is_some_and(|fall| -0.4 < fall && fall < -0.2), "{found}");
}

#[test]
fn a_steep_curve_of_few_sizes_is_not_judged() {
    let sizes = [8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024];
    let row = |(at, n): (usize, &i32)| {
        let noise = 1.0 + 0.03 * ((at * 7 % 5) as f64 - 2.0);
        format!("{n},{:.4}\n", 4e8 / f64::from(*n).powi(3) * noise)
    };
    let found = said(&format!("dim,ops/s\n{}", sizes.iter().enumerate().map(row).collect::<String>()), &[]);
    assert!(found.contains("too few sizes for so steep a curve"), "{found}");
}

#[test]
fn slow_multiples_are_named_with_their_divisor() {
    let mut random = batchstep::random::Rng::new(6);
    let mut row = |i: u32| {
        let slow = if i.is_multiple_of(8) { 1.4 } else { 1.0 };
        format!("{},{:.4}\n", 6 * i, (3.0 + 0.01 * f64::from(i)) * slow * (1.0 + 0.003 * random.normal()))
    };
    let text = format!("n,ms\n{}", (1..=66).map(&mut row).collect::<String>());
    let found = said(&text, &[]);
    assert!(found.contains("Slow     multiples of 48: +40 % (8 of 8"), "{found}");
    let found: Value = serde_json::from_str(&said(&text, &["--format", "json"])).expect("JSON");
    let slow = &found["series"][0]["slow_sizes"];
    assert_eq!((&slow["class"]["divisor"], slow["sizes"].as_array().map(Vec::len)), (&48.into(), Some(8)), "{found}");
}
