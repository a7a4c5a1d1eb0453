//! The differences between the machines that measured one series together.
//!
//! What a machine adds to all x is fitted with the levels ([`super::node_means`]) and subtracted. What it adds to only
//! one x cannot be subtracted, and all its visits there share it: the precision of a level then depends on the number
//! of machines, not only on the number of visits. So the levels are those of the machines' means.

use super::node_means::{Fitted, Level};
use super::prepared::Prepared;
use super::reduce::Reduced;
use super::units::{FLOOR, ROUNDING};
use crate::detect::findings::Note;
use crate::detect::machines::{NodeEffect, differences};
use crate::stats::quantile::median;
use crate::stats::robust::{self, MAD_TO_SIGMA};

/// The standard deviation of a median divided by that of the mean, for normal data: sqrt(pi / 2).
const MEDIAN_LOSS: f64 = 1.253;

/// The machines of a series.
pub(crate) struct Nodes {
    pub effects: Vec<NodeEffect>,
    /// The machine of each entry of the columns, from 0.
    place: Vec<usize>,
}

/// Subtracts from `series` what each machine adds to all x; `None` if only one machine measured it, or if the machines
/// are not known.
pub(crate) fn subtract(series: &mut Prepared, names: &[String]) -> Option<Nodes> {
    let node = series.node.clone()?;
    let mut present = node.clone();
    present.sort_unstable();
    present.dedup();
    if present.len() < 2 {
        return None;
    }
    let place: Vec<usize> = node.iter().map(|node| present.partition_point(|other| other < node)).collect();
    let fitted = Fitted::new(&series.groups, &series.log, &place, present.len());
    for (log, place) in series.log.iter_mut().zip(&place) {
        *log -= fitted.added[*place];
    }
    let effect = |(at, &number): (usize, &u32)| {
        let name = names.get(number as usize).cloned().unwrap_or_else(|| format!("machine {}", at + 1));
        let error = error(series, &place, at, &fitted);
        let [relative, low, high] = [0.0, -2.0, 2.0].map(|errors| (fitted.added[at] + errors * error).exp_m1());
        NodeEffect { name, visits: place.iter().filter(|place| **place == at).count(), relative, low, high }
    };
    Some(Nodes { effects: present.iter().enumerate().map(effect).collect(), place })
}

/// The standard error of what one machine adds. The visits of one block share the machine's state at that time, so
/// blocks count instead of visits, if there are at least three; the x count as well, since the machine adds something
/// different to each.
fn error(series: &Prepared, place: &[usize], at: usize, fitted: &Fitted) -> f64 {
    let cell = series.membership();
    let own: Vec<usize> = (0..place.len()).filter(|&i| place[i] == at).collect();
    let rest = |i: usize| series.log[i] - fitted.level[cell[i]];
    let mut blocks: Vec<(u32, f64)> =
        series.block.iter().flat_map(|block| own.iter().map(|&i| (block[i], rest(i)))).collect();
    blocks.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let middles: Vec<f64> = blocks.chunk_by(|a, b| a.0 == b.0).map(|block| block[block.len() / 2].1).collect();
    let values = if middles.len() >= 3 { middles } else { own.iter().map(|&i| rest(i)).collect() };
    let spread = MAD_TO_SIGMA * robust::mad(&values, median(&mut values.clone()));
    let of_blocks = MEDIAN_LOSS * spread / (values.len() as f64).sqrt();
    fitted.error_of(at).map_or(of_blocks, |of_x| of_x.max(of_blocks))
}

impl Nodes {
    pub fn note(&self) -> Note {
        let relative = || self.effects.iter().map(|effect| effect.relative);
        let (low, high) = (relative().fold(f64::INFINITY, f64::min), relative().fold(f64::NEG_INFINITY, f64::max));
        Note::Nodes { count: self.effects.len(), low, high, apart: differences(&self.effects) }
    }

    /// The level of each x of `series`, whose ln y is `log`, from the means of the machines. `None` if each visit can
    /// count as one of a separate machine.
    pub fn levels(&self, series: &Prepared, log: &[f64]) -> Option<Vec<Level>> {
        Fitted::new(&series.groups, log, &self.place, self.effects.len()).levels()
    }

    /// `reduced` with those levels.
    pub fn reduce(&self, series: &Prepared, log: &[f64], reduced: &mut Reduced) {
        let Some(levels) = self.levels(series, log) else { return };
        let error = |(level, tick): (&Level, &f64)| level.error.hypot(ROUNDING * tick).max(FLOOR);
        reduced.error = levels.iter().zip(&reduced.tick).map(error).collect();
        reduced.center = levels.iter().map(|level| level.center).collect();
        reduced.freedom = levels.iter().map(|level| level.freedom).collect();
        reduced.shares = levels.into_iter().map(|level| level.shares).collect();
    }
}
