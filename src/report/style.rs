//! How wide, and with colour or without.

use std::io::IsTerminal;

use crate::foreign;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours.
    pub color: bool,
    /// Characters in a line.
    pub width: usize,
}

/// The ANSI looks in use, by their codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Bold = 1,
    Faint = 2,
    Red = 31,
    Green = 32,
    Yellow = 33,
}

impl Style {
    /// No colour, and room enough that nothing wraps: for files, pipes and tests.
    pub const PLAIN: Self = Self { color: false, width: 160 };

    /// What stdout is: a terminal of some width, with colour unless `NO_COLOR` (<https://no-color.org>) is set; or plain, as wide as `COLUMNS` says.
    pub fn of_terminal() -> Self {
        Self::of(&std::io::stdout())
    }

    /// The same of stderr, for warnings.
    pub fn of_stderr() -> Self {
        Self::of(&std::io::stderr())
    }

    fn of(stream: &impl IsTerminal) -> Self {
        if !stream.is_terminal() {
            let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse::<usize>().ok());
            return Self { width: columns.map_or(Self::PLAIN.width, |columns| columns.max(40)), ..Self::PLAIN };
        }
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let width = terminal_size::terminal_size().map_or(80, |(width, _)| usize::from(width.0));
        Self { color: !refused && !dumb, width: width.max(40) }
    }

    /// `text` in a look, where there is colour.
    pub(super) fn paint(&self, text: &str, look: Look) -> String {
        let code = look as u8;
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_string() }
    }

    /// `text` broken at spaces to the width; every line but the first is indented by `indent` characters. What the names in it hold is harmless
    /// from here on.
    pub(super) fn wrap(&self, text: &str, indent: usize) -> String {
        let text = foreign::line(text);
        let mut result = String::new();
        let mut used = 0;
        for (i, word) in text.split(' ').enumerate() {
            let length = word.chars().count();
            if used > indent && used + 1 + length > self.width {
                result.push('\n');
                result.push_str(&" ".repeat(indent));
                used = indent;
            } else if i > 0 {
                result.push(' ');
                used += 1;
            }
            result.push_str(word);
            used += length;
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_at_spaces_and_keep_their_indent() {
        let style = Style { color: false, width: 12 };
        assert_eq!(style.wrap("Note     one two three", 4), "Note     one\n    two\n    three");
        assert_eq!(Style::PLAIN.wrap("  a b", 4), "  a b");
        assert_eq!(Style::PLAIN.wrap("a\n\u{1b}[2Jb", 4), "a\\n\\u001b[2Jb", "a name's own line ends are none");
    }
}
