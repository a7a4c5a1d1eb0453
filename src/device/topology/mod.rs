//! How devices are connected: the PCI Express tree with the link of every hop, and the NUMA nodes.
//!
//! Sources: the folders of `/sys/devices/pci*`, which are nested as the devices are connected, with the files of
//! Documentation/ABI/testing/sysfs-bus-pci of Linux; `/sys/devices/system/node`; the class codes of PCI-SIG's "PCI Code
//! and ID Assignment Specification".

mod pairs;

use std::path::Path;

use serde::Serialize;

use super::root::{FilesystemRoot, name_of};
use super::sysfs::{self, Link, NumaNode};
pub use pairs::{Ancestor, GpuPair, pairs};

#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Topology {
    pub complexes: Vec<RootComplex>,
    pub nodes: Vec<NumaNode>,
    /// Logical processors that this process may run on.
    pub allowed: Vec<usize>,
}

/// A host bridge with the devices attached to it: `pci0000:17`.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RootComplex {
    pub name: String,
    pub devices: Vec<PciNode>,
}

/// A device on the PCI bus, with the devices behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PciNode {
    /// `0000:3b:00.0`.
    pub address: String,
    pub role: Role,
    pub vendor: Option<u32>,
    /// The link to its parent.
    pub link: Link,
    /// `None` on a machine with one node, where the kernel reports -1.
    pub numa_node: Option<u32>,
    pub children: Vec<PciNode>,
}

/// The purpose of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    RootPort,
    /// A bridge below a bridge.
    Switch,
    Gpu,
    Accelerator,
    Nvme,
    /// SATA, IDE, SCSI, virtual disks.
    Storage,
    Network,
    Other,
}

impl Role {
    /// The role by the class code (base class, subclass, interface), and whether the device is attached to a bridge.
    fn of(class: u32, below_a_bridge: bool) -> Self {
        match (class >> 16, (class >> 8) & 0xff) {
            (0x06, 0x04) if below_a_bridge => Self::Switch,
            (0x06, 0x04) => Self::RootPort,
            (0x03, _) => Self::Gpu,
            (0x12, _) | (0x0b, 0x40) => Self::Accelerator,
            (0x01, 0x08) => Self::Nvme,
            (0x01, _) => Self::Storage,
            (0x02, _) => Self::Network,
            _ => Self::Other,
        }
    }

    /// Whether it matters for a training.
    pub fn matters(self) -> bool {
        !matches!(self, Self::RootPort | Self::Switch | Self::Other)
    }

    /// The name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::RootPort => "root port",
            Self::Switch => "switch port",
            Self::Gpu => "GPU or display",
            Self::Accelerator => "accelerator",
            Self::Nvme => "NVMe",
            Self::Storage => "storage",
            Self::Network => "network",
            Self::Other => "other",
        }
    }
}

impl PciNode {
    /// Whether it, or a device behind it, matters for a training.
    pub fn matters(&self) -> bool {
        self.role.matters() || self.children.iter().any(Self::matters)
    }

    fn paths<'a>(&'a self, above: &[&'a PciNode], found: &mut Vec<Vec<&'a PciNode>>) {
        let path = [above, &[self]].concat();
        found.push(path.clone());
        self.children.iter().for_each(|child| child.paths(&path, found));
    }
}

impl Topology {
    /// Reads what the kernel reports. Never fails: unreadable parts are left out.
    pub fn read(root: &FilesystemRoot) -> Self {
        let complexes = root.entries("/sys/devices").into_iter().filter(|path| is_complex(path));
        let complexes =
            complexes.map(|path| RootComplex { name: name_of(&path).to_owned(), devices: devices(root, &path, false) });
        let complexes = complexes.filter(|complex| !complex.devices.is_empty()).collect();
        Self { complexes, nodes: sysfs::numa_nodes(root), allowed: super::cgroup::ResourceLimits::read(root).cpus }
    }

    /// Every device, last in the path from its root complex.
    pub fn paths(&self) -> Vec<Vec<&PciNode>> {
        let mut found = Vec::new();
        let devices = self.complexes.iter().flat_map(|complex| &complex.devices);
        devices.for_each(|device| device.paths(&[], &mut found));
        found
    }

    /// The devices of a role.
    pub fn of_role(&self, role: Role) -> Vec<&PciNode> {
        self.paths().iter().filter_map(|path| path.last().copied().filter(|device| device.role == role)).collect()
    }
}

/// `pci0000:17`; also `pci10000:e0` below a device, where a controller gives its drives a separate domain.
fn is_complex(path: &Path) -> bool {
    name_of(path).strip_prefix("pci").is_some_and(|rest| rest.contains(':'))
}

fn devices(root: &FilesystemRoot, folder: &Path, below_a_bridge: bool) -> Vec<PciNode> {
    let mut found = Vec::new();
    for path in root.entries(folder) {
        if is_complex(&path) {
            found.extend(devices(root, &path, below_a_bridge));
        } else if sysfs::is_address(name_of(&path)) {
            found.push(device(root, &path, below_a_bridge));
        }
    }
    found
}

