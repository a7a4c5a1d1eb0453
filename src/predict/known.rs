//! Networks that were measured on the device: their curves.

use std::collections::{BTreeMap, BTreeSet};

use super::{Basis, Place, Row, Series};
use crate::error::Result;
use crate::predict::database::{Database, describe, network_id};
use crate::predict::model::curve::{Breaks, Curve, Level};
use crate::predict::model::repeats::{Pooled, between_runs, pooled};
use crate::settings::EngineName;
use crate::spec::plan::Cell;
use crate::stats::quantile::median;
use crate::store::CollectedCell;

/// Levels that make a curve.
const FEWEST_LEVELS: usize = 3;

/// Networks whose repeated runs say how far runs differ.
const MOST_NETWORKS: usize = 40;

pub(super) struct Measured<'a> {
    pub database: &'a Database,
    pub device: &'a str,
    pub networks: Vec<String>,
}

impl<'a> Measured<'a> {
    pub fn new(database: &'a Database, device: &'a str) -> Result<Self> {
        Ok(Self { database, device, networks: database.networks(device)? })
    }

    /// What `auto` is on this device.
    pub fn engine(&self, asked: EngineName) -> EngineName {
        if asked != EngineName::Auto {
            return asked;
        }
        // Only a processor's name carries its cores.
        if self.device.ends_with(" cores)") || self.device.ends_with(" core)") {
            EngineName::Cpu
        } else {
            EngineName::Cudnn
        }
    }

    /// From the curve of the same network with the same settings; `None` where it was not measured at three batch sizes or more.
    pub fn rows(&self, series: &Series) -> Result<Option<Vec<Row>>> {
        let network = &series.first().workload.network;
        let name = describe(network, &series.first().model);
        if !self.networks.contains(&name) {
            return Ok(None);
        }
        let (id, engine) = (network_id(network), self.engine(series.engine));
        let axes = series.axes(engine);
        let mut cells = self.database.cells(self.device, &name)?;
        cells.retain(|cell| cell.network_id == id && cell.engine == engine.name() && cell.axes == axes);
        let pooled = pool(cells.iter());
        let runs = pooled.heights.len();
        if pooled.levels.len() < FEWEST_LEVELS {
            return Ok(None);
        }
        let own = between_runs(std::iter::once(&pooled));
        let noise = if own.is_some() { own } else { self.noise()? };
        let measured: Vec<f64> = pooled.levels.iter().map(|level| level.batch).collect();
        let Some(curve) = Curve::new(pooled.levels, breaks(&cells), noise.unwrap_or(0.0)) else { return Ok(None) };
        let slowdown = slowdown(cells.iter());
        let row = |cell: &&Cell| {
            let batch = cell.batch_size as f64;
            let place = match () {
                () if measured.contains(&batch) => Place::Measured,
                () if curve.is_at_a_jump(batch) => Place::AtJump,
                () if curve.is_inside(batch) => Place::Between,
                () => Place::Beyond,
            };
            let basis = Basis::Curve { place, runs, repeated: noise.is_some() };
            Row {
                slowdown,
                power_w: power(&cells, cell.batch_size),
                before_jump: jumps_after(&cells, cell.batch_size) || curve.goes_on_with_a_jump_after(batch),
                ..Row::new(self.device, engine.name(), series, cell, curve.at(batch), basis)
            }
        };
        Ok(Some(series.cells.iter().map(row).collect()))
    }

    /// How far runs differ, by all curves of the device that were measured more than once.
    fn noise(&self) -> Result<Option<f64>> {
        let mut curves = Vec::new();
        for network in self.networks.iter().take(MOST_NETWORKS) {
            let mut groups: BTreeMap<String, Vec<CollectedCell>> = BTreeMap::new();
            for cell in self.database.cells(self.device, network)? {
                let key = format!("{} {} {:?}", cell.network_id, cell.engine, cell.axes);
                groups.entry(key).or_default().push(cell);
            }
            curves.extend(groups.values().map(|cells| pool(cells.iter())));
        }
        Ok(between_runs(curves.iter()))
    }
}

/// The level of a cell: of its fastest steps, where they are known.
pub(super) fn level(cell: &CollectedCell) -> Option<f64> {
    cell.fastest_s.or(cell.median_s).filter(|seconds| *seconds > 0.0)
}

/// The runs of one curve together.
fn pool<'a>(cells: impl Iterator<Item = &'a CollectedCell>) -> Pooled {
    let mut runs: BTreeMap<&str, Vec<Level>> = BTreeMap::new();
    for cell in cells {
        if let Some(seconds) = level(cell) {
            runs.entry(&cell.run_id).or_default().push(Level { batch: cell.batch_size as f64, seconds });
        }
    }
    pooled(&runs.into_values().collect::<Vec<_>>())
}

/// What the runs found: jumps and kinks of any of them, the period that most of those with one have.
fn breaks(cells: &[CollectedCell]) -> Breaks {
    let distinct = |of: &dyn Fn(&CollectedCell) -> bool| {
        let found: BTreeSet<i64> = cells.iter().filter(|cell| of(cell)).map(|cell| cell.batch_size).collect();
        found.into_iter().map(|size| size as f64).collect()
    };
    let mut periods: BTreeMap<i64, usize> = BTreeMap::new();
    cells.iter().filter_map(|cell| cell.period).for_each(|period| *periods.entry(period).or_default() += 1);
    Breaks {
        jumps: distinct(&|cell| cell.jump_s.is_some()),
        kinks: distinct(&|cell| cell.kink_before_s.is_some()),
        period: periods.into_iter().max_by_key(|(_, count)| *count).map(|(period, _)| period as f64),
    }
}

/// Whether most runs, among those that looked for jumps, found an upward jump after this batch size.
fn jumps_after(cells: &[CollectedCell], batch_size: usize) -> bool {
    let here = || cells.iter().filter(|cell| cell.searched && cell.batch_size == batch_size as i64);
    let found = here().filter(|cell| cell.jump_s.is_some_and(|size| size > 0.0)).count();
    found > 0 && 2 * found >= here().count()
}

fn power(cells: &[CollectedCell], batch_size: usize) -> Option<f64> {
    let measured = cells.iter().filter_map(|cell| Some((cell.batch_size.abs_diff(batch_size as i64), cell.power_w?)));
    measured.min_by_key(|(distance, _)| *distance).map(|(_, power)| power)
}

/// A typical step over the fastest of its visit, the median over cells.
pub(super) fn slowdown<'a>(cells: impl Iterator<Item = &'a CollectedCell>) -> f64 {
    let mut ratios: Vec<f64> = cells.filter_map(|cell| Some(cell.median_s? / cell.fastest_s?)).collect();
    if ratios.is_empty() { 1.0 } else { median(&mut ratios) }
}
