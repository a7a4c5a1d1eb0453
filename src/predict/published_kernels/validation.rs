//! How far the model's times are from published ones that it was not fitted to.

use super::model::{Assumptions, KernelModel};
use super::{LayerLaunch, Published};
use crate::analysis::mechanisms::formulas::{Family, KnownOperation, LayerSizes};
use crate::random::mix;
use crate::stats::quantile::quantile;

/// Parts into which the layers are divided.
const FOLDS: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    pub gpu: usize,
    pub family: Family,
    /// |predicted / measured - 1|, for the kernel that was measured.
    pub error: f64,
    /// The same for the kernel that the model finds fastest, and whether it is of the measured family.
    pub chosen_error: f64,
    pub family_is_right: bool,
}

/// The convolutions of one GPU.
pub fn convolutions(published: &Published, gpu: usize) -> impl Iterator<Item = &LayerLaunch> {
    let is_own = move |l: &&LayerLaunch| l.gpu == gpu && l.layer.product == KnownOperation::Convolution3x3;
    published.launches.iter().filter(is_own)
}

/// Each tenth of a GPU's layers in turn, at all batch sizes, predicted from the others.
pub fn of_layers_left_out(published: &Published, gpu: usize, assumed: Assumptions) -> Vec<Prediction> {
    let of_fold = |fold: u64| {
        let (inside, rest): (Vec<&LayerLaunch>, Vec<&LayerLaunch>) =
            convolutions(published, gpu).partition(|launch| fold_of(&launch.layer) == fold);
        predictions(published, inside, &KernelModel::fit(published, rest, assumed))
    };
    (0..FOLDS).flat_map(of_fold).collect()
}

/// Those of `launches` whose kernel is known, predicted by a model that was not fitted to them.
pub fn predictions<'a>(
    published: &Published,
    launches: impl IntoIterator<Item = &'a LayerLaunch>,
    model: &KernelModel,
) -> Vec<Prediction> {
    let of = |launch: &LayerLaunch| {
        let (gpu, kernel) = (&published.gpus[launch.gpu], launch.kernel?);
        let time = model.time(kernel, &launch.layer, launch.batch, gpu)?;
        let (chosen, chosen_time) = model.fastest(&launch.layer, launch.batch, gpu)?;
        let error = |time: f64| (time / launch.time_s - 1.0).abs();
        Some(Prediction {
            gpu: launch.gpu,
            family: kernel.family(),
            error: error(time),
            chosen_error: error(chosen_time),
            family_is_right: chosen.family() == kernel.family(),
        })
    };
    launches.into_iter().filter_map(of).collect()
}

/// The part of a layer, which depends only on its sizes.
fn fold_of(layer: &LayerSizes) -> u64 {
    let sizes = [layer.inputs, layer.outputs, layer.height, layer.width];
    sizes.into_iter().fold(0, |hash, size| mix(hash ^ size as u64)) % FOLDS
}

/// Median and 90th percentile of some errors, and how many they are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Errors {
    pub count: usize,
    pub median: f64,
    pub percentile_90: f64,
}

impl Errors {
    pub fn of(errors: impl Iterator<Item = f64>) -> Self {
        let mut errors: Vec<f64> = errors.collect();
        let (count, median) = (errors.len(), quantile(&mut errors, 0.5));
        Self { count, median, percentile_90: quantile(&mut errors, 0.9) }
    }
}
