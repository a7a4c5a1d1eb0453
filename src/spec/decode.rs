//! From the TOML document to a checked [`Experiment`].

use std::collections::BTreeSet;

use toml::de::DeTable;

use super::batch_sizes::{parse_range, surprise};
use super::encode::quoted;
use super::keys::{KeyForm, Table};
use super::section::{Document, Field, Section};
use super::{
    Blocks, Decide, Engines, Experiment, FixedFrom, MAX_CELLS, Measure, Model, Order, Shard, ShardBy, StepsPerVisit,
    layers, own,
};
use crate::engine::synthetic::Truth;
use crate::error::{Error, Result};
use crate::kinds::StudyKind;
use crate::network::{self, Family, Generated, Shape};
use crate::settings::{AXES, Algorithms, Axis, Domain, EngineName, Examples, Grid, Settings, Value};
use crate::units::Bytes;

/// The largest extent, channel or feature count a spec may name; above it, products of a few would overflow.
pub(super) const MAX_EXTENT: usize = 1 << 20;
/// The largest batch: with 31 numbers for each example, indices still fit into the 32 bits of GPU kernels. The engine decides for each cell whether
/// it fits into memory.
pub(super) const MAX_SIZE: usize = 1 << 26;

/// Reads the text of a spec; `read` takes its kind and its keys.
pub(crate) fn parse_as<T>(text: &str, origin: &str, read: impl FnOnce(StudyKind, Section) -> Result<T>) -> Result<T> {
    let document = Document { origin, text };
    let root = DeTable::parse(text).map_err(|e| document.syntax_error(&e))?;
    let mut spec = Section::root(document, &root);
    let kind = spec.read("kind", |field| field.choice(StudyKind::NAMES, StudyKind::from_name))?;
    read(kind.unwrap_or(StudyKind::Sweep), spec)
}

impl Experiment {
    /// Reads the keys of a spec.
    pub(crate) fn of(mut spec: Section, origin: &str) -> Result<Self> {
        let (version, name) = (spec.get("version"), spec.get("name"));
        let (model, sweep) = (spec.section("model")?, spec.section("sweep")?);
        let (train, mut engine) = (spec.section("train")?, spec.section("engine")?);
        let (measure, synthetic) = (spec.section("measure")?, spec.section("synthetic")?);
        let name = checked_name(version, name, spec.finish(), origin)?;
        let step = engine.as_mut().map(own::trigger).transpose()?.flatten();
        let experiment = match (step, engine) {
            (Some(step), Some(engine)) => {
                let networks = [("model", model), ("train", train), ("synthetic", synthetic)];
                own::experiment(name, &step, engine, networks, sweep, measure)?
            }
            (_, engine) => Self::of_networks(name, [model, sweep, train, engine, measure, synthetic], origin)?,
        };
        refuse_many(experiment.cell_count(), origin)?;
        Ok(experiment)
    }

    fn of_networks(name: String, sections: [Option<Section>; 6], origin: &str) -> Result<Self> {
        let [model, sweep, train, engine, measure, synthetic] = sections;
        let mut grid = Grid::default();
        let engine = read_engine(engine, &mut grid)?;
        let (learning_rate, examples) = read_train_on(train, &engine.name, &mut grid)?;
        let plays_truth = engine.name.contains(&EngineName::Synthetic);
        let synthetic = match synthetic {
            Some(section) if !plays_truth => {
                let error = section.error("only the engine `synthetic` plays a known truth, and it is not named");
                return Err(error.hint("add name = \"synthetic\" to [engine], or take [synthetic] out"));
            }
            None if plays_truth => {
                let what = "the engine `synthetic` plays the truth of the section [synthetic], which is missing";
                return Err(Error::spec(what).at(origin).hint("add: [synthetic], which may be empty"));
            }
            section => section.map(|section| Truth::read(Some(section))).transpose()?,
        };
        let model = match model {
            Some(section) => read_model(section, Input::Needed)?,
            None if plays_truth => Model::named(vec!["synthetic".into()]),
            None => return Err(spec_error(origin, "model.name", "[model]\n        name = \"vgg16\"")),
        };
        let Sweep { batch_sizes, executes, notices } = read_sweep(sweep)?;
        let measure = Measure::over(Measure::default(), measure, executes.is_some())?;
        Ok(Self {
            name,
            model,
            batch_sizes,
            notices,
            executes,
            engine,
            grid,
            learning_rate,
            examples,
            measure,
            synthetic,
            own: None,
        })
    }

