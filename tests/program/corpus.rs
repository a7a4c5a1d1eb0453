//! The corpus of the fuzz targets, and small changes of it, through every reader of files that a stranger may have
//! written: none panics, and none takes unbounded memory. BATCHSTEP_MUTATIONS sets how many changes of each file are
//! tried.

#[path = "../../fuzz/readers.rs"]
mod readers;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use batchstep::random::Rng;

fn corpus(kind: &str) -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(kind);
    let mut files: Vec<_> = folder.read_dir().expect("a corpus").map(|entry| entry.expect("an entry").path()).collect();
    files.sort();
    files.into_iter().map(|path| (path.display().to_string(), std::fs::read(&path).expect("readable"))).collect()
}

/// Flips, cuts, doubles, or joins with another file of the corpus.
fn changed(bytes: &[u8], other: &[u8], random: &mut Rng) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len() + 1);
        match random.below(5) {
            0 => bytes.truncate(at),
            1 if at < bytes.len() => bytes[at] = random.bits() as u8,
            2 if at < bytes.len() => bytes[at] ^= 1 << random.below(8),
            3 => drop(bytes.splice(at..at, other[random.below(other.len() + 1)..].iter().copied().take(40))),
            _ => bytes.extend_from_within(at..(at + random.below(60)).min(bytes.len())),
        }
    }
    bytes
}

fn replay(kind: &str, mutations: usize, read: impl Fn(&[u8])) {
    let mutations = std::env::var("BATCHSTEP_MUTATIONS").ok().and_then(|n| n.parse().ok()).unwrap_or(mutations);
    let files = corpus(kind);
    assert!(!files.is_empty(), "the corpus of {kind} is empty");
    let mut random = Rng::new(17);
    for (name, bytes) in &files {
        read(bytes);
        for change in 0..mutations {
            let bytes = changed(bytes, &files[random.below(files.len())].1, &mut random);
            if catch_unwind(AssertUnwindSafe(|| read(&bytes))).is_err() {
                let kept = std::env::temp_dir().join(format!("batchstep-crash-{kind}"));
                std::fs::write(&kept, &bytes).expect("writable");
                panic!("change {change} of {name} panics; it is kept as {}", kept.display());
            }
        }
    }
}

#[test]
fn specs_are_read_or_refused() {
    replay("spec", 400, readers::spec);
}

#[test]
#[ignore = "slow"]
fn csv_files_are_read_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    replay("csv", 200, |bytes| readers::csv(bytes, folder.path()));
}

#[test]
#[ignore = "slow"]
fn parquet_files_are_read_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    replay("parquet", 300, |bytes| readers::parquet(bytes, folder.path()));
}

#[test]
#[ignore = "slow"]
fn json_documents_are_read_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    replay("json", 300, |bytes| readers::json(bytes, folder.path()));
}

/// A spec must not name files or ask for more memory than a machine has.
#[test]
fn a_spec_names_no_paths_and_no_memory_without_bound() {
    let refusal = |name: &str, body: &str| {
        let text = format!("version = 1\nname = {name:?}\n{body}");
        batchstep::spec::Experiment::parse(&text, "s.toml").expect_err(&text).to_string()
    };
    let model = "[model]\nname = \"vgg16\"\n";
    for name in ["../elsewhere", "/etc/passwd", "a/b", "..", ".hidden", "a\\b", "", "c:", "nul\0"] {
        assert!(refusal(name, model).contains("run directory") || name.contains('\0'), "{name:?}");
    }
    let huge = refusal("a", &format!("{model}[sweep]\nbatch_size = \"1..=4000000000\"\n"));
    assert!(huge.contains("s.toml:6: sweep.batch_size") && huge.contains("more than 100000"), "{huge}");
    let product = "[model]\nname = [\"vgg16\", \"vgg19\"]\n[sweep]\nbatch_size = \"1..=90000\"\n";
    assert!(refusal("a", product).contains("180000 cells"));
    assert!(refusal("a", &format!("{model}[engine]\nthreads = 1000000000\n")).contains("4096"));
}
