//! A user's own step: a function of a Python file, run in a separate process.
//!
//! What it computes is unknown. The file's top level runs once for each process, `step` runs once for each visit, and the function that `step` returns runs once
//! for each step, which is timed there (see `own/worker/`). There is a process for each file and each value of the environment; all of them keep running.

mod command;
mod signature;
mod step;
#[cfg(test)]
mod tests;
mod visit;

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::worker::{self, Patience, Pipes, Program, ProgramHost, Worker};
use super::{DeviceName, Engine, SetupTimes, SourceFile, Step, Workload, processor};
use crate::device::account::account;
use crate::device::interpreter;
use crate::error::{Error, Kind, Result};
use crate::foreign;
use crate::os::look;
use crate::settings::command::{Command, Timed};
use crate::settings::members;
use crate::settings::own::{Fresh, OwnSteps, StepFile, product};
use crate::settings::{EngineName, Settings, Text};
use command::CommandEngine;
pub use command::pattern;
pub use signature::check_signatures;
use step::OwnStep;
use visit::Visit;

const TEXT: &str = concat!(
    include_str!("../worker/python/pipes.py"),
    include_str!("../worker/python/clock.py"),
    include_str!("../worker/python/witness.py"),
    include_str!("../worker/python/serve.py"),
    include_str!("worker/file.py"),
    include_str!("worker/frameworks.py"),
    include_str!("worker/layers.py"),
    include_str!("../worker/python/kernels.py"),
    include_str!("worker/worker.py"),
);

/// The top level of a file may download a model.
const PATIENCE: Patience = Patience { start: Duration::from_secs(900), ..Patience::USUAL };

/// The report of a process, once the file is imported.
#[derive(Clone, Debug, Deserialize)]
struct ImportReport {
    /// The frameworks that it imported; of another program what it is called.
    #[serde(default)]
    version: String,
    python: Option<String>,
    #[serde(default = "a_cpu")]
    device: String,
    device_name: Option<String>,
    pci_bus_id: Option<String>,
    multiprocessors: Option<u32>,
    /// The file, and what it imports from its own folder.
    #[serde(default)]
    files: Vec<SourceFile>,
}

fn a_cpu() -> String {
    "cpu".to_owned()
}

/// Where the steps run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepHost {
    /// In processes of their own.
    Child,
    /// The same, but their output is shown.
    Heard,
    /// In the process that started this one.
    Parent(Pipes),
}

/// Which process: that of a model, with an environment.
type Holder = (String, Text);

#[derive(Debug)]
pub struct OwnEngine {
    device: DeviceName,
    /// What the first process said.
    opened: ImportReport,
    files: Vec<SourceFile>,
    fresh: Fresh,
    x: String,
    /// How many sets of arguments there are for each process.
    sets: usize,
    /// The longest visit, in seconds.
    visit_limit_s: f64,
    workers: BTreeMap<Holder, Rc<RefCell<Worker>>>,
    /// For each setting and size the time of its last step, in seconds.
    last_s: Rc<RefCell<BTreeMap<StepKey, f64>>>,
    /// Notices of processes that were ended with their block.
    said: Vec<String>,
}

/// What a step is of: its place, its size, its further arguments.
type StepKey = (Holder, usize, Text);

impl OwnEngine {
    /// Starts a process for each file and each environment, which imports the file. `sets`: the number of argument sets that each process will get, for compilers. A
    /// process that hangs is ended in time for a visit of at most `visit_limit_s` seconds.
    ///
    /// # Errors
    /// [`Kind::Spec`] if a file has no such step; [`Kind::Device`] if there is no Python, or a module is missing.
    pub fn open(steps: &OwnSteps, models: &[String], sets: usize, visit_limit_s: f64, run: StepHost) -> Result<Self> {
        let mut workers = BTreeMap::new();
        // The process of a Python file reports the file, together with its imports.
        let mut files = Vec::from_iter(steps.command.as_ref().map(program_file).transpose()?);
        let mut first = None;
        for (model, (program, file)) in models.iter().zip(programs(steps, run)?) {
            for env in product(&steps.env) {
                let variable = |(name, value): (String, Value)| (name, value.as_str().map(str::to_owned));
                let environment = members(env.as_str()).into_iter().map(variable).collect();
                let open = json!({"do": "open", "file": file, "arguments": steps.argument_names()});
                let mut worker = Worker::new(Program { environment, ..program.clone() }, open, PATIENCE);
                let opened = open_one(&mut worker)?;
                worker.patience.step = Visit::begin(visit_limit_s).left(PATIENCE.step);
                files.extend(opened.files.iter().cloned());
                first.get_or_insert(opened);
                workers.insert((model.clone(), env), Rc::new(RefCell::new(worker)));
            }
        }
        files.sort();
        files.dedup();
        let first = first.ok_or_else(|| Error::spec("no file with a step is named"))?;
        let id = first.device.clone();
        let device = match &first.device_name {
            Some(name) => DeviceName { id, name: name.clone(), multiprocessors: first.multiprocessors },
            None => DeviceName { id, ..processor::device_name() },
        };
        let (fresh, x, last_s, said) = (steps.fresh, steps.x.clone(), Rc::default(), Vec::new());
        Ok(Self { device, opened: first, files, fresh, x, sets, visit_limit_s, workers, last_s, said })
    }
}

