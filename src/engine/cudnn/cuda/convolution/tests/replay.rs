//! What cuDNN's heuristics choose on GPUs that are only described, for every convolution of the study's networks and of
//! the selftest. So refusals are known before a user meets them. docs/gpu-plans.md has the tables, a part for each
//! version of cuDNN; with `BATCHSTEP_WRITE_PLANS=1` the part for the loaded version is written anew, for all five GPUs, which takes minutes.
//! The oldest and the newest are compared with it in each run of the tests.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;
use std::path::Path;

use super::gpus::{Described, GPUS};
use super::{convolutions, described, described_gpu, networks};
use crate::check::selftest;
use crate::device::cuda::libraries::{self, Library};
use crate::engine::Settings;
use crate::engine::cudnn::call::{Convolution, ConvolutionKind};
use crate::engine::cudnn::cuda::convolution::{Problem, Search};
use crate::engine::cudnn::element::{Element, Math};
use crate::network::Network;
use crate::settings::{Layout, Optimizer, Precision};

/// If this variable is set, the part for the loaded version is written instead of compared.
const WRITE: &str = "BATCHSTEP_WRITE_PLANS";

type Way = (Precision, Layout);

/// The precisions and layouts that the engine offers on such a GPU.
fn ways(gpu: &Described) -> impl Iterator<Item = Way> {
    let has_all = gpu.version >= 800;
    let precisions = [Precision::Fp32, Precision::Tf32, Precision::Fp16, Precision::Bf16].into_iter();
    let precisions =
        precisions.filter(move |precision| has_all || matches!(precision, Precision::Fp32 | Precision::Fp16));
    precisions.flat_map(|precision| [Layout::Nchw, Layout::Nhwc].map(|layout| (precision, layout)))
}

/// Every convolution of a network in one way.
fn convolutions_in((precision, layout): Way, network: &Network, batch: usize) -> impl Iterator<Item = Convolution> {
    let (element, math) = (Element::of(precision), Math::of(precision));
    let all = convolutions(network, batch, layout).into_iter();
    all.map(move |convolution| Convolution { element, math, ..convolution })
}

/// Every different convolution of the networks and of the selftest.
fn all_convolutions(way: Way) -> Vec<Convolution> {
    let (precision, layout) = way;
    let (optimizer, learning_rate, seed) = (Optimizer::Sgd, 1e-3, 3);
    let settings = Settings { optimizer, precision, layout, learning_rate, seed, ..Settings::default() };
    let checks = selftest::workloads(&settings).unwrap();
    let checks = checks.iter().map(|workload| (workload.network.as_ref(), workload.batch_size));
    let networks = networks();
    let large = networks.iter().flat_map(|network| BATCH_SIZES.map(|batch| (network, batch)));
    let mut seen = HashSet::new();
    let all = checks.chain(large).flat_map(|(network, batch)| convolutions_in(way, network, batch));
    all.filter(|convolution| seen.insert(*convolution)).collect()
}

const DIRECTIONS: [(ConvolutionKind, &str); 3] = [
    (ConvolutionKind::Forward, "forward"),
    (ConvolutionKind::BackwardData, "input gradient"),
    (ConvolutionKind::BackwardWeights, "weight gradient"),
];

/// Batch sizes on both sides of a jump of the study, and beyond.
const BATCH_SIZES: [usize; 4] = [1, 16, 17, 64];

/// Where the study found jumps, and one before.
const PLACES: [usize; 8] = [15, 16, 31, 32, 47, 48, 63, 64];

/// The results of the searches for one GPU and one way.
#[derive(Default)]
struct Tally {
    asked: usize,
    heuristics: usize,
    fallbacks: usize,
    last_resorts: usize,
    refused: Vec<String>,
    /// Convolutions that the heuristics leave over, by their kind.
    left_over: BTreeMap<String, usize>,
    algorithms: BTreeSet<String>,
    workspace_bytes: u64,
}

impl Tally {
    fn add(&mut self, problem: Problem<'_>, direction: &str) {
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
        if ready.remark.is_some() {
            let Convolution { kernel, stride, groups, .. } = *problem.convolution;
            let (kernel, stride) = (format!("{}x{}", kernel.height, kernel.width), stride.height);
            let grouped = if groups > 1 { ", in groups" } else { "" };
            *self.left_over.entry(format!("{direction} of {kernel} stride {stride}{grouped}")).or_default() += 1;
        }
        self.algorithms.insert(ready.algorithm.to_string());
        self.workspace_bytes = self.workspace_bytes.max(ready.workspace_bytes());
    }
}

