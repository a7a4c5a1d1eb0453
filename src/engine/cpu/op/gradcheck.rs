//! Gradients against central finite differences.

use candle_core::{Device, Result, Tensor, Var};

use super::reference::{Random, assert_values_close, values};
use crate::engine::cpu::thread_team::by_three;

/// Half the distance between the two points of a difference: with float64 the rounding (1e-16 / h) and the curvature
/// (h^2) both stay below 1e-9 for functions of size 1.
const STEP: f64 = 1e-5;

/// Checks the gradient of each input (float64), for a random weighting of the outputs, against central differences.
pub fn gradients_match_differences(inputs: &[Tensor], operator: impl Fn(&[Tensor]) -> Result<Tensor>) -> Result<()> {
    by_three(|| compare(inputs, operator))
}

fn compare(inputs: &[Tensor], operator: impl Fn(&[Tensor]) -> Result<Tensor>) -> Result<()> {
    let leaves = inputs.iter().map(Var::from_tensor).collect::<Result<Vec<_>>>()?;
    let tensors: Vec<Tensor> = leaves.iter().map(|leaf| leaf.as_tensor().clone()).collect();
    let y = operator(&tensors)?;
    let weights = Random::new(77).tensor(y.dims())?;
    let gradients = y.mul(&weights)?.sum_all()?.backward()?;
    for (which, leaf) in leaves.iter().enumerate() {
        let Some(gradient) = gradients.get(leaf) else { panic!("no gradient for input {which}") };
        let objective = |changed: &[f64]| -> Result<f64> {
            let mut inputs = inputs.to_vec();
            inputs[which] = Tensor::from_slice(changed, inputs[which].shape(), &Device::Cpu)?;
            operator(&inputs)?.mul(&weights)?.sum_all()?.to_scalar::<f64>()
        };
        let differences = central_differences(&values(&inputs[which]), objective)?;
        assert_values_close(&values(gradient), &differences, 1e-8, &format!("gradient of input {which}"));
    }
    Ok(())
}

fn central_differences(at: &[f64], objective: impl Fn(&[f64]) -> Result<f64>) -> Result<Vec<f64>> {
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
