//! How the machines that measure one experiment together differ.

use super::Truth;
use crate::random::{GOLDEN, Purpose, Stream, mix};

/// The differences between machines, as standard deviations of ln of the step time; none by default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Machines {
    /// The deviation of a factor that all batch sizes share.
    pub relative_sd: f64,
    /// The standard deviation of a factor that each batch size has separately.
    pub cell_sd: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    number: u64,
    /// The seed of the truth, which all machines share.
    seed: u64,
}

impl Truth {
    /// The same truth on machine `number` (counted from 1), with its own noise, and slower or faster as [`Machines`]
    /// says.
    #[must_use]
    pub fn of_machine(&self, number: usize) -> Self {
        let number = number as u64;
        let machine = Some(Machine { number, seed: self.seed });
        Self { machine, seed: mix(self.seed.wrapping_add(number.wrapping_mul(GOLDEN))), ..self.clone() }
    }

    /// The factor on the times of `batch_size` on this machine.
    pub fn machine_factor(&self, batch_size: usize) -> f64 {
        let Some(Machine { number, seed }) = self.machine else { return 1.0 };
        let draw = |part: u64, index: u64| Stream::new(seed, Purpose::Noise, [number, part]).normal(index);
        let Machines { relative_sd, cell_sd } = self.machines;
        (relative_sd * draw(6, 0) + cell_sd * draw(7, batch_size as u64)).exp()
    }
}
