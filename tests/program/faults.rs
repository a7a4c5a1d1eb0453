//! Failures in the middle of a run: the run reports them, keeps its data, and continues where it can.

use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

use crate::needs;
use crate::support::{Folder, batchstep, ends, parts, planted, run, start, stderr, until, warns, write};
use batchstep::store::Table;

/// A run of 10 batch sizes with these lines in its truth and under `[measure]`.
fn spec(truth: &str, measure: &str) -> String {
    let truth = format!("noise = {{ sd = \"1%\" }}\n{truth}");
    planted("f", "\"1..=10\"", &truth, &format!("steps_per_visit = 2\n{measure}"))
}

/// Batch size and status of every row.
fn statuses(folder: &Path) -> Vec<(usize, String)> {
    let table = Table::read(&folder.join("results/f"), &["batch_size", "status"]).expect("a table");
    let sizes = table.numbers("batch_size").expect("numbers");
    sizes.into_iter().map(|size| size as usize).zip(table.texts("status").expect("texts")).collect()
}

#[test]
#[ignore = "slow"]
fn a_loss_that_is_not_a_number_is_flagged_and_warned_of() {
    let folder = Folder::with("f.toml", &spec("nan_loss = [7]", "blocks = { min = 3, max = 3 }"));
    let output = ends(1, &folder, &["run", "f.toml"]);
    // The planted loss is NaN at every step, so no update is the cause.
    assert!(stderr(&output).contains("from the first step on"), "{}", stderr(&output));
    assert!(stderr(&output).contains("batchstep selftest"), "{}", stderr(&output));
    assert!(statuses(&folder).iter().all(|(size, status)| (*size == 7) == (status == "nan_loss")));
}

/// With a learning rate of 1000, one dense layer's error grows about a thousandfold in each step: its square exceeds
/// float32 while the error itself is still finite.
#[test]
#[ignore = "slow"]
fn an_infinite_loss_is_flagged_like_one_that_is_not_a_number() {
    let folder = Folder::new();
    let spec = "version = 1\nname = \"f\"\n[model]\nname = \"line\"\ninput = [2]\nclasses = 2\n[[model.layers]]\ntype = \"dense\"\n\
                out_features = 2\n[sweep]\nbatch_size = [1, 2]\n[train]\noptimizer = \"sgd\"\nlearning_rate = 1000\n\
                loss = \"mean_squared_error\"\n[engine]\nname = \"cpu\"\n[measure]\nblocks = { min = 2, max = 2 }\n\
                steps_per_visit = 12\n";
    write(&folder, "f.toml", spec);
    let output = ends(1, &folder, &["run", "f.toml"]);
    assert!(stderr(&output).contains("the loss was not a finite number"), "{}", stderr(&output));
    assert!(stderr(&output).contains("lower `learning_rate`"), "{}", stderr(&output));
    let table = Table::read(&folder.join("results/f"), &["loss", "step", "status"]).expect("a table");
    let (losses, steps) = (table.numbers("loss").expect("numbers"), table.numbers("step").expect("numbers"));
    let statuses = table.texts("status").expect("texts");
    assert!(losses.iter().any(|loss| loss.is_infinite()), "{losses:?}");
    for ((loss, step), status) in losses.iter().zip(steps).zip(statuses) {
        assert_eq!(status == "nan_loss", !loss.is_finite(), "{loss} at step {step}");
        assert!(step > 0.0 || loss.is_finite(), "{loss} before the first update");
    }
}

#[test]
#[ignore = "slow"]
fn a_cell_that_fails_is_tried_once_and_the_others_go_on() {
    let folder = Folder::with("f.toml", &spec("fails = [3]", "blocks = { min = 3, max = 3 }"));
    warns(1, &folder, &["run", "f.toml"], &["a fault at batch size 3"]);
    let failed: Vec<_> = statuses(&folder).into_iter().filter(|(_, status)| status == "failed").collect();
    assert_eq!(failed, [(3, "failed".to_string())]);
}

