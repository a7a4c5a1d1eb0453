//! The mechanisms that make the work of a layer grow in steps with the batch size.
//!
//! A mechanism is a formula that gives an amount of work, such as blocks of threads, or examples after padding, from a layer's
//! sizes, the batch size, and a fact about the device or the program (a tile, a number of multiprocessors). It says where the
//! time must step if it follows the work. Only measurements can show whether it does.
//!
//! [`Mechanism`] has the formula and the source of each.
//!
//! Published: github.com/sitar-lab/NeuSight, MIT licence, fetched by `scripts/fetch-published`; `examples/tables/published_check.rs` counts the
//! launches that fit, and `docs/mechanisms.md` has the table.

pub mod catalogue;
mod kernel;
pub mod own;
#[cfg(test)]
mod tests;

pub use catalogue::Mechanism;
pub use kernel::{Family, Kernel, Tile, WINOGRAD_BATCH};

use crate::network::{Extent, Network, Operation, Padding, Shape};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum KnownOperation {
    /// A convolution of 3 x 3 taps with stride 1, one group, and padding that keeps the size.
    Convolution3x3,
    Dense,
}

/// A layer without its batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LayerSizes {
    pub product: KnownOperation,
    /// Channels or features in.
    pub inputs: usize,
    /// Channels or features out.
    pub outputs: usize,
    /// The height of the images; 1 for a dense layer.
    pub height: usize,
    pub width: usize,
}

impl LayerSizes {
    /// Layer `index` of a network; `None` where no mechanism covers its operation, for example a convolution of 1 x 1
    /// taps or with a stride.
    ///
    /// # Panics
    /// If there is no such layer.
    pub fn of(network: &Network, index: usize) -> Option<Self> {
        let source = network.sources(index).next()?;
        match (network.layers[index].operation, source) {
            (Operation::Conv2d(conv), Shape::Maps { channels, height, width }) => {
                let one = Padding { top: 1, bottom: 1, left: 1, right: 1 };
                let known = conv.kernel == Extent::square(3)
                    && conv.stride == Extent::square(1)
                    && conv.groups == 1
                    && conv.padding == one;
                let product = KnownOperation::Convolution3x3;
                known.then_some(Self { product, inputs: channels, outputs: conv.out_channels, height, width })
            }
            (Operation::Dense(dense), Shape::Flat(inputs)) => {
                let product = KnownOperation::Dense;
                Some(Self { product, inputs, outputs: dense.out_features, height: 1, width: 1 })
            }
            _ => None,
        }
    }

    /// Bytes of a batch's input and output and of the weights, in float32.
    pub fn bytes(&self, batch: usize) -> f64 {
        let weights = self.multiply_adds() / (self.height * self.width) as f64;
        4.0 * ((batch * (self.inputs + self.outputs) * self.height * self.width) as f64 + weights)
    }

    /// Multiply-adds of one example by the definition.
    pub fn multiply_adds(&self) -> f64 {
        let taps = match self.product {
            KnownOperation::Convolution3x3 => 9,
            KnownOperation::Dense => 1,
        };
        (taps * self.inputs * self.outputs * self.height * self.width) as f64
    }
}

/// Rounds of blocks on a GPU that works on one block for each multiprocessor at a time; a round that is not full takes as long as a
/// full one. Where a multiprocessor holds several blocks, they share its arithmetic units.
pub fn rounds(blocks: usize, multiprocessors: usize) -> usize {
    blocks.div_ceil(multiprocessors.max(1))
}
