//! The optimizers, by PyTorch's update rules, each in one pass over memory: parameter, gradient and state are read once and
//! written once, in place, in parallel, without a temporary.
//!
//! candle-nn's optimizers are chains of tensor operations with a full-size temporary each, and it has no momentum and
//! no RMSprop. On two threads of a Xeon with AVX-512 its SGD took 0.33 s over 103 M parameters; RMSprop here takes 0.07
//! s over the 138 M of VGG16, which is 2.8 GB of memory traffic.

mod adam;
mod momentum;
mod rmsprop;
mod sgd;
#[cfg(test)]
pub(in crate::engine) mod tests;

use std::cell::RefCell;

use candle_core::backprop::GradStore;
use candle_core::{CpuStorage, InplaceOp1, Layout, Result, Tensor, Var, WithDType, bail};
use num_traits::Float;

use super::op::huge_pages::advise;
use super::op::operand::{by_dtype, with_elements};
use super::op::parallel::{Shared, for_each_piece, for_each_task, part};
use super::op::scalar::Scalar;
use crate::settings;
use adam::Adam;
use momentum::Momentum;
use rmsprop::RmsProp;
use sgd::Sgd;

/// Scalars of one task: parameter, gradient and two states take 256 KiB in f32, a part of a core's own cache.
const CHUNK: usize = 1 << 14;

/// The update rule and the size of its step; everything else is PyTorch's default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    pub optimizer: settings::Optimizer,
    pub learning_rate: f64,
}

/// An optimizer with its state.
#[derive(Debug)]
pub struct InPlace {
    config: Config,
    vars: Vec<Var>,
    /// The first element of each variable, through which its memory is written. For a tensor with more axes candle
    /// would allocate a list of the axes each time.
    handles: Vec<Tensor>,
    /// For each variable its two states, as long as the variable or empty.
    states: Vec<RefCell<States>>,
    /// Updates done.
    steps: i32,
}

/// The state of one variable, in its element type.
#[derive(Debug)]
struct States([CpuStorage; 2]);

impl States {
    fn zeros(var: &Var, copies: usize) -> Result<Self> {
        let count = |number: usize| if number < copies { var.elem_count() } else { 0 };
        by_dtype!(var.dtype(), "an optimizer", T => {
            Ok(Self([0, 1].map(|number| {
                let mut state = vec![T::ZERO; count(number)];
                advise(&mut state);
                <T as WithDType>::to_cpu_storage_owned(state)
            })))
        })
    }

    fn clear(&mut self) {
        for state in &mut self.0 {
            match state {
                CpuStorage::F32(state) => for_each_piece(state, CHUNK, |_, state| state.fill(0.0)),
                CpuStorage::F64(state) => for_each_piece(state, CHUNK, |_, state| state.fill(0.0)),
                _ => {}
            }
        }
    }
}

impl InPlace {
    /// Forgets all updates and keeps the memory.
    pub fn reset(&mut self, learning_rate: f64) {
        self.config.learning_rate = learning_rate;
        self.steps = 0;
        self.states.iter_mut().for_each(|states| states.get_mut().clear());
    }

    /// The update rule and its step size.
    pub fn config(&self) -> Config {
        self.config
    }

    /// Updates every variable by its gradient, in the order in which the variables were given.
    ///
    /// # Errors
    /// Where a gradient does not have its variable's size and element type.
    pub fn update<'a, T: Scalar + Float>(&mut self, gradients: impl Iterator<Item = &'a [T]>) -> Result<()> {
        self.steps = self.steps.saturating_add(1);
        (0..).zip(gradients).try_for_each(|(index, gradient)| self.apply(index, gradient))
    }

    fn apply<T: Scalar + Float>(&self, index: usize, gradient: &[T]) -> Result<()> {
        let (Some(var), Some(handle), Some(states)) =
            (self.vars.get(index), self.handles.get(index), self.states.get(index))
        else {
            bail!("{}: more gradients than variables", self.config.optimizer)
        };
        if gradient.len() != var.elem_count() {
            bail!("{}: the gradient's shape is not the variable's", self.config.optimizer)
        }
        handle.inplace_op1(&Update { config: self.config, steps: self.steps, gradient, states })
    }

    fn apply_tensor(&self, index: usize, gradient: &Tensor) -> Result<()> {
        by_dtype!(gradient.dtype(), self.config.optimizer, T => {
            with_elements::<T, _>(&gradient.contiguous()?, |gradient| self.apply(index, gradient))
        })
    }
}

impl candle_nn::Optimizer for InPlace {
    type Config = Config;

