//! What every study steps: networks, batch sizes, engines and their settings.

use super::decode::{Input, Sweep, checked_name, read_engine, read_model, read_sweep, read_train, spec_error};
use super::encode;
use super::section::Section;
use super::{Engines, Model};
use crate::error::{Error, Result};
use crate::kinds::StudyKind;
use crate::settings::own::OwnSteps;
use crate::settings::{AXES, EngineName, Grid, Value};

/// The part of a spec that all studies have.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// Names the run directory.
    pub name: String,
    pub model: Model,
    /// Axis, ascending.
    pub batch_sizes: Vec<usize>,
    /// Notices about values that are easily misread.
    pub notices: Vec<String>,
    /// Default: the engine `cpu`.
    pub engine: Engines,
    /// The axes of the tables `train` and `engine`.
    pub grid: Grid,
    pub learning_rate: f64,
}

/// What a kind of study has of its own here.
pub(crate) struct Usual {
    pub kind: StudyKind,
    /// The network where the spec names none.
    pub model: Option<&'static str>,
    pub input: Input,
    pub batch_size: usize,
    pub learning_rate: f64,
    /// Axes whose default is another one, by key and name.
    pub settings: &'static [(&'static str, &'static str)],
    /// Engines that cannot run it.
    pub refused: &'static [EngineName],
}

impl Subject {
    /// Reads the rest of a spec whose other sections are read.
    pub(crate) fn read(mut spec: Section, usual: &Usual, origin: &str) -> Result<Self> {
        let kind = usual.kind;
        let (version, name) = (spec.get("version"), spec.get("name"));
        let (model, sweep) = (spec.section("model")?, spec.section("sweep")?);
        let (train, engine) = (spec.section("train")?, spec.section("engine")?);
        let name = checked_name(version, name, spec.finish(), origin)?;
        let mut grid = Grid::default();
        for (key, value) in usual.settings {
            AXES.iter().filter(|axis| axis.key == *key).for_each(|axis| grid.set(axis, vec![Value::Name(value)]));
        }
        let engine = match engine {
            None => Engines::only(EngineName::Cpu),
            given => read_engine(given, &mut grid)?,
        };
        if engine.fixed_from.is_some() {
            return Err(Error::spec(format!("a {kind} has no `fixed_from`")).at(origin));
        }
        if let Some(refused) = engine.name.iter().find(|engine| usual.refused.contains(engine)) {
            let fit = EngineName::of_networks().filter(|engine| !usual.refused.contains(engine));
            let fit: Vec<String> = fit.map(|engine| format!("`{engine}`")).collect();
            return Err(Error::spec(format!("the engine `{refused}` cannot run a {kind}"))
                .at(origin)
                .hint(format!("the engines that can: {}", fit.join(", "))));
        }
        let learning_rate = read_train(train, &engine.name, &mut grid, usual.learning_rate)?;
        let model = match (model, usual.model) {
            (Some(section), _) => read_model(section, usual.input)?,
            (None, Some(name)) => Model::named(vec![name.into()]),
            (None, None) => return Err(spec_error(origin, "model.name", "[model]\n        name = \"mnist_cnn\"")),
        };
        let usual_size = sweep.is_none().then(|| vec![usual.batch_size]);
        let Sweep { batch_sizes, executes, notices } = read_sweep(sweep)?;
        if executes.is_some() {
            return Err(Error::spec(format!("`executes` belongs to sweeps: a {kind} has no A/A control")).at(origin));
        }
        let batch_sizes = usual_size.unwrap_or(batch_sizes);
        Ok(Self { name, model, batch_sizes, notices, engine, grid, learning_rate })
    }

    /// The spec of a study of this kind up to here.
    pub(crate) fn write(&self, kind: StudyKind) -> String {
        let mut out = format!("version = 1\nkind = \"{kind}\"\nname = {:?}\n", self.name);
        encode::network(&mut out, &self.model);
        encode::section(&mut out, "sweep");
        encode::sizes(&mut out, OwnSteps::BATCH_SIZE, &self.batch_sizes);
        encode::train(&mut out, &self.grid, &self.engine.name, self.learning_rate);
        encode::engine(&mut out, &self.engine, &self.grid);
        out
    }

    /// The number of steps that differ, times the lengths of a study's own axes.
    pub fn cell_count(&self, axes: &[usize]) -> usize {
        let engines = self.engine.name.iter().map(|&engine| self.grid.count(engine));
        let lengths = [self.model.names.len(), self.batch_sizes.len()].into_iter().chain(axes.iter().copied());
        lengths.fold(engines.fold(0, usize::saturating_add), usize::saturating_mul)
    }
}
