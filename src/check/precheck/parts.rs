//! Compares each part of a step with the result of the CPU engine for the same operands.
//!
//! If whole steps are compared, rounding grows from layer to layer, and a rectifier that switches changes the gradient. Here no error is carried on, so
//! the limits are those of one operator whatever the depth of the network, and the part that is wrong is known.

use std::collections::BTreeSet;

use crate::engine::Workload;
use crate::engine::cpu::part::{Distance, Expected, LimitOfOne, expected};
use crate::engine::part::{Numbers, Part, Quantity, See};
use crate::error::{Error, Result};
use crate::settings::Precision;

/// The limit of the norm of the difference over the norm of the expected values. Rounding to the precision's 24, 11, 8 or 11 bits makes a tenth of it or
/// less; in fp32 there is room for the algorithms of cuDNN that multiply transformed tiles.
fn limit(precision: Precision) -> f64 {
    match precision {
        Precision::Fp32 => 1e-3,
        Precision::Tf32 => 1e-2,
        Precision::Bf16 | Precision::Fp16 => 5e-2,
    }
}

/// The limit for a single number: its difference over its expected value plus the root mean square of all. A number that was left out differs by more,
/// however many others there are.
fn limit_of_one(precision: Precision) -> f64 {
    (20.0 * limit(precision)).min(0.25)
}

/// The spacing of float16's smallest numbers: gradients may be no larger.
const SMALLEST_F16: f64 = 6e-8;

/// What rounding cannot make infinite: float16 ends at 65504.
fn most(precision: Precision) -> f32 {
    if precision == Precision::Fp16 { 0.95 * 65504.0 } else { f32::MAX }
}

/// Compares everything that a part computed. A part whose operands have overflowed, as float16 gradients do until the loss scale is low enough, is
/// skipped: the part that produced them was compared.
///
/// # Errors
/// [`crate::error::Kind::Device`] with the values that differ and where they differ most; [`crate::error::Kind::Engine`] if the CPU engine cannot compute it.
pub(super) fn check(part: Part) -> Result<()> {
    let Part { workload, task, found } = part;
    let most = most(workload.settings.precision);
    if task.operands().any(|numbers| numbers.exceed(most)) {
        return Ok(());
    }
    let wanted: Vec<Quantity> = found.iter().map(|(quantity, _)| *quantity).collect();
    let expected = expected(workload, task, &wanted)?;
    found.iter().zip(&expected).try_for_each(|((quantity, found), expected)| match fault(workload, found, expected) {
        None => Ok(()),
        Some(said) => Err(Error::device(format!("{quantity} is {said}"))),
    })
}

/// Checks the parts of some layers.
pub(super) struct Only<'a>(pub &'a BTreeSet<usize>);

impl See for Only<'_> {
    fn wants(&self, layer: Option<usize>) -> bool {
        layer.is_some_and(|layer| self.0.contains(&layer))
    }

    fn see(&mut self, part: Part) -> Result<()> {
        check(part)
    }
}

/// What is wrong with numbers: `off by 1.0e0 (allowed: 1e-2), most of all at [0, 3, 1, 1]: 0.25 instead of 0.5`.
pub(super) fn fault(workload: &Workload, found: &Numbers, expected: &Expected) -> Option<String> {
    let precision = workload.settings.precision;
    let (of_found, of_expected) = (found.values.len(), expected.values.len());
    if of_found != of_expected {
        return Some(format!("{of_found} numbers instead of {of_expected}"));
    }
    let smallest = if precision == Precision::Fp16 { SMALLEST_F16 } else { 0.0 };
    let of_one = LimitOfOne { share: limit_of_one(precision), smallest, most: most(precision) };
    let Distance { all, scale, worst: (place, share) } = expected.distance(&found.values, of_one)?;
    if share <= 1.0 && all <= limit(precision) * scale + smallest * (of_expected as f64).sqrt() {
        return None;
    }
    let (error, allowed) = (all / scale, limit(precision));
    let (indices, found, expected) = (indices(&found.dims, place), found.values[place], expected.values[place]);
    Some(format!(
        "off by {error:.1e} (allowed: {allowed:.0e}), most of all at {indices:?}: {found:e} instead of {expected:e}"
    ))
}

fn indices(dims: &[usize], place: usize) -> Vec<usize> {
    let mut rest = place;
    let index = |size: &usize| {
        let index = rest % size;
        rest /= size;
        index
    };
    let mut indices: Vec<usize> = dims.iter().rev().map(index).collect();
    indices.reverse();
    indices
}
