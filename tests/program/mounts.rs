//! Run directories on mounts that lack what a local disk has.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use batchstep::spec::Experiment;
use batchstep::spec::plan::Plan;

use crate::needs;
use crate::support::{Folder, batchstep, ends, exits, has, kill, numbers, parts, planted, start, stderr, until, write};

fn spec() -> String {
    planted(
        "far",
        "\"1..=20\"",
        "noise = { sd = \"1%\" }",
        "blocks = { min = 20, max = 20 }\nsteps_per_visit = 3\nseed = 5",
    )
}

/// For each visit, its block, its cell, and its number of rows.
fn visits(run: &Path) -> BTreeMap<i64, [i64; 3]> {
    let mut visits = BTreeMap::new();
    for row in numbers(run, ["visit", "block", "cell"]).expect("a table") {
        let [visit, block, cell] = row.map(|number| number as i64);
        let entry = visits.entry(visit).or_insert([block, cell, 0]);
        assert_eq!(entry[..2], [block, cell], "a visit has one cell");
        entry[2] += 1;
    }
    visits
}

/// Checks that every visit of the plan is there once.
fn assert_complete(run: &Path) {
    let plan = Plan::new(&Experiment::parse(&spec(), "far.toml").expect("valid")).expect("plans");
    let planned = (0..20).flat_map(|block| plan.order(block).into_iter().map(move |cell| [block as i64, cell as i64]));
    let visits = visits(run);
    assert!(planned.eq(visits.values().map(|visit| [visit[0], visit[1]])), "the visits are not the plan's");
    // Three counted steps, and those of the warm-up.
    assert!(visits.values().all(|visit| (3..10).contains(&visit[2])), "{visits:?}");
}

/// Starts a run into `out` and kills it when it has stored `visits` visits.
fn kill_after(visits: usize, folder: &Path, out: &str) {
    let mut child = start(folder, &["run", "far.toml", "--resume", "--out", out]);
    until("its visits are stored", || {
        assert!(child.try_wait().expect("a child").is_none(), "the run ended before it could be killed");
        parts(&folder.join(out), "visit-") >= visits
    });
    kill(child);
}

/// A folder mounted through FUSE, as object stores are: without hard links, with locks that hold only on this machine,
/// and with a file uploaded when it is closed. Unmounted when dropped.
struct Mount {
    server: Child,
    at: std::path::PathBuf,
}

impl Mount {
    /// `None`, and a skip that is recorded, where FUSE or rclone is missing.
    fn new(folder: &Path, options: &[&str]) -> Option<Self> {
        let (behind, at) = (folder.join("bucket"), folder.join("mount"));
        for path in [&behind, &at] {
            std::fs::create_dir_all(path).expect("a folder");
        }
        let mut command = Command::new("rclone");
        command.arg("mount").arg(format!(":local:{}", behind.display())).arg(&at).args(options);
        command.arg("--cache-dir").arg(folder.join("cache")).arg("--config").arg(folder.join("none"));
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let server = match command.spawn() {
            Ok(server) => server,
            Err(error) => {
                needs::missing("fuse", format!("rclone: {error}"));
                return None;
            }
        };
        let mut mount = Self { server, at };
        let device = |path: &Path| std::os::unix::fs::MetadataExt::dev(&std::fs::metadata(path).expect("a folder"));
        let begun = Instant::now();
        while device(&mount.at) == device(folder) {
            let ended = mount.server.try_wait().expect("a child").is_some();
            if ended || begun.elapsed() > Duration::from_secs(60) {
                needs::missing("fuse", "rclone cannot mount here (/dev/fuse, fusermount3, or the right to)");
                return None;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(mount)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let unmounted = Command::new("fusermount3").args(["-u", "-z"]).arg(&self.at).stderr(Stdio::null()).status();
        if !unmounted.is_ok_and(|status| status.success()) {
            let _ = self.server.kill();
        }
        let _ = self.server.wait();
    }
}

/// The options are those with which SkyPilot mounts a bucket in the mode MOUNT_CACHED, except for a shorter wait before
/// the upload.
#[test]
fn a_run_on_a_mounted_bucket_continues_after_kills_and_is_complete_in_the_bucket() {
    let folder = Folder::new();
    let cached =
        ["--vfs-cache-mode", "full", "--vfs-write-back", "100ms", "--transfers", "1", "--dir-cache-time", "10s"];
    let Some(mount) = Mount::new(&folder, &cached) else { return };
    write(&mount.at, "a", "text");
    assert!(std::fs::hard_link(mount.at.join("a"), mount.at.join("b")).is_err(), "this mount has hard links");
    write(&folder, "far.toml", &spec());
    for visits in [20, 60] {
        kill_after(visits, &folder, "mount/run");
    }
    ends(0, &folder, &["run", "far.toml", "--resume", "--out", "mount/run"]);
    assert_complete(&folder.join("mount/run"));
    // The content of the bucket once everything is uploaded.
    let bucket = folder.join("bucket/run");
    let same = |name: &str| {
        let read = |root: &Path| std::fs::read(root.join(name)).ok();
        read(&bucket) == read(&mount.at.join("run"))
    };
    let files = ["steps.parquet", "cells.parquet", "jumps.json", "environment.json", "spec.toml", "report.html"];
    until("the bucket holds the finished run", || {
        files.iter().all(|name| bucket.join(name).is_file() && same(name)) && !bucket.join("parts").exists()
    });
    assert_complete(&bucket);
}

/// A mount that writes each file straight through, without a cache.
#[test]
fn a_run_on_a_mount_without_a_cache_is_complete() {
    let folder = Folder::new();
    let Some(mount) = Mount::new(&folder, &["--vfs-cache-mode", "off"]) else { return };
    write(&folder, "far.toml", &spec());
    ends(0, &folder, &["run", "far.toml", "--out", "mount/run"]);
    drop(mount);
    assert_complete(&folder.join("bucket/run"));
}

/// Replaces the calls of the C library: `flock` and `link` are refused, as on a mount that has neither; `rename` too if
/// NO_RENAME is set.
const REFUSING: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
int flock(int file, int operation) { (void)file; (void)operation; errno = ENOLCK; return -1; }
int link(const char *from, const char *to) { (void)from; (void)to; errno = EPERM; return -1; }
int linkat(int a, const char *from, int b, const char *to, int flags) { (void)a; (void)from; (void)b; (void)to; (void)flags; errno = EPERM; return -1; }
int rename(const char *from, const char *to) {
    if (getenv("NO_RENAME")) { errno = ENOSYS; return -1; }
    int (*real)(const char *, const char *) = (int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
    return real(from, to);
}
"#;

#[test]
#[ignore = "slow"]
fn without_locks_and_hard_links_a_run_is_complete_and_without_renaming_it_says_so() {
    let folder = Folder::new();
    let library = folder.join("lib/librefusing.so");
    if !needs::shared_library(REFUSING, &library) {
        return;
    }
    write(&folder, "far.toml", &spec());
    let refusing = |out: &str| {
        let mut command = batchstep(&folder);
        command.args(["run", "far.toml", "--out", out]).env("LD_PRELOAD", &library);
        command
    };
    exits(0, &mut refusing("run"));
    assert_complete(&folder.join("run"));
    let message = stderr(&exits(2, refusing("other").env("NO_RENAME", "1")));
    has(&message, &["cannot rename", "--out", "local disk"]);
}
