//! Failing reads: a disk, a mount, or a process without file descriptors. Measurements are kept, and the program says
//! what failed.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use batchstep::store::{StepRow, visits_of};

use crate::needs;
use crate::support::{Folder, batchstep, planted, stderr, write};

fn spec() -> String {
    planted(
        "reads",
        "\"1..=4\"",
        "noise = { sd = \"1%\" }",
        "blocks = { min = 4, max = 4 }\nsteps_per_visit = 2\nseed = 5",
    )
}

/// Four blocks of four cells.
const VISITS: usize = 16;

/// Counts the calls that look at paths with FAIL_AT in them, in the file FAIL_COUNT; from the FAIL_FROM-th on, FAIL_TIMES of them fail
/// with the error FAIL_WITH, or kill the process where that is 0.
const FAILING: &str = r#"
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
static long calls;
static long number(const char *name) { const char *text = getenv(name); return text ? atol(text) : 0; }
static int fails(const char *kind, const char *path) {
    const char *at = getenv("FAIL_AT"), *kinds = getenv("FAIL_KINDS"), *count = getenv("FAIL_COUNT");
    if (!at || !path || !strstr(path, at) || !strstr(kinds ? kinds : "look", kind)) return 0;
    long call = __sync_add_and_fetch(&calls, 1), from = number("FAIL_FROM");
    if (count) {
        int file = syscall(SYS_openat, AT_FDCWD, count, O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (file >= 0) { syscall(SYS_write, file, ".", 1); syscall(SYS_close, file); }
    }
    if (from == 0 || call < from || call >= from + number("FAIL_TIMES")) return 0;
    if (number("FAIL_WITH") == 0) { syscall(SYS_kill, getpid(), SIGKILL); pause(); }
    errno = number("FAIL_WITH");
    return 1;
}
static const char *path_of(int file, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, 4095);
    if (length < 0) return 0;
    path[length] = 0;
    return path;
}
#define REAL(type, name) static type; if (!real) real = (__typeof__(real))dlsym(RTLD_NEXT, name)
int open64(const char *path, int flags, ...) {
    va_list rest; va_start(rest, flags); int mode = va_arg(rest, int); va_end(rest);
    REAL(int (*real)(const char *, int, ...), "open64");
    return fails("look", path) ? -1 : real(path, flags, mode);
}
DIR *opendir(const char *path) {
    REAL(DIR *(*real)(const char *), "opendir");
    return fails("look", path) ? 0 : real(path);
}
struct dirent64 *readdir64(DIR *folder) {
    char path[4096];
    REAL(struct dirent64 *(*real)(DIR *), "readdir64");
    return fails("look", path_of(dirfd(folder), path)) ? 0 : real(folder);
}
ssize_t read(int file, void *bytes, size_t size) {
    char path[4096];
    REAL(ssize_t (*real)(int, void *, size_t), "read");
    return fails("look", path_of(file, path)) ? -1 : real(file, bytes, size);
}
int statx(int folder, const char *restrict path, int flags, unsigned mask, struct statx *restrict facts) {
    REAL(int (*real)(int, const char *, int, unsigned, struct statx *), "statx");
    return fails("look", path) ? -1 : real(folder, path, flags, mask, facts);
}
int rename(const char *from, const char *to) {
    REAL(int (*real)(const char *, const char *), "rename");
    return fails("rename", to) ? -1 : real(from, to);
}
"#;

/// A folder with the spec and the library above.
struct Walk {
    folder: Folder,
    library: PathBuf,
}

/// The calls that fail: from which one on, how many, and with which error.
#[derive(Clone, Copy, Debug)]
struct Fault {
    from: usize,
    times: usize,
    error: i32,
}

const NONE: Fault = Fault { from: 0, times: 0, error: 0 };

