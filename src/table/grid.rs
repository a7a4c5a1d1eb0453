//! A whole table in memory, put in order before its columns are looked at.

use std::path::Path;

use super::cell::{has_digit, is_missing, is_number};
use super::json::NamedValues;
use super::layout::{Record, RecordKind, told_apart};
use super::text::{self, Fields};
use super::{Hints, at_line, console, facts, json, log, pattern, refusal, wide};
use crate::error::{Error, Result};

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

    /// Moves units from a separate column behind the values, sizes from headers into rows, and numbers from names into columns.
    pub fn in_order(mut self) -> Self {
        self.fill_down();
        self.join_units();
        self.name_units();
        self.drop_aggregates();
        self.per_iteration();
        self.name_llama();
        wide::melt(&mut self);
        pattern::derive(&mut self);
        self
    }

    /// Copies a text down to the empty rows below it: merged cells are written only in their first row.
    fn fill_down(&mut self) {
        for column in 0..self.names.len() {
            let is_text = !self.cells(column).any(is_number);
            let is_merged = self.cells(column).next().is_some_and(|first| !is_missing(first));
            // A text that is written twice in a row is not merged: an empty cell beside it is a value of its own.
            let cells: Vec<&str> = self.cells(column).collect();
            let is_repeated = cells.windows(2).any(|pair| !pair[0].is_empty() && pair[0] == pair[1]);
            if !is_text || !is_merged || is_repeated || !cells.contains(&"") {
                continue;
            }
            let mut last = String::new();
            for field in self.rows.iter_mut().filter_map(|row| row.fields.get_mut(column)) {
                match field.is_empty() {
                    true => field.clone_from(&last),
                    false => last.clone_from(field),
                }
            }
        }
    }

    /// JMH and criterion write the unit of a score in a column beside it.
    fn join_units(&mut self) {
        const UNITS: &[&str] = &["unit", "units", "time_unit", "score unit", "scoreunit"];
        const VALUES: &[&str] = &["sample_measured_value", "score", "real_time", "value", "mean", "time", "measured"];
        let column = |name: &&str| self.names.iter().position(|own| own.to_lowercase() == **name);
        let find = |names: &[&str]| names.iter().find_map(column);
        let (Some(unit), Some(value)) = (find(UNITS), find(VALUES)) else { return };
        for row in &mut self.rows {
            let unit = row.fields.get(unit).cloned().unwrap_or_default();
            if let Some(value) = row.fields.get_mut(value).filter(|value| is_number(value) && !unit.is_empty()) {
                value.push_str(&format!(" {unit}"));
            }
        }
    }

    /// pytest-benchmark writes the unit in the name of another column, `Name (time in us)`.
    fn name_units(&mut self) {
        const TIMES: &[&str] = &["Min", "Max", "Mean", "StdDev", "Median", "IQR"];
        let unit = |name: &String| Some(name.split_once(" (time in ")?.1.strip_suffix(')')?.to_string());
        let Some((at, unit)) = self.names.iter().enumerate().find_map(|(at, name)| Some((at, unit(name)?))) else {
            return;
        };
        self.names[at] = "Name".to_string();
        for name in self.names.iter_mut().filter(|name| TIMES.contains(&&name[..])) {
            name.push_str(&format!(" ({unit})"));
        }
    }

    /// Google Benchmark prints means and complexities below the repetitions that they are of.
    fn drop_aggregates(&mut self) {
        const AGGREGATES: &[&str] = &["_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS", "_max", "_min"];
        let name = self.column("Benchmark").filter(|_| self.column("CPU").is_some());
        let Some(name) = name.or(self.column("name").filter(|_| self.column("real_time").is_some())) else { return };
        let is_aggregate =
            |row: &Record| row.fields.get(name).is_some_and(|own| AGGREGATES.iter().any(|end| own.ends_with(end)));
        // Where only they were written, the means.
        let is_mean = |row: &Record| row.fields.get(name).is_some_and(|own| own.ends_with("_mean"));
        match self.rows.iter().all(is_aggregate) {
            true => self.rows.retain(is_mean),
            false => self.rows.retain(|row| !is_aggregate(row)),
        }
    }

    /// criterion's raw.csv has the time of many iterations in a row; hyperfine's CSV does not say that its times are seconds.
    fn per_iteration(&mut self) {
        if let (Some(time), Some(count), Some(size)) =
            (self.column("sample_measured_value"), self.column("iteration_count"), self.column("value"))
        {
            for row in &mut self.rows {
                let Some((number, unit)) = row.fields[time].split_once(' ') else { continue };
                let (Ok(number), Ok(count)) = (number.parse::<f64>(), row.fields[count].parse::<f64>()) else {
                    continue;
                };
                row.fields[time] = format!("{} {unit}", number / count);
            }
            (self.names[time], self.names[size]) = ("time".to_string(), "size".to_string());
            self.hints = Hints { x: &["size", "function (number)", "group (number)"], y: &["time"] };
        }
        let is_hyperfine =
            ["command", "mean", "stddev", "median", "user", "system"].iter().all(|name| self.column(name).is_some());
        if let Some(mean) = self.column("mean").filter(|_| is_hyperfine) {
            self.names[mean] = "mean_s".to_string();
        }
    }

    /// llama-bench names its tests `pp512`, `tg128`, and with a depth `pp512 @ d4096`, which it leaves out where it is 0.
    fn name_llama(&mut self) {
        let (Some(test), Some(_)) = (self.column("test"), self.column("t/s")) else { return };
        self.hints = Hints { x: &["test (number)"], y: &["t/s"] };
        if self.cells(test).any(|cell| cell.contains(" @ d")) {
            let bare = |cell: &&mut String| !cell.contains(" @ d");
            self.rows
                .iter_mut()
                .filter_map(|row| row.fields.get_mut(test))
                .filter(bare)
                .for_each(|cell| cell.push_str(" @ d0"));
        }
    }
}

