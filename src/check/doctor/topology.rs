//! `batchstep doctor --topology`: the PCIe tree and the NUMA nodes, and what about them costs a training.

use std::collections::BTreeSet;

use super::Finding;
use super::judge::warning;
use crate::device::cgroup::ranges;
use crate::device::nvml;
use crate::device::root::FilesystemRoot;
use crate::device::sysfs::Link;
use crate::device::topology::{GpuPair, PciNode, Role, Topology, pairs, possible};

/// The topology with what was found about it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Examined {
    pub topology: Topology,
    pub pairs: Vec<GpuPair>,
    pub findings: Vec<Finding>,
}

/// Looks at the machine under `root`, and asks NVML. Never fails.
pub fn examine_topology(root: &FilesystemRoot) -> Examined {
    let topology = Topology::read(root);
    let pairs = pairs(&topology, &nvml::common_ancestor);
    let findings = judge(&topology);
    Examined { topology, pairs, findings }
}

/// What costs a training time, with its remedy.
fn judge(topology: &Topology) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in topology.paths() {
        if let Some(device) = path.last().filter(|device| device.role.matters()) {
            findings.extend(narrow(device, path.get(path.len().wrapping_sub(2)).copied()));
            findings.extend(narrow_above(device, &path));
        }
    }
    findings.extend(far_drives(topology));
    findings.extend(unbound(topology));
    findings
}

fn named(device: &PciNode) -> String {
    format!("{} {}", device.role.name(), device.address)
}

/// Whether it can fill its lanes.
fn is_wide(device: &PciNode) -> bool {
    matches!(device.role, Role::Gpu | Role::Accelerator | Role::Nvme)
}

/// A link with fewer lanes than both ends have, or a slot with fewer than the device.
fn narrow(device: &PciNode, above: Option<&PciNode>) -> Option<Finding> {
    let both = possible(device, above);
    if let (Some(width), Some(possible)) = (both.width, both.width_max)
        && width < possible
    {
        let detail = format!("its link has {width} of the {possible} lanes that both ends have");
        let remedy = "reseat the card and its riser; see in the firmware's settings whether the slot's lanes are split, or shared with another \
                      slot or an M.2 drive";
        return Some(warning(named(device), detail, Some(remedy)));
    }
    let (own, possible) = device.link.width_max.zip(both.width_max)?;
    (possible < own && is_wide(device)).then(|| {
        let detail = format!("it has {own} lanes, and the port that it is in {possible}");
        warning(named(device), detail, Some("put the card into a slot with all lanes, if there is one"))
    })
}

/// A hop nearer to the root that is narrower than the device's own link.
fn narrow_above(device: &PciNode, path: &[&PciNode]) -> Option<Finding> {
    let own = device.link.width?;
    let bridges = &path[..path.len().saturating_sub(2)];
    let hop = bridges.iter().rev().find(|bridge| bridge.link.width.is_some_and(|width| width < own))?;
    is_wide(device).then(|| {
        let detail = format!(
            "its own link has {own} lanes, and the hop at {} nearer to the processor {}",
            hop.address,
            hop.link.width.unwrap_or_default()
        );
        let remedy = "move the card to a port of the processor, or to a switch with more lanes upwards";
        warning(named(device), detail, Some(remedy))
    })
}

/// GPUs whose node has no drive while others have.
fn far_drives(topology: &Topology) -> Vec<Finding> {
    let drives: Vec<(&PciNode, u32)> =
        topology.of_role(Role::Nvme).into_iter().filter_map(|drive| Some((drive, drive.numa_node?))).collect();
    let gpus = topology.of_role(Role::Gpu).into_iter().filter_map(|gpu| Some((gpu, gpu.numa_node?)));
    let far = gpus.filter(|(_, node)| !drives.is_empty() && drives.iter().all(|(_, other)| other != node));
    far.map(|(gpu, node)| {
        let (drive, other) = drives[0];
        let detail = format!("it is on node {node}, and the nearest NVMe drive, {}, on node {other}", drive.address);
        let remedy =
            "read the data from a drive of that node; or move the drive, or the card, to the other socket's slots";
        warning(named(gpu), detail, Some(remedy))
    })
    .collect()
}

/// The process may run away from a GPU's node.
fn unbound(topology: &Topology) -> Vec<Finding> {
    if topology.nodes.len() < 2 || topology.allowed.is_empty() {
        return Vec::new();
    }
    let nodes: BTreeSet<u32> = topology.of_role(Role::Gpu).into_iter().filter_map(|gpu| gpu.numa_node).collect();
    let unbound = nodes.into_iter().filter(|number| {
        let own = topology.nodes.iter().find(|node| node.number == *number);
        own.is_some_and(|own| topology.allowed.iter().any(|cpu| !own.cpus.contains(cpu)))
    });
    unbound
        .map(|number| {
            let detail = format!("this process may run on processors of other nodes than {number}, where a GPU is");
            let remedy = format!("bind it: numactl --cpunodebind={number} --membind={number} batchstep run ...");
            warning(format!("NUMA node {number}"), detail, Some(&remedy))
        })
        .collect()
}

