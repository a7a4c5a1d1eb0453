//! Mean-shift PELT (Killick, Fearnhead & Eckley 2012), implemented here because the crate `pelt` 0.3.4 needs a newer
//! compiler than we require.

use super::medians::{Found, Medians};

/// The stretches of one difference in the best segmentation of the differences.
pub(super) fn jumps(curve: &Medians) -> Vec<Found> {
    let values: Vec<f64> = (0..curve.differences.len()).map(|k| curve.z(k)).collect();
    // The information criterion of Schwarz: a place and a level for each change.
    let ends = segments(&values, 2.0 * (values.len() as f64).ln());
    let mut from = 0;
    let mut found = Vec::new();
    for to in ends {
        if to - from == 1 {
            found.push(Found { k: from, p_value: None });
        }
        from = to;
    }
    found
}

/// Ends of the segments that minimise the squared deviations from the segments' means plus `penalty` for each change.
pub(super) fn segments(values: &[f64], penalty: f64) -> Vec<usize> {
    let n = values.len();
    let (mut sum, mut square) = (vec![0.0; n + 1], vec![0.0; n + 1]);
    for (i, v) in values.iter().enumerate() {
        (sum[i + 1], square[i + 1]) = (sum[i] + v, square[i] + v * v);
    }
    let cost = |from: usize, to: usize| {
        let s: f64 = sum[to] - sum[from];
        square[to] - square[from] - s * s / (to - from) as f64
    };
    let mut best = vec![-penalty; n + 1];
    let mut origin = vec![0; n + 1];
    let mut open = vec![0];
    for to in 1..=n {
        let totals: Vec<f64> = open.iter().map(|&from| best[from] + cost(from, to)).collect();
        let least = totals.iter().zip(&open).min_by(|a, b| a.0.total_cmp(b.0));
        if let Some((total, &from)) = least {
            (best[to], origin[to]) = (total + penalty, from);
        }
        // A start that cannot win now cannot win later: cutting a stretch never raises its cost.
        let mut kept = totals.iter().map(|total| *total <= best[to]);
        open.retain(|_| kept.next().unwrap_or(false));
        open.push(to);
    }
    let mut ends = Vec::new();
    let mut at = n;
    while at > 0 {
        ends.push(at);
        at = origin[at];
    }
    ends.reverse();
    ends
}
