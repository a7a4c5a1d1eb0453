//! Tables as people have them, through the program: its notes on their columns, standard input, comparisons.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Folder, batchstep, ends, parsed, run, stderr, stdout, write};
use polars::prelude::{Column, DataFrame, NamedFrom, ParquetWriter, Series};
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

/// What `jumps` prints about what comes through a pipe.
fn piped(bytes: &[u8]) -> String {
    let folder = Folder::new();
    let mut child = batchstep(&folder)
        .args(["jumps", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("written");
    stdout(&child.wait_with_output().expect("an end"))
}

/// The table of a CSV as Parquet: a column is of numbers if all of its cells are; an empty cell is a null.
fn parquet(text: &str) -> Vec<u8> {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    let (names, rows) = lines.split_first().expect("names");
    let column = |(at, name): (usize, &&str)| -> Column {
        let cells: Vec<Option<&str>> = rows.iter().map(|row| Some(row[at]).filter(|cell| !cell.is_empty())).collect();
        let numbers: Result<Vec<Option<f64>>, _> =
            cells.iter().map(|cell| cell.map(str::parse::<f64>).transpose()).collect();
        match numbers {
            Ok(numbers) => Series::new((*name).into(), numbers).into(),
            Err(_) => Series::new((*name).into(), cells).into(),
        }
    };
    let mut frame = DataFrame::new(rows.len(), names.iter().enumerate().map(column).collect()).expect("a table");
    let mut bytes = Vec::new();
    ParquetWriter::new(&mut bytes).finish(&mut frame).expect("written");
    bytes
}

#[test]
fn the_first_line_names_the_columns_and_standard_input_is_a_table() {
    let text = "| n | old | new |\n|--|--|--|\n".to_string()
        + &columns(|n, a, b| format!("| {n} | {a:.4} ms | **{b:.4} ms** |\n"));
    let said = piped(text.as_bytes());
    let first = said.lines().next().unwrap_or_default();
    assert_eq!(first, "-: `old (ms)`, `new (ms)` against `n`, times; 2 series", "{said}");
    assert!(said.contains("new (ms): 1 jump after 16") && said.contains("old (ms): No jump"), "{said}");
}

#[test]
fn parquet_is_read_like_the_csv_of_the_same_cells() {
    let mut random = batchstep::random::Rng::new(9);
    let mut several = "batch,iter,ours_ms,theirs_ms,gpu_mem_mb\n".to_string();
    for (pass, n) in (0..4).flat_map(|pass| (1..=24).map(move |n| (pass, n))) {
        let flat = 4.0 + 0.1 * f64::from(n);
        let ours = flat * (1.0 + 0.002 * random.normal());
        let theirs = (flat + if n > 16 { 2.0 } else { 0.0 }) * (1.0 + 0.002 * random.normal());
        several += &format!("{n},{pass},{ours:.4},{theirs:.4},{}\n", 100 * n);
    }
    let tables = [
        several.clone(),
        format!("batch,time_ms\n{}32,OOM\n64,\n", columns(|n, a, _| format!("{n},{a:.4}\n"))),
        format!("batch,run1,run2,run3\n{}", columns(|n, a, b| format!("{n},{a:.4},{b:.4},{:.4}\n", a + b))),
        format!("batch,time\n{}", columns(|n, _, b| format!("{n},{b:.4} ms\n"))),
        format!("N,time_ms\n{}", columns(|n, _, b| format!("2^{n},{b:.4}\n"))),
        format!("gpu,batch,speedup\n{}", columns(|n, a, b| format!("T4,{n},{:.4}\nL4,{n},{:.4}\n", a / b, b / a))),
    ];
    let folder = Folder::new();
    // The names are of the same length, so that lines break at the same places.
    let same = |text: &str, command: &str, arguments: &[&str]| -> String {
        write(&folder, "a.csv", text);
        std::fs::write(folder.join("a.pqt"), parquet(text)).expect("writable");
        let [csv, parquet] = ["a.csv", "a.pqt"].map(|name| {
            let output = ends(0, &folder, &[&[command, name], arguments].concat());
            (stdout(&output) + &stderr(&output)).replace("a.pqt", "a.csv")
        });
        assert_eq!(parquet, csv, "{text}");
        parquet
    };
    for text in &tables {
        same(text, "jumps", &[]);
        same(text, "jumps", &["--format", "json"]);
    }
    let said = same(&several, "jumps", &["--y", "ours_ms,theirs_ms"]);
    assert!(said.starts_with("a.csv: `ours_ms`, `theirs_ms` against `batch`, times; 2 series"), "{said}");
    assert!(said.contains("`iter` comes once with each size") && said.contains("`gpu_mem_mb` is read as"), "{said}");
    assert!(said.contains("theirs_ms: 1 jump after 16") && said.contains("ours_ms: No jump"), "{said}");
    same(&several, "compare", &["--y", "ours_ms,theirs_ms"]);
    let left_out = same(&tables[1], "jumps", &[]);
    assert!(left_out.contains("2 rows") && left_out.contains("`OOM`") && left_out.contains("32, 64"), "{left_out}");
    let said = piped(&parquet(&several));
    let first = said.lines().next().unwrap_or_default();
    assert_eq!(first, "-: `ours_ms`, `theirs_ms` against `batch`, times; 2 series", "{said}");
    assert!(said.contains("theirs_ms: 1 jump after 16"), "{said}");
}

#[test]
fn a_table_of_latex_is_read_as_it_is_printed() {
    let rows = columns(|n, _, b| {
        format!("\\textbf{{{n}}} & ${b:.4} \\pm 0.02$ & {:.2} \\\\ \\hline\n", 3.0 - 0.01 * f64::from(n))
    });
    let head = "\\begin{tabular}{|c|c|c|}\n\\hline\nBatch size & Step time [ms] & Loss \\\\ \\hline\n";
    let found = said(&format!("{head}{rows}\\end{{tabular}}\n"), &["--format", "json"]);
    let found = parsed(&found);
    assert_eq!(found["series"].as_array().map(Vec::len), Some(1), "{found}");
    let series = &found["series"][0];
    assert_eq!((&series["x"], &series["unit"]), (&"Batch size".into(), &"ms".into()), "{found}");
    assert_eq!((&series["points"], &series["jumps"][0]["after"]), (&24.into(), &16.into()), "{found}");
    let size = series["jumps"][0]["size"].as_f64().expect("a number");
    assert!((size - 2.0).abs() < 0.15, "{size}");
}

#[test]
fn the_sizes_of_rows_left_out_are_counted_once() {
    let folder = Folder::new();
    let warned = |sizes: &[u32]| -> Value {
        let failed: String = sizes.iter().map(|size| format!("{size},OOM\n")).collect::<String>().repeat(8);
        write(
            &folder,
            "a.csv",
            &("batch,time\n".to_string() + &columns(|n, a, _| format!("{n},{a:.4} ms\n")) + &failed),
        );
        let document = parsed(&stdout(&run(&folder, &["jumps", "a.csv", "--format", "json"])));
        assert_eq!(document["warnings"][0]["sizes"], document["series"][0]["left_out"][0]["sizes"], "{document}");
        document["warnings"][0].clone()
    };
    let ends = |warning: &Value, end: &str| warning["message"].as_str().is_some_and(|message| message.ends_with(end));
    let three = warned(&[160, 192, 256]);
    assert!(ends(&three, "; sizes without a value: 160, 192, 256"), "{three}");
    assert_eq!((&three["sizes"], &three["rows"]), (&serde_json::json!([160, 192, 256]), &24.into()));
    // Eight are named.
    let nine = warned(&[101, 102, 103, 104, 105, 106, 107, 108, 109]);
    assert!(ends(&nine, "107, 108 and more") && nine["more_sizes"] == true, "{nine}");
}

#[test]
fn charts_and_pages_of_standard_input_are_called_after_it() {
    let folder = Folder::new();
    let text = "batch,time_ms\n".to_string() + &columns(|n, a, _| format!("{n},{a:.4}\n"));
    for command in ["plot", "report"] {
        let mut child = batchstep(&folder)
            .args([command, "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        child.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("written");
        assert_eq!(child.wait().expect("an end").code(), Some(0), "{command}");
    }
    let names = std::fs::read_dir(&folder).expect("a folder").map(|entry| entry.expect("an entry").file_name());
    let names: Vec<String> = names.map(|name| name.to_string_lossy().into_owned()).collect();
    assert!(names.contains(&"stdin-step_time.png".to_owned()), "{names:?}");
    assert!(
        names.contains(&"stdin-report.html".to_owned()) && !names.iter().any(|name| name.starts_with('-')),
        "{names:?}"
    );
}

#[test]
fn two_columns_are_compared_and_one_value_for_each_size_gives_no_nan() {
    let text = "batch,ours_ms,theirs_s\n".to_string() + &columns(|n, a, b| format!("{n},{b:.4},{:.7}\n", a / 1000.0));
    let folder = Folder::with("a.csv", &text);
    write(&folder, "b.csv", &text);
    let compared = |arguments: &[&str]| -> Value {
        let output = ends(0, &folder, &[&["compare"], arguments, &["--format", "json"]].concat());
        parsed(&stdout(&output))
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
    write(&folder, "short.csv", "batch,ours_ms\n1,2\n2,3\n3,4\n");
    let output = ends(2, &folder, &["compare", "short.csv", "short.csv"]);
    assert!(stderr(&output).contains("one value for each of 3 sizes") && stderr(&output).contains("repetitions"));
}

/// The output of `jumps` for a table.
fn said(text: &str, arguments: &[&str]) -> String {
    let folder = Folder::with("a.csv", text);
    let output = ends(0, &folder, &[&["jumps", "a.csv"], arguments].concat());
    stdout(&output)
}

#[test]
fn kernels_of_one_table_are_series_and_rates_fall_by_less_than_all() {
    let text = columns(|n, a, b| format!("{n},plain,{a:.4}\n{n},tiled,{b:.4}\n"));
    let found = said(&format!("size,kernel,ms\n{text}"), &[]);
    assert!(found.starts_with("a.csv: `ms` against `size`, a time; 2 series by `kernel`"), "{found}");
    assert!(found.contains("tiled: 1 jump after 16") && found.contains("plain: No jump"), "{found}");
    let text = columns(|n, a, b| format!("{n},{:.3}\n", 900.0 * a / b));
    let found = parsed(&said(&format!("n_ctx,t/s\n{text}"), &["--format", "json"]));
    let series = &found["series"][0];
    assert_eq!((&series["y_kind"], &series["jumps"][0]["after"]), (&"rate".into(), &16.into()), "{found}");
    assert!(series["jumps"][0]["relative"].as_f64().is_some_and(|fall| -0.4 < fall && fall < -0.2), "{found}");
}

#[test]
fn a_steep_curve_of_few_sizes_is_judged_by_logarithms_or_not_at_all() {
    let row = |(at, n): (usize, i32)| {
        let noise = 1.0 + 0.03 * ((at * 7 % 5) as f64 - 2.0);
        format!("{n},{:.4}\n", 4e8 / f64::from(n).powi(3) * noise)
    };
    let of = |sizes: Vec<i32>| {
        said(&format!("dim,ops/s\n{}", sizes.into_iter().enumerate().map(row).collect::<String>()), &[])
    };
    let doubled = of(vec![8, 16, 32, 64, 128, 192, 256, 384, 512, 768, 1024]);
    assert!(doubled.contains("No jump; one of "), "{doubled}");
    let even = of((1..12).collect());
    assert!(even.contains("too few sizes for so steep a curve"), "{even}");
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
    let found = parsed(&said(&text, &["--format", "json"]));
    let slow = &found["series"][0]["slow_sizes"];
    assert_eq!((&slow["class"]["divisor"], slow["sizes"].as_array().map(Vec::len)), (&48.into(), Some(8)), "{found}");
}
