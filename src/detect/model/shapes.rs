//! Tabulated shapes that step-time curves follow without a jump: smooth growth, start-up, alternation, rounded bends.

/// Curves that real step times follow without a jump: powers and logarithm of x, and a start-up that decays.
pub(crate) fn smooth(x: &[f64], t: &[f64]) -> Vec<Vec<f64>> {
    let mut shapes: Vec<Vec<f64>> = [0.02, 0.03, 0.045, 0.07, 0.1, 0.15, 0.25, 0.4]
        .iter()
        .map(|decay| t.iter().map(|t| (-t / decay).exp()).collect())
        .collect();
    let top = x[x.len() - 1];
    if x[0] > 0.0 {
        for power in [0.5, 0.62, 0.75, 0.87, 1.15, 1.3, 1.5, 2.0] {
            shapes.push(x.iter().map(|v| (v / top).powf(power)).collect());
        }
        shapes.push(x.iter().map(|v| (v / top).ln()).collect());
    } else {
        shapes.push(t.iter().map(|t| t * t).collect());
    }
    shapes
}

/// Every second, fourth, eighth or sixteenth x is off by a constant, or by a share of x.
pub(crate) fn alternations(x: &[f64]) -> Vec<Vec<f64>> {
    if x.iter().any(|v| v.fract() != 0.0) {
        return Vec::new();
    }
    let top = x[x.len() - 1].abs().max(1.0);
    let mut shapes = Vec::new();
    for modulus in [2.0, 4.0, 8.0, 16.0] {
        let hit: Vec<f64> = x.iter().map(|v| f64::from(v.rem_euclid(modulus) == 0.0)).collect();
        let share = hit.iter().sum::<f64>() / x.len() as f64;
        if share > 0.03 && share < 0.97 {
            shapes.push(hit.iter().zip(x).map(|(h, v)| h * v / top).collect());
            shapes.push(hit);
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
    fn alternations_stand_at_multiples_and_need_whole_numbers() {
        let x: Vec<f64> = (1..=8).map(f64::from).collect();
        assert_eq!(alternations(&x)[1], [0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 1.0]);
        assert!(alternations(&[1.0, 1.5, 2.0]).is_empty());
    }
}
