//! `[engine] step` or `command`: a person's own step, with its arguments as axes.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::batch_sizes::parse_range;
use super::decode::{MAX_SIZE, Sweep, batch_sizes, distinct};
use super::encode::{line, list, quoted, section};
use super::section::{Field, Section};
use super::{Engines, Experiment, MAX_CELLS, Measure, Model};
use crate::error::{Result, nearest};
use crate::settings::command::{Command, Timed, UNITS};
use crate::settings::members;
use crate::settings::own::{Fresh, OwnSteps, StepFile, product};
use crate::settings::{AXES, EngineName, Grid, Settings, Text, Value};

/// A spec with `step` or `command`, which the field holds. `networks`: tables that only the networks of other engines have.
pub(super) fn experiment(
    name: String,
    step: &Field,
    engine: Section,
    networks: [(&str, Option<Section>); 3],
    sweep: Option<Section>,
    measure: Option<Section>,
) -> Result<Experiment> {
    let mut own = read_engine(step, engine)?;
    if let Some((table, section)) = networks.into_iter().find_map(|(name, section)| Some((name, section?))) {
        return Err(section.error(lacks(&own, &format!("[{table}]"))).hint(HAS));
    }
    let Sweep { batch_sizes, executes, notices } = read_sweep(sweep, &mut own)?;
    let model = model(step, &own)?;
    if let Some(command) = &own.command {
        check_placeholders(step, command, &own)?;
    }
    let mut grid = Grid::default();
    set_axes(&mut grid, &own);
    // Layers cost a step in each of the first visits; a step without a model has none.
    let usual = Measure { layers: true, ..Measure::default() };
    let Settings { learning_rate, examples, .. } = Settings::default();
    Ok(Experiment {
        name,
        model,
        batch_sizes,
        notices,
        executes,
        engine: Engines::only(EngineName::Python),
        grid,
        learning_rate,
        examples,
        measure: Measure::over(usual, measure, executes.is_some())?,
        synthetic: None,
        own: Some(own),
    })
}

/// The field that makes a spec one of a person's own step.
pub(super) fn trigger<'a, 'i>(engine: &mut Section<'a, 'i>) -> Result<Option<Field<'a, 'i>>> {
    match (engine.get("step"), engine.get("command")) {
        (Some(_), Some(command)) => {
            Err(command.error("`step` and `command` are two ways to name what is measured: one of them is enough"))
        }
        (step, command) => Ok(step.or(command)),
    }
}

/// The table [engine] of a spec with `step` or `command`, which the field holds.
fn read_engine(step: &Field, mut engine: Section) -> Result<OwnSteps> {
    let is_command = step.path_ends_with("command");
    let command = is_command.then(|| read_command(step, &mut engine)).transpose()?;
    let files = if is_command { Vec::new() } else { distinct(step, |field| Ok(StepFile(field.path()?)))? };
    let fresh = engine.read("fresh", |field| field.choice(Fresh::NAMES, Fresh::from_name))?;
    let env = engine.read("env", read_env)?;
    let others = engine.others();
    let (x, arguments) = (OwnSteps::BATCH_SIZE.to_owned(), Vec::new());
    let (fresh, env) = (fresh.unwrap_or(Fresh::Run), env.unwrap_or_default());
    let own = OwnSteps { files, command, fresh, x, arguments, env };
    match others.into_iter().next() {
        Some((name, field)) => Err(field.error(lacks(&own, &name)).hint(HAS)),
        None => Ok(own),
    }
}

/// What another engine would have.
fn lacks(own: &OwnSteps, name: &str) -> String {
    match (&own.command, own.files.first()) {
        (Some(command), _) => {
            format!("the command {} has no `{name}`: put it into the words of `command`", command.name())
        }
        (None, file) => {
            let file = file.map_or_else(String::new, StepFile::name);
            format!("the step of {file} has no `{name}`: make it an argument of step()")
        }
    }
}

const HAS: &str = "every further key of [sweep] is an argument; beside `step`, [engine] has `env` and `fresh`, and beside `command` also `seconds` and `protocol`";

/// The words of a command, and where its times come from.
fn read_command(field: &Field, engine: &mut Section) -> Result<Command> {
    let what = "expected a list of words, the program first: command = [\"./bench\", \"--batch\", \"{batch_size}\"]";
    let words = match field.is_list() {
        true => field.elements()?.iter().map(Field::text).collect::<Result<Vec<String>>>()?,
        false => return Err(field.error(what).hint("no shell reads it; [\"sh\", \"-c\", \"...\"] asks for one")),
    };
    if words.first().is_none_or(String::is_empty) || words.iter().any(|word| word.contains('\0')) {
        return Err(field.error(what));
    }
    let seconds = engine.get("seconds");
    let timed = match engine.get("protocol") {
        Some(protocol) if seconds.is_some() => {
            return Err(protocol
                .error("a program that answers lines states its times: `seconds` is of no use beside `protocol`"));
        }
        Some(protocol) => protocol.choice(&["lines"], |name| (name == "lines").then_some(Timed::Lines))?,
        None => seconds.map_or(Ok(Timed::Process), |field| read_seconds(&field))?,
    };
    Ok(Command { words, timed })
}

