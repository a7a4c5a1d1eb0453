//! Processes that run steps for this one, in Python or in whatever a person has: started, asked, started again where they are lost.

mod accounts;
mod process;

use std::fmt::Display;
use std::time::Duration;

use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{let_it_begin, steps_at_work};
use crate::device::root::FilesystemRoot;
use crate::device::witness::{Outside, Witnessed};
use crate::error::{Error, Kind, Result};
use crate::foreign;
pub use accounts::AnsweredTimes;
pub use process::{Pipes, Process, Program, ProgramHost};

/// The time after which a process that does not answer counts as hung.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// Importing a framework from a cold disk, and the first touch of the device.
    pub start: Duration,
    /// Compiling a deep network takes minutes.
    pub prepare: Duration,
    pub step: Duration,
    /// An epoch of a large network on a slow machine.
    pub epoch: Duration,
}

impl Patience {
    pub const USUAL: Self = Self {
        start: Duration::from_secs(180),
        prepare: Duration::from_secs(1200),
        step: Duration::from_secs(300),
        epoch: Duration::from_secs(4 * 3600),
    };
}

/// What to do where a file was changed during a run.
const PUT_BACK: &str = "to go on with this run, put the file back and use `--resume`; `--out` begins another run";

/// A process that is started again after it was lost.
#[derive(Debug)]
pub struct Worker {
    pub program: Program,
    /// The first request to each process.
    open: Value,
    pub patience: Patience,
    pub process: Option<Process>,
    /// The number of the last step prepared, over all processes.
    pub prepared: u64,
    /// The number of answers that are still to be read.
    owed: usize,
    /// The person's files that the first process read, with their hashes; null where it names none.
    files: Option<Value>,
}

/// A request about step `id`.
pub fn about(id: u64, what: &str) -> Value {
    json!({"do": what, "id": id})
}

/// An answer; `otherwise` says what a process did that answered something else.
///
/// # Errors
/// [`Kind::Engine`] where it is something else.
pub fn read<T: DeserializeOwned>(answer: Value, otherwise: impl Display) -> Result<T> {
    serde_json::from_value(answer).map_err(|error| Error::engine(format!("{otherwise}: {error}")))
}

/// The name of a file that is in only one of two lists, or has another hash there.
fn changed(first: &Value, files: &Value) -> Option<String> {
    let (first, files) = (first.as_array()?, files.as_array()?);
    let new = files.iter().find(|file| !first.contains(file));
    let differs = new.or_else(|| first.iter().find(|file| !files.contains(file)))?;
    differs.get("name").and_then(Value::as_str).map(foreign::name)
}

impl Worker {
    /// [`super::Step::at_work`] of step `id`, whose last step took that long on a device other than the processor.
    ///
    /// # Errors
    /// As [`Worker::ask`].
    pub fn at_work(&mut self, id: u64, step_s: Option<f64>, look: &mut dyn FnMut()) -> Result<()> {
        let Some(step_s) = step_s else {
            look();
            return Ok(());
        };
        let request = json!({"do": "work", "id": id, "count": steps_at_work(step_s)});
        let mut meanwhile = || {
            let_it_begin();
            look();
        };
        self.ask_meanwhile(&request, self.patience.step, &mut meanwhile).map(drop)
    }

    /// Starts nothing yet.
    pub fn new(program: Program, open: Value, patience: Patience) -> Self {
        Self { program, open, patience, process: None, prepared: 0, owed: 0, files: None }
    }

    /// Starts a process; what it answers to the first request.
    ///
    /// # Errors
    /// [`Kind::Device`] where it cannot be started, or a person's file is not the one that the first process read; what it answers.
    pub fn connect(&mut self) -> Result<Value> {
        self.process = Some(Process::start(&self.program)?);
        self.owed = 0;
        let answer = self.ask(&self.open.clone(), self.patience.start).map_err(|error| self.not_again(error))?;
        self.same_files(&answer)?;
        Ok(answer)
    }

    /// A file that was imported once and is refused now was changed or removed: that says nothing about the size whose turn it is.
    fn not_again(&mut self, error: Error) -> Error {
        let had_files = self.files.as_ref().is_some_and(|files| !files.is_null());
        match error.kind() {
            Kind::Spec if had_files => {
                self.process = None;
                let (name, why) = (&self.program.name, error.clause());
                Error::device(format!("{name} was changed while the run measured it: {why}")).hint(PUT_BACK)
            }
            _ => error,
        }
    }

    /// A file that was changed since the first process read it would be measured under the name and the hash of the old one.
    fn same_files(&mut self, answer: &Value) -> Result<()> {
        let files = answer.get("files").cloned().unwrap_or_default();
        let first = self.files.get_or_insert_with(|| files.clone());
        if *first == files {
            return Ok(());
        }
        let changed = changed(first, &files).unwrap_or_else(|| self.program.name.clone());
        self.process = None;
        Err(Error::device(format!("{changed} was changed while the run measured it")).hint(PUT_BACK))
    }

    /// Has the process prepare the next step, by its number; gives that number and the answer.
    ///
    /// # Errors
    /// As [`Worker::ask`].
    pub fn prepare(&mut self, request: impl FnOnce(u64) -> Value) -> Result<(u64, Value)> {
        if self.process.is_none() {
            self.connect()?;
        }
        self.prepared += 1;
        let answer = self.ask(&request(self.prepared), self.patience.prepare)?;
        Ok((self.prepared, answer))
    }

