//! How near a step comes to what its device can do: the arithmetic of its layers over its time, against the rate of a large
//! matrix product on the same device in the same run; and the fewest bytes its layers move over its time, against the rate
//! of a plain copy.
//!
//! After Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for multicore architectures",
//! CACM 52(4), 2009. [`crate::network::cost`] defines the work of a layer: direct convolution and perfect caches. So
//! Winograd's algorithm can exceed the first peak, and the second share is a lower bound.

use std::collections::BTreeMap;
use std::path::Path;

use super::environment::Environment;
use crate::error::Result;
use crate::os::look;
use crate::store::{CellRow, LayerRow, MeasuredPeaks, files, sealed};

/// The cell of a network that comes nearest to the first peak.
#[derive(Clone, Debug, PartialEq)]
pub struct Nearest {
    pub engine: String,
    pub model: String,
    pub precision: String,
    pub batch_size: i64,
    pub flops_per_s: f64,
    pub bytes_per_s: f64,
    pub peaks: MeasuredPeaks,
    /// Whether a layer of it was computed by Winograd's algorithm.
    pub winograd: bool,
}

impl Nearest {
    /// The share of the matrix product's rate.
    pub fn arithmetic_share(&self) -> f64 {
        self.flops_per_s / self.peaks.flops_per_s
    }

    /// The share of the copy's rate.
    pub fn traffic_share(&self) -> f64 {
        self.bytes_per_s / self.peaks.bytes_per_s
    }
}

/// What [`nearest`] finds in the run in `path`; empty where its peaks were not measured, or it has no such tables.
///
/// # Errors
/// [`Kind::Io`](crate::error::Kind::Io) and [`Kind::Data`](crate::error::Kind::Data) where a file is there and cannot be read.
pub fn of_run(path: &Path) -> Result<Vec<Nearest>> {
    if !look::is_file(&path.join(files::LAYERS))? || !look::is_file(&path.join(files::CELLS))? {
        return Ok(Vec::new());
    }
    let Some(environment) = Environment::of_run(path)? else { return Ok(Vec::new()) };
    Ok(nearest(&sealed(&path.join(files::LAYERS))?, &sealed(&path.join(files::CELLS))?, &environment.peaks))
}

/// For each engine, network and precision of a run, the cell that comes nearest to the peak of a matrix product. Cells
/// without a median, or of an engine without peaks, are left out; among several peaks of one precision the highest counts.
pub fn nearest(layers: &[LayerRow], cells: &[CellRow], peaks: &[MeasuredPeaks]) -> Vec<Nearest> {
    let mut work: BTreeMap<i64, (f64, f64, bool)> = BTreeMap::new();
    for row in layers {
        let (flops, bytes, winograd) = work.entry(row.cell).or_default();
        *flops += row.flops;
        *bytes += row.bytes;
        *winograd |= is_winograd(row);
    }
    let mut found: Vec<Nearest> = Vec::new();
    for cell in cells {
        let of_this =
            peaks.iter().filter(|peak| peak.engine == cell.engine && Some(&peak.precision) == cell.precision.as_ref());
        let highest = of_this.max_by(|a, b| a.flops_per_s.total_cmp(&b.flops_per_s));
        let (Some(seconds), Some(&(flops, bytes, winograd)), Some(peak)) =
            (cell.median_s, work.get(&cell.cell), highest)
        else {
            continue;
        };
        let candidate = Nearest {
            engine: cell.engine.clone(),
            model: cell.model.clone(),
            precision: cell.precision.clone().unwrap_or_default(),
            batch_size: cell.batch_size,
            flops_per_s: flops / seconds,
            bytes_per_s: bytes / seconds,
            peaks: peak.clone(),
            winograd,
        };
        let key = |one: &Nearest| (one.engine.clone(), one.model.clone(), one.precision.clone());
        match found.iter_mut().find(|known| key(known) == key(&candidate)) {
            Some(known) if known.flops_per_s < candidate.flops_per_s => *known = candidate,
            Some(_) => {}
            None => found.push(candidate),
        }
    }
    found
}

/// Whether the layer is computed by Winograd's algorithm, by the engine's names for the algorithm, its arithmetic or its kernel.
fn is_winograd(row: &LayerRow) -> bool {
    let names = [&row.algorithm, &row.math_mode, &row.kernel];
    names.into_iter().flatten().any(|name| name.to_lowercase().contains("winograd"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layer(cell: i64, flops: f64, bytes: f64) -> LayerRow {
        LayerRow { cell, flops, bytes, ..LayerRow::default() }
    }

    fn cell(cell: i64, batch_size: i64, median_s: Option<f64>) -> CellRow {
        let (engine, model, precision) = ("cpu".into(), "mlp".into(), Some("fp32".to_owned()));
        CellRow { cell, batch_size, median_s, engine, model, precision, ..CellRow::default() }
    }

    // 3 GFLOP in 0.1 s are 30 GFLOP/s, 10 GFLOP in 0.2 s are 50: half of a peak of 100.
    #[test]
    fn the_nearest_cell_matches_a_hand_calculation() {
        let peaks = MeasuredPeaks {
            engine: "cpu".into(),
            precision: "fp32".into(),
            threads: None,
            flops_per_s: 1e11,
            bytes_per_s: 1e10,
        };
        let layers = [layer(0, 1e9, 1e8), layer(0, 2e9, 1e8), layer(1, 1e10, 1e9), layer(2, 1e15, 1.0)];
        let cells = [cell(0, 1, Some(0.1)), cell(1, 2, Some(0.2)), cell(2, 4, None)];
        let found = nearest(&layers, &cells, std::slice::from_ref(&peaks));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].batch_size, 2);
        assert!((found[0].arithmetic_share() - 0.5).abs() < 1e-12);
        assert!((found[0].traffic_share() - 0.5).abs() < 1e-12);
        assert!(!found[0].winograd);
        let mut by_winograd = layers.clone();
        by_winograd[2].algorithm = Some("winograd_4x4_3x3".into());
        assert!(nearest(&by_winograd, &cells, std::slice::from_ref(&peaks))[0].winograd);
        let other = MeasuredPeaks { precision: "tf32".into(), ..peaks };
        assert_eq!(nearest(&layers, &cells, &[other]), []);
    }
}
