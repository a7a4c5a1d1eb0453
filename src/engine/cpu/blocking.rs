//! How the operators cut their matrix products and round their factors, in one place: what they compute with is what [`crate::mechanism::cpu`] predicts from.

use crate::settings::{Precision, Settings};

/// Columns of a product are padded to a multiple of this: whole vector registers, of 16 float32 with AVX-512.
pub const VECTOR: usize = 16;

/// Rows of a product that are computed together, at most: for each block of them its right side is read once.
pub const ROWS: usize = 6;

/// What the factors of a product are rounded to before they are multiplied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Factors {
    /// To nothing.
    #[default]
    Exact,
    /// float32 to bfloat16; the sums stay float32.
    Bf16,
}

/// What the settings say about the products of dense layers and convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// They work on the batch padded to a multiple of this.
    pub batch_padding: usize,
    /// Columns that one product computes, at most; `None`: all.
    pub product_columns: Option<usize>,
    pub factors: Factors,
}

impl From<&Settings> for Blocking {
    fn from(settings: &Settings) -> Self {
        let Settings { batch_padding, product_columns, precision, .. } = *settings;
        let factors = if precision == Precision::Bf16 { Factors::Bf16 } else { Factors::Exact };
        Self { batch_padding, product_columns, factors }
    }
}

impl Default for Blocking {
    fn default() -> Self {
        Self { batch_padding: 1, product_columns: None, factors: Factors::Exact }
    }
}

impl Blocking {
    /// What is rounded where a layer's weights meet so many columns, over the whole batch. With no more of them than a register has, rounding the weights
    /// takes as long as is saved (measured: 64 x 25,088 weights on 16 columns 0.95 of the rate, on 64 columns 1.6).
    pub fn factors(self, columns: usize) -> Factors {
        if columns > VECTOR { self.factors } else { Factors::Exact }
    }

    /// Examples that the forward product of a dense layer works on. The batch runs along its vectors, so whole ones are computed.
    pub fn dense_columns(self, batch: usize) -> usize {
        batch.next_multiple_of(self.batch_padding).next_multiple_of(VECTOR)
    }

    /// How often the product of a dense layer's input gradient, whose rows are the examples, reads the weights.
    pub fn dense_readings(self, batch: usize) -> usize {
        batch.div_ceil(ROWS)
    }

    /// Images whose tiles Winograd's algorithm transforms and multiplies.
    pub fn winograd_images(self, batch: usize) -> usize {
        batch.next_multiple_of(self.batch_padding)
    }
}