    /// Waits until the memory of a step or a training is released, if its process is still there.
    pub fn release(&mut self, id: u64) {
        if self.process.is_some() {
            let _ = self.ask(&about(id, "release"), self.patience.step);
        }
    }

    /// The same without waiting: the next request waits for it too, or [`Worker::settle`] does.
    pub fn release_soon(&mut self, id: u64) {
        if let Some(process) = &mut self.process {
            process.send(&about(id, "release"));
            self.owed += 1;
        }
    }

    /// Watches the process from outside, if it is a person's program: ours say themselves what happened to their steps.
    pub fn watched(&self) -> Option<Outside> {
        let is_a_persons = matches!(self.program.place, ProgramHost::Command(_));
        let process = self.process.as_ref().filter(|_| is_a_persons)?.id()?;
        Some(Outside::of(&FilesystemRoot::system(), process))
    }

    /// Reads the answers that are still to be read.
    pub fn settle(&mut self) {
        let patience = self.patience.step;
        for _ in 0..std::mem::take(&mut self.owed) {
            // Whether it worked shows in the next request.
            let _ = self.process.as_mut().and_then(|process| process.answer(patience));
        }
    }

    /// # Errors
    /// What the process answers, or that it ended or stayed silent; then it is ended, where it is of no further use.
    pub fn ask(&mut self, request: &Value, patience: Duration) -> Result<Value> {
        self.ask_meanwhile(request, patience, &mut || ())
    }

    /// The same; `meanwhile` is called while the process works on it.
    ///
    /// # Errors
    /// As [`Worker::ask`].
    pub fn ask_meanwhile(&mut self, request: &Value, patience: Duration, meanwhile: &mut dyn FnMut()) -> Result<Value> {
        let name = &self.program.name;
        let Some(process) = &mut self.process else {
            return Err(Error::engine(format!("the {name} process that held this step has ended")));
        };
        // A process that owes an answer gets both requests at once, and is woken once.
        process.send(request);
        for _ in 0..std::mem::take(&mut self.owed) {
            let _ = process.answer(patience);
        }
        meanwhile();
        let answered = process.answer(patience);
        // A process that was not started here cannot be started anew: it goes on as long as it answers.
        let stays = answered.is_some() && matches!(self.program.place, ProgramHost::Parent(_));
        let answer = answered.unwrap_or_else(|| Err(process.silent(patience)));
        // After most CUDA errors a process cannot use the device any more; a new process can.
        let usable = match &answer {
            Ok(_) => true,
            Err(error) => stays || matches!(error.kind(), Kind::Spec) || self.still_answers(error),
        };
        if !usable {
            self.process = None;
        }
        answer
    }

    /// A process that reported an out-of-memory error has released the memory of that step.
    fn still_answers(&mut self, error: &Error) -> bool {
        let release = about(self.prepared, "release");
        let process = self.process.as_mut();
        error.is_out_of_memory() && process.is_some_and(|process| process.ask(&release, self.patience.step).is_ok())
    }
}

/// What a process that was watched did in steps that took so long; nothing where it was not.
pub fn seen(outside: Option<Outside>, steps_s: &[f64]) -> Vec<Witnessed> {
    outside.and_then(|outside| outside.steps(steps_s, *accounts::CORES)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// A program whose answer to the first request is what is in a file.
    fn worker(answer: &Path) -> Worker {
        let script = format!("read -r line; cat '{}'", answer.display());
        let words = vec!["sh".to_owned(), "-c".to_owned(), script];
        let place = ProgramHost::Command(words);
        let (name, remedy) = ("my_step.py".to_owned(), String::new());
        let program = Program { name, place, text: "", environment: Vec::new(), remedy, is_heard: false };
        Worker::new(program, json!({"do": "open"}), Patience::USUAL)
    }

    #[test]
    fn a_later_process_must_read_the_files_of_the_first_and_what_is_refused_at_first_is_a_mistake_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let answer = folder.path().join("answer");
        let answers = |value: &Value| std::fs::write(&answer, format!("{value}\n")).unwrap();
        let files = |helper: &str| {
            let file = |name: &str, sha256: &str| json!({"name": name, "sha256": sha256});
            json!({"ok": {"files": [file("my_step.py", "1"), file("helper.py", helper)]}})
        };
        let mut worker = worker(&answer);
        answers(&json!({"error": {"kind": "spec", "what": "no step"}}));
        assert_eq!(worker.connect().unwrap_err().kind(), Kind::Spec);
        answers(&files("2"));
        worker.connect().unwrap();
        worker.connect().unwrap();
        answers(&files("3"));
        let error = worker.connect().unwrap_err();
        assert_eq!((error.kind(), worker.process.is_none()), (Kind::Device, true));
        assert!(error.to_string().starts_with("helper.py was changed while the run measured it\n  help: "), "{error}");
        answers(&json!({"error": {"kind": "spec", "what": "my_step.py has a syntax error in line 7"}}));
        let error = worker.connect().unwrap_err();
        assert_eq!(error.kind(), Kind::Device);
        assert!(error.to_string().contains("while the run measured it: my_step.py has a syntax error"), "{error}");
        answers(&files("2"));
        worker.connect().unwrap();
    }
}