/// The tree, the nodes, the pairs of GPUs and the findings as text.
pub fn render_topology(examined: &Examined) -> String {
    let Examined { topology, pairs, findings } = examined;
    let mut text = String::from("PCI Express (links: in use, of what both ends have)\n");
    if topology.complexes.is_empty() {
        text.push_str("  this machine shows no PCI bus\n");
    }
    for complex in &topology.complexes {
        text.push_str(&format!("root complex {}\n", complex.name));
        branches(&complex.devices, None, "", &mut text);
    }
    text.push_str("\nNUMA nodes\n");
    for node in &topology.nodes {
        let allowed = node.cpus.iter().filter(|cpu| topology.allowed.contains(cpu)).count();
        let of_process = format!("{allowed} of its {} processors are allowed to this process", node.cpus.len());
        text.push_str(&format!("  node {}: processors {}; {of_process}\n", node.number, ranges(&node.cpus)));
    }
    if topology.nodes.is_empty() {
        text.push_str("  the kernel names none\n");
    }
    if !pairs.is_empty() {
        text.push_str("\nPairs of GPUs share\n");
    }
    for pair in pairs {
        let by_nvml = match pair.by_nvml {
            Some(level) if level != pair.by_tree => format!(" (NVML: {})", level.name()),
            Some(_) => " (NVML says the same)".to_owned(),
            None => String::new(),
        };
        text.push_str(&format!("  {} and {}: {}{by_nvml}\n", pair.first, pair.second, pair.by_tree.name()));
    }
    text.push('\n');
    text.push_str(
        &super::render(findings).trim_start_matches('\n').replace("everything is in place", "nothing to change"),
    );
    text
}

/// The devices with something of interest behind them, and a line that counts the others.
fn branches(devices: &[PciNode], above: Option<&PciNode>, indent: &str, text: &mut String) {
    let shown: Vec<&PciNode> = devices.iter().filter(|device| device.matters()).collect();
    let others = devices.len() - shown.len();
    for (place, device) in shown.iter().enumerate() {
        let last = place + 1 == shown.len() && others == 0;
        let (branch, below) = if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
        text.push_str(&format!("{indent}{branch}{}\n", line(device, above)));
        branches(&device.children, Some(device), &format!("{indent}{below}"), text);
    }
    if others > 0 {
        let noun = if others == 1 { "device" } else { "devices" };
        text.push_str(&format!("{indent}└─ {others} other {noun}\n"));
    }
}

fn line(device: &PciNode, above: Option<&PciNode>) -> String {
    let mut parts = vec![device.address.clone(), device.role.name().to_owned()];
    let vendor = device.vendor.filter(|_| device.role.matters()).and_then(vendor_name);
    parts.extend(vendor.map(|name| format!("of {name}")));
    parts.extend(link_text(&possible(device, above)));
    parts.extend(device.numa_node.map(|node| format!("node {node}")));
    parts.join("  ")
}

/// `PCIe 1.0 x8 of 3.0 x16, DOWNGRADED`; an idle link lowers its speed, so a low speed is not a finding.
fn link_text(link: &Link) -> Option<String> {
    let (width, generation) = (link.width?, link.generation?);
    let (width_max, generation_max) = (link.width_max.unwrap_or(width), link.generation_max.unwrap_or(generation));
    let mut text = format!("PCIe {generation}.0 x{width}");
    if (width, generation) != (width_max, generation_max) {
        text.push_str(&format!(" of {generation_max}.0 x{width_max}"));
    }
    if width < width_max {
        text.push_str(", DOWNGRADED");
    } else if generation < generation_max {
        text.push_str(", slower now: idle, or downgraded");
    }
    Some(text)
}

