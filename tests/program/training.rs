//! A study of whole epochs, from the spec to the table, the chart and hyperfine's JSON.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use batchstep::report::Style;
use batchstep::store::rows_of;
use batchstep::study::training::results::Results;
use batchstep::study::training::{TrainingRow, hyperfine, report};
use serde_json::Value;

use crate::needs;
use crate::support::{
    Folder, ends, has, kill, parsed, parts, prints, read, refused, run, start, stderr, stdout, succeeds, tidy, until,
    warns, write,
};

const NETWORK: &str = r#"
[model]
name = "small"
[[model.layers]]
type = "max_pool2d"
kernel = 2
[[model.layers]]
type = "flatten"
[[model.layers]]
type = "dense"
out_features = 10
[train]
optimizer = "adam"
learning_rate = 0.01
precision = "fp32"
[engine]
name = "cpu"
threads = 1
"#;

fn spec(name: &str, body: &str) -> String {
    format!("version = 1\nkind = \"training\"\nname = \"{name}\"\n{NETWORK}{body}")
}

const DIGITS: &str = r#"
[sweep]
batch_size = [30, 60]
[data]
source = "digits"
examples = 250
test_examples = 100
[loader]
workers = [0, 2]
[measure]
repetitions = 2
warmup_steps = 2
"#;

fn epochs(run: &Path) -> Vec<TrainingRow> {
    rows_of(run).expect("epochs")
}

#[test]
#[ignore = "slow"]
fn a_study_writes_its_table_its_chart_and_hyperfines_json() {
    let folder = Folder::with("study.toml", &spec("study", DIGITS));
    prints(
        &folder,
        &["run", "study.toml", "--dry-run"],
        &["kind = \"training\"", "4 cells, visited 2 times each: 8 epochs"],
    );
    let output = ends(0, &folder, &["run", "study.toml", "--export-json", "out.json"]);
    let text = stdout(&output);
    has(
        &text,
        &[
            "Epochs of 250 drawn digits, tested on 100",
            "Summary",
            "times faster than",
            "How many workers",
            "context switches",
        ],
    );
    let directory = folder.join("results/study");
    for name in ["epochs.parquet", "batches.parquet", "spec.toml", "environment.json", "training.png"] {
        assert!(directory.join(name).is_file(), "{name}");
    }
    assert!(!directory.join("parts").exists());
    let document = parsed(&read(&folder, "out.json"));
    let rows = epochs(&directory);
    let first: Vec<f64> = rows
        .iter()
        .filter(|row| !row.warmup && row.batch_size == 30 && row.workers == 0)
        .filter_map(|row| row.epoch_time_s)
        .collect();
    let mean = document["results"][0]["mean"].as_f64().expect("a number");
    assert!((mean - 0.5 * (first[0] + first[1])).abs() < 1e-12 && first.len() == 2);
    assert_eq!(document["results"][0]["parameters"]["batch_size"], "30");

    ends(0, &folder, &["plot", "results/study", "--format", "svg", "--out", "drawn"]);
    let drawn = read(&folder, "drawn/training.svg");
    assert!(drawn.contains("250 drawn digits"), "the data are named on the chart");
    refused(&folder, &["jumps", "results/study"], &["this run is a training"]);
    let again = run(&folder, &["run", "study.toml", "--resume"]);
    assert!(stderr(&again).contains("nothing is left to resume"), "{}", stderr(&again));
}

