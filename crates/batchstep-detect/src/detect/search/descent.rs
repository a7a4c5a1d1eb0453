//! Descents: the best single change is made until none helps.

use std::ops::Range;

use crate::detect::model::fit::Model;
use crate::detect::model::moves::LEAST_GAIN;

/// More changes than any search needs: some ten to fifty are usual.
const MOST_CHANGES: usize = 400;

/// Makes the best single change until none helps; none adds a step after a position in `no_step`.
pub(crate) fn descend<'a, 'b>(mut model: Model<'a, 'b>, no_step: Range<usize>) -> Model<'a, 'b> {
    for _ in 0..MOST_CHANGES {
        if !step(&mut model, no_step.clone()) {
            break;
        }
    }
    model
}

/// Makes the best single change, but adds no step after a position in `no_step`; false if none helps.
fn step(model: &mut Model, no_step: Range<usize>) -> bool {
    let change = model.best_move(no_step);
    let enough = model.length() - LEAST_GAIN;
    if change.length > enough {
        return false;
    }
    let before = model.terms.clone();
    model.make(change);
    if model.length() > enough {
        // The predicted gain was a rounding error.
        *model = Model::new(model.problem, &before);
        return false;
    }
    true
}
