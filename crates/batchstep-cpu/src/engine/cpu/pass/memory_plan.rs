//! The memory plan of a pass, made once for each network.
//!
//! Every output has its own buffer, except those of rectifiers, which are applied while the layer before writes its output,
//! and of views. The gradient of an output occupies a slot from the backward pass of the last layer that reads the
//! output to that of the output's own layer. An element-wise layer turns the gradient of its output into the gradient
//! of its source in place. Where several layers read one output, their gradients are added in place. Values that are
//! used at different times share memory: gradients lie where the outputs of later layers were.

use crate::engine::cpu::op::activation::Rectifier;
use crate::engine::placement::Span;
use crate::network::{Network, Operation};

/// Where a layer's output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLocation {
    /// The layer whose buffer holds it: the layer itself, or an earlier layer that applies it, is viewed by it, or is
    /// added to in place.
    pub holder: usize,
    /// The layer that writes it: the layer itself, or an earlier layer that applies it or is viewed by it.
    pub writer: usize,
    /// The rectifier that the layer applies while it writes its output.
    pub rectifier: Rectifier,
}

/// The slots of the gradients that a layer's backward pass reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The slot of the gradient of its output.
    pub own: usize,
    /// The slot for the gradient of its source; `None` where that is computed in place.
    pub fresh: Option<usize>,
    /// Copies and additions between slots that follow.
    pub moves: Vec<Move>,
}

/// Copies one slot to another or adds it there; the length is that of a layer's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub adds: bool,
    pub from: usize,
    pub to: usize,
    /// The layer whose output has the length.
    pub layer: usize,
}

/// The memory of gradients, one after the other.
#[derive(Clone, Debug)]
pub struct Slot {
    /// Scalars for one example.
    pub scalars: usize,
    /// The time of its use, in the moments of [`MemoryPlan::backward`].
    pub span: Span,
}

/// The places of all outputs and gradients.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    /// Where each layer's output is.
    pub outputs: Vec<OutputLocation>,
    /// Where each layer's gradients are; `None` where neither the layer nor one before it is trained.
    pub routes: Vec<Option<Route>>,
    pub slots: Vec<Slot>,
}

impl MemoryPlan {
    pub fn new(network: &Network) -> Self {
        let last = network.layers.len() - 1;
        let mut slots = Slots { slots: Vec::new(), of: vec![None; last + 1], now: last + 1 };
        let trained = network.trained(last + 1);
        slots.of[last] = Some(slots.take(network.layers[last].output.count()));
        let mut plan = Self { outputs: places(network), routes: vec![None; last + 1], slots: Vec::new() };
        for index in (1..=last).rev().filter(|&index| trained[index]) {
            slots.now = plan.backward(index);
            plan.routes[index] = slots.route(network, index, &trained);
        }
        plan.slots = slots.slots;
        plan
    }

    /// The moment of a layer's backward pass. A layer's forward pass is at the moment of its index; the loss lies
    /// between the two passes.
    pub fn backward(&self, index: usize) -> usize {
        2 * self.outputs.len() - index
    }

    /// When the output of a layer with its own buffer is used, and whatever lives as long. The network's output is read
    /// after the step.
    pub fn span(&self, index: usize) -> Span {
        let is_last = self.outputs.last().is_some_and(|last| last.holder == index);
        Span { first: index, last: if is_last { usize::MAX } else { self.backward(index) } }
    }
}

fn places(network: &Network) -> Vec<OutputLocation> {
    let readers = network.readers();
    let mut places: Vec<OutputLocation> = Vec::with_capacity(network.layers.len());
    for (index, layer) in network.layers.iter().enumerate() {
        let rectifier = Rectifier::of(&layer.operation);
        let mut place = OutputLocation { holder: index, writer: index, rectifier };
        match layer.sources[..] {
            [source]
                if rectifier != Rectifier::Identity && readers[source] == 1 && writes_rectified(network, source) =>
            {
                places[source].rectifier = rectifier;
                place = places[source];
            }
            [source] if is_view(&layer.operation) => place = OutputLocation { rectifier, ..places[source] },
            // Added to an output that no other layer reads and that its own layer does not read again.
            [_, _] => {
                let is_free = |source: &usize| {
                    readers[*source] == 1
                        && is_forgotten(network, *source)
                        && places[*source].rectifier == Rectifier::Identity
                };
                place.holder = layer.sources.iter().copied().filter(is_free).max().unwrap_or(index);
            }
            _ => {}
        }
        places.push(place);
    }
    places
}

/// Whether a layer can rectify its output while writing it, and does not need the unrectified output.
fn writes_rectified(network: &Network, index: usize) -> bool {
    use Operation as O;
    matches!(network.layers[index].operation, O::Conv2d(_) | O::Dense(_) | O::BatchNorm(_) | O::Add)
}

/// Whether a layer's backward pass reads its output only if that is rectified.
fn is_forgotten(network: &Network, index: usize) -> bool {
    writes_rectified(network, index) && network.layers[index].operation != Operation::Add
}

fn is_view(operation: &Operation) -> bool {
    matches!(operation, Operation::Flatten) || *operation == Operation::Dropout { rate: 0.0 }
}