#[cfg(test)]
impl Grid {
    /// The names, and the fields of each row.
    pub fn joined(&self) -> (String, Vec<String>) {
        (self.names.join(","), self.rows.iter().map(|row| row.fields.join(",")).collect())
    }
}

/// The refusal of a table of names, and its remedy.
pub(super) const NO_ROWS: &str = "the table has no rows";
pub(super) const ROWS: &str = "a table needs rows of numbers under the names of its columns";

/// The note on what stands behind a table.
pub(super) fn note_of_end(line: usize) -> String {
    format!("the table ends before line {line}: what follows is text or another table, and is left out")
}

/// The table in a text.
///
/// # Errors
/// [`crate::error::Kind::Data`] where there is none.
pub(super) fn of_text(text: &str, path: &Path) -> Result<Grid> {
    let here = |error: Error| at_line(error, path, 0);
    let known = json::grid(text).map_err(here)?.or_else(|| log::grid(text)).or_else(|| console::grid(text));
    if let Some(grid) = known {
        return Ok(grid.in_order());
    }
    refusal::of_known(text).map_or(Ok(()), |error| Err(here(error)))?;
    let table = text::recognise(text);
    // Names with numbers in them are the first line of a log.
    let is_log = |name: &String| has_digit(name) && name.contains([':', '=']);
    if table.as_ref().is_none_or(|(_, layout)| !layout.is_named || layout.names.iter().any(is_log))
        && let Some(grid) = facts::grid(text)
    {
        return Ok(grid.in_order());
    }
    let (way, layout) = table.ok_or_else(|| here(refusal::of_text(text)))?;
    let lines: Vec<&str> = text.lines().collect();
    let mut grid = Grid { names: layout.names.clone(), semicolons: way == Fields::Separated(b';'), ..Grid::default() };
    let (mut before, mut left_out, mut repeated) = (layout.first, 0, 0);
    let has_rounds = layout.names.iter().any(|name| name.trim().eq_ignore_ascii_case("block"));
    let above = lines.get(..layout.first.saturating_sub(1)).unwrap_or_default();
    let holds = |record: &Record| record.line >= layout.first && record.fields.iter().any(|field| !field.is_empty());
    let mut records = text::records(text, way).records.into_iter().filter(holds).peekable();
    while let Some(mut record) = records.next() {
        let at = record.line;
        let line = lines.get(at - 1).copied().unwrap_or_default();
        if matches!(way, Fields::Columns | Fields::Blanks) {
            layout.align(&mut record, line);
        }
        let between = lines.get(before..at - 1).unwrap_or_default();
        let apart = between.iter().any(|line| line.trim().is_empty());
        before = at;
        // Tables of several rounds in one file, as `>>` makes it: the column `block` tells them apart.
        if has_rounds && !apart && !grid.rows.is_empty() && above.contains(&line) {
            repeated += 1;
            continue;
        }
        if let Fields::Separated(separator) = way
            && let Some(error) = text::unclosed(&record, separator, layout.names.len())
        {
            return Err(at_line(error, path, at));
        }
        let around = (grid.rows.last(), records.peek());
        match layout.part(&mut record, apart).map_err(|e| at_line(e, path, at))? {
            RecordKind::Row => grid.rows.push(record),
            RecordKind::End if matches!(around, (Some(last), Some(next)) if layout.goes_on(last, next)) => {
                left_out += 1
            }
            RecordKind::End => {
                grid.notes.push(note_of_end(at));
                break;
            }
        }
    }
    if repeated > 0 {
        let times = if repeated == 1 { "once more".to_owned() } else { format!("{repeated} times more") };
        grid.notes.push(format!("the line of names comes {times}: what follows it is read as the same table"));
    }
    if left_out > 0 {
        let what = if left_out == 1 { "line of text between rows is" } else { "lines of text between rows are" };
        grid.notes.push(format!("{left_out} {what} left out"));
    }
    if grid.rows.is_empty() {
        return Err(here(Error::data(NO_ROWS).hint(ROWS)));
    }
    Ok(grid.in_order())
}
