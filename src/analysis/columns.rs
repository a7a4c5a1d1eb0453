//! Which column is what.

use std::collections::BTreeSet;

use super::Query;
use super::other_names::{OtherName, PEAK};
use crate::error::{Error, Result, nearest};
use crate::settings::AXES;
use crate::table::amounts::{is_batch_size, is_size};
use crate::table::names::Reading;
use crate::table::{Choice, Size, TimeOrRate, units};

/// The x of the tables that batchstep writes, and the measured time of each.
const SIZE: &str = "batch_size";
const TIMES: &[&str] = &["step_time_s", "epoch_time_s", "elapsed_s", "median_s"];
/// The coordinates of a cell beside its batch size and the axes of the table of axes.
const OURS: &[&str] = &["model", "engine", "device", "device_name"];
/// Those that follow from the engine.
pub(super) const FOLLOW_THE_ENGINE: &[&str] = &["device", "device_name"];
/// What others call them.
const FOREIGN: &[&str] = &["network", "gpu", "framework"];
/// The machine that measured a step.
pub(super) const NODE: &str = "node";
/// What the x of a run counts, where it is not the batch size.
pub(super) const X_NAME: &str = "x_name";
/// When a visit began.
pub(super) const STARTED: &str = "started_s";
/// How much longer a step took because its threads waited for processors, and the times that it is a part of.
pub(super) const DELAY: &str = "delay_s";
pub(super) const WAITS_IN: &str = "step_time_s";
/// The programs that ran beside a visit.
pub(super) const OTHERS: &str = "others";
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
    NODE,
    X_NAME,
];
/// Columns of a step that are read where they are there: of numbers, and of what is true of it or not.
pub(super) const NUMBERS: &[&str] = &[
    "order",
    "block",
    "visit",
    "cell",
    "sm_clock_hz",
    "cpu_clock_hz",
    "temperature_c",
    "cycles",
    "task_clock_s",
    PEAK,
    STARTED,
    DELAY,
];
pub(super) const FLAGS: &[&str] = &["warmup", "outlier", "disturbed", "status"];

#[derive(Default)]
pub(super) struct Columns {
    pub x: String,
    pub y: String,
    pub kind: TimeOrRate,
    group: Option<Vec<String>>,
    /// Columns that split a table of another program where they differ at the same x.
    may_split: Vec<String>,
    present: Vec<String>,
    /// Columns that are ours under another name.
    others: Vec<OtherName>,
}

impl Columns {
    /// The columns of a table that batchstep wrote: what the query names, and the rest by its name.
    pub fn choose(present: &[String], query: &Query) -> Result<Self> {
        let x = chosen(present, query.x.as_ref(), &[SIZE], "--x", "the batch size")?;
        // The tables measure times; which column is to be read as a rate is not known.
        let (times, what): (&[&str], &str) = match query.kind {
            Some(TimeOrRate::Rate) => (&[], "a measured rate"),
            _ => (TIMES, "the measured time"),
        };
        let y = chosen(present, query.y.as_ref(), times, "--y", what)?;
        let kind = query.kind.or(Reading::of(&y).kind).unwrap_or_default();
        for name in query.group.iter().flatten() {
            named(present, name, "--group")?;
        }
        Ok(Self { x, y, kind, group: query.group.clone(), present: present.to_vec(), ..Self::default() })
    }

    /// The columns of a table of another program, with `y` as its column of values, and `others` that are ours under another name.
    pub fn chosen(present: &[String], choice: &Choice, y: &str, query: &Query, others: Vec<OtherName>) -> Self {
        let (group, may_split) = match &query.group {
            Some(_) => (Some(choice.keys.clone()), Vec::new()),
            // A coordinate splits wherever it varies.
            None => (None, choice.keys.iter().filter(|key| !coordinates().any(|own| own == **key)).cloned().collect()),
        };
        let (x, present) = (choice.x.clone(), present.to_vec());
        Self { x, y: y.to_string(), kind: choice.kind, group, may_split, present, others }
    }

    /// The column that holds what we call `ours`, and what its values are multiplied by.
    pub fn theirs(&self, ours: &str) -> Option<(&str, f64)> {
        self.others.iter().find(|one| one.ours == ours).map(|one| (one.theirs.as_str(), one.factor))
    }

    pub fn size(&self) -> Size {
        Size::of(&self.x)
    }

    /// Whether the name of a key says that it is another size than the x: it then splits a table only if it does not determine the x.
    pub fn is_other_size(&self, key: &str) -> bool {
        self.group.is_none() && (is_size(key) || is_batch_size(key))
    }

    /// Whether a key splits the table only where it differs at the same x.
    pub fn may_split(&self, key: &str) -> bool {
        self.may_split.iter().any(|name| name == key)
    }

    /// Every column worth reading.
    pub fn wanted(&self) -> BTreeSet<&str> {
        let mut wanted = BTreeSet::from([self.x.as_str(), self.y.as_str()]);
        wanted.extend(self.group.iter().flatten().map(String::as_str));
        let of_steps = [NUMBERS, FLAGS, &[OTHERS]].concat().into_iter();
        let present = of_steps.chain(facts()).chain(coordinates()).filter(|name| self.is_there(name));
        for name in present {
            wanted.insert(name);
        }
        wanted.extend(self.others.iter().map(|one| one.theirs.as_str()));
        wanted.extend(self.other_sizes());
        wanted.extend(self.may_split.iter().map(String::as_str));
        wanted
    }

