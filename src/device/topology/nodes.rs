//! NUMA nodes and their processors.

use serde::Serialize;

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
        Some(NumaNode { number, cpus: numbers(&root.text(path.join("cpulist"))?) })
    };
    let mut nodes: Vec<NumaNode> = root.entries("/sys/devices/system/node").iter().filter_map(node).collect();
    nodes.sort_by_key(|node| node.number);
    nodes
}

/// The numbers of a list as the kernel writes it; other text is left out.
///
/// ```
/// use batchstep::device::topology::numbers;
/// assert_eq!(numbers("0-2,8\n"), [0, 1, 2, 8]);
/// ```
pub fn numbers(list: &str) -> Vec<usize> {
    let piece = |piece: &str| -> Option<std::ops::RangeInclusive<usize>> {
        let (low, high) = piece.split_once('-').unwrap_or((piece, piece));
        let (low, high): (usize, usize) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
        // The list has processors: a larger number would mean a damaged file.
        (high < 1 << 20).then_some(low..=high)
    };
    list.trim().split(',').filter_map(piece).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_processors_are_read_as_the_kernel_writes_them() {
        assert_eq!(numbers("0-3,16-17"), [0, 1, 2, 3, 16, 17]);
        assert_eq!((numbers("5"), numbers(""), numbers("x,0-18446744073709551615")), (vec![5], vec![], vec![]));
    }
}
