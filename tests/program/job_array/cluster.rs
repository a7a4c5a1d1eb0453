//! A real Slurm cluster of two nodes on this machine.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use crate::needs;

/// The cluster, which ends with the test.
pub struct Cluster {
    pub folder: PathBuf,
    pub conf: PathBuf,
}

impl Drop for Cluster {
    fn drop(&mut self) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/job_array/down.sh");
        let ended = Command::new("bash").arg(script).arg(&self.folder).status();
        if !std::thread::panicking() {
            assert!(ended.expect("a shell").success(), "the cluster does not end");
        }
    }
}

impl Cluster {
    /// Starts two nodes with `processors` processors each; `None`, and a recorded skip, if this machine cannot run
    /// them.
    pub fn up(folder: &Path, processors: usize) -> Option<Self> {
        let folder = folder.join("cluster");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/program/job_array/up.sh");
        let mut up = Command::new("bash");
        let up = up.arg(script).arg(&folder).args(["2", &processors.to_string()]).output().expect("a shell");
        let said = String::from_utf8_lossy(&up.stderr).into_owned();
        if up.status.code() == Some(77) {
            needs::missing("slurm", said);
            return None;
        }
        let cluster = Self { conf: folder.join("slurm.conf"), folder };
        assert!(up.status.success(), "{said}");
        Some(cluster)
    }

    pub fn command(&self, program: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.env("SLURM_CONF", &self.conf).args(arguments).output().expect("it starts")
    }
}

/// Waits until `is_so` holds.
pub fn until(what: &str, seconds: u64, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(seconds), "not within {seconds} s: {what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}
