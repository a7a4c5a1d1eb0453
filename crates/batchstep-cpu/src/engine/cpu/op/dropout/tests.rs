use crate::engine::cpu::op::cases::Case;
use crate::engine::cpu::thread_team::Team;
use crate::error::Result;
use crate::network::{Operation, Shape};

/// Dropout of ones.
fn case(count: usize, rate: f64, seed: u64) -> Result<Case> {
    Ok(Case::new(Operation::Dropout { rate }, Shape::Flat(count), 1, vec![vec![1.0; count]])?.seeded(seed))
}

#[test]
fn the_same_seed_gives_the_same_mask_and_another_seed_another() -> Result<()> {
    let y = |seed| case(10_000, 0.5, seed)?.y();
    assert_eq!(y(7)?, y(7)?);
    let differing = y(7)?.iter().zip(y(8)?).filter(|(a, b)| **a != *b).count();
    // Independent masks differ in half of the places, within 5 standard deviations of 50 each.
    assert!((4750..=5250).contains(&differing), "{differing} of 10000 places differ");
    Ok(())
}

#[test]
fn the_mask_does_not_depend_on_the_number_of_threads() -> Result<()> {
    let case = case(300_000, 0.3, 1)?;
    assert_eq!(Team::new(3)?.install(|| case.y())?, case.y()?);
    Ok(())
}

#[test]
fn the_share_of_zeros_is_the_rate_and_the_others_are_scaled() -> Result<()> {
    for rate in [0.1, 0.5, 0.8] {
        let y = case(100_000, rate, 3)?.run::<f32>(&[0.0; 100_000])?.y;
        let zeros = y.iter().filter(|y| **y == 0.0).count() as f64;
        let deviation = (100_000.0 * rate * (1.0 - rate)).sqrt();
        assert!((zeros - 100_000.0 * rate).abs() < 5.0 * deviation, "{zeros} zeros at rate {rate}");
        assert!(y.iter().all(|y| *y == 0.0 || (y - 1.0 / (1.0 - rate)).abs() < 1e-6));
    }
    assert_eq!(case(100, 0.0, 3)?.y()?, [1.0; 100]);
    Ok(())
}

#[test]
fn forward_and_backward_drop_the_same_elements() -> Result<()> {
    let found = case(5000, 0.4, 11)?.run::<f32>(&[1.0; 5000])?;
    assert_eq!(found.gradients[0], found.y);
    Ok(())
}