/// The slots as the backward pass goes from layer to layer.
struct Slots {
    slots: Vec<Slot>,
    /// The slot of each layer's gradient, while it lives.
    of: Vec<Option<usize>>,
    now: usize,
}

impl Slots {
    fn take(&mut self, scalars: usize) -> usize {
        self.slots.push(Slot { scalars, span: Span { first: self.now, last: self.now } });
        self.slots.len() - 1
    }

    fn route(&mut self, network: &Network, index: usize, trained: &[bool]) -> Option<Route> {
        let own = self.of[index].take()?;
        self.slots[own].span.last = self.now;
        let mut route = Route { own, fresh: None, moves: Vec::new() };
        match network.layers[index].sources[..] {
            [source] if !trained[source] => {}
            [source] if is_in_place(&network.layers[index].operation) => {
                self.hand_on(network, (own, false), source, &mut route.moves)
            }
            [source] => {
                let fresh = self.take(network.layers[source].output.count());
                route.fresh = Some(fresh);
                self.hand_on(network, (fresh, false), source, &mut route.moves);
            }
            [a, b] => {
                if trained[b] {
                    self.hand_on(network, (own, true), b, &mut route.moves);
                }
                if trained[a] {
                    self.hand_on(network, (own, false), a, &mut route.moves);
                }
            }
            _ => return None,
        }
        Some(route)
    }

    /// Makes a slot the gradient of `source`, or a copy of it where another source needs the slot as well; adds it to an
    /// existing gradient.
    fn hand_on(&mut self, network: &Network, (from, kept): (usize, bool), source: usize, moves: &mut Vec<Move>) {
        let to = match self.of[source] {
            Some(to) => {
                moves.push(Move { adds: true, from, to, layer: source });
                to
            }
            None if kept => {
                let to = self.take(network.layers[source].output.count());
                moves.push(Move { adds: false, from, to, layer: source });
                to
            }
            None => from,
        };
        self.of[source] = Some(to);
    }
}

/// Whether a layer's gradient becomes its source's in place.
pub fn is_in_place(operation: &Operation) -> bool {
    use Operation as O;
    matches!(operation, O::Relu | O::Relu6 | O::BatchNorm(_) | O::Dropout { .. } | O::Flatten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Builder, Dense, Shape};

    #[test]
    fn a_chain_holds_two_gradients_at_a_time_and_rectifies_as_it_writes() {
        let network = Network::by_name("mlp", Shape::Flat(2), 1).unwrap();
        let plan = MemoryPlan::new(&network);
        // Three dense layers with rectifiers between them, layers 1, 3 and 5 of 6: the loss is at moment 6, their backward passes at 11, 9 and 7.
        let spans: Vec<(usize, usize)> = plan.slots.iter().map(|slot| (slot.span.first, slot.span.last)).collect();
        assert_eq!(spans, [(6, 7), (7, 9), (9, 11)]);
        assert_eq!([plan.span(3), plan.span(5)], [Span { first: 3, last: 9 }, Span { first: 5, last: usize::MAX }]);
        assert_eq!(plan.outputs[2], OutputLocation { holder: 1, writer: 1, rectifier: Rectifier::Relu });
        assert!(plan.routes.iter().flatten().all(|route| route.moves.is_empty()));
        assert_eq!(plan.routes[1].as_ref().map(|route| route.fresh), Some(None), "the input wants no gradient");
    }

    #[test]
    fn a_sum_is_written_over_what_nothing_else_reads() {
        let mut b = Builder::new("residual", Shape::Flat(3)).unwrap();
        let fc = b.then("fc", Dense { out_features: 3, bias: false }).unwrap();
        let own = b.then("own", Dense { out_features: 3, bias: false }).unwrap();
        b.add("sum", Operation::Add, &[own, fc]).unwrap();
        b.then("relu", Operation::Relu).unwrap();
        let plan = MemoryPlan::new(&b.finish().unwrap());
        let [own, sum, relu] = [own, own + 1, own + 2].map(|index| plan.outputs[index]);
        assert_eq!(own, OutputLocation { holder: 2, writer: 2, rectifier: Rectifier::Identity });
        assert_eq!(sum, OutputLocation { holder: 2, writer: 3, rectifier: Rectifier::Relu });
        assert_eq!(relu, sum);
    }

    #[test]
    fn an_output_that_is_read_twice_is_not_rectified_in_place_and_its_gradients_are_added() {
        let mut b = Builder::new("skip", Shape::Flat(3)).unwrap();
        let fc = b.then("fc", Dense { out_features: 3, bias: false }).unwrap();
        let relu = b.then("relu", Operation::Relu).unwrap();
        b.add("sum", Operation::Add, &[fc, relu]).unwrap();
        let plan = MemoryPlan::new(&b.finish().unwrap());
        assert_eq!(plan.outputs[relu].holder, relu);
        let moves: Vec<Move> = plan.routes.iter().flatten().flat_map(|route| route.moves.clone()).collect();
        // The sum's gradient is copied for the rectifier, which adds what it lets through to the gradient of `fc`.
        assert_eq!(
            moves,
            [Move { adds: true, from: 1, to: 0, layer: fc }, Move { adds: false, from: 0, to: 1, layer: relu }]
        );
    }
}
