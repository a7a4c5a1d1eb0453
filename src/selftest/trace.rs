//! What an engine makes of the first steps of a workload, and how far that is from another engine's.

use super::cases;
use super::difference::{largest, relative, relative_change};
use super::{Errors, STEPS};
use crate::engine::reference::UpdateRule;
use crate::engine::{Computed, Engine, Settings, Step, Workload};
use crate::error::{Error, Result};
use crate::settings::{Optimizer, Precision};

/// Steps in float16 until the loss scale is low enough that no gradient overflows: 65536 halved to 1.
const MOST_SKIPPED: usize = 17;

/// What an engine made of a workload.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    pub initial: Computed,
    pub first: Computed,
    /// After each further step that is kept.
    further: Vec<Computed>,
    losses: Vec<f64>,
}

/// The steps whose parameters and gradients are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    First,
    /// Each, where the optimizer keeps a state: without one, a second update shows nothing that the first does not.
    EachStep,
}

impl Trace {
    pub fn of(engine: &mut dyn Engine, workload: &Workload, detail: Detail) -> Result<Self> {
        let mut step = engine.prepare(workload)?;
        let initial = computed(step.as_ref(), workload)?;
        let (loss, first) = taken(step.as_mut(), workload)?;
        let (mut losses, mut further) = (vec![loss], Vec::new());
        for _ in 1..STEPS {
            if detail == Detail::First || workload.settings.optimizer == Optimizer::Sgd {
                losses.push(step.run()?.loss.unwrap_or(f64::NAN));
            } else {
                let (loss, computed) = taken(step.as_mut(), workload)?;
                losses.push(loss);
                further.push(computed);
            }
        }
        Ok(Self { initial, first, further, losses })
    }

    pub fn errors(&self, expected: &Self, settings: &Settings) -> Errors {
        let pairs = self.losses.iter().zip(&expected.losses);
        // Relative to the first loss: a later one may be near zero, where every rounding is large.
        let losses = pairs.map(|(a, b)| (a - b).abs() / expected.losses[0].abs());
        Errors {
            output: relative(&[&self.first.output], &[&expected.first.output]),
            gradients: relative(&self.first.gradients, &expected.first.gradients),
            updates: self.update_error(settings),
            losses: largest(losses),
        }
    }

    /// The largest error of the updates, each from the engine's own parameters and gradients.
    fn update_error(&self, settings: &Settings) -> f64 {
        let mut rule = UpdateRule::new(settings);
        let mut before = &self.initial;
        let steps = std::iter::once(&self.first).chain(&self.further);
        largest(steps.map(|after| {
            let expected = rule.updated(&before.parameters, &after.gradients);
            let error = relative_change([&before.parameters, &after.parameters], [&before.parameters, &expected]);
            before = after;
            error
        }))
    }
}

fn computed(step: &dyn Step, workload: &Workload) -> Result<Computed> {
    let silent = || Error::engine("the engine does not report what it computes");
    let mut computed = step.computed()?.ok_or_else(silent)?;
    cases::leave_idle_out(&workload.network, &mut computed);
    Ok(computed)
}

/// Runs a step until its update is taken: one whose float16 gradients overflow changes nothing but the loss scale. Gives its
/// loss and what it computed.
pub(super) fn taken(step: &mut dyn Step, workload: &Workload) -> Result<(f64, Computed)> {
    let mut attempts = 0;
    loop {
        let loss = step.run()?.loss.unwrap_or(f64::NAN);
        let computed = computed(step, workload)?;
        let finite = computed.gradients.iter().flatten().all(|value| value.is_finite());
        attempts += 1;
        if finite || workload.settings.precision != Precision::Fp16 || attempts == MOST_SKIPPED {
            return Ok((loss, computed));
        }
    }
}