/// The engine for files of Python, or for a command. See [`OwnEngine::open`].
///
/// # Errors
/// As [`OwnEngine::open`]; [`Kind::Device`] where there is no such program.
pub fn open(
    steps: &OwnSteps,
    models: &[String],
    sets: usize,
    visit_limit_s: f64,
    run: StepHost,
) -> Result<Box<dyn Engine>> {
    match &steps.command {
        Some(command) if command.timed != Timed::Lines => {
            Ok(Box::new(CommandEngine::open(command, &steps.x, visit_limit_s)?))
        }
        _ => Ok(Box::new(OwnEngine::open(steps, models, sets, visit_limit_s, run)?)),
    }
}

/// What runs each model's steps, still without an environment, and its file; a command that answers lines has none.
fn programs(steps: &OwnSteps, run: StepHost) -> Result<Vec<(Program, String)>> {
    let program = |name: &str, place, remedy| {
        let (name, is_heard) = (foreign::name(name), run == StepHost::Heard);
        Program { name, place, text: TEXT, environment: Vec::new(), remedy, is_heard }
    };
    let file = |file: &StepFile| {
        let path = file.0.canonicalize().map_err(|error| Error::io("read the step", &file.0, &error))?;
        let place = match run {
            StepHost::Parent(pipes) => ProgramHost::Parent(pipes),
            StepHost::Child | StepHost::Heard => ProgramHost::Python(interpreter::interpreter()),
        };
        let remedy = format!("name a Python that has what the step needs in {}", interpreter::VARIABLE);
        Ok((program(&file.name(), place, remedy), path.display().to_string()))
    };
    let command = |command: &Command| {
        let remedy = "see that it runs by itself, and answers each line with a line".to_owned();
        Ok((program(&command.name(), ProgramHost::Command(command.words.clone()), remedy), String::new()))
    };
    steps.files.iter().map(file).chain(steps.command.iter().map(command)).collect()
}

/// The program that a command runs: a run cannot continue with another program.
///
/// # Errors
/// [`Kind::Device`] if there is no such program; [`Kind::Io`] if it cannot be read.
fn program_file(command: &Command) -> Result<SourceFile> {
    let word = command.words.first().map_or("", String::as_str);
    let folders = std::env::var_os("PATH").unwrap_or_default();
    // A folder of the search path that cannot be looked at is passed over, as by a shell.
    let is_file = |path: &PathBuf| look::is_file(path).unwrap_or(false);
    let path = match word.contains('/') {
        true => Some(PathBuf::from(word)).filter(is_file),
        false => std::env::split_paths(&folders).map(|folder| folder.join(word)).find(is_file),
    };
    let missing = || command::not_started(word, &std::io::ErrorKind::NotFound.into());
    let path = path.ok_or_else(missing)?;
    let bytes = std::fs::read(&path).map_err(|error| Error::io("read the program", &path, &error))?;
    let sha256 = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(SourceFile { name: command.name(), sha256 })
}

/// What will be run, by whom, before it is.
pub fn announcement(steps: &OwnSteps) -> String {
    let paths: Vec<String> = steps.files.iter().map(|file| resolved(file).display().to_string()).collect();
    let what = match &steps.command {
        Some(command) => format!("`{}`", foreign::line(&command.words.join(" "))),
        None => format!("{} with {}", paths.join(" and "), interpreter::interpreter().display()),
    };
    format!("runs {what}, as {}", account().map_or_else(|| "you".to_owned(), |account| account.user))
}

fn resolved(file: &StepFile) -> PathBuf {
    file.0.canonicalize().unwrap_or_else(|_| file.0.clone())
}

fn open_one(worker: &mut Worker) -> Result<ImportReport> {
    let name = worker.program.name.clone();
    let answer = worker.connect().map_err(|error| match error.kind() {
        Kind::Device | Kind::Spec => error,
        // If the import fails, there is nothing to measure, whatever the reason.
        _ => Error::spec(error.to_string()).at(format!("starting {name}")),
    })?;
    worker::read(answer, format_args!("{name} did not open"))
}

