//! Which columns of a table are x, y and groups: by their names, and where these leave it open by what they hold.

use std::collections::{BTreeMap, BTreeSet};

use super::names::{Kind, Reading, batch_rank, is_batch_size, is_setting, is_size};
use super::{Hints, Profile, Seen};
use crate::error::{Error, Result, nearest};
use crate::foreign;

/// What a person says about the columns; what is left open is found by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The column of the batch size, or of another size.
    pub x: Option<String>,
    /// The column of the time, or of a rate; of several, separated by commas, each makes series of its own.
    pub y: Option<String>,
    /// Which of the two it is.
    pub kind: Option<Kind>,
    /// Columns whose values make a series each.
    pub group: Option<Vec<String>>,
}

/// The columns of a table by their part.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    pub x: String,
    pub ys: Vec<String>,
    pub kind: Kind,
    /// Whether neither the names nor a person say the kind.
    pub is_guess: bool,
    /// Columns that split the table where they differ at the same x.
    pub keys: Vec<String>,
}

/// Names of the time under which others write it, in order of preference.
pub const STEP_TIMES: &[&str] = &[
    "step_time",
    "time",
    "batch_time",
    "iteration_time",
    "iter_time",
    "train_time",
    "latency",
    "duration",
    "elapsed",
    "wall_time",
    "seconds",
    "mean",
    "median",
];
/// Words of columns that number repetitions.
const REPEATS: &[&str] = &[
    "run",
    "rep",
    "reps",
    "repeat",
    "repetition",
    "repetition_index",
    "trial",
    "iter",
    "iters",
    "iteration",
    "iterations",
    "sample",
    "samples",
    "seed",
    "fold",
    "attempt",
    "index",
    "idx",
    "id",
    "row",
    "cnt",
    "count",
    "block",
    "order",
    "visit",
    "pid",
    "wrong",
    "unnamed_0",
    "warmup",
    "outlier",
    "disturbed",
    "witness",
    "others",
    "status",
];
/// What counts the way of a run: the x where nothing else is.
const STEPS: &[&str] = &["step", "global_step", "_step", "steps", "epoch", "iteration", "iter", "line"];
/// Texts that tell nothing apart.
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
    "version",
    "started",
    "finished",
    "host",
    "hostname",
];
/// Words of the column that stands for several like it, and of those that stand for less.
const TYPICAL: &[&str] = &["avg", "average", "mean", "typical"];
const EXTREME: &[&str] = &[
    "min",
    "max",
    "peak",
    "best",
    "worst",
    "p50",
    "p90",
    "p95",
    "p99",
    "p75",
    "p10",
    "p20",
    "p80",
    "p25",
    "percentile",
    "first",
    "last",
    "median",
    "low",
    "high",
];

/// So many columns are named in a message, with so many letters each.
const SHOWN: usize = 12;
const LONGEST: usize = 60;
/// More columns of values are chosen by a person.
const MOST_VALUES: usize = 8;
/// A text column of more different values distinguishes no series.
const MOST_GROUPS: usize = 64;

impl Seen {
    /// Whether most cells that hold anything hold a number.
    fn is_numeric(&self) -> bool {
        let held = self.texts.iter().filter(|text| !super::cell::is_missing(text)).count();
        let numbers = self.numbers.iter().filter(|number| number.is_finite()).count();
        numbers > 0 && 2 * numbers >= held
    }

    fn distinct(&self) -> usize {
        self.texts.iter().collect::<BTreeSet<_>>().len()
    }

    fn varies(&self) -> bool {
        let mut numbers = self.numbers.iter().filter(|number| number.is_finite());
        numbers.next().is_some_and(|first| numbers.any(|number| number != first))
    }

    fn is_whole(&self) -> bool {
        self.numbers.iter().filter(|number| number.is_finite()).all(|number| number.fract() == 0.0 && *number >= 0.0)
    }

    fn is_sorted(&self) -> bool {
        self.numbers.is_sorted_by(|a, b| a <= b)
    }

