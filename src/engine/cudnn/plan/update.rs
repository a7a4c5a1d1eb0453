//! The calls after the backward pass: the step's numbers, and the optimizer.

use super::parameters::Parameters;
use super::part::Work;
use super::{Phase, PlanBuilder};
use crate::engine::cudnn::call::Slice;
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::op::advance::{advance, check_finite};
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
        let first = self.plan.calls.len();
        let p = &self.plan.parameters;
        let size = p.element.bytes();
        let whole = |buffer, bytes| Slice { buffer, offset: 0, bytes };
        let gradients_weights = whole(p.weight_gradients, size * p.weights);
        let gradients_others = whole(p.other_gradients, 4 * p.others);
        let master = whole(p.master, 4 * (p.weights + p.others));
        let working = p.working.map(|buffer| whole(buffer, size * p.weights));
        let (element, scalars, learning_rate) = (self.element, self.plan.scalars, self.settings.learning_rate);
        let scaling = element == Element::F16;
        if scaling {
            self.launch([check_finite(element, gradients_weights, gradients_others, scalars)]);
        }
        self.launch([advance(self.row_losses, learning_rate, scaling, scalars)]);
        let update = Update {
            optimizer: self.settings.optimizer,
            learning_rate,
            element,
            master,
            gradients_weights,
            gradients_others,
            states: self.states,
            working,
            scalars,
        };
        self.launch([update.launch()]);
        self.part(first, Work::Update);
    }
}
