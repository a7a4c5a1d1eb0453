//! The calls that give every kept buffer its initial value. It depends on the network and the seed, but not on the
//! engine.

use super::PlanBuilder;
use super::parameters::PlacedParameter;
use crate::engine::cudnn::arena::Life;
use crate::engine::cudnn::call::{BufferId, Call, Launch, Slice};
use crate::engine::cudnn::op::initial::{Fill, Heights, Inputs, OneHot, Points, Uniform, UniformTargets};
use crate::engine::initial::glorot_limit;
use crate::network::{Network, Operation};
use crate::random::{Purpose, Stream};
use crate::settings::{Examples, Loss};

/// The running mean and variance of each batch norm.
pub(super) fn running(network: &Network, whole: &mut impl FnMut(&str, usize) -> Slice) -> Vec<Option<(Slice, Slice)>> {
    let mut pair = |channels: usize| (whole("running means", 4 * channels), whole("running variances", 4 * channels));
    let of = |layer: usize| match network.layers[layer].operation {
        Operation::BatchNorm(_) => network.sources(layer).next().map(|shape| pair(shape.channels())),
        _ => None,
    };
    (0..network.layers.len()).map(of).collect()
}

impl PlanBuilder<'_> {
    pub(super) fn initial(&self) -> Vec<Call> {
        let kept = self.buffers.iter().enumerate().filter(|(_, buffer)| buffer.life == Life::Kept && buffer.bytes > 0);
        let mut calls: Vec<Call> = kept
            .map(|(id, buffer)| Call::Zero(Slice { buffer: BufferId(id), offset: 0, bytes: buffer.bytes }))
            .collect();
        let mut launches = self.scalars.reset();
        for placed in self.parameters.iter() {
            match placed.name {
                "weight" => launches.extend(self.weight(placed)),
                "gamma" => launches
                    .extend(Fill { dst: self.parameters.master(placed), count: placed.count(), value: 1.0 }.launches()),
                _ => {}
            }
        }
        for (_, variance) in self.running.iter().flatten() {
            launches.extend(Fill { dst: *variance, count: variance.bytes / 4, value: 1.0 }.launches());
        }
        launches.extend(self.batch_values());
        calls.extend(launches.into_iter().map(Call::Launch));
        calls
    }

    fn weight(&self, placed: &PlacedParameter) -> Vec<Launch> {
        let parts = [placed.layer as u64, placed.number as u64];
        let op = Uniform {
            element: self.element,
            dst: self.parameters.master(placed),
            working: self.parameters.working.map(|_| self.parameters.value(placed)),
            count: placed.count(),
            key: Stream::new(self.settings.seed, Purpose::Parameters, parts).key(),
            limit: glorot_limit(&placed.dims),
            channels: placed.order.channels,
            positions: placed.order.positions,
            channels_last: placed.order.channels_last,
        };
        op.launches()
    }

    fn batch_values(&self) -> Vec<Launch> {
        if self.settings.examples == Examples::Peaks {
            return self.surface();
        }
        let key = |purpose| Stream::new(self.settings.seed, purpose, [0, 0]).key();
        let batch = self.batch_size;
        let classes = self.network.output().count();
        let first = (self.batch.inputs, self.batch.targets);
        let pairs = std::iter::once(first).chain(self.batch.next);
        pairs
            .flat_map(|(inputs, targets)| {
                let op = Inputs { element: self.element, maps: self.maps(0), dst: inputs, key: key(Purpose::Inputs) };
                let mut launches = op.launches();
                let key = key(Purpose::Targets);
                launches.extend(match self.settings.loss {
                    Loss::CategoricalCrossEntropy => OneHot { dst: targets, batch, classes, key }.launches(),
                    Loss::MeanSquaredError | Loss::BinaryCrossEntropy => {
                        UniformTargets { dst: targets, count: batch * classes, key }.launches()
                    }
                });
                launches
            })
            .collect()
    }

    fn surface(&self) -> Vec<Launch> {
        let batch = self.batch_size;
        let first = (self.batch.inputs, self.batch.targets);
        let pairs = std::iter::once(first).chain(self.batch.next);
        let launches = pairs.map(|(inputs, targets)| {
            [
                Points { element: self.element, dst: inputs, batch }.launches(),
                Heights { dst: targets, batch }.launches(),
            ]
        });
        launches.flatten().flatten().collect()
    }
}
