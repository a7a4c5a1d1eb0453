//! The calls after the backward pass: the step's numbers, and the optimizer.

use super::parameters::Parameters;
use super::part::Work;
use super::{Phase, PlanBuilder};
use crate::engine::cudnn::call::Slice;
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::op::advance::{Advance, CheckFinite};
use crate::engine::cudnn::op::optimizer::Update;
use crate::settings::Optimizer;

/// The optimizer's state: as many float32 numbers as there are parameters, none, once or twice.
pub(super) fn states(
    optimizer: Optimizer,
    parameters: &Parameters,
    whole: &mut impl FnMut(&str, usize) -> Slice,
) -> [Option<Slice>; 2] {
    let bytes = 4 * (parameters.weights + parameters.others);
    let names: &[&str] = match optimizer {
        Optimizer::Sgd => &[],
        Optimizer::Momentum => &["velocities"],
        Optimizer::RmsProp => &["mean squares"],
        Optimizer::Adam | Optimizer::AdamW => &["means", "mean squares"],
    };
    [0, 1].map(|number: usize| names.get(number).map(|name| whole(name, bytes)))
}

impl PlanBuilder<'_> {
    pub(super) fn update(&mut self) {
        self.phase = Phase::Optimizer;
        self.at = None;
        let first = self.calls.len();
        let p = &self.parameters;
        let size = p.element.bytes();
        let whole = |buffer, bytes| Slice { buffer, offset: 0, bytes };
        let gradients_weights = whole(p.weight_gradients, size * p.weights);
        let gradients_others = whole(p.other_gradients, 4 * p.others);
        let master = whole(p.master, 4 * (p.weights + p.others));
        let working = p.working.map(|buffer| whole(buffer, size * p.weights));
        let (element, weights, others) = (self.element, p.weights, p.others);
        let scalars = self.scalars;
        let optimizer = self.settings.optimizer;
        let scaling = element == Element::F16;
        if scaling {
            let check = CheckFinite { element, weights, others, gradients_weights, gradients_others, scalars };
            self.launch(check.launches());
        }
        let (rows, row_losses, learning_rate) = (self.batch_size, self.row_losses, self.settings.learning_rate);
        self.launch(Advance { row_losses, rows, learning_rate, scaling, scalars }.launches());
        let update = Update {
            optimizer,
            learning_rate,
            element,
            weights,
            others,
            master,
            gradients_weights,
            gradients_others,
            states: self.states,
            working,
            scalars,
        };
        self.launch(update.launches());
        self.part(first, Work::Update);
    }
}
