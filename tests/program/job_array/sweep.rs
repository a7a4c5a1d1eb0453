//! A sweep as a job array, and the same sweep undisturbed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::JoinHandle;

use super::cluster::Cluster;
use crate::support::{numbers, succeeds};

/// A sweep of eight batch sizes whose steps have no noise, so that a row does not depend on when and by which process
/// it was measured.
#[derive(Clone, Copy)]
pub struct Sweep {
    pub shards: usize,
    /// Blocks of all shards together, each over all batch sizes.
    pub blocks: usize,
    /// The time of each step.
    pub step_ms: usize,
}

impl Sweep {
    fn spec(self) -> String {
        let Self { blocks, step_ms, .. } = self;
        let hangs: Vec<String> = (1..=8).map(|at| format!("{{ at = {at}, for = \"{step_ms}ms\" }}")).collect();
        format!(
            "version = 1\nname = \"array\"\n[sweep]\nbatch_size = \"1..=8\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
             machines = {{ sd = \"10%\", cells = \"1%\" }}\nhangs = [{}]\n\
             [measure]\nblocks = {{ min = {blocks}, max = {blocks} }}\nsteps_per_visit = 2\n",
            hangs.join(", ")
        )
    }

    /// The counted steps of all shards, measured one after the other without a cluster, and without the steps' real
    /// time. The shards of a cluster sleep most of the time, so this is done meanwhile.
    pub fn undisturbed(self, folder: &Path) -> JoinHandle<Steps> {
        let folder = folder.to_path_buf();
        std::thread::spawn(move || {
            std::fs::write(folder.join("quiet.toml"), Self { step_ms: 0, ..self }.spec()).expect("writable");
            let quiet: Vec<String> = (1..=self.shards).map(|number| format!("quiet-{number}")).collect();
            for (number, out) in quiet.iter().enumerate() {
                let shard = format!("{}/{}", number + 1, self.shards);
                succeeds(&folder, &["run", "quiet.toml", "--shard", &shard, "--out", out]);
            }
            merged(&folder, "undisturbed", &quiet)
        })
    }
}

/// Every counted step: the times by block and cell, in the order of their visits.
pub type Steps = BTreeMap<(u64, u64), Vec<u64>>;

/// The array that was submitted.
pub struct Array {
    pub job: String,
    pub sweep: Sweep,
    folder: PathBuf,
    pub shards: PathBuf,
}

impl Array {
    pub fn submit(cluster: &Cluster, folder: &Path, sweep: Sweep) -> Self {
        std::fs::write(folder.join("array.toml"), sweep.spec()).expect("writable");
        let nodes = sweep.shards.to_string();
        let submit =
            ["submit", "--slurm", "array.toml", "--nodes", &nodes, "--out", "shards", "--", "--cpus-per-task=1"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_batchstep"));
        let submitted =
            command.current_dir(folder).env("SLURM_CONF", &cluster.conf).args(submit).output().expect("starts");
        let said = String::from_utf8_lossy(&submitted.stdout).into_owned();
        assert!(submitted.status.success(), "{}", String::from_utf8_lossy(&submitted.stderr));
        let job = said.lines().next().and_then(|line| line.split(' ').next_back()).expect("a number").to_owned();
        Self { job, sweep, folder: folder.to_path_buf(), shards: folder.join("shards") }
    }

    /// The folder of one shard, from 1.
    pub fn shard(&self, number: usize) -> PathBuf {
        self.shards.join(format!("shard-{number}-of-{}", self.sweep.shards))
    }

    fn folders(&self) -> Vec<String> {
        (1..=self.sweep.shards).map(|number| self.shard(number).display().to_string()).collect()
    }

    /// For each shard its state and its visits.
    pub fn status(&self) -> Vec<(String, u64)> {
        let folders = self.folders();
        let mut arguments = vec!["status", "--format", "json"];
        arguments.extend(folders.iter().map(String::as_str));
        let said = succeeds(&self.folder, &arguments).stdout;
        let document: serde_json::Value = serde_json::from_slice(&said).expect("JSON");
        let one = |run: &serde_json::Value| {
            (run["state"].as_str().expect("a state").to_owned(), run["visits"].as_u64().expect("a number"))
        };
        document["runs"].as_array().expect("runs").iter().map(one).collect()
    }

    pub fn has_finished(&self) -> bool {
        self.status().iter().all(|(state, _)| state == "finished")
    }

    /// The output of a task so far.
    pub fn log(&self, number: usize) -> String {
        std::fs::read_to_string(self.shards.join(format!("shard-{number}.log"))).unwrap_or_default()
    }

    /// The number of the process that now runs a shard, from the lock of its folder, if the process is alive.
    pub fn process(&self, number: usize) -> Option<String> {
        let shard = self.shard(number);
        let pid = std::fs::read_to_string(shard.join(".lock")).ok()?.trim().to_owned();
        let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        String::from_utf8_lossy(&command).contains(&*shard.to_string_lossy()).then_some(pid)
    }

    /// The counted steps of all shards.
    pub fn merged(&self) -> Steps {
        merged(&self.folder, "merged", &self.folders())
    }
}

fn merged(folder: &Path, out: &str, runs: &[String]) -> Steps {
    let mut arguments = vec!["merge", out, "--no-analysis"];
    arguments.extend(runs.iter().map(String::as_str));
    assert_eq!(succeeds(folder, &arguments).status.code(), Some(0));
    counted(&folder.join(out))
}

fn counted(run: &Path) -> Steps {
    let mut steps = Steps::new();
    for [block, cell, warmup, time] in numbers(run, ["block", "cell", "warmup", "step_time_s"]).expect("read") {
        if warmup == 0.0 {
            steps.entry((block as u64, cell as u64)).or_default().push(time.to_bits());
        }
    }
    steps
}
