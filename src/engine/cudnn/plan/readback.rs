//! What a step computed, read back from the device in the order of the network's definition.

use half::{bf16, f16};

use super::StepPlan;
use super::parameters::{PlacedParameter, WeightOrder};
use crate::engine::Computed;
use crate::engine::cudnn::call::Slice;
use crate::engine::cudnn::element::Element;
use crate::engine::train::{Learnt, Running};
use crate::error::Result;

impl StepPlan {
    /// The output of the last step, the parameters, and their gradients. `read` gives the bytes of a slice.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn computed(&self, read: &mut dyn FnMut(Slice) -> Result<Vec<u8>>) -> Result<Computed> {
        let factors = decode(&read(self.scalars.factors())?, Element::F32);
        // What the gradients are multiplied by on the device, so that float16 can hold them.
        let unscale = if self.element == Element::F16 { factors[2] } else { 1.0 };
        let mut computed = Computed { output: decode(&read(self.output)?, self.element), ..Computed::default() };
        for placed in self.parameters.iter() {
            let master = decode(&read(self.parameters.master(placed))?, Element::F32);
            computed.parameters.push(in_definition_order(placed, &master));
            let element = if placed.is_weight { self.element } else { Element::F32 };
            let mut gradient = decode(&read(self.parameters.gradient(placed))?, element);
            gradient.iter_mut().for_each(|value| *value *= unscale);
            computed.gradients.push(in_definition_order(placed, &gradient));
        }
        Ok(computed)
    }

    /// What the network has learnt so far.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn learnt(&self, read: &mut dyn FnMut(Slice) -> Result<Vec<u8>>) -> Result<Learnt> {
        let mut numbers = |slice| read(slice).map(|bytes| decode(&bytes, Element::F32));
        let mut learnt = Learnt::default();
        for placed in self.parameters.iter() {
            let master = numbers(self.parameters.master(placed))?;
            learnt.parameters.push(in_definition_order(placed, &master));
        }
        for (mean, variance) in self.running.iter().flatten() {
            learnt.running.push(Running { mean: numbers(*mean)?, variance: numbers(*variance)? });
        }
        Ok(learnt)
    }
}

/// From outer x positions x channels to outer x channels x positions, where a parameter lies in the former order.
fn in_definition_order(placed: &PlacedParameter, values: &[f64]) -> Vec<f64> {
    let WeightOrder { channels, positions, channels_last } = placed.order;
    if !channels_last || positions == 1 {
        return values.to_vec();
    }
    let within = |at: usize| (at % positions) * channels + at / positions;
    let filters = values.chunks_exact(channels * positions);
    filters.flat_map(|filter| (0..filter.len()).map(move |at| filter[within(at)])).collect()
}

fn decode(bytes: &[u8], element: Element) -> Vec<f64> {
    let pairs = || bytes.chunks_exact(2).map(|pair| [pair[0], pair[1]]);
    match element {
        Element::F32 => bytes.as_chunks().0.iter().map(|&four| f64::from(f32::from_le_bytes(four))).collect(),
        Element::F16 => pairs().map(|pair| f64::from(f16::from_le_bytes(pair))).collect(),
        Element::Bf16 => pairs().map(|pair| f64::from(bf16::from_le_bytes(pair))).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_type_is_decoded() {
        assert_eq!(decode(&1.5f32.to_le_bytes(), Element::F32), [1.5]);
        // 1.5 is 1.1 in binary: sign 0, exponent 15 or 127, and the first bit of the fraction.
        assert_eq!(decode(&0x3E00u16.to_le_bytes(), Element::F16), [1.5]);
        assert_eq!(decode(&0x3FC0u16.to_le_bytes(), Element::Bf16), [1.5]);
    }

    #[test]
    fn a_weight_in_nhwc_is_read_in_the_order_of_its_definition() {
        let order = WeightOrder { channels: 2, positions: 3, channels_last: true };
        let placed = PlacedParameter {
            layer: 1,
            number: 0,
            name: "weight",
            dims: vec![2, 2, 1, 3],
            first: 0,
            is_weight: true,
            order,
        };
        // For each filter, position by position: channel 0, channel 1.
        let stored = [0.0, 10.0, 1.0, 11.0, 2.0, 12.0, 20.0, 30.0, 21.0, 31.0, 22.0, 32.0];
        let logical = [0.0, 1.0, 2.0, 10.0, 11.0, 12.0, 20.0, 21.0, 22.0, 30.0, 31.0, 32.0];
        assert_eq!(in_definition_order(&placed, &stored), logical);
    }
}