#[test]
#[ignore = "slow"]
fn a_killed_study_continues_to_the_same_plan() {
    let text = spec("killed", &DIGITS.replace("repetitions = 2", "repetitions = 12"));
    let folder = Folder::with("killed.toml", &text);
    let directory = folder.join("results/killed");
    let child = start(&folder, &["run", "killed.toml"]);
    until("epochs are stored", || parts(&directory, "epochs-") >= 5);
    kill(child);
    let before = epochs(&directory);
    assert!(before.len() >= 5 && before.len() < 2 * 4 * 12, "{} rows at the kill", before.len());
    refused(&folder, &["run", "killed.toml"], &["--resume"]);
    succeeds(&folder, &["run", "killed.toml", "--resume"]);
    let after = epochs(&directory);
    assert!(before.iter().all(|row| after.contains(row)), "what was stored stays as it was");
    let visits: BTreeSet<(i64, i64)> = after.iter().map(|row| (row.cell, row.block)).collect();
    let counted = after.iter().filter(|row| !row.warmup).count();
    assert_eq!((visits.len(), counted), (4 * 12, 4 * 12), "every cell once in each block");
}

/// A folder of two classes with `count` images of 6 x 5 pixels each; one of them is cut short.
fn images(folder: &Path, count: usize, damaged: bool) {
    for class in ["cat", "dog"] {
        let place = folder.join(class);
        std::fs::create_dir_all(&place).expect("a folder");
        for number in 0..count {
            let mut contents = Vec::new();
            let mut encoder = png::Encoder::new(&mut contents, 6, 5);
            encoder.set_color(png::ColorType::Rgb);
            // Cats are dark.
            let ground = if class == "cat" { 20 } else { 200 };
            let pixels: Vec<u8> = (0..90).map(|at| (ground + (at + 3 * number) % 40) as u8).collect();
            encoder.write_header().expect("a header").write_image_data(&pixels).expect("written");
            if damaged && class == "dog" && number == 3 {
                contents.truncate(contents.len() / 2);
            }
            std::fs::write(place.join(format!("{number}.png")), contents).expect("written");
        }
    }
}

const FOLDERS: &str = r#"
[sweep]
batch_size = [8]
[data]
source = "images"
train = "train"
test = "test"
[loader]
workers = [0, 2]
on_error = "ON_ERROR"
[measure]
repetitions = 2
epochs = 2
warmup_steps = 1
"#;

#[test]
#[ignore = "slow"]
fn a_damaged_image_is_named_and_the_run_continues_or_ends_as_the_spec_says() {
    let folder = Folder::new();
    images(&folder.join("train"), 60, true);
    images(&folder.join("test"), 5, false);
    for name in ["fail", "skip", "stop"] {
        write(&folder, "f.toml", &spec(name, &FOLDERS.replace("ON_ERROR", name)));
        let said = stderr(&ends(1, &folder, &["run", "f.toml"]));
        assert!(said.contains("train/dog/3.png: the image cannot be read"), "{said}");
        let rows = epochs(&folder.join("results").join(name));
        let failed = rows.iter().filter(|row| row.error.is_some() && row.epoch_time_s.is_none()).count();
        match name {
            "fail" => assert_eq!(failed, 2, "each cell fails once and is left out"),
            "stop" => {
                assert_eq!((failed, rows.iter().map(|row| row.visit).max()), (1, Some(0)));
                assert!(said.contains("repair the image, then continue with `--resume`"), "{said}");
            }
            _ => {
                let counted: Vec<&TrainingRow> = rows.iter().filter(|row| !row.warmup).collect();
                assert!(counted.len() == 8 && counted.iter().all(|row| (row.examples, row.skipped) == (119, 1)));
                assert!(said.contains("1 example could not be read and was left out"), "{said}");
                // What it would advise is set.
                assert!(!said.contains("leave out what is damaged"), "{said}");
                let learnt = |row: &&TrainingRow| row.epoch == 0 || row.test_accuracy == Some(1.0);
                assert!(counted.iter().all(learnt), "{counted:?}");
            }
        }
    }
    // Not repaired, it ends again at the same visit.
    let resume = ["run", "f.toml", "--resume"];
    warns(1, &folder, &resume, &["the run ended early"]);
    images(&folder.join("train"), 60, false);
    let said = stderr(&succeeds(&folder, &resume));
    assert!(!said.contains("failed"), "{said}");
    let study = Results::read(&folder.join("results/stop")).expect("read");
    assert_eq!((study.failed.len(), study.blocks), (0, 2));
    // Two cells, two visits of two epochs each.
    assert_eq!(study.cells.iter().map(|cell| cell.times.runs).collect::<Vec<_>>(), [4, 4]);
}

