//! Texts that others wrote, made harmless before they leave the program: names in files, messages of other programs.
//!
//! A name can hold what a terminal obeys (escape sequences), what a log takes for a line of its own (line ends, GitHub's `::error`), what turns
//! the order of letters around (bidirectional marks: Boucher & Anderson, Trojan Source, 2021), and what no XML file may hold. Each such character
//! is written as JSON writes it, `\u001b`, so that a JSON or TOML document keeps its meaning.

use std::borrow::Cow;
use std::fmt::Write;

/// The most characters of a name that are shown; a longer name is shortened to its beginning and its end.
const LONGEST_NAME: usize = 120;
/// Characters of a line that are shown.
const LONGEST_LINE: usize = 4000;

/// What a text may hold beside its letters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    Nothing,
    /// Line ends and tabs.
    Lines,
    /// The same, and no line can be read as a command by GitHub's runner.
    Message,
    /// Also the colours that this program writes.
    Output,
}

/// A name on one line, at most 120 characters long.
///
/// ```
/// use batchstep::foreign;
/// assert_eq!(foreign::name("T4\u{1b}[2J\n"), "T4\\u001b[2J\\n");
/// ```
pub fn name(text: &str) -> String {
    shortened(escaped(text, Keeps::Nothing), LONGEST_NAME).into_owned()
}

/// A sentence on one line, at most 4,000 characters long.
pub fn line(text: &str) -> Cow<'_, str> {
    shortened(escaped(text, Keeps::Nothing), LONGEST_LINE)
}

/// A text of several lines, each with its end.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, Keeps::Lines)
}

/// What is laid out already, with the colours of this program. A line that GitHub's runner would obey is one no more.
pub fn output(text: &str) -> Cow<'_, str> {
    escaped(text, Keeps::Output)
}

/// A message for a person: as [`output`], without colours, with no line longer than 4,000 characters, and none but the first at the beginning of its line: a line
/// end in a name cannot begin a message of its own.
pub fn message(text: &str) -> String {
    let mut result = String::new();
    for (at, line) in text.split('\n').enumerate() {
        if at > 0 {
            result.push('\n');
            result.push_str(if line.is_empty() || line.starts_with(' ') { "" } else { "  " });
        }
        result.push_str(&shortened(escaped(line, Keeps::Message), LONGEST_LINE));
    }
    result
}

fn escaped(text: &str, keeps: Keeps) -> Cow<'_, str> {
    let is_read_by_runner = matches!(keeps, Keeps::Message | Keeps::Output);
    let commands = is_read_by_runner && (text.contains("::") || text.contains("##["));
    if !commands && !text.contains(|c| is_harmful(c) && !(c == '\n' && keeps != Keeps::Nothing)) {
        return Cow::Borrowed(text);
    }
    let mut result = String::with_capacity(text.len() + 16);
    let (mut rest, mut line_begins) = (text, true);
    while let Some(c) = rest.chars().next() {
        let kept = match c {
            '\n' | '\t' if keeps != Keeps::Nothing => 1,
            '\u{1b}' if keeps == Keeps::Output => color(rest),
            // The runner looks for `##[` anywhere, and for `::` after blanks.
            '#' if is_read_by_runner && rest.starts_with("##[") => 0,
            ':' if is_read_by_runner && line_begins && rest.starts_with("::") => 0,
            c if is_harmful(c) => 0,
            c => c.len_utf8(),
        };
        result.push_str(&rest[..kept]);
        if kept == 0 {
            escape(c, &mut result);
        }
        line_begins = c == '\n' || line_begins && (c.is_whitespace() || c == '\u{1b}' && kept > 0);
        rest = &rest[kept.max(c.len_utf8())..];
    }
    Cow::Owned(result)
}

/// The bytes of the colour that `text` begins with, `ESC [ 31 m`; 0 where it is another sequence.
fn color(text: &str) -> usize {
    let Some(rest) = text.strip_prefix("\x1b[") else { return 0 };
    let digits = rest.find(|c: char| !c.is_ascii_digit() && c != ';').unwrap_or(rest.len());
    if rest[digits..].starts_with('m') { "\x1b[".len() + digits + 1 } else { 0 }
}

