//! Periods and the positions of their multiples on the grid of the x.

/// The unit, and the longest period in this unit, which is half the range. Only for x on which a period can be judged:
/// at least twelve whole numbers, and at least every second one of the range.
pub(crate) fn periods(x: &[f64]) -> Option<(f64, usize)> {
    let unit = grid_unit(x)?;
    let steps = ((x[x.len() - 1] - x[0]) / unit).round() as usize;
    (x.len() >= 12 && x.len() * 2 >= steps).then_some((unit, steps / 2))
}

/// The greatest common divisor of the gaps, where every x is an integer.
pub(crate) fn grid_unit(x: &[f64]) -> Option<f64> {
    if x.iter().any(|v| v.fract() != 0.0 || v.abs() > 1e12) {
        return None;
    }
    let gcd = |mut a: u64, mut b: u64| {
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let unit = x.windows(2).fold(0, |unit, w| gcd(unit, (w[1] - w[0]) as u64));
    (unit > 0).then_some(unit as f64)
}

/// Positions after which a staircase rises: the last x not beyond each step value.
pub(crate) fn positions(x: &[f64], period: f64, phase: f64) -> Vec<usize> {
    let (first, last) = (x[0], x[x.len() - 1]);
    let mut value = phase + ((first - phase) / period).ceil() * period;
    let mut at = Vec::new();
    let mut position = 0;
    while value < last {
        while position + 1 < x.len() && x[position + 1] <= value {
            position += 1;
        }
        at.push(position);
        value += period;
    }
    at
}

/// For each multiple of the unit within the range of x, the last position not beyond it. This gives [`positions`]
/// without a search.
pub(crate) struct Ruler {
    first: i64,
    below: Vec<usize>,
}

impl Ruler {
    /// The multiples of `unit` from the first x on and before the last; the x are whole numbers.
    pub fn new(x: &[f64], unit: f64) -> Self {
        Self { first: (x[0] / unit).ceil() as i64, below: positions(x, unit, 0.0) }
    }

    /// [`positions`] of a period of `q` and a phase of `phase` units.
    pub fn positions(&self, q: usize, phase: usize) -> Vec<usize> {
        let start = (phase as i64 - self.first).rem_euclid(q as i64);
        self.below.iter().skip(start as usize).step_by(q).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ruler_and_a_search_agree() {
        let gaps = [-5.0, 7.0, 13.0, 14.0, 15.0, 20.0, 26.0, 31.0];
        for (x, unit) in [(&gaps[..], 1.0), (&[9.0, 17.0, 25.0, 49.0][..], 8.0), (&[16.0, 24.0, 40.0][..], 8.0)] {
            let ruler = Ruler::new(x, unit);
            for q in 2..9 {
                for phase in 0..q {
                    let expected = positions(x, q as f64 * unit, phase as f64 * unit);
                    assert_eq!(ruler.positions(q, phase), expected, "{q} {phase} {x:?}");
                }
            }
        }
    }

    #[test]
    fn steps_are_at_the_last_x_before_each_multiple() {
        let x: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(positions(&x, 4.0, 0.0), [3, 7]);
        assert_eq!(positions(&[3.0, 5.0, 12.0, 13.0], 4.0, 0.0), [0, 1, 2]);
    }

    #[test]
    fn the_grid_unit_is_the_common_divisor_of_the_gaps() {
        assert_eq!(grid_unit(&[8.0, 16.0, 40.0]), Some(8.0));
        assert_eq!(grid_unit(&[1.0, 1.5]), None);
    }
}
