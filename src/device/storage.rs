//! The storage device under a folder: what it is, how it is attached, how the kernel queues its requests.
//!
//! Sources: stat(2) for the device number, `/sys/dev/block/<major>:<minor>` for the device (Documentation/ABI/stable/sysfs-block),
//! `queue/rotational`, `queue/scheduler`, `queue/nr_requests` beside it, the PCI device above it for the link, and
//! `/proc/self/mountinfo` where the file system has no device of its own.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::root::{FilesystemRoot, name_of, numbered};
use super::sysfs::{self, Link};

/// A storage device, or what replaces it. `None`: the kernel does not say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Storage {
    /// `nvme0n1`, `sda`, `vda`; for a file system without a device, its type, such as `tmpfs` or `nfs4`.
    pub name: String,
    pub kind: StorageKind,
    pub model: Option<String>,
    /// As the kernel says it; a virtual disk often says yes whatever is behind it.
    pub rotational: Option<bool>,
    /// Requests that the kernel queues for it.
    pub queue_requests: Option<u32>,
    /// Requests that the device itself takes at a time, where it says so (SCSI and SATA).
    pub queue_depth: Option<u32>,
    /// The scheduler in force.
    pub scheduler: Option<String>,
    /// The link of the PCI device that it is or is attached to. For a drive with several controllers, their common
    /// value, if they agree.
    pub link: Link,
    pub numa_node: Option<u32>,
    /// The addresses of the controllers of an NVMe drive that the kernel reaches through several of them; else empty.
    #[serde(default)]
    pub controllers: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StorageKind {
    Nvme,
    Sata,
    Usb,
    /// SCSI or SAS, and not SATA.
    Scsi,
    /// SD cards and eMMC.
    Mmc,
    Virtual,
    /// Another computer's storage, through a network file system.
    Network,
    /// Memory: tmpfs.
    Memory,
    #[default]
    Unknown,
}

impl StorageKind {
    fn name(self) -> &'static str {
        match self {
            Self::Nvme => "NVMe",
            Self::Sata => "SATA",
            Self::Usb => "USB",
            Self::Scsi => "SCSI",
            Self::Mmc => "MMC",
            Self::Virtual => "a virtual disk",
            Self::Network => "a network file system",
            Self::Memory => "memory",
            Self::Unknown => "of unknown kind",
        }
    }
}

