//! The calls after the backward pass: the step's numbers, and the optimizer.

use super::parameters::Parameters;
use super::{Phase, PlanBuilder, Work};
use crate::engine::cudnn::element::Element;
use crate::engine::cudnn::op::advance::{advance, check_finite};
use crate::engine::cudnn::op::optimizer::Update;

impl PlanBuilder<'_> {
    pub(super) fn update(&mut self) {
        self.phase = Phase::Optimizer;
        self.at = None;
        let first = self.plan.calls.len();
        let Parameters { master, weight_gradients, other_gradients, working, .. } = self.plan.parameters;
        let (element, scalars, learning_rate) = (self.element, self.plan.scalars, self.settings.learning_rate);
        let scaling = element == Element::F16;
        if scaling {
            self.launch([check_finite(element, weight_gradients, other_gradients, scalars)]);
        }
        self.launch([advance(self.row_losses, learning_rate, scaling, scalars)]);
        let update = Update {
            optimizer: self.settings.optimizer,
            learning_rate,
            element,
            master,
            gradients_weights: weight_gradients,
            gradients_others: other_gradients,
            states: self.states,
            working,
            scalars,
        };
        self.launch([update.launch()]);
        self.part(first, Work::Update, None, Vec::new(), Vec::new());
    }
}
