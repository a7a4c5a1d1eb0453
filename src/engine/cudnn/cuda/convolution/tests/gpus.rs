//! Descriptions, for cuDNN, of GPUs that are not present.

/// A GPU for cuDNN's CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION.
///
/// Shared memory, threads, blocks and registers of a multiprocessor are those of the compute capability in the CUDA
/// programming guide; the rest is from the data sheets (memory clocks: half of the data rate).
pub struct Described {
    pub name: &'static str,
    /// Compute capability times 100.
    pub version: usize,
    multiprocessors: usize,
    threads: usize,
    blocks: usize,
    shared_bytes: usize,
    clock_khz: usize,
    memory_clock_khz: usize,
    bus_bits: usize,
    cache_bytes: usize,
    memory_bytes: usize,
}

const MIB: usize = 1 << 20;
const GIB: usize = 1 << 30;

#[rustfmt::skip]
pub const GPUS: [Described; 5] = [
    Described { name: "Tesla T4", version: 750, multiprocessors: 40, threads: 1024, blocks: 16, shared_bytes: 65_536, clock_khz: 1_590_000, memory_clock_khz: 5_001_000, bus_bits: 256, cache_bytes: 4 * MIB, memory_bytes: 15 * GIB },
    Described { name: "NVIDIA GeForce RTX 3090", version: 860, multiprocessors: 82, threads: 1536, blocks: 16, shared_bytes: 101_376, clock_khz: 1_695_000, memory_clock_khz: 9_751_000, bus_bits: 384, cache_bytes: 6 * MIB, memory_bytes: 24 * GIB },
    Described { name: "NVIDIA GeForce RTX 4090", version: 890, multiprocessors: 128, threads: 1536, blocks: 24, shared_bytes: 101_376, clock_khz: 2_520_000, memory_clock_khz: 10_501_000, bus_bits: 384, cache_bytes: 72 * MIB, memory_bytes: 24 * GIB },
    Described { name: "NVIDIA A100-SXM4-40GB", version: 800, multiprocessors: 108, threads: 2048, blocks: 32, shared_bytes: 166_912, clock_khz: 1_410_000, memory_clock_khz: 1_215_000, bus_bits: 5120, cache_bytes: 40 * MIB, memory_bytes: 40 * GIB },
    Described { name: "NVIDIA H100 80GB HBM3", version: 900, multiprocessors: 132, threads: 2048, blocks: 32, shared_bytes: 232_448, clock_khz: 1_980_000, memory_clock_khz: 2_619_000, bus_bits: 5120, cache_bytes: 50 * MIB, memory_bytes: 80 * GIB },
];

#[rustfmt::skip]
pub const H200: Described = Described { name: "NVIDIA H200", version: 900, multiprocessors: 132, threads: 2048, blocks: 32, shared_bytes: 232_448, clock_khz: 1_980_000, memory_clock_khz: 3_201_000, bus_bits: 6144, cache_bytes: 60 * MIB, memory_bytes: 150_000_000_000 };

impl Described {
    pub fn json(&self) -> String {
        let reserved = if self.version >= 800 { 1024 } else { 0 };
        serde_json::json!({
            "deviceName": self.name, "deviceVer": self.version, "driverVer": 12_090, "runtimeVer": 12_090, "cudaDeviceId": 0,
            "maxGridSize": [2_147_483_647, 65_535, 65_535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65_536,
            "multiProcessorCount": self.multiprocessors, "smCountOrigin": 0, "warpSize": 32, "maxSharedMemoryPerBlock": 49_152,
            "maxSharedMemoryPerBlockOptin": self.shared_bytes, "oversizedSharedMemoryPerBlock": 0,
            "reservedSharedMemoryPerBlock": reserved, "maxRegistersPerSM": 65_536, "maxCtasPerSM": self.blocks,
            "maxThreadsPerBlock": 1024, "maxThreadsPerSM": self.threads, "pciDeviceId": 0, "isTccDriver": 0,
            "supportCoopLaunch": 1, "smClockRateKHz": self.clock_khz, "memClockRateKHz": self.memory_clock_khz,
            "memoryBusWidth": self.bus_bits, "l2CacheSize": self.cache_bytes, "totalGlobalMem": self.memory_bytes,
        })
        .to_string()
    }
}