impl Storage {
    /// The storage under `folder`, which must exist.
    pub fn under(root: &FilesystemRoot, folder: &Path) -> Self {
        let Ok(metadata) = folder.metadata() else { return Self::default() };
        let (major, minor) = (libc::major(metadata.dev()), libc::minor(metadata.dev()));
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_path_buf());
        Self::numbered(root, &format!("{major}:{minor}")).unwrap_or_else(|| Self::mounted(root, &folder))
    }

    /// The block device of that number, `259:1`.
    pub fn numbered(root: &FilesystemRoot, number: &str) -> Option<Self> {
        let whole = |device: PathBuf| match device.join("partition").exists() {
            true => device.parent().map(Path::to_path_buf),
            false => Some(device),
        };
        let own = whole(root.path(Path::new("/sys/dev/block").join(number)).canonicalize().ok()?)?;
        // For a device mapper or a software RAID: the first of the devices below it.
        let below = root.entries(own.join("slaves")).first().and_then(|slave| slave.canonicalize().ok());
        Some(Self::read(root, &below.map_or(Some(own), whole)?))
    }

    /// From a block device's folder in sysfs.
    fn read(root: &FilesystemRoot, device: &Path) -> Self {
        let name = name_of(device).to_owned();
        let ways = ways(root, device);
        // The whole drive has no queue of its own where it has several controllers: its requests wait in theirs, which are alike.
        let queued = ways.first().map_or(device, PathBuf::as_path);
        let ends: Vec<&Path> = if ways.is_empty() { vec![device] } else { ways.iter().map(PathBuf::as_path).collect() };
        let own = |device: &Path, file: &str| root.text(device.join(file)).filter(|text| !text.is_empty());
        let text = |file: &str| own(device, file).or_else(|| own(queued, file));
        let scheduler = text("queue/scheduler").and_then(|all| match all.split_once('[') {
            Some((_, rest)) => rest.split_once(']').map(|(own, _)| own.to_owned()),
            None => Some(all),
        });
        let link = |end: &&Path| pci_device(end).map(|pci| sysfs::read_link(root, &pci)).unwrap_or_default();
        Self {
            kind: kind(&name, device),
            model: text("device/model"),
            rotational: root.number::<u8>(device.join("queue/rotational")).map(|flag| flag == 1),
            queue_requests: text("queue/nr_requests").and_then(|number| number.parse().ok()),
            queue_depth: root.number(device.join("device/queue_depth")),
            scheduler,
            link: agreed(ends.iter().map(link)).unwrap_or_default(),
            numa_node: agreed(ends.iter().map(|end| node(root, end))).flatten(),
            controllers: ways.iter().filter_map(|way| Some(name_of(&pci_device(way)?).to_owned())).collect(),
            name,
        }
    }

    /// For a file system without its own block device: from its entry in the table of mounts.
    fn mounted(root: &FilesystemRoot, folder: &Path) -> Self {
        let Some(text) = root.text("/proc/self/mountinfo") else { return Self::default() };
        // See proc_pid_mountinfo(5).
        let mount = |line: &str| {
            let (left, right) = line.split_once(" - ")?;
            let point = PathBuf::from(left.split(' ').nth(4)?.replace("\\040", " "));
            folder.starts_with(&point).then_some((point.components().count(), right.split(' ').next()?.to_owned()))
        };
        let nearest = text.lines().filter_map(mount).max_by_key(|(depth, _)| *depth);
        let Some((_, name)) = nearest else { return Self::default() };
        let kind = match name.as_str() {
            "tmpfs" | "ramfs" => StorageKind::Memory,
            "nfs" | "nfs4" | "cifs" | "smb3" | "ceph" | "lustre" | "beegfs" | "gpfs" | "9p" | "virtiofs" => {
                StorageKind::Network
            }
            _ => StorageKind::Unknown,
        };
        Self { name, kind, ..Self::default() }
    }

    /// In one line: `nvme0n1 (NVMe, Samsung SSD 980 PRO 1TB, PCIe 4.0 x4, not rotational, 1023 queued requests, scheduler none)`.
    pub fn describe(&self) -> String {
        let mut facts = vec![self.kind.name().to_owned()];
        facts.extend(self.model.clone());
        if !self.controllers.is_empty() {
            facts.push(format!("through the controllers {}", self.controllers.join(" and ")));
        }
        if let Link { width: Some(width), generation: Some(generation), .. } = self.link {
            facts.push(format!("PCIe {generation}.0 x{width}"));
        }
        facts.extend(
            self.rotational
                .map(|turns| if turns { "rotational by its own account" } else { "not rotational" }.to_owned()),
        );
        facts.extend(self.queue_requests.map(|requests| format!("{requests} queued requests")));
        facts.extend(self.queue_depth.map(|depth| format!("depth {depth}")));
        facts.extend(self.scheduler.as_ref().map(|scheduler| format!("scheduler {scheduler}")));
        let name = if self.name.is_empty() { "storage" } else { &self.name };
        format!("{name} ({})", facts.join(", "))
    }
}

