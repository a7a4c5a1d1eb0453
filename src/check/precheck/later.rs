//! The other batch sizes of a plan. There a library may compute a layer by another algorithm than at the two sizes at which the step was checked. The parts
//! of that layer are then checked at that size as well, if the CPU engine can compute them in a minute or two. Rows of sizes with unchecked algorithms say
//! so.

use std::collections::BTreeSet;

use super::fault::of_part;
use super::parts::Only;
use super::{CheckResult, Checking, ComparedStep, remember, remembers};
use crate::engine::{Workload, memory};
use crate::error::{Kind, Result};
use crate::network::{Direction, Network};

/// The arithmetic that the reference may be asked for at all these batch sizes of a network and its settings, in FLOP: a minute or two of two cores.
const AFFORDABLE: f64 = 1e13;
/// The memory of the check of a layer's gradients, in units of the layer's input and output together in float32: the values that were read from the device,
/// the expected values, and room for the operator.
const HELD: u64 = 6;

/// What has been checked of a network's step in some settings.
#[derive(Debug)]
pub(super) struct CheckedSoFar {
    /// The algorithms of each layer, by its place.
    algorithms: BTreeSet<(usize, String)>,
    /// FLOP that may still be asked for.
    left: f64,
    /// Batch sizes with algorithms that cannot be checked.
    unchecked: Vec<usize>,
    /// Whether the user was already told that a batch size has no step.
    says_refused: bool,
}

impl Checking<'_> {
    /// What was checked with the step at its two batch sizes.
    pub(super) fn seen(&mut self, subject: &ComparedStep) -> Result<CheckedSoFar> {
        let engine = self.engines.get(subject.engine)?;
        let of = |size| engine.algorithms(&subject.workload(size)).unwrap_or_default();
        let algorithms = subject.sizes.into_iter().flat_map(of).collect();
        Ok(CheckedSoFar { algorithms, left: AFFORDABLE, unchecked: Vec::new(), says_refused: false })
    }

    /// Whether all that computes the layers at this batch size is right, by a check here or at another one.
    pub(super) fn later(
        &mut self,
        subject: &ComparedStep,
        seen: &mut CheckedSoFar,
        batch_size: usize,
    ) -> Result<CheckResult> {
        let workload = subject.workload(batch_size);
        let engine = self.engines.get(subject.engine)?;
        let algorithms = match engine.algorithms(&workload) {
            Ok(algorithms) => algorithms,
            Err(error) => {
                // Only the first one is said with its reason; the run itself says it of each that is still refused.
                if !std::mem::replace(&mut seen.says_refused, true) {
                    let (name, why) = (subject.name(), error.clause());
                    (self.say)(&format!(
                        "{name} at batch size {batch_size} is not checked: {why}; such rows say `qualified` = false"
                    ));
                }
                return Ok(CheckResult::Unchecked);
            }
        };
        let new: BTreeSet<(usize, String)> =
            algorithms.into_iter().filter(|own| !seen.algorithms.contains(own)).collect();
        if new.is_empty() {
            return Ok(CheckResult::Passed);
        }
        if remembers(self.cache, Some(subject.facts(engine, &[batch_size], &new))) {
            seen.algorithms.extend(new);
            return Ok(CheckResult::Passed);
        }
        let layers: BTreeSet<usize> = new.iter().map(|(layer, _)| *layer).collect();
        let asked = flops(&workload.network, batch_size, layers.iter().copied());
        if asked > seen.left || memory::check("the comparison needs", bytes(&workload, &layers)).is_err() {
            seen.unchecked.push(batch_size);
            return Ok(CheckResult::Unchecked);
        }
        seen.left -= asked;
        (self.say)(&format!(
            "checking {} at batch size {batch_size}, where other algorithms compute {} of its layers",
            subject.name(),
            layers.len()
        ));
        match engine.take_apart(&workload, &mut Only(&layers)) {
            Ok(()) => {
                // An algorithm that was refused when it ran was not checked; its replacement was, in these layers.
                let mut checked: BTreeSet<_> = engine.algorithms(&workload).unwrap_or_default().into_iter().collect();
                checked.retain(|own| layers.contains(&own.0) && !seen.algorithms.contains(own));
                remember(self.cache, Some(subject.facts(engine, &[batch_size], &checked)));
                seen.algorithms.extend(checked);
                self.later(subject, seen, batch_size)
            }
            // Its parts take more memory than the step, whose buffers take turns.
            Err(fault) if fault.error.kind() == Kind::OutOfMemory => {
                seen.unchecked.push(batch_size);
                Ok(CheckResult::Unchecked)
            }
            Err(fault) => of_part(subject, &workload, fault).map(CheckResult::Fails),
        }
    }

    /// Says at which batch sizes something was not checked.
    pub(super) fn say_unchecked(&mut self, subject: &ComparedStep, seen: &CheckedSoFar) {
        let (Some(first), Some(last)) = (seen.unchecked.iter().min(), seen.unchecked.iter().max()) else { return };
        let (name, count) = (subject.name(), seen.unchecked.len());
        let place = if count == 1 {
            format!("batch size {first}")
        } else {
            format!("{count} batch sizes from {first} to {last}")
        };
        (self.say)(&format!(
            "at {place} {name} is computed by algorithms that are not checked, since the processor would take minutes or has too little \
             memory; these rows say `qualified` = false"
        ));
    }
}

/// The FLOP of some layers, forward and backward.
pub(super) fn flops(network: &Network, batch_size: usize, layers: impl Iterator<Item = usize>) -> f64 {
    let parts = layers.flat_map(|layer| Direction::ALL.iter().map(move |&direction| (layer, direction)));
    parts.filter_map(|(layer, direction)| Some(network.cost(layer, batch_size, direction, 4)?.flops)).sum()
}

/// The bytes of host memory that the check of the largest of these layers needs.
fn bytes(workload: &Workload, layers: &BTreeSet<usize>) -> u64 {
    let network: &Network = &workload.network;
    let of = |&layer: &usize| {
        let given: usize = network.sources(layer).map(|shape| shape.count()).sum();
        (given + network.layers[layer].output.count()) as u64
    };
    layers.iter().map(of).max().unwrap_or(0) * workload.batch_size as u64 * 4 * HELD
}
