//! What sizes that are slow, or fast, by themselves have in common.

use std::collections::BTreeSet;

use crate::stats::distribution::ln_gamma;
use crate::stats::quantile::median;

/// A size and how far its value is from that between its neighbours.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowSize {
    pub x: f64,
    /// The relative difference of the value, not of the speed: negative for a rate.
    pub relative: f64,
}

/// Sizes with something in common, most of which are slow.
#[derive(Clone, Debug, PartialEq)]
pub struct Class {
    pub common: Common,
    /// The median over the slow ones.
    pub relative: f64,
    pub slow: usize,
    /// The number of sizes in the class that were measured where they can be judged.
    pub of: usize,
    /// The probability that at least `slow` of the slow sizes fall into the class by chance, corrected for the classes that were tried.
    pub p_value: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Common {
    MultiplesOf(u64),
    Primes,
}

/// A class is named below this p-value, where at least that share of it is slow.
pub(super) const PROVEN: (f64, f64) = (0.01, 0.5);
/// Two sizes always have something in common.
const FEWEST: usize = 3;
/// Sizes of which pairs are tried for common divisors.
const PAIRED: usize = 256;
/// Larger sizes are not asked whether they are prime.
const LARGEST_PRIME: u64 = 1 << 30;

/// The class that the slow sizes fit best, if its p-value is below `least`. Hardware counts in powers of two, so their multiples and all other classes share the correction for the number
/// of classes by halves (a weighted Bonferroni correction; Genovese, Roeder & Wasserman 2006).
pub(super) fn class(slow: &[SlowSize], judged: &[f64], least: f64) -> Option<Class> {
    let all: Vec<u64> = judged.iter().filter_map(|x| whole(*x)).collect();
    if all.len() < judged.len() {
        return None;
    }
    let step = (all.len() / PAIRED).max(1);
    let tried: Vec<u64> =
        all.iter().copied().step_by(step).chain(slow.iter().filter_map(|size| whole(size.x))).collect();
    let pairs = tried.iter().enumerate().flat_map(|(at, a)| tried[at..].iter().map(|b| gcd(*a, *b)));
    let divisors: BTreeSet<u64> = pairs.filter(|divisor| *divisor > 1).collect();
    let count = |common: Common| all.iter().filter(|size| common.holds(**size)).count();
    let classes =
        divisors.into_iter().map(Common::MultiplesOf).chain([Common::Primes]).map(|common| (common, count(common)));
    let classes: Vec<(Common, usize)> = classes.filter(|(_, of)| (2..all.len()).contains(of)).collect();
    let mut best: Option<Class> = None;
    for &(common, of) in &classes {
        let holds = |size: &&SlowSize| whole(size.x).is_some_and(|x| common.holds(x));
        let mut members: Vec<f64> = slow.iter().filter(holds).map(|size| size.relative).collect();
        if members.len() < FEWEST || (members.len() as f64) < PROVEN.1 * of as f64 {
            continue;
        }
        let alike = classes.iter().filter(|(other, _)| other.is_of_two() == common.is_of_two()).count();
        let p_value = (at_least(members.len(), of, slow.len(), all.len()) * 2.0 * alike as f64).min(1.0);
        // Among equal classes the last has the largest divisor, which says the most.
        if best.as_ref().is_none_or(|best| p_value <= best.p_value) {
            best = Some(Class { common, slow: members.len(), of, p_value, relative: median(&mut members) });
        }
    }
    best.filter(|best| best.p_value < least)
}

impl Common {
    pub(super) fn holds(self, size: u64) -> bool {
        match self {
            Self::MultiplesOf(divisor) => size.is_multiple_of(divisor),
            Self::Primes => is_prime(size),
        }
    }

    fn is_of_two(self) -> bool {
        matches!(self, Self::MultiplesOf(divisor) if divisor.is_power_of_two())
    }

    /// For people: `multiples of 64`.
    pub fn text(self) -> String {
        match self {
            Self::MultiplesOf(divisor) => format!("multiples of {divisor}"),
            Self::Primes => "primes".to_string(),
        }
    }
}

/// A size as a whole number, where it is one.
pub(super) fn whole(x: f64) -> Option<u64> {
    (x.fract() == 0.0 && (1.0..9e15).contains(&x)).then_some(x as u64)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

pub(super) fn is_prime(n: u64) -> bool {
    (2..LARGEST_PRIME).contains(&n)
        && (2..).take_while(|divisor| divisor * divisor <= n).all(|divisor| !n.is_multiple_of(divisor))
}

/// The chance that of `drawn` out of `all` at least `hits` are among the `marked` (the upper tail of the hypergeometric distribution).
fn at_least(hits: usize, marked: usize, drawn: usize, all: usize) -> f64 {
    let choose =
        |n: usize, k: usize| ln_gamma(n as f64 + 1.0) - ln_gamma(k as f64 + 1.0) - ln_gamma((n - k) as f64 + 1.0);
    let term = |hits: usize| {
        let others = (drawn - hits <= all - marked).then(|| choose(all - marked, drawn - hits));
        others.map_or(0.0, |others| (choose(marked, hits) + others - choose(all, drawn)).exp())
    };
    (hits..=marked.min(drawn)).map(term).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chance_of_a_class_is_the_probability_of_drawing_it() {
        assert!((at_least(2, 2, 2, 4) - 1.0 / 6.0).abs() < 1e-12);
        assert!((at_least(0, 3, 2, 9) - 1.0).abs() < 1e-12);
    }
}