/// The kind, by the name, else by the buses in the path.
fn kind(name: &str, device: &Path) -> StorageKind {
    let through = |prefix: &str| device.iter().any(|part| part.to_string_lossy().starts_with(prefix));
    let digits = |prefix: &str| {
        let bus = device.iter().filter_map(|part| part.to_str()?.strip_prefix(prefix));
        bus.into_iter().any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    match name {
        _ if name.starts_with("nvme") => StorageKind::Nvme,
        _ if name.starts_with("vd") || name.starts_with("xvd") || through("virtio") || through("vmbus") => {
            StorageKind::Virtual
        }
        _ if name.starts_with("mmcblk") => StorageKind::Mmc,
        _ if name.starts_with("zram") || name.starts_with("ram") => StorageKind::Memory,
        _ if digits("usb") => StorageKind::Usb,
        _ if digits("ata") => StorageKind::Sata,
        _ if name.starts_with("sd") => StorageKind::Scsi,
        _ => StorageKind::Unknown,
    }
}

/// A drive's folders behind its controllers, if it has several: its own folder is then below
/// `/sys/devices/virtual/nvme-subsystem`, as `nvme-subsys1/nvme1n1`, beside links to the controllers `nvme1` and
/// `nvme2`, which hold `nvme1c1n1` and `nvme1c2n1`.
fn ways(root: &FilesystemRoot, device: &Path) -> Vec<PathBuf> {
    let subsystem = device.parent().filter(|folder| name_of(folder).starts_with("nvme-subsys"));
    let (Some(subsystem), Some((drive, namespace))) = (subsystem, name_of(device).rsplit_once('n')) else {
        return Vec::new();
    };
    let is_controller = |path: &PathBuf| numbered(path, "nvme").is_some();
    let is_own = |path: &PathBuf| {
        let number = name_of(path).strip_prefix(drive).and_then(|rest| rest.strip_prefix('c'));
        number.is_some_and(|rest| rest.split_once('n').is_some_and(|(_, own)| own == namespace))
    };
    let controllers = root.entries(subsystem).into_iter().filter(is_controller);
    let controllers = controllers.filter_map(|controller| controller.canonicalize().ok());
    controllers.flat_map(|controller| root.entries(controller).into_iter().filter(is_own)).collect()
}

/// The common value, if all are equal.
fn agreed<T: PartialEq>(mut values: impl Iterator<Item = T>) -> Option<T> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

/// The NUMA node of the PCI device above, or the one that the NVMe driver reports for the controller.
fn node(root: &FilesystemRoot, device: &Path) -> Option<u32> {
    let says = |folder: &Path| root.number(folder.join("numa_node"));
    pci_device(device).and_then(|pci| says(&pci)).or_else(|| says(device.parent()?))
}

/// The nearest folder above that is a PCI device: `0000:3b:00.0`.
fn pci_device(device: &Path) -> Option<PathBuf> {
    device.ancestors().find(|path| sysfs::is_address(name_of(path))).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::root::tests::{fixture, planted};

    #[test]
    fn an_nvme_drive_is_found_from_its_partition_with_its_link() {
        // The layout of sysfs on an ordinary machine: the paths are those of Linux 6, the values are made up.
        let drive = "sys/devices/pci0000:00/0000:00:1d.0/0000:02:00.0/nvme/nvme0/nvme0n1";
        let at = |file: &str| format!("{drive}/{file}");
        let (_guard, root) = planted(&[
            (at("nvme0n1p2/partition"), "2\n"),
            (at("queue/rotational"), "0\n"),
            (at("queue/nr_requests"), "1023\n"),
            (at("queue/scheduler"), "[none] mq-deadline\n"),
            (at("device/model"), "Drive of a test  \n"),
            ("sys/devices/pci0000:00/0000:00:1d.0/0000:02:00.0/current_link_width".to_owned(), "4\n"),
            ("sys/devices/pci0000:00/0000:00:1d.0/0000:02:00.0/current_link_speed".to_owned(), "8.0 GT/s PCIe\n"),
            ("sys/devices/pci0000:00/0000:00:1d.0/0000:02:00.0/numa_node".to_owned(), "1\n"),
            ("sys/dev/block/259:2".to_owned(), format!("-> ../../../{}", at("nvme0n1p2")).as_str()),
        ]);
        let storage = Storage::numbered(&root, "259:2").expect("found");
        assert_eq!(
            storage.describe(),
            "nvme0n1 (NVMe, Drive of a test, PCIe 3.0 x4, not rotational, 1023 queued requests, scheduler none)"
        );
        assert_eq!(storage.numa_node, Some(1));
        assert_eq!(Storage::numbered(&root, "8:1"), None);
    }

    #[test]
    fn a_drive_with_several_controllers_is_found_through_them() {
        let mut files = fixture("nvme_multipath.txt");
        let drives = ["virtual/nvme-subsystem/nvme-subsys1/nvme1n1", "pci0214:90/0214:90:00.0/nvme/nvme0/nvme0n1"];
        for (number, drive) in ["259:2", "259:3"].into_iter().zip(drives) {
            files.push((format!("sys/dev/block/{number}"), format!("-> ../../devices/{drive}")));
        }
        let (guard, root) = planted(&files);
        let several = Storage::numbered(&root, "259:2").expect("found");
        assert_eq!(
            several.describe(),
            "nvme1n1 (NVMe, 3.2TB NVMe Gen4 U.2 SSD III, through the controllers 052e:78:00.0 and 058e:78:00.0, not rotational, 1023 queued \
             requests, scheduler none)"
        );
        // One controller is on node 0, and the other on node 2.
        assert_eq!(several.numa_node, None);
        let one = Storage::numbered(&root, "259:3").expect("found");
        assert_eq!((one.numa_node, one.controllers.len(), one.queue_requests), (Some(1), 0, Some(1023)));
        // With links, which the archive lacks: if they are alike, they are the drive's.
        let port = |address: &str, width: &str| {
            let folder = guard.path().join(format!("sys/devices/pci{}/{address}", &address[..7]));
            std::fs::write(folder.join("current_link_width"), width).expect("written");
            std::fs::write(folder.join("current_link_speed"), "16.0 GT/s PCIe\n").expect("written");
        };
        port("052e:78:00.0", "2\n");
        port("058e:78:00.0", "2\n");
        let link = |root: &FilesystemRoot| Storage::numbered(root, "259:2").expect("found").link;
        assert_eq!((link(&root).width, link(&root).generation), (Some(2), Some(4)));
        port("058e:78:00.0", "1\n");
        assert!(link(&root).is_unknown());
    }

    #[test]
    fn the_buses_above_a_disk_name_its_kind() {
        for (name, path, expected) in [
            ("sda", "pci0000:00/0000:00:17.0/ata1/host0/target0:0:0/0:0:0:0/block/sda", StorageKind::Sata),
            ("sdb", "pci0000:00/0000:00:14.0/usb2/2-1/2-1:1.0/host6/block/sdb", StorageKind::Usb),
            ("sdc", "pci0000:80/0000:80:01.0/0000:81:00.0/host1/target1:0:0/block/sdc", StorageKind::Scsi),
            ("vda", "pci0000:00/0000:00:02.0/virtio1/block/vda", StorageKind::Virtual),
            ("sda", "pci0000:00/0000:00:05.0/virtio2/host0/block/sda", StorageKind::Virtual),
        ] {
            assert_eq!(kind(name, &Path::new("/sys/devices").join(path)), expected, "{path}");
        }
    }

    #[test]
    fn a_file_system_without_a_device_is_named_by_its_type() {
        let (_guard, root) = planted(&[(
            "proc/self/mountinfo",
            "22 1 254:0 / / rw shared:1 - ext4 /dev/vda rw\n30 22 0:25 / /mnt/a\\040b rw - tmpfs tmpfs rw\n31 22 0:26 / /net rw - nfs4 server:/x rw\n",
        )]);
        assert_eq!(Storage::mounted(&root, Path::new("/mnt/a b/c")).describe(), "tmpfs (memory)");
        assert_eq!(Storage::mounted(&root, Path::new("/net")).kind, StorageKind::Network);
        assert_eq!(Storage::mounted(&root, Path::new("/home")).name, "ext4");
    }

    #[test]
    fn this_machines_storage_has_a_name() {
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!Storage::under(&FilesystemRoot::system(), folder.path()).name.is_empty());
    }
}