    /// The number of cells: the product of all axes, some of which belong to only one engine.
    pub fn cell_count(&self) -> usize {
        let ways = self.engine.name.iter().map(|&engine| self.grid.count(engine)).fold(0, usize::saturating_add);
        ways.saturating_mul(self.model.names.len()).saturating_mul(self.batch_sizes.len())
    }
}

/// Refuses an experiment of too many cells.
pub(crate) fn refuse_many(cells: usize, origin: &str) -> Result<()> {
    if cells > MAX_CELLS {
        let what = format!("the axes make {cells} cells, more than {MAX_CELLS}");
        return Err(Error::spec(what).at(origin).hint("shorten an axis, or make two specs of it"));
    }
    Ok(())
}

/// The name of a spec whose other keys are known, after its version.
pub(super) fn checked_name(
    version: Option<Field>,
    name: Option<Field>,
    finished: Result<()>,
    origin: &str,
) -> Result<String> {
    finished?;
    let version = needed(version, origin, "version", "version = 1")?;
    let name = needed(name, origin, "name", "name = \"vgg16\"")?;
    if version.integer(1, u64::from(u32::MAX))? != 1 {
        return Err(version.error("this batchstep reads version 1 of the spec").hint("install a newer batchstep"));
    }
    run_name(&name)
}

/// A value without which a document is none.
pub(super) fn needed<'a, 'i>(
    field: Option<Field<'a, 'i>>,
    origin: &str,
    key: &str,
    example: &str,
) -> Result<Field<'a, 'i>> {
    field.ok_or_else(|| spec_error(origin, key, example))
}

pub(super) fn spec_error(origin: &str, key: &str, example: &str) -> Error {
    Error::spec(format!("the key `{key}` is missing")).at(origin).hint(format!("add: {example}"))
}

/// A run's name becomes a folder's: no separators, nothing hidden.
fn run_name(field: &Field) -> Result<String> {
    let name = field.text()?;
    let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    if name.is_empty() || name.len() > 100 || !plain || name.starts_with('.') {
        return Err(field.error(format!(
            "`{name}` can't name a run directory: use up to 100 letters, digits, `-`, `_` and `.`, not beginning with a dot"
        )));
    }
    Ok(name)
}

/// Whether a network of the spec's own must state its input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Input {
    Needed,
    FromData,
}

pub(super) fn read_model(mut section: Section, input_is: Input) -> Result<Model> {
    let name = section.get("name");
    let generate = section.get("generate");
    let layers = section.read("layers", layers::read)?;
    let input = section.read("input", shape)?;
    let classes = section.read("classes", |field| field.count(1, MAX_EXTENT))?;
    let error = section.error("a model is a `name`, a list of names, `generate`, or `[[model.layers]]`");
    section.finish()?;
    let names = match (name, &layers) {
        (Some(field), None) => {
            let built = |name: &str| network::NAMES.contains(&name) || Generated::parse(name).is_some();
            let known = |name: &str| built(name).then(|| name.to_string());
            distinct(&field, |f| f.choice(network::NAMES, known))?
        }
        (Some(field), Some(_)) => vec![run_name(&field)?],
        (None, Some(_)) => vec!["custom".to_string()],
        (None, None) => Vec::new(),
    };
    let names = match generate {
        Some(field) if layers.is_some() => return Err(field.error("`generate` and `layers` exclude each other")),
        Some(field) => with_generated(names, &field)?,
        None if names.is_empty() => return Err(error),
        None => names,
    };
    if layers.is_some() && input.is_none() && input_is == Input::Needed {
        return Err(error.hint("a network of your own needs `input`, for example input = [3, 32, 32]"));
    }
    Ok(Model { names, layers, input, classes })
}

/// The most networks that one `generate` may ask for.
const MOST_GENERATED: usize = 10_000;

/// `names`, and the names of the networks that `generate` asks for: one table, or a list of tables.
fn with_generated(mut names: Vec<String>, field: &Field) -> Result<Vec<String>> {
    for element in field.elements()? {
        let what = "expected generate = { family = \"cnn\", count = 50, seed = 1 }";
        let mut section = element.section().map_err(|_| element.error(what))?;
        let family = section.read("family", |field| field.choice(Family::NAMES, Family::from_name))?;
        let count = section.read("count", |field| field.count(1, MOST_GENERATED))?;
        let seed = section.read("seed", |field| field.integer(0, i64::MAX as u64))?;
        section.finish()?;
        let (Some(family), Some(count)) = (family, count) else {
            return Err(element.error("`family` and `count` are needed").hint(what));
        };
        let seed = seed.unwrap_or(1);
        names.extend((1..=count).map(|number| Generated { family, seed, number }.name()));
    }
    let mut seen = BTreeSet::new();
    match names.iter().find(|name| !seen.insert(name.as_str())) {
        Some(twice) => Err(field.error(format!("`{twice}` is listed twice"))),
        None => Ok(names),
    }
}

