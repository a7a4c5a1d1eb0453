//! Several processes that train together in one run: their parallel efficiency at each batch size.
//!
//! Weak scaling keeps the batch of each process, so its efficiency is the step time with the fewest processes over the step time with more. Strong
//! scaling keeps the batch of all processes together, and the efficiency is that ratio over the ratio of the numbers of processes. It is 1 if no
//! process waits. A jump of the step time along the batch size is a jump of the efficiency unless the fewest and the most processes both have it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Contrast, number, pairs};
use crate::analysis::cell_medians::cell_medians;
use crate::analysis::compare::{ComparedCell, Rules};
use crate::analysis::{Analysed, Series};
use crate::error::Result;
use crate::settings::Scaling;

/// The share that the builders of platforms for training promise (a white paper's figure): measured by others.
pub const PROMISED: f64 = 0.95;

/// One network with its settings, with the fewest processes and with some more.
#[derive(Clone, Debug, PartialEq)]
pub struct Parallel {
    /// `vgg16`, `vgg16, bf16`.
    pub name: String,
    pub scaling: Scaling,
    pub unit: String,
    pub fewest: u32,
    pub processes: u32,
    pub cells: Vec<ParallelCell>,
    pub jumps: Vec<Beside>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ParallelCell {
    /// The batch size of each process in weak scaling, of all processes together in strong scaling.
    pub batch_size: f64,
    /// Time with more processes.
    pub together: f64,
    pub efficiency: f64,
    /// 95 % interval of the efficiency.
    pub low: f64,
    pub high: f64,
    /// The share of the step in which gradients were being averaged; a part of it lies beside the backward pass.
    pub reducing: Option<f64>,
}

/// A place where the step time jumps, or the efficiency falls, and the efficiency on both of its sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beside {
    pub before: ParallelCell,
    pub behind: ParallelCell,
    /// Whether the step of the fewest processes jumps there, and whether that of more does.
    pub alone_jumps: bool,
    pub together_jumps: bool,
}

impl Beside {
    /// Whether the efficiency changes: the intervals lie apart.
    pub fn changes(&self) -> bool {
        self.falls() || self.before.high < self.behind.low
    }

    /// Whether it provably falls.
    pub fn falls(&self) -> bool {
        self.behind.high < self.before.low
    }
}

/// Every series with more processes against the one that differs from it in nothing but having the fewest. Empty where the run has one
/// number of processes. `reducing` is the share of each cell, by its number in the plan; see [`reducing`].
pub fn parallel(found: &[&Analysed], reducing: &BTreeMap<i64, f64>) -> Vec<Parallel> {
    let series: Vec<&Series> = found.iter().map(|found| &found.series).collect();
    let one = |pair: [(usize, u32); 2]| {
        let counts = |name: &str| !["processes", "scaling"].contains(&name);
        let contrast = Contrast::of(pair.map(|(place, number)| (series[place], number)), counts, &Rules::default());
        let Contrast { name, unit, baseline: fewest, value: processes, cells, .. } = contrast;
        let [alone, together] = pair.map(|(place, _)| found[place]);
        let strong = together.series.facts.get("scaling").is_some_and(|name| name == Scaling::Strong.name());
        let scaling = if strong { Scaling::Strong } else { Scaling::Weak };
        let ideal = if strong { f64::from(processes) / f64::from(fewest) } else { 1.0 };
        let shares = shares(&together.series, reducing);
        let cell = |cell: &ComparedCell| {
            let [efficiency, low, high] = cell.speed_up().map(|speed_up| speed_up / ideal);
            let reducing = shares.get(&cell.x.to_bits()).copied();
            ParallelCell { batch_size: cell.x, together: cell.second, efficiency, low, high, reducing }
        };
        let cells: Vec<ParallelCell> = cells.iter().map(cell).collect();
        let jumps_after = |found: &Analysed, x: f64| found.findings.jumps.iter().any(|jump| jump.after == x);
        let beside = |pair: &[ParallelCell]| Beside {
            before: pair[0],
            behind: pair[1],
            alone_jumps: jumps_after(alone, pair[0].batch_size),
            together_jumps: jumps_after(together, pair[0].batch_size),
        };
        let of_interest = |place: &Beside| place.alone_jumps || place.together_jumps || place.falls();
        let jumps = cells.windows(2).map(beside).filter(of_interest).collect();
        Parallel { name, scaling, unit, fewest, processes, cells, jumps }
    };
    pairs(&series, "processes", |series| number(series, "processes")).into_iter().map(one).collect()
}

