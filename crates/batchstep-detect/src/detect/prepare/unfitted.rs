//! Points without a fit, for series on which no jump can be judged: the measurements are still shown.

use super::node_means::Level;
use super::prepared::Prepared;
use crate::detect::findings::{Note, Point};
use crate::detect::input::Settings;
use crate::detect::logarithms;
use crate::random::Rng;
use crate::stats::{bootstrap, distribution, quantile::median};

/// The median of each x and its percentile-bootstrap interval; for a single value, just the value.
pub(crate) fn points(series: &Prepared, settings: &Settings) -> Vec<Point> {
    let mut random = Rng::new(settings.seed);
    let point = |(&x, group): (&f64, &std::ops::Range<usize>)| {
        let values = &series.log[group.clone()];
        let center = median(&mut values.to_vec());
        let resamples = settings.resamples.min(1000);
        let (low, high) = match values.len() {
            1 => (center, center),
            _ => bootstrap::interval(values, median, resamples, settings.confidence, &mut random),
        };
        let center = center.exp();
        Point { x, count: values.len(), center, low: low.exp(), high: high.exp(), fit: center, off: false }
    };
    series.x.iter().zip(&series.groups).map(point).collect()
}

/// The level of each x from several machines, and its interval.
pub(crate) fn of_machines(series: &Prepared, levels: &[Level], settings: &Settings) -> Vec<Point> {
    let tail = 0.5 * (1.0 - settings.confidence.clamp(0.0, 0.9999));
    let point = |((&x, group), level): ((&f64, &std::ops::Range<usize>), &Level)| {
        let reach = distribution::t_upper_quantile(tail, level.freedom) * level.error;
        let [low, center, high] = [-reach, 0.0, reach].map(|off| (level.center + off).exp());
        Point { x, count: group.len(), center, low, high, fit: center, off: false }
    };
    series.x.iter().zip(&series.groups).zip(levels).map(point).collect()
}

/// The note on x or ln y that span more than double precision can resolve in one fit.
pub(crate) fn too_wide(x: &[f64], log: &[f64]) -> Option<Note> {
    let (low, high) = log.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(*v), b.max(*v)));
    let sizes = !can_be_resolved(x) && logarithms::of(x).is_none();
    (sizes || high - low > WIDEST).then_some(Note::TooWide { sizes })
}

/// Whether one fit has digits enough for the closest x.
pub(crate) fn can_be_resolved(x: &[f64]) -> bool {
    let span = x[x.len() - 1] - x[0];
    let closest = x.windows(2).map(|w| w[1] - w[0]).fold(f64::INFINITY, f64::min);
    span.is_finite() && closest >= 1e-9 * span
}

/// Largest ln of the ratio of two step times in one series.
const WIDEST: f64 = 16.0;
