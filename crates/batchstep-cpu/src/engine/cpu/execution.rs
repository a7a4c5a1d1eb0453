//! What was executed for each layer and direction.

use super::pass::Watch;
use super::training::Training;
use crate::engine::{LayerExecution, Workload, work};
use crate::stats::quantile::median;

/// Every layer of a workload in each of its directions, with the median of its times in `watches`, if any.
pub fn layers(workload: &Workload, training: &Training<f32>, watches: &[Watch]) -> Vec<LayerExecution> {
    let seconds = |index, direction| {
        let mut times: Vec<f64> = watches.iter().filter_map(|watch| watch.seconds(index, direction)).collect();
        (!times.is_empty()).then(|| median(&mut times))
    };
    work::layers_with(workload, size_of::<f32>(), |index, direction, layer| LayerExecution {
        algorithm: Some(training.kernel(index).algorithm().to_owned()),
        math_mode: Some(training.kernel(index).precision().name().to_owned()),
        device_s: seconds(index, direction),
        ..layer
    })
}
