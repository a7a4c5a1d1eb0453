//! Reads a step's results back from the device, in the order of the network's definition.

use super::StepPlan;
use super::parameters::WeightOrder;
use crate::engine::Computed;
use crate::engine::cudnn::call::Slice;
use crate::engine::cudnn::element::Element;
use crate::engine::numbers::{self, Number, widened};
use crate::engine::train::{Learnt, Running};
use crate::error::Result;

impl StepPlan {
    /// The output of the last step, the parameters, and their gradients. `read` gives the bytes of a slice.
    pub fn computed(&self, read: &mut dyn FnMut(Slice) -> Result<Vec<u8>>) -> Result<Computed> {
        let factors = decode(&read(self.scalars.factors())?, Element::F32);
        // On the device the gradients are multiplied by the loss scale, so that float16 can hold them.
        let unscale = factors[2];
        let output = self.outputs.values().next_back().map(|output| read(*output)).transpose()?.unwrap_or_default();
        let mut computed = Computed { output: decode(&output, self.element), ..Computed::default() };
        for placed in self.parameters.iter() {
            let master = decode(&read(self.parameters.master(placed))?, Element::F32);
            computed.parameters.push(in_definition_order(placed.order, master));
            let element = if placed.is_weight { self.element } else { Element::F32 };
            let mut gradient = decode(&read(self.parameters.gradient(placed))?, element);
            if self.element == Element::F16 {
                gradient.iter_mut().for_each(|value| *value *= unscale);
            }
            computed.gradients.push(in_definition_order(placed.order, gradient));
        }
        Ok(computed)
    }

    /// The parameters and statistics that the network has learnt so far.
    pub fn learnt(&self, read: &mut dyn FnMut(Slice) -> Result<Vec<u8>>) -> Result<Learnt> {
        let mut numbers = |slice| read(slice).map(|bytes| decode(&bytes, Element::F32));
        let mut learnt = Learnt::default();
        for placed in self.parameters.iter() {
            let master = numbers(self.parameters.master(placed))?;
            learnt.parameters.push(in_definition_order(placed.order, master));
        }
        for [mean, variance] in self.running.values() {
            learnt.running.push(Running { mean: numbers(*mean)?, variance: numbers(*variance)? });
        }
        Ok(learnt)
    }
}

/// From outer x positions x channels to outer x channels x positions, where numbers lie in the former order.
pub fn in_definition_order<V: Number>(order: WeightOrder, values: Vec<V>) -> Vec<V> {
    let WeightOrder { channels, positions, channels_last } = order;
    if !channels_last || positions == 1 {
        return values;
    }
    V::transposed(&values, positions, channels)
}

fn decode(bytes: &[u8], element: Element) -> Vec<f64> {
    widened(&floats(bytes, element))
}

pub fn floats(bytes: &[u8], element: Element) -> Vec<f32> {
    match element {
        Element::F32 => numbers::from_f32(bytes),
        Element::F16 => numbers::from_f16(bytes),
        Element::Bf16 => numbers::from_bf16(bytes),
    }
}
