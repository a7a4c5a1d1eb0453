//! A whole table in memory.

use super::Hints;
use super::layout::{Record, told_apart};

/// A named value of a row.
pub(super) type NamedValues = Vec<(String, String)>;

/// A value under a name.
pub(super) fn pair(name: &str, value: impl Into<String>) -> (String, String) {
    (name.to_string(), value.into())
}

/// Names and rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Grid {
    pub names: Vec<String>,
    pub rows: Vec<Record>,
    pub notes: Vec<String>,
    pub hints: Hints,
    /// Whether its fields were separated by semicolons.
    pub semicolons: bool,
}

impl Grid {
    /// The grid of named values in rows that need not have the same names.
    pub fn of_rows(rows: Vec<NamedValues>) -> Self {
        let mut names: Vec<String> = Vec::new();
        let mut places = std::collections::HashMap::new();
        let mut records = Vec::with_capacity(rows.len());
        for (at, row) in rows.into_iter().enumerate() {
            let mut fields = vec![String::new(); names.len()];
            for (name, value) in row {
                let place = *places.entry(name.clone()).or_insert_with(|| {
                    names.push(name);
                    names.len() - 1
                });
                fields.resize(fields.len().max(place + 1), String::new());
                fields[place] = value;
            }
            records.push(Record { line: at + 1, fields });
        }
        records.iter_mut().for_each(|record| record.fields.resize(names.len(), String::new()));
        Self { names: told_apart(names), rows: records, ..Self::default() }
    }

    /// The same, of a tool whose columns are known; `None` without rows.
    pub fn of_tool(rows: Vec<NamedValues>, x: &'static [&'static str], y: &'static [&'static str]) -> Option<Self> {
        (!rows.is_empty()).then(|| Self { hints: Hints { x, y }, ..Self::of_rows(rows) })
    }

    pub fn column(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|own| own == name)
    }

    pub fn cells(&self, column: usize) -> impl Iterator<Item = &str> {
        self.rows.iter().map(move |row| row.fields.get(column).map_or("", String::as_str))
    }

    /// Adds a column.
    pub fn add(&mut self, name: String, cells: Vec<String>) {
        self.names.push(name);
        self.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.fields.push(cell));
    }
}

#[cfg(test)]
impl Grid {
    /// The names, and the fields of each row.
    pub fn joined(&self) -> (String, Vec<String>) {
        (self.names.join(","), self.rows.iter().map(|row| row.fields.join(",")).collect())
    }
}
