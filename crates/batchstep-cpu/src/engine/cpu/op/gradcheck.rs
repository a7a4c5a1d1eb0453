//! Gradients against central finite differences.

use super::reference::{Case, Random, assert_values_close};
use crate::engine::cpu::thread_team::by_three;
use crate::error::Result;

/// Half the distance between the two points of a difference: with float64 the rounding (1e-16 / h) and the curvature
/// (h^2) both stay below 1e-9 for functions of size 1.
const STEP: f64 = 1e-5;

/// Checks the gradient of each operand, in float64, for a random weighting of the outputs, against central differences.
///
/// # Errors
/// Where the operands do not fit the layer.
pub fn gradients_match_differences(case: &Case) -> Result<()> {
    by_three(|| compare(case))
}

fn compare(case: &Case) -> Result<()> {
    let weights = Random::new(77).reals(case.outputs());
    let gradients = case.run::<f64>(&weights)?.gradients;
    for (which, gradient) in gradients.iter().enumerate() {
        let objective = |changed: &[f64]| -> Result<f64> {
            let mut operands = case.operands.clone();
            operands[which] = changed.to_vec();
            Ok(case.with(operands).y()?.iter().zip(&weights).map(|(y, weight)| y * weight).sum())
        };
        let differences = central_differences(&case.operands[which], objective)?;
        assert_values_close(gradient, &differences, 1e-8, &format!("gradient of operand {which}"));
    }
    Ok(())
}

/// The gradient of `objective` at a point.
///
/// # Errors
/// Those of `objective`.
pub fn central_differences(at: &[f64], objective: impl Fn(&[f64]) -> Result<f64>) -> Result<Vec<f64>> {
    let mut point = at.to_vec();
    let mut differences = Vec::with_capacity(at.len());
    for i in 0..at.len() {
        point[i] = at[i] + STEP;
        let above = objective(&point)?;
        point[i] = at[i] - STEP;
        let below = objective(&point)?;
        point[i] = at[i];
        differences.push((above - below) / (2.0 * STEP));
    }
    Ok(differences)
}
