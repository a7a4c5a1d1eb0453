//! The update rules, as PyTorch's documentation writes them, with its defaults: `torch.optim.SGD`, `RMSprop`, `Adam` and
//! `AdamW`.

use crate::settings::{Optimizer, Settings};

const MOMENTUM: f64 = 0.9;
const SMOOTHING: f64 = 0.99;
const BETAS: (f64, f64) = (0.9, 0.999);
const EPSILON: f64 = 1e-8;
const WEIGHT_DECAY: f64 = 0.01;

/// The state that an optimizer keeps for one number.
#[derive(Clone, Copy, Debug, Default)]
pub struct OptimizerState {
    /// The velocity of SGD with momentum, the mean gradient of Adam.
    first: f64,
    /// The mean squared gradient.
    second: f64,
}

/// The parameter `w` after update number `step` (counted from 1) with its gradient `g`.
pub fn updated(settings: &Settings, step: i32, w: f64, g: f64, state: &mut OptimizerState) -> f64 {
    let rate = settings.learning_rate;
    match settings.optimizer {
        Optimizer::Sgd => w - rate * g,
        Optimizer::Momentum => {
            state.first = MOMENTUM * state.first + g;
            w - rate * state.first
        }
        Optimizer::RmsProp => {
            state.second = SMOOTHING * state.second + (1.0 - SMOOTHING) * g * g;
            w - rate * g / (state.second.sqrt() + EPSILON)
        }
        Optimizer::Adam => adam(rate, step, w, g, state),
        Optimizer::AdamW => adam(rate, step, w - rate * WEIGHT_DECAY * w, g, state),
    }
}

fn adam(rate: f64, step: i32, w: f64, g: f64, state: &mut OptimizerState) -> f64 {
    state.first = BETAS.0 * state.first + (1.0 - BETAS.0) * g;
    state.second = BETAS.1 * state.second + (1.0 - BETAS.1) * g * g;
    let mean = state.first / (1.0 - BETAS.0.powi(step));
    let square = state.second / (1.0 - BETAS.1.powi(step));
    w - rate * mean / (square.sqrt() + EPSILON)
}
