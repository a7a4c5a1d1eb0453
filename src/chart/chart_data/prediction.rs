//! The chart of predicted times.

use std::collections::BTreeSet;

use crate::chart::{Chart, PredictedCurve, PredictedPoint, Prediction};
use crate::predict::priced::{Priced, cheapest, groups};
use crate::predict::{Basis, Place};
use crate::units::human;

/// What an example takes at each batch size, a panel for each network on each device.
pub fn prediction(name: &str, rows: &[Priced]) -> Chart {
    let groups = groups(rows);
    let least = groups.iter().filter_map(|group| cheapest(group)).map(|best| {
        format!(
            "{}: {} for an example at batch size {}",
            best.row.model,
            human::seconds(best.per_example()),
            best.row.batch_size
        )
    });
    let bases: BTreeSet<String> = rows.iter().map(|priced| priced.row.basis.describe()).collect();
    let bases: Vec<String> = bases.into_iter().collect();
    Chart::Prediction(Prediction {
        title: format!("{name}: what an example costs"),
        summary: least.collect::<Vec<_>>().join(". "),
        curves: groups.iter().map(|group| curve(group)).collect(),
        against: Vec::new(),
        caption: vec![
            format!("From: {}", bases.join("; ")),
            "batchstep predict SPEC --from DIR --chart FILE".to_owned(),
        ],
    })
}

fn curve(group: &[&Priced]) -> PredictedCurve {
    let point = |priced: &&Priced| {
        let row = &priced.row;
        let share = row.step.times(1.0 / row.batch_size as f64);
        PredictedPoint {
            x: row.batch_size as f64,
            value: share.seconds,
            low: share.low,
            high: share.high,
            measured: matches!(row.basis, Basis::Curve { place: Place::Measured, .. }),
            before_jump: row.before_jump,
        }
    };
    PredictedCurve { name: group[0].called(), points: group.iter().map(point).collect() }
}
