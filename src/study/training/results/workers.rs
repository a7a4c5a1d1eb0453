//! How many workers to use.

use std::collections::BTreeSet;

use super::comparison::{Compared, compare};
use super::{CellEpochs, Results};
use crate::stats::repetitions::Interval;

/// More workers are worth it where an epoch becomes shorter by at least this share.
const WORTH: f64 = 0.01;
/// Workers save waiting and nothing else. Both shares scatter, so that a gain counts up to so many times the waiting; a larger one has another cause.
const CREDIBLE: f64 = 2.0;

/// Epoch time against the number of workers, all else equal.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkerCurve<'a> {
    pub series: &'a str,
    pub batch_size: usize,
    /// `None` where only one depth was measured.
    pub prefetch: Option<usize>,
    /// By their number of workers, ascending.
    pub points: Vec<&'a CellEpochs>,
    pub advice: Advice,
}

/// The number of workers that suffices.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Advice {
    /// No larger number that was measured is proven to make an epoch shorter by 1 % or more.
    pub workers: usize,
    /// By how much an epoch is shorter than with the fewest workers measured, as a share of that.
    pub gain: f64,
    /// The share of an epoch with them in which the training waits: all that more workers could save.
    pub waiting: Option<f64>,
    /// The larger number with the shortest epoch, and by how much it is shorter; negative where it is longer.
    pub next: Option<WorkerGain>,
}

impl Advice {
    /// Whether an epoch is shorter with the next number by more than the loader can be the cause of.
    pub fn exceeds_waiting(&self) -> bool {
        self.next.zip(self.waiting).is_some_and(|(next, share)| next.gain > CREDIBLE * share)
    }
}

/// A number of workers and what it gains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkerGain {
    pub workers: usize,
    pub gain: f64,
    /// The interval of the ratio of the two times, fewer over more workers, which holds for all steps of the curve together; `None` for a single block.
    pub interval: Option<Interval>,
}

impl WorkerGain {
    /// Whether the interval of the ratio excludes 1.
    pub fn is_proven(&self) -> bool {
        self.interval.is_some_and(|Interval { low, high }| low > 1.0 || high < 1.0)
    }
}

/// The curves of a study with at least two numbers of workers each.
pub fn worker_curves(study: &Results) -> Vec<WorkerCurve<'_>> {
    let depths: BTreeSet<usize> = study.cells.iter().filter_map(|cell| cell.prefetch).collect();
    let mut curves: Vec<WorkerCurve> = Vec::new();
    for cell in &study.cells {
        // Without workers there is no depth, so that cell begins the curve of each depth.
        for &depth in depths.iter().filter(|depth| cell.prefetch.is_none_or(|own| own == **depth)) {
            let prefetch = (depths.len() > 1).then_some(depth);
            let own = |curve: &&mut WorkerCurve| {
                (curve.series, curve.batch_size, curve.prefetch) == (cell.series.as_str(), cell.batch_size, prefetch)
            };
            match curves.iter_mut().find(own) {
                Some(curve) => curve.points.push(cell),
                None => {
                    let advice = Advice { workers: cell.workers, gain: 0.0, waiting: None, next: None };
                    let (series, batch_size) = (cell.series.as_str(), cell.batch_size);
                    curves.push(WorkerCurve { series, batch_size, prefetch, points: vec![cell], advice });
                }
            }
        }
    }
    curves.retain(|curve| curve.points.len() > 1);
    for curve in &mut curves {
        curve.points.sort_by_key(|point| point.workers);
        curve.advice = advise(&curve.points);
    }
    curves
}

fn advise(points: &[&CellEpochs]) -> Advice {
    let step = |from: usize, to: usize| {
        let Compared { ratio, interval } = compare(points[to], points[from], points.len() - 1);
        WorkerGain { workers: points[to].workers, gain: 1.0 - 1.0 / ratio, interval }
    };
    // A single block proves nothing; its means are all that there is.
    let is_proven = |step: &WorkerGain| step.interval.is_none() || step.is_proven();
    let is_saved =
        |at: usize, gain: f64| points[at].waiting().is_none_or(|share| share >= WORTH && gain <= CREDIBLE * share);
    let is_worth = |at: usize, step: WorkerGain| step.gain >= WORTH && is_proven(&step) && is_saved(at, step.gain);
    let suffices = |at: &usize| (at + 1..points.len()).all(|more| !is_worth(*at, step(*at, more)));
    let at = (0..points.len()).find(suffices).unwrap_or(0);
    let larger = (at + 1..points.len()).map(|more| step(at, more));
    let next = larger.max_by(|a, b| a.gain.total_cmp(&b.gain));
    Advice { workers: points[at].workers, gain: step(0, at).gain, waiting: points[at].waiting(), next }
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    #[test]
    fn the_knee_is_where_no_larger_number_gains_a_hundredth() {
        // The study's own numbers at batch size 512: 10.60 s, then 7.31, 7.16, 7.23 s with 2, 4 and 8 workers.
        let times = [(0, 10.60), (2, 7.31), (4, 7.16), (8, 7.23)];
        let rows: Vec<_> = times.iter().map(|&(workers, seconds)| row(512, workers, 0, seconds)).collect();
        let study = Results::of(&rows);
        let curves = worker_curves(&study);
        assert_eq!(curves.len(), 1);
        // By hand: an epoch is 2.05 % shorter with 4 workers than with 2, and longer with 8; 1 - 7.16 / 10.60 = 32.5 %.
        let Advice { workers, gain, next, .. } = curves[0].advice;
        assert_eq!((workers, next.map(|next| next.workers)), (4, Some(8)));
        assert!(
            (gain - 0.3245).abs() < 1e-4 && next.is_some_and(|next| (next.gain + 0.0098).abs() < 1e-4),
            "{gain} {next:?}"
        );
    }

    #[test]
    fn a_gain_that_is_not_proven_asks_for_no_workers() {
        // Ratios of 1.5 and 0.9 in two blocks: the interval includes 1.
        let rows = [row(64, 0, 0, 15.0), row(64, 2, 0, 10.0), row(64, 0, 1, 9.0), row(64, 2, 1, 10.0)];
        let study = Results::of(&rows);
        let advice = worker_curves(&study)[0].advice;
        assert_eq!((advice.workers, advice.next.map(|next| (next.workers, next.is_proven()))), (0, Some((2, false))));
        // Ratios of 1.5 and 1.49: the interval excludes 1.
        let rows = [row(64, 0, 0, 15.0), row(64, 2, 0, 10.0), row(64, 0, 1, 14.9), row(64, 2, 1, 10.0)];
        assert_eq!(worker_curves(&Results::of(&rows))[0].advice.workers, 2);
    }

    #[test]
    fn each_depth_has_its_curve_and_no_workers_begin_them_all() {
        let deep = |workers, seconds| crate::study::training::TrainingRow {
            prefetch: Some(8),
            ..row(64, workers, 0, seconds)
        };
        let rows = [row(64, 0, 0, 10.0), row(64, 1, 0, 9.0), deep(1, 9.95), row(128, 0, 0, 5.0)];
        let study = Results::of(&rows);
        let curves = worker_curves(&study);
        let advice: Vec<_> =
            curves.iter().map(|curve| (curve.prefetch, curve.points.len(), curve.advice.workers)).collect();
        assert_eq!(advice, [(Some(2), 2, 1), (Some(8), 2, 0)]);
    }
}
