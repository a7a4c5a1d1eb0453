//! One run directory as rows of the database.

use std::collections::BTreeMap;
use std::path::Path;

use super::beside::Beside;
use super::findings::SeriesFindings;
use super::identity::{describe, network_id};
use super::lacking::leave_out;
use crate::analysis::environment::Environment;
use crate::error::{Error, Kind, Result};
use crate::kinds::StudyKind;
use crate::network::Sides;
use crate::os::look;
use crate::settings::Precision;
use crate::spec::plan::{Cell, Plan};
use crate::spec::{Experiment, parse_as, text_of};
use crate::store::{
    AxisValues, CellRow, CollectedCell, CollectedLayer, CollectedRun, LayerRow, MeasuredPeaks, dataset, digest, files,
    sealed, sealed_kind,
};

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DeviceAndNetwork {
    pub device: String,
    pub network: String,
}

/// The rows for one network on one device.
#[derive(Default)]
pub(super) struct Part {
    pub cells: Vec<CollectedCell>,
    pub layers: Vec<CollectedLayer>,
}

pub(super) struct Gathered {
    /// By device.
    pub runs: BTreeMap<String, CollectedRun>,
    pub parts: BTreeMap<DeviceAndNetwork, Part>,
}

/// A run directory whose small files were read.
pub(super) struct Candidate<'a> {
    path: &'a Path,
    environment: Environment,
    environment_text: String,
    pub digest: String,
    schema_version: u32,
}

impl<'a> Candidate<'a> {
    /// Looks at the run directory `path`.
    ///
    /// # Errors
    /// [`Kind::Data`] with the reason, if it is not a run that can be collected.
    pub fn open(path: &'a Path) -> Result<Self> {
        let here = |error: Error| error.at(path.display().to_string());
        let cells = path.join(files::CELLS);
        if !look::is_file(&cells)? {
            return Err(here(why_not(path)?));
        }
        let environment_text = look::text(&path.join(files::ENVIRONMENT))?.unwrap_or_default();
        let damaged = |why: &dyn std::fmt::Display| {
            here(
                Error::data(format!("its {} cannot be read: {why}", files::ENVIRONMENT))
                    .hint("a run without its environment belongs to no device: measure it again"),
            )
        };
        let environment: Environment = serde_json::from_str(&environment_text).map_err(|error| damaged(&error))?;
        if environment.run_id.is_empty() {
            return Err(damaged(&"it has no `run_id`"));
        }
        let mut tables = Vec::new();
        for name in [files::CELLS, files::LAYERS, files::JUMPS] {
            tables.push(look::bytes(&path.join(name))?.unwrap_or_default());
        }
        let digest = digest(tables.iter().map(Vec::as_slice));
        let version = dataset::metadata(&cells)?.get("batchstep.schema_version").and_then(|text| text.parse().ok());
        let schema_version = version.ok_or_else(|| here(Error::data("its tables were not written by batchstep")))?;
        Ok(Self { path, environment, environment_text, digest, schema_version })
    }

    pub fn run_id(&self) -> &str {
        &self.environment.run_id
    }

