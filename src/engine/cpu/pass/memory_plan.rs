//! The memory plan of a pass, made once for each network.
//!
//! Every output has its own buffer, except those of rectifiers, which are applied while the layer before writes its output,
//! and of views. The gradient of an output occupies one of a few slots from the moment when the last layer that reads the
//! output has its backward pass until the output's own layer has had its; an element-wise layer turns the gradient of its
//! output into that of its source in place. Where several layers read one output, their gradients are added in place.

use crate::engine::cpu::op::activation::Rectifier;
use crate::network::{Network, Operation};

/// Where a layer's output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputLocation {
    /// The layer whose buffer holds it: the layer itself, or an earlier one that applies it or whose output it is a view of.
    pub holder: usize,
    /// What the layer applies to its output as it writes it.
    pub rectifier: Rectifier,
}

/// The slots of the gradients that a layer's backward pass reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The slot of the gradient of its output.
    pub own: usize,
    /// The slot for the gradient of its source, unless that is computed in place.
    pub fresh: Option<usize>,
    /// What is copied or added between slots afterwards.
    pub moves: Vec<Move>,
}

/// Copies one slot to another or adds it there, in the length of one layer's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    pub kind: MoveKind,
    pub from: usize,
    pub to: usize,
    /// The layer whose output has the length.
    pub layer: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MoveKind {
    Copy,
    Add,
}

/// Where a layer's output and its gradients are.
#[derive(Clone, Debug)]
pub struct LayerMemory {
    pub output: OutputLocation,
    /// `None` where nothing before the layer's end is trained.
    pub route: Option<Route>,
}

/// The places of all outputs and gradients.
#[derive(Clone, Debug)]
pub struct MemoryPlan {
    pub layers: Vec<LayerMemory>,
    /// The scalars that each slot holds for one example.
    pub slots: Vec<usize>,
}

impl MemoryPlan {
    pub fn new(network: &Network) -> Self {
        let mut slots = Slots { sizes: Vec::new(), free: Vec::new(), of: vec![None; network.layers.len()] };
        let trained = trained(network);
        let last = network.layers.len() - 1;
        slots.of[last] = Some(slots.take(network.layers[last].output.count()));
        let mut layers: Vec<LayerMemory> =
            places(network).into_iter().map(|output| LayerMemory { output, route: None }).collect();
        for index in (1..=last).rev().filter(|&index| trained[index]) {
            layers[index].route = slots.route(network, index, &trained);
        }
        Self { layers, slots: slots.sizes }
    }
}

/// Whether a layer, or one before it, has parameters.
fn trained(network: &Network) -> Vec<bool> {
    let mut trained = vec![false; network.layers.len()];
    for (index, layer) in network.layers.iter().enumerate() {
        trained[index] = network.parameters_of(index).iter().any(|parameter| parameter.trainable)
            || layer.sources.iter().any(|&source| trained[source]);
    }
    trained
}

fn places(network: &Network) -> Vec<OutputLocation> {
    let mut readers = vec![0; network.layers.len()];
    network.layers.iter().flat_map(|layer| &layer.sources).for_each(|&source| readers[source] += 1);
    let mut places: Vec<OutputLocation> = Vec::with_capacity(network.layers.len());
    for (index, layer) in network.layers.iter().enumerate() {
        let rectifier = match layer.operation {
            Operation::Relu => Rectifier::Relu,
            Operation::Relu6 => Rectifier::Relu6,
            _ => Rectifier::Identity,
        };
        let mut place = OutputLocation { holder: index, rectifier };
        if let &[source] = &layer.sources[..] {
            if rectifier != Rectifier::Identity && readers[source] == 1 && writes_rectified(network, source) {
                places[source].rectifier = rectifier;
                place.holder = source;
            } else if is_view(&layer.operation) {
                place.holder = places[source].holder;
            }
        }
        places.push(place);
    }
    places
}

/// Whether a layer can rectify its output while writing it, and does not need the unrectified one.
fn writes_rectified(network: &Network, index: usize) -> bool {
    use Operation as O;
    matches!(network.layers[index].operation, O::Conv2d(_) | O::Dense(_) | O::BatchNorm(_) | O::Add)
}

fn is_view(operation: &Operation) -> bool {
    matches!(operation, Operation::Flatten) || *operation == Operation::Dropout { rate: 0.0 }
}

/// The slots as the backward pass goes from layer to layer.
struct Slots {
    sizes: Vec<usize>,
    free: Vec<usize>,
    /// The slot of each layer's gradient, while it lives.
    of: Vec<Option<usize>>,
}

