//! The path between two GPUs.

use serde::Serialize;

use super::{PciNode, Role, Topology};
use crate::device::nvml;
use crate::device::sysfs;

/// The nearest common ancestor of two GPUs, ordered by distance, with the levels of `nvidia-smi topo -m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ancestor {
    /// The same card.
    Card,
    /// The same PCIe switch.
    Switch,
    /// Several PCIe switches, without a root complex.
    Switches,
    /// A root complex.
    RootComplex,
    /// Several root complexes of one NUMA node.
    Node,
    /// Nothing nearer than the link between the sockets.
    System,
}

impl Ancestor {
    /// The name for people, with the abbreviation of `nvidia-smi topo -m`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Card => "one card",
            Self::Switch => "one PCIe switch (PIX)",
            Self::Switches => "PCIe switches (PXB)",
            Self::RootComplex => "a root complex (PHB)",
            Self::Node => "root complexes of one NUMA node (NODE)",
            Self::System => "the link between the sockets (SYS)",
        }
    }
}

/// Two GPUs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuPair {
    pub first: String,
    pub second: String,
    /// According to the tree.
    pub by_tree: Ancestor,
    /// According to NVML; `None` if it does not answer.
    pub by_nvml: Option<Ancestor>,
}

/// Every pair of NVIDIA's GPUs; `live` also asks NVML.
pub fn pairs(topology: &Topology, live: bool) -> Vec<GpuPair> {
    pairs_by(topology, &|first, second| live.then(|| nvml::common_ancestor(first, second)).flatten())
}

/// [`pairs`], where `ask` gives NVML's common ancestor of the GPUs at two addresses.
pub(crate) fn pairs_by(topology: &Topology, ask: &dyn Fn(&str, &str) -> Option<Ancestor>) -> Vec<GpuPair> {
    const NVIDIA: u32 = 0x10de;
    let mut ways: Vec<PathToGpu> = Vec::new();
    for (number, complex) in topology.complexes.iter().enumerate() {
        let alone = Topology { complexes: vec![complex.clone()], ..Topology::default() };
        alone.each(|path| {
            let own = path.last().filter(|device| device.role == Role::Gpu && device.vendor == Some(NVIDIA));
            if let Some(device) = own {
                ways.push(PathToGpu::new(number, device, path));
            }
        });
    }
    let mut pairs = Vec::new();
    for (place, first) in ways.iter().enumerate() {
        for second in &ways[place + 1..] {
            pairs.push(GpuPair {
                first: first.address.clone(),
                second: second.address.clone(),
                by_tree: first.ancestor(second),
                by_nvml: ask(&first.address, &second.address),
            });
        }
    }
    pairs
}

/// The way from a root complex to a GPU.
struct PathToGpu {
    complex: usize,
    address: String,
    numa_node: Option<u32>,
    /// The bridges, from the root.
    bridges: Vec<String>,
}

impl PathToGpu {
    fn new(complex: usize, device: &PciNode, path: &[&PciNode]) -> Self {
        let bridges = path[..path.len() - 1].iter().map(|bridge| bridge.address.clone()).collect();
        Self { complex, address: sysfs::address(&device.address), numa_node: device.numa_node, bridges }
    }

    fn ancestor(&self, other: &Self) -> Ancestor {
        if self.complex != other.complex {
            // Without NUMA information there is only one node.
            return if self.numa_node == other.numa_node { Ancestor::Node } else { Ancestor::System };
        }
        let shared = self.bridges.iter().zip(&other.bridges).take_while(|(own, others)| own == others).count();
        // The first bridge is the root port. A switch counts as two bridges: its upstream port is shared, its
        // downstream ports are not.
        match shared {
            0 => Ancestor::RootComplex,
            _ if shared >= 2 && self.bridges.len().max(other.bridges.len()) <= shared + 1 => Ancestor::Switch,
            _ if shared >= 2 => Ancestor::Switches,
            _ => Ancestor::RootComplex,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::machine;
    use super::*;

    /// The real server, with its accelerators treated as NVIDIA's GPUs.
    fn server() -> Topology {
        fn rename(device: &mut PciNode) {
            if device.role == Role::Accelerator {
                (device.role, device.vendor) = (Role::Gpu, Some(0x10de));
            }
            device.children.iter_mut().for_each(rename);
        }
        let mut server = machine("two_socket_server.txt");
        server.complexes.iter_mut().flat_map(|complex| &mut complex.devices).for_each(rename);
        server
    }

    #[test]
    fn gpus_of_one_switch_and_of_two_root_complexes_are_distinguished() {
        let pairs = pairs(&server(), false);
        assert_eq!(pairs.len(), 8 * 7 / 2);
        let of = |first: &str, second: &str| {
            pairs
                .iter()
                .find(|pair| pair.first.contains(first) && pair.second.contains(second))
                .map(|pair| pair.by_tree)
        };
        assert_eq!(of("1b:00.0", "1e:00.0"), Some(Ancestor::Switch));
        // Both root complexes belong to node 0.
        assert_eq!(of("1b:00.0", "3d:00.0"), Some(Ancestor::Node));
        let mut far = server();
        far.complexes[1].devices[0].children[0].children[0].children[0].numa_node = Some(1);
        let far = super::pairs(&far, false);
        assert!(far.iter().any(|pair| pair.by_tree == Ancestor::System && pair.second.contains("3d:00.0")), "{far:?}");
        assert!(super::pairs(&machine("cloud_vm.txt"), false).is_empty());
    }
}
