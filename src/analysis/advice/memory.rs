//! What a size takes of the memory, and up to which size it would do: a line through the measured peaks.

use std::collections::BTreeMap;
use std::path::Path;

use crate::analysis::Series;
use crate::analysis::environment::Environment;
use crate::stats::quantile::median;

/// The share of the memory that is to stay free. Tools without one choose sizes that run out of memory in training.
pub const MARGIN: f64 = 0.05;
/// A line holds where no peak is further from it than this share of the largest one.
const STRAIGHT: f64 = 0.05;
/// The line is not extrapolated beyond this multiple of the largest size.
const FURTHEST: f64 = 10.0;
/// Sizes that a line takes.
const FEWEST: usize = 3;

/// The memory of the best size.
#[derive(Clone, Debug, PartialEq)]
pub struct BestSizeMemory {
    pub x: f64,
    /// Measured, in bytes.
    pub peak: f64,
    /// The same of the smaller size that is also advised, where there is one.
    pub smaller: Option<(f64, f64)>,
    /// The memory of the device, in bytes.
    pub total: Option<u64>,
    /// The largest size that would leave [`MARGIN`] free, by the line; `None` without a total, where the peaks are on no rising line, or where it
    /// is no smaller than a size that failed.
    pub fits: Option<Fits>,
}

/// How far the line reaches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fits {
    /// About this size.
    About(f64),
    /// More than this one: the line is not reliable so far beyond the measured sizes.
    MoreThan(f64),
}

/// The peak of each size in bytes, by the bits of the size, which is positive.
type Peaks = BTreeMap<u64, f64>;

impl BestSizeMemory {
    /// The memory of the size `x`, and of the size `smaller`; `None` where the peak of `x` was not read. `too_large` is the smallest size that failed
    /// beyond those that were measured.
    pub fn of(peaks: &Peaks, x: f64, smaller: Option<f64>, total: Option<u64>, too_large: Option<f64>) -> Option<Self> {
        let peak = *peaks.get(&x.to_bits())?;
        let smaller = smaller.filter(|smaller| *smaller != x);
        let smaller = smaller.and_then(|smaller| Some((smaller, *peaks.get(&smaller.to_bits())?)));
        let points: Vec<(f64, f64)> = peaks.iter().map(|(x, peak)| (f64::from_bits(*x), *peak)).collect();
        let fits = total.and_then(|total| fits(&points, (1.0 - MARGIN) * total as f64, too_large));
        Some(Self { x, peak, smaller, total, fits })
    }
}

/// Where the line through the points reaches `limit`; Theil and Sen's, so that one peak out of line does not turn it. `None` where the line is not
/// to be trusted.
fn fits(points: &[(f64, f64)], limit: f64, too_large: Option<f64>) -> Option<Fits> {
    let largest = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let slopes =
        points.iter().enumerate().flat_map(|(at, a)| points[at + 1..].iter().map(move |b| (b.1 - a.1) / (b.0 - a.0)));
    let slope = median(&mut slopes.collect::<Vec<_>>());
    let start = median(&mut points.iter().map(|(x, peak)| peak - slope * x).collect::<Vec<_>>());
    let is_straight = points.iter().all(|(x, peak)| (peak - start - slope * x).abs() <= STRAIGHT * largest);
    if points.len() < FEWEST || slope <= 0.0 || !is_straight || largest > limit {
        return None;
    }
    let (last, reach) = (points[points.len() - 1].0, ((limit - start) / slope).floor());
    // A size that did not fit refutes a line by which it would.
    if too_large.is_some_and(|x| reach >= x) {
        return None;
    }
    Some(if reach > FURTHEST * last { Fits::MoreThan(FURTHEST * last) } else { Fits::About(reach.max(last)) })
}

/// The memory that a process of the run could use on a CPU: the machine's, or the limit of its container. `None` for a GPU.
pub(super) fn total(path: &Path, series: &Series) -> Option<u64> {
    if series.peaks.is_empty() || series.facts.get("device").is_none_or(|device| device != "cpu") {
        return None;
    }
    let machine = Environment::of_run(path).ok()??.machine;
    [machine.memory.total_bytes?].into_iter().chain(machine.allowance.memory_limit_bytes).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::files;

    const GIB: f64 = 1_073_741_824.0;

    fn peaks(of: impl Fn(f64) -> f64) -> Peaks {
        [1.0, 8.0, 16.0, 32.0f64].map(|x| (x.to_bits(), of(x) * GIB)).into()
    }

    #[test]
    fn the_line_says_what_would_fit() {
        // 1 GiB and 0.125 GiB for each example: 0.95 of 16 GiB is 15.2, less 1 is 14.2, over 0.125 is 113.6.
        let found = |slope: f64, too_large: Option<f64>| {
            BestSizeMemory::of(&peaks(|x| 1.0 + slope * x), 16.0, None, Some(16 << 30), too_large).expect("a peak")
        };
        let memory = found(0.125, None);
        assert_eq!((memory.peak / GIB, memory.fits), (3.0, Some(Fits::About(113.0))));
        // 0.001 GiB for each: 14,200, which is far more than ten times 32.
        assert_eq!(found(0.001, None).fits, Some(Fits::MoreThan(320.0)));
        // By the line, 113 and 400 fit; they did not.
        assert_eq!((found(0.125, Some(113.0)).fits, found(0.001, Some(400.0)).fits), (None, None));
        assert_eq!(found(0.125, Some(114.0)).fits, Some(Fits::About(113.0)));
    }

    #[test]
    fn nothing_is_reported_without_a_total_or_a_line() {
        let fits = |of: fn(f64) -> f64, total| {
            BestSizeMemory::of(&peaks(of), 16.0, None, total, None).and_then(|memory| memory.fits)
        };
        assert_eq!(fits(|x| 1.0 + 0.1 * x, None), None);
        assert_eq!(fits(|_| 3.0, Some(16 << 30)), None, "peaks that never fall show no slope");
        assert_eq!(fits(|x| if x > 8.0 { 9.0 } else { 1.0 }, Some(16 << 30)), None, "no line");
        assert_eq!(BestSizeMemory::of(&Peaks::new(), 16.0, None, Some(16 << 30), None), None);
    }

    #[test]
    fn the_memory_of_a_cpu_is_the_limit_of_its_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let environment = |text: &str| std::fs::write(folder.path().join(files::ENVIRONMENT), text).expect("writable");
        let facts = |device: &str| [("device".to_string(), device.to_string())].into();
        let of = |device: &str| Series { facts: facts(device), peaks: peaks(|x| x), ..Series::planted(vec![], vec![]) };
        assert_eq!(total(folder.path(), &of("cpu")), None, "no environment");
        environment(r#"{"machine": {"memory": {"total_bytes": 1000}}}"#);
        assert_eq!(total(folder.path(), &of("cpu")), Some(1000));
        environment(r#"{"machine": {"memory": {"total_bytes": 1000}, "allowance": {"memory_limit_bytes": 400}}}"#);
        assert_eq!(total(folder.path(), &of("cpu")), Some(400));
        assert_eq!(total(folder.path(), &of("cuda:0")), None, "a process' peak there is not of the machine's memory");
        assert_eq!(total(folder.path(), &Series { peaks: Peaks::new(), ..of("cpu") }), None);
    }
}
