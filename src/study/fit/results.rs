//! A study of fits from its stored tables: losses by epoch, what setup and steps took, whether engines agree, a fitted surface.

use std::collections::{BTreeMap, BTreeSet};

use super::{FitRow, SurfaceRow};
use crate::settings::{AXES, Precision, Role, Value};
use crate::stats::quantile::median;
use crate::study::Visited;
use crate::study::series::Varied;

/// Losses of the same seed are compared over this many updates, in fp32. Later, rounding makes the paths of any two programs diverge: a rectifier
/// switches in one and not yet in the other, and from then on they descend differently. In PyTorch, initial weights that differ by one rounding led to
/// losses up to 2e-6 apart after 20 updates, 3e-3 after 50 and 0.8 after 100 (eight seeds of sixteen fits each; see `scripts/fixtures/peaks.py`).
pub const SAME_EPOCHS: usize = 20;
/// The largest relative difference of two losses there that still counts as the same curve.
pub const SAME: f64 = 1e-4;

/// A study as stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Results {
    pub device: String,
    /// In the order of the plan.
    pub fits: Vec<FitCurve>,
    /// Cells that failed, with the reason.
    pub failed: Vec<String>,
    /// Comparisons of the fits that differ only in how they are computed, each with the first.
    pub agreements: Vec<Agreement>,
    /// The surface of the fit with the most points, among those that have one; of several the first.
    pub surface: Option<FittedSurface>,
}

/// One fit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FitCurve {
    /// What differs between fits beside the number of points: `cpu`, `torch, threads 1`.
    pub name: String,
    /// What is computed, whatever computes it: the network, the points and the settings.
    pub task: String,
    pub points: usize,
    /// The loss at place i is the loss after i updates; not-a-number if the engine did not report it.
    pub losses: Vec<f64>,
    /// Seconds until the first step was ready, and by how much the first step took longer than the median.
    pub setup_s: f64,
    /// The median step.
    pub step_s: f64,
    /// Until the last update, setup included.
    pub total_s: f64,
}

impl FitCurve {
    /// Parameter updates.
    pub fn epochs(&self) -> usize {
        self.losses.len().saturating_sub(1)
    }

    /// The mean squared error after the last update.
    pub fn error(&self) -> f64 {
        self.losses.last().copied().unwrap_or(f64::NAN)
    }
}

/// Two fits of the same points from the same seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    pub first: String,
    pub second: String,
    pub points: usize,
    /// Updates that are compared.
    pub epochs: usize,
    /// The largest difference of two losses after the same update, over the larger of them.
    pub largest: f64,
    /// The errors after the last update.
    pub errors: [f64; 2],
}

impl Agreement {
    /// Whether the curves are the same, by [`SAME`].
    pub fn holds(&self) -> bool {
        self.largest <= SAME
    }
}

/// A surface on a square grid.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedSurface {
    /// The name of its fit.
    pub name: String,
    pub points: usize,
    pub error: f64,
    /// By row and column.
    pub places: Vec<SurfaceRow>,
}

impl Results {
    /// The study that these rows make.
    pub fn of(rows: &[FitRow], surfaces: &[SurfaceRow]) -> Self {
        let mut cells: BTreeMap<i64, Vec<&FitRow>> = BTreeMap::new();
        for row in rows {
            cells.entry(row.cell).or_default().push(row);
        }
        let firsts: Vec<&FitRow> = cells.values().map(|rows| rows[0]).collect();
        let varied = Varied::of(firsts.iter().map(|row| row.origin()));
        let failed = rows.iter().filter(|row| row.status.is_failure());
        let fits: BTreeMap<i64, FitCurve> = cells
            .iter()
            .filter_map(|(cell, rows)| Some((*cell, curve(rows, varied.name(rows[0].origin(), true))?)))
            .collect();
        let mut tasks: BTreeMap<String, Vec<&FitCurve>> = BTreeMap::new();
        // In other precisions what two programs differ by is no rounding of one bit in a million.
        let single = |cell: &i64| cells[cell][0].axes.of_key("precision") == Some(Value::Name(Precision::Fp32.name()));
        for (cell, fit) in fits.iter().filter(|(cell, _)| single(cell)) {
            tasks.entry(task(cells[cell][0])).or_default().push(fit);
        }
        Self {
            device: firsts.first().map(|row| row.device_name.clone()).unwrap_or_default(),
            failed: failed.filter_map(|row| row.error.clone()).collect(),
            agreements: tasks.values().flat_map(|fits| fits[1..].iter().map(|fit| agreement(fits[0], fit))).collect(),
            surface: largest(&fits, surfaces),
            fits: fits.into_values().collect(),
        }
    }

    /// Fits whose losses are not those of the first of their kind.
    pub fn disagreements(&self) -> impl Iterator<Item = &Agreement> {
        self.agreements.iter().filter(|agreement| !agreement.holds())
    }
}

/// What is computed, whatever computes it: fits of one task have the same losses.
fn task(row: &FitRow) -> String {
    let is_task = |place: &usize| AXES[*place].role == Role::Task && AXES[*place].key != "threads";
    let values = (0..AXES.len()).filter(is_task).map(|place| format!("{:?}", row.axes.get(place)));
    // Padded, so that tasks sort by their number of points.
    format!("{} {:012} {}", row.model, row.batch_size, values.collect::<Vec<_>>().join(" "))
}

