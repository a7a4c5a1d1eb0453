//! A sweep as a job array on a real Slurm of two nodes: cancelled, queued again, killed, and with a node that is lost in the middle.
//! Nothing is lost and nothing counts twice.

#[path = "../needs/mod.rs"]
mod needs;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use batchstep::store::Table;

const SHARDS: usize = 4;

/// Steps without noise, so that a row does not depend on when, and by which process, it was measured. Each takes `hang`.
fn spec(hang: &str) -> String {
    let hangs: Vec<String> = (1..=8).map(|at| format!("{{ at = {at}, for = \"{hang}\" }}")).collect();
    format!(
        "version = 1\nname = \"array\"\n[sweep]\nbatch_size = \"1..=8\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
         machines = {{ sd = \"10%\", cells = \"1%\" }}\nhangs = [{}]\n\
         [measure]\nblocks = {{ min = 160, max = 160 }}\nsteps_per_visit = 2\n",
        hangs.join(", ")
    )
}

/// The cluster, which ends with the test.
struct Cluster {
    folder: PathBuf,
    conf: PathBuf,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/down.sh");
        let ended = Command::new("bash").arg(script).arg(&self.folder).status();
        if !std::thread::panicking() {
            assert!(ended.expect("a shell").success(), "the cluster does not end");
        }
    }
}

impl Cluster {
    /// `None` where there can be none here, which is recorded.
    fn up(folder: &Path) -> Option<Self> {
        let folder = folder.join("cluster");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/slurm/up.sh");
        let up = Command::new("bash").arg(script).arg(&folder).args(["2", "3"]).output().expect("a shell");
        let said = String::from_utf8_lossy(&up.stderr).into_owned();
        if up.status.code() == Some(77) {
            needs::missing("slurm", said);
            return None;
        }
        let cluster = Self { conf: folder.join("slurm.conf"), folder };
        assert!(up.status.success(), "{said}");
        Some(cluster)
    }

    fn command(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", &self.conf).args(arguments).output().expect("it starts")
    }

    /// The number of the process that runs shard `number` now, as the lock of its folder says.
    fn process(&self, shards: &Path, number: usize) -> Option<String> {
        let text = std::fs::read_to_string(shards.join(format!("shard-{number}-of-{SHARDS}/.lock"))).ok()?;
        Some(text.trim().to_owned()).filter(|pid| !pid.is_empty())
    }
}

fn batchstep(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_batchstep"));
    let output = command.current_dir(folder).args(arguments).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {said}");
    output
}

/// For each shard its state and its visits.
fn status(folder: &Path, shards: &Path) -> Vec<(String, u64)> {
    let paths: Vec<String> =
        (1..=SHARDS).map(|n| shards.join(format!("shard-{n}-of-{SHARDS}")).display().to_string()).collect();
    let mut arguments = vec!["status", "--format", "json"];
    arguments.extend(paths.iter().map(String::as_str));
    let document: serde_json::Value = serde_json::from_slice(&batchstep(folder, &arguments).stdout).expect("JSON");
    let one = |run: &serde_json::Value| {
        (run["state"].as_str().expect("a state").to_owned(), run["visits"].as_u64().expect("a number"))
    };
    document["runs"].as_array().expect("runs").iter().map(one).collect()
}

/// Waits until it is so.
fn until(what: &str, seconds: u64, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(seconds), "not within {seconds} s: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Every step that counts: by block and cell the times, in the order of their visit.
fn counted(run: &Path) -> BTreeMap<(u64, u64), Vec<u64>> {
    let table = Table::read(run, &["block", "cell", "warmup", "step_time_s"]).expect("read");
    let column = |name: &str| table.numbers(name).expect("numbers");
    let (block, cell, warmup, time) = (column("block"), column("cell"), column("warmup"), column("step_time_s"));
    let mut steps: BTreeMap<(u64, u64), Vec<u64>> = BTreeMap::new();
    for row in (0..table.rows()).filter(|&row| warmup[row] == 0.0) {
        steps.entry((block[row] as u64, cell[row] as u64)).or_default().push(time[row].to_bits());
    }
    steps
}

#[test]
fn shards_survive_what_a_cluster_does_to_them() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let Some(cluster) = Cluster::up(folder) else { return };
    std::fs::write(folder.join("array.toml"), spec("50ms")).expect("writable");
    let submit = ["submit", "--slurm", "array.toml", "--nodes", "4", "--out", "shards", "--", "--cpus-per-task=1"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_batchstep"));
    let submitted = command.current_dir(folder).env("SLURM_CONF", &cluster.conf).args(submit).output().expect("starts");
    let said = String::from_utf8_lossy(&submitted.stdout).into_owned();
    assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
    let job = said.lines().next().and_then(|line| line.split(' ').next_back()).expect("a number").to_owned();
    let shards = folder.join("shards");
    let visits = |number: usize| status(folder, &shards)[number - 1].1;
    until("every shard has begun", 60, || (1..=SHARDS).all(|number| visits(number) >= 5));

    // Shard 1 is queued again by the scheduler, 2 is cancelled, 3 is killed.
    let requeued = cluster.command("scontrol", &["requeue", &format!("{job}_1")]);
    assert!(requeued.status.success(), "{}", String::from_utf8_lossy(&requeued.stderr));
    assert!(cluster.command("scancel", &[&format!("{job}_2")]).status.success());
    let pid = cluster.process(&shards, 3).expect("a process");
    signal(&pid, "KILL");
    until("the cancelled shard is sealed", 20, || status(folder, &shards)[1].0 == "stopped");

    // The daemon of shard 4's node dies. The shard's process lives on, paused so that it is not done before its task runs a second time on
    // the other node, which takes Slurm some seconds.
    let node = if log(&shards, 4).contains("on n2") { "n2" } else { "n1" };
    let orphan = cluster.process(&shards, 4).expect("a process");
    signal(&orphan, "STOP");
    let slurmd = std::fs::read_to_string(folder.join("cluster/pid").join(node)).expect("a process");
    signal(slurmd.trim(), "KILL");
    // Slurm would see it after some ten seconds.
    let lost = ["update", &format!("NodeName={node}"), "State=DOWN", "Reason=lost"];
    assert!(cluster.command("scontrol", &lost).status.success());

    // The cancelled one goes on when somebody submits it again.
    let script = shards.join("array.sbatch").display().to_string();
    assert!(cluster.command("sbatch", &["--array=2", "--cpus-per-task=1", &script]).status.success());
    // The second claim to the run is made; the first process wakes up and has to see it.
    let claim = shards.join(format!("shard-4-of-{SHARDS}/.claim-2"));
    until("shard 4 runs a second time", 60, || claim.exists());
    signal(&orphan, "CONT");
    until("all shards have finished", 150, || status(folder, &shards).iter().all(|(state, _)| state == "finished"));
    until("the first process has seen that its run was taken over", 20, || {
        log(&shards, 4).contains("another process has taken this run over")
    });

    let paths: Vec<String> = (1..=SHARDS).map(|number| format!("shards/shard-{number}-of-{SHARDS}")).collect();
    let merge = |out: &str, paths: &[String]| {
        let mut arguments = vec!["merge", out, "--no-analysis"];
        arguments.extend(paths.iter().map(String::as_str));
        batchstep(folder, &arguments)
    };
    assert_eq!(merge("merged", &paths).status.code(), Some(0));
    let merged = counted(&folder.join("merged"));

    // The same shards without a cluster.
    std::fs::write(folder.join("quiet.toml"), spec("0ms")).expect("writable");
    let quiet: Vec<String> = (1..=SHARDS).map(|number| format!("quiet-{number}")).collect();
    for (number, out) in quiet.iter().enumerate() {
        batchstep(folder, &["run", "quiet.toml", "--shard", &format!("{}/{SHARDS}", number + 1), "--out", out]);
    }
    merge("undisturbed", &quiet);
    assert_eq!(merged.len(), 160 * 8);
    assert!(merged == counted(&folder.join("undisturbed")), "the disturbed shards hold other rows");
}

fn signal(pid: &str, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), pid]).status().expect("kill runs");
    assert!(sent.success(), "no process {pid}");
}

/// What a task has written so far.
fn log(shards: &Path, number: usize) -> String {
    std::fs::read_to_string(shards.join(format!("shard-{number}.log"))).unwrap_or_default()
}
