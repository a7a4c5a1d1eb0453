use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Case, Random, agrees_with_pytorch};
use crate::error::Result;
use crate::network::{Operation, Shape};

/// The cases hold 0, -0 and 6, where the gradient is a convention.
#[test]
fn both_rectifiers_agree_with_pytorch() {
    agrees_with_pytorch("relu", &["x"], Operation::Relu);
    agrees_with_pytorch("relu6", &["x"], Operation::Relu6);
}

#[test]
fn gradients_match_finite_differences() -> Result<()> {
    let x: Vec<f64> = Random::new(1).reals(120).iter().map(|x| 10.0 * x + 0.5).collect();
    for rectifier in [Operation::Relu, Operation::Relu6] {
        gradients_match_differences(&Case::new(rectifier, Shape::Flat(40), 3, vec![x.clone()])?)?;
    }
    Ok(())
}

#[test]
fn a_nan_passes_through() -> Result<()> {
    let x = vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    for (rectifier, largest) in [(Operation::Relu, f64::INFINITY), (Operation::Relu6, 6.0)] {
        let y = Case::new(rectifier, Shape::Flat(3), 1, vec![x.clone()])?.run::<f32>(&[0.0; 3])?.y;
        assert!(y[0].is_nan());
        assert_eq!(y[1..], [largest, 0.0]);
    }
    Ok(())
}
