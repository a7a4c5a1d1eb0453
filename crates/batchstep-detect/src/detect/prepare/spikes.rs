//! Single values that are far off both of their neighbours, which agree with each other.
//!
//! Where each x has one value, the noise is estimated from neighbours. Each spike makes three distances between neighbours large, so that a few spikes among many values look like noise in
//! which no jump can be seen.

use crate::stats::quantile::quantile;

/// The places of the spikes among the values `y`, whose rounding errors have the standard deviation `rounding`. There are none if they would be more than one value in [`SELDOM`], or if the
/// noise without them is not smaller by [`QUIETER`]: then the noise is uneven.
pub(super) fn spikes(y: &[f64], rounding: f64) -> Vec<usize> {
    let mut kept: Vec<usize> = (0..y.len()).collect();
    let noise = scatter(y, &kept, rounding, HALF);
    loop {
        let least = HEIGHT * scatter(y, &kept, rounding, QUARTER);
        let heights: Vec<f64> = (0..kept.len()).map(|place| height(y, &kept, place)).collect();
        let is_highest = |place: usize| (place - 1..=place + 1).all(|beside| heights[beside] <= heights[place]);
        let before = kept.len();
        let mut place = 0;
        kept.retain(|_| {
            place += 1;
            heights[place - 1] <= least || !is_highest(place - 1)
        });
        if kept.len() == before {
            break;
        }
        if (y.len() - kept.len()) * SELDOM > y.len() {
            return Vec::new();
        }
    }
    if scatter(y, &kept, rounding, HALF) * QUIETER > noise {
        return Vec::new();
    }
    (0..y.len()).filter(|i| kept.binary_search(i).is_err()).collect()
}

/// At most one value in this many is a spike.
const SELDOM: usize = 4;
/// Standard deviations by which a spike is above or below both neighbours.
const HEIGHT: f64 = 6.0;
/// The factor by which the noise must be smaller without the spikes. On the series that chose it (an earlier form of `scripts/independent-series --spikes`), 1.2 found 94 % of the jumps and 1.5
/// 89 %; of 1,800 series with uneven noise (half without a jump), 1.2 made 0.8 % of those without one worse, and 1.5 none.
const QUIETER: f64 = 1.35;

/// How far the value at `place` is above, or below, the nearer one of its neighbours among those that are kept; 0 if it is between them.
fn height(y: &[f64], kept: &[usize], place: usize) -> f64 {
    if place == 0 || place + 1 == kept.len() {
        return 0.0;
    }
    let [before, at, after] = [place - 1, place, place + 1].map(|place| y[kept[place]]);
    if (at - before) * (at - after) > 0.0 { (at - before).abs().min((at - after).abs()) } else { 0.0 }
}

/// Shares of the second differences, and the quantiles of the absolute value of a normal variable there: scipy.stats.norm.ppf(0.625) and ppf(0.75).
const QUARTER: (f64, f64) = (0.25, 0.318_639_4);
const HALF: (f64, f64) = (0.5, 0.674_489_8);

/// The standard deviation of normal noise of which a share of the second differences of `y` at the places `kept` is as small. Differences within the
/// rounding do not count.
fn scatter(y: &[f64], kept: &[usize], rounding: f64, (share, normal): (f64, f64)) -> f64 {
    let bend = |w: &[usize]| (y[w[0]] - 2.0 * y[w[1]] + y[w[2]]).abs();
    let mut bends: Vec<f64> = kept.windows(3).map(bend).filter(|bend| *bend > rounding).collect();
    if bends.is_empty() { rounding } else { quantile(&mut bends, share) / normal / 6f64.sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    fn noise(count: usize) -> Vec<f64> {
        let mut rng = Rng::new(31);
        (0..count).map(|_| 0.01 * rng.normal()).collect()
    }

    #[test]
    fn single_values_off_both_neighbours_are_spikes_and_the_values_beside_a_jump_are_not() {
        let mut y = noise(60);
        y.iter_mut().skip(30).for_each(|y| *y += 0.3);
        let planted = [4, 11, 12, 20, 29, 40, 44, 51];
        for (i, at) in planted.into_iter().enumerate() {
            y[at] += if i % 3 == 0 { -0.5 } else { 0.2 + 0.1 * i as f64 };
        }
        assert_eq!(spikes(&y, 0.0), planted);
    }

    #[test]
    fn noise_has_no_spikes_even_if_it_is_uneven_or_of_two_values() {
        assert!(spikes(&noise(100), 0.0).is_empty());
        let uneven: Vec<f64> = noise(100).iter().enumerate().map(|(i, y)| if i < 50 { *y } else { 8.0 * y }).collect();
        assert!(spikes(&uneven, 0.0).is_empty());
        let in_turn: Vec<f64> = noise(60).iter().enumerate().map(|(i, y)| y + f64::from(i % 2 == 0)).collect();
        assert!(spikes(&in_turn, 0.0).is_empty());
        assert!(spikes(&[1.0; 20], 0.0).is_empty());
    }
}