    /// Seconds or milliseconds since 1970, in the order of the rows.
    fn is_time_stamp(&self) -> bool {
        let plain = plain(&self.name);
        let named = ["timestamp", "wall_time", "wall time", "date", "started", "_timestamp"]
            .iter()
            .any(|word| plain.contains(word));
        let known = self.numbers.iter().filter(|number| number.is_finite());
        let since_1970 = |number: &f64| {
            (1e9..1e10).contains(number) || (1e12..1e13).contains(number) || (1e18..1e19).contains(number)
        };
        named && self.is_sorted() && self.varies() || known.clone().all(since_1970) && known.count() > 0
    }

    fn is_repeat(&self) -> bool {
        let plain = plain(&self.name);
        REPEATS.contains(&plain.trim_start_matches(['n', '_', '#'])) || REPEATS.contains(&&plain[..])
    }
}

fn plain(name: &str) -> String {
    let plain = name.trim_matches(|letter: char| letter == '#' || letter.is_whitespace()).to_lowercase();
    plain.replace([' ', '-', '.', ':'], "_")
}

/// Which columns are what.
///
/// # Errors
/// [`crate::error::Kind::Data`].
pub(super) fn choose(profile: &Profile, hints: &Hints, query: &Query) -> Result<Choice> {
    let columns: Vec<&Seen> = profile.columns.iter().filter(|column| column.is_numeric()).collect();
    let asked = query.y.as_deref().map(|asked| asked_for(profile, asked)).transpose()?;
    let x = match &query.x {
        Some(name) => numeric(profile, name, "--x")?.name.clone(),
        None => x_of(profile, &columns, hints, asked.as_deref().unwrap_or_default())?.name.clone(),
    };
    let ys = match asked {
        Some(asked) => asked,
        None => {
            let values: Vec<&Seen> = columns.iter().copied().filter(|column| column.name != x).collect();
            y_of(profile, &values, hints, query.kind)?
        }
    };
    let readings: Vec<Reading> = ys.iter().map(|name| Reading::of(name)).collect();
    let said: Vec<Kind> = readings.iter().filter_map(|reading| reading.kind).collect();
    if query.kind.is_none() && said.windows(2).any(|pair| pair[0] != pair[1]) {
        let message = format!("{} are times and rates, which do not go together", listed(&ys));
        return Err(
            Error::data(message).hint("name columns of one kind with `--y`, or say `--y-kind time` or `--y-kind rate`")
        );
    }
    let is_provider = readings.iter().any(Reading::is_provider);
    let guess = if is_provider { Kind::Rate } else { Kind::Time };
    let kind = query.kind.or(said.first().copied()).unwrap_or(guess);
    let is_time = readings.iter().all(|reading| STEP_TIMES.contains(&&reading.stem[..]) || reading.may_be(Kind::Time));
    let is_guess = query.kind.is_none() && said.is_empty() && !is_time;
    for name in query.group.iter().flatten() {
        named(profile, name, "--group")?;
    }
    let keys = match &query.group {
        Some(group) => group
            .iter()
            .map(|name| named(profile, name, "--group").map(|seen| seen.name.clone()))
            .collect::<Result<_>>()?,
        None => keys_of(profile, &x, &ys),
    };
    Ok(Choice { x, ys, kind, is_guess, keys })
}

/// The columns of `--y`: one of that name, or several separated by commas.
fn asked_for(profile: &Profile, asked: &str) -> Result<Vec<String>> {
    let names = if find(profile, asked).is_some() { vec![asked] } else { asked.split(',').map(str::trim).collect() };
    names.into_iter().map(|name| numeric(profile, name, "--y").map(|seen| seen.name.clone())).collect()
}

/// A column by its name, or by its name without the unit that its cells have.
fn find<'p>(profile: &'p Profile, name: &str) -> Option<&'p Seen> {
    let exact = profile.columns.iter().find(|column| column.name == name);
    exact.or_else(|| {
        profile.columns.iter().find(|column| column.name.strip_prefix(name).is_some_and(|rest| rest.starts_with(" (")))
    })
}