fn curve(rows: &[&FitRow], name: String) -> Option<FitCurve> {
    let times: Vec<f64> = rows.iter().filter_map(|row| row.step_time_s).collect();
    let first = *times.first()?;
    let step_s = median(&mut times.clone());
    let prepare_s = rows[0].prepare_time_s.unwrap_or(0.0);
    Some(FitCurve {
        name,
        task: task(rows[0]),
        points: usize::try_from(rows[0].batch_size).unwrap_or(0),
        losses: rows.iter().map(|row| row.loss.unwrap_or(f64::NAN)).collect(),
        setup_s: prepare_s + (first - step_s).max(0.0),
        step_s,
        // The last step only measures the error that the update before it led to.
        total_s: prepare_s + times[..times.len() - 1].iter().sum::<f64>(),
    })
}

fn agreement(first: &FitCurve, second: &FitCurve) -> Agreement {
    let difference = |(a, b): (&f64, &f64)| (a - b).abs() / a.abs().max(b.abs()).max(f64::MIN_POSITIVE);
    let compared = first.losses.iter().zip(&second.losses).take(SAME_EPOCHS + 1);
    // What is not a number agrees with nothing.
    let largest = compared.map(difference).fold(0.0, |a: f64, b| if b.is_nan() { f64::INFINITY } else { a.max(b) });
    Agreement {
        first: first.name.clone(),
        second: second.name.clone(),
        points: first.points,
        epochs: first.epochs().min(second.epochs()).min(SAME_EPOCHS),
        largest,
        errors: [first.error(), second.error()],
    }
}

fn largest(fits: &BTreeMap<i64, FitCurve>, surfaces: &[SurfaceRow]) -> Option<FittedSurface> {
    let stored: BTreeSet<i64> = surfaces.iter().map(|point| point.cell).collect();
    let with_surface = fits.iter().filter(|(cell, _)| stored.contains(cell));
    // `max_by_key` takes the last of equal fits, hence `rev`.
    let (cell, fit) = with_surface.rev().max_by_key(|(_, fit)| fit.points)?;
    let places = surfaces.iter().filter(|row| row.cell == *cell).cloned().collect();
    Some(FittedSurface { name: fit.name.clone(), points: fit.points, error: fit.error(), places })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{EngineName, Settings};
    use crate::store::AxisValues;

    fn fit(cell: i64, engine: EngineName, threads: Option<usize>, losses: &[f64]) -> Vec<FitRow> {
        let axes = AxisValues::new(engine, &Settings { threads, precision: Precision::Fp32, ..Settings::default() });
        let row = |(epoch, loss): (usize, &f64)| FitRow {
            engine: engine.to_string(),
            device: "cpu".into(),
            model: "mlp".into(),
            axes,
            batch_size: 100,
            cell,
            visit: cell,
            epoch: epoch as i64,
            loss: Some(*loss),
            step_time_s: Some(if epoch == 0 { 0.5 } else { 0.1 }),
            prepare_time_s: Some(2.0),
            ..FitRow::default()
        };
        losses.iter().enumerate().map(row).collect()
    }

    #[test]
    fn setup_is_the_time_before_the_steps_and_the_extra_time_of_the_first() {
        let study = Results::of(&fit(0, EngineName::Cpu, None, &[4.0, 2.0, 1.0]), &[]);
        let curve = &study.fits[0];
        assert_eq!((curve.name.as_str(), curve.epochs(), curve.error(), curve.step_s), ("cpu", 2, 1.0, 0.1));
        // 2 s, 0.5 s in place of 0.1; two updates take 0.5 + 0.1 s.
        assert!((curve.setup_s - 2.4).abs() < 1e-12 && (curve.total_s - 2.6).abs() < 1e-12);
        assert_eq!((study.agreements.len(), study.surface), (0, None));
    }

    #[test]
    fn fits_that_differ_only_in_how_they_are_computed_are_compared_over_their_first_updates() {
        let mut losses = vec![1.0; SAME_EPOCHS + 2];
        let cpu = fit(0, EngineName::Cpu, Some(1), &losses);
        losses[3] = 0.99995;
        losses[SAME_EPOCHS + 1] = 0.5;
        let candle = fit(1, EngineName::Candle, Some(1), &losses);
        losses[SAME_EPOCHS] = 1.001;
        let torch = fit(2, EngineName::Torch, Some(2), &losses);
        let study = Results::of(&[cpu, candle, torch].concat(), &[]);
        let found: Vec<_> = study.agreements.iter().map(|a| (a.second.as_str(), a.holds())).collect();
        assert_eq!(found, [("candle", true), ("torch", false)]);
        assert!((study.agreements[0].largest - 5e-5).abs() < 1e-12);
        assert_eq!(study.agreements[0].errors, [1.0, 0.5]);
        assert_eq!(study.disagreements().count(), 1);
    }

    #[test]
    fn a_loss_that_is_no_number_agrees_with_nothing() {
        let both = [fit(0, EngineName::Cpu, None, &[1.0, f64::NAN]), fit(1, EngineName::Candle, None, &[1.0, 1.0])];
        assert!(!Results::of(&both.concat(), &[]).agreements[0].holds());
    }
}