/// A folder has the name of an image; not even root can read it as a file.
#[test]
fn an_image_that_cannot_be_opened_is_the_cells_own_error() {
    let folder = Folder::new();
    images(&folder.join("train"), 20, false);
    images(&folder.join("test"), 5, false);
    std::fs::remove_file(folder.join("train/dog/3.png")).expect("removed");
    std::fs::create_dir(folder.join("train/dog/3.png")).expect("a folder");
    for (name, visits) in [("fail", 2), ("stop", 1)] {
        write(&folder, "f.toml", &spec(name, &FOLDERS.replace("ON_ERROR", name)));
        let said = stderr(&ends(1, &folder, &["run", "f.toml"]));
        assert!(
            said.contains("train/dog/3.png: the image cannot be read") && !said.contains("that you may write to"),
            "{said}"
        );
        let rows = epochs(&folder.join("results").join(name));
        let failed: Vec<&TrainingRow> = rows.iter().filter(|row| row.error.is_some()).collect();
        assert_eq!(failed.len(), visits, "{rows:?}");
    }
}

/// One of the ten test images is truncated.
#[test]
fn a_damaged_test_image_is_counted_and_named() {
    let folder = Folder::new();
    images(&folder.join("train"), 20, false);
    images(&folder.join("test"), 5, true);
    write(&folder, "f.toml", &spec("tested", &FOLDERS.replace("ON_ERROR", "skip")));
    let said = stderr(&ends(1, &folder, &["run", "f.toml"]));
    // Once for each of two cells, however many visits and epochs they have.
    assert_eq!(said.matches("1 test example was left out of the accuracy; the first: ").count(), 2, "{said}");
    assert!(said.contains("test/dog/3.png: the image cannot be read"), "{said}");
    assert!(said.contains("1 test example could not be read: the accuracy is that of the others"), "{said}");
    let rows = epochs(&folder.join("results/tested"));
    let counted: Vec<&TrainingRow> = rows.iter().filter(|row| !row.warmup).collect();
    assert!(counted.len() == 8 && counted.iter().all(|row| (row.skipped, row.test_skipped) == (0, Some(1))));
    assert!(counted.iter().all(|row| row.error.as_deref().is_some_and(|error| error.contains("test/dog/3.png"))));
    // The shares are ninths, not tenths.
    let ninths = counted.iter().filter_map(|row| row.test_accuracy).map(|share| 9.0 * share);
    assert!(ninths.clone().count() == 8 && ninths.clone().all(|ninths| (ninths - ninths.round()).abs() < 1e-9));
}

const PARQUET: &str = r#"
[sweep]
batch_size = [5]
[data]
source = "parquet"
path = "FOLDER"
[loader]
workers = [0, 2]
on_error = "ON_ERROR"
[measure]
repetitions = 2
epochs = 6
warmup_steps = 1
"#;

