//! The first check that fails, with all that it takes to run it again elsewhere.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde::Serialize;

use super::trace::{Detail, Expected, Trace};
use super::{CheckFilter, Compared, each};
use crate::engine::{Engine, Workload};
use crate::error::Result;
use crate::settings::AXES;

/// What a check was given, and where it is off. Parameters and batch follow from the seed among the settings.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Failure {
    /// With the engine's refusal, where it refuses.
    pub name: String,
    pub batch_size: usize,
    /// The layers with their shapes.
    pub network: String,
    /// By the keys of a spec.
    pub settings: BTreeMap<String, String>,
    pub errors: BTreeMap<&'static str, Measured>,
    /// For each tensor that differs, the number that differs most; empty if the engine refuses.
    pub numbers: Vec<Number>,
}

/// An error and the largest that passes; `None`: infinite.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Measured {
    pub found: Option<f64>,
    pub allowed: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Number {
    /// `output`, `gradient 3`: in the order of the network's parameters.
    pub tensor: String,
    pub place: usize,
    pub of: usize,
    pub expected: f64,
    /// `None`: not finite.
    pub found: Option<f64>,
}

/// How many checks pass, and the first that fails; ends as well where `is_over` says so.
///
/// # Errors
/// As [`super::run`].
pub fn first_failure(
    engine: &mut dyn Engine,
    reference: &mut dyn Engine,
    choice: &CheckFilter,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<(usize, Option<Failure>)> {
    let (mut passed, mut failure) = (0, None);
    each(engine, reference, choice, &mut |engine, compared| {
        if compared.check.passed() {
            passed += 1;
            return Ok(if is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
        }
        failure = Some(Failure::of(engine, &compared));
        Ok(ControlFlow::Break(()))
    })?;
    Ok((passed, failure))
}

impl Failure {
    fn of(engine: &mut dyn Engine, compared: &Compared) -> Self {
        let Compared { check, workload, expected } = compared;
        let found = Trace::of(engine, workload, Detail::First);
        let finite = |value: f64| value.is_finite().then_some(value);
        let measured = |found, allowed| Measured { found: finite(found), allowed: finite(allowed) };
        Self {
            name: check.name.clone(),
            batch_size: check.batch_size,
            network: format!("{:?}", workload.network),
            settings: settings(workload),
            errors: check.parts().into_iter().map(|(name, found, most)| (name, measured(found, most))).collect(),
            numbers: found.map(|found| numbers(&found, expected)).unwrap_or_default(),
        }
    }
}

fn settings(workload: &Workload) -> BTreeMap<String, String> {
    let axes = AXES.iter().map(|axis| (axis.key.to_owned(), (axis.get)(&workload.settings).to_string()));
    axes.chain([("seed".to_owned(), workload.settings.seed.to_string())]).collect()
}

fn numbers(found: &Trace, expected: &Expected) -> Vec<Number> {
    let output = [("output".to_owned(), &found.first.output, &expected.output)];
    let gradients = found.first.gradients.iter().zip(&expected.gradients).enumerate();
    let gradients = gradients.map(|(index, (found, expected))| (format!("gradient {index}"), found, expected));
    output.into_iter().chain(gradients).filter_map(|(tensor, found, expected)| worst(tensor, found, expected)).collect()
}

/// A number that is not finite differs most.
fn worst(tensor: String, found: &[f64], expected: &[f64]) -> Option<Number> {
    let off = |place: usize| match (found[place] - expected[place]).abs() {
        difference if difference.is_nan() => f64::INFINITY,
        difference => difference,
    };
    let of = found.len().min(expected.len());
    let place = (0..of).max_by(|a, b| off(*a).total_cmp(&off(*b)))?;
    let number = found[place];
    (off(place) > 0.0).then(|| Number {
        tensor,
        place,
        of,
        expected: expected[place],
        found: number.is_finite().then_some(number),
    })
}
