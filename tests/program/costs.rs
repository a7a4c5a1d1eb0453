//! A database of the stored runs, and predictions from it.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::{
    Folder, ends, has, parsed, planted, prints, read, refused, root, run, stderr, stdout, tidy, write,
};

const QUICKSTART: &str = "experiments/runs/2026-11-23-epyc-2-cores-quickstart";

/// The network of the quickstart at batch sizes of choice.
fn spec(folder: &Path, sizes: &str) -> PathBuf {
    let text = std::fs::read_to_string(root().join(QUICKSTART).join("spec.toml")).expect("stored");
    let path = folder.join("ask.toml");
    std::fs::write(&path, text.replace("\"1..=70\"", sizes)).expect("written");
    path
}

fn database(folder: &Path) -> PathBuf {
    let into = folder.join("database");
    let stored = root().join(QUICKSTART);
    prints(
        folder,
        &["collect", &stored.display().to_string(), "--into", "database"],
        &["70 cells", "database: 1 collected\n"],
    );
    let again = stdout(&run(folder, &["collect", &stored.display().to_string(), "--into", "database"]));
    assert_eq!(again, "database: 1 collected, 1 of them already there\n");
    into
}

fn predicted(folder: &Path, arguments: &[&str]) -> Value {
    let all = [&["predict", "ask.toml", "--from", "database", "--format", "json"], arguments].concat();
    parsed(&stdout(&run(folder, &all)))
}

#[test]
fn batch_sizes_within_and_beyond_a_stored_run_have_times_with_intervals() {
    let folder = Folder::new();
    database(&folder);
    spec(&folder, "[8, 70, 80]");
    let found = predicted(&folder, &[]);
    let rows = found["rows"].as_array().expect("rows");
    let bases: Vec<&str> = rows.iter().filter_map(|row| row["basis"].as_str()).collect();
    assert_eq!(bases, ["measured", "measured", "beyond"]);
    // The stored run jumps after 16, 32, 48 and 64, which a period of 16 explains, so the period continues.
    assert!(rows.iter().all(|row| row["before_jump"].as_bool() == Some(row["batch_size"] == 80)));
    let number = |row: usize, name: &str| rows[row][name].as_f64().expect("a number");
    for row in 0..3 {
        assert!(
            number(row, "low_s") < number(row, "step_time_s") && number(row, "step_time_s") < number(row, "high_s")
        );
    }
    // Within a tenth of the medians that the run stored for 8 and 70, whose steps were disturbed by up to a tenth.
    let table = batchstep::store::sealed::<batchstep::store::CellRow>(&root().join(QUICKSTART).join("cells.parquet"))
        .expect("stored");
    for (row, batch) in [(0, 8), (1, 70)] {
        let stored =
            table.iter().find(|cell| cell.batch_size == batch).and_then(|cell| cell.median_s).expect("measured");
        let ratio = number(row, "step_time_s") / stored;
        assert!((0.85..1.1).contains(&ratio), "{batch}: {ratio}");
    }
    let width = |row: usize| number(row, "high_s") / number(row, "low_s");
    assert!(width(2) > width(1), "an extrapolation is less sure: {rows:?}");
}

#[test]
fn epochs_cost_and_a_deadline_follow_from_the_step() {
    let folder = Folder::new();
    database(&folder);
    spec(&folder, "[8, 64]");
    let prices = "version = 1\nread = \"2026-11-22\"\n[[offer]]\nname = \"x\"\ndevice = \"AMD EPYC\"\nusd_per_hour = 3.6\nsource = \"a test\"\n";
    write(&folder, "prices.toml", prices);
    let job = ["--examples", "64000", "--epochs", "10", "--prices", "prices.toml"];
    let found = predicted(&folder, &[&job[..], &["--deadline", "10h"]].concat());
    let row = &found["rows"][1];
    let (step, slowdown) = (row["step_time_s"].as_f64().expect("a time"), row["slowdown"].as_f64().expect("a ratio"));
    // 1,000 steps an epoch; $3.60 an hour is a tenth of a cent a second.
    let total = 10.0 * 1000.0 * step * slowdown;
    assert!((row["training_time_s"].as_f64().expect("a time") / total - 1.0).abs() < 1e-9);
    assert!((row["usd"].as_f64().expect("money") / (total * 1e-3) - 1.0).abs() < 1e-9);
    assert_eq!(found["choice"]["row"], 1);
    assert!(found["choice"]["probability"].as_f64().expect("a probability") > 0.99);
    let all = [&["predict", "ask.toml", "--from", "database", "--chart", "cost.png"], &job[..]].concat();
    let table = tidy(&stdout(&run(&folder, &all)));
    has(&table, &["batch size 64 takes the least time per example", "of 2026-11-22, as their file states them"]);
    assert!(folder.join("cost.png").is_file());
}

