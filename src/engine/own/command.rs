//! A command that is run once for each step, or prints the times of some.

use std::collections::VecDeque;
use std::os::unix::process::ExitStatusExt;
use std::process::{self, ExitStatus, Stdio};
use std::time::Duration;

use regex::Regex;
use serde_json::{Value, json};

use super::visit::Visit;
use crate::engine::{DeviceName, Engine, SourceFile, Step, StepTimes, Workload, processor};
use crate::error::{Error, Kind, Result};
use crate::foreign;
use crate::os::child::{self, Ended, Failure};
use crate::settings::command::{Command, Timed, UNITS};
use crate::settings::members;
use crate::settings::{EngineName, Settings};
use crate::units::human;

/// The longest that a command may take, where its visit may take longer.
const PATIENCE: Duration = Duration::from_secs(1800);
/// Bytes that it may print.
const MOST: usize = 16 << 20;

#[derive(Debug)]
pub(super) struct CommandEngine {
    command: Command,
    /// `None`: the whole process is a step.
    printed: Option<Printed>,
    x: String,
    /// The longest visit, in seconds.
    visit_limit_s: f64,
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
    pub fn open(command: &Command, x: &str, visit_limit_s: f64) -> Result<Self> {
        let printed = match &command.timed {
            Timed::Printed { pattern: text, unit } => {
                let seconds = UNITS.iter().find(|(name, _)| name == unit).map_or(1.0, |(_, seconds)| *seconds);
                Some(Printed { pattern: pattern(text)?, seconds })
            }
            Timed::Process | Timed::Lines => None,
        };
        let files = vec![super::program_file(command)?];
        let (command, x, device) = (command.clone(), x.to_owned(), processor::device_name());
        Ok(Self { command, printed, x, visit_limit_s, device, files })
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
        let (env, ready, visit) = (members(env.as_str()), VecDeque::new(), Visit::begin(self.visit_limit_s));
        Ok(Box::new(CommandStep { name, words, env, printed, ready, visit }))
    }

    /// Each step is a process of its own.
    fn still_works(&mut self) -> Result<()> {
        Ok(())
    }

    fn smallest_step_s(&mut self) -> Result<f64> {
        Err(Error::engine("a command has no smallest step"))
    }
}

