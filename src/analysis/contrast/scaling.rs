//! Several numbers of threads: how much faster more threads are, cell by cell.
//!
//! The speed-up is the time with the fewest threads over the time with more; the efficiency is the speed-up over the ratio of the numbers of threads: 1
//! if each thread does as much as it would do by itself.

use super::{Contrast, number, pairs};
use crate::analysis::Series;
use crate::analysis::compare::Rules;

impl Contrast<u32> {
    /// The number of threads over the fewest.
    fn times(&self, threads: u32) -> f64 {
        f64::from(threads) / f64::from(self.baseline)
    }

    /// The geometric mean of the speed-ups; `None` without cells.
    pub fn mean_speed_up(&self) -> Option<f64> {
        self.mean().map(f64::recip)
    }

    /// The speed-up over the ratio of the threads: 1 where no thread waits.
    pub fn efficiency(&self, speed_up: f64) -> f64 {
        speed_up / self.times(self.value)
    }

    /// The share of the time on the fewest threads that more of them do not shorten, from the speed-up: the experimentally determined serial fraction of
    /// [Karp and Flatt 1990](https://doi.org/10.1145/78607.78614). 0 where the speed-up is all that as many threads could bring.
    pub fn serial_share(&self, speed_up: f64) -> f64 {
        let ratio = self.times(self.value);
        ((1.0 / speed_up - 1.0 / ratio) / (1.0 - 1.0 / ratio)).max(0.0)
    }

    /// The speed-up that `threads` would bring, were that share the same there (Amdahl's law): no memory that they share fills up, none waits longer.
    pub fn modelled(&self, speed_up: f64, threads: u32) -> f64 {
        let serial = self.serial_share(speed_up);
        1.0 / (serial + (1.0 - serial) / self.times(threads))
    }
}

/// Every series on more threads against the one that differs from it in nothing but having the fewest. Empty where the run has
/// one number of threads.
pub fn scaling(series: &[&Series]) -> Vec<Contrast<u32>> {
    let threads = pairs(series, "threads", |series| number(series, "threads")).into_iter();
    let sides = threads.map(|pair| pair.map(|(place, number)| (series[place], number)));
    sides.map(|pair| Contrast::of(pair, |name| name != "threads", &Rules::default())).collect()
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
        let found = scaling(&run.each_ref());
        let names: Vec<_> = found.iter().map(|s| (s.name.as_str(), s.baseline, s.value, s.cells.len())).collect();
        assert_eq!(names, [("mlp", 1, 4, 2), ("mlp", 1, 2, 2)]);
        // By hand: 0.9 / 0.3 = 3 on 4 threads is 75 %; 0.9 / 0.5 = 1.8 on 2 is 90 %.
        for (scaling, speed_up, efficiency) in [(&found[0], 3.0, 0.75), (&found[1], 1.8, 0.9)] {
            let mean = scaling.mean_speed_up().unwrap();
            assert!((mean - speed_up).abs() < 1e-9 && (scaling.efficiency(mean) - efficiency).abs() < 1e-9);
            // 1/3 = s + (1 - s)/4 and 1/1.8 = s + (1 - s)/2 have s = 1/9 both times; 64 threads then bring 1/(1/9 + 8/9/64) = 8.
            assert!((scaling.serial_share(mean) - 1.0 / 9.0).abs() < 1e-9);
            assert!((scaling.modelled(mean, 64) - 8.0).abs() < 1e-9);
            let covers = |[_, low, high]: [f64; 3]| low < speed_up && speed_up < high;
            assert!(scaling.cells.iter().all(|cell| covers(cell.speed_up())), "{scaling:?}");
        }
    }

    #[test]
    fn one_number_of_threads_scales_nowhere() {
        assert_eq!(scaling(&[&series("mlp", "2", 1.0), &series("vgg16", "2", 1.0)]), []);
    }
}