    /// The unit in the name of the y column.
    pub fn unit(&self) -> String {
        // Whoever calls a time a rate knows its unit too.
        let Reading { unit, .. } = Reading::of(&self.y);
        let differs = units::unit(&unit).is_some_and(|unit| unit.kind != self.kind);
        if differs { String::new() } else { unit }
    }

    /// Sizes beside the x. Beside a batch size only those of a language model's input: an `n` there may be anything.
    fn other_sizes(&self) -> impl Iterator<Item = &str> {
        let of_a_batch = is_batch_size(&self.x);
        let counts = move |name: &str| {
            if of_a_batch { Size::of(name).item == "token" } else { is_size(name) || is_batch_size(name) }
        };
        let others = self.present.iter().filter(|name| **name != self.x && **name != self.y);
        others.map(String::as_str).filter(move |name| counts(name))
    }

    /// The columns whose values may split the table: those asked for, else every coordinate.
    pub fn keys(&self) -> Vec<String> {
        let splits = |name: &&str| self.is_there(name) && **name != self.x && **name != self.y;
        self.group.clone().unwrap_or_else(|| {
            let mut keys: Vec<String> = coordinates().filter(splits).map(str::to_string).collect();
            keys.extend(self.other_sizes().map(str::to_string));
            keys.extend(self.may_split.iter().cloned());
            // In the order of the columns, so that a series is called by its model first.
            let mut seen = BTreeSet::new();
            keys.retain(|key| seen.insert(key.clone()));
            keys
        })
    }

    /// The places of the keys that split the table: all keys that were asked for, else the model and every coordinate for which
    /// `varies` holds. If machines share a series (`shared`), the numbers of their devices do not split it.
    pub fn splits(&self, keys: &[String], shared: bool, varies: impl Fn(usize) -> bool) -> Vec<usize> {
        let splits = |key: &usize| self.group.is_some() || keys[*key] == "model" || varies(*key);
        let mut group: Vec<usize> = (0..keys.len()).filter(splits).collect();
        // A device and its name are redundant, unless several devices have the same name.
        if self.group.is_none() && (shared || group.iter().any(|&key| keys[key] == "device_name")) {
            group.retain(|&key| keys[key] != "device");
        }
        group
    }

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

/// The column that a flag names, else one of the `usual` names.
fn chosen(present: &[String], asked: Option<&String>, usual: &[&str], flag: &str, what: &str) -> Result<String> {
    if let Some(name) = asked {
        return named(present, name, flag);
    }
    let found = usual.iter().find_map(|name| present.iter().find(|column| column == name));
    found.cloned().ok_or_else(|| {
        Error::data(format!("no column is {what}; the columns are: {}", present.join(", ")))
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

    fn chosen(names: &[&str], query: &Query) -> Result<Columns, String> {
        let present: Vec<String> = names.iter().map(ToString::to_string).collect();
        Columns::choose(&present, query).map_err(|error| error.to_string())
    }

    #[test]
    fn each_table_of_ours_has_its_size_and_its_time() {
        let clocks = ["sm_clock_hz", "cpu_clock_hz", "wait_time_s"];
        for time in ["step_time_s", "epoch_time_s", "elapsed_s", "median_s"] {
            let names = [&clocks[..], &["workers", "batch_size", time]].concat();
            let columns = chosen(&names, &Query::default()).expect("found");
            assert_eq!((columns.x.as_str(), columns.y.as_str(), columns.kind), ("batch_size", time, TimeOrRate::Time));
            assert_eq!(columns.unit(), "s");
        }
        let rate = Query { kind: Some(TimeOrRate::Rate), ..Query::default() };
        let names = ["batch_size", "step_time_s", "sm_clock_hz"];
        let error = chosen(&names, &rate).err().expect("refused");
        assert!(error.contains("no column is a measured rate") && error.contains("--y"), "{error}");
        let query = |y: &str| Query { y: Some(y.into()), ..rate.clone() };
        let columns = chosen(&names, &query("sm_clock_hz")).expect("found");
        assert_eq!((columns.y.as_str(), columns.kind), ("sm_clock_hz", TimeOrRate::Rate));
        // Any column may be called a rate; its unit is none of a rate then.
        let columns = chosen(&names, &query("step_time_s")).expect("found");
        assert_eq!((columns.kind, columns.unit().as_str()), (TimeOrRate::Rate, ""));
    }

    #[test]
    fn a_missing_column_is_an_error_with_a_remedy() {
        let error = chosen(&["a", "step_time_s"], &Query::default()).err().expect("refused");
        assert!(error.contains("the columns are: a, step_time_s") && error.contains("--x"), "{error}");
        let error = chosen(&["batch_size", "q"], &Query::default()).err().expect("refused");
        assert!(error.contains("no column is the measured time") && error.contains("--y"), "{error}");
        let query = Query { x: Some("batch_sise".into()), ..Query::default() };
        let error = chosen(&["batch_size", "step_time_s"], &query).err().expect("refused");
        assert!(error.contains("did you mean `batch_size`?"), "{error}");
    }
}
