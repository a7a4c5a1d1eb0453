//! Killed at any moment, a run loses at most the visit in flight, and `--resume` continues with exactly the same plan.

use crate::support::{
    Folder, batchstep, ends, kill, numbers, parts, planted, read, signal, start, stderr, stdout, until, write,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use batchstep::spec::Experiment;
use batchstep::spec::plan::Plan;

/// 40 batch sizes in so many blocks.
fn spec(blocks: usize) -> String {
    let measure = format!("blocks = {{ min = {blocks}, max = {blocks} }}\nsteps_per_visit = 3\nseed = 5");
    planted("kill", "\"1..=40\"", "base = \"10ms\"\nslope = \"1ms\"\nnoise = { sd = \"1%\" }", &measure)
}

/// The stored data: for each visit its block, cell and step times.
type Stored = BTreeMap<i64, Vec<(i64, i64, i64, u64)>>;

fn stored(run: &Path) -> Stored {
    let mut visits = Stored::new();
    for [visit, block, cell, step, time] in
        numbers(run, ["visit", "block", "cell", "step", "step_time_s"]).unwrap_or_default()
    {
        visits.entry(visit as i64).or_default().push((block as i64, cell as i64, step as i64, time.to_bits()));
    }
    visits
}

#[test]
#[ignore = "slow"]
fn kills_at_random_moments_lose_no_visit_and_double_none() {
    // Twenty by default; BATCHSTEP_KILLS=100 for the heavy form.
    let kills = std::env::var("BATCHSTEP_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(20);
    let folder = Folder::new();
    let path = write(&folder, "kill.toml", &spec(25));
    let run = folder.join("run");
    let mut random = batchstep::random::Rng::new(20);
    let mut before = Stored::new();
    let mut kills_with_progress = 0;
    for kill in 0..kills {
        let mut command = batchstep(&folder);
        command.arg("run").arg(&path).arg("--out").arg(&run).stdout(Stdio::null()).stderr(Stdio::null());
        if run.exists() {
            command.arg("--resume");
        }
        let mut child = command.spawn().expect("starts");
        // Every fifth kill comes while the program starts, the others some moments after its first visit.
        let begun = Instant::now();
        let no_visit =
            |seconds| begun.elapsed() < Duration::from_secs(seconds) && parts(&run, "visit-") <= before.len();
        while kill % 5 != 0 && no_visit(20) && child.try_wait().expect("a child").is_none() {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(random.below(80) as u64));
        let finished = child.try_wait().expect("a child").is_some();
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert!(!finished || kill > 5, "the run ended by itself before it could be killed");
        let after = stored(&run);
        for (visit, rows) in &before {
            assert_eq!(after.get(visit), Some(rows), "visit {visit} changed or vanished at kill {kill}");
        }
        kills_with_progress += usize::from(after.len() > before.len());
        before = after;
    }
    assert!(kills_with_progress >= 3, "only {kills_with_progress} of {kills} kills came in the middle of the work");

    ends(0, &folder, &["run", "kill.toml", "--out", "run", "--resume"]);
    let whole = stored(&run);
    assert!(run.join("steps.parquet").is_file() && !run.join("parts").exists());
    for (visit, rows) in &before {
        assert_eq!(whole.get(visit), Some(rows), "visit {visit} changed or vanished at the end");
    }

    // The plan, computed only from the spec: every block in its order, every cell once.
    let plan = Plan::new(&Experiment::parse(&spec(25), "kill.toml").expect("valid")).expect("plans");
    let planned = (0..25).flat_map(|block| plan.order(block).into_iter().map(move |cell| (block as i64, cell as i64)));
    let done = whole.values().map(|rows| (rows[0].0, rows[0].1));
    assert!(planned.eq(done), "the visits are not the plan's");
    for (visit, rows) in &whole {
        let steps: Vec<i64> = rows.iter().map(|row| row.2).collect();
        assert_eq!(steps, (0..rows.len() as i64).collect::<Vec<_>>(), "visit {visit} has steps doubled or missing");
        assert!(rows.len() >= 3);
    }
}

#[cfg(unix)]
#[test]
#[ignore = "slow"]
fn an_interrupted_run_is_sealed_and_continues() {
    let folder = Folder::with("kill.toml", &spec(40));
    let child = start(&folder, &["run", "kill.toml", "--out", "run"]);
    let run = folder.join("run");
    until("a hundred visits are stored", || parts(&run, "visit-") >= 100);
    // `timeout` sends its signal to the process and to the process's group.
    signal(&child, "-INT");
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    let output = child.wait_with_output().expect("it ends");
    let message = stderr(&output);
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.contains("--resume"), "{message}");
    let before = stored(&run);
    assert!(run.join("steps.parquet").is_file() && before.len() >= 100);

    ends(0, &folder, &["run", "kill.toml", "--out", "run", "--resume"]);
    let whole = stored(&run);
    assert_eq!(whole.len(), 40 * 40);
    assert!(before.iter().all(|(visit, rows)| whole.get(visit) == Some(rows)));
}

/// The time limit ends a run and has no other effect.
#[test]
#[ignore = "slow"]
fn a_run_that_ran_out_of_time_continues_with_more() {
    let measure = "smallest_jump = \"0.01%\"\nblocks = { max = 100000 }";
    let folder = Folder::with("t.toml", &planted("t", "\"1..=20\"", "noise = { visits = \"5%\" }", measure));
    let run = |more: &[&str]| {
        ends(1, &folder, &[&["run", "t.toml", "--out", "run"], more].concat());
        stored(&folder.join("run"))
    };
    let first = run(&["--time", "1s"]);
    let longer = run(&["--time", "2s", "--resume"]);
    assert!(longer.len() > first.len());
    assert!(first.iter().all(|(visit, rows)| longer.get(visit) == Some(rows)));
    let spec = read(&folder, "run/spec.toml");
    assert!(spec.contains("time_limit = \"2s\""), "{spec}");
    // Killed while it goes on, it has not finished, and the same command goes on again.
    let child = start(&folder, &["run", "t.toml", "--out", "run", "--time", "4s", "--resume"]);
    until("a visit is stored", || parts(&folder.join("run"), "visit-") > 0);
    kill(child);
    let status = stdout(&ends(0, &folder, &["status", "run"]));
    assert!(!status.contains("finished"), "{status}");
    let last = run(&["--time", "4s", "--resume"]);
    assert!(last.len() > longer.len() && longer.iter().all(|(visit, rows)| last.get(visit) == Some(rows)));
}

/// A scheduler may suspend a job for hours.
#[cfg(unix)]
#[test]
#[ignore = "slow"]
fn a_run_that_was_stopped_longer_than_its_watchdog_waits_continues_and_keeps_its_cell() {
    let folder = Folder::new();
    let spec = planted(
        "t",
        "[1, 2]",
        "hangs = [{ at = 2, for = \"300ms\" }]",
        "blocks = { min = 2, max = 2 }\nsteps_per_visit = 1\nvisit_limit = \"1.5s\"\norder = \"ascending\"",
    );
    write(&folder, "t.toml", &spec);
    let child = start(&folder, &["run", "t.toml", "--out", "run"]);
    let run = folder.join("run");
    until("a visit is stored", || parts(&run, "visit-") > 0);
    // The visit to 2 has begun. The watchdog's limit is twice 1.5 s.
    std::thread::sleep(Duration::from_millis(100));
    signal(&child, "-STOP");
    std::thread::sleep(Duration::from_millis(4000));
    signal(&child, "-CONT");
    let output = child.wait_with_output().expect("it ends");
    let message = stderr(&output);
    assert_ne!(output.status.code(), Some(2), "{message}");
    assert!(!message.contains("visit_limit"), "{message}");
    let cells: Vec<i64> = stored(&run).values().map(|rows| rows[0].1).collect();
    assert_eq!(cells, [0, 1, 0, 1]);
}
