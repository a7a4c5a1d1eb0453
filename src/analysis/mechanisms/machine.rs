//! What the environment of a run says about the memory of its engines.

use crate::analysis::environment::{CpuCache, Environment};
use crate::settings::EngineName;

/// A cache that all of a device's processors share, or one core's own on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheLevel {
    pub level: u32,
    pub bytes: u64,
}

/// The memory of the device that an engine ran on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MachineMemory {
    /// The caches that hold a layer's numbers; empty where they are not known.
    pub caches: Vec<CacheLevel>,
    /// The threads that a CPU engine uses where the settings do not say.
    pub threads: Option<usize>,
    /// The rate that a plain copy reached in the run.
    pub bytes_per_s: Option<f64>,
    /// The engine's own limit on a convolution's scratch memory, where it has one.
    pub workspace_limit: Option<u64>,
}

impl MachineMemory {
    /// What the environment of a run says of an engine; what it lacks stays empty.
    pub fn of(environment: &Environment, engine: EngineName) -> Self {
        let Environment { engines, peaks, machine, .. } = environment;
        let Some(own) = engines.iter().find(|known| known.name == engine.name()) else { return Self::default() };
        let of_cpu = || {
            let holds = |cache: &&CpuCache| cache.level > 1 && cache.kind != "Instruction";
            let cache = |cache: &CpuCache| CacheLevel { level: cache.level, bytes: cache.size_bytes };
            machine.cpu.caches.iter().filter(holds).map(cache).collect()
        };
        let rates = peaks.iter().filter(|peak| peak.engine == engine.name()).map(|peak| peak.bytes_per_s);
        Self {
            caches: match own.device.as_str() {
                "cpu" => of_cpu(),
                _ => own.l2_bytes.map(|bytes| CacheLevel { level: 2, bytes }).into_iter().collect(),
            },
            threads: machine.cpu.logical_cores.filter(|_| own.device == "cpu"),
            bytes_per_s: rates.max_by(f64::total_cmp),
            workspace_limit: own.workspace_limit_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cpu_has_its_second_and_third_cache_and_a_gpu_its_second() {
        let text = r#"{"engines": [{"name": "cpu", "device": "cpu"},
            {"name": "cudnn", "device": "cuda:0", "l2_bytes": 4194304, "workspace_limit_bytes": 1073741824}],
            "peaks": [{"engine": "cpu", "precision": "fp32", "threads": 1, "flops_per_s": 1e11, "bytes_per_s": 2e10},
                      {"engine": "cpu", "precision": "fp32", "threads": 2, "flops_per_s": 2e11, "bytes_per_s": 3e10}],
            "machine": {"cpu": {"logical_cores": 4, "caches": [{"level": 1, "kind": "Data", "size_bytes": 49152, "shared_by": 1},
                {"level": 2, "kind": "Unified", "size_bytes": 1048576, "shared_by": 1},
                {"level": 3, "kind": "Unified", "size_bytes": 33554432, "shared_by": 2}]}}}"#;
        let environment = serde_json::from_str(text).expect("an environment");
        let cpu = MachineMemory::of(&environment, EngineName::Cpu);
        assert_eq!(
            cpu.caches.iter().map(|cache| (cache.level, cache.bytes)).collect::<Vec<_>>(),
            [(2, 1 << 20), (3, 32 << 20)]
        );
        assert_eq!((cpu.threads, cpu.bytes_per_s, cpu.workspace_limit), (Some(4), Some(3e10), None));
        let gpu = MachineMemory::of(&environment, EngineName::Cudnn);
        assert_eq!(gpu.threads, None);
        assert_eq!((gpu.caches[0].bytes, gpu.bytes_per_s, gpu.workspace_limit), (4 << 20, None, Some(1 << 30)));
        // An engine that did not run, and an environment that says nothing.
        assert_eq!(MachineMemory::of(&environment, EngineName::Torch), MachineMemory::default());
        assert_eq!(MachineMemory::of(&Environment::default(), EngineName::Cpu), MachineMemory::default());
    }
}
