//! What cuDNN's heuristics choose on GPUs that are only described, for every convolution of the study's networks and of the selftest: what is
//! refused is known before anyone meets it. docs/gpu-plans.md has the table, a part for each version of cuDNN; with `BATCHSTEP_WRITE_PLANS=1` the part
//! of the version that is loaded is written anew.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::{convolutions, described, described_gpu, networks};
use crate::device::cuda::libraries::{self, Library};
use crate::engine::cudnn::call::{Convolution, ConvolutionKind};
use crate::engine::cudnn::cuda::convolution::{Problem, Search};
use crate::engine::cudnn::element::{Element, Math};
use crate::selftest;
use crate::settings::Layout;

const WRITE: &str = "BATCHSTEP_WRITE_PLANS";

/// A GPU for cuDNN's CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION.
///
/// Shared memory, threads, blocks and registers of a multiprocessor are those of the compute capability in the CUDA programming guide; the
/// rest is of the data sheets (memory clocks: half of the data rate).
struct Described {
    name: &'static str,
    /// Compute capability times 100.
    version: usize,
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
const GPUS: [Described; 5] = [
    Described { name: "Tesla T4", version: 750, multiprocessors: 40, threads: 1024, blocks: 16, shared_bytes: 65_536, clock_khz: 1_590_000, memory_clock_khz: 5_001_000, bus_bits: 256, cache_bytes: 4 * MIB, memory_bytes: 15 * GIB },
    Described { name: "NVIDIA GeForce RTX 3090", version: 860, multiprocessors: 82, threads: 1536, blocks: 16, shared_bytes: 101_376, clock_khz: 1_695_000, memory_clock_khz: 9_751_000, bus_bits: 384, cache_bytes: 6 * MIB, memory_bytes: 24 * GIB },
    Described { name: "NVIDIA GeForce RTX 4090", version: 890, multiprocessors: 128, threads: 1536, blocks: 24, shared_bytes: 101_376, clock_khz: 2_520_000, memory_clock_khz: 10_501_000, bus_bits: 384, cache_bytes: 72 * MIB, memory_bytes: 24 * GIB },
    Described { name: "NVIDIA A100-SXM4-40GB", version: 800, multiprocessors: 108, threads: 2048, blocks: 32, shared_bytes: 166_912, clock_khz: 1_410_000, memory_clock_khz: 1_215_000, bus_bits: 5120, cache_bytes: 40 * MIB, memory_bytes: 40 * GIB },
    Described { name: "NVIDIA H100 80GB HBM3", version: 900, multiprocessors: 132, threads: 2048, blocks: 32, shared_bytes: 232_448, clock_khz: 1_980_000, memory_clock_khz: 2_619_000, bus_bits: 5120, cache_bytes: 50 * MIB, memory_bytes: 80 * GIB },
];

impl Described {
    fn json(&self) -> String {
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

/// A precision and a layout of the study.
struct Way {
    label: &'static str,
    element: Element,
    math: Math,
    layout: Layout,
    /// Compute capability times 100 from which the engine offers it.
    from: usize,
}

const fn way(label: &'static str, element: Element, math: Math, layout: Layout, from: usize) -> Way {
    Way { label, element, math, layout, from }
}

const WAYS: [Way; 6] = [
    way("fp32, nchw", Element::F32, Math::Fp32, Layout::Nchw, 0),
    way("tf32, nchw", Element::F32, Math::Tf32, Layout::Nchw, 800),
    way("tf32, nhwc", Element::F32, Math::Tf32, Layout::Nhwc, 800),
    way("fp16, nchw", Element::F16, Math::Half, Layout::Nchw, 0),
    way("fp16, nhwc", Element::F16, Math::Half, Layout::Nhwc, 0),
    way("bf16, nhwc", Element::Bf16, Math::Half, Layout::Nhwc, 800),
];

const DIRECTIONS: [ConvolutionKind; 3] =
    [ConvolutionKind::Forward, ConvolutionKind::BackwardData, ConvolutionKind::BackwardWeights];

/// Batch sizes on both sides of a jump of the study, and beyond.
const BATCH_SIZES: [usize; 4] = [1, 16, 17, 64];

/// What became of the searches of one GPU and one way.
#[derive(Default)]
struct Tally {
    asked: usize,
    heuristics: usize,
    fallbacks: usize,
    last_resorts: usize,
    refused: Vec<String>,
    algorithms: BTreeSet<String>,
    workspace_bytes: u64,
}

impl Tally {
    fn add(&mut self, problem: Problem<'_>) {
        self.asked += 1;
        let ready = match problem.first(&Search::default(), 1, &[]) {
            Ok(mut ready) => ready.remove(0),
            Err(error) => return self.refused.push(format!("{problem}: {error}")),
        };
        match ready.remark.as_deref() {
            None => self.heuristics += 1,
            Some(remark) if remark.contains("fallbacks") => self.fallbacks += 1,
            Some(_) => self.last_resorts += 1,
        }
        self.algorithms.insert(ready.algorithm.to_string());
        self.workspace_bytes = self.workspace_bytes.max(ready.executable.workspace_bytes());
    }

    fn row(&self, gpu: &Described, way: &Way) -> String {
        let Self { asked, heuristics, fallbacks, last_resorts, refused, algorithms, workspace_bytes } = self;
        let (name, label, refused, algorithms) = (gpu.name, way.label, refused.len(), algorithms.len());
        let mib = workspace_bytes.div_ceil(1 << 20);
        format!(
            "| {name} | {label} | {asked} | {heuristics} | {fallbacks} | {last_resorts} | {refused} | {algorithms} | {mib} |\n"
        )
    }
}

/// Every different convolution of the networks and of the selftest's operators.
fn all_convolutions(way: &Way) -> Vec<Convolution> {
    let (operators, networks) = (selftest::operators().unwrap(), networks());
    let small = operators.iter().flat_map(|network| [1, 4].map(|batch| (network.as_ref(), batch)));
    let large = networks.iter().flat_map(|network| BATCH_SIZES.map(|batch| (network, batch)));
    let (mut seen, mut all) = (HashSet::new(), Vec::new());
    for (network, batch) in small.chain(large) {
        for convolution in convolutions(network, batch, way.layout) {
            let convolution = Convolution { element: way.element, math: way.math, ..convolution };
            if seen.insert(convolution) {
                all.push(convolution);
            }
        }
    }
    all
}

/// Where the plan of a convolution of VGG16 changes along the batch: for each direction the batch sizes after which it does, with how many
/// of its nine different convolutions.
fn changes(gpu: &Described, way: &Way) -> String {
    let Some(device) = described_gpu(&gpu.json()) else { return String::new() };
    let vgg16 = &networks()[0];
    let mut text = format!("- {}, {}:", gpu.name, way.label);
    for (kind, words) in DIRECTIONS.into_iter().zip(["forward", "input gradients", "weight gradients"]) {
        let chosen = |batch: usize| -> Vec<String> {
            let all = convolutions(vgg16, batch, way.layout);
            let mut seen = HashSet::new();
            let different = all.into_iter().filter(|one| seen.insert(*one));
            let name = |convolution: Convolution| {
                let convolution = Convolution { element: way.element, math: way.math, ..convolution };
                let problem = Problem { convolution: &convolution, kind, target: described(&device) };
                let ready = problem.first(&Search::default(), 1, &[]);
                ready.map_or_else(|_| "none".to_owned(), |mut ready| ready.remove(0).algorithm.to_string())
            };
            different.map(name).collect()
        };
        let (mut last, mut after) = (chosen(1), BTreeMap::new());
        for batch in 2..=70 {
            let now = chosen(batch);
            let count = last.iter().zip(&now).filter(|(before, now)| before != now).count();
            if count > 0 {
                after.insert(batch - 1, count);
            }
            last = now;
        }
        let places: Vec<String> = after.iter().map(|(batch, count)| format!("{batch} ({count})")).collect();
        let places = if places.is_empty() { "none".to_owned() } else { places.join(", ") };
        let _ = write!(text, " {words} {places};");
    }
    text.pop();
    text.push_str(".\n");
    text
}

/// A part of docs/gpu-plans.md that is about the version of cuDNN that is loaded.
struct DocumentPart {
    path: PathBuf,
    version: String,
    heading: String,
}

impl DocumentPart {
    fn new(about: &str) -> Self {
        let found = libraries::load().found();
        let version =
            found.iter().find(|found| found.library == Library::Cudnn).and_then(|found| found.version.clone());
        let version = version.expect("cuDNN is loaded");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/gpu-plans.md");
        let heading = format!("## cuDNN {version}{about}\n");
        Self { path, version, heading }
    }

    /// With what comes before and after it.
    fn text(&self) -> (String, Option<(usize, usize)>) {
        let text = std::fs::read_to_string(&self.path).unwrap_or_default();
        let place = text.find(&self.heading).map(|at| {
            let start = at + self.heading.len();
            (start, text[start..].find("\n## ").map_or(text.len(), |len| start + len))
        });
        (text, place)
    }

    /// Writes it, where that is asked for.
    fn write(&self, new: impl FnOnce() -> String) -> bool {
        if std::env::var_os(WRITE).is_none() {
            return false;
        }
        let (mut text, place) = self.text();
        match place {
            Some((start, end)) => text.replace_range(start..end, &new()),
            None => text = format!("{text}\n{}{}", self.heading, new()),
        }
        std::fs::write(&self.path, text).unwrap();
        true
    }

    fn must_have(&self, table: &str) {
        let (text, place) = self.text();
        match place {
            Some((start, end)) => {
                let written = text[start..end].contains(table);
                assert!(written, "docs/gpu-plans.md has other rows; write it with {WRITE}=1:\n{table}");
            }
            None => {
                crate::needs::missing(
                    "cudnn-plans",
                    format!("docs/gpu-plans.md has no part for cuDNN {}", self.version),
                );
            }
        }
    }
}

#[test]
fn every_convolution_has_a_plan_on_five_gpus() {
    let mut table = String::new();
    for gpu in &GPUS {
        let Some(device) = described_gpu(&gpu.json()) else { return };
        for way in WAYS.iter().filter(|way| gpu.version >= way.from) {
            let mut tally = Tally::default();
            for convolution in all_convolutions(way) {
                for kind in DIRECTIONS {
                    tally.add(Problem { convolution: &convolution, kind, target: described(&device) });
                }
            }
            // In strict float32 the older calls, which want a GPU, are asked too.
            assert!(
                way.math == Math::Fp32 || tally.refused.is_empty(),
                "{}, {}: {:#?}",
                gpu.name,
                way.label,
                tally.refused
            );
            table.push_str(&tally.row(gpu, way));
        }
    }
    let part = DocumentPart::new("");
    let is_written = part.write(|| {
        let strict = GPUS.iter().map(|gpu| changes(gpu, &WAYS[0]));
        let tf32 = GPUS.iter().filter(|gpu| gpu.version >= WAYS[1].from).map(|gpu| changes(gpu, &WAYS[1]));
        let changes: String = strict.chain(tf32).collect();
        format!(
            "\n{HEAD}{table}\nBatch sizes after which the plan of a convolution of VGG16 changes (of how many of its nine):\n\n{changes}"
        )
    });
    if !is_written {
        part.must_have(&table);
    }
}

/// The forward convolutions as the engine asks first, in one call with bias and ReLU: where nothing is proposed for that, it makes two.
#[test]
fn bias_and_relu_are_one_call_with_the_convolution_where_cudnn_has_one() {
    let mut table = String::from(
        "| GPU | precision, layout | convolutions | one call | two: a fallback, which is not taken | two: nothing computes it |\n\
         |---|---|---|---|---|---|\n",
    );
    for gpu in &GPUS {
        let Some(device) = described_gpu(&gpu.json()) else { return };
        for way in WAYS.iter().filter(|way| gpu.version >= way.from) {
            let mut tally = Tally::default();
            for convolution in all_convolutions(way) {
                let kind = ConvolutionKind::ForwardBiasRelu;
                tally.add(Problem { convolution: &convolution, kind, target: described(&device) });
            }
            let Tally { asked, heuristics, refused, .. } = tally;
            let (others, none) = (asked - heuristics - refused.len(), refused.len());
            let _ = writeln!(table, "| {} | {} | {asked} | {heuristics} | {others} | {none} |", gpu.name, way.label);
        }
    }
    let part = DocumentPart::new(", with bias and ReLU");
    if !part.write(|| format!("\n{table}")) {
        part.must_have(&table);
    }
}

const HEAD: &str = "| GPU | precision, layout | convolutions | by the heuristics | a fallback | a last resort | none without a GPU | algorithms | largest workspace, MiB |\n|---|---|---|---|---|---|---|---|---|\n";
