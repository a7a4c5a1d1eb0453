//! The calls that give every kept buffer its initial value. It depends on the network and the seed, but not on the
//! engine.

use std::collections::BTreeMap;

use super::PlanBuilder;
use super::parameters::{PlacedParameter, WeightOrder};
use crate::engine::cudnn::arena::Life;
use crate::engine::cudnn::call::{Call, Launch, Slice};
use crate::engine::cudnn::op::initial;
use crate::network::initial::glorot_limit;
use crate::network::{Layer, Network, Operation};
use crate::random::{Purpose, Stream};
use crate::settings::{Examples, Loss};

/// The running mean and variance of each batch norm.
pub(super) fn running(network: &Network, mut whole: impl FnMut(usize) -> Slice) -> BTreeMap<usize, [Slice; 2]> {
    let norms =
        network.layers.iter().enumerate().filter(|(_, layer)| matches!(layer.operation, Operation::BatchNorm(_)));
    let pair = |(index, layer): (usize, &Layer)| (index, [0, 1].map(|_| whole(4 * layer.output.channels())));
    norms.map(pair).collect()
}

impl PlanBuilder<'_> {
    pub(super) fn initial(&self) -> Vec<Call> {
        let kept =
            self.plan.buffers.iter().enumerate().filter(|(_, buffer)| buffer.life == Life::Kept && buffer.bytes > 0);
        let mut calls: Vec<Call> = kept.map(|(id, buffer)| Call::Zero(Slice::new(id, 0, buffer.bytes))).collect();
        let mut launches = vec![self.plan.scalars.reset()];
        for placed in self.plan.parameters.iter() {
            match placed.name {
                "weight" => launches.push(self.weight(placed)),
                "gamma" => launches.push(initial::fill(self.plan.parameters.master(placed), 1.0)),
                _ => {}
            }
        }
        launches.extend(self.plan.running.values().map(|[_, variance]| initial::fill(*variance, 1.0)));
        let first = (self.plan.inputs, self.plan.targets);
        let batches = std::iter::once(first).chain(self.plan.next_batch);
        launches.extend(batches.flat_map(|(inputs, targets)| self.batch_values(inputs, targets)));
        calls.extend(launches.into_iter().map(Call::Launch));
        calls
    }

    fn weight(&self, placed: &PlacedParameter) -> Launch {
        let parameters = &self.plan.parameters;
        let parts = [placed.layer as u64, placed.number as u64];
        let key = Stream::new(self.settings.seed, Purpose::Parameters, parts).key();
        let (dst, working) = (parameters.master(placed), parameters.working.map(|_| parameters.value(placed)));
        let WeightOrder { channels, positions, channels_last } = placed.order;
        let limit = glorot_limit(&placed.dims);
        initial::weights(self.element, dst, working, key, limit, [channels, positions], channels_last)
    }

    fn batch_values(&self, inputs: Slice, targets: Slice) -> [Launch; 2] {
        let (element, batch) = (self.element, self.batch_size);
        if self.settings.examples == Examples::Peaks {
            return [initial::points(element, inputs, batch), initial::heights(targets, batch)];
        }
        let key = |purpose| Stream::new(self.settings.seed, purpose, [0, 0]).key();
        let targets_key = key(Purpose::Targets);
        let targets = match self.settings.loss {
            Loss::CategoricalCrossEntropy => initial::one_hot(targets, self.network.output().count(), targets_key),
            Loss::MeanSquaredError | Loss::BinaryCrossEntropy => initial::uniform_targets(targets, targets_key),
        };
        [initial::inputs(element, self.maps(0), inputs, key(Purpose::Inputs)), targets]
    }
}