fn shape(field: &Field) -> Result<Shape> {
    let what = "the shape of one example: [channels, height, width] or [features]";
    if !field.is_list() {
        return Err(field.error(format!("expected {what}")));
    }
    let extents = field.elements()?.iter().map(|f| f.count(1, MAX_EXTENT)).collect::<Result<Vec<_>>>()?;
    match extents[..] {
        [channels, height, width] if channels.saturating_mul(height).saturating_mul(width) <= 1 << 32 => {
            Ok(Shape::Maps { channels, height, width })
        }
        [features] => Ok(Shape::Flat(features)),
        _ => Err(field.error(format!("expected {what}"))),
    }
}

pub(super) struct Sweep {
    pub batch_sizes: Vec<usize>,
    pub executes: Option<usize>,
    pub notices: Vec<String>,
}

impl Default for Sweep {
    fn default() -> Self {
        Self { batch_sizes: (1..=70).collect(), executes: None, notices: Vec::new() }
    }
}

pub(super) fn read_sweep(section: Option<Section>) -> Result<Sweep> {
    let mut sweep = Sweep::default();
    let Some(mut section) = section else { return Ok(sweep) };
    if let Some(field) = section.get("batch_size") {
        let (sizes, notice) = batch_sizes(&field)?;
        sweep = Sweep { batch_sizes: sizes, notices: notice.into_iter().collect(), ..sweep };
    }
    sweep.executes = section.read("executes", |field| field.count(1, MAX_SIZE))?;
    section.finish()?;
    Ok(sweep)
}

/// The batch sizes, and the notice about a range that is easily misread.
pub(super) fn batch_sizes(field: &Field) -> Result<(Vec<usize>, Option<String>)> {
    if field.is_text() {
        let text = field.text()?;
        let sizes = parse_range(&text, MAX_CELLS).map_err(|what| field.error(what))?;
        return match sizes.last() {
            Some(&last) if last > MAX_SIZE => Err(field.error(format!("a batch holds at most {MAX_SIZE} examples"))),
            _ => Ok((sizes.clone(), surprise(&text, &sizes))),
        };
    }
    let sizes = field.elements()?.iter().map(|f| f.count(1, MAX_SIZE)).collect::<Result<Vec<_>>>()?;
    if sizes.windows(2).any(|pair| pair[0] >= pair[1]) {
        return Err(field.error("list the batch sizes in ascending order, each only once"));
    }
    Ok((sizes, None))
}

const IN_LIST: &str = "this value is in the list already";

/// A GPU is a device, and several engines run on one.
fn engine_name(field: &Field) -> Result<EngineName> {
    let text = field.text()?;
    let names: Vec<&str> = EngineName::of_networks().map(EngineName::name).collect();
    let lower = text.to_lowercase();
    if ["gpu", "cuda", "nvidia"].iter().any(|word| lower.starts_with(word)) {
        let what = format!("`{text}` is a device, and an engine is one of: {}", names.join(", "));
        return Err(field.error(what).hint(
            "`auto` takes the GPU where there is one, `cudnn` and `torch` run on it; `--device cuda:0` says on which",
        ));
    }
    if EngineName::from_name(&text).is_some_and(EngineName::is_own) {
        return Err(field
            .error("a step of your own is named by its file")
            .hint("step = \"my_step.py\" in place of `name`"));
    }
    field.choice(&names, EngineName::from_name)
}

/// The elements of a list, or its one value; a value named twice would make the same cell twice.
pub(super) fn distinct<T: PartialEq>(field: &Field, read: impl Fn(&Field) -> Result<T>) -> Result<Vec<T>> {
    let mut values = Vec::new();
    for element in field.elements()? {
        let value = read(&element)?;
        if values.contains(&value) {
            return Err(element.error(IN_LIST));
        }
        values.push(value);
    }
    Ok(values)
}

