//! Literals of Python and NumPy as JSON: `[(8, 1.5), (16, 2.5)]`, `{8: 1.5}`, and lists of one length in lines of their own, `batch = [8, 16]`.

use serde_json::{Map, Value};

/// The value of a text that is such a literal; `None` of any other.
pub(super) fn value(text: &str) -> Option<Value> {
    let array = ["array", "np.array", "tensor", "torch.tensor"].iter().find_map(|name| text.strip_prefix(name));
    let text = array.map_or(text, |array| array.trim_matches(['(', ')', ' ', '\n']));
    if text.starts_with(['[', '{', '(']) {
        return literal(text);
    }
    let mut columns = Map::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (name, list) = line.split_once(['=', ':'])?;
        let list = literal(list.trim().trim_end_matches(','))?;
        let is_flat = list
            .as_array()
            .is_some_and(|items| items.len() > 1 && items.iter().all(|item| !item.is_array() && !item.is_object()));
        is_flat.then(|| columns.insert(name.trim().trim_matches(['"', '\'']).to_string(), list))?;
    }
    (columns.len() > 1).then_some(Value::Object(columns))
}

/// A list, tuple or dictionary, in JSON's letters.
fn literal(text: &str) -> Option<Value> {
    if !text.starts_with(['[', '{', '(']) || !text.ends_with([']', '}', ')']) {
        return None;
    }
    let (mut json, mut word, mut rest) = (String::with_capacity(text.len() + 16), String::new(), text.chars());
    while let Some(letter) = rest.next() {
        match letter {
            '"' | '\'' => {
                let inside: String = rest.by_ref().take_while(|own| *own != letter).collect();
                json.push_str(&Value::String(inside).to_string());
            }
            '(' | '[' => {
                apart(&mut json);
                json.push('[');
            }
            ')' | ']' | '}' | ',' | ':' => {
                put(&mut json, &mut word, letter == ':');
                // A comma may stand behind the last item.
                if letter != ',' && letter != ':' && json.ends_with(',') {
                    json.pop();
                }
                json.push(if letter == ')' { ']' } else { letter });
            }
            '{' => json.push('{'),
            // NumPy prints blanks between numbers.
            _ if letter.is_whitespace() => put(&mut json, &mut word, false),
            _ => {
                if word.is_empty() {
                    apart(&mut json);
                }
                word.push(letter);
            }
        }
    }
    serde_json::from_str(&json).ok()
}

/// Adds the missing comma between two items.
fn apart(json: &mut String) {
    if json.ends_with(|letter: char| letter.is_ascii_digit() || letter == ']' || letter == '.') {
        json.push(',');
    }
}

/// Adds a number or a name; names of members are texts.
fn put(json: &mut String, word: &mut String, is_name: bool) {
    let word = std::mem::take(word);
    match (&word[..], is_name) {
        ("", _) => {}
        (_, true) => json.push_str(&Value::String(word).to_string()),
        ("True", _) => json.push_str("true"),
        ("False", _) => json.push_str("false"),
        ("None" | "nan" | "inf" | "-inf" | "NaN" | "Infinity" | "-Infinity", _) => json.push_str("null"),
        // `4.` is a number of NumPy's.
        _ => json.push_str(&word.trim_end_matches('.').replace('_', "")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_of_python_are_json() {
        for (text, json) in [
            ("[(8, 1.5), (16, None),]", "[[8,1.5],[16,null]]"),
            ("{8: 1.5, 'a': [True, nan]}", r#"{"8":1.5,"a":[true,null]}"#),
            (r#"{"a": NaN, "b": [Infinity, -Infinity, -inf]}"#, r#"{"a":null,"b":[null,null,null]}"#),
            ("[[  8.    1.5]\n [ 16.    2.5]]", "[[8,1.5],[16,2.5]]"),
            ("array([[ 8. ,  1.5],\n       [16. ,  2.5]])", "[[8,1.5],[16,2.5]]"),
            ("bs = [8, 1_6]\n# later\nms = (1.5, 2.5)\n", r#"{"bs":[8,16],"ms":[1.5,2.5]}"#),
        ] {
            assert_eq!(value(text).map(|value| value.to_string()).as_deref(), Some(json), "{text}");
        }
        for text in ["[INFO] a\nn,ms\n1,2\n", "n,ms\n1,2\n", "a = [1, 2]\n", "{8: ", "[1, f(2)]", ""] {
            assert_eq!(value(text), None, "{text}");
        }
    }
}
