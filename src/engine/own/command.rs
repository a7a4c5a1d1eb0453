//! A command that is run once for each step, or prints the times of some.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::process::{self, ExitStatus, Stdio};
use std::time::Duration;

use regex::Regex;
use serde_json::{Value, json};

use crate::engine::{DeviceName, Engine, LayerExecution, SetupTimes, SourceFile, Step, StepTimes, Workload, processor};
use crate::error::{Error, Kind, Result};
use crate::foreign;
use crate::os::child::{self, Ended, Failure};
use crate::settings::command::{Command, Timed, UNITS};
use crate::settings::members;
use crate::settings::{EngineName, Settings};

/// The longest that a command may take.
const PATIENCE: Duration = Duration::from_secs(1800);
/// Bytes that it may print.
const MOST: usize = 16 << 20;

/// Runs a command.
#[derive(Debug)]
pub(super) struct CommandEngine {
    command: Command,
    /// `None`: the whole process is a step.
    printed: Option<Printed>,
    x: String,
    device: DeviceName,
    files: Vec<SourceFile>,
}

/// How times are read from the output of a command.
#[derive(Clone, Debug)]
struct Printed {
    pattern: Regex,
    seconds: f64,
}

/// The regular expression, with at most one group.
///
/// # Errors
/// [`Kind::Spec`] if it is not a valid expression.
pub fn pattern(text: &str) -> Result<Regex> {
    let pattern = Regex::new(text).map_err(|error| {
        let said = error.to_string();
        Error::spec(format!("`{text}` is not a regular expression: {}", said.lines().last().unwrap_or_default()))
    })?;
    match pattern.captures_len() {
        ..=2 => Ok(pattern),
        _ => Err(Error::spec(format!("`{text}` has several groups, and only one may contain the times"))
            .hint("`(?:...)` groups without holding anything")),
    }
}

impl CommandEngine {
    /// # Errors
    /// [`Kind::Device`] where there is no such program.
    pub fn open(command: &Command, x: &str) -> Result<Self> {
        let printed = match &command.timed {
            Timed::Printed { pattern: text, unit } => {
                let seconds = UNITS.iter().find(|(name, _)| name == unit).map_or(1.0, |(_, seconds)| *seconds);
                Some(Printed { pattern: pattern(text)?, seconds })
            }
            Timed::Process | Timed::Lines => None,
        };
        let files = vec![super::program_file(command)?];
        Ok(Self { command: command.clone(), printed, x: x.to_owned(), device: processor::device_name(), files })
    }
}

impl Engine for CommandEngine {
    fn device(&self) -> &DeviceName {
        &self.device
    }

    fn version(&self) -> Option<String> {
        Some(foreign::name(&self.command.name()))
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        Ok(asked.of(EngineName::Python))
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        let Settings { arguments, env, .. } = workload.settings;
        let mut values = vec![(self.x.clone(), json!(workload.batch_size))];
        values.extend(members(arguments.as_str()));
        let name = foreign::name(&self.command.name());
        let (words, printed) = (self.command.with(&values), self.printed.clone());
        Ok(Box::new(CommandStep { name, words, env: members(env.as_str()), printed, ready: VecDeque::new() }))
    }

    /// Each step is a process of its own.
    fn still_works(&mut self) -> Result<()> {
        Ok(())
    }

    fn smallest_step_s(&mut self) -> Result<f64> {
        Err(Error::engine("a command has no smallest step"))
    }
}

/// A command with its values.
#[derive(Debug)]
struct CommandStep {
    name: String,
    words: Vec<String>,
    env: Vec<(String, Value)>,
    printed: Option<Printed>,
    /// Times that it printed and that were not yet asked for, in seconds.
    ready: VecDeque<f64>,
}