#[test]
fn unknown_cells_are_reported_with_the_available_and_the_needed_data() {
    let folder = Folder::new();
    let at = &folder;
    spec(at, "[8]");
    let refused = |arguments: &[&str], parts: &[&str]| {
        let message = stderr(&run(at, &[&["predict", "ask.toml", "--from", "database"], arguments].concat()));
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
        assert_eq!(message.lines().filter(|line| line.starts_with("batchstep: ")).count(), 1, "{message}");
    };
    refused(&[], &["there is no database of runs here", "batchstep collect"]);
    database(at);
    refused(&["--device", "h100"], &["no measured device is called `h100`", "AMD EPYC (2 cores)"]);
    refused(&["--budget", "5", "--examples", "10"], &["a budget needs prices", "experiments/predict/prices.toml"]);
    refused(&["--deadline", "1h"], &["--examples N"]);
    refused(&["--deadline", "soon", "--examples", "10"], &["`soon` is not a time", "25min"]);
    let text = read(at, "ask.toml").replace("out_features = 512", "out_features = 256");
    std::fs::write(at.join("ask.toml"), text.replace("classes = 512", "classes = 256")).expect("written");
    refused(&[], &["was not measured on AMD EPYC (2 cores)", "of the 9 other networks", "three_dense at 3x8x8 to 512"]);
}

// 32 images at 35.4 in a second, as the table says; a table without a licence is refused with its row.
#[test]
fn a_published_step_time_is_shown_beside_the_prediction() {
    let folder = Folder::new();
    let table = root().join("experiments/predict/published_steps.csv");
    prints(&folder, &["collect", &table.display().to_string(), "--into", "database"], &["13 published steps"]);
    let spec = "version = 1\nname = \"ask\"\n[model]\nname = \"vgg16\"\n[sweep]\nbatch_size = [31, 32]\n[train]\nprecision = \"fp32\"\n\
                [engine]\nname = \"cudnn\"\n";
    write(&folder, "ask.toml", spec);
    let found = predicted(&folder, &["--device", "k80"]);
    let rows = found["rows"].as_array().expect("rows");
    assert!(rows[0]["reported_s"].is_null() && rows[0]["basis"] == "rates");
    assert!((rows[1]["reported_s"].as_f64().expect("a number") - 32.0 / 35.4).abs() < 1e-12);
    // Without kernels the error of the rates is unknown.
    assert!(rows[1]["high_s"].is_null());
    prints(
        &folder,
        &["predict", "ask.toml", "--from", "database", "--device", "k80"],
        &["others measured", "904 ms", "github.com/tensorflow/docs"],
    );

    // The same sources once more, without that GPU.
    let whole = std::fs::read_to_string(&table).expect("the table");
    let fewer: Vec<&str> = whole.lines().filter(|line| !line.starts_with("Tesla K80")).collect();
    write(&folder, "fewer.csv", &fewer.join("\n"));
    stdout(&run(&folder, &["collect", "fewer.csv", "--into", "database"]));
    ends(2, &folder, &["predict", "ask.toml", "--from", "database", "--device", "k80"]);

    let text = std::fs::read_to_string(&table)
        .expect("the table")
        .replace("github.com/tensorflow/docs,Apache-2.0", "somebody,");
    write(&folder, "bad.csv", &text);
    refused(
        &folder,
        &["collect", "bad.csv", "--into", "database"],
        &["bad.csv: row 1: it does not say both who measured and under which licence"],
    );
}

/// The steps end, and what they compute is of no use: `run` says not to use their times.
#[test]
fn steps_whose_loss_is_not_a_number_predict_nothing() {
    let folder = Folder::new();
    let spec = planted(
        "n",
        "\"1..=6\"",
        "nan_loss = [1, 2, 3, 4, 5, 6]",
        "blocks = { min = 4, max = 4 }\nsteps_per_visit = 2",
    );
    write(&folder, "ask.toml", &spec);
    let said = stderr(&run(&folder, &["run", "ask.toml"]));
    let flat = tidy(&said);
    assert!(flat.contains("do not use these times"), "{said}");
    prints(&folder, &["collect", "results/n", "--into", "database"], &["6 cells"]);
    refused(&folder, &["predict", "ask.toml", "--from", "database"], &["`synthetic` was not measured on"]);
}
