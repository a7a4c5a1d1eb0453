//! From which size on Winograd's algorithm is taken.

/// The least saving of multiplications that pays for the transforms, summed over the tiles of all images, in units of
/// the multiplications of one tile. The first number applies where the transformed filters fit in the third-level
/// cache, the second where they do not. Infinite where the algorithm never pays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Switch(pub [f64; 2]);

impl Default for Switch {
    /// Measured for ten convolutions on one and on two threads of an EPYC (docs/cpu-engine.md).
    fn default() -> Self {
        Self([28.0, 40.0])
    }
}
