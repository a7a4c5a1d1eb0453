//! Which column of a table contains the sizes.

use std::collections::BTreeSet;

use super::amounts::{batch_rank, is_batch_size, is_setting, is_size, may_be_size};
use super::refusal::{ambiguous, shown};
use super::seen;
use super::{ColumnSample, Hints};
use crate::error::{Error, Result};

/// What counts the way of a run: the x where nothing else is.
const STEPS: &[&str] = &["step", "global_step", "_step", "steps", "epoch", "iteration", "iter", "line"];
/// Words of columns that hold what came of a run, and words of those that hold what was set.
const OUTCOMES: &[&str] = &["rounds", "loss", "power", "temperature"];
const LIMITS: &[&str] = &["limit", "cap"];

/// The column of sizes.
pub(super) fn x_of<'p>(
    profile: &'p [ColumnSample],
    columns: &[&'p ColumnSample],
    hints: Hints,
    ys: &[String],
) -> Result<&'p ColumnSample> {
    let those = |of: &[&'p ColumnSample], is_one: &dyn Fn(&ColumnSample) -> bool| -> Vec<&'p ColumnSample> {
        of.iter().copied().filter(|column| is_one(column)).collect()
    };
    let free = those(columns, &|column| !ys.contains(&column.name));
    let hinted = hints.x.iter().find_map(|name| free.iter().find(|column| column.name == *name && column.varies()));
    if let Some(seen) = hinted {
        return Ok(seen);
    }
    let mut batches = those(&free, &|column| is_batch_size(&column.name));
    batches.sort_by_key(|column| (!column.varies(), batch_rank(&column.name)));
    let other_varies = free.iter().any(|column| is_size(&column.name) && column.varies());
    if let Some(batch) = batches.first().filter(|batch| batch.varies() || !other_varies) {
        return Ok(batch);
    }
    for is_one in [is_size, is_setting, may_be_size] {
        let sizes = those(&free, &|column| is_one(&column.name));
        let moving = those(&sizes, &ColumnSample::varies);
        match sizes.first() {
            Some(_) if !moving.is_empty() => return decide(&moving),
            Some(first) if free.iter().all(|column| !column.varies() || column.is_value()) => return Ok(first),
            _ => {}
        }
    }
    let is_open = |column: &ColumnSample| {
        let is_other = column.is_value() || column.is_time_stamp() || column.is_repeat() || is_outcome(column);
        column.varies() && !is_other
    };
    let (derived, plain): (Vec<_>, Vec<_>) = those(&free, &is_open).into_iter().partition(|column| column.is_derived());
    let whole = those(&plain, &ColumnSample::is_whole);
    let values_left = columns.len() > plain.len();
    match (&plain[..], &whole[..], &derived[..]) {
        // A size in a name, beside a number that is none.
        ([_], [], [first, ..]) | ([], _, [first, ..]) => return Ok(first),
        ([one], _, _) if values_left => return Ok(one),
        (_, [one], _) => return Ok(one),
        ([first, others @ ..], _, _)
            if first.is_sorted() && !others.is_empty() && !others.iter().any(|other| other.is_sorted()) =>
        {
            return Ok(first);
        }
        _ => {}
    }
    let is_step = |column: &&&ColumnSample| STEPS.contains(&&seen::plain(&column.name)[..]) && column.varies();
    let steps = columns.iter().find(is_step);
    let counts = |column: &&ColumnSample| seen::plain(&column.name).split('_').any(|word| STEPS.contains(&word));
    if let Some(steps) = steps.filter(|_| plain.iter().all(counts)) {
        return Ok(steps);
    }
    // The first of two columns of numbers.
    if let ([first, _], true) = (columns, plain.len() != 1)
        && !first.is_value()
        && !is_outcome(first)
    {
        return Ok(first);
    }
    if plain.len() > 1 {
        return Err(ambiguous("size", plain.iter().map(|column| &column.name), "--x"));
    }
    let names = shown(profile.iter().map(|column| &column.name));
    let what = format!("no column looks like the batch size, or another size; the columns are: {names}");
    let error = Error::data(what);
    let may_be_size = |column: &&ColumnSample| !column.is_value() && !column.is_time_stamp();
    Err(match free.iter().any(may_be_size) && columns.len() > 1 {
        true => error.hint("name it with `--x COLUMN`"),
        false => error.hint("a table needs a column of sizes and a column of times or rates, with a row for each size"),
    })
}

fn is_outcome(column: &ColumnSample) -> bool {
    let plain = seen::plain(&column.name);
    let has = |words: &[&str]| plain.split('_').any(|word| words.contains(&word));
    has(OUTCOMES) && !has(LIMITS)
}

/// Chooses among several sizes: the first, if each of them determines the others; else the one with the most distinct values, if it has at
/// least twice as many as the next.
fn decide<'p>(sizes: &[&'p ColumnSample]) -> Result<&'p ColumnSample> {
    let first = sizes[0];
    let values = |seen: &ColumnSample, is_counted: fn(f64) -> bool| {
        let counted = seen.numbers.iter().filter(|value| is_counted(**value));
        counted.map(|value| value.to_bits()).collect::<BTreeSet<_>>().len()
    };
    let pairs = |other: &ColumnSample| {
        let pairs = first.numbers.iter().zip(&other.numbers).map(|(a, b)| (a.to_bits(), b.to_bits()));
        let count = pairs.collect::<BTreeSet<_>>().len();
        [first, other].iter().all(|seen| values(seen, |_| true) == count)
    };
    if sizes[1..].iter().all(|other| pairs(other)) {
        return Ok(first);
    }
    let count = |seen: &ColumnSample| values(seen, f64::is_finite);
    let mut all = sizes.to_vec();
    all.sort_by_key(|seen| std::cmp::Reverse(count(seen)));
    match count(all[0]) >= 2 * count(all[1]) {
        true => Ok(all[0]),
        false => Err(ambiguous("size", sizes.iter().map(|seen| &seen.name), "--x")),
    }
}
