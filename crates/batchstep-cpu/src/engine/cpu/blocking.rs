//! How the operators cut their matrix products and round their factors, in one place: batchstep's formulas of mechanisms predict from the same rules.

use crate::settings::{Precision, Settings};

/// Columns of a product are padded to a multiple of this: whole vector registers, of 16 float32 with AVX-512.
pub const VECTOR: usize = 16;

/// The most rows of a product that are computed together. The right side is read once for each such block.
pub const ROWS: usize = 6;

/// How many of the rows that are left are computed next. The last ones are shared evenly: a block of one row waits for
/// its own sums and takes as long as three rows.
#[inline(always)]
pub fn next_rows(left: usize) -> usize {
    if left < 2 * ROWS { left.div_ceil(left.div_ceil(ROWS)) } else { ROWS }
}

/// What the factors of a product are rounded to before they are multiplied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Factors {
    /// Not rounded.
    #[default]
    Exact,
    /// float32 to bfloat16; the sums stay float32.
    Bf16,
}

/// What the settings say about the products of dense layers and convolutions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// The batch is padded to a multiple of this before the products.
    pub batch_padding: usize,
    /// The most columns that one product computes; `None`: all.
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
    /// How the factors are rounded where a layer's weights are multiplied by `columns` columns, over the whole batch.
    /// With at most one register of columns, rounding the weights costs as much time as it saves (measured: 64 x 25,088
    /// weights on 16 columns 0.95 of the rate, on 64 columns 1.6).
    pub fn factors(self, columns: usize) -> Factors {
        if columns > VECTOR { self.factors } else { Factors::Exact }
    }

    /// Examples that the forward product of a dense layer works on. The batch runs along the vectors, and only whole
    /// vectors are computed.
    pub fn dense_columns(self, batch: usize) -> usize {
        batch.next_multiple_of(self.batch_padding).next_multiple_of(VECTOR)
    }

    /// How often the product for a dense layer's input gradient reads the weights; its rows are the examples.
    pub fn dense_readings(self, batch: usize) -> usize {
        batch.div_ceil(ROWS)
    }

    /// Images whose tiles Winograd's algorithm transforms and multiplies.
    pub fn winograd_images(self, batch: usize) -> usize {
        batch.next_multiple_of(self.batch_padding)
    }
}
