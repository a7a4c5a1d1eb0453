//! Arguments of a step as a text that holds a JSON object.

use serde_json::{Map, Value};

/// What Python takes for the name of an argument.
pub fn is_name(name: &str) -> bool {
    let begins = name.chars().next().is_some_and(|first| first.is_alphabetic() || first == '_');
    begins && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}

/// The members of such an object; nothing of another text.
pub fn members(stored: &str) -> Vec<(String, Value)> {
    serde_json::from_str::<Map<String, Value>>(stored).map(|object| object.into_iter().collect()).unwrap_or_default()
}

/// As a person reads it: `seq_len=128, attention=sdpa`.
pub(super) fn in_words(stored: &str) -> String {
    let member = |(name, value): (String, Value)| match value {
        Value::Null => format!("{name} not set"),
        Value::String(text) => format!("{name}={text}"),
        other => format!("{name}={other}"),
    };
    members(stored).into_iter().map(member).collect::<Vec<_>>().join(", ")
}
