//! Series whose x were measured one after another, in several passes. What the machine does meanwhile (other programs, heat, a clock) is then
//! a function of x in each pass, and neighbours share it: values at one x do not show how large a step or a bend it makes. The passes do. So a
//! jump or a kink counts only if it stands out from what passes differ by.

use super::findings::{Candidate, Findings, Jump, Kink, Note};
use super::input::Observation;
use super::rejection::Rejection;
use crate::stats::distribution;
use crate::stats::quantile::median;
use crate::stats::regression::line;

/// The most points on each side of a jump and of a kink, and the fewest.
const OF_JUMP: usize = 6;
const OF_KINK: usize = 12;
const LEAST: usize = 3;
/// The number of passes that the mean variance of all places counts for, beside the passes at a place.
const POOLED: f64 = 3.0;

/// More passes than this, for as many values as all x together have in one, are no passes: x were measured in random order.
const MOST_PASSES: f64 = 1.5;

/// y of each pass at each x, `NaN` where it has none.
pub(super) struct Passes {
    x: Vec<f64>,
    y: Vec<Vec<f64>>,
}

impl Passes {
    /// The passes of a series whose order is known, if there are two or more.
    pub fn of(observations: &[Observation]) -> Option<Self> {
        let usable = observations.iter().filter(|o| o.x.is_finite() && o.y.is_finite() && o.y > 0.0);
        let mut run =
            usable.map(|o| Some((o.order?, o.x, o.y)).filter(|_| o.node.is_none())).collect::<Option<Vec<_>>>()?;
        run.sort_by(|a, b| a.0.total_cmp(&b.0));
        // Steps of one visit are one value.
        let visits: Vec<(f64, f64)> = run
            .chunk_by(|a, b| a.1 == b.1)
            .map(|visit| (visit[0].1, median(&mut visit.iter().map(|step| step.2).collect::<Vec<f64>>())))
            .collect();
        let mut x: Vec<f64> = visits.iter().map(|visit| visit.0).collect();
        x.sort_by(f64::total_cmp);
        x.dedup();
        let rises = visits.windows(2).filter(|pair| pair[1].0 > pair[0].0).count();
        let falls = visits.len().saturating_sub(1) - rises;
        let passes: Vec<&[(f64, f64)]> = visits.chunk_by(|a, b| (b.0 > a.0) == (rises > falls)).collect();
        if passes.len() < 2 || (passes.len() * x.len()) as f64 > MOST_PASSES * visits.len() as f64 {
            return None;
        }
        let of = |pass: &&[(f64, f64)]| {
            let at = |x: &f64| pass.iter().find(|visit| visit.0 == *x).map_or(f64::NAN, |visit| visit.1);
            x.iter().map(at).collect()
        };
        let y = passes.iter().map(of).collect();
        Some(Self { x, y })
    }

    /// Rejects what the passes do not share. `rate`: the probability that any of the places counts by chance.
    pub fn reject_unshared(&self, rate: f64, findings: &mut Findings) {
        findings.notes.push(Note::MeasuredInTurn { passes: self.y.len() });
        let needed = distribution::normal_upper_quantile(rate / self.x.len() as f64 / 2.0);
        let place = |at: f64| self.x.partition_point(|other| *other < at);
        let ends: Vec<usize> = findings.jumps.iter().map(|jump| place(jump.after) + 1).collect();
        let of = |reach: usize, difference: fn([f64; 2], [f64; 2]) -> f64| {
            Differences::new(self.x.len(), |at| self.both_sides(at, reach, &ends, difference))
        };
        let (gaps, bends) =
            (of(OF_JUMP, |left, right| right[0] - left[0]), of(OF_KINK, |left, right| right[1] - left[1]));
        findings.kinks.retain(|kink: &Kink| bends.errors(place(kink.at)).is_none_or(|errors| errors > needed));
        let too_few = |jump: &Jump| gaps.errors(place(jump.after) + 1).filter(|errors| *errors <= needed);
        let rejected =
            |jump: &Jump| Some(Candidate::rejected(jump, Rejection::PassesDiffer { errors: too_few(jump)? }));
        findings.rejected.extend(findings.jumps.iter().filter_map(rejected));
        findings.rejected.sort_by(|a, b| a.after.total_cmp(&b.after));
        findings.jumps.retain(|jump| too_few(jump).is_none());
    }

    /// What lines through the points before and from `at` on differ by in each pass, as a share of the level; each line as its value between the
    /// two sides and its slope. The sides end at `ends`; `None` where one is too short.
    fn both_sides(
        &self,
        at: usize,
        reach: usize,
        ends: &[usize],
        difference: fn([f64; 2], [f64; 2]) -> f64,
    ) -> Option<Vec<f64>> {
        let from = ends.iter().copied().filter(|end| *end < at).max().unwrap_or(0).max(at.saturating_sub(reach));
        let to = ends.iter().copied().find(|end| *end > at).unwrap_or(self.x.len()).min(at + reach);
        let middle = 0.5 * (self.x[at.checked_sub(1)?] + self.x[at]);
        let of = |y: &Vec<f64>| {
            let side = |part: std::ops::Range<usize>| {
                let (x, y): (Vec<f64>, Vec<f64>) =
                    part.filter(|&i| y[i].is_finite()).map(|i| (self.x[i], y[i])).unzip();
                let line = line(&x, &y, &vec![1.0; x.len()]);
                (x.len() >= LEAST).then_some([line.intercept + line.slope * middle, line.slope])
            };
            let (left, right) = (side(from..at)?, side(at..to)?);
            Some(difference(left, right) / left[0].abs())
        };
        Some(self.y.iter().filter_map(of).collect()).filter(|passes: &Vec<f64>| passes.len() > 1)
    }
}

/// The mean of a difference at each place, and its variance over passes.
struct Differences {
    /// Mean, variance and number of passes.
    at: Vec<Option<[f64; 3]>>,
    pooled: f64,
}

impl Differences {
    fn new(places: usize, of: impl Fn(usize) -> Option<Vec<f64>>) -> Self {
        let mut at = vec![None; places];
        for (place, at) in at.iter_mut().enumerate() {
            let Some(values) = of(place) else { continue };
            let passes = values.len() as f64;
            let mean = values.iter().sum::<f64>() / passes;
            let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
            *at = Some([mean, squares / (passes - 1.0), passes]);
        }
        let variances: Vec<f64> = at.iter().flatten().map(|[_, variance, _]| *variance).collect();
        let pooled = variances.iter().sum::<f64>() / variances.len().max(1) as f64;
        Self { at, pooled }
    }

    /// The difference in standard errors.
    fn errors(&self, place: usize) -> Option<f64> {
        let [mean, variance, passes] = (*self.at.get(place)?)?;
        let own = passes - 1.0;
        let variance = (own * variance + POOLED * self.pooled) / (own + POOLED);
        Some(mean.abs() / (variance / passes).sqrt())
    }
}
