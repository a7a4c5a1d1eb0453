//! Observations cleaned and grouped by x: the form that the rest of the room uses.

use std::ops::Range;

use super::first;
use super::visits::{Visits, by_visit};
use crate::detect::findings::Note;
use crate::detect::input::Observation;
use crate::stats::disturbance::Fastest;

/// Cleaned observations, sorted by x and within one x by order; columns side by side, one entry for each visit, or for each step
/// where visits are not known. Columns instead of a list of structs, so that sums run in wide vectors.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prepared {
    /// Distinct x, ascending.
    pub x: Vec<f64>,
    /// For each distinct x, where its observations stand in the columns.
    pub groups: Vec<Range<usize>>,
    /// ln y: noise of step times is multiplicative.
    pub log: Vec<f64>,
    /// Position in the run: `order`, or `block` where no order is known; `None` unless every observation has one.
    pub order: Option<Vec<f64>>,
    /// Pass over all x in which it was measured; `None` unless every observation has one.
    pub block: Option<Vec<u32>>,
    /// The machine that measured it; `None` unless every observation has one.
    pub node: Option<Vec<u32>>,
    /// Clock in Hz; `None` unless every observation has one.
    pub clock: Option<Vec<f64>>,
    /// If the fastest steps represent the visits.
    pub by_fastest: Option<Fastest>,
    /// What was left out, and what represents an x.
    pub notes: Vec<Note>,
}

/// The share of neighbours that were measured in the order of their x.
const IN_TURN: f64 = 0.8;

impl Prepared {
    pub fn new(observations: &[Observation]) -> Self {
        let usable = |o: &&Observation| o.x.is_finite() && o.y.is_finite() && o.y > 0.0;
        let usable: Vec<Observation> = observations.iter().filter(usable).copied().collect();
        let dropped = observations.len() - usable.len();
        let Visits { observations: mut kept, by_fastest, slow } = by_visit(usable);
        let place = |o: &Observation| o.order.unwrap_or(0.0);
        kept.sort_by(|a, b| a.x.total_cmp(&b.x).then(place(a).total_cmp(&place(b))));
        let of_blocks = kept.iter().any(|o| o.block.is_some());
        let apart = if of_blocks { None } else { first::leave_out(&mut kept) };
        let mut notes: Vec<Note> = (dropped > 0).then_some(Note::Dropped { count: dropped }).into_iter().collect();
        notes.extend(apart.map(|times| Note::OneLeftOut { times }));
        notes.extend(slow.map(Note::Slow));
        notes.extend(by_fastest.map(Note::ByFastest));
        let all = |value: &dyn Fn(&Observation) -> Option<f64>| -> Option<Vec<f64>> {
            kept.iter()
                .map(|o| value(o).filter(|v| v.is_finite()))
                .collect::<Option<Vec<f64>>>()
                .filter(|v| !v.is_empty())
        };
        let mut prepared = Self {
            log: kept.iter().map(|o| o.y.ln()).collect(),
            order: all(&|o| o.order).or_else(|| all(&|o| o.block.map(f64::from))),
            block: kept.iter().map(|o| o.block).collect(),
            node: kept.iter().map(|o| o.node).collect(),
            clock: all(&|o| o.clock_hz.filter(|hz| *hz > 0.0)),
            by_fastest,
            notes,
            ..Self::default()
        };
        for group in kept.chunk_by(|a, b| a.x == b.x) {
            let start = prepared.groups.last().map_or(0, |group| group.end);
            prepared.x.push(group[0].x);
            prepared.groups.push(start..start + group.len());
        }
        prepared
    }

    /// The quantile of its visits that is the level of an x; `None`: their middle.
    pub fn share(&self) -> Option<f64> {
        self.by_fastest.and_then(|fastest| fastest.share)
    }

    /// For each x, the smallest and the largest of its values, whose logarithms are `log`; one in six at either end does not count.
    pub fn extremes(&self, log: &[f64]) -> Vec<[f64; 2]> {
        let of = |group: &Range<usize>| {
            let mut own = log[group.clone()].to_vec();
            own.sort_by(f64::total_cmp);
            let last = own.len() - 1;
            [own[last / 6], own[last - last / 6]].map(f64::exp)
        };
        self.groups.iter().map(of).collect()
    }

    /// The observations of some of the distinct x.
    pub fn part(&self, x: &Range<usize>) -> Self {
        let rows = self.rows(x);
        Self {
            x: self.x[x.clone()].to_vec(),
            groups: self.groups[x.clone()].iter().map(|g| g.start - rows.start..g.end - rows.start).collect(),
            log: self.log[rows.clone()].to_vec(),
            order: self.order.as_ref().map(|order| order[rows.clone()].to_vec()),
            block: self.block.as_ref().map(|block| block[rows.clone()].to_vec()),
            node: self.node.as_ref().map(|node| node[rows.clone()].to_vec()),
            clock: self.clock.as_ref().map(|clock| clock[rows].to_vec()),
            by_fastest: self.by_fastest,
            notes: Vec::new(),
        }
    }

    /// Where the observations of some of the distinct x stand in the columns.
    pub fn rows(&self, x: &Range<usize>) -> Range<usize> {
        self.groups[x.start].start..self.groups[x.end - 1].end
    }

    /// Whether neighbouring x are known to have been measured one after another. Whatever disturbs the machine for a while then disturbs neighbours.
    pub fn in_turn(&self) -> bool {
        let Some(order) = &self.order else { return false };
        let means: Vec<f64> =
            self.groups.iter().map(|g| order[g.clone()].iter().sum::<f64>() / g.len() as f64).collect();
        let ascending = means.windows(2).filter(|pair| pair[1] > pair[0]).count();
        ascending.max(means.len() - 1 - ascending) as f64 > IN_TURN * (means.len() - 1) as f64
    }

    /// Which distinct x each observation belongs to.
    pub fn membership(&self) -> Vec<usize> {
        let mut member = vec![0; self.log.len()];
        for (i, group) in self.groups.iter().enumerate() {
            member[group.clone()].fill(i);
        }
        member
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_values_are_dropped_and_counted_and_the_rest_is_grouped() {
        let ys = [(2.0, 5.0), (1.0, 3.0), (2.0, f64::NAN), (1.0, -1.0), (f64::INFINITY, 1.0), (2.0, 4.0), (3.0, 0.0)];
        let observations: Vec<Observation> = ys.iter().map(|&(x, y)| Observation::new(x, y)).collect();
        let prepared = Prepared::new(&observations);
        assert_eq!(prepared.x, [1.0, 2.0]);
        assert_eq!(prepared.groups, [0..1, 1..3]);
        assert_eq!(prepared.notes, [Note::Dropped { count: 4 }]);
        assert_eq!(prepared.membership(), [0, 1, 1]);
        assert!(prepared.order.is_none());
    }
}