/// Reads the axes of one table of the spec.
fn read_axes(section: &mut Section, table: &str, engines: &[EngineName], grid: &mut Grid) -> Result<()> {
    for axis in AXES.iter().filter(|axis| axis.table == table) {
        let Some(field) = section.get(axis.key) else { continue };
        let values = if axis.key == "threads" {
            threads(&field, axis)?
        } else {
            distinct(&field, |field| axis_value(field, axis))?
        };
        if values != [axis.default_value()] && !engines.iter().any(|&engine| axis.is_of(engine)) {
            return Err(lacks_axis(&field, axis));
        }
        grid.set(axis, values);
    }
    Ok(())
}

/// Numbers of threads; `"all"` is the number of cores that this process may use. On a machine with one core, `[1, "all"]` is one value.
fn threads(field: &Field, axis: &Axis) -> Result<Vec<Value>> {
    let all = Value::Count(std::thread::available_parallelism().map_or(1, std::num::NonZero::get));
    let (named, counted): (Vec<Field>, Vec<Field>) = field.elements()?.into_iter().partition(Field::is_text);
    let what = "numbers of threads, or \"all\"";
    named.iter().try_for_each(|field| field.parsed(what, |text| (text == "all").then_some(())))?;
    let mut values = counted.iter().map(|field| axis_value(field, axis)).collect::<Result<Vec<Value>>>()?;
    if !named.is_empty() && !values.contains(&all) {
        values.push(all);
    }
    match (1..values.len()).find(|&place| values[..place].contains(&values[place])) {
        Some(twice) => Err(counted[twice].error(IN_LIST)),
        None if named.len() > 1 => Err(named[1].error(IN_LIST)),
        None => Ok(values),
    }
}

fn axis_value(field: &Field, axis: &Axis) -> Result<Value> {
    match axis.domain {
        Domain::Names(names) => {
            let known = |text: &str| names.iter().find(|name| **name == text).map(|name| Value::Name(name));
            field.choice(names, known)
        }
        Domain::Count { low, high } => field.count(low, high).map(Value::Count),
        Domain::Bytes => {
            let what = "an amount of memory such as \"1GiB\" or \"256MiB\"";
            field.parsed(what, Bytes::parse).map(|Bytes(bytes)| Value::Bytes(bytes))
        }
        Domain::Text => {
            Err(field.error(format!("only a step of your own has `{}`", axis.key)).hint("step = \"my_step.py\""))
        }
    }
}

/// No engine of the spec has the axis.
fn lacks_axis(field: &Field, axis: &Axis) -> Error {
    let named: Vec<String> = axis.engines.iter().map(|engine| format!("`{engine}`")).collect();
    let (owners, verb) = match &named[..] {
        [one] => (format!("engine {one}"), "it is not"),
        many => (format!("engines {}", many.join(" and ")), "none of them is"),
    };
    let error = field.error(format!("only the {owners} can vary `{}`, and {verb} named", axis.key));
    error.hint(format!("add {} to `name`, or take `{}` out", named.join(" or "), axis.key))
}

/// The learning rate; the axes of the table go into `grid`.
pub(super) fn read_train(
    section: Option<Section>,
    engines: &[EngineName],
    grid: &mut Grid,
    default: f64,
) -> Result<f64> {
    let Some(mut section) = section else { return Ok(default) };
    read_axes(&mut section, "train", engines, grid)?;
    let rate = section.read("learning_rate", |field| field.number(0.0, 1e3))?;
    section.finish()?;
    Ok(rate.unwrap_or(default))
}

/// The learning rate, and what it trains on, where a spec may choose that.
fn read_train_on(mut section: Option<Section>, engines: &[EngineName], grid: &mut Grid) -> Result<(f64, Examples)> {
    let field = section.as_mut().and_then(|section| section.get("examples"));
    let examples = field.map(|field| field.choice(Examples::NAMES, Examples::from_name)).transpose()?;
    Ok((read_train(section, engines, grid, Settings::default().learning_rate)?, examples.unwrap_or(Examples::Uniform)))
}

/// The engines; the axes of the table go into `grid`.
pub(super) fn read_engine(section: Option<Section>, grid: &mut Grid) -> Result<Engines> {
    let mut engines = Engines::only(EngineName::Auto);
    let Some(mut section) = section else { return Ok(engines) };
    if let Some(field) = section.get("name") {
        engines.name = distinct(&field, engine_name)?;
    }
    if let Some(field) = section.get("optional") {
        engines.optional = distinct(&field, engine_name)?;
        if !engines.optional.iter().all(|engine| engines.name.contains(engine)) {
            return Err(field.error("only engines that are listed in `name` can be optional"));
        }
        if engines.name.iter().all(|engine| engines.optional.contains(engine)) {
            return Err(
                field.error("one engine at least must not be optional: with none of them there is nothing to run")
            );
        }
    }
    read_axes(&mut section, "engine", &engines.name, grid)?;
    engines.fixed_from = section.read("fixed_from", fixed_from)?;
    let missing = section.error("`algorithms = \"fixed\"` and `fixed_from` come together: one of them is missing");
    section.finish()?;
    if has_fixed(grid) != engines.fixed_from.is_some() {
        return Err(missing.hint("fixed_from = \"results/vgg16\", or { run = \"results/vgg16\", batch_size = 16 }"));
    }
    Ok(engines)
}

