//! Turns stored data into series: which column is the batch size, which is the time, which values separate series. The same
//! path serves a run that has just ended, a run of last year, and a file of another program.

pub mod advice;
mod bound;
pub mod causes;
mod cell_medians;
mod columns;
mod command;
pub mod compare;
pub mod contrast;
pub mod control;
pub mod crossover;
mod distinct;
pub mod environment;
mod gathering;
mod goal;
mod interference;
pub mod kernels;
pub mod link;
pub mod losses;
mod measured_columns;
pub mod mechanisms;
mod other_names;
pub mod roofline;
mod setup;
mod sheets;
pub mod size_class;
pub mod slow;
mod sources;
pub mod switches;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::detect::baseline::{self, Baseline};
use crate::detect::{self, Early, Findings, HardwareNumbers, Observation};
use crate::error::{Error, Result};
use crate::foreign;
use crate::settings::{AXES, Domain, EngineName, Text};
use crate::store::Table;
pub use crate::table::{Query, Size, TimeOrRate};
use crate::table::{names, units};
use columns::Columns;
pub use command::again;
use gathering::{Gathering, MOST_STEPS};
use goal::Asked;
pub use goal::Goal;
pub use sheets::columns_apart;
pub use sources::run_names;

/// One measured step, with what was in force.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    pub observation: Observation,
    pub warmup: bool,
    pub outlier: bool,
    /// Whether another program held it up.
    pub disturbed: bool,
    /// The part of y by which it would have ended earlier if no thread had waited.
    pub delay: Option<f64>,
    /// Nulls are `None`.
    pub clock_hz: Option<f64>,
    pub temperature_c: Option<f64>,
}

/// One series: the step times of one combination of group values.
#[derive(Clone, Debug, Default)]
pub struct Series {
    pub source: String,
    /// Column and value, in the order of the columns.
    pub group: Vec<(String, String)>,
    pub size: Size,
    /// The column of the values.
    pub y: String,
    pub kind: TimeOrRate,
    /// Their unit: `s`, `ms`, `GB/s`, ..., or empty where the column does not say.
    pub unit: String,
    /// Every step, in the order of the file, including warm-up; for a very large file a sample, see `kept`.
    pub measurements: Vec<Measurement>,
    /// The share of the visits that `measurements` holds; below 1 only where a file holds more than two million steps.
    pub kept: f64,
    /// Values that are the same for the whole series, from the columns that batchstep writes: device, precision, link.
    pub facts: BTreeMap<String, String>,
    /// The numbers of its cells in the plan of the run, in data that batchstep wrote.
    pub cells: BTreeSet<i64>,
    /// The machines that measured it, in data that batchstep wrote: what an observation's `node` counts.
    pub nodes: Vec<String>,
    /// For each size, by the bits of its x, the peak memory of a visit in bytes; the least over several visits, since some frameworks never
    /// reset a peak. Empty if no peaks were read.
    pub peaks: BTreeMap<u64, f64>,
    /// When the first and when the last of its visits began (Unix time, in seconds), in data that batchstep wrote.
    pub measured: Option<[f64; 2]>,
    /// For each column of the table that holds no number in some rows, of any series, those rows, which are left out.
    pub gaps: Vec<Gap>,
    /// The sizes of its rows without a value, ascending; mostly too large for the memory.
    pub failed: Vec<f64>,
    /// The other programs that ran where steps of its run were disturbed, and the most processes of each at a time.
    pub others: BTreeMap<String, usize>,
    /// How a table of another program was read; for a run, that its spec cannot be read.
    pub notes: Vec<String>,
    pub asked: Query,
    /// What the spec of its run asks for, and how far the run has come; `None` in data of other programs.
    pub goal: Option<Goal>,
}

/// Rows of a table that are left out, as a cell is empty or no finite number.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    pub column: String,
    pub rows: usize,
    /// The line of the first of them.
    pub first_line: usize,
    /// The first sizes that they are of, ascending, where the other column holds them; and whether there are more.
    pub sizes: Vec<f64>,
    pub more_sizes: bool,
    /// The text of the first of them, such as `OOM`, if it has any.
    pub said: Option<String>,
}