    fn new(vars: Vec<Var>, config: Config) -> Result<Self> {
        let copies = config.optimizer.state_copies();
        let states = vars.iter().map(|var| States::zeros(var, copies).map(RefCell::new)).collect::<Result<_>>()?;
        let handle = |var: &Var| match var.is_contiguous() {
            true => var.as_detached_tensor().flatten_all()?.narrow(0, 0, 1),
            false => bail!("{}: a variable is not contiguous", config.optimizer),
        };
        let handles = vars.iter().map(handle).collect::<Result<_>>()?;
        let mut optimizer = Self { config, vars, handles, states, steps: 0 };
        // Zeros must be written here; otherwise the system would allocate their pages during the first step.
        optimizer.reset(config.learning_rate);
        Ok(optimizer)
    }

    /// Updates every variable that has a gradient, as PyTorch does.
    fn step(&mut self, grads: &GradStore) -> Result<()> {
        self.steps = self.steps.saturating_add(1);
        for (index, var) in self.vars.iter().enumerate() {
            if let Some(gradient) = grads.get(var) {
                self.apply_tensor(index, gradient)?;
            }
        }
        Ok(())
    }

    fn learning_rate(&self) -> f64 {
        self.config.learning_rate
    }

    fn set_learning_rate(&mut self, learning_rate: f64) {
        self.config.learning_rate = learning_rate;
    }
}

/// The update of one variable, as an operation of candle that overwrites its operand: the memory that begins with its first element.
struct Update<'a, T> {
    config: Config,
    /// This update's number, from 1.
    steps: i32,
    gradient: &'a [T],
    states: &'a RefCell<States>,
}

impl<T: Scalar + Float> InplaceOp1 for Update<'_, T> {
    fn name(&self) -> &'static str {
        self.config.optimizer.name()
    }

    fn cpu_fwd(&self, storage: &mut CpuStorage, layout: &Layout) -> Result<()> {
        let start = layout.start_offset();
        let variable = start..start + self.gradient.len();
        let States([a, b]) = &mut *self.states.borrow_mut();
        let (a, b) = (T::elements_mut(a)?, T::elements_mut(b)?);
        self.update(Tensors { w: &mut T::elements_mut(storage)?[variable], g: self.gradient, a, b });
        Ok(())
    }
}

/// What an update reads and writes: the parameter, its gradient, and its states.
struct Tensors<'a, T> {
    w: &'a mut [T],
    g: &'a [T],
    a: &'a mut [T],
    b: &'a mut [T],
}

impl<T: Scalar> Tensors<'_, T> {
    /// Runs `rule` on pieces of all four, shared among the threads; the pieces of an empty state are empty.
    fn for_each_piece(self, rule: impl Fn(Tensors<'_, T>) + Sync) {
        let g = self.g;
        let [w, a, b] = [self.w, self.a, self.b].map(|values| (values.len(), Shared::new(values)));
        for_each_task(
            g.len().div_ceil(CHUNK),
            || (),
            |(), number| {
                let [w, a, b] = [&w, &a, &b].map(|(len, values)| {
                    let start = (number * CHUNK).min(*len);
                    // SAFETY: every number has one task.
                    unsafe { values.slice(start, CHUNK.min(len - start)) }
                });
                rule(Tensors { w, g: part(g, number, CHUNK), a, b });
            },
        );
    }
}

impl<T: Scalar + Float> Update<'_, T> {
    fn update(&self, tensors: Tensors<'_, T>) {
        use settings::Optimizer as O;
        let rate = self.config.learning_rate;
        match self.config.optimizer {
            O::Sgd => {
                let rule = Sgd::new(rate);
                tensors.for_each_piece(|Tensors { w, g, .. }| rule.update(w, g));
            }
            O::Momentum => {
                let rule = Momentum::new(rate);
                tensors.for_each_piece(|Tensors { w, g, a, .. }| rule.update(w, g, a));
            }
            O::RmsProp => {
                let rule = RmsProp::new(rate);
                tensors.for_each_piece(|Tensors { w, g, a, .. }| rule.update(w, g, a));
            }
            O::Adam | O::AdamW => {
                let decay = if self.config.optimizer == O::AdamW { adam::WEIGHT_DECAY } else { 0.0 };
                let rule = Adam::new(rate, decay, self.steps);
                tensors.for_each_piece(|Tensors { w, g, a, b }| rule.update(w, g, a, b));
            }
        }
    }
}

/// A constant in the element type; f32 and f64 both take every f64, rounded.
fn constant<T: Float>(value: f64) -> T {
    T::from(value).unwrap_or_else(T::nan)
}
