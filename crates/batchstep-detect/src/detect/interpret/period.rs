//! Periods: are the jumps at multiples of one number more often than expected by chance?
//!
//! With m jumps among b boundaries, and a periodic grid of c boundaries of which h hold a jump, the probability of h or more hits
//! is the upper tail of the hypergeometric distribution. It is corrected for all grids that are tried, with periods
//! from 2 to half the range, by dividing the risk among them in advance. Three quarters of it go to the grids through
//! the multiples of P themselves, which is where hardware puts them, in proportion to the **roundness** of P: the
//! largest number that divides it and is a power of two, or a number of the hardware times one. A quarter goes to the
//! grids with an offset and at least three boundaries, that is, a period up to a third of the range: with fewer
//! boundaries such a grid could not be proven.
//!
//! So two jumps can prove a round period whose grid has only two boundaries. After 32 and 64 of 70 the probability is `1 /
//! C(69, 2)`; the roundnesses of 2 to 34 sum to 114, and the roundness of 32 is 32: `p = 4/3 114/32 / 2346 = 0.0020`.

use std::collections::HashSet;

use crate::detect::findings::{Jump, Period};
use crate::detect::input::{HardwareNumbers, Settings};
use crate::detect::model::candidates::Term;
use crate::detect::model::fit::Model;
use crate::detect::model::grid as x_grid;
use crate::detect::verify::threshold;
use crate::stats::distribution::ln_gamma;

/// The fewest jumps that may prove a period, if its grid has at least this many boundaries.
const FEWEST: usize = 3;

/// The period of the jumps, if it is proven at the settings' false-positive rate. If the model's steps and the places
/// of the jumps show different periods, the one with the larger total of jumps is taken: small steps may be more
/// regular than a curve's main steps.
pub(crate) fn period(model: &Model, x: &[f64], jumps: &[Jump], settings: &Settings) -> Option<Period> {
    let candidates = model.problem.candidates;
    let places: Vec<usize> = jumps.iter().map(|j| x.partition_point(|v| *v < j.after)).collect();
    let staircase = model.terms.iter().enumerate().find_map(|(place, &j)| match candidates.term(j) {
        Term::Staircase(s) => Some((place, &candidates.staircases[s])),
        _ => None,
    });
    // Most of its steps must also have been found individually.
    let confirmed = |steps: &[usize]| steps.iter().filter(|step| places.contains(step)).count();
    let holds = |steps: &[usize]| confirmed(steps) >= FEWEST.max(steps.len().div_ceil(2));
    let stepped = staircase.filter(|(_, staircase)| holds(&staircase.steps)).map(|(place, staircase)| Period {
        value: staircase.period,
        p_value: threshold::p_value(model.z(place), model.error_freedom(), candidates.staircases.len()),
        explains: explained(&staircase.steps, &places, jumps),
        unconfirmed: unconfirmed(&staircase.steps, &places, x),
    });
    of_larger_jumps([of_jumps(x, jumps, settings), stepped], jumps)
}

/// The period with the larger total of jumps.
fn of_larger_jumps(periods: [Option<Period>; 2], jumps: &[Jump]) -> Option<Period> {
    let size = |period: &Period| -> f64 {
        jumps.iter().filter(|jump| period.explains.contains(&jump.after)).map(|jump| jump.size.abs()).sum()
    };
    periods.into_iter().flatten().max_by(|a, b| size(a).total_cmp(&size(b)))
}

/// Jumps of at least this share of the largest one are large.
const LARGE: f64 = 0.5;
/// The share of the risk for the large jumps, if there are smaller ones.
const OF_LARGE: f64 = 0.2;

