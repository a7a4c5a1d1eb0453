//! How much work a step of a size is, as a formula in the size: `N^3`, `2 * (seq_len + 1)`.

use std::fmt;

#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    text: String,
    name: String,
    tree: Tree,
}

#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Number(f64),
    Size,
    Of(char, Box<Tree>, Box<Tree>),
}

impl Formula {
    /// Numbers, one name, `+ - * / ^` and parentheses; `None` for anything else. A power binds to the right, as in Python.
    ///
    /// ```
    /// use batchstep::analysis::advice::Formula;
    /// let work = Formula::parse("2 * N^3").expect("a formula");
    /// assert_eq!((work.name(), work.at(10.0)), ("N", 2000.0));
    /// assert!(Formula::parse("N * K").is_none(), "two names");
    /// ```
    pub fn parse(text: &str) -> Option<Self> {
        let mut parser = Parser { rest: text, name: None };
        let tree = if text.len() <= LONGEST { parser.sum()? } else { return None };
        let is_done = parser.rest.trim().is_empty();
        Some(Self { text: text.trim().to_owned(), name: parser.name?.to_owned(), tree }).filter(|_| is_done)
    }

    /// The size itself.
    pub(super) fn of_size(name: &str) -> Self {
        Self { text: name.to_owned(), name: name.to_owned(), tree: Tree::Size }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The work of a step of size `x`.
    pub fn at(&self, x: f64) -> f64 {
        self.tree.at(x)
    }
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.tree {
            Tree::Of('^', ..) | Tree::Size => f.write_str(&self.text),
            _ => write!(f, "({})", self.text),
        }
    }
}

impl Tree {
    fn at(&self, x: f64) -> f64 {
        match self {
            Self::Number(number) => *number,
            Self::Size => x,
            Self::Of(sign, left, right) => {
                let (left, right) = (left.at(x), right.at(x));
                match sign {
                    '+' => left + right,
                    '-' => left - right,
                    '*' => left * right,
                    '/' => left / right,
                    _ => left.powf(right),
                }
            }
        }
    }
}

/// Bytes of a formula, which bound how deep it nests.
const LONGEST: usize = 200;

struct Parser<'a> {
    rest: &'a str,
    name: Option<&'a str>,
}

impl<'a> Parser<'a> {
    fn sum(&mut self) -> Option<Tree> {
        self.chain(&['+', '-'], Self::product)
    }

    fn product(&mut self) -> Option<Tree> {
        self.chain(&['*', '/'], Self::power)
    }

    fn chain(&mut self, signs: &[char], part: fn(&mut Self) -> Option<Tree>) -> Option<Tree> {
        let mut left = part(self)?;
        while let Some(sign) = signs.iter().copied().find(|sign| self.take(*sign)) {
            left = Tree::Of(sign, Box::new(left), Box::new(part(self)?));
        }
        Some(left)
    }

    fn power(&mut self) -> Option<Tree> {
        let base = self.atom()?;
        Some(if self.take('^') { Tree::Of('^', Box::new(base), Box::new(self.power()?)) } else { base })
    }

    fn atom(&mut self) -> Option<Tree> {
        if self.take('(') {
            return self.sum().filter(|_| self.take(')'));
        }
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
        let word = &self.rest[..self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len())];
        self.rest = &self.rest[word.len()..];
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            return word.parse().ok().map(Tree::Number);
        }
        let is_same = !word.is_empty() && self.name.is_none_or(|name| name == word);
        self.name = Some(word);
        is_same.then_some(Tree::Size)
    }

    fn take(&mut self, sign: char) -> bool {
        self.rest = self.rest.trim_start();
        let after = self.rest.strip_prefix(sign).map(str::trim_start);
        self.rest = after.unwrap_or(self.rest);
        after.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formulas_are_read_as_python_reads_them() {
        let cases = [
            ("N^3", 1000.0),
            ("2*N^3 + 4", 2004.0),
            ("(N - 1) / 2 * N", 45.0),
            ("N^2^0.5", 10f64.powf(2f64.powf(0.5))),
            ("100 - N - 5", 85.0),
            (" seq_len ", 10.0),
        ];
        for (text, expected) in cases {
            let at_ten = Formula::parse(text).map(|formula| formula.at(10.0));
            assert_eq!(at_ten, Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_formula_in_one_name_is_refused() {
        let deep = "(".repeat(100_000) + "N";
        let powers = "N^".repeat(100_000) + "N";
        for text in ["", "5", "N *", "N K", "N * K", "(N", "N)", "N; rm", "N**3", "-N", "3N", &deep, &powers] {
            assert_eq!(Formula::parse(text), None, "{:.20}", text);
        }
    }
}
