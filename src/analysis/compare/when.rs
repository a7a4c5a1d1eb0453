//! When two runs were measured, which decides what their difference can be due to.

use std::collections::BTreeSet;

use super::{Design, Series};

/// When the second run was measured, beside the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum When {
    InTurns {
        /// Rounds that both have.
        rounds: usize,
    },
    /// Several runs a side on the same machine, neither side all before the other.
    Mixed,
    /// On the same machine, for at least half of the shorter run at the same time.
    AtTheSameTime,
    /// On another machine, or at another time of the same one.
    Apart,
    #[default]
    Unknown,
}

impl When {
    pub(super) fn of(first: &[Series], second: &[Series], design: Design) -> Self {
        if design == Design::InTurns {
            let both = blocks(first).intersection(&blocks(second)).count();
            return Self::InTurns { rounds: both };
        }
        let (Some(a), Some(b)) = (span(first), span(second)) else { return Self::Unknown };
        let common = a[1].min(b[1]) - a[0].max(b[0]);
        let shorter = (a[1] - a[0]).min(b[1] - b[0]);
        if nodes(first) == nodes(second) && common > 0.0 && common >= 0.5 * shorter {
            Self::AtTheSameTime
        } else {
            Self::Apart
        }
    }

    /// When several runs a side were measured.
    pub(super) fn of_sides(first: &[Vec<Series>], second: &[Vec<Series>]) -> Self {
        let middles = |side: &[Vec<Series>]| -> Option<Vec<f64>> {
            side.iter().map(|run| span(run).map(|[from, to]| 0.5 * (from + to))).collect()
        };
        let (Some(a), Some(b)) = (middles(first), middles(second)) else { return Self::Unknown };
        let machines: BTreeSet<BTreeSet<&String>> = first.iter().chain(second).map(|run| nodes(run)).collect();
        let ends =
            |times: &[f64]| times.iter().fold([f64::INFINITY, f64::NEG_INFINITY], |[l, h], t| [l.min(*t), h.max(*t)]);
        let ([from, to], [other_from, other_to]) = (ends(&a), ends(&b));
        if machines.len() == 1 && from < other_to && other_from < to { Self::Mixed } else { Self::Apart }
    }

    /// The runs of each side, of two that are compared: in turns, the rounds.
    pub(super) fn runs(self) -> [usize; 2] {
        if let Self::InTurns { rounds } = self { [rounds; 2] } else { [1; 2] }
    }

    /// Whether a temporary slowdown of the machine affects both runs alike, so that a difference comes from the code.
    pub fn shares_the_machine(self) -> bool {
        matches!(self, Self::InTurns { .. } | Self::AtTheSameTime | Self::Mixed)
    }
}

fn blocks(series: &[Series]) -> BTreeSet<u32> {
    series.iter().flat_map(|series| &series.measurements).filter_map(|one| one.observation.block).collect()
}

/// The first and the last visit's begin, where all series have them.
fn span(series: &[Series]) -> Option<[f64; 2]> {
    let spans: Option<Vec<[f64; 2]>> = series.iter().map(|series| series.measured).collect();
    spans?.into_iter().reduce(|a, b| [a[0].min(b[0]), a[1].max(b[1])])
}

fn nodes(series: &[Series]) -> BTreeSet<&String> {
    series.iter().flat_map(|series| &series.nodes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_share_a_machine_where_they_share_its_time() {
        let run = |from: f64, to: f64, node: &str| {
            let (measured, nodes) = (Some([from, to]), vec![node.to_owned()]);
            [Series { measured, nodes, ..Series::planted(Vec::new(), Vec::new()) }]
        };
        let when = |b: &[Series]| When::of(&run(100.0, 200.0, "a"), b, Design::Separate);
        assert_eq!(when(&run(110.0, 190.0, "a")), When::AtTheSameTime);
        assert_eq!(when(&run(140.0, 260.0, "a")), When::AtTheSameTime);
        for apart in [run(210.0, 300.0, "a"), run(180.0, 280.0, "a"), run(110.0, 190.0, "b")] {
            assert_eq!(when(&apart), When::Apart, "{apart:?}");
        }
        assert_eq!(when(&[Series::planted(Vec::new(), Vec::new())]), When::Unknown);
        let sides = |a: &[f64], b: &[f64], node: &str| {
            let side =
                |at: &[f64], node: &str| at.iter().map(|&at| run(at, at + 9.0, node).to_vec()).collect::<Vec<_>>();
            When::of_sides(&side(a, "a"), &side(b, node))
        };
        assert_eq!(sides(&[0.0, 30.0, 40.0], &[10.0, 20.0, 50.0], "a"), When::Mixed);
        assert_eq!(sides(&[0.0, 30.0, 40.0], &[10.0, 20.0, 50.0], "b"), When::Apart);
        assert_eq!(sides(&[0.0, 10.0, 20.0], &[30.0, 40.0, 50.0], "a"), When::Apart);
        assert!(!When::Unknown.shares_the_machine() && When::InTurns { rounds: 1 }.shares_the_machine());
    }
}
