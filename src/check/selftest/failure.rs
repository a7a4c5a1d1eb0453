//! The first check that fails, with all that it takes to run it again elsewhere.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use serde_json::{Value, json};

use super::trace::{Detail, Expected, Trace};
use super::{CheckFilter, Compared, each};
use crate::engine::{Engine, Workload};
use crate::error::Result;
use crate::settings::AXES;

/// How many checks pass, and the first that fails; ends as well where `is_over` says so.
///
/// # Errors
/// As [`super::run`].
pub fn first_failure(
    engine: &mut dyn Engine,
    reference: &mut dyn Engine,
    choice: &CheckFilter,
    is_over: &mut dyn FnMut() -> bool,
) -> Result<(usize, Option<Value>)> {
    let (mut passed, mut failure) = (0, None);
    each(engine, reference, choice, &mut |engine, compared| {
        if compared.check.passed() {
            passed += 1;
            return if is_over() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        }
        failure = Some(described(engine, &compared));
        ControlFlow::Break(())
    })?;
    Ok((passed, failure))
}

/// What a check was given, and where it is off: its name, with the refusal of an engine that refuses; the layers with their shapes; the settings by the keys
/// of a spec, from whose seed the parameters and the batch follow; the errors and the largest that pass, null where infinite; and the `numbers`, none
/// of an engine that refuses.
fn described(engine: &mut dyn Engine, Compared { check, workload, expected }: &Compared) -> Value {
    let found = Trace::of(engine, workload, Detail::First);
    let errors = check.parts().map(|(name, found, most)| (name, json!({"found": found, "allowed": most})));
    json!({
        "name": check.name,
        "batch_size": check.batch_size,
        "network": format!("{:?}", workload.network),
        "settings": settings(workload),
        "errors": BTreeMap::from(errors),
        "numbers": found.map(|found| numbers(&found, expected)).unwrap_or_default(),
    })
}

fn settings(workload: &Workload) -> BTreeMap<String, String> {
    let axes = AXES.iter().map(|axis| (axis.key.to_owned(), (axis.get)(&workload.settings).to_string()));
    axes.chain([("seed".to_owned(), workload.settings.seed.to_string())]).collect()
}

/// For each tensor that differs, the number that differs most. Gradients are numbered in the order of the network's parameters.
fn numbers(found: &Trace, expected: &Expected) -> Vec<Value> {
    let output = [("output".to_owned(), &found.first.output, &expected.output)];
    let gradients = found.first.gradients.iter().zip(&expected.gradients).enumerate();
    let gradients = gradients.map(|(index, (found, expected))| (format!("gradient {index}"), found, expected));
    output
        .into_iter()
        .chain(gradients)
        .filter_map(|(tensor, found, expected)| worst(&tensor, found, expected))
        .collect()
}

/// A number that is not finite, which is null, differs most.
fn worst(tensor: &str, found: &[f64], expected: &[f64]) -> Option<Value> {
    let off = |place: usize| match (found[place] - expected[place]).abs() {
        difference if difference.is_nan() => f64::INFINITY,
        difference => difference,
    };
    let of = found.len().min(expected.len());
    let place = (0..of).max_by(|a, b| off(*a).total_cmp(&off(*b)))?;
    let (found, expected) = (found[place], expected[place]);
    let number = json!({"tensor": tensor, "place": place, "of": of, "expected": expected, "found": found});
    (off(place) > 0.0).then_some(number)
}
