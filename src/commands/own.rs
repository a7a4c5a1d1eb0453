//! `batchstep run my_step.py`: a step of one's own without a spec.

use std::fmt::Write;
use std::path::Path;

use batchstep::engine::Engine;
use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::engine::own::{self, StepHost};
use batchstep::engine::worker::Pipes;
use batchstep::error::{Error, Result};
use batchstep::os::atomic;
use batchstep::settings::EngineName;
use batchstep::settings::own::OwnSteps;
use batchstep::spec::Experiment;
use batchstep::spec::plan::Plan;
use batchstep::study::Spec;
use batchstep::units::human;

use super::{Exit, notice, print};
use crate::cli::OwnArgs;

/// Steps of `--try`.
const TRIED: usize = 5;

/// Whether a path names a file of Python, and no spec.
pub fn is_step(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "py")
}

/// The spec that a file and the command-line arguments describe. It is written as text and parsed like any other spec.
///
/// # Errors
/// [`batchstep::error::Kind::Io`] where there is no such file; [`batchstep::error::Kind::Spec`] for arguments that cannot be read.
pub fn spec(path: &Path, args: &OwnArgs) -> Result<Spec> {
    path.metadata().map_err(|error| Error::io("read the step", path, &error))?;
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut text = format!("version = 1\nname = {}\n\n[engine]\nstep = {}\n", quoted(&run_name(&stem)), quoted(&file));
    let env: Vec<Given> = args.env.iter().map(|text| Given::of(text, "--env")).collect::<Result<_>>()?;
    let sizes = args.batch_size.iter().map(|values| Given { option: Given::SIZES, name: OwnSteps::BATCH_SIZE, values });
    let set = args.set.iter().map(|text| Given::of(text, "--set"));
    let arguments: Vec<Given> = sizes.map(Ok).chain(set).collect::<Result<_>>()?;
    refuse_twice(&env)?;
    refuse_twice(&arguments)?;
    if !env.is_empty() {
        let value = |value: &str| if value.is_empty() { "false".to_owned() } else { quoted(value) };
        let variable = |Given { name, values, .. }: &Given| {
            format!("{} = [{}]", quoted(name), values.split(',').map(value).collect::<Vec<_>>().join(", "))
        };
        let _ = writeln!(text, "env = {{ {} }}", env.iter().map(variable).collect::<Vec<_>>().join(", "));
    }
    text += "\n[sweep]\n";
    let x = args.x.as_deref().unwrap_or(OwnSteps::BATCH_SIZE);
    if x != OwnSteps::BATCH_SIZE {
        if !arguments.iter().any(|given| given.name == x) {
            let what = format!("`--set` gives no values for `{x}`");
            return Err(Error::spec(what).at(format!("--x {x}")).hint(format!("add `--set {x}=1..=70`")));
        }
        let _ = writeln!(text, "x = {}", quoted(x));
    }
    for given in &arguments {
        let _ = writeln!(text, "{} = {}", quoted(given.name), given.toml(x)?);
    }
    let origin = path.display().to_string();
    Spec::parse(&text, &origin).map_err(|error| {
        of_option(&error, &origin, [("engine.env", &env[..]), ("sweep", &arguments[..])])
            .hint("the arguments of step() are given by `--batch-size 1..=64` and `--set NAME=VALUE,...`")
    })
}

/// The values that an option gives to a name.
#[derive(Clone, Copy)]
struct Given<'a> {
    option: &'static str,
    name: &'a str,
    values: &'a str,
}

impl<'a> Given<'a> {
    const SIZES: &'static str = "--batch-size";

