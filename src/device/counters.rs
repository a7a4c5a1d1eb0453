//! Which hardware counters this process may open: cycles and instructions distinguish work from clock on a CPU.
//!
//! Source: perf_event_open(2), tried for each counter on this process in user space and closed again;
//! `/proc/sys/kernel/perf_event_paranoid` says what an ordinary user may.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use serde::{Deserialize, Serialize};

use super::root::FilesystemRoot;

/// What perf_event_open allows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    pub cycles: bool,
    pub instructions: bool,
    /// Why cycles cannot be counted, in the words of the operating system.
    pub refused: Option<String>,
    /// Up to 2 an ordinary user may count in user space (Documentation/admin-guide/sysctl/kernel.rst); Debian and Ubuntu
    /// add 3 and 4, which forbid it.
    pub paranoid: Option<i32>,
}

impl Counters {
    /// Tries them on this machine; the paranoia is read from `root`.
    pub fn probe(root: &FilesystemRoot) -> Self {
        let cycles = open(CYCLES);
        Self {
            instructions: open(INSTRUCTIONS).is_ok(),
            refused: cycles.as_ref().err().map(describe),
            cycles: cycles.is_ok(),
            paranoid: root.number("/proc/sys/kernel/perf_event_paranoid"),
        }
    }
}

/// `PERF_TYPE_HARDWARE` and its counters `PERF_COUNT_HW_*`, from linux/perf_event.h.
const HARDWARE: u32 = 0;
const CYCLES: u64 = 0;
const INSTRUCTIONS: u64 = 1;
/// Bits of `struct perf_event_attr`: disabled, exclude_kernel, exclude_hv.
const DISABLED_IN_USER_SPACE: u64 = 1 | 1 << 5 | 1 << 6;
/// `PERF_FLAG_FD_CLOEXEC`.
const CLOSE_ON_EXEC: libc::c_ulong = 8;

/// The first published `struct perf_event_attr` (64 bytes, `PERF_ATTR_SIZE_VER0`), which every kernel understands.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    breakpoint_type: u32,
    breakpoint_address: u64,
}

fn open(config: u64) -> io::Result<OwnedFd> {
    let size = size_of::<Attributes>() as u32;
    let attributes =
        Attributes { kind: HARDWARE, size, config, flags: DISABLED_IN_USER_SPACE, ..Attributes::default() };
    let (this_process, any_cpu, no_group): (libc::pid_t, libc::c_int, libc::c_int) = (0, -1, -1);
    // SAFETY: the attributes outlive the call, and their size is passed along; the kernel only reads them.
    let descriptor = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const attributes, this_process, any_cpu, no_group, CLOSE_ON_EXEC)
    };
    match i32::try_from(descriptor) {
        // SAFETY: the kernel has just given this descriptor to nobody but us.
        Ok(descriptor) if descriptor >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(descriptor) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn describe(error: &io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::ENOENT | libc::EOPNOTSUPP | libc::ENODEV) => {
            "this machine, most likely a virtual one, has no such counter".into()
        }
        Some(libc::ENOSYS) => "this kernel was built without performance events".into(),
        Some(libc::EACCES | libc::EPERM) => "the kernel, or the container, does not permit it".into(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::root::tests::planted;

    #[test]
    fn the_attributes_have_the_size_that_every_kernel_knows() {
        assert_eq!(size_of::<Attributes>(), 64);
    }

    #[test]
    fn the_probe_answers_and_never_fails() {
        let (_guard, root) = planted(&[("proc/sys/kernel/perf_event_paranoid", "4\n")]);
        let counters = Counters::probe(&root);
        assert_eq!(counters.paranoid, Some(4));
        assert_eq!(counters.refused.is_none(), counters.cycles);
    }

    #[test]
    fn a_refusal_is_explained_in_words() {
        assert!(describe(&io::Error::from_raw_os_error(libc::EACCES)).contains("permit"));
        assert!(describe(&io::Error::from_raw_os_error(libc::ENOENT)).contains("virtual"));
    }
}
