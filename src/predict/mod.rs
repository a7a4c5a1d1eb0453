//! Predicts the step times of a spec's cells from the data in the database, with `prediction`. Each cell uses the best of three ways:
//! from the same network on the device, from other networks there, from the rates of devices.

pub mod database;
mod known;
pub mod model;
pub mod priced;
mod published;
pub mod published_kernels;
mod unseen;

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::predict::database::Database;
use crate::predict::model::Estimate;
use crate::settings::{AXES, EngineName};
use crate::spec::Experiment;
use crate::spec::plan::{Cell, Plan};
use crate::store::AxisValues;
use known::Measured;
use published::PublishedDevices;
pub use published::{PublishedGpu, PublishedKernels, published_kernels};
use unseen::Others;
pub use unseen::{Learned, learnable};

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub device: String,
    pub engine: String,
    pub model: String,
    /// The settings that differ between the rows of the same spec: `threads 2`.
    pub settings: String,
    pub batch_size: usize,
    /// The time of the fastest step of a visit.
    pub step: Estimate,
    /// By how much a typical step of that device took longer than the fastest of its visit; 1 where it is not known.
    pub slowdown: f64,
    pub basis: Basis,
    /// Mean power beside the steps of the nearest measured batch size.
    pub power_w: Option<f64>,
    /// The time jumps up after this batch size: the next example costs more.
    pub before_jump: bool,
    pub reported: Option<Reported>,
}

impl Row {
    /// A cell of a series on a device, with the engine `engine`, of which only the time is known.
    fn new(device: &str, engine: &str, series: &Series, cell: &Cell, step: Estimate, basis: Basis) -> Self {
        Self {
            device: device.to_owned(),
            engine: engine.to_owned(),
            model: cell.model.clone(),
            settings: series.settings.clone(),
            batch_size: cell.batch_size,
            step,
            slowdown: 1.0,
            basis,
            power_w: None,
            before_jump: false,
            reported: None,
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Reported {
    pub seconds: f64,
    /// What computed it, and where that is published.
    pub by: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    /// The curve of the same network on the same device.
    Curve { place: Place, runs: usize, repeated: bool },
    /// Layers of other networks (`networks` of them) on the same device.
    Layers { networks: usize, covered: bool },
    /// Rates of devices, and published kernels that were measured on `devices` devices; scaled from a device on which the step was measured, if
    /// one is named.
    Rates { devices: usize, kernels_on_it: bool, scaled_from: Option<String> },
}

/// Where a batch size lies among those that were measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Measured,
    Between,
    /// Between two of them, with a jump between them too.
    AtJump,
    Beyond,
}

/// Times of a table in docs/prediction.md that lay in their intervals, of all.
#[derive(Clone, Copy)]
struct Held {
    inside: u32,
    of: u32,
}

/// Just after a jump, in the same run.
const AT_JUMP: Held = Held { inside: 14, of: 20 };
/// Larger networks left out, on both engines.
const UNLIKE: Held = Held { inside: 32, of: 40 };

impl Basis {
    /// Where fewer lay in their intervals than should.
    fn held(&self) -> Option<Held> {
        match self {
            Self::Curve { place: Place::AtJump, .. } => Some(AT_JUMP),
            Self::Layers { covered: false, .. } => Some(UNLIKE),
            _ => None,
        }
    }

    /// The share of such times that lay in their intervals, where it is less than it should be.
    pub fn coverage_seen(&self) -> Option<f64> {
        self.held().map(|held| f64::from(held.inside) / f64::from(held.of))
    }

    pub fn describe(&self) -> String {
        match self.held() {
            Some(Held { inside, of }) => {
                format!("{}; {inside} of {of} such times lay in their intervals", self.source())
            }
            None => self.source(),
        }
    }

    fn source(&self) -> String {
        let counted = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        match self {
            Self::Curve { place, runs, repeated } => {
                let place = match place {
                    Place::Measured => "measured here",
                    Place::Between => "between measured batch sizes",
                    Place::AtJump => "between measured batch sizes where the time jumps",
                    Place::Beyond => "beyond the measured batch sizes",
                };
                let noise = if *repeated { "" } else { "; no run was repeated" };
                format!("{place}, {}{noise}", counted(*runs, "run"))
            }
            Self::Layers { networks, covered: true } => format!("layers of {networks} other networks here"),
            Self::Layers { networks, covered: false } => {
                format!(
                    "layers of {networks} other networks here, none as large or with such layers: less sure than the interval"
                )
            }
            Self::Rates { devices, kernels_on_it, scaled_from } => {
                let own = if *kernels_on_it { ", this one among them" } else { "" };
                let kernels = match devices {
                    0 => "rough: only from the rates of the device".to_owned(),
                    _ => format!(
                        "rough: single kernels that others measured on {}{own}; the interval is that of kernels of a device left out",
                        counted(*devices, "device")
                    ),
                };
                match scaled_from {
                    Some(device) => format!("{kernels}, scaled from {device}"),
                    None => kernels,
                }
            }
        }
    }

    /// A stable name, for JSON.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Curve { place: Place::Measured, .. } => "measured",
            Self::Curve { place: Place::Between | Place::AtJump, .. } => "between",
            Self::Curve { place: Place::Beyond, .. } => "beyond",
            Self::Layers { .. } => "layers",
            Self::Rates { .. } => "rates",
        }
    }
}