impl Walk {
    /// `None`, and a skip that is recorded, where there is no C compiler.
    fn new() -> Option<Self> {
        let folder = Folder::new();
        let library = folder.join("lib/libfailing.so");
        write(&folder, "reads.toml", &spec());
        needs::shared_library(FAILING, &library).then_some(Self { folder, library })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// The program, with a fault in calls of this kind at `at`.
    fn command(&self, arguments: &[&str], at: &str, kind: &str, fault: Fault) -> Command {
        let mut command = batchstep(&self.folder);
        command.args(arguments).env("LD_PRELOAD", &self.library).env("FAIL_AT", at).env("FAIL_KINDS", kind);
        command.env("FAIL_FROM", fault.from.to_string()).env("FAIL_TIMES", fault.times.to_string());
        command.env("FAIL_WITH", fault.error.to_string()).env("FAIL_COUNT", self.path("count"));
        command
    }

    /// Calls `each` with some faults that are spread over all calls of `arguments` at `at`; `before` makes the folders
    /// anew.
    fn over(&self, arguments: &[&str], at: &str, before: &dyn Fn(), each: &dyn Fn(Fault, Output)) {
        let run = |fault: Fault| {
            before();
            self.command(arguments, at, "look", fault).output().expect("the program starts")
        };
        let _ = std::fs::remove_file(self.path("count"));
        let output = run(NONE);
        assert!(output.status.success(), "{}", stderr(&output));
        let calls = std::fs::metadata(self.path("count")).expect("calls were counted").len() as usize;
        assert!(calls > POINTS, "{calls} calls");
        for point in 0..POINTS {
            // In turns: one failing call (EIO), and failing calls from there on (EMFILE).
            let (times, error) = [(1, libc::EIO), (calls, libc::EMFILE)][point % 2];
            let fault = Fault { from: 1 + point * calls / POINTS, times, error };
            each(fault, run(fault));
        }
    }
}

/// The number of a command's calls that are tried.
const POINTS: usize = 14;

/// The visits in a run's folder, read without the program.
fn stored(run: &Path) -> BTreeSet<i64> {
    let (mut visits, mut notices) = (BTreeSet::new(), Vec::new());
    visits_of(run, &mut notices, &mut |rows: Vec<StepRow>| {
        visits.extend(rows.iter().map(|row| row.visit));
        Ok(())
    })
    .expect("readable");
    assert_eq!(notices, [] as [&str; 0]);
    visits
}

/// Checks that a failed command says what failed, and that a successful one has everything.
fn assert_nothing_lost(run: &Path, before: &BTreeSet<i64>, fault: Fault, output: &Output) {
    let message = stderr(output);
    let visits = stored(run);
    assert!(visits.is_superset(before), "{fault:?} lost {:?}\n{message}", before.difference(&visits));
    assert!(visits.iter().copied().eq(0..visits.len() as i64), "{fault:?} left a gap: {visits:?}\n{message}");
    match output.status.code() {
        Some(0 | 1) if message.is_empty() => assert_eq!(visits.len(), VISITS, "{fault:?}"),
        Some(0..=2) => assert!(!message.contains("panicked") && !message.is_empty(), "{fault:?}: {message}"),
        other => panic!("{fault:?} ended the program with {other:?}: {message}"),
    }
}

#[test]
#[ignore = "slow"]
fn a_run_loses_nothing_to_reading_that_fails() {
    let Some(walk) = Walk::new() else { return };
    let run = walk.path("fresh");
    let anew = || drop(std::fs::remove_dir_all(&run));
    walk.over(&["run", "reads.toml", "--out", "fresh"], "fresh", &anew, &|fault, output| {
        assert_nothing_lost(&run, &BTreeSet::new(), fault, &output);
    });
}

#[test]
#[ignore = "slow"]
fn a_resumed_run_loses_nothing_to_reading_that_fails() {
    let Some(walk) = Walk::new() else { return };
    let (kept, run) = (walk.path("kept"), walk.path("resumed"));
    // Killed twice, so that there are parts of two processes.
    let kill = || {
        let fault = Fault { from: 6, times: 1, error: 0 };
        let arguments = ["run", "reads.toml", "--out", "kept", "--resume"];
        let ended =
            walk.command(&arguments, "kept/parts/visit-", "rename", fault).status().expect("the program starts");
        assert_eq!(ended.code(), None, "it was not killed");
    };
    kill();
    assert_eq!(stored(&kept).len(), 5);
    kill();
    let before = stored(&kept);
    assert!(!before.is_empty() && before.len() < VISITS, "{before:?}");
    let anew = || {
        let _ = std::fs::remove_dir_all(&run);
        copy(&kept, &run);
    };
    walk.over(&["run", "reads.toml", "--out", "resumed", "--resume"], "resumed", &anew, &|fault, output| {
        assert_nothing_lost(&run, &before, fault, &output);
    });
}

#[test]
#[ignore = "slow"]
fn a_merge_loses_nothing_to_reading_that_fails() {
    let Some(walk) = Walk::new() else { return };
    let runs = walk.path("runs");
    let shards = ["1/2", "2/2"].map(|shard| format!("runs/{}", shard.replace('/', "-")));
    for (shard, out) in ["1/2", "2/2"].iter().zip(&shards) {
        let arguments = ["run", "reads.toml", "--shard", shard, "--out", out];
        let output = batchstep(&walk.folder).args(arguments).output().expect("the program starts");
        assert!(output.status.code() < Some(2), "{}", stderr(&output));
    }
    let sources: Vec<BTreeSet<i64>> = shards.iter().map(|shard| stored(&walk.path(shard))).collect();
    let whole = sources.iter().map(BTreeSet::len).sum::<usize>();
    assert_eq!(whole, VISITS);
    let arguments = ["merge", "runs/all", &shards[0], &shards[1], "--no-analysis"];
    walk.over(&arguments, "runs/", &|| (), &|fault, output| {
        // There is an earlier merge from the first try; it stays complete, or is replaced completely.
        let message = stderr(&output);
        assert_eq!(stored(&runs.join("all")).len(), VISITS, "{fault:?}: {message}");
        for (shard, visits) in shards.iter().zip(&sources) {
            assert_eq!(stored(&walk.path(shard)), *visits, "{fault:?}: {message}");
        }
        assert!(output.status.code() < Some(3) && !message.contains("panicked"), "{fault:?}: {message}");
    });
}

/// Copies a folder with everything below it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in from.read_dir().expect("readable") {
        let entry = entry.expect("an entry");
        match entry.file_type().expect("a type").is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied")),
        }
    }
}
