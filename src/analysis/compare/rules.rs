//! What a comparison decides by.

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rules {
    /// The chance that equal runs get even one cell named faster or slower.
    pub alpha: f64,
    /// Ratios this near to 1, relative, are the same.
    pub margin: f64,
    pub design: Design,
}

impl Default for Rules {
    fn default() -> Self {
        Self { alpha: 0.05, margin: 0.01, design: Design::Separate }
    }
}

/// How the blocks of two runs are related.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Design {
    /// Not at all: the error of each run follows from the scatter among its own blocks.
    Separate,
    /// Blocks of the same number are a round, measured one right after the other; the rounds are what is resampled.
    InTurns,
}
