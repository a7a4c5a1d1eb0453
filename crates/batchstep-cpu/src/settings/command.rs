//! A command that is run in place of a file of Python.

use serde_json::Value;

/// The words of a command, and where the times of its steps come from. No shell reads it.
#[derive(Clone, Debug, PartialEq)]
pub struct Command {
    /// The program and its arguments; `{name}` is replaced by a value.
    pub words: Vec<String>,
    pub timed: Timed,
}

/// Where the times of a command's steps come from.
#[derive(Clone, Debug, PartialEq)]
pub enum Timed {
    /// One step is the whole process, from its start to its end.
    Process,
    /// The command prints the times of its steps; the group of a regular expression finds them, in this unit.
    Printed { pattern: String, unit: String },
    /// The program stays, and answers lines of JSON.
    Lines,
}

/// The units of printed times, and how many seconds each is.
pub const UNITS: [(&str, f64); 5] = [("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("µs", 1e-6), ("ns", 1e-9)];

impl Command {
    /// `llama-bench` of `./llama-bench`.
    pub fn name(&self) -> String {
        let program = self.words.first().map_or("", String::as_str);
        program.rsplit('/').next().unwrap_or(program).to_owned()
    }

    /// The names between braces, in their order, each once.
    pub fn placeholders(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for piece in self.words.iter().flat_map(|word| pieces(word)) {
            match piece {
                WordPart::Name(name) if !names.contains(&name) => names.push(name),
                _ => {}
            }
        }
        names
    }

    /// The words with the values in place of their names.
    pub fn with(&self, values: &[(String, Value)]) -> Vec<String> {
        let value = |name: &str| match values.iter().find(|(known, _)| known == name) {
            Some((_, Value::String(text))) => text.clone(),
            Some((_, other)) => other.to_string(),
            None => format!("{{{name}}}"),
        };
        let filled = |word: &String| -> String {
            let text = |piece| match piece {
                WordPart::Text(text) => text.to_owned(),
                WordPart::Name(name) => value(name),
            };
            pieces(word).map(text).collect()
        };
        self.words.iter().map(filled).collect()
    }
}

/// A part of a word.
enum WordPart<'w> {
    Text(&'w str),
    Name(&'w str),
}

/// What stands between braces is a name where Python would take it for one; other braces, as in JSON, are text.
fn pieces(word: &str) -> impl Iterator<Item = WordPart<'_>> {
    let mut rest = word;
    std::iter::from_fn(move || {
        let (piece, length) = match name_at(rest) {
            Some(name) => (WordPart::Name(name), name.len() + 2),
            None => {
                let mut further = rest.char_indices().map(|(at, _)| at).skip(1);
                let end = further.find(|&at| name_at(&rest[at..]).is_some()).unwrap_or(rest.len());
                (WordPart::Text(&rest[..end]), end)
            }
        };
        rest = &rest[length..];
        (length > 0).then_some(piece)
    })
}

/// The name between braces with which a text begins.
fn name_at(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.split_once('}')?.0;
    super::is_name(name).then_some(name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_between_braces_are_replaced_and_other_braces_are_text() {
        let words = ["./bench", "-b{batch_size}", r#"{"n": {batch_size}, "k": {}}"#, "{mode}x{mode}", "{", ""];
        let command = Command { words: words.map(str::to_owned).to_vec(), timed: Timed::Process };
        assert_eq!((command.name().as_str(), command.placeholders()), ("bench", vec!["batch_size", "mode"]));
        let values = [("batch_size".to_owned(), json!(17)), ("mode".to_owned(), json!("a b"))];
        assert_eq!(command.with(&values), ["./bench", "-b17", r#"{"n": 17, "k": {}}"#, "a bxa b", "{", ""]);
    }
}
