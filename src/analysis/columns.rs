//! Which column is what.

use super::Query;
use super::other_names::{OtherName, PEAK};
use crate::error::{Error, Result, nearest};
use crate::settings::AXES;
use crate::table::names::{self, Reading, Size, TimeOrRate, is_batch_size, is_size};
use crate::table::{Choice, STEP_TIMES, ambiguous};

/// The coordinates of a cell beside its batch size and the axes of the table of axes.
const OURS: &[&str] = &["model", "engine", "device", "device_name"];
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
    PEAK,
    STARTED,
    "disturbed",
    DELAY,
    OTHERS,
];

/// The columns of a table by their part.
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
    /// The x, and what the query names; the rest is found by name.
    pub fn choose(present: &[String], x: String, query: &Query) -> Result<Self> {
        let y = values(present, &x, query)?;
        let read = Reading::of(&y);
        let kind = query.kind.or(read.kind).unwrap_or_default();
        for name in query.group.iter().flatten() {
            named(present, name, "--group")?;
        }
        Ok(Self {
            x,
            y,
            kind,
            group: query.group.clone(),
            may_split: Vec::new(),
            present: present.to_vec(),
            others: Vec::new(),
        })
    }

    /// The columns of a table of another program, with `y` as its column of values.
    pub fn chosen(present: &[String], choice: &Choice, y: &str, query: &Query) -> Self {
        let (group, may_split) = match &query.group {
            Some(_) => (Some(choice.keys.clone()), Vec::new()),
            // A coordinate splits wherever it varies.
            None => (None, choice.keys.iter().filter(|key| !coordinates().any(|own| own == **key)).cloned().collect()),
        };
        let (x, present) = (choice.x.clone(), present.to_vec());
        Self { x, y: y.to_string(), kind: choice.kind, group, may_split, present, others: Vec::new() }
    }

    /// The same, with columns that are ours under another name.
    pub fn with(self, others: Vec<OtherName>) -> Self {
        Self { others, ..self }
    }

    /// The column that holds what we call `ours`, and what its values are multiplied by.
    pub fn theirs(&self, ours: &str) -> Option<(&str, f64)> {
        self.others.iter().find(|one| one.ours == ours).map(|one| (one.theirs.as_str(), one.factor))
    }

    /// What the x counts.
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
    pub fn wanted(&self) -> Vec<&str> {
        let mut wanted = vec![self.x.as_str(), self.y.as_str()];
        wanted.extend(self.group.iter().flatten().map(String::as_str));
        let known: Vec<&'static str> = OPTIONAL.iter().copied().chain(facts()).chain(coordinates()).collect();
        for name in known {
            if self.is_there(name) {
                wanted.push(name);
            }
        }
        wanted.extend(self.others.iter().map(|one| one.theirs.as_str()));
        wanted.extend(self.other_sizes());
        wanted.extend(self.may_split.iter().map(String::as_str));
        wanted.sort_unstable();
        wanted.dedup();
        wanted
    }

    /// The unit in the name of the y column.
    pub fn unit(&self) -> String {
        // Whoever calls a time a rate knows its unit too.
        let Reading { unit, .. } = Reading::of(&self.y);
        let differs = names::unit(&unit).is_some_and(|unit| unit.kind != self.kind);
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
            let mut seen = std::collections::BTreeSet::new();
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

/// The column of times or rates: what the query names, the usual names of times, then any rate, then what else may be a time.
fn values(present: &[String], x: &str, query: &Query) -> Result<String> {
    if let Some(name) = &query.y {
        return named(present, name, "--y");
    }
    let read: Vec<(&String, Reading)> =
        present.iter().filter(|name| *name != x).map(|name| (name, Reading::of(name))).collect();
    let asked = |kind: TimeOrRate| query.kind.is_none_or(|asked| asked == kind);
    let is_named = |wanted: &&str| read.iter().find(|(_, r)| r.stem == **wanted && r.kind != Some(TimeOrRate::Rate));
    if let Some((name, _)) = STEP_TIMES.iter().find_map(is_named).filter(|_| asked(TimeOrRate::Time)) {
        return Ok((*name).clone());
    }
    for kind in [TimeOrRate::Rate, TimeOrRate::Time].into_iter().filter(|&kind| asked(kind)) {
        let found: Vec<String> = read.iter().filter(|(_, r)| r.may_be(kind)).map(|(name, _)| (*name).clone()).collect();
        match &found[..] {
            [] => {}
            [one] => return Ok(one.clone()),
            several => return Err(ambiguous(&format!("measured {}", kind.name()), several, "--y")),
        }
    }
    let what = query.kind.map_or("step time, or a rate".to_string(), |kind| format!("measured {}", kind.name()));
    Err(Error::data(format!("no column looks like the {what}; the columns are: {}", present.join(", ")))
        .hint("name it with `--y COLUMN`"))
}

pub(super) fn named(present: &[String], name: &str, flag: &str) -> Result<String> {
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
    use super::super::sizes::SizeColumns;
    use super::*;

    fn strings(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    fn chosen(names: &[&str], query: &Query) -> Result<Columns> {
        let present = strings(names);
        match SizeColumns::choose(&present, query)? {
            SizeColumns::One(x) => Columns::choose(&present, x, query),
            SizeColumns::Several(sizes) => Err(ambiguous("size", &sizes, "--x")),
        }
    }

    #[test]
    fn columns_of_other_programs_are_found_by_name() {
        for (names, x, y, unit) in [
            (&["Batch Size", "GPU", "Time (ms)"][..], "Batch Size", "Time (ms)", "ms"),
            (&["bs", "latency_us"], "bs", "latency_us", "us"),
            (&["batch", "seconds"], "batch", "seconds", "s"),
            (&["batch", "time"], "batch", "time", ""),
            (&["num_tokens", "time_ms"], "num_tokens", "time_ms", "ms"),
            (&["seq_len", "batch_time"], "seq_len", "batch_time", ""),
            (&["N", "gbps"], "N", "gbps", "GB/s"),
            (&["M", "rep", "TFLOP/s"], "M", "TFLOP/s", "TFLOP/s"),
            (&["size", "kernel_ms", "kernel_std_ms"], "size", "kernel_ms", "ms"),
            (&["batch_size", "images_per_s"], "batch_size", "images_per_s", "images/s"),
        ] {
            let columns = chosen(names, &Query::default()).expect("found");
            assert_eq!((columns.x.as_str(), columns.y.as_str(), columns.unit().as_str()), (x, y, unit), "{names:?}");
        }
    }

    #[test]
    fn a_time_is_preferred_to_a_rate_unless_the_rate_is_asked_for() {
        let names = ["batch_size", "throughput", "step_time_ms"];
        assert_eq!(chosen(&names, &Query::default()).expect("found").y, "step_time_ms");
        let rate = Query { kind: Some(TimeOrRate::Rate), ..Query::default() };
        let columns = chosen(&names, &rate).expect("found");
        assert_eq!((columns.y.as_str(), columns.kind), ("throughput", TimeOrRate::Rate));
        // Any column may be called a rate.
        let query = |y: &str| Query { y: Some(y.into()), kind: Some(TimeOrRate::Rate), ..Query::default() };
        assert_eq!(chosen(&["n", "score"], &query("score")).expect("found").kind, TimeOrRate::Rate);
        let columns = chosen(&names, &query("step_time_ms")).expect("found");
        assert_eq!((columns.kind, columns.unit().as_str()), (TimeOrRate::Rate, ""), "its unit is none of a rate");
    }

    #[test]
    fn what_could_be_several_columns_is_a_message_that_names_them() {
        let said = |names: &[&str]| chosen(names, &Query::default()).err().expect("refused").to_string();
        let error = said(&["M", "N", "K", "time_ms"]);
        assert!(error.contains("several columns could be the size: M, N, K") && error.contains("--x"), "{error}");
        let error = said(&["n", "torch_tflops", "triton_tflops"]);
        assert!(error.contains("the measured rate: torch_tflops, triton_tflops") && error.contains("--y"), "{error}");
        let error = said(&["n", "forward_ms", "backward_ms"]);
        assert!(error.contains("the measured time: forward_ms, backward_ms"), "{error}");
        let many: Vec<String> = (1..=15).map(|i| format!("layer{i}_ms")).collect();
        let error = said(&[&["n"], &many.iter().map(String::as_str).collect::<Vec<_>>()[..]].concat());
        assert!(error.contains("layer12_ms and 3 more") && !error.contains("layer13"), "{error}");
    }

    #[test]
    fn a_missing_column_is_an_error_with_a_remedy() {
        let error = chosen(&["a", "q"], &Query::default()).err().expect("refused").to_string();
        assert!(error.contains("the columns are: a, q") && error.contains("--x"), "{error}");
        let error = chosen(&["n", "q"], &Query::default()).err().expect("refused").to_string();
        assert!(error.contains("step time, or a rate") && error.contains("--y"), "{error}");
        let query = Query { x: Some("batch_sise".into()), ..Query::default() };
        let error = chosen(&["batch_size", "time"], &query).err().expect("refused").to_string();
        assert!(error.contains("did you mean `batch_size`?"), "{error}");
    }
}