impl Series {
    /// The steps that count. A rate over the clock is what a time times the clock is, so a rate has the inverse clock.
    pub fn observations(&self) -> Vec<Observation> {
        let counted = interference::counted(&self.measurements);
        match self.kind {
            TimeOrRate::Time => counted.collect(),
            TimeOrRate::Rate => counted.map(|o| Observation { clock_hz: o.clock_hz.map(f64::recip), ..o }).collect(),
        }
    }

    /// The group's values, to call the series by: `vgg16`, `vgg16, bf16`, `vgg16, threads 2`; its source where it has none.
    pub fn label(&self) -> String {
        self.label_of(|_| true)
    }

    /// The same by the columns that count.
    fn label_of(&self, counts: impl Fn(&str) -> bool) -> String {
        let values = self.values_of(counts);
        if values.is_empty() { foreign::name(&self.source) } else { values }
    }

    /// The group's values; empty where nothing distinguishes the series of a file, which then has one.
    pub fn values(&self) -> String {
        self.values_of(|_| true)
    }

    /// The same in the columns that count.
    pub fn values_of(&self, counts: impl Fn(&str) -> bool) -> String {
        let word = |(name, value): &(String, String)| {
            // A bare number would leave the reader to guess.
            let bare = value.parse::<f64>().is_ok();
            let is_object = AXES.iter().any(|axis| axis.column == name && axis.domain == Domain::Text);
            foreign::name(&match value {
                _ if is_object => Text::new(value).in_words(),
                _ if bare => format!("{name} {value}"),
                _ => value.clone(),
            })
        };
        let said = |(name, value): &&(String, String)| !is_null(value) && counts(name);
        let values: Vec<String> = self.group.iter().filter(said).map(word).collect();
        values.join(", ")
    }

    /// Whether both have the same group in the columns that count.
    fn is_like(&self, other: &Self, counts: impl Fn(&str) -> bool) -> bool {
        let [own, others] = [self, other].map(|series| series.group.iter().filter(|(name, _)| counts(name)));
        own.eq(others)
    }

    /// The group's value in one column.
    pub fn value(&self, column: &str) -> Option<&str> {
        self.group.iter().find(|(name, _)| name == column).map(|(_, value)| value.as_str())
    }

    /// The engine that executed it, in data that batchstep wrote.
    pub fn engine(&self) -> Option<EngineName> {
        EngineName::from_name(self.facts.get("engine")?)
    }

    /// Whether its values are what a model says, by the name of their column.
    pub fn is_forecast(&self) -> bool {
        names::Reading::of(&self.y).is_forecast()
    }

    /// The grade of its values: `measured here` for a run of batchstep, and `from FILE` for another program's table, whose origin is not known.
    pub fn origin(&self) -> String {
        let name = || {
            Path::new(&self.source).file_name().map_or(self.source.clone(), |name| name.to_string_lossy().into_owned())
        };
        if self.cells.is_empty() { format!("from {}", name()) } else { "measured here".to_owned() }
    }

    /// Seconds in one unit of the times, where they are times and the unit is known.
    pub fn seconds_per_unit(&self) -> Option<f64> {
        units::unit(&self.unit).filter(|unit| unit.kind == TimeOrRate::Time).map(|unit| unit.factor)
    }

    /// The unit without its prefix, and how many of it make up one unit: `GB/s` is 1e9 `B/s`. An unknown unit is 1 of itself.
    pub fn base_unit(&self) -> BaseUnit {
        match units::unit(&self.unit) {
            Some(unit) => BaseUnit { name: unit.base.to_string(), factor: unit.factor },
            None => BaseUnit { name: self.unit.clone(), factor: 1.0 },
        }
    }

    /// What the machine counts in, from the columns that batchstep writes.
    pub fn hardware(&self) -> HardwareNumbers {
        let fact = |name: &str| self.facts.get(name).and_then(|value| value.parse::<f64>().ok()).map(|n| n as u32);
        HardwareNumbers {
            multiprocessors: fact("multiprocessors"),
            link_width: fact("pcie_link_width"),
            threads: fact("threads"),
        }
    }

