//! Periods: do the jumps stand at multiples of one number more often than chance would put them there?
//!
//! With m jumps among b boundaries, and a comb of c boundaries of which h hold a jump, the chance of h or more hits is the upper
//! tail of the hypergeometric distribution. It is corrected for all combs tried: half of the risk goes to the combs through
//! the multiples of P themselves, which is where hardware puts them, and half to combs with an offset.

use super::dictionary::Term;
use super::model::Model;
use super::{Jump, Period, boundary, grid};
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
        return Some(Period { value: stairs.period, p_value, explains: explained(&stairs.risers, &places, jumps) });
    }
    on_a_comb(x, &places, jumps).filter(|period| period.p_value <= level.max(1e-9))
}

/// A comb: the boundaries after which x leaves `phase` when divided by `period`.
struct Comb {
    period: f64,
    hits: usize,
    /// Positions, ascending and distinct.
    teeth: Vec<usize>,
    centred: bool,
}

/// Every comb with enough hits, and how many there are without an offset and with one.
///
/// A comb with an offset is built only where that many jumps leave its remainder, so that long series cost O(n m) and not n^2.
fn combs(x: &[f64], places: &[usize]) -> (Vec<Comb>, [usize; 2]) {
    let Some((unit, longest)) = grid::periods(x) else { return (Vec::new(), [0, 0]) };
    let (mut found, mut rivals) = (Vec::new(), [0, 0]);
    // Beyond a third of the range a comb has fewer than three teeth, and proves nothing.
    for q in (2..=longest).take_while(|q| (2 * longest + 1) / q >= FEWEST) {
        rivals[0] += 1;
        rivals[1] += q - 1;
        let period = q as f64 * unit;
        let mut remainders: Vec<f64> = places.iter().map(|&p| x[p].rem_euclid(period)).collect();
        remainders.sort_by(f64::total_cmp);
        let shared = remainders.chunk_by(|a, b| a == b).filter(|c| c.len() >= FEWEST).map(|c| c[0]);
        let phases: Vec<f64> = std::iter::once(0.0).chain(shared.filter(|phase| *phase > 0.0)).collect();
        for phase in phases {
            let mut teeth = grid::risers(x, period, phase);
            teeth.dedup();
            let hits = places.iter().filter(|p| teeth.binary_search(p).is_ok()).count();
            if hits >= FEWEST {
                found.push(Comb { period, hits, teeth, centred: phase == 0.0 });
            }
        }
    }
    (found, rivals)
}

/// The comb that chance explains least, with its corrected p-value.
fn on_a_comb(x: &[f64], places: &[usize], jumps: &[Jump]) -> Option<Period> {
    let (combs, [centred, shifted]) = combs(x, places);
    let p_value = |comb: &Comb| {
        let rivals = 2 * if comb.centred { centred } else { shifted };
        (rivals as f64 * chance(x.len() - 1, comb.teeth.len(), places.len(), comb.hits)).min(1.0)
    };
    let (best, p_value) = combs.iter().map(|c| (c, p_value(c))).min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(Period { value: best.period, p_value, explains: explained(&best.teeth, places, jumps) })
}

fn explained(teeth: &[usize], places: &[usize], jumps: &[Jump]) -> Vec<f64> {
    let hit = |place: &usize| teeth.binary_search(place).is_ok();
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

    fn found(last: u32, afters: &[f64]) -> Option<Period> {
        let x: Vec<f64> = (1..=last).map(f64::from).collect();
        let jump = |&after: &f64| Jump {
            after,
            size: 1.0,
            low: 0.9,
            high: 1.1,
            relative: 0.1,
            p_value: 1e-6,
            verdict: crate::detect::Verdict::Ambiguous,
        };
        let places: Vec<usize> = afters.iter().map(|a| x.partition_point(|v| v < a)).collect();
        on_a_comb(&x, &places, &afters.iter().map(jump).collect::<Vec<_>>()).filter(|p| p.p_value <= 0.01)
    }

    #[test]
    fn every_period_up_to_a_quarter_of_the_range_is_proven_with_any_offset() {
        for period in 2..=17u32 {
            for offset in 0..period {
                let afters: Vec<f64> = (1..70).filter(|k| k % period == offset).map(f64::from).collect();
                let proven = found(70, &afters).map(|p| (p.value, p.explains.len()));
                assert_eq!(proven, Some((f64::from(period), afters.len())), "period {period}, offset {offset}");
            }
        }
        assert_eq!(found(70, &[5.0, 21.0, 37.0, 53.0]).map(|p| p.value), Some(16.0));
        assert_eq!(found(4096, &[261.0, 773.0, 1285.0, 1797.0, 2309.0]).map(|p| p.value), Some(512.0));
    }

    #[test]
    fn longer_periods_need_multiples_and_three_jumps_with_an_offset_prove_nothing() {
        // 3 of 69 boundaries on a comb of 3: 1 / C(69, 3) = 1.9e-5, times 2 * 22 periods without an offset
        assert_eq!(found(70, &[23.0, 46.0, 69.0]).map(|p| p.value), Some(23.0));
        assert_eq!(found(70, &[5.0, 21.0, 37.0]), None);
    }

    #[test]
    fn random_places_seldom_have_a_period() {
        let mut rng = crate::stats::bootstrap::Rng::new(3);
        let proven = (0..2000)
            .filter(|i| {
                let mut all: Vec<f64> = (1..70).map(f64::from).collect();
                rng.shuffle(&mut all);
                let mut afters = all[..3 + i % 6].to_vec();
                afters.sort_by(f64::total_cmp);
                found(70, &afters).is_some()
            })
            .count();
        // The promise is 1 % of 2,000; 33 leaves three standard deviations to chance.
        assert!(proven <= 33, "{proven} of 2000");
    }

    #[test]
    fn the_chance_of_hits_is_hypergeometric() {
        // By hand: 4 marked of 10, 3 drawn, at least 2 hits: (C(4,2) 6 + C(4,3)) / C(10,3) = 40 / 120
        assert!((chance(10, 4, 3, 2) - 1.0 / 3.0).abs() < 1e-12);
        // scipy.stats.hypergeom.sf(2, 69, 4, 4) = 0.0003019082684693251
        assert!((chance(69, 4, 4, 3) / 0.0003019082684693251 - 1.0).abs() < 1e-9);
        assert!((chance(69, 8, 5, 0) - 1.0).abs() < 1e-9);
    }
}
