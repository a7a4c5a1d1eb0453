//! Impossible requests to a run: one message, exit code 2, nothing half-written.

use std::path::Path;

use batchstep::store::{CellRow, StepRow, files, sealed};

use crate::needs;
use crate::support::{Folder, ends, parsed, prints, read, refused, run, stderr, stdout, warns, write};

const QUICK: &str = "version = 1\nname = \"q\"\n[sweep]\nbatch_size = \"1..=10\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n[measure]\nblocks = { max = 2 }\nsteps_per_visit = 2\n";

/// A folder with that spec and its finished run.
fn measured() -> Folder {
    let folder = Folder::with("q.toml", QUICK);
    ends(0, &folder, &["run", "q.toml"]);
    folder
}

#[test]
fn a_broken_spec_starts_nothing() {
    let folder = Folder::with(
        "bad.toml",
        "version = 1\nname = \"bad\"\n[model]\nname = \"vgg16\"\n[sweep]\nbatch = \"1..=70\"\n",
    );
    refused(&folder, &["run", "bad.toml"], &["bad.toml:6: sweep.batch", "did you mean `batch_size`?"]);
    write(&folder, "small.toml", "version = 1\nname = \"s\"\n[model]\nname = \"vgg16\"\ninput = [3, 16, 16]\n");
    refused(&folder, &["run", "small.toml"], &["vgg16", "32"]);
    refused(&folder, &["run", "none.toml"], &["none.toml", "no such file"]);
    refused(&folder, &["run", "quickstrt"], &["no such spec", "did you mean `quickstart`?"]);
    refused(&folder, &["specs", "quickstrt"], &["no spec `quickstrt`", "did you mean `quickstart`?"]);
    refused(&folder, &["run", "quickstart", "--device", "gpu"], &["`gpu` is not a device", "for a GPU cuda:0"]);
    write(&folder, "good.toml", QUICK);
    refused(&folder, &["run", "good.toml", "bad.toml"], &["bad.toml:6"]);
    refused(&folder, &["run", "good.toml", "--device", "tpu"], &["`tpu`", "cuda:0"]);
    assert!(!folder.join("results").exists(), "nothing was begun");
}

#[test]
fn settings_without_meaning_on_the_cpu_are_refused_before_the_run() {
    let folder = Folder::new();
    for setting in [
        "[train]\nprecision = \"fp16\"",
        "[train]\ndata = \"pinned\"",
        "[train]\nlayout = \"nhwc\"",
        "[engine]\nlaunch = \"graph\"",
    ] {
        write(&folder, "s.toml", &format!("version = 1\nname = \"s\"\n[model]\nname = \"mlp\"\n{setting}\n"));
        refused(&folder, &["run", "s.toml", "--device", "cpu"], &["help:"]);
    }
    assert!(!folder.join("results").exists());
}

#[test]
fn folders_that_are_something_else_stay_as_they_are() {
    let folder = Folder::with("q.toml", QUICK);
    std::fs::create_dir(folder.join("mine")).expect("a folder");
    write(&folder.join("mine"), "thesis.tex", "years of work");
    refused(&folder, &["run", "q.toml", "--out", "mine"], &["mine", "not a run directory", "--out"]);
    assert_eq!(std::fs::read_dir(folder.join("mine")).expect("a folder").count(), 1);
    write(&folder, "file", "");
    refused(&folder, &["run", "q.toml", "--out", "file/below"], &["file/below"]);
}

#[test]
#[ignore = "slow"]
fn an_unfinished_run_is_neither_overwritten_nor_mixed_with_another_spec() {
    let folder = measured();
    // As if killed before it was sealed.
    std::fs::remove_file(folder.join("results/q/steps.parquet")).expect("removed");
    refused(&folder, &["run", "q.toml"], &["unfinished run", "--resume"]);
    refused(&folder, &["run", "q.toml", "--resume", "--seed", "9"], &["spec has changed", "- seed = 1", "+ seed = 9"]);
    // Begun by a version that did not know a key yet.
    let begun = folder.join("results/q/spec.toml");
    let text = std::fs::read_to_string(&begun).expect("a spec");
    assert!(text.contains("\ncounters = false\n"), "{text}");
    std::fs::write(&begun, text.replace("counters = false\n", "")).expect("written");
    refused(&folder, &["run", "q.toml", "--resume"], &["not the one that this run was begun with"]);
    forget_spec(&folder.join("results/q"));
    ends(0, &folder, &["run", "q.toml", "--resume"]);
}

/// Makes the environment of a run one of an earlier version, which kept no digest of the spec.
fn forget_spec(run: &Path) {
    let path = run.join("environment.json");
    let mut environment = parsed(&read(run, "environment.json"));
    environment.as_object_mut().expect("an object").remove("spec_digest").expect("it was there");
    std::fs::write(&path, environment.to_string()).expect("written");
}

