use candle_core::{DType, Device, Result, Tensor, Var};

use super::dropout;
use crate::engine::cpu::op::gradcheck::gradients_match_differences;
use crate::engine::cpu::op::reference::{Random, values};
use crate::engine::cpu::thread_team::Team;

fn ones(count: usize) -> Result<Tensor> {
    Tensor::ones(count, DType::F32, &Device::Cpu)
}

#[test]
fn the_same_seed_gives_the_same_mask_and_another_seed_another() -> Result<()> {
    let x = ones(10_000)?;
    assert_eq!(values(&dropout(&x, 0.5, 7)?), values(&dropout(&x, 0.5, 7)?));
    let differing =
        values(&dropout(&x, 0.5, 7)?).iter().zip(values(&dropout(&x, 0.5, 8)?)).filter(|(a, b)| *a != b).count();
    // Independent masks differ in half of the places, within 5 standard deviations of 50 each.
    assert!((4750..=5250).contains(&differing), "{differing} of 10000 places differ");
    Ok(())
}

#[test]
fn the_mask_does_not_depend_on_the_number_of_threads() -> Result<()> {
    let x = ones(300_000)?;
    let team = Team::new(3).map_err(candle_core::Error::wrap)?;
    let many = team.install(|| dropout(&x, 0.3, 1))?;
    assert_eq!(values(&many), values(&dropout(&x, 0.3, 1)?));
    Ok(())
}

#[test]
fn the_share_of_zeros_is_the_rate_and_the_others_are_scaled() -> Result<()> {
    for rate in [0.1, 0.5, 0.8] {
        let y = values(&dropout(&ones(100_000)?, rate, 3)?);
        let zeros = y.iter().filter(|y| **y == 0.0).count() as f64;
        let deviation = (100_000.0 * rate * (1.0 - rate)).sqrt();
        assert!((zeros - 100_000.0 * rate).abs() < 5.0 * deviation, "{zeros} zeros at rate {rate}");
        assert!(y.iter().all(|y| *y == 0.0 || (y - 1.0 / (1.0 - rate)).abs() < 1e-6));
    }
    assert_eq!(values(&dropout(&ones(100)?, 0.0, 3)?), [1.0; 100]);
    Ok(())
}

#[test]
fn forward_and_backward_drop_the_same_elements() -> Result<()> {
    let x = Var::from_tensor(&ones(5000)?)?;
    let y = dropout(&x, 0.4, 11)?;
    let gradients = y.sum_all()?.backward()?;
    assert_eq!(gradients.get(&x).map(values), Some(values(&y)));
    gradients_match_differences(&[Random::new(1).tensor(&[40])?], |t| dropout(&t[0], 0.4, 11))
}

#[test]
fn rates_outside_of_zero_to_one_are_refused() -> Result<()> {
    for rate in [-0.1, 1.0, f64::NAN] {
        assert!(dropout(&ones(3)?, rate, 0).is_err());
    }
    Ok(())
}
