//! What copying the batch in each step costs: each series whose batch is copied against the one of the run that differs from it in nothing but
//! that its batch lies in the device's memory.

use super::{Contrast, pairs};
use crate::analysis::compare::{ComparedCell, Decision, Rules};
use crate::analysis::{Series, TimeOrRate};
use crate::settings::DataPath;

/// Its values are how the batch reaches the device: `pageable`, `pinned`, `prefetch`.
const DATA: &str = "data";

impl Contrast {
    /// The cell with the largest ratio, among those whose step is provably longer than at the baseline. The decision counts all cells: of many
    /// intervals some lie above 1 by chance.
    pub fn dearest(&self) -> Option<&ComparedCell> {
        let longer = self.cells.iter().filter(|cell| cell.decision == Decision::Slower);
        longer.max_by(|a, b| a.ratio.total_cmp(&b.ratio))
    }
}

/// Every series that copies. Empty where the run has one way of the data.
pub fn transfers(series: &[&Series]) -> Vec<Contrast> {
    let is_copied = |series: &Series| {
        let way = series.value(DATA).filter(|_| series.kind == TimeOrRate::Time)?;
        Some(way != DataPath::Resident.name())
    };
    let sides = pairs(series, DATA, is_copied).into_iter().map(|pair| pair.map(|(place, _)| series[place]));
    let one = |pair: [&Series; 2]| {
        let ways = pair.map(|series| (series, series.value(DATA).unwrap_or_default().to_owned()));
        Contrast::of(ways, |name| name != DATA, &Rules::default())
    };
    sides.map(one).filter(|transfer| !transfer.cells.is_empty()).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::random::Rng;

    /// Six blocks at three batch sizes, of `each` seconds an example, with 0.1 % of noise.
    fn series(engine: &str, data: &str, each: f64) -> Series {
        let mut random = Rng::new(each.to_bits());
        let time = |_, x| (1e-3 + each * x) * (1.0 + 0.001 * random.normal());
        Series::in_blocks(&[("model", "mlp"), ("engine", engine), ("data", data)], 6, &[10.0, 100.0, 1000.0], time)
    }

    /// A copy makes each example of the engine `cpu` half as dear again, and nothing of `torch`, which has no series without.
    pub(crate) fn run() -> Vec<Series> {
        vec![
            series("cpu", "resident", 2e-6),
            series("torch", "pageable", 1e-6),
            series("cpu", "pageable", 3e-6),
            series("cpu", "pinned", 2.5e-6),
        ]
    }

    #[test]
    fn each_way_of_the_data_is_held_against_the_batch_in_place() {
        let found = transfers(&Vec::from_iter(&run()));
        let names: Vec<_> = found.iter().map(|one| (one.name.as_str(), one.value.as_str())).collect();
        assert_eq!(names, [("mlp, cpu", "pageable"), ("mlp, cpu", "pinned")]);
        // By hand, at 1000: 4 ms / 3 ms and 3.5 ms / 3 ms; at 10: 1.03 / 1.02.
        for (transfer, expected) in found.iter().zip([4.0 / 3.0, 3.5 / 3.0]) {
            let dearest = transfer.dearest().expect("cells");
            assert!(dearest.x == 1000.0 && (dearest.ratio / expected - 1.0).abs() < 2e-3, "{dearest:?}");
            assert!(dearest.low < expected && expected < dearest.high, "{dearest:?}");
        }
        assert!((found[0].cells[0].ratio - 1.03 / 1.02).abs() < 2e-3, "{:?}", found[0].cells[0]);
        // The geometric mean of 1.03 / 1.02, 1.3 / 1.2 and 4 / 3.
        let mean = (1.03f64 / 1.02 * 1.3 / 1.2 * 4.0 / 3.0).cbrt();
        let overall = found[0].overall.as_ref().expect("six blocks");
        assert!(overall.cells == 3 && (overall.ratio / mean - 1.0).abs() < 1e-3, "{overall:?}, by hand {mean}");
    }

    #[test]
    fn a_copy_that_costs_nothing_that_can_be_shown_has_no_dearest_size() {
        let found = transfers(&[&series("cpu", "resident", 2e-6), &series("cpu", "pageable", 2e-6)]);
        assert!(found.len() == 1 && found[0].cells.len() == 3 && found[0].dearest().is_none(), "{found:?}");
    }

    // The copy makes 1.2 ms at 100 to 1.3 ms.
    #[test]
    fn a_size_that_is_longer_only_by_its_own_interval_is_not_the_dearest() {
        let mut found = transfers(&Vec::from_iter(&run()));
        let last = found[0].cells.last_mut().expect("cells");
        assert!(last.x == 1000.0 && last.low > 1.0 && last.decision == Decision::Slower, "{last:?}");
        last.decision = Decision::Ambiguous;
        let dearest = found[0].dearest().expect("another");
        assert!(dearest.x == 100.0 && (dearest.ratio / (1.3 / 1.2) - 1.0).abs() < 2e-3, "{dearest:?}");
    }

    #[test]
    fn one_way_of_the_data_has_nothing_to_be_held_against() {
        assert_eq!(transfers(&Vec::from_iter(&run()[..2])), []);
    }
}
