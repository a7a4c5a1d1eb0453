//! What cuDNN's heuristics choose on GPUs that are only described, for every convolution of the study's networks and of
//! the selftest. So refusals are known before a user meets them. docs/gpu-plans.md has the tables, a part for each
//! version of cuDNN; with `BATCHSTEP_WRITE_PLANS=1` the part for the loaded version is written anew, for all five GPUs, which takes minutes.
//! The oldest and the newest are compared with it in each run of the tests.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write as _;

use super::document::DocumentPart;
use super::gpus::{Described, GPUS};
use super::{convolutions, described, described_gpu, networks};
use crate::check::selftest;
use crate::engine::Settings;
use crate::engine::cudnn::call::{Convolution, ConvolutionKind};
use crate::engine::cudnn::cuda::convolution::{Problem, Search};
use crate::engine::cudnn::element::{Element, Math};
use crate::network::Network;
use crate::settings::{Layout, Optimizer, Precision};

/// A precision and a layout.
#[derive(Clone, Copy)]
struct PrecisionAndLayout(Precision, Layout);

const WAYS: [PrecisionAndLayout; 8] = [
    PrecisionAndLayout(Precision::Fp32, Layout::Nchw),
    PrecisionAndLayout(Precision::Fp32, Layout::Nhwc),
    PrecisionAndLayout(Precision::Tf32, Layout::Nchw),
    PrecisionAndLayout(Precision::Tf32, Layout::Nhwc),
    PrecisionAndLayout(Precision::Fp16, Layout::Nchw),
    PrecisionAndLayout(Precision::Fp16, Layout::Nhwc),
    PrecisionAndLayout(Precision::Bf16, Layout::Nchw),
    PrecisionAndLayout(Precision::Bf16, Layout::Nhwc),
];

impl PrecisionAndLayout {
    /// Whether the engine offers it on such a GPU.
    fn is_on(self, gpu: &Described) -> bool {
        gpu.version >= 800 || matches!(self.0, Precision::Fp32 | Precision::Fp16)
    }

    fn label(self) -> String {
        format!("{} {}", self.0, self.1)
    }

    /// Every convolution of a network in this way.
    fn convolutions(self, network: &Network, batch: usize) -> impl Iterator<Item = Convolution> {
        let (element, math) = (Element::of(self.0), Math::of(self.0));
        convolutions(network, batch, self.1).into_iter().map(move |convolution| Convolution {
            element,
            math,
            ..convolution
        })
    }

    /// Every different convolution of the networks and of the selftest.
    fn all_convolutions(self) -> Vec<Convolution> {
        let settings = Settings {
            optimizer: Optimizer::Sgd,
            precision: self.0,
            layout: self.1,
            learning_rate: 1e-3,
            seed: 3,
            ..Settings::default()
        };
        let checks = selftest::workloads(&settings).unwrap();
        let checks = checks.iter().map(|workload| (workload.network.as_ref(), workload.batch_size));
        let networks = networks();
        let large = networks.iter().flat_map(|network| BATCH_SIZES.map(|batch| (network, batch)));
        let mut seen = HashSet::new();
        let all = checks.chain(large).flat_map(|(network, batch)| self.convolutions(network, batch));
        all.filter(|convolution| seen.insert(*convolution)).collect()
    }
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
fn changes(gpu: &Described, way: PrecisionAndLayout) -> String {
    let Some(device) = described_gpu(&gpu.json()) else { return String::new() };
    let vgg16 = &networks()[0];
    let mut text = format!("| {} | {} |", gpu.name, way.label());
    for (kind, _) in DIRECTIONS {
        let chosen = |batch: usize| -> Vec<String> {
            let mut seen = HashSet::new();
            let different = way.convolutions(vgg16, batch).filter(|one| seen.insert(*one));
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
fn every_convolution_has_a_plan_on_every_gpu() {
    let (mut rows, mut left_over, mut refused) = (String::new(), String::new(), String::new());
    let [oldest, .., newest] = &GPUS;
    let gpus = if DocumentPart::is_asked() { GPUS.iter().collect() } else { vec![oldest, newest] };
    for &gpu in &gpus {
        let Some(device) = described_gpu(&gpu.json()) else { return };
        for way in WAYS.into_iter().filter(|way| way.is_on(gpu)) {
            let (mut apart, mut fused) = (Tally::default(), Tally::default());
            for convolution in &way.all_convolutions() {
                let problem = |kind| Problem { convolution, kind, target: described(&device) };
                DIRECTIONS.iter().for_each(|&(kind, direction)| apart.add(problem(kind), direction));
                fused.add(problem(ConvolutionKind::ForwardBiasRelu), "forward");
            }
            // In strict float32 the older calls are asked too, and they need a GPU.
            let none = &apart.refused;
            assert!(way.0 == Precision::Fp32 || none.is_empty(), "{}, {}: {none:#?}", gpu.name, way.label());
            let (name, label) = (gpu.name, way.label());
            let Tally { asked, heuristics, fallbacks, last_resorts, algorithms, workspace_bytes, .. } = &apart;
            let (algorithms, mib) = (algorithms.len(), workspace_bytes.div_ceil(1 << 20));
            let two = fused.asked - fused.heuristics;
            let _ = writeln!(
                rows,
                "| {name} | {label} | {asked} | {heuristics} | {fallbacks} | {last_resorts} | {} | {} of {} | {algorithms} | {mib} |",
                none.len(),
                two,
                fused.asked
            );
            if !apart.left_over.is_empty() {
                let kinds: Vec<String> =
                    apart.left_over.iter().map(|(kind, count)| format!("{kind} ({count})")).collect();
                let _ = writeln!(left_over, "- {name}, {label}: {}.", kinds.join(", "));
            }
            none.iter().for_each(|what| {
                let _ = writeln!(refused, "- {name}, {label}: {what}");
            });
        }
    }
    let or_none = |text: String| if text.is_empty() { "None.\n".to_owned() } else { text };
    let tables = format!(
        "{HEAD}{rows}\nNot by the heuristics:\n\n{}\nNone without a GPU:\n\n{}",
        or_none(left_over),
        or_none(refused)
    );
    let part = DocumentPart::new();
    if !DocumentPart::is_asked() {
        return part.must_have(&tables, &gpus, CHANGES);
    }
    let on = |way: PrecisionAndLayout| GPUS.iter().filter(move |gpu| way.is_on(gpu)).map(move |gpu| changes(gpu, way));
    let changes: String = [Precision::Fp32, Precision::Tf32]
        .map(|p| PrecisionAndLayout(p, Layout::Nchw))
        .into_iter()
        .flat_map(on)
        .collect();
    part.write(&format!("\n{tables}\n{CHANGES}{changes}"));
}

const HEAD: &str = "| GPU | way | convolutions | by the heuristics | a fallback | a last resort | none without a GPU | two calls with bias and ReLU | algorithms | largest workspace, MiB |\n|---|---|---|---|---|---|---|---|---|---|\n";

const CHANGES: &str = "Batch sizes, of 1 to 69, after which the plan of a convolution of VGG16 changes: how many, and those near a jump of the study (with how many of its nine):\n\n\
                       | GPU | way | forward | input gradients | weight gradients |\n|---|---|---|---|---|\n";
