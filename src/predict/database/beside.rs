//! Facts about a run's cells that are in its steps but not in its table of cells: the fastest step of a visit, the
//! power, the PCIe link.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::Result;
use crate::stats::quantile::median;
use crate::store::Table;

/// Readings taken during the steps of each cell.
pub(super) struct Beside(BTreeMap<i64, Sums>);

#[derive(Default)]
struct Sums {
    /// The fastest step of each visit, in seconds.
    fastest: BTreeMap<i64, f64>,
    power_w: f64,
    power_count: f64,
    link_width: Option<i64>,
    link_generation: Option<i64>,
}

#[derive(Default)]
pub(super) struct Read {
    pub fastest_s: Option<f64>,
    pub power_w: Option<f64>,
    pub link_width: Option<i64>,
    pub link_generation: Option<i64>,
}

impl Beside {
    pub fn read(path: &Path) -> Result<Self> {
        let mut cells: BTreeMap<i64, Sums> = BTreeMap::new();
        let wanted = ["cell", "warmup", "power_w", "pcie_link_width", "pcie_link_generation", "visit", "step_time_s"];
        Table::scan(path, &wanted, &mut |batch| {
            if !wanted.iter().all(|name| batch.has(name)) {
                return Ok(());
            }
            let columns: Vec<Vec<f64>> = wanted.iter().map(|name| batch.numbers(name)).collect::<Result<_>>()?;
            let [cell, warmup, power, width, generation, visit, seconds] = &columns[..] else { return Ok(()) };
            for row in 0..batch.rows() {
                let sums = cells.entry(cell[row] as i64).or_default();
                let whole = |number: f64| Some(number as i64).filter(|_| number.is_finite());
                sums.link_width = sums.link_width.or(whole(width[row]));
                sums.link_generation = sums.link_generation.or(whole(generation[row]));
                if warmup[row] != 0.0 {
                    continue;
                }
                if seconds[row].is_finite() {
                    let fastest = sums.fastest.entry(visit[row] as i64).or_insert(f64::INFINITY);
                    *fastest = fastest.min(seconds[row]);
                }
                if power[row].is_finite() {
                    sums.power_w += power[row];
                    sums.power_count += 1.0;
                }
            }
            Ok(())
        })?;
        Ok(Self(cells))
    }

    pub fn of(&self, cell: i64) -> Read {
        let Some(sums) = self.0.get(&cell) else { return Read::default() };
        let power_w = (sums.power_count > 0.0).then(|| sums.power_w / sums.power_count);
        let mut fastest: Vec<f64> = sums.fastest.values().copied().collect();
        let fastest_s = (!fastest.is_empty()).then(|| median(&mut fastest));
        Read { fastest_s, power_w, link_width: sums.link_width, link_generation: sums.link_generation }
    }
}