    /// Finds the jumps; the numbers of the hardware are those of the series.
    pub fn find(&self, settings: &detect::Settings) -> Findings {
        let is_rate = self.kind == TimeOrRate::Rate;
        let (hardware, nodes) = (self.hardware(), self.nodes.clone());
        let settings = detect::Settings { hardware, nodes, is_rate, ..settings.clone() };
        self.searched(&settings, detect::detect)
    }

    /// What `search` finds; nothing is searched before the run has the blocks that it asks for.
    fn searched(
        &self,
        settings: &detect::Settings,
        search: impl Fn(&[Observation], &detect::Settings) -> Findings,
    ) -> Findings {
        let observations = self.observations();
        let brief = detect::Settings { resamples: 0, ..settings.clone() };
        let mut found = match self.early() {
            Some(early) => detect::unsearched(&observations, settings, early),
            None => search(&observations, settings),
        };
        bound::falls(&mut found);
        interference::judge(self, &mut found, |seen| search(seen, &brief), settings);
        found.notes.extend(interference::note(self));
        Findings { asked: self.goal.as_ref().map(|goal| goal.smallest_jump), ..found }
    }

    /// Whether nothing may be reported of its run yet, and why.
    pub fn early(&self) -> Option<Early> {
        self.goal.as_ref().and_then(Goal::early)
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct BaseUnit {
    pub name: String,
    pub factor: f64,
}

#[derive(Clone, Debug)]
pub struct Analysed {
    pub series: Series,
    pub findings: Findings,
}

impl Analysed {
    /// Which series come first where not all are shown: 0 with jumps, 1 with only kinks or a period, 2 with none of them.
    pub fn rank(&self) -> u8 {
        let Findings { jumps, kinks, period, .. } = &self.findings;
        match (jumps.is_empty(), kinks.is_empty() && period.is_none()) {
            (false, _) => 0,
            (true, false) => 1,
            (true, true) => 2,
        }
    }
}

#[cfg(test)]
impl Series {
    /// A series of a run, in seconds, with defaults for everything that a test does not care about.
    pub(crate) fn planted(group: Vec<(String, String)>, measurements: Vec<Measurement>) -> Self {
        let (size, y) = (Size::of("batch_size"), "step_time_s".into());
        Self { source: "run".into(), group, size, y, unit: "s".into(), measurements, kept: 1.0, ..Self::default() }
    }

    /// The same with one step of `y(block, size)` at each of `sizes` in each of `blocks` blocks.
    pub(crate) fn in_blocks(
        group: &[(&str, &str)],
        blocks: u32,
        sizes: &[f64],
        mut y: impl FnMut(u32, f64) -> f64,
    ) -> Self {
        let places = (0..blocks).flat_map(|block| sizes.iter().map(move |x| (block, *x)));
        let step = |(block, x)| Observation { block: Some(block), ..Observation::new(x, y(block, x)) }.into();
        let group = group.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self::planted(group, places.map(step).collect())
    }
}

#[cfg(test)]
impl From<Observation> for Measurement {
    /// A step that counts, without further facts.
    fn from(observation: Observation) -> Self {
        Self {
            observation,
            warmup: false,
            outlier: false,
            disturbed: false,
            delay: None,
            clock_hz: None,
            temperature_c: None,
        }
    }
}

/// Each value once, in the order in which they first appear.
pub fn distinct<T: PartialEq>(values: impl Iterator<Item = T>) -> Vec<T> {
    values.fold(Vec::new(), |mut found, value| {
        if !found.contains(&value) {
            found.push(value);
        }
        found
    })
}

/// How a null of a column reads as text: of texts, and of numbers.
fn is_null(text: &str) -> bool {
    matches!(text, "" | "NaN")
}

/// Every series that `path` holds, and the jumps in it: as a baseline finds them, or by the method of this crate.
///
/// # Errors
/// As [`series`].
pub fn analyse(path: &Path, query: &Query, baseline: Option<Baseline>) -> Result<Vec<Analysed>> {
    let settings = detect::Settings::default();
    let find = |series: Series| {
        let findings = match baseline {
            None => series.find(&settings),
            Some(baseline) => series.searched(&settings, |seen, settings| baseline::detect(baseline, seen, settings)),
        };
        Analysed { series, findings }
    };
    Ok(series(path, query)?.into_iter().map(find).collect())
}

/// Reads every series in `path`: in the order of the plan, or for other programs in the order of first appearance.
///
/// The file is read batch by batch. Up to two million steps are kept, some 0.2 GB. In a larger file, whole visits are left
/// out of the longest series, by a hash of their numbers, until the rest fits: the result is that of a random sample of visits.
///
/// # Errors
/// [`crate::error::Kind::Data`] where a column is missing (with the nearest name), or holds what is not a number; as
/// [`Table::read`] where the file can't be read.
pub fn series(path: &Path, query: &Query) -> Result<Vec<Series>> {
    sources::check(path)?;
    let mut series = match Table::sheet(path)? {
        Some(sheet) => sheets::series(path, &sheet, query)?,
        None => {
            let columns =
                Columns::choose(&Table::names(path)?, query).map_err(|error| error.at(path.display().to_string()))?;
            let mut gathering = Gathering::new(columns, MOST_STEPS, Asked::of(path)?);
            let wanted = gathering.wanted();
            let wanted: Vec<&str> = wanted.iter().map(String::as_str).collect();
            Table::scan(path, &wanted, &mut |batch| gathering.take(&batch))?;
            gathering.series(path)
        }
    };
    series.iter_mut().for_each(|series| series.asked = query.clone());
    if series.is_empty() {
        return Err(Error::data("no row contains both a size and a measured value").at(path.display().to_string()));
    }
    Ok(series)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::detect::Verdict;

    #[test]
    fn a_label_explains_bare_numbers() {
        let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
        let series = Series::planted(vec![pair("model", "vgg16"), pair("threads", "2")], Vec::new());
        assert_eq!(series.label(), "vgg16, threads 2");
        let series = Series::planted(vec![pair("gpu", "T4\n\u{1b}[2J\u{202e}")], Vec::new());
        assert_eq!(series.label(), "T4\\n\\u001b[2J\\u202e");
    }

    /// A table of a processor with and without counters. After 20 its clock drops by a tenth: the same cycles take longer. After 45 there is more
    /// work at the same clock. Two threads work, and the counters sum over both; the kernel's nominal clock never changes.
    fn counted(counters: bool) -> String {
        let mut text = "batch_size,block,order,step_time_s,cpu_clock_hz,cycles,task_clock_s\n".to_owned();
        let mut random = crate::random::Rng::new(7);
        for block in 0..12 {
            for x in 1..=60 {
                let work = 0.05 + 0.001 * f64::from(x) + if x > 45 { 0.005 } else { 0.0 };
                let clock = if x > 20 { 1.35e9 } else { 1.5e9 };
                let time = work * 1.5e9 / clock * (1.0 + 0.004 * random.normal());
                let order = block * 60 + (x * 37) % 60;
                let counts = if counters { format!("{},{}", 2.0 * time * clock, 2.0 * time) } else { ",".to_owned() };
                text.push_str(&format!("{x},{block},{order},{time},2.5e9,{counts}\n"));
            }
        }
        text
    }

    #[test]
    fn counted_cycles_tell_work_from_a_slow_clock() {
        let verdicts = |counters: bool| -> Vec<(f64, Option<Verdict>)> {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("steps.csv");
            std::fs::write(&path, counted(counters)).expect("written");
            let found = analyse(&path, &Query::default(), None).expect("analysed");
            found[0].findings.jumps.iter().map(|jump| (jump.after, jump.verdict)).collect()
        };
        assert_eq!(verdicts(true), [(20.0, Some(Verdict::Clock)), (45.0, Some(Verdict::Work))]);
        assert_eq!(verdicts(false), [(20.0, None), (45.0, None)]);
    }
}
