//! NUMA nodes and their processors.

use serde::Serialize;

use crate::device::cgroup::list;
use crate::device::root::{FilesystemRoot, name_of};

/// Memory, and the processors next to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NumaNode {
    pub number: u32,
    /// Logical processors, ascending.
    pub cpus: Vec<usize>,
}

pub(super) fn read(root: &FilesystemRoot) -> Vec<NumaNode> {
    let node = |path: &std::path::PathBuf| {
        let number = name_of(path).strip_prefix("node")?.parse().ok()?;
        Some(NumaNode { number, cpus: list(&root.text(path.join("cpulist"))?) })
    };
    let mut nodes: Vec<NumaNode> = root.entries("/sys/devices/system/node").iter().filter_map(node).collect();
    nodes.sort_by_key(|node| node.number);
    nodes
}