fn read_seconds(field: &Field) -> Result<Timed> {
    let what = "expected seconds = { pattern = 'took ([0-9.]+) ms', unit = \"ms\" }: a regular expression whose group is the time of a step in what \
                the program prints, and its unit";
    let mut table = field.section().map_err(|_| field.error(what))?;
    let pattern = table.get("pattern");
    let units: Vec<&str> = UNITS.iter().map(|(name, _)| *name).collect();
    let unit = table.get("unit").map(|unit| unit.choice(&units, |name| units.contains(&name).then(|| name.to_owned())));
    let unit = unit.transpose()?.unwrap_or_else(|| "s".to_owned());
    table.finish()?;
    let pattern = pattern.ok_or_else(|| field.error(what))?;
    let text = pattern.text()?;
    crate::engine::own::pattern(&text).map_err(|error| pattern.error(error.to_string()))?;
    Ok(Timed::Printed { pattern: text, unit })
}

/// Each name between braces is an argument, and each argument is one of them; a program that stays gets them in its requests.
fn check_placeholders(field: &Field, command: &Command, own: &OwnSteps) -> Result<()> {
    let known = own.argument_names();
    let used = command.placeholders();
    if command.timed == Timed::Lines {
        return match used.first() {
            Some(name) => Err(field.error(format!("`{{{name}}}` is not replaced: with `protocol` the program keeps running, and gets its arguments with each request"))),
            None => Ok(()),
        };
    }
    if let Some(name) = used.iter().find(|name| !known.contains(name)) {
        let error = field.error(format!("`{{{name}}}` is not an argument: [sweep] gives {}", known.join(", ")));
        return Err(match nearest(name, &known) {
            Some(near) => error.hint(format!("did you mean `{{{near}}}`?")),
            None => error.hint(format!("add `{name} = [...]` to [sweep]")),
        });
    }
    match known.iter().find(|name| !used.contains(name)) {
        Some(name) => {
            Err(field
                .error(format!("no word of the command has `{{{name}}}`, so every value would run the same command")))
        }
        None => Ok(()),
    }
}

/// A text for each value; `false` for a variable that is not set.
fn read_env(field: &Field) -> Result<Vec<(String, Vec<Json>)>> {
    let what =
        "expected env = { NAME = \"1\" }, with a list of texts for an axis, and `false` for a variable that is not set";
    let table = field.section().map_err(|_| field.error(what))?;
    let value = |field: &Field| match field.scalar()? {
        Json::String(text) if !text.contains('\0') => Ok(Json::String(text)),
        Json::Bool(false) => Ok(Json::Null),
        _ => Err(field.error(what)),
    };
    let variables =
        table.others().into_iter().map(|(name, field)| match name.contains(['=', '\0']) || name.is_empty() {
            true => Err(field.error(format!("`{name}` can't be the name of a variable"))),
            false => Ok((name, distinct(&field, value)?)),
        });
    variables.collect()
}

/// The table [sweep]; the arguments of a step go into `own`.
fn read_sweep(section: Option<Section>, own: &mut OwnSteps) -> Result<Sweep> {
    let mut read = Sweep::default();
    let Some(mut section) = section else { return Ok(read) };
    read.executes = section.read("executes", |field| field.count(1, MAX_SIZE))?;
    let x = section.get("x");
    if let Some(field) = &x {
        own.x = field.text()?;
    }
    let mut has_x = x.is_none();
    for (name, field) in section.others() {
        if !crate::settings::is_name(&name) {
            return Err(field.error(format!("`{name}` can't be the name of an argument")));
        }
        if name == own.x {
            let (sizes, notice) = batch_sizes(&field)?;
            read = Sweep { batch_sizes: sizes, notices: notice.into_iter().collect(), ..read };
            has_x = true;
        } else if name == OwnSteps::BATCH_SIZE && field.is_text() {
            let sizes = parse_range(&field.text()?, MAX_CELLS).map_err(|what| field.error(what))?;
            own.arguments.push((name, sizes.into_iter().map(Json::from).collect()));
        } else {
            own.arguments.push((name, distinct(&field, |field| field.scalar())?));
        }
    }
    match x.filter(|_| !has_x) {
        Some(field) => {
            Err(field.error(format!("[sweep] gives no values for `{}`", own.x)).hint(format!("{} = \"1..=70\"", own.x)))
        }
        None => Ok(read),
    }
}

