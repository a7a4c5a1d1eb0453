//! A first repetition that is slow at every x, where there are only a few: a warm-up that was counted. Of a rate it is the lowest.
//!
//! Two to four values do not outvote it, and its excess looks like their noise, so that large jumps hide in it. But noise of that size would also be
//! between neighbouring x, and is not.

use super::reduce::from_neighbours;
use crate::detect::input::Observation;
use crate::stats::quantile::median;

/// The numbers of values at an x among which one slow value matters.
const FEW: std::ops::RangeInclusive<usize> = 2..=4;
/// The fewest x on which this is judged.
const LEAST: usize = 12;
/// The scatter between neighbouring x, without the slowest values, as a share of that between the values at one x. It is 0.6 to 0.9 for normal noise.
const SMOOTH: f64 = 0.25;
/// The difference of the two ends' distances from the middle, as a share of their sum, from which one is further.
const UNEVEN: f64 = 0.1;

/// Removes the highest, or the lowest, value at each x from `observations`, which are sorted by x, if it is apart from the others. Returns the median
/// ratio of these values to the others.
pub(super) fn leave_out(observations: &mut Vec<Observation>) -> Option<f64> {
    let groups: Vec<&[Observation]> = observations.chunk_by(|a, b| a.x == b.x).collect();
    if groups.len() < LEAST || !groups.iter().all(|group| FEW.contains(&group.len())) {
        return None;
    }
    let logs = |group: &[Observation], sign: f64| {
        let mut logs: Vec<f64> = group.iter().map(|one| sign * one.y.ln()).collect();
        logs.sort_by(f64::total_cmp);
        logs
    };
    let above = |sign: f64| {
        let above = |logs: Vec<f64>| logs[logs.len() - 1] - median(&mut logs.clone());
        median(&mut groups.iter().map(|group| above(logs(group, sign))).collect::<Vec<_>>())
    };
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let others = |sign: f64| {
        let rest = |logs: Vec<f64>| mean(&logs[..logs.len() - 1]);
        groups.iter().map(|group| rest(logs(group, sign))).collect::<Vec<f64>>()
    };
    let roughness = |sign: f64| median(&mut from_neighbours(&others(sign)));
    // The end that is further from the middle; of two values, the one without which the curve is smoother.
    let (up, down) = (above(1.0), above(-1.0));
    let first = if (up - down).abs() > UNEVEN * (up + down) { up > down } else { roughness(1.0) <= roughness(-1.0) };
    let sign = if first { 1.0 } else { -1.0 };
    let (mut apart, mut variances) = (Vec::new(), Vec::new());
    for logs in groups.iter().map(|group| logs(group, sign)) {
        let (rest, highest) = logs.split_at(logs.len() - 1);
        apart.push(highest[0] - mean(rest));
        let center = mean(&logs);
        variances.push(logs.iter().map(|log| (log - center).powi(2)).sum::<f64>() / (logs.len() - 1) as f64);
    }
    let scatter = median(&mut variances).sqrt();
    let between = roughness(sign);
    if between.is_nan() || between >= SMOOTH * scatter {
        return None;
    }
    let highest = |a: &Observation, b: &Observation| (sign * a.y).total_cmp(&(sign * b.y));
    let out: Vec<usize> = groups
        .iter()
        .scan(0, |start, group| {
            let at = (0..group.len()).max_by(|a, b| highest(&group[*a], &group[*b])).unwrap_or(0);
            *start += group.len();
            Some(*start - group.len() + at)
        })
        .collect();
    let mut place = 0;
    observations.retain(|_| {
        place += 1;
        out.binary_search(&(place - 1)).is_err()
    });
    Some((sign * median(&mut apart)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Rng;

    fn values(repetitions: usize, slow: f64) -> Vec<Observation> {
        let mut rng = Rng::new(7);
        let each = |i: usize| {
            let first = if i.is_multiple_of(repetitions) { 1.0 + slow } else { 1.0 };
            let x = (1 + i / repetitions) as f64;
            Observation::new(x, (5.0 + 0.1 * x) * first * (0.01 * rng.normal()).exp())
        };
        (0..40 * repetitions).map(each).collect()
    }

    #[test]
    fn a_slow_first_value_at_every_x_is_left_out() {
        for repetitions in 2..=4 {
            let mut slow = values(repetitions, 0.3);
            let ratio = leave_out(&mut slow).expect("slow first values");
            assert!((ratio - 1.3).abs() < 0.03, "{ratio}");
            assert_eq!(slow.len(), 40 * (repetitions - 1));
            let kept: Vec<Observation> = values(repetitions, 0.3)
                .into_iter()
                .enumerate()
                .filter(|(i, _)| i % repetitions > 0)
                .map(|(_, one)| one)
                .collect();
            assert_eq!(slow, kept);
            let mut rates = values(repetitions, 0.3);
            rates.iter_mut().for_each(|one| one.y = 1.0 / one.y);
            let ratio = leave_out(&mut rates).expect("low first values");
            // Either of two values may be the odd one.
            assert!(repetitions == 2 || (1.3 * ratio - 1.0).abs() < 0.03, "{ratio}");
            assert_eq!(rates.len(), kept.len());
        }
    }

    #[test]
    fn noise_keeps_its_slowest_values() {
        for repetitions in 2..=5 {
            let mut all = values(repetitions, if repetitions == 5 { 0.3 } else { 0.0 });
            assert_eq!(leave_out(&mut all), None);
            assert_eq!(all.len(), 40 * repetitions);
        }
    }
}