/// Where the plan of VGG16's convolutions changes with the batch size. For each direction: at how many batch sizes, and
/// at which of [`PLACES`] for how many of the nine different convolutions.
fn changes(gpu: &Described, way: Way) -> String {
    let Some(device) = described_gpu(&gpu.json()) else { return String::new() };
    let vgg16 = &networks()[0];
    let mut text = format!("| {} | {} {} |", gpu.name, way.0, way.1);
    for (kind, _) in DIRECTIONS {
        let chosen = |batch: usize| -> Vec<String> {
            let mut seen = HashSet::new();
            let different = convolutions_in(way, vgg16, batch).filter(|one| seen.insert(*one));
            let name = |convolution: Convolution| {
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
        let places = PLACES.iter().filter_map(|place| Some(format!("{place} ({})", after.get(place)?)));
        let places: Vec<String> = places.collect();
        let places = if places.is_empty() { String::new() } else { format!(": {}", places.join(", ")) };
        let _ = write!(text, " {}{places} |", after.len());
    }
    text.push('\n');
    text
}

#[test]
#[ignore = "slow"]
fn every_convolution_has_a_plan_on_every_gpu() {
    let (mut rows, mut left_over, mut refused) = (String::new(), String::new(), String::new());
    let is_written = std::env::var_os(WRITE).is_some();
    let [oldest, .., newest] = &GPUS;
    let gpus = if is_written { GPUS.iter().collect() } else { vec![oldest, newest] };
    for &gpu in &gpus {
        let Some(device) = described_gpu(&gpu.json()) else { return };
        for way in ways(gpu) {
            let (mut apart, mut fused) = (Tally::default(), Tally::default());
            for convolution in &all_convolutions(way) {
                let problem = |kind| Problem { convolution, kind, target: described(&device) };
                DIRECTIONS.iter().for_each(|&(kind, direction)| apart.add(problem(kind), direction));
                fused.add(problem(ConvolutionKind::ForwardBiasRelu), "forward");
            }
            let at = format!("{}, {} {}", gpu.name, way.0, way.1);
            let Tally { asked, heuristics, fallbacks, last_resorts, refused: none, .. } = &apart;
            // In strict float32 the older calls are asked too, and they need a GPU.
            assert!(way.0 == Precision::Fp32 || none.is_empty(), "{at}: {none:#?}");
            let (algorithms, mib) = (apart.algorithms.len(), apart.workspace_bytes.div_ceil(1 << 20));
            let (two, of) = (fused.asked - fused.heuristics, fused.asked);
            let (cells, none_left) = (at.replace(", ", " | "), none.len());
            let _ = writeln!(
                rows,
                "| {cells} | {asked} | {heuristics} | {fallbacks} | {last_resorts} | {none_left} | {two} of {of} | {algorithms} | {mib} |"
            );
            if !apart.left_over.is_empty() {
                let kinds = apart.left_over.iter().map(|(kind, count)| format!("{kind} ({count})"));
                let _ = writeln!(left_over, "- {at}: {}.", Vec::from_iter(kinds).join(", "));
            }
            refused.extend(none.iter().map(|what| format!("- {at}: {what}\n")));
        }
    }
    let or_none = |text: String| if text.is_empty() { "None.\n".to_owned() } else { text };
    let (left_over, refused) = (or_none(left_over), or_none(refused));
    let tables = format!("{HEAD}{rows}\nNot by the heuristics:\n\n{left_over}\nNone without a GPU:\n\n{refused}");

    // The page has a part for each version of cuDNN.
    let version = libraries::load().get(Library::Cudnn).and_then(|found| found.version.clone());
    let heading = format!("## cuDNN {}\n", version.expect("cuDNN is loaded"));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/gpu-plans.md");
    let mut page = std::fs::read_to_string(&path).unwrap();
    let place = page.find(&heading).map(|at| {
        let start = at + heading.len();
        start..page[start..].find("\n## ").map_or(page.len(), |length| start + length)
    });
    if is_written {
        let of_all = |precision| {
            let able = GPUS.iter().filter(move |gpu| ways(gpu).any(|way| way.0 == precision));
            able.map(move |gpu| changes(gpu, (precision, Layout::Nchw)))
        };
        let changes: String = [Precision::Fp32, Precision::Tf32].into_iter().flat_map(of_all).collect();
        let part = format!("\n{tables}\n{CHANGES}{changes}");
        match place {
            Some(place) => page.replace_range(place, &part),
            None => page += &format!("\n{heading}{part}"),
        }
        return std::fs::write(&path, page).unwrap();
    }
    let Some(place) = place else {
        return crate::needs::missing("cudnn-plans", format!("docs/gpu-plans.md has no part {heading}"));
    };
    let about = |text: &str| -> Vec<String> {
        let lines = text.lines().filter(|line| gpus.iter().any(|gpu| line.contains(gpu.name)));
        lines.map(str::to_owned).collect()
    };
    let written = about(page[place].split(CHANGES).next().unwrap_or_default());
    assert_eq!(about(&tables), written, "docs/gpu-plans.md has other rows; write it with {WRITE}=1");
}

const HEAD: &str = "| GPU | way | convolutions | by the heuristics | a fallback | a last resort | none without a GPU | two calls with bias and ReLU | algorithms | largest workspace, MiB |\n|---|---|---|---|---|---|---|---|---|---|\n";

const CHANGES: &str = "Batch sizes, of 1 to 69, after which the plan of a convolution of VGG16 changes: how many, and those near a jump of the study (with how many of its nine):\n\n\
                       | GPU | way | forward | input gradients | weight gradients |\n|---|---|---|---|---|\n";
