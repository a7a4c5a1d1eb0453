//! A person's own step: its file, and what it is given.

use std::path::PathBuf;

use serde_json::{Map, Value};

use super::command::Command;
use super::{Text, named};

named! {
    /// When a process of its own begins anew. Where memory is laid out differs between processes, and with it the time of a step may.
    Fresh {
        /// One process for the whole run.
        Run = "run",
        /// A process for each block.
        Block = "block",
    }
}

/// What runs, and what it is given.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnSteps {
    /// A file for each model of the spec, in its order; empty if a command runs.
    pub files: Vec<StepFile>,
    pub command: Option<Command>,
    pub fresh: Fresh,
    /// The argument that is swept.
    pub x: String,
    /// The further arguments, each with its values: numbers, texts, truth values.
    pub arguments: Vec<(String, Vec<Value>)>,
    /// Variables of the environment, each with its values: texts, or null for one that is not set.
    pub env: Vec<(String, Vec<Value>)>,
}

impl OwnSteps {
    /// What is swept where nothing else is named.
    pub const BATCH_SIZE: &str = "batch_size";

    /// The names of the arguments that each step is given.
    pub fn argument_names(&self) -> Vec<&str> {
        std::iter::once(self.x.as_str()).chain(self.arguments.iter().map(|(name, _)| name.as_str())).collect()
    }
}

/// The path of a file that holds a step. Two paths are equal if the file names are: a run and its copy on another machine have the file in other
/// folders, and hashes distinguish its contents.
#[derive(Clone, Debug, Eq)]
pub struct StepFile(pub PathBuf);

impl StepFile {
    /// `bert.py`.
    pub fn name(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

impl PartialEq for StepFile {
    fn eq(&self, other: &Self) -> bool {
        self.0.file_name() == other.0.file_name()
    }
}

/// The product of the given values, as objects, with the last name innermost; without values, one empty object.
pub fn product(given: &[(String, Vec<Value>)]) -> Vec<Text> {
    let mut all = vec![Map::new()];
    for (name, values) in given {
        let with = |object: &Map<String, Value>, value: &Value| {
            let mut object = object.clone();
            object.insert(name.clone(), value.clone());
            object
        };
        all = all.iter().flat_map(|object| values.iter().map(|value| with(object, value))).collect();
    }
    all.into_iter().map(|object| Text::new(&Value::Object(object).to_string())).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::settings::arguments::in_words;

    #[test]
    fn the_product_has_the_last_name_innermost_and_reads_as_assignments() {
        let given =
            [("seq_len".to_owned(), vec![json!(128), json!(384)]), ("attention".to_owned(), vec![json!("sdpa")])];
        let all: Vec<&str> = product(&given).into_iter().map(Text::as_str).collect();
        assert_eq!(all, [r#"{"seq_len":128,"attention":"sdpa"}"#, r#"{"seq_len":384,"attention":"sdpa"}"#]);
        assert_eq!(in_words(all[1]), "seq_len=384, attention=sdpa");
        assert_eq!((product(&[]), in_words(r#"{"A":null,"B":"1"}"#)), (vec![Text::NONE], "A not set, B=1".to_owned()));
    }
}