/// The shares of a series by batch size (its bits). Its cells lie in the plan in the order of its batch sizes.
fn shares(series: &Series, reducing: &BTreeMap<i64, f64>) -> BTreeMap<u64, f64> {
    // Sizes are above 0, so their bits are in their order.
    let sizes: BTreeSet<u64> = series.measurements.iter().map(|measured| measured.observation.x.to_bits()).collect();
    if sizes.len() != series.cells.len() {
        return BTreeMap::new();
    }
    let share = |(size, cell): (u64, &i64)| Some((size, *reducing.get(cell)?));
    sizes.into_iter().zip(&series.cells).filter_map(share).collect()
}

/// The median share of a step in which gradients were being averaged, by cell number. Empty where the steps of `path` do not say it.
///
/// # Errors
/// As [`crate::store::Table::scan`].
pub fn reducing(path: &Path) -> Result<BTreeMap<i64, f64>> {
    cell_medians(path, ["allreduce_time_s", "step_time_s"], |[reduced, step]| reduced / step)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::detect::Settings;

    /// Six blocks at batch sizes 1 to 20, of `time` with a little spread.
    fn series(processes: &str, scaling: &str, cells: std::ops::Range<i64>, time: impl Fn(f64) -> f64) -> Series {
        let mut random = crate::random::Rng::new(cells.start as u64 + 5);
        let sizes: Vec<f64> = (1..=20).map(f64::from).collect();
        let group = [("model", "mlp"), ("processes", processes), ("scaling", scaling)];
        let series = Series::in_blocks(&group, 6, &sizes, |_, x| time(x) * (1.0 + 0.001 * random.normal()));
        Series { cells: cells.collect(), facts: [("scaling".into(), scaling.into())].into(), ..series }
    }

    /// One process takes 10 ms + 1 ms an example, and 4 ms more beyond 12; two take 12 ms + 1 ms an example with weak scaling, 10 ms + 0.5 ms with strong.
    pub(crate) fn run() -> [Analysed; 4] {
        let alone = |x: f64| 0.01 + 0.001 * x + if x > 12.0 { 0.004 } else { 0.0 };
        let all = [
            series("1", "weak", 0..20, alone),
            series("1", "strong", 20..40, alone),
            series("2", "weak", 40..60, |x| 0.012 + 0.001 * x),
            series("2", "strong", 60..80, |x| 0.01 + 0.0005 * x),
        ];
        all.map(|series| Analysed { findings: series.find(&Settings::default()), series })
    }

    #[test]
    fn the_efficiency_matches_the_textbook_and_jumps_with_the_step_of_one_process() {
        let shares: BTreeMap<i64, f64> = (40..80).map(|cell| (cell, 0.01 * (cell % 20) as f64)).collect();
        let found = parallel(&run().each_ref(), &shares);
        let names: Vec<_> = found.iter().map(|p| (p.name.as_str(), p.scaling, p.fewest, p.processes)).collect();
        assert_eq!(names, [("mlp", Scaling::Weak, 1, 2), ("mlp", Scaling::Strong, 1, 2)]);
        // By hand, at batch size 10: 20 / 22 weak, 20 / 15 / 2 strong.
        for (parallel, expected) in found.iter().zip([20.0 / 22.0, 20.0 / 15.0 / 2.0]) {
            let cell = parallel.cells[9];
            assert!((cell.efficiency / expected - 1.0).abs() < 2e-3, "{cell:?}, by hand {expected}");
            assert!(cell.low < expected && expected < cell.high, "{cell:?}, by hand {expected}");
            assert_eq!(cell.reducing, Some(0.09));
            let jump = parallel.jumps.iter().find(|beside| beside.before.batch_size == 12.0).expect("a jump");
            assert!(jump.alone_jumps && !jump.together_jumps && jump.changes(), "{jump:?}");
        }
    }

    // Cell 0 has 1 / 4 and 3 / 4, whose median is 1 / 2: its first step and the step without a time do not count. Cell 1 has nothing.
    #[test]
    fn the_share_of_a_cell_is_the_median_of_its_counted_steps() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("steps.csv");
        let steps = "0,true,9,9\n0,false,1,4\n0,false,3,4\n0,false,,4\n1,false,0,0\n";
        std::fs::write(&path, format!("cell,warmup,allreduce_time_s,step_time_s\n{steps}")).expect("writable");
        assert_eq!(reducing(&path).expect("read"), BTreeMap::from([(0, 0.5)]));
        std::fs::write(&path, "cell,warmup,step_time_s\n0,false,4\n").expect("writable");
        assert_eq!(reducing(&path).expect("read"), BTreeMap::new(), "one process has no such column");
        assert!(reducing(Path::new("nowhere")).is_err(), "what cannot be read is not absent");
    }

    #[test]
    fn one_number_of_processes_has_no_efficiency() {
        assert_eq!(parallel(&run().each_ref()[..2], &BTreeMap::new()), []);
    }
}
