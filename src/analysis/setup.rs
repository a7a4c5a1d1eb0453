//! What a cell takes before its steps run at their pace: until the first step is ready (parameters, data, memory, compilation, search for
//! algorithms, capture of a graph), and what the first step takes longer than the others.
//!
//! Only the first visit to a cell shows it: later ones find libraries loaded, algorithms known and programs compiled. So it is one measurement of each
//! cell, and what all cells of an engine share (its libraries' first call) falls on the first cell that was visited.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::error::Result;
use crate::stats::quantile::median;
use crate::store::Table;

/// One cell, by the first visit to it; seconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Setup {
    pub size: f64,
    pub prepare_s: f64,
    /// By how much the first step is longer than the median of those that count.
    pub first_step_s: f64,
    /// That median.
    pub step_s: f64,
}

impl Setup {
    /// Before the steps run at their pace.
    pub fn seconds(&self) -> f64 {
        self.prepare_s + self.first_step_s
    }
}

/// A visit under way.
#[derive(Default)]
struct FirstVisit {
    visit: f64,
    size: f64,
    prepare_s: f64,
    first_s: f64,
    counted: Vec<f64>,
}

/// The setup of every cell, by its number in the plan; empty if the data do not contain it, such as those of other programs.
///
/// # Errors
/// As [`Table::scan`].
pub fn setups(path: &Path) -> Result<BTreeMap<i64, Setup>> {
    const WANTED: [&str; 7] = ["cell", "visit", "step", "warmup", "batch_size", "prepare_time_s", "step_time_s"];
    let mut first: BTreeMap<i64, FirstVisit> = BTreeMap::new();
    Table::scan(path, &WANTED, &mut |batch| {
        if WANTED.iter().any(|name| !batch.has(name)) {
            return Ok(());
        }
        let column = |name| batch.numbers(name);
        let (cells, visits, steps) = (column("cell")?, column("visit")?, column("step")?);
        let (sizes, prepare, times) = (column("batch_size")?, column("prepare_time_s")?, column("step_time_s")?);
        let warmup = batch.texts("warmup")?;
        for row in 0..batch.rows() {
            if !(prepare[row].is_finite() && times[row].is_finite()) {
                continue;
            }
            let own = first.entry(cells[row] as i64).or_insert_with(|| FirstVisit {
                visit: visits[row],
                size: sizes[row],
                prepare_s: prepare[row],
                ..FirstVisit::default()
            });
            if own.visit != visits[row] {
                continue;
            }
            if steps[row] == 0.0 {
                own.first_s = times[row];
            }
            if !matches!(warmup[row].to_lowercase().as_str(), "true" | "1") {
                own.counted.push(times[row]);
            }
        }
        Ok(())
    })?;
    let setup = |(cell, own): (i64, FirstVisit)| {
        let FirstVisit { size, prepare_s, first_s, mut counted, .. } = own;
        let step_s = if counted.is_empty() { return None } else { median(&mut counted) };
        Some((cell, Setup { size, prepare_s, first_step_s: (first_s - step_s).max(0.0), step_s }))
    };
    Ok(first.into_iter().filter_map(setup).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> BTreeMap<i64, Setup> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a.csv");
        std::fs::write(&path, text).expect("written");
        setups(&path).expect("read")
    }

    #[test]
    fn the_first_visit_counts_with_the_excess_of_its_first_step() {
        let found = read(
            "cell,visit,step,warmup,batch_size,prepare_time_s,step_time_s\n\
             0,0,0,true,25,2.0,0.5\n0,0,1,false,25,2.0,0.1\n0,0,2,false,25,2.0,0.2\n0,0,3,false,25,2.0,0.3\n\
             1,1,0,false,100,1.0,0.1\n0,2,0,false,25,0.01,0.1\n",
        );
        let expected = Setup { size: 25.0, prepare_s: 2.0, first_step_s: 0.3, step_s: 0.2 };
        assert_eq!(found[&0], expected);
        assert!((found[&0].seconds() - 2.3).abs() < 1e-12);
        assert_eq!((found[&1].first_step_s, found[&1].size), (0.0, 100.0));
        assert!(read("batch_size,step_time_s\n1,0.5\n").is_empty(), "data that do not say it");
    }
}