/// The period that the places of the jumps among `x` show, if it is proven at the settings' false-positive rate: the
/// period of all jumps, or else of the large ones, between which there may be many small ones.
pub(crate) fn of_jumps(x: &[f64], jumps: &[Jump], settings: &Settings) -> Option<Period> {
    let largest = jumps.iter().map(|jump| jump.size.abs()).fold(0.0, f64::max);
    let large: Vec<Jump> = jumps.iter().filter(|jump| jump.size.abs() >= LARGE * largest).cloned().collect();
    let (of_large, of_all) = if large.len() < jumps.len() { (OF_LARGE, 1.0 - OF_LARGE) } else { (0.0, 1.0) };
    let level = settings.false_positive_rate.max(1e-9);
    let places = |jumps: &[Jump]| jumps.iter().map(|j| x.partition_point(|v| *v < j.after)).collect::<Vec<_>>();
    let all = places(jumps);
    let of = |some: &[usize], share: f64| {
        let (p_value, grid) = on_a_grid(x, &settings.hardware, level * share, some)?;
        Some(Period {
            value: grid.period,
            p_value: (p_value / share).min(1.0),
            explains: explained(&grid.boundaries, &all, jumps),
            unconfirmed: unconfirmed(&grid.boundaries, &all, x),
        })
    };
    let some = if of_large > 0.0 { of(&places(&large), of_large) } else { None };
    of_larger_jumps([some, of(&all, of_all)], jumps)
}

/// The most jumps that may lie between two jumps of one grid.
const BETWEEN: usize = 4;
/// The share of the risk for the grids through the multiples.
const CENTRED: f64 = 0.75;

/// A grid: the boundaries after which x leaves `phase` when divided by `period`.
struct PeriodicGrid {
    period: f64,
    hits: usize,
    /// Positions, ascending and distinct.
    boundaries: Vec<usize>,
    /// Its share of the risk that some grid is mistaken for a period by chance.
    share: f64,
}

/// Every grid with enough hits.
///
/// A grid with an offset is built only if that many jumps leave its remainder, and if two of them, at most [`BETWEEN`]
/// apart in their order, are one period apart: with n points and m jumps, O(n ln n) for the multiples and O(m) for each
/// such distance.
fn periodic_grids(x: &[f64], numbers: &HardwareNumbers, places: &[usize]) -> Vec<PeriodicGrid> {
    let Some((unit, longest)) = x_grid::periods(x) else { return Vec::new() };
    let periods = || (2..=longest).map(|q| (q, q as f64 * unit));
    let whole: f64 = periods().map(|(_, period)| roundness(period, numbers)).sum();
    let shifts = |q: usize| if (2 * longest + 1) / q >= FEWEST { q - 1 } else { 0 };
    let shifted: usize = periods().map(|(q, _)| shifts(q)).sum();
    let mut is_jump = vec![false; x.len()];
    places.iter().for_each(|&place| is_jump[place] = true);
    let hits = |boundaries: &[usize]| boundaries.iter().filter(|&&boundary| is_jump[boundary]).count();
    let ruler = x_grid::Ruler::new(x, unit);
    let apart: HashSet<u64> = (1..=BETWEEN)
        .flat_map(|between| places.iter().zip(places.iter().skip(between)))
        .map(|(&a, &b)| (x[b] - x[a]) as u64)
        .collect();
    let mut found = Vec::new();
    for (q, period) in periods() {
        let mut boundaries = ruler.positions(q, 0);
        boundaries.dedup();
        let share = CENTRED * roundness(period, numbers) / whole;
        found.push(PeriodicGrid { period, hits: hits(&boundaries), boundaries, share });
        if shifts(q) == 0 || !apart.contains(&(period as u64)) {
            continue;
        }
        let mut remainders: Vec<f64> = places.iter().map(|&p| x[p].rem_euclid(period)).collect();
        remainders.sort_by(f64::total_cmp);
        let shared = remainders.chunk_by(|a, b| a == b).filter(|c| c.len() >= FEWEST).map(|c| c[0]);
        for phase in shared.filter(|phase| *phase > 0.0) {
            let mut boundaries = x_grid::positions(x, period, phase);
            boundaries.dedup();
            let share = (1.0 - CENTRED) / shifted as f64;
            found.push(PeriodicGrid { period, hits: hits(&boundaries), boundaries, share });
        }
    }
    found.retain(|grid| grid.hits >= FEWEST.min(grid.boundaries.len().max(2)));
    found
}

