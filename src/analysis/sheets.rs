//! Turns a table of another program into series: one for each column of values and each combination of the keys that split it.

use std::collections::BTreeSet;
use std::path::Path;

use super::columns::Columns;
use super::gathering::{Gathering, MOST_STEPS};
use super::other_names::PEAK;
use super::{Query, Series, TimeOrRate, distinct, other_names};
use crate::error::Result;
use crate::foreign;
use crate::store::Table;
use crate::table::Sheet;

/// The name under which a group says which column of values a series is of.
const VALUES: &str = "column";

/// Every series of the table.
pub(super) fn series(path: &Path, sheet: &Sheet, query: &Query) -> Result<Vec<Series>> {
    let choice = sheet.choose(query)?;
    let most = MOST_STEPS / choice.ys.len().max(1);
    let used: Vec<String> = choice.ys.iter().chain(&choice.keys).cloned().collect();
    let others = other_names::of(sheet, path, &choice.x, &used)?;
    let gathering = |y: &String| {
        let columns = Columns::chosen(&sheet.names(), &choice, y, query, others.clone());
        Gathering::new(columns, most, None)
    };
    let mut gatherings: Vec<Gathering> = choice.ys.iter().map(gathering).collect();
    let wanted: BTreeSet<String> = gatherings.iter().flat_map(Gathering::wanted).collect();
    let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
    Table::scan_sheet(sheet, path, &wanted, &mut |batch| gatherings.iter_mut().try_for_each(|one| one.take(&batch)))?;
    let several = gatherings.len() > 1;
    let mut found = Vec::new();
    for (y, gathering) in choice.ys.iter().zip(gatherings) {
        let series = gathering.series(path).into_iter().map(|mut series| {
            if several {
                series.group.push((VALUES.to_string(), y.clone()));
            }
            series
        });
        found.extend(series);
    }
    let mut notes = notes(sheet, &choice.x, &choice.ys, choice.kind, choice.is_guess, &found);
    notes.extend(others.iter().map(|one| {
        let theirs = foreign::name(&one.theirs);
        match one.ours {
            PEAK => format!("`{theirs}` is read as the peak memory"),
            _ => format!("`{theirs}` comes once with each size and is read as the number of the pass (`block`)"),
        }
    }));
    found.iter_mut().for_each(|series| series.notes.clone_from(&notes));
    Ok(found)
}

/// The series of two columns of values of one table, which are compared like two runs; `None` of any other.
pub fn columns_apart(all: &[Series]) -> Option<[Vec<Series>; 2]> {
    let column =
        |series: &Series| series.group.last().filter(|(name, _)| name == VALUES).map(|(_, value)| value.clone());
    let columns = distinct(all.iter().map(column).collect::<Option<Vec<String>>>()?.into_iter());
    let of = |wanted: &String| -> Vec<Series> {
        let own = all.iter().filter(|series| column(series).as_ref() == Some(wanted));
        own.map(|series| Series { group: series.group[..series.group.len() - 1].to_vec(), ..series.clone() }).collect()
    };
    match &columns[..] {
        [first, second] => Some([of(first), of(second)]),
        _ => None,
    }
}

/// Notes on how the columns were read, and which were not read.
fn notes(sheet: &Sheet, x: &str, ys: &[String], kind: TimeOrRate, is_guess: bool, found: &[Series]) -> Vec<String> {
    let quoted =
        |names: &[String]| names.iter().map(|name| format!("`{}`", foreign::name(name))).collect::<Vec<_>>().join(", ");
    let mut by: Vec<String> =
        found.first().map(|series| series.group.iter().map(|(name, _)| name.clone()).collect()).unwrap_or_default();
    by.retain(|name| name != VALUES);
    let series = match (found.len(), by.is_empty()) {
        (0 | 1, _) => String::new(),
        (count, true) => format!("; {count} series"),
        (count, false) => format!("; {count} series by {}", quoted(&by)),
    };
    let what = match (kind, ys.len()) {
        (TimeOrRate::Time, 1) => "a time",
        (TimeOrRate::Time, _) => "times",
        (TimeOrRate::Rate, 1) => "a rate",
        (TimeOrRate::Rate, _) => "rates",
    };
    let mut notes = vec![format!("{} against `{}`, {what}{series}", quoted(ys), foreign::name(x))];
    if is_guess {
        let (other, larger) = match kind {
            TimeOrRate::Time => ("rate", "faster"),
            TimeOrRate::Rate => ("time", "slower"),
        };
        let verb = if ys.len() == 1 { "is" } else { "are" };
        notes.push(format!("{} {verb} read as {what}; `--y-kind {other}` if larger is {larger}", quoted(ys)));
    }
    notes.extend(sheet.notes().iter().cloned());
    notes
}
