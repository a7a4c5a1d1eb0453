//! The exponential function in float32, by plain instructions and without branches: inside
//! [`super::scalar::vectorised`] the compiler computes a whole register at once. The system library's function is
//! called once for each number.

/// Adding this to a number of moderate size rounds it to an integer, which is then in the last bits: 1.5 * 2^23.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts: nine bits, whose multiples are exact, and the rest.
const LN_2: [f32; 2] = [355.0 / 512.0, -2.121_944_4e-4];
/// Least squares of the relative error of (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2, highest power first: Moshier, Cephes, `expf`.
const TERMS: [f32; 6] = [1.987_569_2e-4, 1.398_2e-3, 8.333_452e-3, 4.166_579_6e-2, 1.666_666_5e-1, 0.5];
/// Outside this range the result is 0 or infinite.
const RANGE: [f32; 2] = [-104.0, 89.0];

/// e^x within one unit in the last place.
#[inline(always)]
pub(super) fn exp(x: f32) -> f32 {
    let x = x.clamp(RANGE[0], RANGE[1]);
    // x = n ln 2 + r
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN_2[0]) - n * LN_2[1];
    let series = TERMS[1..].iter().fold(TERMS[0], |sum, term| sum * r + term);
    let power = (series * (r * r) + r) + 1.0;
    // Multiplied by half of the power of two at a time: 2^n itself may overflow or underflow where the result does not.
    let n = (rounded.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let two_to = |n: i32| f32::from_bits((n.wrapping_add(127) << 23) as u32);
    power * two_to(n >> 1) * two_to(n.wrapping_sub(n >> 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::op::scalar::vectorised;

    // Compared with the function in double precision, in units in the last place of the result.
    #[test]
    fn is_right_to_the_last_place() {
        let x: Vec<f32> = (-1_040_000..890_000).map(|i| i as f32 * 1e-4).collect();
        let mut y = x.clone();
        vectorised(
            #[inline(always)]
            || y.iter_mut().for_each(|y| *y = exp(*y)),
        );
        for (x, y) in x.iter().zip(&y) {
            let want = f64::from(*x).exp();
            let nearest = want as f32;
            let unit = f64::from(nearest.next_up()) - f64::from(nearest);
            assert!(nearest == *y || (f64::from(*y) - want).abs() <= unit, "exp({x}) = {y}, not {want}");
        }
    }

    #[test]
    fn has_the_limits_of_the_function() {
        assert_eq!(
            [f32::NEG_INFINITY, -200.0, 0.0, 200.0, f32::INFINITY].map(exp),
            [0.0, 0.0, 1.0, f32::INFINITY, f32::INFINITY]
        );
        assert!(exp(f32::NAN).is_nan());
    }
}
