//! What the kernel says about the PCI bus and the NUMA nodes: a GPU's link, its node, NVMe drives.
//!
//! Source: `/sys/bus/pci/devices/<address>/`, files `class`, `vendor`, `current_link_width`, `current_link_speed`,
//! `max_link_width`, `max_link_speed`, `numa_node` (Documentation/ABI/testing/sysfs-bus-pci of Linux).

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cgroup::list;
use super::root::{FilesystemRoot, name_of, numbered};

/// NVIDIA's PCI vendor number.
const NVIDIA: &str = "0x10de";
/// PCI base class 03: display controllers, which a data-centre GPU ("3D controller", 0302) is as well.
const DISPLAY: &str = "0x03";
/// PCI class 0108: NVMe and its like.
const NON_VOLATILE_MEMORY: &str = "0x0108";

/// A PCIe link: lanes and generation, in use now and at most.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    pub width: Option<u32>,
    /// Drops while the link idles; see [`super::Covariates::pcie_link_generation`].
    pub generation: Option<u32>,
    pub width_max: Option<u32>,
    pub generation_max: Option<u32>,
}

impl Link {
    /// True where nothing about a link is known: a device on a virtual or an internal bus.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// Takes from `other` what is unknown here.
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            width: self.width.or(other.width),
            generation: self.generation.or(other.generation),
            width_max: self.width_max.or(other.width_max),
            generation_max: self.generation_max.or(other.generation_max),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PciDevice {
    /// `0000:3b:00.0`: domain, bus, device, function.
    pub address: String,
    pub link: Link,
    /// The NUMA node to which it is attached; `None` on a machine with one node, where the kernel reports -1.
    pub numa_node: Option<u32>,
}

/// The GPUs of NVIDIA, in the order of their addresses.
pub fn gpus(root: &FilesystemRoot) -> Vec<PciDevice> {
    of_class(root, |class, vendor| class.starts_with(DISPLAY) && vendor == NVIDIA)
}

/// The NVMe drives, in the order of their addresses.
pub fn drives(root: &FilesystemRoot) -> Vec<PciDevice> {
    of_class(root, |class, _| class.starts_with(NON_VOLATILE_MEMORY))
}

/// The present link of the device at `address`; all fields are unknown if there is no such device.
pub fn link(root: &FilesystemRoot, address: &str) -> Link {
    read_link(root, &Path::new("/sys/bus/pci/devices").join(address))
}

/// Memory, and the processors next to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NumaNode {
    pub number: u32,
    /// Logical processors, ascending.
    pub cpus: Vec<usize>,
}

/// The NUMA nodes, in the order of their numbers.
pub fn numa_nodes(root: &FilesystemRoot) -> Vec<NumaNode> {
    let node = |path: &PathBuf| {
        Some(NumaNode { number: numbered(path, "node")?, cpus: list(&root.text(path.join("cpulist"))?) })
    };
    let mut nodes: Vec<NumaNode> = root.entries("/sys/devices/system/node").iter().filter_map(node).collect();
    nodes.sort_by_key(|node| node.number);
    nodes
}

/// An address as sysfs writes it, from any other writing: NVML says `00000000:3B:00.0`, CUDA `0000:3B:00.0`.
pub fn address(bus_id: &str) -> String {
    let lower = bus_id.trim().to_ascii_lowercase();
    match lower.split_once(':') {
        Some((domain, rest)) if rest.contains(':') => {
            format!("{:0>4}:{rest}", domain.trim_start_matches('0'))
        }
        _ => format!("0000:{lower}"),
    }
}

/// The generation of a link of that speed: `16.0 GT/s PCIe` is 4.
pub fn generation(speed: &str) -> Option<u32> {
    let speed: f64 = speed.split_whitespace().next()?.parse().ok()?;
    // The rates of the PCI Express base specifications 1.0 to 6.0, in GT/s per lane.
    [2.5, 5.0, 8.0, 16.0, 32.0, 64.0].iter().position(|rate| *rate == speed).map(|at| at as u32 + 1)
}

fn of_class(root: &FilesystemRoot, wanted: impl Fn(&str, &str) -> bool) -> Vec<PciDevice> {
    let device = |path: &PathBuf| {
        let text = |file: &str| root.text(path.join(file)).unwrap_or_default();
        wanted(&text("class"), &text("vendor")).then(|| PciDevice {
            address: name_of(path).to_string(),
            link: read_link(root, path),
            numa_node: root.number(path.join("numa_node")),
        })
    };
    root.entries("/sys/bus/pci/devices").iter().filter_map(device).collect()
}