    /// Reads everything that is kept of it.
    ///
    /// # Errors
    /// [`Kind::Data`] where its tables are of a newer schema or disagree with its spec, or where it is an A/A run.
    pub fn gather(self) -> Result<Gathered> {
        let path = self.path;
        let mut experiment = experiment(path)?;
        let mut plan = Plan::new(&experiment)?;
        let rows: Vec<CellRow> = sealed(&path.join(files::CELLS))?;
        if rows.len() < plan.cells.len() {
            leave_out(&mut experiment, path)?;
            plan = Plan::new(&experiment)?;
        }
        let findings = SeriesFindings::read(path)?;
        let (beside, none) = (Beside::read(path)?, Beside::default());
        // Each network is hashed once.
        let mut identities: BTreeMap<String, [String; 2]> = BTreeMap::new();
        let mut identity = |planned: &Cell| {
            let (network, model) = (&planned.workload.network, &planned.model);
            let of_network = || [network_id(network), describe(network, model)];
            identities.entry(model.clone()).or_insert_with(of_network).clone()
        };
        let mut parts: BTreeMap<DeviceAndNetwork, Part> = BTreeMap::new();
        let mut place_of = BTreeMap::new();
        for row in rows {
            let planned = planned(&plan, path, "cell", (row.cell, &row.model, row.batch_size))?;
            let [network_id, network] = identity(planned);
            let device = self.device_of(&row.engine)?;
            let facts = beside.get(&row.cell).unwrap_or(&none);
            let mut cell = CollectedCell {
                run_id: self.environment.run_id.clone(),
                source: "batchstep".into(),
                engine: row.engine.clone(),
                device_name: device.name.clone(),
                model: row.model,
                network_id,
                input: planned.workload.network.input().to_string(),
                outputs: planned.workload.network.output().count() as i64,
                parameters: planned.workload.network.trainable_count() as i64,
                axes: axes(planned, &row.engine),
                batch_size: row.batch_size,
                median_s: row.median_s,
                low_s: row.low_s,
                high_s: row.high_s,
                fastest_s: facts.fastest_s(),
                blocks: row.blocks,
                steps: row.steps,
                stop_reason: row.stop_reason,
                power_w: facts.power_w(),
                pcie_link_width: facts.link_width,
                pcie_link_generation: facts.link_generation,
                ..CollectedCell::default()
            };
            SeriesFindings::mark(&findings, &mut cell);
            let place = DeviceAndNetwork { device: device.key, network };
            place_of.insert(row.cell, place.clone());
            parts.entry(place).or_default().cells.push(cell);
        }
        // A run of the synthetic engine has none.
        let has_layers = look::is_file(&path.join(files::LAYERS))?;
        for row in if has_layers { sealed::<LayerRow>(&path.join(files::LAYERS))? } else { Vec::new() } {
            let planned = planned(&plan, path, "layer of cell", (row.cell, &row.model, row.batch_size))?;
            let Some(part) = place_of.get(&row.cell).and_then(|key| parts.get_mut(key)) else { continue };
            let ([network_id, _], sides) = (identity(planned), sides(planned, &row.layer));
            part.layers.push(layer(row, planned, network_id, sides));
        }
        let runs = self.runs(&experiment, &parts)?;
        Ok(Gathered { runs, parts })
    }

    fn device_of(&self, engine: &str) -> Result<Device> {
        // Version 1 of the tables called the engine `cpu` `candle`.
        let earlier = if engine == "cpu" && self.schema_version == 1 { "candle" } else { engine };
        let facts = self.environment.engines.iter().find(|facts| facts.name == engine || facts.name == earlier);
        let facts = facts.ok_or_else(|| {
            Error::data(format!("its environment does not say on which device the engine `{engine}` ran"))
                .at(self.path.display().to_string())
        })?;
        let name = facts.device_name.clone();
        let key = match self.cores().filter(|_| facts.device == "cpu") {
            Some(1) => format!("{name} (1 core)"),
            Some(cores) => format!("{name} ({cores} cores)"),
            None => name.clone(),
        };
        Ok(Device { key, name })
    }

    /// The cores that the run may use: a processor with another number of cores is another device.
    fn cores(&self) -> Option<i64> {
        let allowance = &self.environment.machine.allowance;
        let allowed = Some(allowance.cpus.len() as i64).filter(|count| *count > 0);
        let quota = allowance.quota_cores.map(|cores| (cores.ceil() as i64).max(1));
        allowed.into_iter().chain(quota).min()
    }

    fn runs(
        &self,
        experiment: &Experiment,
        parts: &BTreeMap<DeviceAndNetwork, Part>,
    ) -> Result<BTreeMap<String, CollectedRun>> {
        let Environment { run_id, peaks, machine, .. } = &self.environment;
        let is_float32 =
            |peak: &&MeasuredPeaks| [Precision::Fp32, Precision::Tf32].iter().any(|one| peak.precision == one.name());
        let spec = look::text(&self.path.join(files::SPEC))?.unwrap_or_default();
        let mut runs: BTreeMap<String, CollectedRun> = BTreeMap::new();
        for (place, part) in parts {
            let row = || {
                // A run may have measured other devices, too. The rate of products is that of float32, as TF32 on some GPUs: predictions compare such steps.
                let is_own =
                    |peak: &&MeasuredPeaks| self.device_of(&peak.engine).is_ok_and(|own| own.key == place.device);
                let peaks = || peaks.iter().filter(is_own);
                CollectedRun {
                    run_id: run_id.clone(),
                    name: experiment.name.clone(),
                    source: "batchstep".into(),
                    licence: None,
                    digest: self.digest.clone(),
                    schema_version: i64::from(self.schema_version),
                    cells: 0,
                    batchstep: machine.batchstep.clone(),
                    started: machine.started.clone(),
                    device_name: part.cells.first().map_or_else(String::new, |cell| cell.device_name.clone()),
                    cores: self.cores(),
                    os: machine.os.clone(),
                    driver: machine.driver.version.clone(),
                    peak_flops_per_s: peaks().filter(is_float32).map(|peak| peak.flops_per_s).reduce(f64::max),
                    peak_bytes_per_s: peaks().map(|peak| peak.bytes_per_s).reduce(f64::max),
                    spec: spec.clone(),
                    environment: self.environment_text.clone(),
                }
            };
            runs.entry(place.device.clone()).or_insert_with(row).cells += part.cells.len() as i64;
        }
        Ok(runs)
    }
}

