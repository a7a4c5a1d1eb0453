//! A strict reader over a parsed TOML document: it remembers which keys were asked for, refuses all others, and knows the
//! line of everything it reads.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Error, Result, nearest};

/// The text of a spec and the name to call it by in messages.
#[derive(Clone, Copy)]
pub(crate) struct Document<'a> {
    pub origin: &'a str,
    pub text: &'a str,
}

impl Document<'_> {
    /// `file.toml:7`, counted from 1.
    fn place(&self, span: &Range<usize>) -> String {
        let upto = &self.text[..span.start.min(self.text.len())];
        format!("{}:{}", self.origin, upto.matches('\n').count() + 1)
    }

    /// What the TOML parser refused, with its line.
    pub fn syntax_error(&self, error: &toml::de::Error) -> Error {
        let place = error.span().map_or_else(|| self.origin.to_string(), |span| self.place(&span));
        Error::spec(format!("not valid TOML: {}", error.message().trim().replace('\n', "; "))).at(place)
    }

    /// The folder that paths of the document are relative to.
    pub fn folder(&self) -> PathBuf {
        Path::new(self.origin).parent().map(Path::to_path_buf).unwrap_or_default()
    }
}

/// One table of the spec.
pub(crate) struct Section<'a, 'i> {
    document: Document<'a>,
    path: String,
    table: &'a DeTable<'i>,
    span: Range<usize>,
    known: Vec<&'static str>,
}

impl<'a, 'i> Section<'a, 'i> {
    pub fn root(document: Document<'a>, root: &'a Spanned<DeTable<'i>>) -> Self {
        Self { document, path: String::new(), table: root.get_ref(), span: root.span(), known: Vec::new() }
    }

    fn join(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_string() } else { format!("{}.{key}", self.path) }
    }

    /// The value of `key`, if given; from now on `key` is a known one.
    pub fn get(&mut self, key: &'static str) -> Option<Field<'a, 'i>> {
        if !self.known.contains(&key) {
            self.known.push(key);
        }
        #[cfg(test)]
        asked::note(&self.join(key));
        let value = self.table.get(key)?;
        Some(Field { document: self.document, path: self.join(key), value })
    }

    /// The value of `key` as `read` reads it, if given.
    pub fn read<T>(&mut self, key: &'static str, read: impl FnOnce(&Field<'a, 'i>) -> Result<T>) -> Result<Option<T>> {
        self.get(key).map(|field| read(&field)).transpose()
    }

    /// The table under `key`, if given.
    pub fn section(&mut self, key: &'static str) -> Result<Option<Section<'a, 'i>>> {
        self.read(key, |field| field.section())
    }

    /// An error about the table as a whole.
    pub fn error(&self, what: impl Into<String>) -> Error {
        let place = self.document.place(&self.span);
        Error::spec(what).at(if self.path.is_empty() { place } else { format!("{place}: [{}]", self.path) })
    }

    /// Every key that was not read, in the order of the document.
    pub fn others(self) -> Vec<(String, Field<'a, 'i>)> {
        let mut others: Vec<_> =
            self.table.iter().filter(|(key, _)| !self.known.contains(&key.get_ref().as_ref())).collect();
        others.sort_by_key(|(key, _)| key.span().start);
        let field = |(key, value): (&Spanned<std::borrow::Cow<'i, str>>, &'a Spanned<DeValue<'i>>)| {
            let name = key.get_ref().as_ref();
            (name.to_string(), Field { document: self.document, path: self.join(name), value })
        };
        others.into_iter().map(field).collect()
    }

    /// Refuses every key that was not read.
    pub fn finish(self) -> Result<()> {
        for (key, _) in self.table.iter() {
            let name = key.get_ref().as_ref();
            if self.known.contains(&name) {
                continue;
            }
            let place = format!("{}: {}", self.document.place(&key.span()), self.join(name));
            let error = Error::spec(format!("unknown key `{name}`")).at(place);
            return Err(match nearest(name, &self.known) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error.hint(format!("the keys here are: {}", self.known.join(", "))),
            });
        }
        Ok(())
    }
}

/// One value of the spec.
#[derive(Clone)]
pub(crate) struct Field<'a, 'i> {
    document: Document<'a>,
    path: String,
    value: &'a Spanned<DeValue<'i>>,
}

impl<'a, 'i> Field<'a, 'i> {
    /// An error at this value.
    pub fn error(&self, what: impl Into<String>) -> Error {
        Error::spec(what).at(format!("{}: {}", self.document.place(&self.value.span()), self.path))
    }

    fn expected(&self, what: &str) -> Error {
        let span = self.value.span();
        let given = self.document.text.get(span).unwrap_or("").trim();
        let given: String = given.chars().take(60).collect();
        self.error(format!("expected {what}, got {given}"))
    }

    /// Whether it is the value of this key.
    pub fn path_ends_with(&self, key: &str) -> bool {
        self.path.rsplit('.').next() == Some(key)
    }

