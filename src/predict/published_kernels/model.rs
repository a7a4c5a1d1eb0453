//! The time of a convolution from its kernel and its sizes: a sum of a few terms, each in seconds by the GPU's nominal rates, with
//! factors >= 0 fitted to the relative errors of published times.

use std::collections::BTreeMap;

use super::{GpuFigures, LayerLaunch, Published};
use crate::analysis::mechanisms::formulas::{Family, Kernel, LayerSizes, WINOGRAD_BATCH, rounds};
use crate::predict::model::{fitted, sum};

/// Launches below which a kernel's factors are not fitted.
pub const FEWEST: usize = 40;

/// The start of a kernel: the unit of the constant term.
const LAUNCH_S: f64 = 1e-5;

const FLOAT: f64 = 4.0;

/// What a model takes into account; without, it is there for comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assumptions {
    /// That non-fused Winograd pads the batch to 16.
    pub padding: bool,
    /// That a round of blocks takes as long whether or not it fills all multiprocessors.
    pub rounds: bool,
}

impl Assumptions {
    pub const BOTH: Self = Self { padding: true, rounds: true };
}

/// The start; the blocks' arithmetic; the traffic of input, output and filters.
const TERMS: usize = 5;

/// The terms of a layer at one batch size, in seconds. Dense layers have none: they are left out of the model.
fn terms(
    kernel: Kernel,
    layer: &LayerSizes,
    batch: usize,
    gpu: &GpuFigures,
    assumed: Assumptions,
) -> Option<[f64; TERMS]> {
    let (inputs, outputs) = (layer.inputs as f64, layer.outputs as f64);
    let pixels = (batch * layer.height * layer.width) as f64;
    let padding = if assumed.padding { WINOGRAD_BATCH } else { 1 };
    let grid = kernel.grid_padded(layer, batch, padding);
    let blocks: usize = grid.into_iter().product();
    // Multiply-adds of a block, and numbers moved for input, output and filters.
    let (block, input, output, filters) = match kernel {
        Kernel::NonFusedWinograd(tile) => {
            let tiles = (batch.next_multiple_of(padding) * layer.height.div_ceil(4) * layer.width.div_ceil(4)) as f64;
            let moved = |channels: f64| channels * (pixels + 36.0 * tiles);
            ((tile.first * tile.second) as f64 * inputs, moved(inputs), moved(outputs), 36.0 * inputs * outputs)
        }
        // 32 channels by 32 tiles of 16 components.
        Kernel::FusedWinograd { .. } => {
            (32.0 * 32.0 * 16.0 * inputs, pixels * inputs, pixels * outputs, 16.0 * inputs * outputs)
        }
        Kernel::ImplicitProduct(tile) => {
            let block = (tile.first * tile.second * 9) as f64 * inputs;
            (block, pixels * inputs, pixels * outputs, 9.0 * inputs * outputs)
        }
        Kernel::Dense(_) => return None,
    };
    let processors = gpu.multiprocessors as f64;
    let passes = if assumed.rounds { rounds(blocks, gpu.multiprocessors) as f64 } else { blocks as f64 / processors };
    let arithmetic = passes * 2.0 * block * processors / gpu.flops_per_s;
    let [input, output, filters] = [input, output, filters].map(|numbers| FLOAT * numbers / gpu.bytes_per_s);
    Some([LAUNCH_S, arithmetic, input, output, filters])
}

/// Factors for each kernel, or family where there are too few launches of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelModel {
    assumed: Assumptions,
    kernels: BTreeMap<Kernel, [f64; TERMS]>,
    families: BTreeMap<Family, [f64; TERMS]>,
}

fn fit_each<K: Ord>(rows: BTreeMap<K, Vec<[f64; TERMS]>>) -> BTreeMap<K, [f64; TERMS]> {
    rows.into_iter().filter(|(_, rows)| rows.len() >= FEWEST).map(|(of, rows)| (of, fitted(&rows))).collect()
}

impl KernelModel {
    /// Fits a model to the convolutions among `launches`, of one GPU or several.
    pub fn fit<'a>(
        published: &Published,
        launches: impl IntoIterator<Item = &'a LayerLaunch>,
        assumed: Assumptions,
    ) -> Self {
        let mut by_kernel: BTreeMap<Kernel, Vec<[f64; TERMS]>> = BTreeMap::new();
        let mut by_family: BTreeMap<Family, Vec<[f64; TERMS]>> = BTreeMap::new();
        for launch in launches {
            let Some(kernel) = launch.kernel else { continue };
            let gpu = &published.gpus[launch.gpu];
            let Some(terms) = terms(kernel, &launch.layer, launch.batch, gpu, assumed) else { continue };
            let shares = terms.map(|term| term / launch.time_s);
            by_kernel.entry(kernel).or_default().push(shares);
            by_family.entry(kernel.family()).or_default().push(shares);
        }
        Self { assumed, kernels: fit_each(by_kernel), families: fit_each(by_family) }
    }

    /// Seconds of a layer computed by `kernel`; `None` where nothing like it was fitted.
    pub fn time(&self, kernel: Kernel, layer: &LayerSizes, batch: usize, gpu: &GpuFigures) -> Option<f64> {
        let factors = self.kernels.get(&kernel).or_else(|| self.families.get(&kernel.family()))?;
        let terms = terms(kernel, layer, batch, gpu, self.assumed)?;
        Some(sum(&terms, factors))
    }

    pub fn kernels(&self) -> impl Iterator<Item = Kernel> + '_ {
        self.kernels.keys().copied()
    }

    /// The fitted kernel that computes a layer fastest, as a search over all of them would choose it, with its seconds.
    pub fn fastest(&self, layer: &LayerSizes, batch: usize, gpu: &GpuFigures) -> Option<(Kernel, f64)> {
        let timed = self.kernels().filter_map(|kernel| Some((kernel, self.time(kernel, layer, batch, gpu)?)));
        timed.min_by(|a, b| a.1.total_cmp(&b.1))
    }
}