/// A device: the name of its folder, and its own name.
struct Device {
    key: String,
    name: String,
}

/// Why a folder without `cells.parquet` cannot be collected.
fn why_not(path: &Path) -> Result<Error> {
    match sealed_kind(path)? {
        None | Some(StudyKind::Sweep) => {}
        Some(StudyKind::Training) => {
            let what = "this run is a training: its times are those of epochs, and the database holds steps";
            return Ok(Error::data(what)
                .hint("collect a sweep of the same network, and ask `batchstep predict` for its epochs"));
        }
        Some(kind) => {
            return Ok(Error::data(format!("this run is a {kind}: the database holds the steps of sweeps"))
                .hint("collect a sweep of the same network"));
        }
    }
    if look::is_file(&path.join(files::SPEC))? {
        return Ok(Error::data("this run has not ended: it has no cells.parquet yet")
            .hint("finish it: `batchstep run SPEC --resume`"));
    }
    Ok(Error::data("this is neither a run directory nor a table of published kernels")
        .hint("give run directories such as results/vgg16, results/published/kernels.parquet, or experiments/predict/published_steps.csv"))
}

fn experiment(path: &Path) -> Result<Experiment> {
    let spec = path.join(files::SPEC);
    let read = text_of(&spec).and_then(|(text, origin)| {
        parse_as(&text, &origin, |kind, section| match kind {
            StudyKind::Sweep => Experiment::of(section, &origin).map(Some),
            _ => Ok(None),
        })
    });
    let read = read.map_err(|error| match error.kind() {
        Kind::Spec => {
            error.hint("its spec was written for another version of batchstep: measure it again with this one")
        }
        _ => error,
    })?;
    match read {
        None => Err(why_not(path)?.at(path.display().to_string())),
        Some(experiment) if experiment.executes.is_some() => Err(Error::data(
            "this is an A/A run: its cells execute another batch size than the one they are named after",
        )
        .at(path.display().to_string())
        .hint("it serves as a control beside the run it belongs to; collect that one")),
        Some(experiment) => Ok(experiment),
    }
}

/// The cell of the plan that a row of that number, model and batch size is of.
fn planned<'a>(plan: &'a Plan, path: &Path, what: &str, (cell, model, size): (i64, &str, i64)) -> Result<&'a Cell> {
    plan.cell(cell, model, size).ok_or_else(|| {
        Error::data(format!("the {what} {cell} is not in the plan of the run's own spec"))
            .at(path.display().to_string())
            .hint("its tables and its spec.toml are of different runs, or of another version of batchstep")
    })
}

fn axes(planned: &Cell, engine: &str) -> AxisValues {
    let engine = crate::settings::EngineName::from_name(engine).unwrap_or(planned.engine);
    AxisValues::new(engine, &planned.workload.settings)
}

/// The sides are 1 for layers of the synthetic engine, which are in no network.
fn sides(planned: &Cell, layer: &str) -> Sides {
    let network = &planned.workload.network;
    let place = network.layers.iter().position(|each| each.name == layer);
    place.map_or(Sides { terms: 1.0, channels: 1.0, places: 1.0 }, |index| network.sides(index))
}

fn layer(row: LayerRow, planned: &Cell, network_id: String, sides: Sides) -> CollectedLayer {
    CollectedLayer {
        axes: axes(planned, &row.engine),
        run_id: row.run_id,
        engine: row.engine,
        model: row.model,
        network_id,
        batch_size: row.batch_size,
        layer: row.layer,
        operation: row.operation,
        direction: row.direction,
        algorithm: row.algorithm,
        math_mode: row.math_mode,
        workspace_bytes: row.workspace_bytes,
        flops: row.flops,
        bytes: row.bytes,
        terms: sides.terms,
        channels: sides.channels,
        places: sides.places,
        device_time_s: row.device_time_s,
        kernel: row.kernel,
        waves: row.waves,
    }
}
