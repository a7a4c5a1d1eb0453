//! Tabulated shapes that step-time curves follow without a jump: smooth growth, start-up, alternation, rounded bends.

/// A shape with its parameters.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Form {
    /// exp(-t / decay): a start-up.
    Decay(f64),
    /// x to this power; ln x for 0.
    Power(f64),
    /// One of [`alternations`], over the multiples of this.
    Alternation { of: f64 },
    /// [`soft_hinge`].
    Soft { knot: f64, width: f64 },
    /// ln(1 + x / x_k) over ln x: the logarithm of a constant and a part in proportion to x. `width` is the distance from x to e x.
    Sum { knot: f64, width: f64 },
}

/// Curves that real step times follow without a jump: powers and the logarithm of x, and a start-up that decays over
/// one point up to almost half of all points.
pub(crate) fn smooth(x: &[f64]) -> Vec<Form> {
    let shortest = 1.0 / (x.len() - 1) as f64;
    let decays = (0..).map(|i| shortest * 1.45f64.powi(i)).take_while(|decay| *decay < 0.5).map(Form::Decay);
    let powers: &[f64] = match x[0] > 0.0 {
        true => &[-1.0, -0.5, 0.0, 0.25, 0.5, 0.62, 0.75, 0.87, 1.15, 1.3, 1.5, 2.0, 2.5, 3.0],
        false => &[2.0, 3.0],
    };
    decays.chain(powers.iter().map(|&power| Form::Power(power))).collect()
}

/// What the logarithms of such times follow over those of x, which are `x`: a constant and a part in proportion to x, a start-up, and slight bends.
pub(crate) fn smooth_logarithms(x: &[f64]) -> Vec<Form> {
    let width = 1.0 / (x[x.len() - 1] - x[0]);
    let knots = (0..).map(|i| KNOTS * width * f64::from(i)).take_while(|knot| *knot <= 1.0);
    let sums = knots.map(|knot| Form::Sum { knot, width });
    let others = smooth(x).into_iter().filter(|form| matches!(form, Form::Decay(_)));
    sums.chain(others).chain([2.0, 3.0].map(Form::Power)).collect()
}

/// The distance of the knots of sums, in their widths.
const KNOTS: f64 = 0.5;

impl Form {
    /// Its values over all x, which are `t` on [0, 1]. No column for an alternation, which has several.
    pub fn column(self, x: &[f64], t: &[f64]) -> Vec<f64> {
        // Each value is at most about 1, so that sums keep their digits.
        let unit = |power: f64| if power < 0.0 { x[0] } else { x[x.len() - 1] };
        match self {
            Self::Decay(decay) => t.iter().map(|t| (-t / decay).exp()).collect(),
            Self::Power(0.0) => x.iter().map(|v| (v / x[x.len() - 1]).ln()).collect(),
            Self::Power(power) if x[0] > 0.0 => x.iter().map(|v| (v / unit(power)).powf(power)).collect(),
            Self::Power(power) => t.iter().map(|t| t.powf(power)).collect(),
            Self::Alternation { .. } => Vec::new(),
            Self::Soft { knot, width } | Self::Sum { knot, width } => soft_hinge(t, knot, width),
        }
    }

    /// The same shape with parameters between the offered ones.
    pub fn finer(self) -> Vec<Self> {
        match self {
            Self::Decay(decay) => {
                [0.76, 0.83, 0.91, 1.1, 1.2, 1.32].map(|stretch| Self::Decay(decay * stretch)).to_vec()
            }
            Self::Power(power) => {
                [-0.18, -0.12, -0.06, 0.06, 0.12, 0.18].map(|more| Self::Power(power + more)).to_vec()
            }
            Self::Sum { knot, width } => {
                [-0.5, -0.25, 0.25, 0.5].map(|shift| Self::Sum { knot: knot + shift * KNOTS * width, width }).to_vec()
            }
            Self::Alternation { .. } | Self::Soft { .. } => Vec::new(),
        }
    }
}

/// Numbers whose multiples may all be slower or faster: rows of a kernel's tile, widths of vectors.
const MODULI: [f64; 12] = [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 16.0];

/// A pattern turns at least this often between multiples and others; on a grid of powers of two, all from one number on are its multiples.
const FEWEST_TURNS: usize = 6;

/// Shapes in which every multiple of one of [`MODULI`], counted in `unit`, is off by a constant or in proportion to x, its square or its cube.
pub(crate) fn alternations(x: &[f64], unit: f64) -> Vec<(Form, Vec<f64>)> {
    let top = x[x.len() - 1].abs().max(1.0);
    let mut shapes = Vec::new();
    for modulus in MODULI {
        let hit: Vec<f64> = x.iter().map(|v| f64::from(v.rem_euclid(modulus * unit) == 0.0)).collect();
        let share = hit.iter().sum::<f64>() / x.len() as f64;
        let turns = hit.windows(2).filter(|pair| pair[0] != pair[1]).count();
        if share > 0.03 && share < 0.97 && turns >= FEWEST_TURNS {
            for power in 0..4 {
                let column = hit.iter().zip(x).map(|(h, v)| h * (v / top).powi(power)).collect();
                shapes.push((Form::Alternation { of: modulus * unit }, column));
            }
        }
    }
    shapes
}

/// A hinge at `knot` rounded over `width`: width * ln(1 + exp((t - knot) / width)).
pub(crate) fn soft_hinge(t: &[f64], knot: f64, width: f64) -> Vec<f64> {
    let bend = |t: f64| {
        let u = (t - knot) / width;
        if u > 30.0 { u } else { u.exp().ln_1p() }
    };
    t.iter().map(|&t| width * bend(t)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_soft_hinge_is_flat_before_and_straight_after() {
        // width ln(1 + e^0) = width ln 2 at the knot; far from it 0 and t - knot
        let bend = soft_hinge(&[0.0, 0.5, 1.0], 0.5, 0.01);
        assert!(bend[0] < 1e-12 && (bend[1] - 0.01 * 2f64.ln()).abs() < 1e-15 && (bend[2] - 0.5).abs() < 1e-12);
    }

    #[test]
    fn alternations_are_at_multiples_of_the_unit() {
        let x: Vec<f64> = (1..=8).map(f64::from).collect();
        let alternating = [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0];
        assert_eq!(alternations(&x, 1.0)[0], (Form::Alternation { of: 2.0 }, alternating.to_vec()));
        let x: Vec<f64> = (1..=12).map(|i| 64.0 * f64::from(i)).collect();
        assert_eq!(alternations(&x, 64.0)[4].0, Form::Alternation { of: 192.0 });
        assert_eq!(alternations(&x, 64.0)[5].1[8], 0.75);
    }
}