fn named<'p>(profile: &'p Profile, name: &str, flag: &str) -> Result<&'p Seen> {
    if let Some(seen) = find(profile, name) {
        return Ok(seen);
    }
    let names: Vec<&str> = profile.columns.iter().map(|column| column.name.as_str()).collect();
    let error = Error::data(format!("{flag}: there is no column `{name}`; the columns are: {}", shown(&names)));
    Err(match nearest(name, &names) {
        Some(near) => error.hint(format!("did you mean `{}`?", foreign::name(near))),
        None => error.hint(format!("name one of them with `{flag} COLUMN`")),
    })
}

fn numeric<'p>(profile: &'p Profile, name: &str, flag: &str) -> Result<&'p Seen> {
    let seen = named(profile, name, flag)?;
    if seen.is_numeric() {
        return Ok(seen);
    }
    // Of a column of texts with numbers in them, the number.
    let derived = find(profile, &format!("{} (number)", seen.name)).filter(|seen| seen.is_numeric());
    derived.ok_or_else(|| {
        let text = seen.texts.iter().find(|text| !text.is_empty()).map_or(String::new(), |text| short(text));
        let numbers: Vec<&str> =
            profile.columns.iter().filter(|column| column.is_numeric()).map(|column| column.name.as_str()).collect();
        Error::data(format!("{flag}: the column `{}` holds no numbers, such as `{text}`", short(name)))
            .hint(format!("columns of numbers are: {}", shown(&numbers)))
    })
}

/// The names for a message.
fn shown(names: &[&str]) -> String {
    let more = if names.len() > SHOWN { format!(" and {} more", names.len() - SHOWN) } else { String::new() };
    names.iter().take(SHOWN).map(|name| short(name)).collect::<Vec<_>>().join(", ") + &more
}

