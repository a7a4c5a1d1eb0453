//! Which column is what.

use super::Query;
use crate::error::{Error, Result, nearest};
use crate::settings::AXES;

/// A column that every table must have.
struct Needed {
    what: &'static str,
    /// By which the user names it.
    flag: &'static str,
    /// Names under which others write it, in order of preference.
    names: &'static [&'static str],
}

const BATCH_SIZE: Needed = Needed {
    what: "batch size",
    flag: "--x",
    names: &["batch_size", "batchsize", "batch", "bs", "mini_batch_size", "minibatch_size", "mini_batch"],
};
const STEP_TIME: Needed = Needed { what: "step time", flag: "--y", names: STEP_TIMES };
const STEP_TIMES: &[&str] = &[
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
const UNITS: &[(&str, f64)] = &[("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9)];
/// The coordinates of a cell beside its batch size and the axes of the table of axes.
const OURS: &[&str] = &["model", "engine", "device", "device_name"];
/// What others call them.
const FOREIGN: &[&str] = &["network", "gpu", "framework"];
/// Columns of ours that describe a whole series, beside the axes.
const FACTS: &[&str] = &[
    "run_id",
    "engine",
    "device",
    "device_name",
    "model",
    "pcie_link_width",
    "pcie_link_generation",
    "pcie_link_width_max",
    "pcie_link_generation_max",
    "executed_batch_size",
    "multiprocessors",
    "throttle_reasons",
];
/// Columns that are read where they are there.
const OPTIONAL: &[&str] = &[
    "order",
    "block",
    "visit",
    "cell",
    "warmup",
    "outlier",
    "status",
    "sm_clock_hz",
    "cpu_clock_hz",
    "temperature_c",
    "cycles",
    "task_clock_s",
];

/// The columns of a table by their part.
pub(super) struct Columns {
    pub x: String,
    pub y: String,
    group: Option<Vec<String>>,
    present: Vec<String>,
}

/// The seconds in a unit's name.
pub(super) fn seconds_in(unit: &str) -> Option<f64> {
    UNITS.iter().find(|(name, _)| *name == unit).map(|(_, seconds)| *seconds)
}

/// A column's name in lower case, with `_` for blanks and without its unit.
fn stem(name: &str) -> (String, &'static str) {
    let plain: String = name.trim().to_lowercase().chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
    let plain = plain.trim_matches('_').to_string();
    let long = [
        ("seconds", "s"),
        ("sec", "s"),
        ("milliseconds", "ms"),
        ("msec", "ms"),
        ("microseconds", "us"),
        ("nanoseconds", "ns"),
    ];
    let units = UNITS.iter().map(|(unit, _)| (*unit, *unit)).chain(long);
    for (suffix, unit) in units {
        if let Some(stem) = plain.strip_suffix(suffix).and_then(|stem| stem.strip_suffix('_')) {
            return (stem.trim_matches('_').to_string(), unit);
        }
    }
    let unit = if plain == "seconds" { "s" } else { "" };
    (plain, unit)
}

impl Columns {
    /// Takes what the query names and finds the rest by name.
    pub fn choose(present: &[String], query: &Query) -> Result<Self> {
        let x = pick(present, query.x.as_deref(), &BATCH_SIZE)?;
        let y = pick(present, query.y.as_deref(), &STEP_TIME)?;
        for name in query.group.iter().flatten() {
            named(present, name, "--group")?;
        }
        Ok(Self { x, y, group: query.group.clone(), present: present.to_vec() })
    }

    /// Every column worth reading.
    pub fn wanted(&self) -> Vec<&str> {
        let mut wanted = vec![self.x.as_str(), self.y.as_str()];
        wanted.extend(self.group.iter().flatten().map(String::as_str));
        let known: Vec<&'static str> = OPTIONAL.iter().copied().chain(facts()).chain(coordinates()).collect();
        for name in known {
            if self.is_there(name) {
                wanted.push(name);
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// The unit in the name of the time column.
    pub fn unit(&self) -> String {
        stem(&self.y).1.to_string()
    }

    /// The columns whose values may split the table: those asked for, else every coordinate.
    pub fn keys(&self) -> Vec<String> {
        let splits = |name: &&str| self.is_there(name) && **name != self.x && **name != self.y;
        self.group.clone().unwrap_or_else(|| coordinates().filter(splits).map(str::to_string).collect())
    }

    /// Those of the keys that do split it: all that were asked for, else the model and every coordinate with more than one
    /// value, as `varies` says.
    pub fn splits(&self, keys: &[String], varies: impl Fn(usize) -> bool) -> Vec<usize> {
        let splits = |key: &usize| self.group.is_some() || keys[*key] == "model" || varies(*key);
        let mut group: Vec<usize> = (0..keys.len()).filter(splits).collect();
        // A device and its name say the same twice, unless one name stands for several devices.
        if self.group.is_none() && group.iter().any(|&key| keys[key] == "device_name") {
            group.retain(|&key| keys[key] != "device");
        }
        group
    }

    /// The columns that describe a series.
    pub fn facts(&self) -> Vec<&'static str> {
        facts().filter(|name| self.is_there(name)).collect()
    }

    fn is_there(&self, name: &str) -> bool {
        self.present.iter().any(|column| column == name)
    }
}

/// The columns that describe a whole series.
fn facts() -> impl Iterator<Item = &'static str> {
    FACTS.iter().copied().chain(AXES.iter().map(|axis| axis.column))
}

/// The columns that may split a file into series.
fn coordinates() -> impl Iterator<Item = &'static str> {
    OURS.iter().copied().chain(AXES.iter().map(|axis| axis.column)).chain(FOREIGN.iter().copied())
}

fn pick(present: &[String], asked: Option<&str>, needed: &Needed) -> Result<String> {
    let Needed { what, flag, names } = needed;
    if let Some(name) = asked {
        return named(present, name, flag);
    }
    let by_stem = |wanted: &&str| present.iter().find(|name| stem(name).0 == **wanted);
    names.iter().find_map(by_stem).cloned().ok_or_else(|| {
        Error::data(format!("no column looks like the {what}; the columns are: {}", present.join(", ")))
            .hint(format!("name it with `{flag} COLUMN`"))
    })
}

fn named(present: &[String], name: &str, flag: &str) -> Result<String> {
    if present.iter().any(|column| column == name) {
        return Ok(name.to_string());
    }
    let names: Vec<&str> = present.iter().map(String::as_str).collect();
    let error = Error::data(format!("{flag}: there is no column `{name}`; the columns are: {}", names.join(", ")));
    Err(match nearest(name, &names) {
        Some(near) => error.hint(format!("did you mean `{near}`?")),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn columns_of_other_programs_are_found_by_name() {
        let columns = Columns::choose(&strings(&["Batch Size", "GPU", "Time (ms)"]), &Query::default()).expect("found");
        assert_eq!(
            (columns.x.as_str(), columns.y.as_str(), columns.unit().as_str()),
            ("Batch Size", "Time (ms)", "ms")
        );
        let columns = Columns::choose(&strings(&["bs", "latency_us"]), &Query::default()).expect("found");
        assert_eq!(columns.unit(), "us");
        let columns = Columns::choose(&strings(&["batch", "seconds"]), &Query::default()).expect("found");
        assert_eq!(columns.unit(), "s");
        let columns = Columns::choose(&strings(&["batch", "time"]), &Query::default()).expect("found");
        assert_eq!(columns.unit(), "");
    }

    #[test]
    fn a_missing_column_is_an_error_with_a_remedy() {
        let error = Columns::choose(&strings(&["a", "b"]), &Query::default()).err().expect("refused").to_string();
        assert!(error.contains("the columns are: a, b") && error.contains("--x"), "{error}");
        let query = Query { x: Some("batch_sise".into()), ..Query::default() };
        let error = Columns::choose(&strings(&["batch_size", "time"]), &query).err().expect("refused").to_string();
        assert!(error.contains("did you mean `batch_size`?"), "{error}");
    }
}