/// Whether a name is an address on the PCI bus, as sysfs writes it: `0000:3b:00.0`, `10000:e1:00.0`.
pub(super) fn is_address(name: &str) -> bool {
    let hexadecimal = |text: &str, least: usize| text.len() >= least && text.chars().all(|c| c.is_ascii_hexdigit());
    let Some((place, function)) = name.split_once('.') else { return false };
    let place: Vec<&str> = place.split(':').collect();
    let is_place =
        |[domain, bus, device]: [&str; 3]| hexadecimal(domain, 4) && hexadecimal(bus, 2) && hexadecimal(device, 2);
    hexadecimal(function, 1) && <[&str; 3]>::try_from(place).is_ok_and(is_place)
}

/// The link of the device in the folder `path`.
pub(super) fn read_link(root: &FilesystemRoot, path: &Path) -> Link {
    // With 0 and 255 lanes the kernel says that the register is meaningless (PCI_EXP_LNKSTA of a device that is off the
    // bus, or not a PCIe device).
    let width = |file: &str| root.number::<u32>(path.join(file)).filter(|lanes| (1..=32).contains(lanes));
    let speed = |file: &str| root.text(path.join(file)).and_then(|text| generation(&text));
    Link {
        width: width("current_link_width"),
        generation: speed("current_link_speed"),
        width_max: width("max_link_width"),
        generation_max: speed("max_link_speed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::root::tests::planted;

    #[test]
    fn a_link_speed_names_its_generation() {
        for (speed, expected) in [
            ("2.5 GT/s PCIe", Some(1)),
            ("5.0 GT/s PCIe", Some(2)),
            ("8 GT/s", Some(3)),
            ("16.0 GT/s PCIe", Some(4)),
            ("32.0 GT/s PCIe", Some(5)),
            ("64.0 GT/s PCIe", Some(6)),
            ("Unknown", None),
            ("", None),
        ] {
            assert_eq!(generation(speed), expected, "{speed}");
        }
    }

    #[test]
    fn only_display_controllers_of_nvidia_are_its_gpus() {
        let (_guard, root) = planted(&[
            ("sys/bus/pci/devices/0000:3b:00.0/class", "0x030200\n"),
            ("sys/bus/pci/devices/0000:3b:00.0/vendor", "0x10de\n"),
            ("sys/bus/pci/devices/0000:3b:00.0/current_link_width", "8\n"),
            ("sys/bus/pci/devices/0000:3b:00.0/current_link_speed", "2.5 GT/s PCIe\n"),
            ("sys/bus/pci/devices/0000:3b:00.0/max_link_width", "16\n"),
            ("sys/bus/pci/devices/0000:3b:00.0/max_link_speed", "32.0 GT/s PCIe\n"),
            ("sys/bus/pci/devices/0000:3b:00.0/numa_node", "1\n"),
            // The same card's audio function, another vendor's display, and a drive.
            ("sys/bus/pci/devices/0000:3b:00.1/class", "0x040300\n"),
            ("sys/bus/pci/devices/0000:3b:00.1/vendor", "0x10de\n"),
            ("sys/bus/pci/devices/0000:02:00.0/class", "0x030000\n"),
            ("sys/bus/pci/devices/0000:02:00.0/vendor", "0x1a03\n"),
            ("sys/bus/pci/devices/0000:05:00.0/class", "0x010802\n"),
            ("sys/bus/pci/devices/0000:05:00.0/current_link_width", "0\n"),
            ("sys/bus/pci/devices/0000:05:00.0/numa_node", "-1\n"),
            ("sys/devices/system/node/node0/cpulist", "0-3\n"),
            ("sys/devices/system/node/node1/cpulist", "4-7\n"),
            ("sys/devices/system/node/online", "0-1\n"),
        ]);
        let link = Link { width: Some(8), generation: Some(1), width_max: Some(16), generation_max: Some(5) };
        let expected = PciDevice { address: "0000:3b:00.0".into(), link, numa_node: Some(1) };
        assert_eq!(gpus(&root), [expected]);
        assert_eq!(super::link(&root, &address("00000000:3B:00.0")), link);
        let drives = drives(&root);
        assert_eq!(drives.len(), 1);
        assert!(drives[0].link.is_unknown() && drives[0].numa_node.is_none());
        assert_eq!(numa_nodes(&root).iter().map(|node| node.cpus[0]).collect::<Vec<_>>(), [0, 4]);
    }

    #[test]
    fn addresses_in_every_notation_become_those_of_sysfs() {
        assert_eq!(address("00000000:3B:00.0"), "0000:3b:00.0");
        assert_eq!(address("0000:3b:00.0"), "0000:3b:00.0");
        assert_eq!(address("00010000:01:00.0"), "10000:01:00.0");
        assert_eq!(address("3B:00.0"), "0000:3b:00.0");
    }

    #[test]
    fn a_machine_without_a_pci_bus_has_no_gpus() {
        let root = FilesystemRoot::at("/nonexistent");
        assert!(gpus(&root).is_empty() && drives(&root).is_empty() && numa_nodes(&root).is_empty());
        assert!(link(&root, "0000:3b:00.0").is_unknown());
    }
}
