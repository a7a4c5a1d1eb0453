//! A training step as a list of calls on buffers, made from a network, a batch size and settings before anything runs.
//!
//! ```text
//! network -> nodes (what is computed together) -> calls: forward, loss, backward, update -> arena (where buffers lie)
//! ```
//! Everything here is arithmetic on sizes: it runs, and is tested, without a GPU. A gradient buffer belongs to one
//! reader at a time, so that a layer that works element by element computes its input's gradient in place of its
//! output's.

pub mod node;
pub mod parameters;

mod backward;
mod begin;
mod convolution;
mod forward;
mod gradient;
pub mod readback;
#[cfg(test)]
pub(super) mod tests;
mod update;

use std::collections::BTreeMap;
use std::ops::Range;

use super::arena::{Arena, Buffer, Life};
use super::call::{Call, Convolution, Launch, Slice};
use super::element::{Element, Math};
use super::feature_maps::FeatureMaps;
use super::op::advance::Scalars;
use super::order::{Assigned, Order, StepStream};
use crate::engine::Workload;
use crate::error::{Error, Result};
use crate::network::{Direction, Network, Operation, Shape};
use crate::settings::{DataPath, Layout, Settings, Winograd};
use gradient::Gradient;
use node::Node;
use parameters::{Parameters, is_depthwise};

/// The parts of a step, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    Forward,
    Backward,
    Optimizer,
}

/// A call and its purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    pub call: Call,
    pub phase: Phase,
    /// The layer that it belongs to; `None` for the loss and the update.
    pub layer: Option<usize>,
    pub direction: Direction,
    pub stream: StepStream,
}

/// A run of calls: one node in one direction, the loss, or the update.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedPart {
    pub calls: Range<usize>,
    pub work: Work,
    /// The index of the node.
    pub node: Option<usize>,
    /// Of a backward pass the gradients of the node's output, which are summed; the calls may overwrite them.
    pub from: Vec<Slice>,
    /// What it gives, each with its layer: an output, or gradients of outputs, in the order of the node's sources.
    pub to: Vec<(usize, Slice)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    Forward,
    Backward,
    Loss,
    Update,
}

/// A training step, and the calls before the first one.
#[derive(Clone, Debug)]
pub struct StepPlan {
    pub buffers: Vec<Buffer>,
    /// One step.
    pub calls: Vec<Planned>,
    /// What each call waits for.
    pub order: Order,
    /// The calls that give all kept buffers their initial values.
    pub initial: Vec<Call>,
    pub nodes: Vec<Node>,
    pub parameters: Parameters,
    /// The running mean and variance of each batch norm, by layer: float32.
    pub running: BTreeMap<usize, [Slice; 2]>,
    /// The batch: inputs in the element type and the layout, targets in float32.
    pub inputs: Slice,
    pub targets: Slice,
    /// Where the next batch is copied to while this one is in use.
    pub next_batch: Option<(Slice, Slice)>,
    /// The numbers that are kept from step to step, among them the mean loss of the last one.
    pub scalars: Scalars,
    pub element: Element,
    /// The inputs, and the output of each layer that ends a node.
    pub outputs: BTreeMap<usize, Slice>,
    /// All calls, in their order.
    pub parts: Vec<PlannedPart>,
}

/// Decides whether the convolution library computes the convolution of the given layer, its bias and its ReLU in one
/// call.
pub type Fuses<'a> = dyn FnMut(usize, &Convolution) -> bool + 'a;

impl StepPlan {
    /// Plans the step of a workload whose settings are in force.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] with the layer's name, where the engine cannot compute that layer.
    pub fn new(workload: &Workload, fuses: &mut Fuses<'_>) -> Result<Self> {
        let Workload { network, settings, .. } = workload;
        for (index, layer) in network.layers.iter().enumerate() {
            let maps = FeatureMaps::new(workload.batch_size, layer.output, settings.layout);
            maps.check().map_err(|error| error.at(&layer.name))?;
            // The library refuses what it cannot compute with this setting, but our own depthwise convolutions never
            // reach it.
            if settings.winograd == Winograd::NonFused && is_depthwise(network, index) {
                let what = "`winograd = \"nonfused\"`, and a depthwise convolution is computed by kernels of our own, without Winograd";
                return Err(Error::engine(what)
                    .at(&layer.name)
                    .hint("use `winograd = \"any\"` or \"never\" for a network with such layers"));
            }
        }
        let mut draft = PlanBuilder::new(workload)?;
        for node in &draft.plan.nodes {
            draft.check(node).map_err(|error| error.at(&network.layers[node.layer].name))?;
        }
        draft.forward(fuses);
        draft.loss();
        draft.backward();
        draft.update();
        draft.plan.initial = draft.initial();
        let output = draft.output(network.layers.len() - 1);
        let mut plan = draft.plan;
        // It is small, and it is read after the step.
        plan.buffers[output.buffer.0].life = Life::Kept;
        let calls = plan.calls.iter().map(|planned| Assigned { call: &planned.call, stream: planned.stream });
        plan.order = Order::new(&calls.collect::<Vec<_>>());
        Ok(plan)
    }

    /// Places every buffer.
    pub fn arena(&self) -> Arena {
        let calls = self.calls.iter().map(|planned| &planned.call);
        Arena::new(&self.buffers, calls.zip(self.order.0.iter().map(|of| of.end)))
    }
}