/// The vendors of common training hardware (the PCI ID Repository, <https://pci-ids.ucw.cz>).
fn vendor_name(vendor: u32) -> Option<&'static str> {
    Some(match vendor {
        0x10de => "NVIDIA",
        0x1002 | 0x1022 => "AMD",
        0x8086 => "Intel",
        0x144d => "Samsung",
        0x15b3 => "Mellanox",
        0x1af4 => "virtio",
        0x1bcf => "NEC",
        0x10ec => "Realtek",
        0x1d0f => "Amazon",
        0x1ae0 => "Google",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::doctor::Status;
    use crate::device::root::tests::planted;
    use crate::device::topology::RootComplex;
    use crate::device::topology::tests::machine;

    fn found(topology: &Topology) -> Vec<String> {
        judge(topology).iter().map(|finding| format!("{}: {}", finding.subject, finding.detail)).collect()
    }

    fn render_of(topology: Topology) -> String {
        let (pairs, findings) = (pairs(&topology, &|_, _| None), judge(&topology));
        render_topology(&Examined { topology, pairs, findings })
    }

    #[test]
    fn a_real_server_is_drawn_as_a_tree_with_every_hop() {
        let text = render_of(machine("two_socket_server.txt"));
        let tree = "root complex pci0000:17\n\
            └─ 0000:17:00.0  root port  PCIe 3.0 x16  node 0\n\
            \x20  └─ 0000:18:00.0  switch port  PCIe 3.0 x16  node 0\n\
            \x20     ├─ 0000:19:04.0  switch port  PCIe 3.0 x16  node 0\n\
            \x20     │  └─ 0000:1a:00.0  network  of Mellanox  PCIe 3.0 x16  node 0\n";
        assert!(text.contains(tree), "{text}");
        assert!(text.contains("node 1: processors 8-15, 24-31;"), "{text}");
    }

    #[test]
    fn a_real_desktop_and_a_real_virtual_machine_need_no_warning() {
        let desktop = render_of(machine("desktop.txt"));
        let card = "0000:01:00.0  GPU or display  of NVIDIA  PCIe 1.0 x16 of 2.0 x16, slower now: idle, or downgraded";
        assert!(desktop.contains(card) && desktop.ends_with("nothing to change\n"), "{desktop}");
        let machine = render_of(machine("cloud_vm.txt"));
        assert!(
            machine.contains("0000:00:02.0  storage  of virtio\n") && machine.contains("4 other devices"),
            "{machine}"
        );
        assert!(render_of(Topology::default()).contains("no PCI bus"));
    }

    /// NVMe drives as the kernel's files say them, not as this program's own types.
    #[test]
    fn a_real_drive_in_a_narrow_port_and_one_far_from_the_gpu_are_warned_of() {
        let narrow = found(&machine("drive_of_one_lane.txt"));
        assert_eq!(narrow, ["NVMe 0000:01:00.0: it has 4 lanes, and the port that it is in 1"]);
        let text = render_of(machine("drive_of_one_lane.txt"));
        assert!(text.contains("0000:01:00.0  NVMe"), "{text}");
        // A made-up machine: a GPU on node 0, a drive on node 1.
        let device = |path: &str, class: &str, node: &str| {
            let at = |file: &str| format!("sys/devices/{path}/{file}");
            [(at("class"), format!("{class}\n")), (at("numa_node"), format!("{node}\n"))]
        };
        let files = [
            device("pci0000:3a/0000:3a:00.0/0000:3b:00.0", "0x030200", "0"),
            device("pci0000:85/0000:85:00.0/0000:86:00.0", "0x010802", "1"),
        ];
        let (_guard, root) = planted(files.as_flattened());
        let far = found(&Topology::read(&root));
        assert_eq!(
            far,
            ["GPU or display 0000:3b:00.0: it is on node 0, and the nearest NVMe drive, 0000:86:00.0, on node 1"]
        );
    }

    /// A GPU of the test's own under two ports, with a drive on another node.
    fn troubled() -> Topology {
        let link = |width, width_max| Link {
            width: Some(width),
            generation: Some(4),
            width_max: Some(width_max),
            generation_max: Some(4),
        };
        let device = |address: &str, role, link, node, children| PciNode {
            address: address.to_owned(),
            role,
            vendor: Some(0x10de),
            link,
            numa_node: Some(node),
            children,
        };
        let card = device("0000:03:00.0", Role::Gpu, link(8, 16), 0, vec![]);
        let below = device("0000:02:00.0", Role::Switch, link(8, 16), 0, vec![card]);
        let up = device("0000:01:00.0", Role::Switch, link(4, 16), 0, vec![below]);
        let port = device("0000:00:01.0", Role::RootPort, link(4, 16), 0, vec![up]);
        let drive = device("0000:80:00.0", Role::Nvme, link(4, 4), 1, vec![]);
        let mut server = machine("two_socket_server.txt");
        server.complexes = vec![
            RootComplex { name: "pci0000:00".into(), devices: vec![port] },
            RootComplex { name: "pci0000:80".into(), devices: vec![drive] },
        ];
        server.allowed = (0..32).collect();
        server
    }

    #[test]
    fn each_trouble_is_a_warning_with_its_remedy() {
        let findings = judge(&troubled());
        assert_eq!(
            found(&troubled()),
            [
                "GPU or display 0000:03:00.0: its link has 8 of the 16 lanes that both ends have",
                "GPU or display 0000:03:00.0: its own link has 8 lanes, and the hop at 0000:01:00.0 nearer to the processor 4",
                "GPU or display 0000:03:00.0: it is on node 0, and the nearest NVMe drive, 0000:80:00.0, on node 1",
                "NUMA node 0: this process may run on processors of other nodes than 0, where a GPU is",
            ]
        );
        assert!(findings.iter().all(|finding| finding.status == Status::Warning && finding.remedy.is_some()));
        assert!(
            findings[3].remedy.as_deref().is_some_and(|remedy| remedy.contains("numactl --cpunodebind=0 --membind=0"))
        );
        let mut bound = troubled();
        bound.allowed = bound.nodes[0].cpus.clone();
        assert_eq!(judge(&bound).len(), 3);
        assert!(render_of(troubled()).contains("PCIe 4.0 x8 of 4.0 x16, DOWNGRADED"));
    }
}
