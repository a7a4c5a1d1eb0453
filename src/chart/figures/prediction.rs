//! The chart of predicted times.

use std::path::Path;

use crate::chart::{self, Chart, PredictedCurve, PredictedPoint, Prediction};
use crate::error::Result;
use crate::predict::priced::{Priced, cheapest, groups};
use crate::predict::{Basis, Place};
use crate::units::human;

/// Draws what an example takes at each batch size, a panel for each network on each device.
///
/// # Errors
/// As [`chart::write()`].
pub fn draw_predictions(name: &str, rows: &[Priced], path: &Path) -> Result<()> {
    chart::write(&Chart::Prediction(prediction(name, rows)), path)
}

fn prediction(name: &str, rows: &[Priced]) -> Prediction {
    let groups = groups(rows);
    let least = groups.iter().filter_map(|group| cheapest(group)).map(|best| {
        format!(
            "{}: {} for an example at batch size {}",
            best.row.model,
            human::seconds(best.per_example()),
            best.row.batch_size
        )
    });
    let mut bases: Vec<String> = rows.iter().map(|priced| priced.row.basis.describe()).collect();
    bases.sort();
    bases.dedup();
    Prediction {
        title: format!("{name}: what an example costs"),
        summary: least.collect::<Vec<_>>().join(". "),
        curves: groups.iter().map(|group| curve(group)).collect(),
        against: Vec::new(),
        caption: vec![
            format!("From: {}", bases.join("; ")),
            "batchstep predict SPEC --from DIR --chart FILE".to_owned(),
        ],
    }
}

fn curve(group: &[&Priced]) -> PredictedCurve {
    let row = &group[0].row;
    let settings = if row.settings.is_empty() { String::new() } else { format!(", {}", row.settings) };
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
    PredictedCurve {
        name: format!("{}{settings} on {}", row.model, row.device),
        points: group.iter().map(point).collect(),
    }
}
