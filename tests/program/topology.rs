//! `batchstep doctor --topology` on this machine, whatever its hardware.

use serde_json::Value;

use crate::support::{run, stderr, stdout};

#[test]
fn the_topology_is_drawn_and_is_there_as_a_document() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = run(folder.path(), &["doctor", "--topology"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.starts_with("PCI Express") && text.contains("NUMA nodes"), "{text}");
    let output = run(folder.path(), &["doctor", "--topology", "--format", "json"]);
    let document: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
    assert_eq!(document["version"], 1);
    let complexes = document["topology"]["topology"]["complexes"].as_array().expect("a list");
    // Each line of the tree that names a root complex has an entry.
    assert_eq!(complexes.len(), text.matches("root complex pci").count());
}