    /// Keys of the table [sweep] that are no arguments.
    const TAKEN: [&'static str; 2] = ["x", "executes"];

    fn of(text: &'a str, option: &'static str) -> Result<Self> {
        let example = if option == "--env" { "OMP_NUM_THREADS=1,4" } else { "seq_len=128,384" };
        match text.split_once('=') {
            Some((name, _)) if option == "--set" && Self::TAKEN.contains(&name) => Err(Error::spec(format!(
                "an argument cannot be called `{name}`: in a spec, [sweep] has a key of that name"
            ))
            .at(format!("{option} {text}"))
            .hint("call it something else in the file")),
            Some((name, values)) if !name.is_empty() => Ok(Self { option, name, values }),
            _ => {
                let what = format!("`{text}` gives no value");
                Err(Error::spec(what).at(option).hint(format!("for example {option} {example}")))
            }
        }
    }

    /// The option with other values.
    fn with(&self, values: &str) -> String {
        let Self { option, name, .. } = self;
        if *option == Self::SIZES { format!("{option} {values}") } else { format!("{option} {name}={values}") }
    }

    /// The values as TOML writes them, where `x` is swept.
    fn toml(&self, x: &str) -> Result<String> {
        let Self { name, values, .. } = *self;
        if (name == x || name == OwnSteps::BATCH_SIZE) && values.contains("..") {
            return Ok(quoted(values));
        }
        let is_size = |text: &str| number(text.trim()).is_some_and(|number| number.parse::<u64>().is_ok());
        if name == x && !values.split(',').all(is_size) {
            return Err(Error::spec(format!("`{values}` is not a range, and no list of whole numbers"))
                .at(self.option)
                .hint(format!("for example {}, or {}", self.with("1..=64"), self.with("8,16,32"))));
        }
        let list = values.split(',').map(|text| value(name, text)).collect::<Result<Vec<_>>>()?;
        Ok(format!("[{}]", list.join(", ")))
    }
}

/// Refuses a name that two options give values to.
fn refuse_twice(given: &[Given]) -> Result<()> {
    for (at, second) in given.iter().enumerate() {
        let Some(first) = given[..at].iter().find(|first| first.name == second.name) else { continue };
        let are_lists = first.option == second.option && ![first, second].iter().any(|one| one.values.contains(".."));
        let hint = if are_lists {
            format!("write `{}`", second.with(&format!("{},{}", first.values, second.values)))
        } else {
            format!("leave out `{}` or `{}`", first.with(first.values), second.with(second.values))
        };
        return Err(Error::spec(format!("`{}` is given twice", second.name)).at(second.option).hint(hint));
    }
    Ok(())
}

/// An error in the text that stands for the options: in place of its line and its key it names the option. The options come with the table that
/// their names are keys of.
fn of_option(error: &Error, origin: &str, tables: [(&str, &[Given]); 2]) -> Error {
    let clause = error.clause();
    let in_line = clause.strip_prefix(origin).and_then(|rest| Some(rest.strip_prefix(':')?.split_once(": ")?.1));
    let stated = in_line.unwrap_or(&clause);
    let mut all = tables.into_iter().flat_map(|(table, given)| given.iter().map(move |given| (table, given)));
    let named = all.find_map(|(table, given)| {
        let rest = stated.strip_prefix(table)?.strip_prefix('.')?.strip_prefix(given.name)?;
        // The key of a value in a list ends with its number.
        let what = rest.strip_prefix(": ").or_else(|| Some(rest.strip_prefix('[')?.split_once("]: ")?.1))?;
        Some((given.with(given.values), what))
    });
    let (place, what) = named.unwrap_or_else(|| (origin.to_owned(), stated));
    let told = Error::new(error.kind(), what).at(place);
    if let Some(remedy) = error.remedy() { told.hint(remedy) } else { told }
}

/// A text as TOML writes it.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// One value of an argument as TOML writes it. Truth values and numbers are also read as Python writes them.
fn value(name: &str, text: &str) -> Result<String> {
    match text.trim() {
        "true" | "True" => Ok("true".to_owned()),
        "false" | "False" => Ok("false".to_owned()),
        "None" => Err(Error::spec("`None` cannot be given: a value is a number, a text or a truth value")
            .at(format!("--set {name}"))
            .hint("leave the argument out; the default that the file gives it then counts")),
        other => Ok(number(other).unwrap_or_else(|| quoted(other))),
    }
}

/// The number that a text is: `1E-3`, `.5` and `1_000` are numbers of Python too, and none of TOML.
fn number(text: &str) -> Option<String> {
    let is_digit = |letter: char| letter.is_ascii_digit();
    let groups: Vec<&str> = text.split('_').collect();
    if !groups.windows(2).all(|pair| pair[0].ends_with(is_digit) && pair[1].starts_with(is_digit)) {
        return None;
    }
    let plain = groups.concat();
    if let Ok(whole) = plain.parse::<i64>() {
        // `007` is the name of something.
        return Some(whole.to_string()).filter(|text| *text == plain);
    }
    let begins = plain.starts_with(|letter: char| letter.is_ascii_digit() || "-.".contains(letter));
    let number = plain.parse::<f64>().ok().filter(|number| number.is_finite())?;
    (begins && plain.contains(['.', 'e', 'E'])).then(|| format!("{number:?}"))
}

/// A name for a folder.
fn run_name(stem: &str) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_.".contains(letter) { letter } else { '_' };
    let name: String = stem.chars().map(plain).take(100).collect();
    if name.is_empty() || name.starts_with('.') { format!("step{name}") } else { name }
}

/// Where the steps run: `--worker-fds` names the pipes to the process that owns them.
///
/// # Errors
/// [`batchstep::error::Kind::Spec`] if it does not name two numbers.
pub fn place(fds: Option<&str>) -> Result<StepHost> {
    let Some(fds) = fds else { return Ok(StepHost::Child) };
    let numbers: Vec<u32> = fds.split(',').filter_map(|number| number.parse().ok()).collect();
    let [requests, answers] = numbers[..] else {
        let what = format!("`{fds}` does not name two open files");
        return Err(Error::spec(what).at("--worker-fds").hint("for example 3,4"));
    };
    Ok(StepHost::Parent(Pipes { requests, answers }))
}

