//! `batchstep doctor --topology` on this machine, whatever its hardware.

use crate::support::{Folder, ends, parsed, run, stdout};

#[test]
fn the_topology_is_drawn_and_is_there_as_a_document() {
    let folder = Folder::new();
    let output = ends(0, &folder, &["doctor", "--topology"]);
    let text = stdout(&output);
    assert!(text.starts_with("PCI Express") && text.contains("NUMA nodes"), "{text}");
    let output = run(&folder, &["doctor", "--topology", "--format", "json"]);
    let document = parsed(&stdout(&output));
    assert_eq!(document["version"], 1);
    let complexes = document["topology"]["topology"]["complexes"].as_array().expect("a list");
    // Each line of the tree that names a root complex has an entry.
    assert_eq!(complexes.len(), text.matches("root complex pci").count());
}
