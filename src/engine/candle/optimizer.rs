//! The optimizers: candle-nn's SGD and AdamW, and the two that it lacks. These are written in its style, as chains of
//! tensor operations, by PyTorch's update rules.

use candle_core::backprop::GradStore;
use candle_core::{Result, Var};
use candle_nn::{AdamW, Optimizer as _, ParamsAdamW, SGD};

use crate::settings;

#[derive(Debug)]
pub enum Optimizer {
    Sgd(SGD),
    /// v = 0.9 v + g; w -= rate v, as `torch.optim.SGD`.
    Momentum(Stateful),
    /// s = 0.99 s + 0.01 g^2; w -= rate g / (sqrt(s) + 1e-8), as `torch.optim.RMSprop`.
    RmsProp(Stateful),
    AdamW(AdamW),
}

/// Variables with one state each.
#[derive(Debug)]
pub struct Stateful {
    pairs: Vec<(Var, Var)>,
    rate: f64,
}

impl Optimizer {
    /// The optimizer of `vars`, before its first update.
    pub fn new(optimizer: settings::Optimizer, vars: Vec<Var>, rate: f64) -> Result<Self> {
        use settings::Optimizer as Name;
        // The other defaults of candle-nn's AdamW are PyTorch's: 0.9, 0.999, 1e-8 and a decay of 0.01.
        let adamw = ParamsAdamW { lr: rate, ..ParamsAdamW::default() };
        Ok(match optimizer {
            Name::Sgd => Self::Sgd(SGD::new(vars, rate)?),
            Name::Momentum => Self::Momentum(Stateful::new(vars, rate)?),
            Name::RmsProp => Self::RmsProp(Stateful::new(vars, rate)?),
            // Without decay AdamW is Adam.
            Name::Adam => Self::AdamW(AdamW::new(vars, ParamsAdamW { weight_decay: 0.0, ..adamw })?),
            Name::AdamW => Self::AdamW(AdamW::new(vars, adamw)?),
        })
    }

    /// Updates every variable that has a gradient.
    pub fn step(&mut self, gradients: &GradStore) -> Result<()> {
        match self {
            Self::Sgd(sgd) => sgd.step(gradients),
            Self::Momentum(momentum) => momentum.momentum(gradients),
            Self::RmsProp(rms_prop) => rms_prop.rms_prop(gradients),
            Self::AdamW(adamw) => adamw.step(gradients),
        }
    }
}

impl Stateful {
    fn new(vars: Vec<Var>, rate: f64) -> Result<Self> {
        let with_state = |var: Var| Var::zeros(var.shape(), var.dtype(), var.device()).map(|state| (var, state));
        Ok(Self { pairs: vars.into_iter().map(with_state).collect::<Result<_>>()?, rate })
    }

    fn momentum(&self, gradients: &GradStore) -> Result<()> {
        for (var, velocity) in &self.pairs {
            let Some(gradient) = gradients.get(var) else { continue };
            velocity.set(&((velocity.as_tensor() * 0.9)? + gradient)?)?;
            var.set(&(var.as_tensor() - (velocity.as_tensor() * self.rate)?)?)?;
        }
        Ok(())
    }

    fn rms_prop(&self, gradients: &GradStore) -> Result<()> {
        for (var, square) in &self.pairs {
            let Some(gradient) = gradients.get(var) else { continue };
            square.set(&((square.as_tensor() * 0.99)? + (gradient.sqr()? * (1.0 - 0.99))?)?)?;
            let scaled = (gradient / (square.sqrt()? + 1e-8)?)?;
            var.set(&(var.as_tensor() - (scaled * self.rate)?)?)?;
        }
        Ok(())
    }
}
