//! The processor: its name, and how many threads a process may use of it.

use std::fs;

use crate::engine::DeviceName;

/// The name that the processor reports, or `CPU` if it reports none.
pub fn device_name() -> DeviceName {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = model_name(&cpuinfo).unwrap_or("CPU").to_owned();
    DeviceName { id: "cpu".to_owned(), name, multiprocessors: None }
}

/// The cores that this process may use; 1 where the system does not say.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// x86 writes `model name : ...`; most Arm kernels write no name.
fn model_name(cpuinfo: &str) -> Option<&str> {
    let fields = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    let mut names = fields.filter(|(key, _)| key.trim() == "model name").map(|(_, value)| value.trim());
    names.find(|name| !name.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_read_from_cpuinfo() {
        let x86 = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel\t\t: 143\nmodel name\t: Intel(R) Xeon(R) Platinum 8480C\n";
        assert_eq!(model_name(x86), Some("Intel(R) Xeon(R) Platinum 8480C"));
        assert_eq!(model_name("processor\t: 0\nCPU implementer\t: 0x41\n"), None);
    }
}