/// A plan under construction.
struct PlanBuilder<'a> {
    network: &'a Network,
    settings: &'a Settings,
    batch_size: usize,
    element: Element,
    math: Math,
    layout: Layout,
    plan: StepPlan,
    states: [Option<Slice>; 2],
    /// By node, what its forward pass saves for its backward pass: a padded copy of a convolution's input, a batch norm's
    /// mean and inverse deviation, or the positions of a pooling's maxima.
    saved: Vec<Vec<Slice>>,
    /// The gradients of each layer's output, one from each layer that reads it.
    gradients: Vec<Vec<Gradient>>,
    /// Whether a layer, or one before it, has parameters.
    trained: Vec<bool>,
    row_losses: Slice,
    phase: Phase,
    at: Option<usize>,
    direction: Direction,
    stream: StepStream,
    /// The gradients that the present node's calls give, each with the layer whose output it belongs to.
    delivered: Vec<(usize, Slice)>,
}

impl<'a> PlanBuilder<'a> {
    fn new(workload: &'a Workload) -> Result<Self> {
        let Workload { network, batch_size, settings } = workload;
        let network: &Network = network;
        let (element, layout) = (Element::of(settings.precision), settings.layout);
        let nodes = node::nodes(network);
        let mut buffers = Vec::new();
        let mut whole = |bytes: usize| {
            buffers.push(Buffer { bytes, life: Life::Kept });
            Slice::new(buffers.len() - 1, 0, bytes)
        };
        let parameters = Parameters::new(network, &nodes, layout, element, &mut whole);
        let Shape::Flat(classes) = network.output() else {
            return Err(Error::engine("the GPU engine needs a network that ends in flat features").at(&network.name));
        };
        let sizes = [network.input().count() * batch_size * element.bytes(), 4 * classes * batch_size];
        let mut pair = || (whole(sizes[0]), whole(sizes[1]));
        let (inputs, targets) = pair();
        let next_batch = (settings.data == DataPath::Prefetch).then(pair);
        let copies = settings.optimizer.state_copies();
        let states = [0, 1].map(|number| (number < copies).then(|| whole(parameters.master.bytes)));
        let scalars = Scalars(whole(Scalars::BYTES));
        let running = begin::running(network, &mut whole);
        let row_losses = whole(4 * batch_size);
        let layers = network.layers.len();
        let saved = vec![Vec::new(); nodes.len()];
        let plan = StepPlan {
            buffers,
            calls: Vec::new(),
            order: Order::default(),
            initial: Vec::new(),
            nodes,
            parameters,
            running,
            inputs,
            targets,
            next_batch,
            scalars,
            element,
            outputs: BTreeMap::new(),
            parts: Vec::new(),
        };
        Ok(Self {
            network,
            settings,
            batch_size: *batch_size,
            element,
            math: Math::of(settings.precision),
            layout,
            plan,
            states,
            saved,
            gradients: vec![Vec::new(); layers],
            trained: (0..layers).map(|layer| is_trained(network, layer)).collect(),
            row_losses,
            phase: Phase::Forward,
            at: None,
            direction: Direction::Forward,
            stream: StepStream::Main,
            delivered: Vec::new(),
        })
    }

    /// A new buffer that lives within the step.
    fn buffer(&mut self, bytes: usize) -> Slice {
        self.plan.buffers.push(Buffer { bytes, life: Life::Step });
        Slice::new(self.plan.buffers.len() - 1, 0, bytes)
    }

    /// A new buffer for feature maps of the element type.
    fn maps_buffer(&mut self, maps: FeatureMaps) -> Slice {
        self.buffer(maps.count() * self.element.bytes())
    }

    fn call(&mut self, call: Call) {
        let Self { phase, at, direction, stream, .. } = *self;
        self.plan.calls.push(Planned { call, phase, layer: at, direction, stream });
    }

    /// Plans the gradients of weights, which only the update reads: on the side stream, where the settings ask for two.
    fn weights_gradients(&mut self, plan: impl FnOnce(&mut Self)) {
        let before = (self.direction, self.stream);
        self.direction = Direction::BackwardWeights;
        if self.settings.streams > 1 {
            self.stream = StepStream::Side;
        }
        plan(self);
        (self.direction, self.stream) = before;
    }

    /// Notes the purpose of the calls from `first` on, if there are any.
    fn part(&mut self, first: usize, work: Work, node: Option<usize>, from: Vec<Slice>, to: Vec<(usize, Slice)>) {
        let calls = first..self.plan.calls.len();
        if !calls.is_empty() {
            self.plan.parts.push(PlannedPart { calls, work, node, from, to });
        }
    }

    fn launch(&mut self, launches: impl IntoIterator<Item = Launch>) {
        launches.into_iter().for_each(|launch| self.call(Call::Launch(launch)));
    }

    /// The size of a layer's output.
    fn maps(&self, layer: usize) -> FeatureMaps {
        FeatureMaps::new(self.batch_size, self.network.layers[layer].output, self.layout)
    }

    /// The output of a layer that ends a node.
    fn output(&self, layer: usize) -> Slice {
        self.plan.outputs[&layer]
    }

    fn operation(&self, node: &Node) -> &'a Operation {
        &self.network.layers[node.layer].operation
    }

    fn is_view(&self, node: &Node) -> bool {
        parameters::is_view(self.network, &self.plan.nodes, node.layer, self.layout)
    }

    /// Whether the indices of our kernels suffice for a node.
    fn check(&self, node: &Node) -> Result<()> {
        match *self.operation(node) {
            Operation::Conv2d(conv) if is_depthwise(self.network, node.layer) => self.depthwise(node, conv).check(),
            Operation::MaxPool2d(pool) => self.pooling(node, pool, node.rectifier).check(),
            _ => Ok(()),
        }
    }
}

fn is_trained(network: &Network, layer: usize) -> bool {
    network.passes_gradient(layer) || network.parameters_of(layer).iter().any(|parameter| parameter.trainable)
}