/// The largest number that divides `period` and is a power of two, or a number of the hardware times one.
fn roundness(period: f64, numbers: &HardwareNumbers) -> f64 {
    let power = |whole: f64| (1u64 << (whole as u64).trailing_zeros().min(62)) as f64;
    let known = [numbers.multiprocessors, numbers.link_width, numbers.threads].into_iter().flatten().map(f64::from);
    let dividing = known.filter(|number| *number > 0.0 && period % number == 0.0);
    dividing.map(|number| number * power(period / number)).fold(power(period), f64::max)
}

/// Among the grids that are proven at `level`, the one whose hits are least probable by chance, and the probability
/// that some grid has as many hits.
fn on_a_grid(x: &[f64], numbers: &HardwareNumbers, level: f64, places: &[usize]) -> Option<(f64, PeriodicGrid)> {
    let probability = |grid: &PeriodicGrid| at_least(x.len() - 1, grid.boundaries.len(), places.len(), grid.hits);
    let found = periodic_grids(x, numbers, places).into_iter().map(|grid| (probability(&grid), grid));
    // Compared by the uncorrected probability: for jumps after 8, 24, 40 and 56, a period of 16 explains more than one
    // of 8, which is only more likely in advance.
    let proven = found.filter(|(probability, grid)| probability / grid.share <= level);
    let (probability, best) = proven.min_by(|a, b| a.0.total_cmp(&b.0))?;
    Some((probability / best.share, best))
}

fn explained(boundaries: &[usize], places: &[usize], jumps: &[Jump]) -> Vec<f64> {
    let hit = |place: &usize| boundaries.binary_search(place).is_ok();
    jumps.iter().zip(places).filter(|(_, place)| hit(place)).map(|(jump, _)| jump.after).collect()
}

/// The x after which the period has a place without a jump.
fn unconfirmed(boundaries: &[usize], places: &[usize], x: &[f64]) -> Vec<f64> {
    boundaries.iter().filter(|boundary| !places.contains(boundary)).map(|&boundary| x[boundary]).collect()
}

