//! A step taken apart: its calls run part by part, one node in one direction after another, and each part is shown with
//! its inputs and its results.
//!
//! Every buffer has its own memory ([`super::arena::Arena::apart`]), so that a part's inputs still exist after it has
//! run.

mod placed;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::arena::Arena;
use super::call::{Call, Slice};
use super::element::Element;
use super::plan::node::Node;
use super::plan::parameters::{WeightOrder, is_view};
use super::plan::readback::{floats, in_definition_order};
use super::plan::{PlannedPart, StepPlan, Work};
use crate::engine::Workload;
use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::part::{Fault, Fused, Numbers, Part, Quantity, Task};
use crate::error::Result;
use crate::network::Operation;
use crate::network::data::batch_dims;
use crate::settings::{Layout, Settings};
pub(super) use placed::PlacedParts;

/// The most steps in float16 until the loss scale is so low that no gradient overflows: 65536 halved down to 1.
const MOST_SKIPPED: usize = 17;
const MOST_SEEN: usize = 3;

/// Runs a plan whose buffers lie apart.
pub trait PartRunner {
    fn plan(&self) -> &StepPlan;

    fn arena(&self) -> &Arena;

    /// Runs some of the plan's calls, one after another, and waits for them.
    fn run(&mut self, calls: Range<usize>) -> Result<()>;

    /// Bytes of the arena.
    fn read(&self, bytes: Range<usize>) -> Result<Vec<u8>>;
}

/// The observer, which is shown each part.
pub type See<'a> = &'a mut dyn crate::engine::part::See;

/// The settings of a step that is taken apart: one call after another.
pub fn in_turn(settings: &Settings) -> Settings {
    Settings { streams: 1, ..settings.clone() }
}

/// Runs a step part by part: the first step from the initial values. In float16 it is the first step after one whose
/// gradients did not overflow; if its own gradients overflow after that update, further steps follow.
pub fn take_apart(runner: &mut dyn PartRunner, workload: &Workload, see: See) -> Result<(), Fault> {
    let parts = runner.plan().parts.clone();
    let mut step = IsolatedStep { runner, workload };
    let unseen = if step.runner.plan().element == Element::F16 { MOST_SKIPPED } else { 0 };
    for (most, is_seen) in [(unseen, false), (MOST_SEEN, true)] {
        for _ in 0..most {
            parts.iter().try_for_each(|part| step.part(part, if is_seen { Some(&mut *see) } else { None }))?;
            if !step.was_skipped()? {
                break;
            }
        }
    }
    Ok(())
}

struct IsolatedStep<'a> {
    runner: &'a mut dyn PartRunner,
    workload: &'a Workload,
}

