//! Places on the batch axis in JSON.

use serde_json::Value;

/// A place on the batch axis: a whole number where it is one.
pub(super) fn position(x: f64) -> Value {
    if x.fract() == 0.0 && x.abs() < 9e15 { Value::from(x as i64) } else { Value::from(x) }
}
