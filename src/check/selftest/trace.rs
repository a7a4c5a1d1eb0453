//! What an engine makes of the first steps of a workload, and how far that is from another engine's.

use super::cases;
use super::{Errors, STEPS};
use crate::engine::difference::{largest, relative, worst};
use crate::engine::reference::UpdateRule;
use crate::engine::{Computed, Engine, Settings, Step, Workload};
use crate::error::{Error, Result};
use crate::settings::{Optimizer, Precision};

/// Steps in float16 until the loss scale is low enough that no gradient overflows: 65536 halved to 1.
const MOST_SKIPPED: usize = 17;

/// What an engine should make of a workload.
#[derive(Clone, Debug)]
pub(super) struct Expected {
    /// The output of the first step.
    pub output: Vec<f64>,
    pub gradients: Vec<Vec<f64>>,
    losses: Vec<f64>,
}

impl Expected {
    pub fn of(reference: &mut dyn Engine, workload: &Workload) -> Result<Self> {
        let mut step = reference.prepare(workload)?;
        let (loss, Computed { output, gradients, .. }) = taken(step.as_mut(), workload)?;
        let mut losses = vec![loss];
        for _ in 1..STEPS {
            losses.push(step.run()?.loss.unwrap_or(f64::NAN));
        }
        Ok(Self { output, gradients, losses })
    }
}

/// What an engine made of a workload.
#[derive(Clone, Debug)]
pub(super) struct Trace {
    /// The parameters before the first step.
    pub initial: Vec<Vec<f64>>,
    pub first: Computed,
    /// After each further step that is kept.
    further: Vec<Computed>,
    losses: Vec<f64>,
}

/// The steps whose parameters and gradients are kept.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    First,
    /// Each step, if the optimizer keeps a state: without a state, a second update shows nothing new.
    EachStep,
}

impl Trace {
    pub fn of(engine: &mut dyn Engine, workload: &Workload, detail: Detail) -> Result<Self> {
        let mut step = engine.prepare(workload)?;
        let initial = computed(step.as_ref(), workload)?.parameters;
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

    pub fn errors(&self, expected: &Expected, settings: &Settings) -> Errors {
        let [first_loss, losses] = loss_errors(&self.losses, &expected.losses);
        Errors {
            output: relative(&[&self.first.output], &[&expected.output]),
            gradients: relative(&self.first.gradients, &expected.gradients),
            updates: self.update_error(settings),
            first_loss,
            losses,
        }
    }

    /// The largest error of the updates, each from the engine's own parameters and gradients.
    fn update_error(&self, settings: &Settings) -> f64 {
        let mut rule = UpdateRule::new(settings, 1 + self.further.len());
        let mut before = &self.initial;
        let steps = std::iter::once(&self.first).chain(&self.further);
        largest(steps.map(|after| {
            rule.begin();
            let tensors = before.iter().zip(&after.parameters).zip(&after.gradients).enumerate();
            let distances =
                tensors.map(|(tensor, ((before, found), gradients))| rule.distance(tensor, [before, found, gradients]));
            let error = worst(&distances.collect::<Vec<_>>());
            before = &after.parameters;
            error
        }))
    }
}

/// The error of the first loss, and the largest of those after it, each relative to itself or to the first: a loss that has fallen may be near zero, where
/// every rounding is large; and one that has risen a thousandfold, as after the first update of RMSprop, which is ten times the
/// learning rate whatever the gradient, carries the rounding of its own size. Where the reference's loss is no number any
/// more, nothing can be asked from there on.
fn loss_errors(found: &[f64], expected: &[f64]) -> [f64; 2] {
    let first = expected.first().map_or(0.0, |loss| loss.abs());
    let pairs = found.iter().zip(expected).take_while(|(_, expected)| expected.is_finite());
    let errors = pairs.map(|(found, expected)| match (found - expected).abs() {
        0.0 => 0.0,
        difference => difference / expected.abs().max(first),
    });
    [largest(errors.clone().take(1)), largest(errors.skip(1))]
}

/// The most memory that [`super::first_steps`] holds, in bytes. While the reference computes: its step, and the parameters and gradients
/// that are read from it. Then: its gradients, and the engine's parameters before and after an update and their gradients, which is four
/// times the parameters in double precision, and two copies of the tensor that is being read. `own` is the memory of the same machine that
/// a step of the engine takes. For a VGG16 of 138,357,544 parameters whose largest tensor has 102,760,448:
/// 8 x (4 x 138,357,544 + 2 x 102,760,448) = 6.1e9.
pub(super) fn bytes(workload: &Workload, reference: u64, own: u64) -> u64 {
    let counts = || workload.network.parameters().map(|(_, parameter)| parameter.count() as u64);
    let (all, largest) = (counts().sum::<u64>(), counts().max().unwrap_or(0));
    let output = (workload.network.output().count() * workload.batch_size) as u64;
    let read = |copies: u64| 8 * (copies * all + 2 * largest + copies * output);
    (reference + read(2)).max(own + read(4))
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
        let is_finite = || computed.gradients.iter().flatten().all(|value| value.is_finite());
        attempts += 1;
        if workload.settings.precision != Precision::Fp16 || attempts == MOST_SKIPPED || is_finite() {
            return Ok((loss, computed));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loss_is_held_against_the_larger_of_itself_and_the_first() {
        // 1 of 100, which is half of the first.
        assert_eq!(loss_errors(&[2.0, 101.0], &[2.0, 100.0]), [0.0, 0.01]);
        // 0.001 of 2, though it is as much as the loss.
        assert_eq!(loss_errors(&[2.0, 0.002], &[2.0, 0.001]), [0.0, 0.0005]);
        assert_eq!(loss_errors(&[0.0], &[0.0]), [0.0; 2]);
        // Each apart: 0.5 of 2, and 1 of 4.
        assert_eq!(loss_errors(&[2.5, 4.0, 5.0], &[2.0, 4.0, 4.0]), [0.25, 0.25]);
        assert_eq!(loss_errors(&[2.0, 5.0], &[2.0, 4.0]), [0.0, 0.25]);
    }

    #[test]
    fn nothing_is_asked_from_where_the_reference_has_no_number_and_a_number_is_asked_before() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        for (found, expected) in [([2.0, inf, nan], [2.0, inf, nan]), ([2.0, 1e38, 7.0], [2.0, nan, 5.0])] {
            assert_eq!(loss_errors(&found, &expected), [0.0; 2]);
        }
        for found in [inf, nan] {
            assert_eq!(loss_errors(&[2.0, found], &[2.0, 1e30]), [0.0, inf]);
            assert_eq!(loss_errors(&[found, 2.0], &[2.0, 2.0]), [inf, 0.0]);
        }
    }
}
