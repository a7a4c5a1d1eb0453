//! The table in a text that is in memory as a whole, whatever its form.

use std::path::Path;

use super::cell::has_digit;
use super::grid::Grid;
use super::layout::{Record, RecordKind};
use super::text::{self, Fields};
use super::{at_line, console, facts, json, log, refusal};
use crate::error::{Error, Result};

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