    /// A path that is relative to the document's folder.
    pub fn path(&self) -> Result<PathBuf> {
        Ok(self.document.folder().join(self.text()?))
    }

    pub fn section(&self) -> Result<Section<'a, 'i>> {
        match self.value.get_ref() {
            DeValue::Table(table) => Ok(Section {
                document: self.document,
                path: self.path.clone(),
                table,
                span: self.value.span(),
                known: Vec::new(),
            }),
            _ => Err(self.expected("a table")),
        }
    }

    /// The elements of a list, or the value itself where it is not a list: an axis of one.
    pub fn elements(&self) -> Result<Vec<Field<'a, 'i>>> {
        match self.value.get_ref() {
            DeValue::Array(array) if array.is_empty() => Err(self.error("an empty list names no value")),
            DeValue::Array(array) => Ok(array
                .iter()
                .enumerate()
                .map(|(i, value)| Field { document: self.document, path: format!("{}[{i}]", self.path), value })
                .collect()),
            _ => Ok(vec![self.clone()]),
        }
    }

    /// The elements of a list, which may be empty, as `read` reads them.
    pub fn each<T>(&self, read: impl Fn(&Self) -> Result<T>) -> Result<Vec<T>> {
        match self.value.get_ref() {
            DeValue::Array(array) if array.is_empty() => Ok(Vec::new()),
            _ => self.elements()?.iter().map(read).collect(),
        }
    }

    pub fn is_list(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::Array(_))
    }

    pub fn is_text(&self) -> bool {
        matches!(self.value.get_ref(), DeValue::String(_))
    }

    pub fn text(&self) -> Result<String> {
        match self.value.get_ref() {
            DeValue::String(text) => Ok(text.to_string()),
            _ => Err(self.expected("a string in quotes")),
        }
    }

    /// A number, a text or a truth value.
    pub fn scalar(&self) -> Result<serde_json::Value> {
        match self.value.get_ref() {
            DeValue::Boolean(value) => Ok((*value).into()),
            DeValue::String(text) => Ok(text.to_string().into()),
            DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
                .map(serde_json::Value::from)
                .map_err(|_| self.expected("a whole number of at most 64 bits")),
            DeValue::Float(_) => self.number(f64::MIN, f64::MAX).map(serde_json::Value::from),
            _ => Err(self.expected("a number, a string, or true or false")),
        }
    }

    pub fn boolean(&self) -> Result<bool> {
        match self.value.get_ref() {
            DeValue::Boolean(value) => Ok(*value),
            _ => Err(self.expected("true or false")),
        }
    }

    /// A whole number in `low..=high`.
    pub fn integer(&self, low: u64, high: u64) -> Result<u64> {
        let expected = || self.expected(&format!("a whole number from {low} to {high}"));
        let DeValue::Integer(integer) = self.value.get_ref() else { return Err(expected()) };
        let value = u64::from_str_radix(integer.as_str(), integer.radix()).map_err(|_| expected())?;
        if (low..=high).contains(&value) { Ok(value) } else { Err(expected()) }
    }

    pub fn count(&self, low: usize, high: usize) -> Result<usize> {
        Ok(usize::try_from(self.integer(low as u64, high as u64)?).unwrap_or(high))
    }

    /// A finite number in `low..=high`; whole numbers count.
    pub fn number(&self, low: f64, high: f64) -> Result<f64> {
        let expected = || self.expected(&format!("a number from {low} to {high}"));
        let value: f64 = match self.value.get_ref() {
            DeValue::Float(float) => float.as_str().replace('_', "").parse().map_err(|_| expected())?,
            DeValue::Integer(integer) => integer.as_str().parse().map_err(|_| expected())?,
            _ => return Err(expected()),
        };
        if value >= low && value <= high { Ok(value) } else { Err(expected()) }
    }

    /// A text that `read` understands; `what` describes what it wants, with an example.
    pub fn parsed<T>(&self, what: &str, read: impl Fn(&str) -> Option<T>) -> Result<T> {
        let DeValue::String(text) = self.value.get_ref() else { return Err(self.expected(what)) };
        read(text).ok_or_else(|| self.expected(what))
    }

    /// One of a few names.
    pub fn choice<T>(&self, names: &[&str], read: impl Fn(&str) -> Option<T>) -> Result<T> {
        let text = self.text()?;
        read(&text).ok_or_else(|| {
            let error = self.error(format!("`{text}` is none of: {}", names.join(", ")));
            match nearest(&text, names) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None => error,
            }
        })
    }
}

/// The keys that were asked for in this thread, for the test that holds them against the page of keys.
#[cfg(test)]
pub(super) mod asked {
    use std::cell::RefCell;
    use std::collections::BTreeSet;

    thread_local! {
        static ASKED: RefCell<BTreeSet<String>> = const { RefCell::new(BTreeSet::new()) };
    }

    pub fn note(path: &str) {
        ASKED.with_borrow_mut(|asked| asked.insert(path.to_owned()));
    }

    /// All since the thread began.
    pub fn all() -> BTreeSet<String> {
        ASKED.with_borrow(Clone::clone)
    }
}
