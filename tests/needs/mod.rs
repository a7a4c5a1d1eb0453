//! What tests need beyond Rust: a library, a compiler, a GPU. A test that lacks one calls [`missing`] and returns. The
//! skip is recorded with its reason, and `tests/z_skipped.rs`, the last test target of a run, prints the list. If
//! `BATCHSTEP_REQUIRE=nvrtc,cxx` names the missing part, the test fails instead.

// Not every test target builds libraries or measures.
#[allow(dead_code)]
mod quiet;
#[allow(dead_code)]
mod shared_library;

use std::fmt::Display;
use std::io::Write;
use std::path::PathBuf;

#[allow(unused_imports)]
pub use quiet::{Failure, quiet};
#[allow(unused_imports)]
pub use shared_library::shared_library;

/// The words of `BATCHSTEP_REQUIRE`.
pub const WORDS: &[&str] = &[
    "nvrtc",
    "cxx",
    "torch",
    "torchvision",
    "transformers",
    "jax",
    "keras",
    "onnx",
    "sklearn",
    "cc",
    "cudnn",
    "cudnn-graph",
    "cudnn-plans",
    "cublaslt",
    "gpu",
    "driver",
    "python",
    "published",
    "mount",
    "nobody",
    "quiet",
    "perf",
    "hyperfine",
    "chromium",
    "skypilot",
    "fuse",
    "slurm",
];

/// Records that the calling test is skipped.
///
/// # Panics
/// Where `BATCHSTEP_REQUIRE` names `need`, or a word that is not in [`WORDS`].
pub fn missing(need: &str, why: impl Display) {
    let required = required().unwrap_or_else(|error| panic!("{error}"));
    assert!(!required.iter().any(|word| word == need), "BATCHSTEP_REQUIRE names `{need}`: {why}");
    assert!(WORDS.contains(&need), "`{need}` is not in the list of needs");
    let thread = std::thread::current();
    let why = why.to_string().lines().next().unwrap_or_default().replace('\t', " ");
    // One write for each line, which the system does not split, because tests run at the same time.
    let line = format!("{need}\t{why}\t{}\n", thread.name().unwrap_or("a test"));
    let path = record_of(std::os::unix::process::parent_id());
    std::fs::create_dir_all(path.with_file_name("")).expect("a folder");
    let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).expect("writable");
    file.write_all(line.as_bytes()).expect("writable");
}

/// The words that must not be missing.
///
/// # Errors
/// Names a word that is not in [`WORDS`].
pub fn required() -> Result<Vec<String>, String> {
    let text = std::env::var("BATCHSTEP_REQUIRE").unwrap_or_default();
    let words: Vec<String> =
        text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect();
    match words.iter().find(|word| !WORDS.contains(&word.as_str())) {
        Some(unknown) => Err(format!("BATCHSTEP_REQUIRE: `{unknown}` is none of {}", WORDS.join(", "))),
        None => Ok(words),
    }
}

/// A folder on the disk of the build, also where the system's folder for temporary files is in memory.
#[allow(dead_code)]
pub fn on_disk() -> tempfile::TempDir {
    tempfile::tempdir_in(built()).expect("a folder")
}

/// `target/debug` above `target/debug/deps`.
fn built() -> PathBuf {
    let program = std::env::current_exe().expect("a path");
    program.ancestors().nth(2).expect("target/debug above target/debug/deps").to_owned()
}

/// The skips of the test processes that process `runner` started. `cargo test` starts them all, so its process number
/// and start time distinguish one test run from another.
pub fn record_of(runner: u32) -> PathBuf {
    let stat = std::fs::read_to_string(format!("/proc/{runner}/stat")).unwrap_or_default();
    // After the name, which is in brackets, the start is the 20th field; proc_pid_stat(5).
    let start = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19)).unwrap_or("0");
    built().join("skipped").join(format!("{runner}-{start}"))
}
