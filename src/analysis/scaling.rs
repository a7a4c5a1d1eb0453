//! Several numbers of threads in one run: how much faster more threads are, cell by cell.
//!
//! The cells of all numbers of threads are visited in the same randomised blocks. The speed-up is the time with the fewest
//! threads over the time with more, with the interval of [`crate::analysis::compare`]; the efficiency is the speed-up over the ratio of the
//! numbers of threads: 1 if each thread does as much as it would do by itself.

use crate::analysis::Series;
use crate::analysis::compare::{self, Rules};

/// One network with its settings, on the fewest threads and on some more.
#[derive(Clone, Debug, PartialEq)]
pub struct Scaling {
    /// `vgg16`, `vgg16, torch`.
    pub name: String,
    pub unit: String,
    pub fewest: u32,
    pub threads: u32,
    pub cells: Vec<Gain>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    pub x: f64,
    /// Time with more threads.
    pub together: f64,
    /// The time with the fewest over that.
    pub speed_up: f64,
    /// 95 % interval of the speed-up.
    pub low: f64,
    pub high: f64,
}

impl Scaling {
    /// The speed-up over the ratio of the threads: 1 where no thread waits.
    pub fn efficiency(&self, speed_up: f64) -> f64 {
        speed_up * f64::from(self.fewest) / f64::from(self.threads)
    }

    /// The share of the time on the fewest threads that more of them do not shorten, from the speed-up: the experimentally determined serial fraction of
    /// [Karp and Flatt 1990](https://doi.org/10.1145/78607.78614). 0 where the speed-up is all that as many threads could bring.
    pub fn serial_share(&self, speed_up: f64) -> f64 {
        let ratio = f64::from(self.threads) / f64::from(self.fewest);
        ((1.0 / speed_up - 1.0 / ratio) / (1.0 - 1.0 / ratio)).max(0.0)
    }

    /// The speed-up that `threads` would bring, were that share the same there (Amdahl's law): no memory that they share fills up, none waits longer.
    pub fn modelled(&self, speed_up: f64, threads: u32) -> f64 {
        let (serial, ratio) = (self.serial_share(speed_up), f64::from(threads) / f64::from(self.fewest));
        1.0 / (serial + (1.0 - serial) / ratio)
    }

    /// The geometric mean of the speed-ups; `None` without cells.
    pub fn mean_speed_up(&self) -> Option<f64> {
        let sum: f64 = self.cells.iter().map(|gain| gain.speed_up.ln()).sum();
        (!self.cells.is_empty()).then(|| (sum / self.cells.len() as f64).exp())
    }
}

/// Every series on more threads against the one that differs from it in nothing but having the fewest. Empty where the run has
/// one number of threads.
pub fn scaling(series: &[Series]) -> Vec<Scaling> {
    let one = |against: Against| Scaling {
        cells: gains(series, &against),
        unit: series[against.together].unit.clone(),
        fewest: against.fewest,
        threads: against.number,
        name: against.name,
    };
    against_fewest(series, "threads").into_iter().map(one).collect()
}

/// Two series that differ only in one number, such as the number of threads.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Against {
    pub column: &'static str,
    /// What both are called without the number.
    pub name: String,
    pub fewest: u32,
    pub number: u32,
    /// The place of the series with the fewest.
    pub alone: usize,
    /// The place of that with more.
    pub together: usize,
}

/// Pairs each series with the series that has the smallest value of `column` and is otherwise the same.
pub(super) fn against_fewest(series: &[Series], column: &'static str) -> Vec<Against> {
    let number = |series: &Series| series.value(column)?.parse::<u32>().ok();
    let bare: Vec<Series> = series.iter().map(|series| without(series, column)).collect();
    let against = |together: usize| {
        let more = number(&series[together])?;
        let same = (0..series.len()).filter(|&other| bare[other].group == bare[together].group);
        let (fewest, alone) = same.filter_map(|other| Some((number(&series[other])?, other))).min()?;
        let name = bare[together].label();
        (fewest != more).then_some(Against { column, name, fewest, number: more, alone, together })
    };
    (0..series.len()).filter_map(against).collect()
}

/// The cells that both have: how much faster the one with more is.
pub(super) fn gains(series: &[Series], against: &Against) -> Vec<Gain> {
    let [alone, together] = [against.alone, against.together].map(|place| [without(&series[place], against.column)]);
    let gain = |cell: compare::ComparedCell| Gain {
        x: cell.x,
        together: cell.second,
        speed_up: 1.0 / cell.ratio,
        low: 1.0 / cell.high,
        high: 1.0 / cell.low,
    };
    compare::compare(&alone, &together, &Rules::default()).cells.into_iter().map(gain).collect()
}

/// The series as if it had no such column.
pub(super) fn without(series: &Series, column: &str) -> Series {
    let group = series.group.iter().filter(|(name, _)| name != column).cloned().collect();
    Series { group, ..series.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four blocks at batch sizes 1 and 2, of `seconds` times the batch size, with a little spread.
    fn series(model: &str, threads: &str, seconds: f64) -> Series {
        let time = |block, x| seconds * x * (1.0 + 0.001 * f64::from(block));
        Series::in_blocks(&[("model", model), ("threads", threads)], 4, &[1.0, 2.0], time)
    }

    #[test]
    fn speed_up_and_efficiency_match_the_textbook() {
        let run =
            [series("mlp", "4", 0.3), series("mlp", "1", 0.9), series("mlp", "2", 0.5), series("vgg16", "2", 1.0)];
        let found = scaling(&run);
        let names: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.fewest, s.threads, s.cells.len())).collect();
        assert_eq!(names, [("mlp", 1, 4, 2), ("mlp", 1, 2, 2)]);
        // By hand: 0.9 / 0.3 = 3 on 4 threads is 75 %; 0.9 / 0.5 = 1.8 on 2 is 90 %.
        for (scaling, speed_up, efficiency) in [(&found[0], 3.0, 0.75), (&found[1], 1.8, 0.9)] {
            let mean = scaling.mean_speed_up().unwrap();
            assert!((mean - speed_up).abs() < 1e-9 && (scaling.efficiency(mean) - efficiency).abs() < 1e-9);
            // 1/3 = s + (1 - s)/4 and 1/1.8 = s + (1 - s)/2 have s = 1/9 both times; 64 threads then bring 1/(1/9 + 8/9/64) = 8.
            assert!((scaling.serial_share(mean) - 1.0 / 9.0).abs() < 1e-9);
            assert!((scaling.modelled(mean, 64) - 8.0).abs() < 1e-9);
            assert!(scaling.cells.iter().all(|gain| gain.low < speed_up && speed_up < gain.high), "{scaling:?}");
        }
    }

    #[test]
    fn one_number_of_threads_scales_nowhere() {
        assert_eq!(scaling(&[series("mlp", "2", 1.0), series("vgg16", "2", 1.0)]), []);
    }
}