fn is_harmful(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Line and paragraph ends; marks and embeddings of a direction; what is not seen; what XML forbids; tags.
            '\u{2028}' | '\u{2029}'
            | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}'
            | '\u{200b}' | '\u{2060}'..='\u{2064}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{fffe}' | '\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}

/// As JSON writes it.
fn escape(c: char, result: &mut String) {
    match c {
        '\n' => result.push_str("\\n"),
        '\r' => result.push_str("\\r"),
        '\t' => result.push_str("\\t"),
        c => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
            // Writing to a string does not fail.
            let _ = write!(result, "\\u{unit:04x}");
        }),
    }
}

/// The beginning and the end of a text that is longer than `most` characters.
fn shortened(text: Cow<'_, str>, most: usize) -> Cow<'_, str> {
    let excess = if text.len() <= most { 0 } else { text.chars().count().saturating_sub(most) };
    if excess == 0 {
        return text;
    }
    let head = 2 * most / 3;
    let begins = text.chars().take(head);
    // One more, for the mark in its place.
    let ends = text.chars().skip(head + excess + 1);
    Cow::Owned(begins.chain(['\u{2026}']).chain(ends).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_or_a_log_obeys_is_written_out() {
        let hostile = "a\u{1b}[31mb\u{7}\r\n::error::c\u{202e}d\u{2028}e\u{9b}2J\u{feff}\u{e0041}";
        let shown = "a\\u001b[31mb\\u0007\\r\\n::error::c\\u202ed\\u2028e\\u009b2J\\ufeff\\udb40\\udc41";
        assert_eq!(name(hostile), shown);
        assert_eq!(line(hostile), shown);
        assert!(line("größer als µs, 日本語, 👩‍🔬").contains("👩‍🔬"), "letters of all languages stay");
    }

    #[test]
    fn a_document_keeps_its_lines_and_its_meaning() {
        let document = serde_json::json!({"group": {"gpu": "\u{7f}\u{202e}T4\u{85}", "note": "##[error] ::x"}});
        let text = format!("{document:#}\n");
        let shown = output(&text);
        assert!(!shown.contains(['\u{7f}', '\u{202e}', '\u{85}']) && shown.lines().count() == text.lines().count());
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), document);
    }

    #[test]
    fn output_keeps_colours_and_gives_githubs_runner_no_command() {
        let text = "\u{1b}[1;31mred\u{1b}[0m\u{1b}]0;title\u{7}\u{1b}[2J\n \u{1b}[2m::error::x\na ::b ##[error]y\tz\n";
        let expected = "\u{1b}[1;31mred\u{1b}[0m\\u001b]0;title\\u0007\\u001b[2J\n \u{1b}[2m\\u003a:error::x\n\
                        a ::b \\u0023#[error]y\tz\n";
        assert_eq!(output(text), expected);
        assert_eq!(lines("a\tb\n::c\u{1b}[1m"), "a\tb\n::c\\u001b[1m");
    }

    #[test]
    fn a_line_end_in_a_name_begins_no_message() {
        assert_eq!(message("a\nbatchstep: b\n  help: c\n"), "a\n  batchstep: b\n  help: c\n");
        assert_eq!(message("`\u{1b}[31m`\n::error::x"), "`\\u001b[31m`\n  \\u003a:error::x");
    }

    #[test]
    fn a_long_name_shows_its_beginning_and_its_end() {
        let long = format!("a{}z", "é".repeat(5000));
        let shown = name(&long);
        assert_eq!(shown.chars().count(), LONGEST_NAME);
        assert!(shown.starts_with("aé") && shown.ends_with("éz") && shown.contains('\u{2026}'), "{shown}");
        assert_eq!(line(&long).chars().count(), LONGEST_LINE);
        let whole = "é".repeat(LONGEST_NAME);
        assert_eq!(name(&whole), whole);
    }
}
