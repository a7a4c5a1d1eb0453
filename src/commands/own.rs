//! `batchstep run my_step.py`: a step of one's own without a spec.

use std::fmt::Write;
use std::path::Path;

use batchstep::engine::open::{DeviceChoice, Engines};
use batchstep::engine::own::{self, StepHost};
use batchstep::engine::worker::Pipes;
use batchstep::engine::{Engine, Step};
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
    let mut env = Vec::new();
    for given in &args.env {
        let (name, values) = assignment(given, "--env")?;
        let value = |value: &str| if value.is_empty() { "false".to_owned() } else { quoted(value) };
        env.push(format!("{} = [{}]", quoted(name), values.split(',').map(value).collect::<Vec<_>>().join(", ")));
    }
    if !env.is_empty() {
        let _ = writeln!(text, "env = {{ {} }}", env.join(", "));
    }
    text += "\n[sweep]\n";
    let x = args.x.as_deref().unwrap_or(OwnSteps::BATCH_SIZE);
    if x != OwnSteps::BATCH_SIZE {
        let _ = writeln!(text, "x = {}", quoted(x));
    }
    let mut given: Vec<(&str, &str)> =
        args.batch_size.iter().map(|sizes| (OwnSteps::BATCH_SIZE, sizes.as_str())).collect();
    for set in &args.set {
        given.push(assignment(set, "--set")?);
    }
    for (name, values) in given {
        let is_range = (name == x || name == OwnSteps::BATCH_SIZE) && values.contains("..");
        let list = || values.split(',').map(|text| value(name, text)).collect::<Result<Vec<_>>>();
        let values = if is_range { quoted(values) } else { format!("[{}]", list()?.join(", ")) };
        let _ = writeln!(text, "{} = {values}", quoted(name));
    }
    // Errors name the command line instead of this text.
    Spec::parse(&text, &path.display().to_string()).map_err(|error| {
        error.hint("the arguments of step() are given by `--batch-size 1..=64` and `--set NAME=VALUE,...`")
    })
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

fn assignment<'a>(text: &'a str, option: &str) -> Result<(&'a str, &'a str)> {
    text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(|| {
        Error::spec(format!("`{text}` gives no value")).at(option).hint(format!("for example {option} seq_len=128,384"))
    })
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
    match numbers[..] {
        [requests, answers] => Ok(StepHost::Parent(Pipes { requests, answers })),
        _ => {
            Err(Error::spec(format!("`{fds}` does not name two open files")).at("--worker-fds").hint("for example 3,4"))
        }
    }
}

/// Says what will run, and starts it.
///
/// # Errors
/// As [`own::open`].
pub fn open(experiment: &Experiment, steps: &OwnSteps, device: DeviceChoice, run: StepHost) -> Result<Engines> {
    if !matches!(run, StepHost::Parent(_)) {
        notice(own::announcement(steps));
    }
    let settings = experiment.grid.count(EngineName::Python) / experiment_processes(steps);
    let sets = experiment.batch_sizes.len() * settings.max(1);
    let limit_s = experiment.measure.visit_limit_s;
    Engines::of_steps(device, || own::open(steps, &experiment.model.names, sets, limit_s, run))
}

/// The number of processes that one file needs.
fn experiment_processes(steps: &OwnSteps) -> usize {
    steps.env.iter().map(|(_, values)| values.len()).product()
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
///
/// # Errors
/// As [`own::check_signatures`].
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
    text += &layers(step.as_ref());
    Ok(text)
}

fn layers(step: &dyn Step) -> String {
    let layers = step.layers();
    let mut text = String::new();
    for layer in &layers {
        let time = layer.device_s.map_or("-".to_owned(), human::seconds);
        let _ = writeln!(text, "  {:<30} {:<16} {:<9} {time}", layer.layer, layer.operation, layer.direction);
    }
    if text.is_empty() { "  no layers: `return run, model` from step() names them\n".to_owned() } else { text }
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

    #[test]
    fn none_is_refused_with_what_to_do() {
        let error = value("amp", "None").expect_err("no value").to_string();
        assert!(error.starts_with("--set amp: `None` cannot be given"), "{error}");
        assert!(error.contains("help: leave the argument out"), "{error}");
    }
}