/// What a process has to say at its end.
fn notices(worker: &mut Worker) -> Vec<String> {
    let patience = worker.patience.step;
    let Ok(answer) = worker.ask(&json!({"do": "summary"}), patience) else { return Vec::new() };
    let notices = answer.get("notices").and_then(|notices| serde_json::from_value::<Vec<String>>(notices.clone()).ok());
    let name = &worker.program.name;
    notices.unwrap_or_default().iter().map(|notice| format!("{name}: {}", foreign::line(notice))).collect()
}

/// Whether two notices differ in numbers only: each block's process has its own.
fn are_alike(one: &str, other: &str) -> bool {
    let words = |text: &str| text.chars().filter(|letter| !letter.is_ascii_digit()).collect::<String>();
    words(one) == words(other)
}

impl Engine for OwnEngine {
    fn device(&self) -> &DeviceName {
        &self.device
    }

    fn pci_bus_id(&self) -> Option<&str> {
        self.opened.pci_bus_id.as_deref()
    }

    fn version(&self) -> Option<String> {
        let ImportReport { version, python, .. } = &self.opened;
        let python = python.as_ref().map(|version| format!("Python {}", foreign::name(version)));
        let words = [Some(foreign::name(version)), python].into_iter().flatten().filter(|text| !text.is_empty());
        Some(words.collect::<Vec<_>>().join(", "))
    }

    fn profiles(&self) -> bool {
        self.workers.values().any(|worker| matches!(worker.borrow().program.place, ProgramHost::Python(_)))
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        Ok(asked.of(EngineName::Python))
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        let Settings { arguments, env, .. } = workload.settings;
        let place = (workload.network.name.clone(), env);
        let worker = self.workers.get(&place).ok_or_else(|| Error::engine("the step's process was not started"))?;
        // What another process gives back must not disturb the steps of this one.
        let others = self.workers.values().filter(|other| !Rc::ptr_eq(other, worker));
        others.for_each(|other| other.borrow_mut().settle());
        let mut given = Map::from_iter([(self.x.clone(), json!(workload.batch_size))]);
        given.extend(members(arguments.as_str()));
        let request = |id: u64| json!({"do": "prepare", "id": id, "arguments": given, "cells": self.sets});
        let (visit, mut held) = (Visit::begin(self.visit_limit_s), worker.borrow_mut());
        if held.process.is_none() {
            held.patience.start = visit.left(PATIENCE.start);
            held.connect()?;
        }
        held.patience.prepare = visit.left(PATIENCE.prepare);
        let (id, answer) = held.prepare(request)?;
        drop(held);
        let compile_s = answer.get("compile_s").and_then(Value::as_f64);
        let has_layers = answer.get("has_layers").and_then(Value::as_bool).unwrap_or(false);
        let setup = SetupTimes { compile_s, ..SetupTimes::default() };
        Ok(Box::new(OwnStep {
            id,
            worker: Rc::clone(worker),
            visit,
            setup,
            cell: (place, workload.batch_size, arguments),
            last_s: Rc::clone(&self.last_s),
            has_layers,
            ready: VecDeque::new(),
            expected: 0,
            layers: Vec::new(),
            on_device: false,
            rests: false,
        }))
    }

    fn begin_block(&mut self) {
        if self.fresh != Fresh::Block {
            return;
        }
        for worker in self.workers.values() {
            let mut worker = worker.borrow_mut();
            // A process that has run nothing yet has nothing to say.
            let notices = if worker.prepared > 0 { notices(&mut worker) } else { Vec::new() };
            for notice in notices {
                if !self.said.iter().any(|said| are_alike(said, &notice)) {
                    self.said.push(notice);
                }
            }
            worker.process = None;
        }
    }

    fn files(&self) -> &[SourceFile] {
        &self.files
    }

    fn last_words(&mut self) -> Vec<String> {
        let mut said = std::mem::take(&mut self.said);
        let of_blocks = said.len();
        for worker in self.workers.values() {
            for notice in notices(&mut worker.borrow_mut()) {
                let is_known = said.contains(&notice) || said[..of_blocks].iter().any(|said| are_alike(said, &notice));
                if !is_known {
                    said.push(notice);
                }
            }
        }
        said
    }

    /// Nothing runs any more where no process starts.
    fn still_works(&mut self) -> Result<()> {
        for worker in self.workers.values() {
            let mut worker = worker.borrow_mut();
            if worker.process.is_none() {
                worker.patience.start = PATIENCE.start;
                worker.connect()?;
            }
        }
        Ok(())
    }

    /// A person's step has no smallest one.
    fn smallest_step_s(&mut self) -> Result<f64> {
        Err(Error::engine("a step of one's own has no smallest one"))
    }
}