#[test]
#[ignore = "slow"]
fn a_lost_device_ends_the_run_and_resuming_continues_without_the_cell_that_lost_it() {
    let fixed = "blocks = { min = 3, max = 3 }";
    let folder = Folder::with("f.toml", &spec("lost = [3]", fixed));
    write(&folder, "next.toml", &spec("", fixed).replace("\"f\"", "\"next\""));
    let message = stderr(&ends(1, &folder, &["run", "f.toml", "next.toml"]));
    assert!(message.contains("nothing runs any more after synthetic synthetic at batch size 3"), "{message}");
    assert!(message.contains("--resume"), "{message}");
    let failed = |rows: &[(usize, String)]| rows.iter().filter(|row| row.1 == "failed").cloned().collect::<Vec<_>>();
    let rows = statuses(&folder);
    assert_eq!(failed(&rows), [(3, "failed".to_string())]);
    assert!(rows.len() < 10 * 3 * 2, "the cells after it are not tried: {}", rows.len());
    assert!(!folder.join("results/next").exists(), "what comes next in that process is not tried");
    ends(1, &folder, &["run", "f.toml", "--resume"]);
    let rows = statuses(&folder);
    assert_eq!(failed(&rows), [(3, "failed".to_string())]);
    let ok = |size: usize| rows.iter().filter(|row| row.0 == size && row.1 == "ok").count();
    assert!((1..=10).all(|size| size == 3 || ok(size) >= 6), "{rows:?}");
}

#[test]
#[ignore = "slow"]
fn a_visit_that_takes_too_long_is_cut_short_and_its_steps_are_kept() {
    let truth = "hangs = [{ at = 4, for = \"3s\" }]";
    let folder = Folder::with("f.toml", &spec(truth, "blocks = { min = 2, max = 2 }\nvisit_limit = \"2s\""));
    warns(1, &folder, &["run", "f.toml"], &["longer than `visit_limit`, 2s"]);
    let of_four: Vec<_> = statuses(&folder).into_iter().filter(|(size, _)| *size == 4).collect();
    assert_eq!(of_four, [(4, "ok".to_string()), (4, "failed".to_string())]);
}

#[test]
#[ignore = "slow"]
fn a_step_that_never_ends_ends_the_run_and_resuming_continues_without_its_cell() {
    let truth = "hangs = [{ at = 4, for = \"1h\" }]";
    let folder = Folder::with("f.toml", &spec(truth, "blocks = { min = 2, max = 2 }\nvisit_limit = \"1s\""));
    let watch = Instant::now();
    let output = run(&folder, &["run", "f.toml"]);
    assert!(watch.elapsed() < Duration::from_secs(600));
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("batch size 4") && message.contains("--resume"), "{message}");
    ends(1, &folder, &["run", "f.toml", "--resume"]);
    let rows = statuses(&folder);
    assert_eq!(rows.iter().filter(|(size, _)| *size == 4).collect::<Vec<_>>(), [&(4, "failed".to_string())]);
    assert!(
        (1..=10).all(|size| size == 4 || rows.iter().filter(|(s, status)| *s == size && status == "ok").count() >= 4)
    );
}

/// Starts a long run, waits until it stores visits, lets `disturb` do its work, and returns the run's output.
fn disturbed(folder: &Path, disturb: impl FnOnce(&Path)) -> Output {
    write(folder, "f.toml", &spec("", "blocks = { min = 2000, max = 2000 }"));
    let child = start(folder, &["run", "f.toml"]);
    until("visits are stored", || parts(&folder.join("results/f"), "") >= 30);
    disturb(&folder.join("results/f"));
    child.wait_with_output().expect("it ends")
}

#[test]
fn a_results_folder_that_is_removed_ends_the_run_with_a_word_on_it() {
    let folder = Folder::new();
    let output = disturbed(&folder, |results| {
        // The run keeps writing meanwhile, so removing may need a second attempt.
        while std::fs::remove_dir_all(results).is_err() && results.exists() {}
    });
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    // The run finds that the folder is gone, or that a file in it vanishes while it is written.
    assert!(message.contains("was removed while") && message.contains("help:"), "{message}");
}

#[cfg(unix)]
#[test]
fn a_results_folder_that_becomes_read_only_ends_the_run_and_keeps_its_visits() {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let allow = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode)).expect("permitted");
    let folder = Folder::with("f.toml", &spec("", "blocks = { min = 2000, max = 2000 }"));
    allow(&folder, 0o777);
    let mut command = batchstep(&folder);
    command.args(["run", "f.toml"]).stdout(Stdio::null()).stderr(Stdio::piped());
    // Root may write anywhere, so the run is given to the user `nobody`. SAFETY: the call has no arguments and can't
    // fail.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(65534).gid(65534);
    }
    // If the user `nobody` may not even see the program, there is nothing to test.
    let child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return needs::missing("nobody", format!("the user 65534 cannot start the program: {error}")),
    };
    until("visits are stored", || parts(&folder.join("results/f"), "") >= 30);
    let parts = folder.join("results/f/parts");
    allow(&parts, 0o555);
    let output = child.wait_with_output().expect("it ends");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("Permission denied") && message.contains("help:"), "{message}");
    let kept = parts.read_dir().expect("a folder").count();
    assert!(kept >= 30, "{kept} visits were kept");
    allow(&parts, 0o777);
}
