//! Mean-shift PELT (Killick, Fearnhead & Eckley 2012).

use super::medians::{Found, Medians};
use crate::detect::search::segment::segment;

/// The stretches of one difference in the best segmentation of the differences.
pub(super) fn jumps(curve: &Medians) -> Vec<Found> {
    let values: Vec<f64> = (0..curve.differences.len()).map(|k| curve.z(k)).collect();
    let (mut sum, mut square) = (vec![0.0], vec![0.0]);
    for v in &values {
        sum.push(sum[sum.len() - 1] + v);
        square.push(square[square.len() - 1] + v * v);
    }
    // The squared deviations from the mean.
    let cost = |from: usize, to: usize| {
        let s: f64 = sum[to] - sum[from];
        square[to] - square[from] - s * s / (to - from) as f64
    };
    // The information criterion of Schwarz: a place and a level for each change.
    let cuts = segment(cost, values.len(), 1, 2.0 * (values.len() as f64).ln());
    let mut from = 0;
    let mut found = Vec::new();
    for to in cuts.into_iter().map(|cut| cut + 1).chain([values.len()]) {
        if to - from == 1 {
            found.push(Found { k: from, p_value: None });
        }
        from = to;
    }
    found
}