impl Slots {
    /// The smallest free slot for `size` scalars, or else the largest, made larger, or a new one.
    fn take(&mut self, size: usize) -> usize {
        let sizes = &self.sizes;
        let fitting = self.free.iter().copied().filter(|&slot| sizes[slot] >= size).min_by_key(|&slot| sizes[slot]);
        let Some(slot) = fitting.or_else(|| self.free.iter().copied().max_by_key(|&slot| sizes[slot])) else {
            self.sizes.push(size);
            return self.sizes.len() - 1;
        };
        self.free.retain(|&free| free != slot);
        self.sizes[slot] = self.sizes[slot].max(size);
        slot
    }

    fn route(&mut self, network: &Network, index: usize, trained: &[bool]) -> Option<Route> {
        let own = self.of[index].take()?;
        let mut route = Route { own, fresh: None, moves: Vec::new() };
        match network.layers[index].sources[..] {
            [source] if !trained[source] => self.free.push(own),
            [source] if is_in_place(&network.layers[index].operation) => self.merge(own, source, &mut route.moves),
            [source] => {
                let fresh = self.take(network.layers[source].output.count());
                self.free.push(own);
                route.fresh = Some(fresh);
                self.merge(fresh, source, &mut route.moves);
            }
            [a, b] => {
                if trained[b] {
                    self.copy(network, own, b, &mut route.moves);
                }
                if trained[a] { self.merge(own, a, &mut route.moves) } else { self.free.push(own) }
            }
            _ => return None,
        }
        Some(route)
    }

    /// Makes a slot the gradient of `source`, or adds it to the one that is there.
    fn merge(&mut self, from: usize, source: usize, moves: &mut Vec<Move>) {
        match self.of[source] {
            None => self.of[source] = Some(from),
            Some(to) => {
                moves.push(Move { kind: MoveKind::Add, from, to, layer: source });
                self.free.push(from);
            }
        }
    }

    /// The same, where another source needs the slot as well.
    fn copy(&mut self, network: &Network, from: usize, source: usize, moves: &mut Vec<Move>) {
        match self.of[source] {
            None => {
                let to = self.take(network.layers[source].output.count());
                moves.push(Move { kind: MoveKind::Copy, from, to, layer: source });
                self.of[source] = Some(to);
            }
            Some(to) => moves.push(Move { kind: MoveKind::Add, from, to, layer: source }),
        }
    }
}

/// Whether a layer's gradient becomes its source's in place.
fn is_in_place(operation: &Operation) -> bool {
    use Operation as O;
    matches!(operation, O::Relu | O::Relu6 | O::BatchNorm(_) | O::Dropout { .. } | O::Flatten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{Builder, Dense, Shape};

    #[test]
    fn a_chain_takes_two_slots_and_rectifies_as_it_writes() {
        let network = Network::by_name("mlp", Shape::Flat(2), 1).unwrap();
        let plan = MemoryPlan::new(&network);
        assert_eq!(plan.slots.len(), 2);
        assert_eq!(plan.layers[2].output, OutputLocation { holder: 1, rectifier: Rectifier::Relu });
        assert!(plan.layers.iter().flat_map(|layer| &layer.route).all(|route| route.moves.is_empty()));
        assert_eq!(plan.layers[1].route.as_ref().map(|route| route.fresh), Some(None), "the input wants no gradient");
    }

    #[test]
    fn an_output_that_is_read_twice_is_not_rectified_in_place_and_its_gradients_are_added() {
        let mut b = Builder::new("skip", Shape::Flat(3)).unwrap();
        let fc = b.then("fc", Dense { out_features: 3, bias: false }).unwrap();
        let relu = b.then("relu", Operation::Relu).unwrap();
        b.add("sum", Operation::Add, &[fc, relu]).unwrap();
        let plan = MemoryPlan::new(&b.finish().unwrap());
        assert_eq!(plan.layers[relu].output.holder, relu);
        let moves: Vec<Move> =
            plan.layers.iter().flat_map(|layer| &layer.route).flat_map(|route| route.moves.clone()).collect();
        // The sum's gradient is copied for the rectifier, which adds what it lets through to that of `fc`.
        assert_eq!(
            moves,
            [
                Move { kind: MoveKind::Add, from: 1, to: 0, layer: fc },
                Move { kind: MoveKind::Copy, from: 0, to: 1, layer: relu }
            ]
        );
    }
}
