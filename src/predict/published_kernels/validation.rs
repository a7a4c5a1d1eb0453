//! How far the model's times are from published ones that it was not fitted to: over layers left out, and over whole GPUs left out.

use super::model::{Assumptions, KernelModel};
use super::{Launch, Published};
use crate::analysis::mechanisms::formulas::{Family, KnownOperation, LayerSizes};
use crate::random::mix;
use crate::stats::quantile::quantile;

/// Parts into which the layers are divided.
const FOLDS: u64 = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeftOut {
    /// Each tenth of the layers' sizes in turn, at all batch sizes; a model for each GPU.
    Layers,
    /// Each GPU in turn; one model of all the others.
    Gpu,
}

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

/// Every convolution of a known kernel, predicted by a model that has not seen it.
pub fn predictions(published: &Published, left_out: LeftOut, assumed: Assumptions) -> Vec<Prediction> {
    let mut predictions = Vec::new();
    for place in 0..published.gpus.len() {
        let own = |launch: &&Launch| launch.gpu == place && launch.layer.product == KnownOperation::Convolution3x3;
        if !published.launches.iter().any(|launch| own(&launch)) {
            continue;
        }
        match left_out {
            LeftOut::Gpu => {
                let others = published.launches.iter().filter(|launch| launch.gpu != place);
                let model = KernelModel::fit(published, others, assumed);
                predict(published, published.launches.iter().filter(own), &model, &mut predictions);
            }
            LeftOut::Layers => {
                for fold in 0..FOLDS {
                    let inside = |launch: &&Launch| fold_of(&launch.layer) == fold;
                    let rest = published.launches.iter().filter(own).filter(|launch| !inside(launch));
                    let model = KernelModel::fit(published, rest, assumed);
                    predict(published, published.launches.iter().filter(own).filter(inside), &model, &mut predictions);
                }
            }
        }
    }
    predictions
}

fn predict<'a>(
    published: &Published,
    launches: impl Iterator<Item = &'a Launch>,
    model: &KernelModel,
    into: &mut Vec<Prediction>,
) {
    for launch in launches {
        let gpu = &published.gpus[launch.gpu];
        let Some(kernel) = launch.kernel else { continue };
        let Some(time) = model.time(kernel, &launch.layer, launch.batch, gpu) else { continue };
        let Some((chosen, chosen_time)) = model.fastest(&launch.layer, launch.batch, gpu) else { continue };
        let error = |time: f64| (time / launch.time_s - 1.0).abs();
        into.push(Prediction {
            gpu: launch.gpu,
            family: kernel.family(),
            error: error(time),
            chosen_error: error(chosen_time),
            family_is_right: chosen.family() == kernel.family(),
        });
    }
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
