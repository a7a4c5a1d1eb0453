//! Points without a fit, for series that no jump can be judged on: what was measured is still shown.

use super::prepared::Prepared;
use crate::detect::findings::Point;
use crate::detect::input::Settings;
use crate::random::Rng;
use crate::stats::{bootstrap, quantile::median};

/// The median of each x and its percentile-bootstrap interval; of a single value just the value.
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
