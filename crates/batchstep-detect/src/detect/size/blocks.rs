//! The noise between the blocks of a run: the values of one pass over all x stay together.
//!
//! Repetitions of one visit, or of one pass, share the state of the machine at that time; only the passes are
//! independent. So whole blocks are drawn with replacement, for all x at once, and the centers follow (Davison &
//! Hinkley 1997, 8.2.3). The center is a biweight: a resample moves it by the mean of psi over the mean of psi', its
//! influence function (Huber 1981, 3.2); where it is a quantile, by the indicator of what is above it. If several machines measured a series, machines are drawn instead, and a
//! center is the weighted mean of those drawn.

use super::sizes::Size;
use crate::detect::model::fit::Model;
use crate::detect::prepare::prepared::Prepared;
use crate::detect::prepare::reduce::{Reduced, Share};
use crate::detect::prepare::scaled::Scaled;
use crate::random::Rng;
use crate::stats::robust;

/// Fewest blocks from which a spread is estimated.
const FEWEST: usize = 4;
/// The lower bound on the mean of psi'; it is 0.76 for clean normal data.
const STEEP: f64 = 0.3;

/// The data that a resample needs, for each x and block.
pub(crate) struct SizesByBlock {
    count: usize,
    /// For each x, by block: the sum of psi divided by the mean of psi' at this x, in the model's y; and the number of
    /// observations, or the weight of the machine.
    moves: Vec<Vec<(f64, f64)>>,
}

impl SizesByBlock {
    /// The blocks of `series`, whose ln y without the common factor is `log` and which was reduced to `reduced`.
    ///
    /// `None` if blocks are not known, if there are fewer than four, or if they have too few x to be passes.
    pub fn new(series: &Prepared, log: &[f64], reduced: &Reduced, scaled: &Scaled) -> Option<Self> {
        if !reduced.shares.is_empty() {
            return Self::of_machines(reduced, scaled);
        }
        let block = series.block.as_ref()?;
        let mut names = block.clone();
        names.sort_unstable();
        names.dedup();
        let count = names.len();
        if count < FEWEST || !reduced.repeated {
            return None;
        }
        let place = |i: usize| names.binary_search(&block[i]).unwrap_or(0);
        let at = |(i, group): (usize, &std::ops::Range<usize>)| {
            let (center, scale) = (reduced.center[i], reduced.scale[i]);
            let mut own = vec![(0.0, 0.0); count];
            let mut steep = 0.0;
            for j in group.clone() {
                let (psi, slope) = match reduced.share {
                    Some(share) => (robust::quantile_psi(log[j] - center, share), 1.0),
                    None => robust::biweight_psi((log[j] - center) / scale),
                };
                own[place(j)].0 += psi * scale;
                own[place(j)].1 += 1.0;
                steep += slope / group.len() as f64;
            }
            for (psi, _) in &mut own {
                *psi *= scaled.level[i] / steep.max(STEEP);
            }
            own
        };
        Self::passes(count, series.groups.iter().enumerate().map(at).collect())
    }

    /// The machines from which the levels are computed.
    fn of_machines(reduced: &Reduced, scaled: &Scaled) -> Option<Self> {
        let count = reduced.shares.iter().flatten().map(|share| share.node + 1).max().unwrap_or(0);
        if count < FEWEST {
            return None;
        }
        let at = |(shares, level): (&Vec<Share>, &f64)| {
            let mut own = vec![(0.0, 0.0); count];
            for Share { node, weight, away } in shares {
                own[*node] = (weight * away * level, *weight);
            }
            own
        };
        Self::passes(count, reduced.shares.iter().zip(&scaled.level).map(at).collect())
    }

    /// `None` if they have too few x each.
    fn passes(count: usize, moves: Vec<Vec<(f64, f64)>>) -> Option<Self> {
        let seen: usize = moves.iter().flatten().filter(|(_, count)| *count > 0.0).count();
        (2 * seen > count * moves.len()).then_some(Self { count, moves })
    }

    /// Degrees of freedom of a spread between blocks.
    pub fn freedom(&self) -> f64 {
        self.count as f64 - 1.0
    }

    /// The errors of each size in resamples of the blocks.
    ///
    /// Multiplied by the root of count / (count - 1), because a resample of few blocks varies too little. Cost:
    /// `resamples` n (blocks + sizes).
    pub fn errors(&self, model: &Model, sizes: &[Size], resamples: usize, rng: &mut Rng) -> Vec<Vec<f64>> {
        let mut errors = vec![Vec::with_capacity(resamples); sizes.len()];
        let (mut times, mut moved) = (vec![0.0; self.count], vec![0.0; self.moves.len()]);
        let stretch = (self.count as f64 / (self.count as f64 - 1.0)).sqrt();
        for _ in 0..resamples {
            times.fill(0.0);
            for _ in 0..self.count {
                times[rng.below(self.count)] += 1.0;
            }
            for ((moved, own), factor) in moved.iter_mut().zip(&self.moves).zip(&model.problem.factor) {
                let (psi, count) = own.iter().zip(&times).fold((0.0, 0.0), |(a, b), (m, t)| (a + m.0 * t, b + m.1 * t));
                // An x that is in none of the drawn blocks stays unchanged.
                *moved = if count > 0.0 { psi / count * factor * stretch } else { 0.0 };
            }
            for (errors, size) in errors.iter_mut().zip(sizes) {
                errors.push(crate::detect::model::simd::dot(&size.influence, &moved));
            }
        }
        errors
    }
}
