//! Where in a text the table is: which line names its columns, which is its first row, and where it ends.

use super::cell::{has_digit, is_bare_number, is_missing, is_number, unit_of};
use crate::error::{Error, Result};

/// A line of a text, in fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Record {
    /// From 1 on.
    pub line: usize,
    pub fields: Vec<String>,
}

/// The table in a text.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Layout {
    pub names: Vec<String>,
    /// The line of its first row.
    pub first: usize,
    /// Fields of a row.
    fields: usize,
    /// Whether the first field of a row has no name, as the index that pandas prints.
    has_index: bool,
    /// Whether a line of the text names its columns.
    pub is_named: bool,
    /// Rows of the records that it was found in.
    pub rows: usize,
}

/// What a record is to a table.
#[derive(Debug, PartialEq)]
pub(super) enum RecordKind {
    Row,
    /// The names again, or other text: the table ends before it.
    End,
}

/// A header with at least this many sizes makes a table wide.
pub(super) const FEWEST_SIZES: usize = 3;

impl Layout {
    /// The table with the most rows of one length; `comments` may name its columns. `is_aligned` allows a column without a name.
    pub fn find(records: &[Record], comments: &[Record], is_aligned: bool) -> Option<Self> {
        let is_data = |record: &&Record| record.fields.len() > 1 && digits(record) > 1;
        let mut counts: Vec<(usize, usize)> = Vec::new();
        for record in records.iter().filter(is_data) {
            match counts.iter_mut().find(|(fields, _)| *fields == record.fields.len()) {
                Some((_, rows)) => *rows += 1,
                None => counts.push((record.fields.len(), 1)),
            }
        }
        let most = counts.iter().map(|(_, rows)| *rows).max()?;
        // The first of two tables counts.
        let (fields, rows) = *counts.iter().find(|(_, rows)| 3 * rows >= most)?;
        let data = records.iter().position(|record| record.fields.len() == fields && is_data(&record))?;
        let start = (0..data).rev().take_while(|&at| records[at].fields.len() == fields).last().unwrap_or(data);
        let named = (start..=data).rev().find(|&at| is_header(&records[at]) && records.len() > at + 1);
        let found = |names: Vec<String>, first: usize, has_index: bool| {
            let names = told_apart(names);
            Some(Self { names, first: records[first].line, fields, has_index, is_named: true, rows })
        };
        if let Some(at) = named {
            let above = (start..at).last().filter(|&above| is_header(&records[above]) && is_units(&records[at]));
            let joined = above.map(|above| with_units(names(&records[above], fields), &records[at]));
            return found(joined.unwrap_or_else(|| names(&records[at], fields)), at + 1, false);
        }
        let comment =
            comments.iter().rev().find(|comment| comment.line < records[data].line && comment.fields.len() == fields);
        if let Some(comment) = comment.filter(|comment| !comment.fields.iter().any(|name| is_bare_number(name))) {
            return found(names(comment, fields), data, false);
        }
        if let Some(before) = data.checked_sub(1).map(|at| &records[at]).filter(|before| is_header(before)) {
            let count = before.fields.len();
            // Names between which there is one blank, above columns that more divide.
            let words: Vec<String> = before.fields.join(" ").split_whitespace().map(cleaned).collect();
            if is_aligned && words.len() == fields {
                return found(words, data, false);
            }
            if is_aligned && fields > 2 && count + 1 == fields && is_bare_number(&records[data].fields[0]) {
                return found(names(before, fields - 1), data, true);
            }
            if !is_aligned && count > 1 {
                let found = found(names(before, count), data, false);
                return found.map(|found| Self { fields: count, is_named: false, ..found });
            }
        }
        let unnamed = (1..=fields).map(|at| format!("column {at}")).collect();
        found(unnamed, data, false).map(|found| Self { is_named: false, ..found })
    }

    /// What a record behind the first row is; `apart` says that an empty line stands before it. A row is made as long as the names.
    ///
    /// # Errors
    /// [`crate::error::Kind::Data`] where it has more fields than the names, and all are numbers.
    pub fn part(&self, record: &mut Record, apart: bool) -> Result<RecordKind> {
        let count = record.fields.len();
        let starts_as_row = record.fields.first().is_some_and(|first| has_digit(first));
        if count == self.fields {
            if !starts_as_row
                && is_header(record)
                && record.fields.iter().all(|field| !is_missing(field))
                && self.ends(record)
            {
                return Ok(RecordKind::End);
            }
        } else {
            let empty = record.fields.iter().skip(self.fields).all(|field| field.is_empty());
            let is_text = record.fields.iter().any(|field| !is_number(field) && !field.is_empty());
            // A line without fields is text, unless it is the size of a run that failed.
            let is_lone = count == 1 && !is_bare_number(&record.fields[0]);
            if apart || !starts_as_row || is_lone {
                return Ok(RecordKind::End);
            }
            if count > self.fields && !empty && !is_text || count < self.fields && !is_text {
                return Err(self.refusal(record));
            }
            record.fields.resize(self.fields, String::new());
        }
        if self.has_index {
            record.fields.remove(0);
        }
        Ok(RecordKind::Row)
    }