/// The copy of the spec in the folder is edited, and given to `--resume`.
#[test]
#[ignore = "slow"]
fn a_run_is_not_continued_with_other_batch_sizes() {
    let folder = measured();
    let directory = folder.join("results/q");
    let spec = read(&directory, "spec.toml");
    let other = spec.replace("1..=10", "101..=110");
    assert_ne!(other, spec);
    write(&directory, "spec.toml", &other);
    let resume = ["run", "results/q/spec.toml", "--out", "results/q", "--resume", "--time", "31min"];
    refused(&folder, &resume, &["results/q: its spec.toml is not the one that this run was begun with", "--out"]);
    // In a run of an earlier version, the rows tell.
    forget_spec(&directory);
    let environment = || std::fs::read(directory.join("environment.json")).expect("readable");
    let before = environment();
    refused(&folder, &resume, &["results/q: the stored visits are of another spec", "is synthetic at batch size "]);
    assert_eq!(environment(), before);
    write(&directory, "spec.toml", &spec);
    ends(0, &folder, &["run", "results/q/spec.toml", "--out", "results/q", "--resume"]);
}

/// `collect` needs that table, and says that `--resume` writes it.
#[test]
#[ignore = "slow"]
fn a_finished_run_that_lost_its_cells_gets_them_back_from_its_steps() {
    let folder = measured();
    let directory = folder.join("results/q");
    let stored = || {
        let cells = sealed::<CellRow>(&directory.join(files::CELLS)).expect("cells");
        (format!("{cells:?}"), sealed::<StepRow>(&directory.join(files::STEPS)).expect("steps").len())
    };
    let before = stored();
    std::fs::remove_file(directory.join("cells.parquet")).expect("removed");
    let refusal = stderr(&run(&folder, &["collect", "results/q", "--into", "database"]));
    assert!(refusal.contains("cells.parquet") && refusal.contains("--resume"), "{refusal}");
    warns(0, &folder, &["run", "q.toml", "--resume"], &["is written again from its steps"]);
    assert_eq!(stored(), before);
    prints(&folder, &["collect", "results/q", "--into", "database"], &["10 cells"]);
}

#[test]
fn a_damaged_environment_is_named_with_its_folder() {
    let folder = measured();
    let directory = folder.join("results/q");
    write(&directory, "environment.json", "");
    refused(
        &folder,
        &["run", "q.toml", "--resume", "--time", "31min"],
        &["results/q: environment.json: damaged", "help: put it back"],
    );
}

#[test]
#[ignore = "slow"]
fn a_damaged_part_is_measured_again() {
    let folder = measured();
    let directory = folder.join("results/q");
    std::fs::remove_file(directory.join("steps.parquet")).expect("removed");
    std::fs::create_dir_all(directory.join("parts")).expect("a folder");
    std::fs::write(directory.join("parts/visit-00000003.parquet"), b"PAR1 torn").expect("writable");
    warns(0, &folder, &["run", "q.toml", "--resume"], &["visit-00000003.parquet is damaged"]);
    assert!(directory.join("steps.parquet").is_file());
}

#[test]
#[ignore = "slow"]
fn a_cell_that_does_not_fit_is_a_row_and_the_sweep_continues() {
    // 4 million images of 28x28 through mnist_cnn need terabytes; one needs nothing.
    let spec = "version = 1\nname = \"big\"\n[model]\nname = \"mnist_cnn\"\n[sweep]\nbatch_size = [1, 2, 1000000]\n[train]\nprecision = \"fp32\"\n[measure]\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 1\n";
    let folder = Folder::with("big.toml", spec);
    let output = ends(1, &folder, &["run", "big.toml", "--device", "cpu"]);
    let table = batchstep::store::Table::read(&folder.join("results/big"), &["batch_size", "status", "step_time_s"])
        .expect("a table");
    let (sizes, status) = (table.numbers("batch_size").expect("numbers"), table.texts("status").expect("texts"));
    let times = table.numbers("step_time_s").expect("numbers");
    for row in 0..table.rows() {
        let big = sizes[row] == 1_000_000.0;
        assert_eq!(status[row], if big { "out_of_memory" } else { "ok" });
        assert_eq!(times[row].is_nan(), big);
    }
    assert_eq!(sizes.iter().filter(|&&size| size == 1_000_000.0).count(), 1, "it is not tried again");
    assert!(stderr(&output).contains("memory"), "{}", stderr(&output));
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_keeps_the_stored_visits() {
    let folder = Folder::with("q.toml", &QUICK.replace("1..=10", "1..=70").replace("max = 2", "min = 20, max = 20"));
    // A file system of 600 kB in a separate mount namespace; without permission to make one there is nothing to test.
    let script = format!(
        "mkdir -p disk && mount -t tmpfs -o size=600k tmpfs disk && ({} run q.toml --out disk/q; echo exit=$?; ls disk/q/parts | grep -c visit)",
        env!("CARGO_BIN_EXE_batchstep")
    );
    let output = std::process::Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", &script])
        .current_dir(&folder)
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return needs::missing("mount", format!("unshare: {error}")),
    };
    let (out, err) = (stdout(&output), stderr(&output));
    if !out.contains("exit=") {
        return needs::missing("mount", format!("no file system of its own: {}", err.trim()));
    }
    assert!(out.contains("exit=2"), "{out}{err}");
    assert!(err.contains("No space left") && err.contains("--resume"), "{err}");
    let kept: usize = out.lines().last().and_then(|line| line.trim().parse().ok()).expect("a count");
    assert!(kept > 10, "{kept} visits were kept");
}