/// All rows, and sentences on cells that nothing is known about.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PredictedCells {
    pub rows: Vec<Row>,
    pub unknown: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Devices {
    /// One device: measured here, or by others.
    Named(String),
    Measured,
    /// Also devices that others measured.
    All,
}

/// The cells of one network with one engine and one set of settings: they differ only in the batch size.
pub(crate) struct Series<'a> {
    cells: Vec<&'a Cell>,
    engine: EngineName,
    settings: String,
}

impl Series<'_> {
    fn first(&self) -> &Cell {
        self.cells[0]
    }

    /// The axes as the engine of that name has them.
    fn axes(&self, engine: EngineName) -> AxisValues {
        AxisValues::new(engine, &self.first().workload.settings)
    }
}

/// The step times of the experiment's cells.
///
/// # Errors
/// [`crate::error::Kind::Spec`] if a device is not known, or nothing is known about any cell, with the available data and what would be
/// needed; [`crate::error::Kind::Data`] if the database cannot be read.
pub fn answer(database: &Database, experiment: &Experiment, devices: &Devices) -> Result<PredictedCells> {
    let plan = Plan::new(experiment)?;
    let published = PublishedDevices::read(database)?;
    let (measured, unmeasured) = chosen(database, &published, devices)?;
    let series = series(&plan, experiment);
    let mut answer = PredictedCells::default();
    for device in &measured {
        let known = Measured::new(database, device)?;
        let mut others = BTreeMap::new();
        for series in &series {
            let found = match known.rows(series)? {
                Some(rows) => Ok(rows),
                None => {
                    let engine = known.engine(series.engine);
                    let key = format!("{engine} {:?}", series.axes(engine));
                    if !others.contains_key(&key) {
                        others.insert(key.clone(), Others::read(&known, series, engine)?);
                    }
                    others[&key].rows(series, &known)
                }
            };
            match found {
                Ok(rows) => answer.rows.extend(rows),
                Err(sentence) => answer.unknown.push(sentence),
            }
        }
    }
    for device in &unmeasured {
        for series in &series {
            answer.rows.extend(published.rows(database, device, series)?);
        }
    }
    match answer.unknown.first() {
        Some(sentence) if answer.rows.is_empty() => Err(Error::spec(sentence.clone())
            .at(database.root().display().to_string())
            .hint("measure it: `batchstep run SPEC` and `batchstep collect`; or measure networks to learn from: `batchstep run experiments/predict/generated_cpu.toml`")),
        _ => Ok(answer),
    }
}

/// The measured devices, and those without measured steps.
fn chosen(database: &Database, published: &PublishedDevices, devices: &Devices) -> Result<(Vec<String>, Vec<String>)> {
    let Devices::Named(asked) = devices else {
        if database.devices.is_empty() {
            return Err(Error::spec("the database has no measured steps")
                .at(database.root().display().to_string())
                .hint("collect a run: `batchstep collect RUN --into DIR`"));
        }
        let unmeasured = if *devices == Devices::All { published.names() } else { Vec::new() };
        return Ok((database.devices.clone(), unmeasured));
    };
    match database.device(asked) {
        Ok(device) => Ok((vec![device.to_owned()], Vec::new())),
        Err(error) => match published.find(asked) {
            Some(device) => Ok((Vec::new(), vec![device])),
            None if published.names().is_empty() => Err(error),
            None => Err(Error::spec(format!(
                "no device is called `{asked}`; the database has measured steps of: {}; and only published measurements of: {}",
                database.devices.join(", "),
                published.names().join(", ")
            ))
            .at(database.root().display().to_string())
            .hint("measure on it and collect the run: `batchstep collect RUN --into DIR`")),
        },
    }
}

fn series<'a>(plan: &'a Plan, experiment: &Experiment) -> Vec<Series<'a>> {
    let varies = |axis: &&crate::settings::Axis| experiment.grid.values(axis).len() > 1;
    let varying: Vec<_> = AXES.iter().filter(varies).collect();
    let same =
        |a: &Cell, b: &Cell| a.model == b.model && a.engine == b.engine && a.workload.settings == b.workload.settings;
    let of = |cells: &'a [Cell]| {
        let settings = &cells[0].workload.settings;
        let value =
            |axis: &&crate::settings::Axis| format!("{} {}", axis.label(), axis.value_label((axis.get)(settings)));
        let words: Vec<String> = varying.iter().map(value).collect();
        Series { engine: cells[0].engine, settings: words.join(", "), cells: cells.iter().collect() }
    };
    plan.cells.chunk_by(same).map(of).collect()
}

/// The places of the names that are `asked`, else of those with that word; in any case.
fn called(names: &[&str], asked: &str) -> Vec<usize> {
    let wanted = asked.to_lowercase();
    let all = |is: &dyn Fn(&str) -> bool| (0..names.len()).filter(|at| is(&names[*at].to_lowercase())).collect();
    let whole: Vec<usize> = all(&|name| name == wanted);
    if whole.is_empty() { all(&|name| name.split([' ', '-']).any(|word| word == wanted)) } else { whole }
}
