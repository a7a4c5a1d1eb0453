//! Compares the reference with PyTorch, operator by operator; `engine/cpu/tests/pytorch.rs` does so for whole networks.

mod differences;
mod operators;

/// A line that uses another engine's code would compare that engine with itself.
#[test]
fn the_reference_uses_no_other_engine() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/reference");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_file());
    let mut count = 0;
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let wrong = ["cpu", "cudnn", "candle", "torch"].iter().find(|name| text.contains(&format!("{name}::")));
        assert_eq!(wrong, None, "{}", path.display());
        count += 1;
    }
    assert!(count >= 10, "{count} files");
}