/// Tables that Hugging Face's `datasets` wrote; see tests/fixtures/images/make.py.
#[test]
#[ignore = "slow"]
fn a_data_set_of_the_hub_is_trained_on_and_its_damaged_row_is_named() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/images");
    let folder = Folder::new();
    let go = |name: &str, data: &str, on_error: &str| {
        let data = PARQUET.replace("FOLDER", fixtures.join(data).to_str().expect("UTF-8"));
        let text = spec(name, &data.replace("ON_ERROR", on_error)).replace("out_features = 10", "out_features = 3");
        write(&folder, "p.toml", &text);
        let output = run(&folder, &["run", "p.toml"]);
        let rows = rows_of::<TrainingRow>(&folder.join("results").join(name)).unwrap_or_default();
        (output, rows)
    };
    let (output, rows) = go("hub", "hub", "fail");
    // 1: epochs of a millisecond may be outliers.
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", stderr(&output));
    assert!(stdout(&output).contains("Epochs of 20 images from Parquet files, tested on 6"), "{}", stdout(&output));
    let counted: Vec<&TrainingRow> = rows.iter().filter(|row| !row.warmup).collect();
    assert!(counted.len() == 2 * 2 * 6 && counted.iter().all(|row| row.examples == 20));
    // The losses are the same for any number of workers; cats are dark and dogs are bright.
    let last: Vec<&&TrainingRow> = counted.iter().filter(|row| row.epoch == 5).collect();
    assert!(last.iter().all(|row| row.loss == last[0].loss && row.test_accuracy == Some(1.0)), "{last:?}");

    let (output, rows) = go("fail", "damaged", "fail");
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("train-00000-of-00001.parquet, row 3 (dog/3.png): the image cannot be read"), "{said}");
    assert!(said.contains("no part for tests or validation"), "{said}");
    assert_eq!(rows.iter().filter(|row| row.error.is_some() && row.epoch_time_s.is_none()).count(), 2);
    let (output, rows) = go("skip", "damaged", "skip");
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(rows.iter().filter(|row| !row.warmup).all(|row| (row.examples, row.skipped) == (9, 1)));
}

#[test]
#[ignore = "slow"]
fn bad_data_are_refused_with_the_place_and_a_remedy() {
    let folder = Folder::new();
    let refusal = |body: &str, parts: &[&str]| {
        write(&folder, "bad.toml", &spec("bad", body));
        refused(&folder, &["run", "bad.toml"], parts);
    };
    let nowhere = "[data]\nsource = \"idx\"\npath = \"nowhere\"";
    refusal(nowhere, &["nowhere: there is no `train-images-idx3-ubyte`", "digits"]);
    std::fs::create_dir(folder.join("empty")).expect("a folder");
    let images = "[data]\nsource = \"images\"\ntrain = \"empty\"";
    refusal(images, &["empty: there are no images", "train/<class>"]);
    let table = "[data]\nsource = \"parquet\"\npath = \"empty\"";
    refusal(table, &["empty: no Parquet file is the training part's by its name: the folder is empty"]);
    let channels = "[data]\nsource = \"digits\"\nexamples = 10\nmean = [0.1, 0.2]\nsd = [0.3, 0.4]";
    refusal(channels, &["`mean` has 2 values, and the images 1 channels"]);
    write(&folder, "odd.toml", &spec("odd", "").replace("out_features = 10", "out_features = 4"));
    refused(&folder, &["run", "odd.toml"], &["the network has 4 outputs, and the data 10 classes"]);
}

/// hyperfine's output for one command.
struct Printed {
    /// mean, sd, user, system, min, max, in milliseconds, as it printed them.
    numbers: Vec<f64>,
}

impl Printed {
    /// From the lines of a benchmark: `Time (mean ± σ): 12.1 ms ± 0.3 ms [User: 1.0 ms, System: 1.5 ms]`, `Range (min … max): ...`.
    fn of(text: &str) -> Vec<Self> {
        let numbers = |line: &str| -> Vec<f64> {
            let words: Vec<&str> = line.split_whitespace().collect();
            let unit = |word: &str| word.trim_end_matches([',', ']']) == "ms";
            words.windows(2).filter(|pair| unit(pair[1])).filter_map(|pair| pair[0].parse().ok()).collect()
        };
        let of =
            |what: &str| -> Vec<Vec<f64>> { text.lines().filter(|line| line.contains(what)).map(numbers).collect() };
        let with_range = |(time, range): (Vec<f64>, Vec<f64>)| Self { numbers: [time, range].concat() };
        of("Time (mean").into_iter().zip(of("Range (min")).map(with_range).collect()
    }
}