/// The models are called after the files, or the program.
fn model(step: &Field, own: &OwnSteps) -> Result<Model> {
    let name = |file: &StepFile| {
        let stem = file.0.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match file.0.extension().is_some_and(|extension| extension == "py") && !stem.is_empty() {
            true => Ok(stem),
            false => Err(step.error(format!("`{}` is not a Python file, whose name ends in .py", file.name()))),
        }
    };
    let names = match &own.command {
        Some(command) => vec![command.name()],
        None => own.files.iter().map(name).collect::<Result<Vec<String>>>()?,
    };
    match (1..names.len()).find(|&place| names[..place].contains(&names[place])) {
        Some(twice) => Err(step.error(format!("two of the files are called {}: rename one of them", names[twice]))),
        None => Ok(Model::named(names)),
    }
}

fn set_axes(grid: &mut Grid, own: &OwnSteps) {
    for (key, given) in [("arguments", &own.arguments), ("env", &own.env)] {
        let axis = AXES.iter().find(|axis| axis.key == key);
        axis.into_iter().for_each(|axis| grid.set(axis, product(given).into_iter().map(Value::Text).collect()));
    }
}

impl Experiment {
    /// The step of one's own that is called `model`, with the arguments and the environment of `settings`, and with `variable` of the environment as
    /// an axis, at `sizes`. `None` where the experiment has no such step.
    pub fn with_variable(
        &self,
        model: &str,
        settings: &Settings,
        variable: (String, Vec<Json>),
        sizes: Vec<usize>,
    ) -> Option<Self> {
        let mut changed = self.clone();
        let place = self.model.names.iter().position(|name| name == model)?;
        let own = changed.own.as_mut()?;
        own.files = own.files.get(place).into_iter().cloned().collect();
        changed.model.names = vec![model.to_owned()];
        let one =
            |stored: Text| members(stored.as_str()).into_iter().map(|(name, value)| (name, vec![value])).collect();
        (own.arguments, own.env) = (one(settings.arguments), one(settings.env));
        own.env.push(variable);
        set_axes(&mut changed.grid, own);
        changed.batch_sizes = sizes;
        Some(changed)
    }
}

/// The table [engine], and the table [sweep] without the sizes. Paths are written relative to `folder`, if one is given.
pub(super) fn write_engine(out: &mut String, steps: &OwnSteps, folder: Option<&Path>) {
    section(out, "engine");
    let path = |file: &StepFile| Json::from(relative(&file.0, folder).display().to_string()).to_string();
    match &steps.command {
        Some(command) => write_command(out, command),
        None => line(out, "step", list(steps.files.iter().map(path))),
    }
    if !steps.env.is_empty() {
        let value = |value: &Json| if value.is_null() { "false".to_owned() } else { value.to_string() };
        let variable = |(name, values): &(String, Vec<Json>)| {
            format!("{} = {}", Json::from(name.as_str()), list(values.iter().map(value)))
        };
        let variables: Vec<String> = steps.env.iter().map(variable).collect();
        line(out, "env", format!("{{ {} }}", variables.join(", ")));
    }
    line(out, "fresh", quoted(steps.fresh));
}

fn write_command(out: &mut String, command: &Command) {
    let text = |text: &str| Json::from(text).to_string();
    let words: Vec<String> = command.words.iter().map(|word| text(word)).collect();
    line(out, "command", format!("[{}]", words.join(", ")));
    match &command.timed {
        Timed::Process => {}
        Timed::Printed { pattern, unit } => {
            line(out, "seconds", format!("{{ pattern = {}, unit = {} }}", text(pattern), text(unit)));
        }
        Timed::Lines => line(out, "protocol", quoted("lines")),
    }
}

pub(super) fn write_arguments(out: &mut String, steps: &OwnSteps) {
    if steps.x != OwnSteps::BATCH_SIZE {
        line(out, "x", quoted(&steps.x));
    }
    for (name, values) in &steps.arguments {
        line(out, name, list(values.iter().map(Json::to_string)));
    }
}

/// The way from a folder to a file; both may not be there yet.
fn relative(path: &Path, folder: Option<&Path>) -> PathBuf {
    let Some(folder) = folder else { return path.to_path_buf() };
    let (to, from) = (resolved(path), resolved(folder));
    let common = to.components().zip(from.components()).take_while(|(a, b)| a == b).count();
    let up = from.components().skip(common).map(|_| "..");
    up.map(PathBuf::from).chain(to.components().skip(common).map(|part| PathBuf::from(part.as_os_str()))).collect()
}

/// The path with all existing links resolved.
fn resolved(path: &Path) -> PathBuf {
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Ok(found), ..) => found,
        (Err(_), Some(parent), Some(name)) => resolved(parent).join(name),
        _ => path,
    }
}