/// Says what will run, and starts it.
pub fn open(experiment: &Experiment, steps: &OwnSteps, device: DeviceChoice, run: StepHost) -> Result<Engines> {
    if !matches!(run, StepHost::Parent(_)) {
        notice(own::announcement(steps));
    }
    let processes: usize = steps.env.iter().map(|(_, values)| values.len()).product();
    let settings = experiment.grid.count(EngineName::Python) / processes;
    let sets = experiment.batch_sizes.len() * settings.max(1);
    let limit_s = experiment.measure.visit_limit_s;
    Engines::of_steps(device, || own::open(steps, &experiment.model.names, sets, limit_s, run))
}

/// Keeps a copy of each file beside its results. The copies are never run.
///
/// # Errors
/// [`batchstep::error::Kind::Io`] where it can't be read or written.
pub fn keep_copies(steps: &OwnSteps, folder: &Path) -> Result<()> {
    for file in &steps.files {
        let bytes = std::fs::read(&file.0).map_err(|error| Error::io("read the step", &file.0, &error))?;
        let copy = folder.join(file.name());
        atomic::replace(&copy, |path| std::fs::write(path, &bytes).map_err(|error| Error::io("write", path, &error)))?;
    }
    Ok(())
}

/// For `--dry-run`.
pub fn check_without_running(steps: &OwnSteps) -> Result<()> {
    notice(format!("{} (not now: this is a dry run)", own::announcement(steps)));
    if own::check_signatures(steps)?.is_none() {
        notice("the arguments were not checked against step(): no Python here could read the file");
    }
    Ok(())
}

/// Runs one visit at a size for every setting of the specs, and shows the results.
///
/// # Errors
/// The error of the step.
pub fn try_each(specs: &[Spec], size: usize, device: DeviceChoice) -> Result<Exit> {
    for spec in specs {
        let Spec::Sweep(experiment) = spec else { continue };
        let Some(steps) = &experiment.own else { continue };
        let experiment = Experiment { batch_sizes: vec![size], executes: None, ..(**experiment).clone() };
        notice(own::announcement(steps));
        let models = &experiment.model.names;
        // Nothing but the person ends a visit that takes long.
        let open = || own::open(steps, models, 1, f64::INFINITY, StepHost::Heard);
        let mut engines = Engines::of_steps(device, open)?;
        for cell in Plan::new(&experiment)?.cells {
            let engine = engines.get(cell.engine)?;
            print(&tried(engine, &cell.workload, experiment.x())?);
        }
        engines.last_words().iter().for_each(notice);
    }
    Ok(Exit::Done)
}

fn tried(engine: &mut dyn Engine, workload: &batchstep::engine::Workload, x: &str) -> Result<String> {
    let begun = std::time::Instant::now();
    let mut step = engine.prepare(workload)?;
    let prepared = begun.elapsed().as_secs_f64();
    let mut text = format!("{}.py with {x}={}", workload.network.name, workload.batch_size);
    let given = [workload.settings.arguments, workload.settings.env].map(batchstep::settings::Text::in_words);
    given.iter().filter(|words| !words.is_empty()).for_each(|words| text += &format!(", {words}"));
    let _ = writeln!(text, "\n  on {}, {}", engine.device().name, engine.version().unwrap_or_default());
    let _ = writeln!(text, "  prepared in {}", human::seconds(prepared));
    for number in 1..=TRIED {
        let times = step.run()?;
        let _ = write!(text, "  step {number}   {}", human::seconds(times.step_s));
        let loss = times.loss.map(|loss| format!("   loss {loss:.6}"));
        let memory = times.worker.and_then(|counts| counts.peak_memory_bytes);
        let memory = memory.map(|bytes| format!("   {}", human::bytes(bytes)));
        text += &format!("{}{}\n", loss.unwrap_or_default(), memory.unwrap_or_default());
    }
    step.time_layers()?;
    let layers = step.layers();
    for layer in &layers {
        let time = layer.device_s.map_or("-".to_owned(), human::seconds);
        let _ = writeln!(text, "  {:<30} {:<16} {:<9} {time}", layer.layer, layer.operation, layer.direction);
    }
    Ok(text + if layers.is_empty() { "  no layers: `return run, model` from step() names them\n" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_python_writes_them() {
        for (text, expected) in [
            ("True", "true"),
            (" false", "false"),
            ("17", "17"),
            ("-3", "-3"),
            ("1_000", "1000"),
            ("1E-3", "0.001"),
            ("1e-30", "1e-30"),
            (".5", "0.5"),
            ("-.5", "-0.5"),
            ("2.50", "2.5"),
            ("1_0.5", "10.5"),
            ("sdpa", "\"sdpa\""),
            ("007", "\"007\""),
            ("_1", "\"_1\""),
            ("1__0", "\"1__0\""),
            ("inf", "\"inf\""),
            ("e", "\"e\""),
            ("none", "\"none\""),
        ] {
            assert_eq!(value("amp", text).expect("a value"), expected, "{text}");
        }
    }
}
