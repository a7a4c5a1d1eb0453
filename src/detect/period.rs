//! Periods: do the jumps stand at multiples of one number more often than chance would put them there?
//!
//! With m jumps among b boundaries, and a comb of c boundaries of which h hold a jump, the chance of h or more hits is the upper
//! tail of the hypergeometric distribution. It is corrected for all combs tried: half of the risk goes to the combs through
//! the multiples of P themselves, which is where hardware puts them, and half to combs with an offset.

use super::dictionary::{Dictionary, Stairs, Term};
use super::model::Model;
use super::{Jump, Period, boundary};
use crate::stats::distribution::ln_gamma;

/// Fewest jumps that may prove a period.
const FEWEST: usize = 3;

/// The period of the jumps, where it is proven at `level`.
pub(super) fn period(model: &Model, x: &[f64], jumps: &[Jump], level: f64) -> Option<Period> {
    let dictionary = model.problem.dictionary;
    let places: Vec<usize> = jumps.iter().map(|j| x.partition_point(|v| *v < j.after)).collect();
    if places.len() < FEWEST {
        return None;
    }
    let staircase = model.terms.iter().enumerate().find_map(|(place, &j)| match dictionary.term(j) {
        Term::Stairs(s) => Some((place, &dictionary.stairs[s])),
        _ => None,
    });
    if let Some((place, stairs)) = staircase {
        let z = model.direction(place).1.abs() / model.spread();
        let p_value = boundary::p_value(z, model.error_freedom(), dictionary.stairs.len());
        return Some(Period { value: stairs.period, p_value, explains: explained(stairs, &places, jumps) });
    }
    let best = candidates(dictionary, &places).min_by(|a, b| a.1.total_cmp(&b.1))?;
    (best.1 <= level.max(1e-9)).then(|| Period {
        value: best.0.period,
        p_value: best.1,
        explains: explained(best.0, &places, jumps),
    })
}

/// Each comb with its corrected p-value.
fn candidates<'a>(dictionary: &'a Dictionary, places: &'a [usize]) -> impl Iterator<Item = (&'a Stairs, f64)> {
    let centred = dictionary.stairs.iter().filter(|s| s.phase == 0.0).count();
    let shifted = dictionary.stairs.len() - centred;
    let boundaries = dictionary.n - 1;
    dictionary.stairs.iter().filter_map(move |stairs| {
        let mut comb = stairs.risers.clone();
        comb.dedup();
        let hits = places.iter().filter(|p| comb.binary_search(p).is_ok()).count();
        (hits >= FEWEST).then(|| {
            let rivals = 2 * if stairs.phase == 0.0 { centred } else { shifted };
            (stairs, (rivals as f64 * chance(boundaries, comb.len(), places.len(), hits)).min(1.0))
        })
    })
}

fn explained(stairs: &Stairs, places: &[usize], jumps: &[Jump]) -> Vec<f64> {
    let hit = |place: &usize| stairs.risers.binary_search(place).is_ok();
    jumps.iter().zip(places).filter(|(_, place)| hit(place)).map(|(jump, _)| jump.after).collect()
}

/// P(at least `hits` of `drawn` draws without replacement from `all` fall among `marked`).
fn chance(all: usize, marked: usize, drawn: usize, hits: usize) -> f64 {
    let choose = |n: usize, k: usize| {
        let (n, k) = (n as f64, k as f64);
        ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
    };
    (hits..=drawn.min(marked))
        .filter(|h| drawn - h <= all - marked)
        .map(|h| (choose(marked, h) + choose(all - marked, drawn - h) - choose(all, drawn)).exp())
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_of_hits_is_hypergeometric() {
        // By hand: 4 marked of 10, 3 drawn, at least 2 hits: (C(4,2) 6 + C(4,3)) / C(10,3) = 40 / 120
        assert!((chance(10, 4, 3, 2) - 1.0 / 3.0).abs() < 1e-12);
        // scipy.stats.hypergeom.sf(2, 69, 4, 4) = 0.0003019082684693251
        assert!((chance(69, 4, 4, 3) / 0.0003019082684693251 - 1.0).abs() < 1e-9);
        assert!((chance(69, 8, 5, 0) - 1.0).abs() < 1e-9);
    }
}
