//! Which columns of a table are x, y and groups: by their names, or by their contents if the names leave it open.

use std::collections::{BTreeMap, BTreeSet};

use super::amounts::{is_batch_size, is_setting, is_size};
use super::names::Reading;
use super::refusal::{short, shown};
use super::seen::plain;
use super::sizes::x_of;
use super::units::TimeOrRate;
use super::values::y_of;
use super::{ColumnSample, Hints};
use crate::error::{Error, Result, nearest};
use crate::foreign;

/// The user's choice of columns; columns that are not chosen are found by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The column of the batch size, or of another size.
    pub x: Option<String>,
    /// The column of the time or of a rate, or several separated by commas; each column gives separate series.
    pub y: Option<String>,
    /// Which of the two it is.
    pub kind: Option<TimeOrRate>,
    /// Columns whose values make a series each.
    pub group: Option<Vec<String>>,
}

/// The columns of a table by their part.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub x: String,
    pub ys: Vec<String>,
    pub kind: TimeOrRate,
    /// Whether neither the names nor a person say the kind.
    pub is_guess: bool,
    /// Columns that split the table where they differ at the same x.
    pub keys: Vec<String>,
}

/// Columns of text that do not distinguish series.
const REMARKS: &[&str] = &[
    "note",
    "notes",
    "comment",
    "comments",
    "remark",
    "remarks",
    "error",
    "status",
    "date",
    "datetime",
    "timestamp",
    "commit",
    "hash",
    "unit",
    "units",
    "command",
    "cmd",
    "message",
    "result",
    "started",
    "finished",
    "host",
    "hostname",
    "outliers",
    "test_time",
];
/// A text column of more different values distinguishes no series, unless each comes with this many rows.
const MOST_GROUPS: usize = 64;
const LONG_SERIES: usize = 8;
/// A column of numbers has at most this many levels, each at nearly all sizes.
const MOST_LEVELS: usize = 8;
const NEARLY_ALL: f64 = 0.9;

/// Which columns are what.
///
/// # Errors
/// [`crate::error::Kind::Data`].
pub(super) fn choose(profile: &[ColumnSample], hints: Hints, query: &Query) -> Result<Choice> {
    let columns: Vec<&ColumnSample> = profile.iter().filter(|column| column.is_numeric()).collect();
    let asked = query.y.as_deref().map(|asked| asked_for(profile, asked)).transpose()?;
    let x = match &query.x {
        Some(name) => numeric(profile, name, "--x")?.name.clone(),
        None => x_of(profile, &columns, hints, asked.as_deref().unwrap_or_default())?.name.clone(),
    };
    let ys = match asked {
        Some(asked) => asked,
        None => {
            let values: Vec<&ColumnSample> = columns.iter().copied().filter(|column| column.name != x).collect();
            y_of(profile, &values, hints, query.kind)?
        }
    };
    let readings: Vec<Reading> = ys.iter().map(|name| Reading::of(name)).collect();
    let said: Vec<TimeOrRate> = readings.iter().filter_map(|reading| reading.kind).collect();
    if query.kind.is_none() && said.windows(2).any(|pair| pair[0] != pair[1]) {
        let message = format!("{} are times and rates, which do not go together", listed(&ys));
        return Err(
            Error::data(message).hint("name columns of one kind with `--y`, or say `--y-kind time` or `--y-kind rate`")
        );
    }
    let is_provider = readings.iter().any(Reading::is_provider);
    let guess = if is_provider { TimeOrRate::Rate } else { TimeOrRate::Time };
    let kind = query.kind.or(said.first().copied()).unwrap_or(guess);
    let is_guess = query.kind.is_none() && said.is_empty() && !readings.iter().all(Reading::is_time);
    let key = |name: &String| named(profile, name, "--group").map(|seen| seen.name.clone());
    let keys = match &query.group {
        Some(group) => group.iter().map(key).collect::<Result<_>>()?,
        None => keys_of(profile, &x, &ys),
    };
    Ok(Choice { x, ys, kind, is_guess, keys })
}

/// The columns of `--y`: one of that name, or several separated by commas.
fn asked_for(profile: &[ColumnSample], asked: &str) -> Result<Vec<String>> {
    let names = if find(profile, asked).is_some() { vec![asked] } else { asked.split(',').map(str::trim).collect() };
    names.into_iter().map(|name| numeric(profile, name, "--y").map(|seen| seen.name.clone())).collect()
}

