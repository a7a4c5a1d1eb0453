//! Which columns of a table hold the times or rates that were measured.

use super::amounts::{is_batch_size, is_setting, is_size};
use super::cell::is_missing;
use super::names::{Reading, STEP_TIMES};
use super::refusal::{ambiguous, short, shown};
use super::seen::{EXTREME, TYPICAL};
use super::units::TimeOrRate;
use super::{ColumnSample, Hints};
use crate::error::{Error, Result};

/// More columns of values are chosen by a person.
const MOST_VALUES: usize = 8;

/// A column, and what its name says.
type Read<'p> = (&'p ColumnSample, Reading);
type IsOne<'f> = dyn Fn(&Read) -> bool + 'f;

/// The columns of times or rates: columns with usual names of times, else any rates, else other possible times, else the remaining columns.
pub(super) fn y_of(
    profile: &[ColumnSample],
    columns: &[&ColumnSample],
    hints: Hints,
    asked: Option<TimeOrRate>,
) -> Result<Vec<String>> {
    let fits = |kind: TimeOrRate| asked.is_none_or(|asked| asked == kind);
    let is_hinted = |column: &&&ColumnSample| {
        let is_it = |name: &&str| column.name == *name || column.name.starts_with(&format!("{name} ("));
        hints.y.iter().any(is_it) && Reading::of(&column.name).kind.is_none_or(fits)
    };
    let hinted: Vec<String> = columns.iter().filter(is_hinted).map(|column| column.name.clone()).collect();
    if !hinted.is_empty() {
        return Ok(hinted);
    }
    let usable = |column: &&&ColumnSample| {
        let is_other = column.is_time_stamp() || column.is_repeat() || column.is_share() || column.is_derived();
        !is_other && !is_setting(&column.name)
    };
    let read: Vec<Read> = columns.iter().filter(usable).map(|column| (*column, Reading::of(&column.name))).collect();
    let is_named = |wanted: &&str| read.iter().find(|(_, r)| r.stem == **wanted && r.kind != Some(TimeOrRate::Rate));
    if let Some((_, usual)) = STEP_TIMES.iter().find_map(is_named).filter(|_| fits(TimeOrRate::Time)) {
        let alike = read.iter().filter(|(_, other)| other.unit == usual.unit && numbered(&usual.stem, &other.stem));
        return Ok(alike.map(|(seen, _)| seen.name.clone()).collect());
    }
    let may_be = |reading: &Reading, kind| fits(kind) && reading.may_be(kind);
    let is_left = |(column, reading): &Read| {
        reading.kind.is_none() && !reading.is_scatter() && !is_size(&column.name) && !is_batch_size(&column.name)
    };
    let ways: [(&IsOne, &str); 4] = [
        (&|(_, reading)| may_be(reading, TimeOrRate::Rate), "rate"),
        (&|(_, reading)| may_be(reading, TimeOrRate::Time), "time"),
        (&is_left, "time or rate"),
        // A speedup, where nothing else was written down.
        (&|(_, reading)| reading.kind.is_some_and(fits), "rate"),
    ];
    for (is_one, what) in ways {
        let found: Vec<&Read> = read.iter().filter(|one| is_one(one)).collect();
        if !found.is_empty() {
            return several(found, what);
        }
    }
    let what = asked.map_or("step time, or a rate".to_string(), |kind| format!("measured {}", kind.name()));
    if let Some((name, cell)) = unread(profile) {
        let what = format!("`{}` holds `{}`, which is not read as a number", short(name), short(cell));
        return Err(Error::data(what).hint("write its cells as `5226.8`, or name another column with `--y COLUMN`"));
    }
    let names = shown(profile.iter().map(|column| &column.name));
    Err(Error::data(format!("no column looks like the {what}; the columns are: {names}"))
        .hint("name it with `--y COLUMN`"))
}

/// A column of texts with the name of a time or a rate, and one of its cells.
fn unread(profile: &[ColumnSample]) -> Option<(&str, &str)> {
    let is_named = |column: &&ColumnSample| {
        let reading = Reading::of(&column.name);
        !column.is_numeric() && (reading.is_time() || reading.may_be(TimeOrRate::Rate))
    };
    let cell = |column: &ColumnSample| column.texts.iter().position(|text| !is_missing(text));
    let column = profile.iter().find(|column| is_named(column) && cell(column).is_some())?;
    Some((column.name.as_str(), column.texts[cell(column)?].as_str()))
}

/// Whether a name is another one, alone or with a number: `time` and `time 2`.
fn numbered(stem: &str, other: &str) -> bool {
    other.strip_prefix(stem).is_some_and(|rest| rest.trim_start_matches('_').bytes().all(|byte| byte.is_ascii_digit()))
}

/// Chooses the columns of values among several candidates: means rather than extremes, and with the same unit.
fn several(mut found: Vec<&Read>, what: &str) -> Result<Vec<String>> {
    let holds = |(_, reading): &Read, words: &[&str]| reading.stem.split('_').any(|word| words.contains(&word));
    let has_typical = found.iter().any(|one| holds(one, TYPICAL));
    prefer(&mut found, |one| if has_typical { holds(one, TYPICAL) } else { !holds(one, EXTREME) });
    // Values that stay the same were set.
    prefer(&mut found, |(seen, _)| seen.varies());
    prefer(&mut found, |(_, reading)| !reading.unit.is_empty());
    let count = |unit: &str| found.iter().filter(|(_, reading)| reading.unit == unit).count();
    let most = found.iter().map(|(_, reading)| count(&reading.unit)).max();
    let usual = found.iter().map(|(_, reading)| &reading.unit).find(|unit| Some(count(unit)) == most);
    let usual = found.iter().filter(|(_, reading)| Some(&reading.unit) == usual);
    let names: Vec<String> = usual.map(|(seen, _)| seen.name.clone()).collect();
    if names.len() > MOST_VALUES { Err(ambiguous(&format!("measured {what}"), &names, "--y")) } else { Ok(names) }
}

/// Keeps the better ones, where there are any.
fn prefer<T>(found: &mut Vec<&T>, is_better: impl Fn(&T) -> bool) {
    if found.iter().any(|one| is_better(one)) {
        found.retain(|one| is_better(one));
    }
}