fn short(name: &str) -> String {
    foreign::name(&name.chars().take(LONGEST).collect::<String>())
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{}`", short(name))).collect::<Vec<_>>().join(", ")
}

/// The column of sizes.
fn x_of<'p>(profile: &'p Profile, columns: &[&'p Seen], hints: &Hints, ys: &[String]) -> Result<&'p Seen> {
    let free: Vec<&Seen> = columns.iter().copied().filter(|column| !ys.contains(&column.name)).collect();
    let hinted = hints.x.iter().find_map(|name| free.iter().find(|column| column.name == *name && column.varies()));
    if let Some(seen) = hinted {
        return Ok(seen);
    }
    let mut batches: Vec<&Seen> = free.iter().copied().filter(|column| is_batch_size(&column.name)).collect();
    batches.sort_by_key(|column| (!column.varies(), batch_rank(&column.name)));
    let other_varies = free.iter().any(|column| is_size(&column.name) && column.varies());
    if let Some(batch) = batches.first().filter(|batch| batch.varies() || !other_varies) {
        return Ok(batch);
    }
    for is_one in [is_size, is_setting] {
        let sizes: Vec<&Seen> = free.iter().copied().filter(|column| is_one(&column.name)).collect();
        let moving: Vec<&Seen> = sizes.iter().copied().filter(|column| column.varies()).collect();
        match (&moving[..], &sizes[..]) {
            ([], []) => {}
            ([], [first, ..]) if free.iter().all(|column| !column.varies() || is_value(column)) => return Ok(first),
            ([], _) => {}
            ([first, others @ ..], _) => return decide(first, others),
        }
    }
    let open: Vec<&Seen> = free
        .iter()
        .copied()
        .filter(|column| column.varies() && !is_value(column) && !column.is_time_stamp() && !column.is_repeat())
        .collect();
    let numbers = |seen: &&Seen| seen.name.ends_with(" (number)");
    let (derived, plain): (Vec<&Seen>, Vec<&Seen>) = open.into_iter().partition(numbers);
    let whole: Vec<&Seen> = plain.iter().copied().filter(|column| column.is_whole()).collect();
    let values_left = columns.len() > plain.len();
    match (&plain[..], &whole[..], &derived[..]) {
        ([one], _, _) if values_left => return Ok(one),
        (_, [one], _) => return Ok(one),
        ([first, others @ ..], _, _)
            if first.is_sorted() && !others.is_empty() && !others.iter().any(|other| other.is_sorted()) =>
        {
            return Ok(first);
        }
        ([], _, [first, ..]) => return Ok(first),
        _ => {}
    }
    let steps = columns.iter().find(|column| STEPS.contains(&&plain_of(column)[..]) && column.varies());
    if let Some(steps) = steps.filter(|_| plain.is_empty()) {
        return Ok(steps);
    }
    // Of two columns of numbers the first.
    if let ([first, _], true) = (columns, plain.len() != 1) {
        return Ok(first);
    }
    if plain.len() > 1 {
        let names: Vec<String> = plain.iter().map(|column| column.name.clone()).collect();
        return Err(ambiguous("size", &names, "--x"));
    }
    let names: Vec<&str> = profile.columns.iter().map(|column| column.name.as_str()).collect();
    let error = Error::data(format!(
        "no column looks like the batch size, or another size; the columns are: {}",
        shown(&names)
    ));
    Err(match columns.len() {
        0 | 1 => error.hint("a table needs a column of sizes and a column of times or rates, with a row for each size"),
        _ => error.hint("name it with `--x COLUMN`"),
    })
}

fn plain_of(seen: &Seen) -> String {
    plain(&seen.name)
}

/// Whether a name says that a column was measured.
fn is_value(column: &Seen) -> bool {
    let reading = Reading::of(&column.name);
    reading.kind.is_some()
        || reading.may_be(Kind::Time)
        || reading.is_scatter()
        || STEP_TIMES.contains(&&reading.stem[..])
}

/// Of several sizes the first, where they are the same in every row or one follows from the other; else the one with the most values, where it
/// has at least twice as many as the next.
fn decide<'p>(first: &'p Seen, others: &[&'p Seen]) -> Result<&'p Seen> {
    let pairs = |a: &Seen, b: &Seen| {
        let pairs: BTreeSet<(u64, u64)> =
            a.numbers.iter().zip(&b.numbers).map(|(a, b)| (a.to_bits(), b.to_bits())).collect();
        let values = |seen: &Seen| seen.numbers.iter().map(|value| value.to_bits()).collect::<BTreeSet<_>>().len();
        pairs.len() == values(a) && pairs.len() == values(b)
    };
    if others.iter().all(|other| pairs(first, other)) {
        return Ok(first);
    }
    let count = |seen: &Seen| {
        seen.numbers
            .iter()
            .filter(|value| value.is_finite())
            .map(|value| value.to_bits())
            .collect::<BTreeSet<_>>()
            .len()
    };
    let mut all: Vec<&Seen> = std::iter::once(first).chain(others.iter().copied()).collect();
    all.sort_by_key(|seen| std::cmp::Reverse(count(seen)));
    if count(all[0]) >= 2 * count(all[1]) {
        return Ok(all[0]);
    }
    let names: Vec<String> =
        std::iter::once(first).chain(others.iter().copied()).map(|seen| seen.name.clone()).collect();
    Err(ambiguous("size", &names, "--x"))
}

/// The message where several columns may be meant.
pub fn ambiguous(what: &str, columns: &[String], flag: &str) -> Error {
    let names: Vec<&str> = columns.iter().map(String::as_str).collect();
    Error::data(format!("several columns could be the {what}: {}", shown(&names)))
        .hint(format!("name one with `{flag} COLUMN`"))
}

/// The columns of times or rates: the usual names of times, then any rates, then what else may be times, then what is left.
fn y_of(profile: &Profile, columns: &[&Seen], hints: &Hints, asked: Option<Kind>) -> Result<Vec<String>> {
    let fits = |reading: &Reading, kind: Kind| {
        asked.is_none_or(|asked| asked == kind) && reading.kind.is_none_or(|said| said == kind)
    };
    let hinted: Vec<String> = columns
        .iter()
        .filter(|column| {
            hints.y.iter().any(|name| column.name == *name || column.name.starts_with(&format!("{name} (")))
        })
        .filter(|column| asked.is_none_or(|asked| Reading::of(&column.name).kind.is_none_or(|said| said == asked)))
        .map(|column| column.name.clone())
        .collect();
    if !hinted.is_empty() {
        return Ok(hinted);
    }
    let usable = |column: &&&Seen| !column.is_time_stamp() && !column.is_repeat() && !is_setting(&column.name);
    let read: Vec<(&Seen, Reading)> =
        columns.iter().filter(usable).map(|column| (*column, Reading::of(&column.name))).collect();
    let is_named = |wanted: &&str| read.iter().find(|(_, r)| r.stem == **wanted && r.kind != Some(Kind::Rate));
    if let Some((seen, reading)) = STEP_TIMES.iter().find_map(is_named).filter(|(_, reading)| fits(reading, Kind::Time))
    {
        let alike = read.iter().filter(|(_, other)| other.unit == reading.unit && numbered(&reading.stem, &other.stem));
        let alike: Vec<String> = alike.map(|(seen, _)| seen.name.clone()).collect();
        return Ok(if alike.is_empty() { vec![seen.name.clone()] } else { alike });
    }
    for kind in [Kind::Rate, Kind::Time].into_iter().filter(|&kind| asked.is_none_or(|asked| asked == kind)) {
        let found: Vec<&(&Seen, Reading)> = read.iter().filter(|(_, reading)| reading.may_be(kind)).collect();
        if !found.is_empty() {
            return several(found, kind.name());
        }
    }
    let is_left = |(column, reading): &&(&Seen, Reading)| {
        reading.kind.is_none()
            && !reading.is_scatter()
            && !is_size(&column.name)
            && !is_batch_size(&column.name)
            && !column.name.ends_with(" (number)")
    };
    let left: Vec<&(&Seen, Reading)> = read.iter().filter(is_left).collect();
    if !left.is_empty() {
        return several(left, "time or rate");
    }
    let what = asked.map_or("step time, or a rate".to_string(), |kind| format!("measured {}", kind.name()));
    let names: Vec<&str> = profile.columns.iter().map(|column| column.name.as_str()).collect();
    Err(Error::data(format!("no column looks like the {what}; the columns are: {}", shown(&names)))
        .hint("name it with `--y COLUMN`"))
}

/// Whether a name is another one with a number: `time` and `time 2`.
fn numbered(stem: &str, other: &str) -> bool {
    other.strip_prefix(stem).is_some_and(|rest| rest.trim_start_matches('_').bytes().all(|byte| byte.is_ascii_digit()))
}

/// Of columns that may all be the values those that stand for the others: means rather than extremes, and of one unit.
fn several(mut found: Vec<&(&Seen, Reading)>, what: &str) -> Result<Vec<String>> {
    let holds =
        |(_, reading): &(&Seen, Reading), words: &[&str]| reading.stem.split('_').any(|word| words.contains(&word));
    if found.iter().any(|one| holds(one, TYPICAL)) {
        found.retain(|one| holds(one, TYPICAL));
    } else if found.iter().any(|one| !holds(one, EXTREME)) {
        found.retain(|one| !holds(one, EXTREME));
    }
    // Values that stay the same were set.
    if found.iter().any(|(seen, _)| seen.varies()) {
        found.retain(|(seen, _)| seen.varies());
    }
    let mut by_unit: BTreeMap<&str, usize> = BTreeMap::new();
    found.iter().for_each(|(_, reading)| *by_unit.entry(&reading.unit).or_default() += 1);
    let most = by_unit.values().copied().max().unwrap_or(0);
    let unit = found
        .iter()
        .map(|(_, reading)| reading.unit.clone())
        .find(|unit| by_unit[&unit[..]] == most)
        .unwrap_or_default();
    let names: Vec<String> =
        found.iter().filter(|(_, reading)| reading.unit == unit).map(|(seen, _)| seen.name.clone()).collect();
    if names.len() > MOST_VALUES { Err(ambiguous(&format!("measured {what}"), &names, "--y")) } else { Ok(names) }
}

/// The columns that may tell series apart: texts of few values, other sizes and settings.
fn keys_of(profile: &Profile, x: &str, ys: &[String]) -> Vec<String> {
    let source = x.strip_suffix(" (number)");
    let is_key = |column: &&Seen| {
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
        if column.is_numeric() { sets } else { column.distinct() <= MOST_GROUPS }
    };
    profile.columns.iter().filter(is_key).map(|column| column.name.clone()).collect()
}
