//! What a comparison decides by, and the decision on a cell or on a series as a whole.

use crate::settings::named;

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

named! {
    /// The decision on one cell of the second run, compared with the first.
    Decision {
        Same = "SAME",
        Faster = "FASTER",
        Slower = "SLOWER",
        Ambiguous = "AMBIGUOUS",
    }
}

impl Decision {
    /// The decision on logarithms that lie `apart`, with a corrected p-value and half the width of the simultaneous interval.
    pub(super) fn new(apart: f64, p_value: f64, half: f64, rules: &Rules) -> Self {
        // With a margin, differences within it do not count, even if they are proven.
        match (p_value <= rules.alpha, apart > 0.0) {
            _ if apart.abs() + half <= rules.margin.ln_1p() => Self::Same,
            (true, true) => Self::Slower,
            (true, false) => Self::Faster,
            (false, _) => Self::Ambiguous,
        }
    }
}
