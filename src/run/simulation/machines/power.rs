//! How large a jump has to be to be found, with the same visits on one machine or on several.

use super::{Fleet, detected};
use crate::detect::Observation;
use crate::engine::synthetic::Truth;
use crate::error::Result;

/// After which batch size the jump is.
const AFTER: f64 = 20.0;
/// The smallest and the largest jump that are tried, as shares of the level, and how often the range is halved: to 2 % of the answer.
const RANGE: (f64, f64) = (0.001, 0.3);
const HALVED: usize = 8;

/// What a study found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// The jump, as a share of the level, that is found at its place in 90 % of experiments.
    pub jump: f64,
    /// The 95 % interval of that, for the number of experiments.
    pub low: f64,
    pub high: f64,
}

/// From the experiments of `seeds`, which have no jump of their own: the times beyond batch size 20 are prolonged by one, the smallest that is found is
/// sought for each experiment, and nine in ten are below the answer.
pub fn power(fleet: Fleet, seeds: std::ops::Range<u64>) -> Result<Power> {
    let smallest: Result<Vec<f64>> = seeds.map(|seed| smallest(fleet, seed)).collect();
    let mut smallest = smallest?;
    smallest.sort_by(f64::total_cmp);
    let count = smallest.len() as f64;
    // The number of experiments below the quantile is binomial.
    let at = |errors: f64| {
        let place = 0.9 * count + errors * (0.09 * count).sqrt();
        smallest[(place.ceil() as usize).clamp(1, smallest.len()) - 1]
    };
    Ok(Power { jump: at(0.0), low: at(-1.96), high: at(1.96) })
}

fn smallest(fleet: Fleet, seed: u64) -> Result<f64> {
    let (truth, plain) = (fleet.truth(seed)?, fleet.observations(seed)?);
    let (mut low, mut high) = (RANGE.0.ln(), RANGE.1.ln());
    for _ in 0..HALVED {
        let middle = 0.5 * (low + high);
        let jumps = detected(&with_jump(&plain, &truth, middle.exp())).jumps;
        let found = jumps.iter().any(|jump| (jump.after_low..=jump.after_high).contains(&AFTER));
        if found { high = middle } else { low = middle }
    }
    Ok(high.exp())
}

fn with_jump(plain: &[Observation], truth: &Truth, relative: f64) -> Vec<Observation> {
    let size = relative * truth.step_s(AFTER as usize);
    let prolonged = |observation: &Observation| {
        let more = if observation.x > AFTER { size / truth.step_s(observation.x as usize) } else { 0.0 };
        Observation { y: observation.y * (1.0 + more), ..*observation }
    };
    plain.iter().map(prolonged).collect()
}

#[cfg(test)]
mod tests {
    use super::super::VisitPattern;
    use super::*;

    /// What machines add to all batch sizes is subtracted, so that four find what one does with the same visits: nine in ten of 20 experiments, so
    /// the two may differ by a quarter by chance.
    #[test]
    fn machines_that_differ_find_the_same_as_one_with_the_same_visits() {
        let one =
            Fleet { machines: 1, blocks: 8, visits: VisitPattern::Equal, relative_sd: 0.1, cell_sd: 0.0, jump: 0.0 };
        let four = Fleet { machines: 4, blocks: 2, ..one };
        let [one, four] = [one, four].map(|fleet| power(fleet, 0..20).expect("runs").jump);
        assert!((0.003..0.03).contains(&one) && (0.7..1.4).contains(&(four / one)), "{one} {four}");
    }
}