impl CommandStep {
    /// # Errors
    /// [`Kind::Engine`] where it fails, or prints no times.
    fn start(&mut self) -> Result<()> {
        let [program, arguments @ ..] = &self.words[..] else { return Err(Error::engine("the command has no words")) };
        let mut command = process::Command::new(program);
        command.args(arguments).stderr(Stdio::piped());
        for (name, value) in &self.env {
            match value.as_str() {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let ended = child::run(&mut command, Some(PATIENCE), MOST).map_err(|failure| match failure {
            Failure::NotStarted(error) => not_started(&self.name, &error),
            Failure::Late(_) => Error::engine(format!("{} did not end within {} s", self.name, PATIENCE.as_secs())),
            Failure::TooLong => Error::engine(format!("{} printed more than {} MiB", self.name, MOST >> 20)),
        })?;
        if !ended.status.success() {
            return Err(failed(&self.name, &ended));
        }
        match &self.printed {
            None => self.ready.push_back(ended.took.as_secs_f64()),
            Some(printed) => self.ready.extend(printed.times(&self.name, &ended.stdout)?),
        }
        Ok(())
    }
}

pub(super) fn not_started(name: &str, error: &std::io::Error) -> Error {
    let why = if error.kind() == std::io::ErrorKind::NotFound {
        "there is no such program".to_owned()
    } else {
        error.to_string()
    };
    Error::device(format!("cannot start {name}: {why}"))
        .hint("the first word of `command` is a program: its path from where batchstep is started, or a name on the search path")
}

/// How it ended, and the last that it said.
fn failed(name: &str, ended: &Ended) -> Error {
    let how = |status: ExitStatus| match (status.code(), status.signal()) {
        (Some(code), _) => format!("ended with code {code}"),
        (_, Some(signal)) => format!("was ended by signal {signal}"),
        _ => "ended".to_owned(),
    };
    let said = [&ended.stderr, &ended.stdout]
        .into_iter()
        .find_map(|text| text.lines().rev().find(|line| !line.trim().is_empty()));
    let said = said.map_or(String::new(), |line| format!(": {}", foreign::line(line)));
    let out_of_memory = said.to_lowercase().contains("out of memory");
    Error::new(
        if out_of_memory { Kind::OutOfMemory } else { Kind::Engine },
        format!("{name} {}{said}", how(ended.status)),
    )
}

impl Printed {
    /// The numbers in the text that the pattern's group, or the whole pattern, matches.
    fn times(&self, name: &str, text: &str) -> Result<Vec<f64>> {
        let found = self.pattern.captures_iter(text).filter_map(|found| found.get(found.len() - 1));
        let words = found.flat_map(|found| found.as_str().split([',', ';', ' ', '\t', '\n', '\r']));
        let times: Vec<f64> =
            words.filter_map(|word| word.parse().ok()).map(|value: f64| value * self.seconds).collect();
        match times.iter().all(|time| time.is_finite() && *time > 0.0) && !times.is_empty() {
            true => Ok(times),
            false => Err(Error::engine(format!("{name} printed no time where `{}` looks for it", self.pattern))
                .hint("the pattern is a regular expression, and its group holds one number or several")),
        }
    }
}

impl Step for CommandStep {
    fn run(&mut self) -> Result<StepTimes> {
        if self.ready.is_empty() {
            self.start()?;
        }
        let step_s = self.ready.pop_front().ok_or_else(|| Error::engine("no step was run"))?;
        Ok(StepTimes { step_s, ..StepTimes::default() })
    }

    fn setup(&self) -> SetupTimes {
        SetupTimes::default()
    }

    fn layers(&self) -> Vec<LayerExecution> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn printed_times_are_the_numbers_of_the_group() {
        let printed = |text: &str, seconds| Printed { pattern: pattern(text).expect("a pattern"), seconds };
        let llama = r#"[{"n_prompt": 512, "samples_ns": [ 1500000, 2500000 ]}]"#;
        let times = printed(r#""samples_ns": \[([^\]]*)\]"#, 1e-9).times("bench", llama).expect("times");
        assert_eq!(times, [0.0015, 0.0025]);
        assert_eq!(
            printed(r"took ([\d.]+)", 1e-3).times("bench", "took 2.5\ntook 3.5\n").expect("times"),
            [0.0025, 0.0035]
        );
        assert_eq!(printed(r"\d+", 1.0).times("bench", "4 and 5").expect("without a group, all of it"), [4.0, 5.0]);
        let nothing = printed(r"took (\d+)", 1.0).times("bench", "no time").expect_err("none");
        assert_eq!(nothing.to_string().lines().next(), Some(r"bench printed no time where `took (\d+)` looks for it"));
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert!(pattern("(").expect_err("open").to_string().contains("is not a regular expression"));
        assert!(pattern("(a)(b)").expect_err("two").to_string().contains("several groups"));
    }
}
