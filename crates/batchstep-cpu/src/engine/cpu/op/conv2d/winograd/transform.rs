//! The one-dimensional transforms of F(4, 3), and their adjoints.
//!
//! With A, G and B of Lavin & Gray, the four outputs of a filter of three taps on six values are `A^T [(G g) * (B^T
//! d)]`. The matrices are those of Toom and Cook for the points 0, +-P, +-Q and infinity.

use pulp::Simd;

use crate::engine::cpu::op::scalar::Scalar;
use crate::engine::cpu::op::vector::Register;

/// The two points. With the usual 1 and 2, the error of a sum over 256 channels in float32 is ten times that of the
/// definition; with these it is four times (both measured against float64; Barabasz et al. 2020 say why points matter).
const P: f64 = std::f64::consts::FRAC_1_SQRT_2;
const Q: f64 = std::f64::consts::SQRT_2;

const P2: f64 = 0.5;
const Q2: f64 = 2.0;
/// 1 / (2 P^2 (P^2 - Q^2))
const INVERSE_P: f64 = -1.0 / 1.5;
/// 1 / (2 Q^2 (Q^2 - P^2))
const INVERSE_Q: f64 = 1.0 / 6.0;

/// Values of a tile along one axis.
pub const SIDE: usize = 6;
/// Outputs of a tile along one axis.
pub const STEP: usize = 4;
/// Taps of a filter along one axis.
pub const TAPS: usize = 3;

/// `B^T d`.
#[inline(always)]
pub fn data<T: Scalar, S: Simd>([d0, d1, d2, d3, d4, d5]: [Register<T, S>; SIDE]) -> [Register<T, S>; SIDE] {
    let (even_p, odd_p) = (d4.plus(-Q2, d2), d3.plus(-Q2, d1));
    let (even_q, odd_q) = (d4.plus(-P2, d2), d3.plus(-P2, d1));
    // P^2 Q^2 = 1
    [
        (d0 + d4).plus(-P2 - Q2, d2),
        even_p.plus(P, odd_p),
        even_p.plus(-P, odd_p),
        even_q.plus(Q, odd_q),
        even_q.plus(-Q, odd_q),
        (d1 + d5).plus(-P2 - Q2, d3),
    ]
}

/// `G g`.
#[inline(always)]
pub fn filter<T: Scalar, S: Simd>([g0, g1, g2]: [Register<T, S>; TAPS]) -> [Register<T, S>; SIDE] {
    let (even_p, odd_p) = (g0.plus(P2, g2).times(INVERSE_P), g1.times(INVERSE_P * P));
    let (even_q, odd_q) = (g0.plus(Q2, g2).times(INVERSE_Q), g1.times(INVERSE_Q * Q));
    [g0, even_p + odd_p, even_p - odd_p, even_q + odd_q, even_q - odd_q, g2]
}

/// `G^T u`.
#[inline(always)]
pub fn filter_adjoint<T: Scalar, S: Simd>([u0, u1, u2, u3, u4, u5]: [Register<T, S>; SIDE]) -> [Register<T, S>; TAPS] {
    let (even_p, odd_p) = ((u1 + u2).times(INVERSE_P), (u1 - u2).times(INVERSE_P * P));
    let (even_q, odd_q) = ((u3 + u4).times(INVERSE_Q), (u3 - u4).times(INVERSE_Q * Q));
    [u0 + even_p + even_q, odd_p + odd_q, u5.plus(P2, even_p).plus(Q2, even_q)]
}

/// `A^T m`.
#[inline(always)]
pub fn output<T: Scalar, S: Simd>([m0, m1, m2, m3, m4, m5]: [Register<T, S>; SIDE]) -> [Register<T, S>; STEP] {
    let (even_p, odd_p) = (m1 + m2, m1 - m2);
    let (even_q, odd_q) = (m3 + m4, m3 - m4);
    [
        m0 + even_p + even_q,
        odd_p.times(P).plus(Q, odd_q),
        even_p.times(P2).plus(Q2, even_q),
        m5.plus(P2 * P, odd_p).plus(Q2 * Q, odd_q),
    ]
}

/// `A y`.
#[inline(always)]
pub fn output_adjoint<T: Scalar, S: Simd>([y0, y1, y2, y3]: [Register<T, S>; STEP]) -> [Register<T, S>; SIDE] {
    let (even_p, odd_p) = (y0.plus(P2, y2), y1.plus(P2, y3));
    let (even_q, odd_q) = (y0.plus(Q2, y2), y1.plus(Q2, y3));
    [y0, even_p.plus(P, odd_p), even_p.plus(-P, odd_p), even_q.plus(Q, odd_q), even_q.plus(-Q, odd_q), y3]
}
