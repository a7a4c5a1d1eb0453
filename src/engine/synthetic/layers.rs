//! The known truth split into parts, as if they were the layers of a network.

use super::Truth;
use crate::engine::LayerExecution;
use crate::network::Direction;

/// `line`: the time without jumps; `planted`: the jumps, with an algorithm named after the last jump below the batch
/// size. With `timed`, the parts have times, in seconds and without noise.
pub(super) fn layers(truth: &Truth, batch_size: usize, timed: bool) -> Vec<LayerExecution> {
    let passed = truth.jumps.iter().filter(|(after, _)| batch_size > *after);
    let planted_s: f64 = passed.clone().map(|(_, size_s)| size_s).sum();
    let last = passed.map(|(after, _)| after).max();
    let algorithm = last.map_or("formula:before_all".to_owned(), |after| format!("formula:after_{after}"));
    let line_s = truth.step_s(batch_size) - planted_s;
    let mut parts = vec![("line", "formula:line".to_owned(), line_s)];
    if !truth.jumps.is_empty() {
        parts.push(("planted", algorithm, planted_s));
    }
    let row = |(layer, algorithm, seconds): (&str, String, f64)| LayerExecution {
        layer: layer.to_owned(),
        operation: "formula".to_owned(),
        direction: Direction::Forward.name(),
        algorithm: Some(algorithm),
        device_s: timed.then_some(seconds),
        ..LayerExecution::default()
    };
    parts.into_iter().map(row).collect()
}
