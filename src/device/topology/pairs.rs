//! The path between two GPUs.

use serde::Serialize;

use super::{PciNode, Role, Topology};

/// The nearest common ancestor of two GPUs, ordered by distance, with the levels of `nvidia-smi topo -m`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ancestor {
    Card,
    Switch,
    /// Several PCIe switches, without a root complex.
    Switches,
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GpuPair {
    pub first: String,
    pub second: String,
    /// According to the tree.
    pub by_tree: Ancestor,
    /// According to NVML; `None` if it does not answer.
    pub by_nvml: Option<Ancestor>,
}

/// Every pair of NVIDIA's GPUs; `by_nvml` gives NVML's common ancestor of the GPUs at two addresses.
pub fn pairs(topology: &Topology, by_nvml: &dyn Fn(&str, &str) -> Option<Ancestor>) -> Vec<GpuPair> {
    const NVIDIA: u32 = 0x10de;
    let is_gpu = |path: &Way| path.last().is_some_and(|gpu| gpu.role == Role::Gpu && gpu.vendor == Some(NVIDIA));
    let ways: Vec<Way> = topology.paths().into_iter().filter(is_gpu).collect();
    let mut pairs = Vec::new();
    for (place, first) in ways.iter().enumerate() {
        for second in &ways[place + 1..] {
            let by_tree = ancestor(first, second);
            let [first, second] = [first, second].map(|path| path[path.len() - 1].address.clone());
            let by_nvml = by_nvml(&first, &second);
            pairs.push(GpuPair { first, second, by_tree, by_nvml });
        }
    }
    pairs
}

/// The path from a root complex to a GPU.
type Way<'t> = Vec<&'t PciNode>;

fn ancestor(own: &Way, other: &Way) -> Ancestor {
    // The devices of a root complex are on one bus, its first.
    let complex = |path: &Way| path[0].address.rsplit_once(':').map(|(bus, _)| bus.to_owned());
    if complex(own) != complex(other) {
        // Without NUMA information there is only one node.
        let node = |path: &Way| path[path.len() - 1].numa_node;
        return if node(own) == node(other) { Ancestor::Node } else { Ancestor::System };
    }
    let shared = own.iter().zip(other).take_while(|(own, other)| own.address == other.address).count();
    // The first bridge is the root port. A switch counts as two bridges: its upstream port is shared, its downstream
    // ports are not.
    match own.len().max(other.len()) {
        _ if shared < 2 => Ancestor::RootComplex,
        longest if longest <= shared + 2 => Ancestor::Switch,
        _ => Ancestor::Switches,
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
        let pairs = pairs(&server(), &|_, _| None);
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
        let far = super::pairs(&far, &|_, _| None);
        assert!(far.iter().any(|pair| pair.by_tree == Ancestor::System && pair.second.contains("3d:00.0")), "{far:?}");
        assert!(super::pairs(&machine("cloud_vm.txt"), &|_, _| None).is_empty());
    }
}