impl IsolatedStep<'_> {
    /// Whether the last step's update was skipped because a gradient had overflowed.
    fn was_skipped(&self) -> Result<bool> {
        let plan = self.runner.plan();
        Ok(plan.element == Element::F16 && self.floats(plan.scalars.factors(), Element::F32)?[3] != 0.0)
    }

    fn part(&mut self, part: &PlannedPart, see: Option<See>) -> Result<(), Fault> {
        self.run(part, see).map_err(|error| {
            let calls = &self.runner.plan().calls[part.calls.clone()];
            let own = calls.iter().filter_map(|planned| match &planned.call {
                Call::Launch(launch) => Some(launch.kernel.operator),
                _ => None,
            });
            Fault { operators: Some(own.collect()), error: error.at(self.place(part)) }
        })
    }

    fn run(&mut self, part: &PlannedPart, see: Option<See>) -> Result<()> {
        let see = see.filter(|see| see.wants(self.node(part).map(|node| node.layer)));
        // Read before the part runs: its calls may overwrite the gradients that they read.
        let task = if see.is_some() { self.task(part)? } else { None };
        self.runner.run(part.calls.clone())?;
        match (see, task) {
            (Some(see), Some(task)) => see.see(Part { workload: self.workload, task, found: self.found(part)? }),
            _ => Ok(()),
        }
    }

    /// `conv2d_1 with relu_1 (conv2d of 3x12x12 to 8x12x12), backward, batch size 3`.
    fn place(&self, part: &PlannedPart) -> String {
        let network = &self.workload.network;
        let Some(&Node { layer, output, .. }) = self.node(part) else {
            return if part.work == Work::Loss { "the loss" } else { "the update" }.to_owned();
        };
        let direction = if part.work == Work::Forward { "forward" } else { "backward" };
        let with = if output == layer { String::new() } else { format!(" with {}", network.layers[output].name) };
        let from = network.sources(layer).next().unwrap_or(network.input());
        let (name, operation) = (&network.layers[layer].name, network.operation_name(layer));
        let (to, batch_size) = (network.layers[layer].output, self.workload.batch_size);
        format!("{name}{with} ({operation} of {from} to {to}), {direction}, batch size {batch_size}")
    }

    /// The node that a part computes.
    fn node(&self, part: &PlannedPart) -> Option<&Node> {
        part.node.map(|node| &self.runner.plan().nodes[node])
    }

    /// The inputs of a part; `None` where nothing is compared.
    fn task(&self, part: &PlannedPart) -> Result<Option<Task>> {
        let plan = self.runner.plan();
        Ok(Some(match (part.work, self.node(part)) {
            (Work::Forward, Some(node)) => Task::Forward(self.fused(node)?),
            (Work::Backward, Some(node)) => {
                let mut gradient = self.maps(node.output, part.from[0])?;
                for slice in &part.from[1..] {
                    let other = self.maps(node.output, *slice)?.values;
                    gradient.values.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
                }
                Task::Backward { fused: self.fused(node)?, output: self.output(node.output)?, gradient }
            }
            (Work::Loss, _) => {
                let output = self.output(self.workload.network.layers.len() - 1)?;
                let targets = Numbers { dims: output.dims.clone(), values: self.floats(plan.targets, Element::F32)? };
                let scale = match plan.element {
                    Element::F16 => self.floats(plan.scalars.loss_scale(), Element::F32)?[0],
                    _ => 1.0,
                };
                Task::Loss { output, targets, scale }
            }
            _ => return Ok(None),
        }))
    }

    fn fused(&self, node: &Node) -> Result<Fused> {
        let rectifier = match node.rectifier {
            Rectifier::Relu => Some(Operation::Relu),
            Rectifier::Relu6 => Some(Operation::Relu6),
            Rectifier::Identity => None,
        };
        let parameters = ["weight", "gamma", "beta"].into_iter().map(|name| (node.layer, name));
        let parameter = |(layer, name)| Some(self.parameter(layer, name, false).transpose()?.map(|held| (name, held)));
        let bias = node.bias.map(|layer| self.parameter(layer, "bias", false));
        let step = self.bytes(self.runner.plan().scalars.step())?;
        Ok(Fused {
            layer: node.layer,
            input: self.output(node.sources[0])?,
            parameters: parameters.filter_map(parameter).collect::<Result<_>>()?,
            bias: bias.transpose()?.flatten(),
            summand: node.sources.get(1).map(|&layer| self.output(layer)).transpose()?,
            rectifier,
            step: step.as_chunks().0.first().map_or(0, |&bytes| u64::from_le_bytes(bytes)),
        })
    }

    /// The results of a part.
    fn found(&self, part: &PlannedPart) -> Result<Vec<(Quantity, Numbers)>> {
        let (node, mut found) = (self.node(part), Vec::new());
        for (number, (layer, slice)) in part.to.iter().enumerate() {
            let quantity = match part.work {
                Work::Forward => Quantity::Output,
                Work::Loss => Quantity::LossGradient,
                _ if number == 0 && node.is_some_and(|node| node.sources[0] == *layer) => Quantity::InputGradient,
                _ => Quantity::SummandGradient,
            };
            found.push((quantity, self.maps(*layer, *slice)?));
        }
        if let (Work::Backward, Some(node)) = (part.work, node) {
            let own = ["weight", "gamma", "beta"].map(|name| (node.layer, name));
            for (layer, name) in own.into_iter().chain(node.bias.map(|layer| (layer, "bias"))) {
                let gradient = self.parameter(layer, name, true)?;
                found.extend(gradient.map(|gradient| (Quantity::ParameterGradient(name), gradient)));
            }
        }
        Ok(found)
    }

    /// The output of a layer that ends a node.
    fn output(&self, layer: usize) -> Result<Numbers> {
        self.maps(layer, self.runner.plan().outputs[&layer])
    }

    /// The output of a layer, or its gradient.
    fn maps(&self, layer: usize, slice: Slice) -> Result<Numbers> {
        let Workload { network, batch_size, settings } = self.workload;
        let plan = self.runner.plan();
        let is_flattening = matches!(network.layers[layer].operation, Operation::Flatten);
        // A flattening that moves no data leaves its maps in their order.
        let held = match is_flattening && is_view(network, &plan.nodes, layer, settings.layout) {
            true => network.sources(layer).next().unwrap_or(network.layers[layer].output),
            false => network.layers[layer].output,
        };
        let (channels, positions) = (held.channels(), held.extent().area());
        let order = WeightOrder { channels, positions, channels_last: settings.layout == Layout::Nhwc };
        let values = in_definition_order(order, self.floats(slice, plan.element)?);
        Ok(Numbers { dims: batch_dims(*batch_size, network.layers[layer].output), values })
    }

    /// A parameter of a layer, or its gradient; `None` where it has none of that name.
    fn parameter(&self, layer: usize, name: &str, gradient: bool) -> Result<Option<Numbers>> {
        let plan = self.runner.plan();
        let Some(placed) = plan.parameters.find(layer, name) else {
            return Ok(None);
        };
        let slice = if gradient { plan.parameters.gradient(placed) } else { plan.parameters.value(placed) };
        let element = if placed.is_weight { plan.element } else { Element::F32 };
        let values = in_definition_order(placed.order, self.floats(slice, element)?);
        Ok(Some(Numbers { dims: placed.dims.clone(), values }))
    }

    fn floats(&self, slice: Slice, element: Element) -> Result<Vec<f32>> {
        Ok(floats(&self.bytes(slice)?, element))
    }

    fn bytes(&self, slice: Slice) -> Result<Vec<u8>> {
        let start = self.runner.arena().offset(slice);
        self.runner.read(start..start + slice.bytes)
    }
}