#[derive(Debug)]
struct CommandStep {
    name: String,
    words: Vec<String>,
    env: Vec<(String, Value)>,
    printed: Option<Printed>,
    /// Times that it printed and that were not yet asked for, in seconds.
    ready: VecDeque<f64>,
    visit: Visit,
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
        let patience = self.visit.left(PATIENCE);
        let ended = child::run(&mut command, Some(patience), MOST).map_err(|failure| match failure {
            Failure::NotStarted(error) => not_started(&self.name, &error),
            Failure::Late(_) => {
                let patience = human::duration(patience.as_secs_f64());
                Error::engine(format!("{} did not end within {patience}", self.name))
            }
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
    ///
    /// # Errors
    /// [`Kind::Engine`] where there is none, or where it is unclear how many there are.
    fn times(&self, name: &str, text: &str) -> Result<Vec<f64>> {
        let mut times = Vec::new();
        for found in self.pattern.captures_iter(text).filter_map(|found| found.get(found.len() - 1)) {
            let is_list =
                text[..found.start()].trim_end().ends_with('[') && text[found.end()..].trim_start().starts_with(']');
            let words = found.as_str().split([';', ' ', '\t', '\n', '\r']);
            for word in words.map(|word| word.trim_matches(',')).filter(|word| !word.is_empty()) {
                if !is_list && may_be_one(word) {
                    let word = foreign::name(word);
                    return Err(Error::engine(format!("{name} printed a time whose commas can be read in two ways"))
                        .hint(format!("`{word}` may be one number or several; print it without separators")));
                }
                times.extend(self.numbers(name, word)?);
            }
        }
        match times.iter().all(|time| time.is_finite() && *time > 0.0) && !times.is_empty() {
            true => Ok(times),
            false => Err(Error::engine(format!("{name} printed no time where `{}` looks for it", self.pattern))
                .hint("the pattern is a regular expression, and its group holds one number or several")),
        }
    }

    /// The numbers of a word, in seconds. A group holds nothing but numbers and their unit; without one, the pattern also matches other words.
    fn numbers(&self, name: &str, word: &str) -> Result<Vec<f64>> {
        let has_group = self.pattern.captures_len() > 1;
        let mut times = Vec::new();
        for part in word.split(',').filter(|part| !part.is_empty()) {
            match part.parse::<f64>() {
                Ok(value) => times.push(value * self.seconds),
                Err(_) if has_group && !UNITS.iter().any(|(unit, _)| *unit == part) => {
                    let part = foreign::name(part);
                    return Err(Error::engine(format!("{name} printed `{part}` where a time is looked for"))
                        .hint(format!("the group of `{}` must hold numbers only", self.pattern)));
                }
                Err(_) => {}
            }
        }
        Ok(times)
    }
}

/// Whether the commas in a word may be inside one number: `1,234.5` and `1,5`.
fn may_be_one(word: &str) -> bool {
    fn is_digits(text: &str) -> bool {
        !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
    }
    let (whole, fraction) = word.split_once('.').map_or((word, None), |(whole, fraction)| (whole, Some(fraction)));
    let groups: Vec<&str> = whole.split(',').collect();
    if groups.len() < 2 || !groups.iter().copied().chain(fraction).all(is_digits) {
        return false;
    }
    let are_thousands = groups[0].len() <= 3 && groups[1..].iter().all(|group| group.len() == 3);
    are_thousands || (groups.len() == 2 && fraction.is_none())
}

impl Step for CommandStep {
    fn run(&mut self) -> Result<StepTimes> {
        if self.ready.is_empty() {
            self.start()?;
        }
        let step_s = self.ready.pop_front().ok_or_else(|| Error::engine("no step was run"))?;
        Ok(StepTimes { step_s, ..StepTimes::default() })
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
    fn what_may_be_one_number_or_several_is_refused() {
        let printed = Printed { pattern: pattern("time: ([^:\\]]*)").expect("a pattern"), seconds: 1e-3 };
        let times = |text: &str| printed.times("bench", &format!("time: {text}")).map_err(|error| error.to_string());
        for text in ["1,234.5 ms", "1,234", "12,345,678", "1,5", "2.5, 1,234"] {
            let said = times(text).expect_err(text);
            assert!(said.contains("may be one number or several; print it without separators"), "{text}: {said}");
        }
        assert!(times("1,234.5 ms").expect_err("two ways").contains("`1,234.5`"));
        let several = |text: &str| times(text).map(|times| times.len());
        for (text, count) in [("1.5,2.5", 2), ("10,20,30", 3), ("1, 234", 2), ("1 234;5 ms", 3), ("7 µs", 1)] {
            assert_eq!(several(text), Ok(count), "{text}");
        }
        for (text, word) in [("12x", "12x"), ("3 and 4", "and"), ("1.5,2_5", "2_5")] {
            let said = times(text).expect_err(text);
            assert!(said.starts_with(&format!("bench printed `{word}` where a time is looked for")), "{said}");
        }
        let list = Printed { pattern: pattern("\\[([^\\]]*)").expect("a pattern"), seconds: 1.0 };
        assert_eq!(list.times("bench", "[1,234]").expect("a list"), [1.0, 234.0]);
    }

    #[test]
    fn a_command_that_hangs_is_ended_before_the_visit_counts_as_hung() {
        let words = ["sleep", "60"].map(str::to_owned).to_vec();
        let visit = Visit::begin(0.2);
        let (name, env, ready) = ("sleep".to_owned(), Vec::new(), VecDeque::new());
        let error = CommandStep { name, words, env, printed: None, ready, visit }.start().expect_err("it hangs");
        assert_eq!(error.kind(), Kind::Engine);
        assert!(error.to_string().contains("sleep did not end within "), "{error}");
    }

    #[test]
    fn what_is_no_pattern_is_refused() {
        assert!(pattern("(").expect_err("open").to_string().contains("is not a regular expression"));
        assert!(pattern("(a)(b)").expect_err("two").to_string().contains("several groups"));
    }
}
