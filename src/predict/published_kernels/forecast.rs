//! What the published times predict for the forward convolutions of a network.

use super::model::{Assumptions, FEWEST, KernelModel};
use super::validation::convolutions;
use super::{GpuFigures, Published};
use crate::analysis::mechanisms::formulas::{Family, Kernel, KnownOperation, LayerSizes, WINOGRAD_BATCH};
use crate::error::{Error, Result};
use crate::network::Network;
use crate::stats::quantile::median;

/// The forecast times of a network's convolutions at each batch size from 1 on.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    pub network: String,
    pub gpu: GpuFigures,
    pub layers: Vec<LayerForecast>,
    /// The layers with arithmetic that the published times say nothing about.
    pub left_out: Vec<String>,
    /// The share of the network's multiply-adds that the forecast layers have.
    pub share: f64,
    /// The smallest and the largest batch size among the published times; beyond them the forecast extrapolates, and steps below the
    /// smallest are not given.
    pub smallest_batch: usize,
    pub largest_batch: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LayerForecast {
    pub name: String,
    /// From batch size 1 on.
    pub times: Vec<Timed>,
}

/// The fastest kernel of a layer at one batch size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timed {
    pub kernel: Kernel,
    pub seconds: f64,
}

/// Where the forecast time of all layers grows by more than its slope.
#[derive(Clone, Debug, PartialEq)]
pub struct ForecastStep {
    pub after: usize,
    /// Beyond the median growth from one batch size to the next.
    pub size_s: f64,
    /// The share of the time before it.
    pub relative: f64,
    /// The layers that contribute a hundredth of it or more; the largest first.
    pub layers: Vec<LayerStep>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct LayerStep {
    pub layer: String,
    pub size_s: f64,
    pub before: Kernel,
    pub behind: Kernel,
    pub reason: &'static str,
}

/// The forward convolutions of `network` on the GPU in place `gpu`, at batch sizes 1 to `largest`.
///
/// # Errors
/// [`crate::error::Kind::Data`] where there are too few launches for a model; [`crate::error::Kind::Spec`] where no layer of the network is
/// of the published kind.
pub fn forecast(
    published: &Published,
    gpu: usize,
    network: &Network,
    largest: usize,
    assumed: Assumptions,
) -> Result<Forecast> {
    let launches = || published.launches.iter().filter(|launch| launch.gpu == gpu);
    let model = KernelModel::fit(published, launches(), assumed);
    let figures = &published.gpus[gpu];
    if model.kernels().next().is_none() {
        let what =
            format!("there are fewer than {FEWEST} published launches of each convolution kernel on {}", figures.name);
        return Err(Error::data(what).hint("fetch all of them with `scripts/fetch-published`"));
    }
    let (mut layers, mut left_out, mut covered, mut all) = (Vec::new(), Vec::new(), 0.0, 0.0);
    for index in 1..network.layers.len() {
        let work = network.multiply_adds_of(index);
        all += work;
        let sizes = LayerSizes::of(network, index).filter(|sizes| sizes.product == KnownOperation::Convolution3x3);
        let fastest = |sizes: LayerSizes| -> Option<Vec<Timed>> {
            let at = |batch| model.fastest(&sizes, batch, figures).map(|(kernel, seconds)| Timed { kernel, seconds });
            (1..=largest).map(at).collect()
        };
        let name = network.layers[index].name.clone();
        if let Some(times) = sizes.and_then(fastest) {
            covered += work;
            layers.push(LayerForecast { name, times });
        } else if work > 0.0 {
            left_out.push(name);
        }
    }
    if layers.is_empty() {
        let what = format!("no layer of `{}` is a 3x3 convolution with stride 1 and one group", network.name);
        let hint = "the published times say nothing about the others; measure them: `batchstep run` on the GPU itself";
        return Err(Error::spec(format!("{what}, the kind with published times")).hint(hint));
    }
    let batches = || convolutions(published, gpu).map(|launch| launch.batch);
    Ok(Forecast {
        network: network.name.clone(),
        gpu: figures.clone(),
        layers,
        left_out,
        share: covered / all,
        smallest_batch: batches().min().unwrap_or(1),
        largest_batch: batches().max().unwrap_or(1),
    })
}

impl Forecast {
    /// Seconds of all layers at a batch size that was forecast.
    pub fn total(&self, batch: usize) -> f64 {
        self.layers.iter().map(|layer| layer.times[batch - 1].seconds).sum()
    }

    pub fn largest(&self) -> usize {
        self.layers.first().map_or(0, |layer| layer.times.len())
    }

    /// The steps of at least `least` of the time before them, in the order of the batch size.
    pub fn steps(&self, least: f64) -> Vec<ForecastStep> {
        let totals: Vec<f64> = (1..=self.largest()).map(|batch| self.total(batch)).collect();
        let growth: Vec<f64> = totals.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let slope = median(&mut growth.clone());
        let step = |after: usize| {
            let size_s = growth[after - 1] - slope;
            let relative = size_s / totals[after - 1];
            let layers = || self.contributions(after, size_s);
            (relative >= least).then(|| ForecastStep { after, size_s, relative, layers: layers() })
        };
        (self.smallest_batch.max(1)..self.largest()).filter_map(step).collect()
    }

    fn contributions(&self, after: usize, size_s: f64) -> Vec<LayerStep> {
        let contribution = |layer: &LayerForecast| {
            let mut growth: Vec<f64> = layer.times.windows(2).map(|pair| pair[1].seconds - pair[0].seconds).collect();
            let [before, behind] = [layer.times[after - 1], layer.times[after]];
            let own = behind.seconds - before.seconds - median(&mut growth);
            let non_fused = |kernel: Kernel| kernel.family() == Family::NonFusedWinograd;
            let reason = match () {
                () if non_fused(behind.kernel) && after.is_multiple_of(WINOGRAD_BATCH) => "batch padded to 16",
                () if before.kernel != behind.kernel => "another kernel",
                // Tiles, or one more round of blocks over the multiprocessors.
                () => "blocks",
            };
            let layer = layer.name.clone();
            LayerStep { layer, size_s: own, before: before.kernel, behind: behind.kernel, reason }
        };
        let mut layers: Vec<LayerStep> = self.layers.iter().map(contribution).collect();
        layers.retain(|layer| layer.size_s >= 0.01 * size_s);
        layers.sort_by(|a, b| b.size_s.total_cmp(&a.size_s));
        layers
    }
}
