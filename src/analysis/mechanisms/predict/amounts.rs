//! The work of one layer in one direction at each batch size, as one mechanism counts it.

use std::collections::BTreeMap;

use crate::analysis::mechanisms::formulas::Mechanism;

pub(super) struct LayerAmounts {
    pub mechanism: Mechanism,
    pub layer: String,
    pub direction: String,
    pub amounts: Amounts,
}

pub(super) enum Amounts {
    /// Work whose growth gives the size of a step.
    Sized(BTreeMap<i64, f64>),
    /// The names of what computes the layer, by batch size; a change of name has no size.
    Named(BTreeMap<i64, String>),
    /// Steps where a limit is passed, by the batch size before them.
    Passed(BTreeMap<i64, PredictedStep>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PredictedStep {
    /// As a part of the layer's own time.
    pub excess: Option<f64>,
    /// As a part of the whole step time, at most.
    pub at_most: Option<f64>,
    /// What a reader should know about it.
    pub detail: Option<String>,
}

impl Amounts {
    /// The step between two batch sizes, where there is one.
    pub fn step(&self, after: i64, next: i64) -> Option<PredictedStep> {
        match self {
            Self::Sized(amounts) => {
                let (before, behind) = (*amounts.get(&after)?, *amounts.get(&next)?);
                // What it grows by beyond growth in proportion to the batch: 0 where it is proportional, 1 where it doubles.
                let excess = behind / before - next as f64 / after as f64;
                (excess > 0.0).then(|| PredictedStep { excess: Some(excess), ..PredictedStep::default() })
            }
            Self::Named(names) => {
                let (before, behind) = (names.get(&after)?, names.get(&next)?);
                (before != behind).then(PredictedStep::default)
            }
            Self::Passed(steps) => steps.get(&after).cloned(),
        }
    }
}