/// A column by its name, or by its name without the unit that its cells have.
fn find<'p>(profile: &'p [ColumnSample], name: &str) -> Option<&'p ColumnSample> {
    let exact = profile.iter().find(|column| column.name == name);
    exact.or_else(|| {
        profile.iter().find(|column| column.name.strip_prefix(name).is_some_and(|rest| rest.starts_with(" (")))
    })
}

fn named<'p>(profile: &'p [ColumnSample], name: &str, flag: &str) -> Result<&'p ColumnSample> {
    if let Some(seen) = find(profile, name) {
        return Ok(seen);
    }
    let names: Vec<&str> = profile.iter().map(|column| column.name.as_str()).collect();
    let error = Error::data(format!("{flag}: there is no column `{name}`; the columns are: {}", shown(&names)));
    Err(match nearest(name, &names) {
        Some(near) => error.hint(format!("did you mean `{}`?", foreign::name(near))),
        None => error.hint(format!("name one of them with `{flag} COLUMN`")),
    })
}

fn numeric<'p>(profile: &'p [ColumnSample], name: &str, flag: &str) -> Result<&'p ColumnSample> {
    let seen = named(profile, name, flag)?;
    if seen.is_numeric() {
        return Ok(seen);
    }
    // For a column of texts with numbers in them, take the number: it may be a size, and is part of a time.
    let derived = find(profile, &format!("{} (number)", seen.name)).filter(|seen| flag == "--x" && seen.is_numeric());
    derived.ok_or_else(|| {
        let text = seen.texts.iter().find(|text| !text.is_empty()).map_or(String::new(), |text| short(text));
        let numbers = profile.iter().filter(|column| column.is_numeric()).map(|column| &column.name);
        Error::data(format!("{flag}: the column `{}` contains text, such as `{text}`", short(name)))
            .hint(format!("columns of numbers are: {}", shown(numbers)))
    })
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{}`", short(name))).collect::<Vec<_>>().join(", ")
}

/// The columns that may distinguish series: texts with few values, other sizes and settings.
fn keys_of(profile: &[ColumnSample], x: &str, ys: &[String]) -> Vec<String> {
    let source = x.strip_suffix(" (number)");
    let sizes = profile.iter().find(|column| column.name == x);
    let is_key = |column: &&ColumnSample| {
        let name = &column.name;
        if name == x || ys.contains(name) || Some(&name[..]) == source || name.ends_with(" (number)") {
            return false;
        }
        if let Some(of) = name.strip_suffix(" (kind)") {
            return Some(of) == source;
        }
        if column.is_repeat() || column.is_time_stamp() || REMARKS.contains(&&plain(name)[..]) {
            return false;
        }
        let sets = is_setting(name) || is_size(name) || is_batch_size(name);
        // A text that is another one in most rows is a remark.
        let splits = || {
            (column.distinct() <= MOST_GROUPS || LONG_SERIES * column.distinct() <= column.texts.len())
                && 2 * column.distinct() <= column.texts.len()
        };
        if column.is_numeric() { sets || sizes.is_some_and(|sizes| has_levels(column, sizes)) } else { splits() }
    };
    profile.iter().filter(is_key).map(|column| column.name.clone()).collect()
}

/// Whether its numbers are the levels of a setting, whatever its name (`fused` is 0 or 1): few, about equally often, and each at nearly all sizes.
fn has_levels(column: &ColumnSample, sizes: &ColumnSample) -> bool {
    let pairs = column.numbers.iter().zip(&sizes.numbers).filter(|(level, size)| level.is_finite() && size.is_finite());
    let mut levels: BTreeMap<u64, (usize, BTreeSet<u64>)> = BTreeMap::new();
    for (level, size) in pairs.clone() {
        let (rows, own) = levels.entry(level.to_bits()).or_default();
        *rows += 1;
        own.insert(size.to_bits());
        if levels.len() > MOST_LEVELS {
            return false;
        }
    }
    let all = pairs.map(|(_, size)| size.to_bits()).collect::<BTreeSet<_>>();
    let rows = || levels.values().map(|(rows, _)| *rows);
    let is_balanced = 2 * rows().min().unwrap_or(0) > rows().max().unwrap_or(0);
    let is_everywhere = levels.values().all(|(_, own)| own.len() as f64 >= NEARLY_ALL * all.len() as f64);
    levels.len() > 1 && is_balanced && is_everywhere && !column.is_value()
}