/// P(at least `hits` of `drawn` draws without replacement from `all` fall among `marked`).
fn at_least(all: usize, marked: usize, drawn: usize, hits: usize) -> f64 {
    let choose = |n: usize, k: usize| {
        let (n, k) = (n as f64, k as f64);
        ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0)
    };
    let first = hits.max((drawn + marked).saturating_sub(all));
    if first > drawn.min(marked) {
        return 0.0;
    }
    let mut term = (choose(marked, first) + choose(all - marked, drawn - first) - choose(all, drawn)).exp();
    let mut sum = term;
    for h in first..drawn.min(marked) {
        term *= ((marked - h) * (drawn - h)) as f64 / ((h + 1) * (all + h + 1 - marked - drawn)) as f64;
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(last: u32, afters: &[f64]) -> Option<Period> {
        found_on(HardwareNumbers::default(), last, afters)
    }

    fn found_on(hardware: HardwareNumbers, last: u32, afters: &[f64]) -> Option<Period> {
        let x: Vec<f64> = (1..=last).map(f64::from).collect();
        let jump = |&after: &f64| Jump { p_value: 1e-6, ..Jump::planted(after, 1.0, 0.1) };
        let settings = Settings { hardware, false_positive_rate: 0.01, ..Settings::default() };
        of_jumps(&x, &afters.iter().map(jump).collect::<Vec<_>>(), &settings)
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
        // 3 of 69 boundaries on a grid of 3: 1 / C(69, 3) = 1.9e-5; an odd period has one of 114 parts of three quarters
        let found_at_23 = found(70, &[23.0, 46.0, 69.0]).expect("a period");
        assert_eq!(found_at_23.value, 23.0);
        assert!((found_at_23.p_value / (114.0 / 0.75 / 52_394.0) - 1.0).abs() < 1e-9);
        assert_eq!(found(70, &[5.0, 21.0, 37.0]), None);
    }

    #[test]
    fn two_jumps_prove_a_round_period_up_to_half_the_range() {
        // 2 of 69 on a grid of 2: 1 / C(69, 2) = 1 / 2346; a period of 32 has 32 of 114 parts
        let period = found(70, &[32.0, 64.0]).expect("a period");
        assert_eq!((period.value, period.explains), (32.0, vec![32.0, 64.0]));
        assert!((period.p_value - 114.0 / 32.0 / 0.75 / 2346.0).abs() < 1e-12);
        for afters in [[16.0, 32.0], [28.0, 56.0], [30.0, 60.0], [33.0, 66.0], [20.0, 52.0], [31.0, 63.0]] {
            assert_eq!(found(70, &afters), None);
        }
        // With 30 threads a period of 30 has 30 parts instead of two.
        let numbers = HardwareNumbers { threads: Some(30), ..HardwareNumbers::default() };
        let period = found_on(numbers, 70, &[30.0, 60.0]).expect("a period");
        assert!(period.value == 30.0 && (period.p_value - 142.0 / 30.0 / 0.75 / 2346.0).abs() < 1e-12);
    }

    #[test]
    fn roundness_is_the_largest_power_of_two_or_of_the_hardware_that_divides() {
        let numbers = HardwareNumbers { multiprocessors: Some(82), threads: Some(6), link_width: Some(16) };
        let round = |period: f64| roundness(period, &numbers);
        assert_eq!(
            [32.0, 24.0, 12.0, 18.0, 7.0, 82.0, 164.0, 20.0].map(round),
            [32.0, 24.0, 12.0, 6.0, 1.0, 82.0, 164.0, 4.0]
        );
        assert_eq!(roundness(24.0, &HardwareNumbers::default()), 8.0);
    }

    #[test]
    fn large_jumps_have_a_period_of_their_own_among_many_small_ones() {
        let x: Vec<f64> = (1..=70).map(f64::from).collect();
        let jumps: Vec<Jump> = (1..70u32)
            .filter(|k| k % 6 == 0 || k % 16 == 0)
            .map(|k| Jump { p_value: 1e-6, ..Jump::planted(f64::from(k), if k % 16 == 0 { 1.0 } else { 0.1 }, 0.1) })
            .collect();
        let period = of_jumps(&x, &jumps, &Settings::default()).expect("a period");
        assert_eq!((period.value, period.explains), (16.0, vec![16.0, 32.0, 48.0, 64.0]));
        // 4 of 69 on a grid of 4, 1 / C(69, 4) = 1 / 864,501; a period of 16 has 16 of 114 parts, the large jumps a fifth of the risk
        assert!((period.p_value - 5.0 * 114.0 / 16.0 / 0.75 / 864_501.0).abs() < 1e-12);
    }

    #[test]
    fn random_places_seldom_have_a_period() {
        let mut rng = crate::random::Rng::new(3);
        let proven = (0..2000)
            .filter(|i| {
                let mut all: Vec<f64> = (1..70).map(f64::from).collect();
                rng.shuffle(&mut all);
                let mut afters = all[..2 + i % 7].to_vec();
                afters.sort_by(f64::total_cmp);
                found(70, &afters).is_some()
            })
            .count();
        // The promise is 1 % of 2,000; 33 allows three standard deviations for chance.
        assert!(proven <= 33, "{proven} of 2000");
    }

    #[test]
    fn the_probability_of_hits_is_hypergeometric() {
        // By hand: 4 marked of 10, 3 drawn, at least 2 hits: (C(4,2) 6 + C(4,3)) / C(10,3) = 40 / 120
        assert!((at_least(10, 4, 3, 2) - 1.0 / 3.0).abs() < 1e-12);
        // scipy.stats.hypergeom.sf(2, 69, 4, 4) = 0.0003019082684693251
        assert!((at_least(69, 4, 4, 3) / 0.0003019082684693251 - 1.0).abs() < 1e-9);
        assert!((at_least(69, 8, 5, 0) - 1.0).abs() < 1e-9);
    }
}