/// Whether algorithms of an earlier run are asked for.
pub(super) fn has_fixed(grid: &Grid) -> bool {
    let fixed = Value::Name(Algorithms::Fixed.name());
    AXES.iter().any(|axis| grid.values(axis).contains(&fixed))
}

fn fixed_from(field: &Field) -> Result<FixedFrom> {
    if field.is_text() {
        return Ok(FixedFrom { run: field.text()?.into(), batch_size: None });
    }
    let what = "expected a run, or fixed_from = { run = \"results/vgg16\", batch_size = 16 }";
    let mut section = field.section().map_err(|_| field.error(what))?;
    let run = section.read("run", |field| field.text())?;
    let batch_size = section.read("batch_size", |field| field.count(1, MAX_SIZE))?;
    section.finish()?;
    let run = run.ok_or_else(|| field.error(what))?.into();
    Ok(FixedFrom { run, batch_size })
}

impl Measure {
    /// The values of the table, over `usual`, and what follows from them.
    pub(super) fn over(usual: Self, section: Option<Section>, is_control: bool) -> Result<Self> {
        let mut measure = usual;
        let mut given = [None, None];
        if let Some(mut section) = section {
            Self::keys().read(&mut section, &mut measure)?;
            given = ["decide", "steps_per_visit"].map(|key| section.get(key));
            let by = section.read("shard_by", |field| field.choice(ShardBy::NAMES, ShardBy::from_name))?;
            measure.shard = measure.shard.map(|shard| Shard { by: by.unwrap_or(shard.by), ..shard });
            section.finish()?;
        }
        let [decide, steps] = given;
        if is_control || measure.order == Order::Ascending {
            if let Some(field) = decide.filter(|_| measure.decide == Decide::Jumps) {
                let what = "an A/A run (`executes`) and an ascending order need every block to be complete";
                return Err(field.error(what).hint("use decide = \"cells\", or leave the key out"));
            }
            measure.decide = Decide::Cells;
        }
        if measure.decide == Decide::Cells && steps.is_none() {
            measure.steps_per_visit = StepsPerVisit::Fixed(StepsPerVisit::FIRST);
        }
        Ok(measure)
    }
}

/// The lesser number of blocks and the greater; each follows from the other where that is all that is said.
pub(super) fn blocks() -> KeyForm<Blocks> {
    let read = |field: &Field| {
        let mut section = field.section().map_err(|_| field.error("expected blocks = { min = 3, max = 30 }"))?;
        let min = section.read("min", |f| f.count(1, 1_000_000))?;
        let max = section.read("max", |f| f.count(1, 1_000_000))?;
        section.finish()?;
        let min = min.unwrap_or(3.min(max.unwrap_or(3)));
        let max = max.unwrap_or(min.max(30));
        if min > max {
            return Err(field.error(format!("min = {min} is more than max = {max}")));
        }
        Ok(Blocks { min, max })
    };
    KeyForm::new(read, |Blocks { min, max }| Some(format!("{{ min = {min}, max = {max} }}")))
}

pub(super) fn steps_per_visit() -> KeyForm<StepsPerVisit> {
    let read = |field: &Field| match field.is_text() {
        true => field.choice(&["auto"], |name| (name == "auto").then_some(StepsPerVisit::Auto)),
        false => field.count(1, 10_000).map(StepsPerVisit::Fixed),
    };
    let text = |steps: &StepsPerVisit| match steps {
        StepsPerVisit::Auto => quoted("auto"),
        StepsPerVisit::Fixed(steps) => steps.to_string(),
    };
    KeyForm::new(read, move |steps| Some(text(steps)))
}

/// What it is divided by is a key of its own.
pub(super) fn shard() -> KeyForm<Shard> {
    let what = "one of several shards such as \"3/8\"";
    let read = move |field: &Field| field.parsed(what, |text| Shard::parse(text, ShardBy::Blocks));
    KeyForm::new(read, |shard| Some(quoted(shard)))
}
