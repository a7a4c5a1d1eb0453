//! The optimizers: candle-nn's SGD and AdamW, and the two that it lacks. These are written in its style, as chains of
//! tensor operations, by PyTorch's update rules.

use candle_core::backprop::GradStore;
use candle_core::{Result, Tensor, Var};
use candle_nn::{AdamW, Optimizer as _, ParamsAdamW, SGD};

use crate::settings::Optimizer as Name;

/// Updates every variable that has a gradient.
pub type Optimizer = Box<dyn FnMut(&GradStore) -> Result<()> + Send>;

/// The optimizer of `vars`, before its first update.
pub fn optimizer(name: Name, vars: Vec<Var>, rate: f64) -> Result<Optimizer> {
    // The other defaults of candle-nn's AdamW are PyTorch's: 0.9, 0.999, 1e-8 and a decay of 0.01.
    let defaults = ParamsAdamW { lr: rate, ..ParamsAdamW::default() };
    let adamw = |vars, params| -> Result<Optimizer> {
        let mut adamw = AdamW::new(vars, params)?;
        Ok(Box::new(move |gradients| adamw.step(gradients)))
    };
    match name {
        Name::Sgd => {
            let mut sgd = SGD::new(vars, rate)?;
            Ok(Box::new(move |gradients| sgd.step(gradients)))
        }
        // v = 0.9 v + g; w -= rate v, as `torch.optim.SGD`.
        Name::Momentum => with_state(vars, move |var, velocity, gradient| {
            velocity.set(&((velocity.as_tensor() * 0.9)? + gradient)?)?;
            var.set(&(var.as_tensor() - (velocity.as_tensor() * rate)?)?)
        }),
        // s = 0.99 s + 0.01 g^2; w -= rate g / (sqrt(s) + 1e-8), as `torch.optim.RMSprop`.
        Name::RmsProp => with_state(vars, move |var, square, gradient| {
            square.set(&((square.as_tensor() * 0.99)? + (gradient.sqr()? * (1.0 - 0.99))?)?)?;
            let scaled = (gradient / (square.sqrt()? + 1e-8)?)?;
            var.set(&(var.as_tensor() - (scaled * rate)?)?)
        }),
        // Without decay AdamW is Adam.
        Name::Adam => adamw(vars, ParamsAdamW { weight_decay: 0.0, ..defaults }),
        Name::AdamW => adamw(vars, defaults),
    }
}

/// An optimizer that keeps one state for each variable; `update` takes both and the gradient.
fn with_state(
    vars: Vec<Var>,
    update: impl Fn(&Var, &Var, &Tensor) -> Result<()> + Send + 'static,
) -> Result<Optimizer> {
    let zeros = |var: &Var| Var::zeros(var.shape(), var.dtype(), var.device());
    let states = vars.iter().map(zeros).collect::<Result<Vec<Var>>>()?;
    Ok(Box::new(move |gradients| {
        let mut pairs = vars.iter().zip(&states);
        pairs.try_for_each(|(var, state)| gradients.get(var).map_or(Ok(()), |gradient| update(var, state, gradient)))
    }))
}