fn device(root: &FilesystemRoot, path: &Path, below_a_bridge: bool) -> PciNode {
    let number =
        |file: &str| root.text(path.join(file)).and_then(|text| u32::from_str_radix(text.strip_prefix("0x")?, 16).ok());
    let role = number("class").map_or(Role::Other, |class| Role::of(class, below_a_bridge));
    let is_bridge = matches!(role, Role::RootPort | Role::Switch);
    PciNode {
        address: name_of(path).to_owned(),
        role,
        vendor: number("vendor"),
        link: sysfs::read_link(root, path),
        numa_node: root.number(path.join("numa_node")),
        children: devices(root, path, is_bridge || below_a_bridge),
    }
}

/// The best link that both ends allow: the lesser of the two, if both are known.
pub fn possible(device: &PciNode, above: Option<&PciNode>) -> Link {
    let port = above.map(|port| port.link).unwrap_or_default();
    let least = |own: Option<u32>, other: Option<u32>| own.into_iter().chain(other).min();
    let width_max = least(device.link.width_max, port.width_max);
    Link { width_max, generation_max: least(device.link.generation_max, port.generation_max), ..device.link }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::device::root::tests::{fixture, planted};

    pub(crate) fn machine(name: &str) -> Topology {
        let (_guard, root) = planted(&fixture(name));
        Topology::read(&root)
    }

    /// Every device with its path, as `17:00.0 > 18:00.0`.
    fn paths(topology: &Topology, role: Role) -> Vec<String> {
        let of_role = |path: &Vec<&PciNode>| path.last().is_some_and(|device| device.role == role);
        let text = |path: Vec<&PciNode>| path.iter().map(|device| &device.address[5..]).collect::<Vec<_>>().join(" > ");
        topology.paths().into_iter().filter(of_role).map(text).collect()
    }

    #[test]
    fn a_server_of_two_sockets_has_its_switches_between_root_and_devices() {
        let server = machine("two_socket_server.txt");
        let names: Vec<&str> = server.complexes.iter().map(|complex| complex.name.as_str()).collect();
        assert_eq!(names, ["pci0000:17", "pci0000:3a", "pci0000:5d"]);
        // Four accelerators and one InfiniBand adapter on each of two switches; the network on a third root port.
        let accelerators = paths(&server, Role::Accelerator);
        assert_eq!(accelerators.len(), 8);
        assert_eq!(accelerators[0], "17:00.0 > 18:00.0 > 19:08.0 > 1b:00.0");
        assert_eq!(paths(&server, Role::Network).len(), 4);
        assert_eq!((server.of_role(Role::RootPort).len(), server.of_role(Role::Switch).len()), (3, 14));
        let link = Link { width: Some(16), generation: Some(3), width_max: Some(16), generation_max: Some(3) };
        assert!(
            server.of_role(Role::Accelerator).iter().all(|device| device.link == link && device.numa_node == Some(0))
        );
        let cpus: Vec<usize> = server.nodes.iter().map(|node| node.cpus.len()).collect();
        assert_eq!((cpus, server.nodes[1].cpus[0]), (vec![16, 16], 8));
    }

    #[test]
    fn a_desktops_card_is_limited_by_the_port_that_it_is_in() {
        let desktop = machine("desktop.txt");
        assert_eq!(paths(&desktop, Role::Gpu), ["00:01.0 > 01:00.0"]);
        assert_eq!(paths(&desktop, Role::Storage), ["00:1c.4 > 03:00.0", "00:1f.2"]);
        let (port, card) = (&desktop.of_role(Role::RootPort)[0], &desktop.of_role(Role::Gpu)[0]);
        // The card allows 8 GT/s and the port 5 GT/s; when idle, they run at 2.5 GT/s.
        let expected = Link { width: Some(16), generation: Some(1), width_max: Some(16), generation_max: Some(2) };
        assert_eq!((possible(card, Some(port)), card.link.generation_max), (expected, Some(3)));
        // A port without a card has no lanes in use.
        assert_eq!(desktop.of_role(Role::RootPort)[1].link.width, None);
        assert_eq!(desktop.nodes.len(), 1);
    }

    #[test]
    fn a_virtual_machine_has_a_flat_bus_without_links() {
        let machine = machine("cloud_vm.txt");
        assert_eq!((machine.complexes.len(), machine.complexes[0].devices.len()), (1, 6));
        assert_eq!(
            (paths(&machine, Role::Storage), paths(&machine, Role::Network)),
            (vec!["00:02.0".to_owned()], vec!["00:03.0".to_owned()])
        );
        assert!(
            machine.complexes[0].devices.iter().all(|device| device.link.is_unknown() && device.numa_node.is_none())
        );
    }
}
