//! How the operators cut their matrix products, in one place: what they compute with is what [`crate::mechanism::cpu`] predicts from.

/// Columns of a product are padded to a multiple of this: whole vector registers, of 16 float32 with AVX-512.
pub const VECTOR: usize = 16;

/// What the settings say about the products of dense layers and of Winograd's algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocking {
    /// They work on the batch padded to a multiple of this.
    pub batch_padding: usize,
    /// Columns that one product computes, at most; `None`: all.
    pub product_columns: Option<usize>,
}

impl Default for Blocking {
    fn default() -> Self {
        Self { batch_padding: 1, product_columns: None }
    }
}

impl Blocking {
    /// Examples that the forward product of a dense layer works on. The batch runs along its vectors, so whole ones are computed.
    pub fn dense_columns(self, batch: usize) -> usize {
        batch.next_multiple_of(self.batch_padding).next_multiple_of(VECTOR)
    }

    /// Images whose tiles Winograd's algorithm transforms and multiplies.
    pub fn winograd_images(self, batch: usize) -> usize {
        batch.next_multiple_of(self.batch_padding)
    }
}