    /// Repairs a row of aligned columns. If a long number leaves only one blank before the next, the row is split by words. If values are
    /// missing, it is not known which, and only the size is kept.
    pub fn align(&self, record: &mut Record, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (count, first) = (record.fields.len(), words.first().copied().unwrap_or_default());
        if count == self.fields || count < 2 && words.len() < 2 || !is_number(first) {
            return;
        }
        let is_whole = words.len() == self.fields;
        if is_whole || count < self.fields {
            record.fields =
                words.into_iter().take(if is_whole { self.fields } else { 1 }).map(str::to_string).collect();
            record.fields.resize(self.fields, String::new());
        }
    }

    /// Whether a row after a line of text continues the table: its size ascends, while another table would begin with a smaller size.
    pub fn goes_on(&self, last: &Record, next: &Record) -> bool {
        let size = |record: &Record| record.fields.first()?.parse::<f64>().ok();
        next.fields.len() == self.fields
            && !self.has_index
            && size(last).zip(size(next)).is_some_and(|(last, next)| next > last)
    }

    /// Whether a record without numbers names columns: those of this table again, or others.
    fn ends(&self, record: &Record) -> bool {
        let again = record.fields.iter().zip(&self.names).filter(|(field, name)| cleaned(field) == **name).count();
        again > 0 || digits(record) == 0
    }

    fn refusal(&self, record: &Record) -> Error {
        let (count, names) = (record.fields.len(), self.fields);
        let error = Error::data(format!("this line has {count} fields, the header has {names}"));
        error.hint(match count > names {
            true => "where numbers have decimal commas, separate the fields by semicolons or tabs",
            false => "give every line as many fields as there are names; an empty field says that there is no value",
        })
    }
}

/// How many fields hold a digit and are short enough for a value.
fn digits(record: &Record) -> usize {
    let value = |field: &&String| field.len() < 60 && has_digit(field);
    record.fields.iter().filter(value).count()
}

/// Whether a record is a header: its names are not numbers, or it is one name followed by ascending sizes.
fn is_header(record: &Record) -> bool {
    let Some((first, rest)) = record.fields.split_first() else { return false };
    if record.fields.iter().all(String::is_empty) || is_number(first) {
        return false;
    }
    if rest.iter().all(|field| !is_number(field)) {
        return true;
    }
    let sizes: Vec<f64> = rest.iter().filter_map(|field| field.parse().ok()).collect();
    sizes.len() >= FEWEST_SIZES
        && sizes.len() == rest.len()
        && sizes.iter().all(|size| size.fract() == 0.0)
        && sizes.is_sorted_by(|a, b| a < b)
}

/// Whether a line below the names holds their units: `ms`, `[GB/s]`, `-`, or nothing.
fn is_units(record: &Record) -> bool {
    let bare = |field: &str| field.trim_matches(|letter: char| "[]()".contains(letter)).to_string();
    let is_unit = |field: &String| is_missing(field) || bare(field) == "-" || unit_of(&bare(field)).is_some();
    record.fields.iter().all(is_unit) && record.fields.iter().any(|field| unit_of(&bare(field)).is_some())
}

fn with_units(names: Vec<String>, units: &Record) -> Vec<String> {
    let joined = |(name, unit): (String, &String)| {
        let unit = unit.trim_matches(|letter: char| "[]()".contains(letter));
        if is_missing(unit) { name } else { format!("{name} ({unit})") }
    };
    names.into_iter().zip(&units.fields).map(joined).collect()
}

fn names(record: &Record, fields: usize) -> Vec<String> {
    record.fields.iter().take(fields).map(|name| cleaned(name)).collect()
}

/// A name without marks of comments, bold type, and more than one blank in a row.
pub(super) fn cleaned(name: &str) -> String {
    let name = name
        .trim()
        .trim_start_matches('#')
        .trim_matches(|letter: char| letter.is_whitespace() || "*`\"".contains(letter));
    name.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Columns without a name, and those of one name, get names of their own: `time (us)` and `time 2 (us)`.
pub(super) fn told_apart(names: Vec<String>) -> Vec<String> {
    let mut told: Vec<String> = Vec::with_capacity(names.len());
    for (at, name) in names.into_iter().enumerate() {
        let name = if name.is_empty() { format!("column {}", at + 1) } else { name };
        let numbered = |number: usize| match name.find(['(', '[']).filter(|at| *at > 0) {
            Some(at) => format!("{} {number} {}", name[..at].trim_end(), &name[at..]),
            None => format!("{name} {number}"),
        };
        let own = if told.contains(&name) { (2..).map(numbered).find(|own| !told.contains(own)) } else { None };
        told.push(own.unwrap_or(name));
    }
    told
}
