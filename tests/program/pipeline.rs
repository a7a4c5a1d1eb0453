//! A study of the input pipeline, from the spec to the tables, the chart and the document.

use std::path::Path;
use std::process::{Command, Output};

use batchstep::store::{Status, rows_of};
use batchstep::study::pipeline::PipelineRow;

use crate::needs;
use crate::support::{Folder, ends, has, parsed, prints, read, refused, run, stderr, stdout, warns, write};

fn spec(name: &str, body: &str) -> String {
    format!(
        r#"version = 1
kind = "pipeline"
name = "{name}"
[model]
name = "small"
[[model.layers]]
type = "max_pool2d"
kernel = 4
[[model.layers]]
type = "flatten"
[[model.layers]]
type = "dense"
out_features = 10
[sweep]
batch_size = [4]
[engine]
name = "cpu"
threads = 1
{body}
[measure]
repetitions = 2
stage_time = "4ms"
together_time = "8ms"
"#
    )
}

fn rows(run: &Path) -> Vec<PipelineRow> {
    rows_of(run).expect("rows")
}

#[test]
#[ignore = "slow"]
fn a_study_writes_its_tables_its_chart_and_its_document_and_removes_its_images() {
    let folder = Folder::on_disk();
    let images = folder.join("disk");
    let body = format!(
        "[data]\nfolder = {:?}\nimages = 8\nsize = 16\nformat = [\"raw\", \"jpeg\"]\n[loader]\nworkers = [0, 2]",
        images.display().to_string()
    );
    write(&folder, "p.toml", &spec("p", &body));
    prints(&folder, &["run", "p.toml", "--dry-run"], &["8 cells, visited 2 times each, on 16 files"]);
    let output = run(&folder, &["run", "p.toml"]);
    // Windows of 8 ms are too short for a prediction to a tenth.
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", stderr(&output));
    let text = stdout(&output);
    has(
        &text,
        &["Storage", "Single stages", "All together", "How many workers", "Measured within 10 % of the prediction in"],
    );
    let directory = folder.join("results/p");
    for name in ["pipeline.parquet", "pipeline.json", "spec.toml", "environment.json", "pipeline.png"] {
        assert!(directory.join(name).is_file(), "{name}");
    }
    assert!(!directory.join("parts").exists() && images.read_dir().expect("a folder").next().is_none());
    let document = parsed(&read(&directory, "pipeline.json"));
    assert_eq!((document["version"].as_i64(), document["within_ten_percent"]["of"].as_i64()), (Some(1), Some(8)));
    let rows = rows(&directory);
    let together: Vec<&PipelineRow> = rows.iter().filter(|row| row.stage == "together").collect();
    assert!(together.len() == 16 && together.iter().all(|row| row.status == Status::Ok && row.images > 0));
    let again = run(&folder, &["run", "p.toml", "--resume"]);
    assert!(stderr(&again).contains("nothing is left to resume"), "{}", stderr(&again));
    let page = read(&directory, "report.html");
    has(
        &page,
        &[
            "<h2>Stages and workers</h2>",
            "Single stages (images/s",
            "<img class=\"picture\" alt=\"Measured within 10 %",
        ],
    );
    std::fs::remove_file(directory.join("report.html")).expect("removed");
    ends(0, &folder, &["report", "results/p"]);
    assert_eq!(read(&directory, "report.html"), page, "from the stored data alone");
    ends(0, &folder, &["plot", "results/p", "--format", "svg", "--out", "drawn"]);
    assert!(read(&folder, "drawn/pipeline.svg").contains("Predicted (images/s)"));
    refused(&folder, &["jumps", "results/p"], &["input pipeline"]);
}

#[test]
#[ignore = "slow"]
fn damaged_images_are_counted_and_named() {
    let folder = Folder::on_disk();
    let body = |on_error: &str| {
        format!(
            "[data]\nimages = 8\ndamaged = 2\nsize = 16\nformat = \"png\"\ncache = \"warm\"\n[loader]\nworkers = 1\non_error = \"{on_error}\""
        )
    };
    write(&folder, "skip.toml", &spec("skip", &body("skip")));
    warns(1, &folder, &["run", "skip.toml"], &["2 images could not be read and were left out: ", ".png"]);
    write(&folder, "stop.toml", &spec("stop", &body("stop")));
    let output = run(&folder, &["run", "stop.toml"]);
    let message = stderr(&output);
    assert!(message.contains("the image cannot be read") && message.contains(".png"), "{message}");
    assert!(output.status.code() == Some(1) && message.contains("the run ended early"), "{message}");
}

/// Runs the study in a separate mount namespace, with a small memory file system at `disk`.
fn on_small_disk(folder: &Path, options: &str) -> Output {
    let script = "mount -t tmpfs -o \"$1\" tmpfs disk && \"$2\" run p.toml --resume; code=$?; echo \"left: $(ls -A disk | wc -l)\"; exit $code";
    let mut command = Command::new("unshare");
    command.current_dir(folder).args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", options]);
    command.arg(env!("CARGO_BIN_EXE_batchstep")).output().expect("unshare(1) runs")
}

#[test]
fn a_disk_that_fills_up_while_the_images_are_made_leaves_nothing_behind() {
    let probe = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "mount", "-t", "tmpfs", "tmpfs", "/mnt"])
        .output();
    if !probe.is_ok_and(|probe| probe.status.success()) {
        return needs::missing("mount", "a file system cannot be mounted in a namespace of its own here");
    }
    let folder = Folder::new();
    std::fs::create_dir(folder.join("disk")).expect("a folder");
    write(&folder, "p.toml", &spec("p", "[data]\nfolder = \"disk\"\nimages = 200\nsize = 16\nformat = \"raw\""));
    // 200 images of 768 bytes fit into 4 MB, but not into 50 entries: the 51st file is refused with "no space left on
    // device".
    let output = on_small_disk(&folder, "size=4m,nr_inodes=50");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("cannot write an image of the study: No space left on device"), "{message}");
    assert!(message.contains("the written images were removed again"), "{message}");
    assert!(stdout(&output).contains("left: 0"), "{}", stdout(&output));
    // Data that cannot fit is refused beforehand.
    let output = on_small_disk(&folder, "size=64k");
    assert!(output.status.code() == Some(2) && stderr(&output).contains("are free"), "{}", stderr(&output));
}
