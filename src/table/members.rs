//! The members of a JSON object as cells.

use serde_json::{Map, Value};

use super::grid::NamedValues;

/// Objects in objects are read so deep.
pub(super) const DEEPEST: usize = 3;

/// The values of an object, and of objects in it by names with points; lists are left out, unless they are a shape.
pub(super) fn flat(object: &Map<String, Value>) -> NamedValues {
    let mut row = NamedValues::new();
    flatten(object, "", 0, &mut row);
    row
}

fn flatten(object: &Map<String, Value>, before: &str, depth: usize, row: &mut NamedValues) {
    for (name, value) in object {
        let name = format!("{before}{name}");
        match value {
            Value::Object(inner) if depth < DEEPEST => flatten(inner, &format!("{name}."), depth + 1, row),
            Value::Array(items) if (1..=8).contains(&items.len()) && items.iter().all(Value::is_u64) => {
                row.push((name, format!("[{}]", items.iter().map(said).collect::<Vec<_>>().join(", "))));
            }
            Value::Array(_) | Value::Object(_) => {}
            plain => row.push((name, said(plain))),
        }
    }
}

/// The member of that name as a cell; empty where there is none.
pub(super) fn member(value: &Value, name: &str) -> String {
    value.get(name).map(said).unwrap_or_default()
}

/// A value as a cell.
pub(super) fn said(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}