/// hyperfine times two commands; our statistics of its times, our table and our comparison agree with its output.
#[test]
fn the_statistics_of_hyperfines_times_are_hyperfines() {
    let folder = Folder::new();
    let path = folder.join("hyperfine.json");
    let program = std::env::var("BATCHSTEP_HYPERFINE").unwrap_or_else(|_| "hyperfine".to_owned());
    let mut command = Command::new(&program);
    command.args([
        "--runs",
        "8",
        "--warmup",
        "1",
        "-N",
        "--style",
        "basic",
        "--time-unit",
        "millisecond",
        "--export-json",
    ]);
    command.arg(&path).args(["sleep 0.02", "sleep 0.01"]);
    let printed = match command.output() {
        Err(error) => return needs::missing("hyperfine", error),
        Ok(output) => {
            assert!(output.status.success(), "{}", stderr(&output));
            stdout(&output)
        }
    };
    let document = parsed(&std::fs::read_to_string(&path).expect("a file"));
    let number = |value: &Value| value.as_f64().expect("a number");
    // A cell for each command, whose runs are the epochs of one visit. hyperfine exports processor times only as means, so every epoch has the mean.
    let rows: Vec<TrainingRow> = (0..)
        .zip(document["results"].as_array().expect("two results"))
        .flat_map(|(workers, theirs)| {
            let times = theirs["times"].as_array().expect("a list").iter().map(number).collect::<Vec<f64>>();
            let (user, system) = (number(&theirs["user"]), number(&theirs["system"]));
            (0..).zip(times).map(move |(epoch, seconds)| TrainingRow {
                engine: "cpu".into(),
                workers,
                epoch,
                examples: 1,
                epoch_time_s: Some(seconds),
                user_time_s: Some(user),
                system_time_s: Some(system),
                memory_used_bytes: Some(1),
                ..TrainingRow::default()
            })
        })
        .collect();
    let study = Results::of(&rows);
    let exported: Value = hyperfine::json(&study);
    let ours = exported["results"].as_array().expect("two cells");
    // Every field that hyperfine writes and its scripts read is in our export, with its value.
    for (theirs, ours) in document["results"].as_array().expect("two results").iter().zip(ours) {
        for field in theirs.as_object().expect("an object").keys() {
            assert!(ours.get(field).is_some(), "`{field}` is missing");
        }
        for name in ["mean", "stddev", "median", "min", "max", "user", "system"] {
            let (own, expected) = (number(&ours[name]), number(&theirs[name]));
            assert!((own - expected).abs() < 1e-9, "{name}: {own}, hyperfine {expected}");
        }
    }
    // Its output is rounded to a tenth of a millisecond.
    let printed_of = Printed::of(&printed);
    assert_eq!((printed_of.len(), ours.len()), (2, 2), "{printed}");
    for (theirs, ours) in printed_of.iter().zip(ours) {
        let own = ["mean", "stddev", "user", "system", "min", "max"].map(|name| 1e3 * number(&ours[name]));
        assert_eq!(theirs.numbers.len(), own.len(), "{printed}");
        for (own, expected) in own.iter().zip(&theirs.numbers) {
            assert!((own - expected).abs() < 0.0501, "{own}, hyperfine {expected}: {printed}");
        }
    }
    // `2.02 ± 0.05 times faster than sleep 0.02`, digit for digit.
    let ratio = |text: &str| {
        let line = text.lines().find(|line| line.contains("times faster than")).map(str::trim).map(str::to_owned);
        line.and_then(|line| line.split(" times faster").next().map(tidy))
    };
    let said = report::document(&study).render(&Style::PLAIN);
    assert!(ratio(&printed).is_some_and(|ratio| ratio.contains(" ± ")), "{printed}");
    assert_eq!(ratio(&said), ratio(&printed), "{said}\n{printed}");
}
