//! Periods and risers on the grid that the x stand on.

/// The unit and the longest period in it, half the range, for x that a period can be told on: whole numbers, twelve or more, and
/// at least every second one of the range.
pub(super) fn periods(x: &[f64]) -> Option<(f64, usize)> {
    let unit = grid_unit(x)?;
    let steps = ((x[x.len() - 1] - x[0]) / unit).round() as usize;
    (x.len() >= 12 && x.len() * 2 >= steps).then_some((unit, steps / 2))
}

/// The greatest common divisor of the gaps, where every x is an integer.
fn grid_unit(x: &[f64]) -> Option<f64> {
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

/// Positions after which a staircase rises: the last x not beyond each riser value.
pub(super) fn risers(x: &[f64], period: f64, phase: f64) -> Vec<usize> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn risers_stand_at_the_last_x_before_each_multiple() {
        let x: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!(risers(&x, 4.0, 0.0), [3, 7]);
        assert_eq!(risers(&[3.0, 5.0, 12.0, 13.0], 4.0, 0.0), [0, 1, 2]);
    }

    #[test]
    fn the_grid_unit_is_the_common_divisor_of_the_gaps() {
        assert_eq!(grid_unit(&[8.0, 16.0, 40.0]), Some(8.0));
        assert_eq!(grid_unit(&[1.0, 1.5]), None);
    }
}
