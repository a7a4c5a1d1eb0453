//! A process that runs steps for this one: one line of JSON in, one line out, and a time limit on every answer.
//!
//! Its output never reaches batchstep's own stdout; the last lines of its stderr are kept for error messages. The process
//! never outlives batchstep: it ends when its stdin closes; if it does not, it is killed with all processes that it started. It is always waited for.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{ChildStderr, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::device::interpreter;
use crate::error::{Error, Kind, Result};
use crate::foreign;
use crate::os::child::{self, Group};

/// Lines of stderr that are kept.
const LAST_WORDS: usize = 6;
/// Bytes of one of them; what is longer comes as several.
const LONGEST_WORDS: usize = 4096;
/// Bytes of an answer: the losses of an epoch of a million steps are some 20 MB.
const LONGEST_ANSWER: usize = 128 << 20;
/// Answers that wait to be fetched; there is one for each request.
const MOST_ANSWERS: usize = 16;
/// The time that a process has to end before it is killed.
const GRACE: Duration = Duration::from_secs(5);
/// How long an answer is waited for before the process is looked at.
const TURN: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub struct Program {
    /// In messages: `PyTorch`, `bert.py`.
    pub name: String,
    pub place: ProgramHost,
    /// Python, passed to the interpreter as text, so that no file has to be installed.
    pub text: &'static str,
    /// Variables of its environment; `None`: not set.
    pub environment: Vec<(String, Option<String>)>,
    /// What to do where it says that something is missing.
    pub remedy: String,
    /// Whether what it writes to stderr is shown, and not only kept for messages.
    pub is_heard: bool,
}

/// Where a program runs.
#[derive(Clone, Debug)]
pub enum ProgramHost {
    /// In a process of its own, which this interpreter runs.
    Python(PathBuf),
    /// The program itself, in a process of its own: a path or a name on the search path, and its arguments.
    Command(Vec<String>),
    /// In the process that started this one, at the other ends of two pipes that it left open. It takes the program as its first request.
    Parent(Pipes),
}

/// Numbers of open files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipes {
    /// That requests are written to.
    pub requests: u32,
    /// That answers are read from.
    pub answers: u32,
}

#[derive(Debug)]
pub struct Process {
    name: String,
    remedy: String,
    /// `None` for a process that we did not start.
    group: Option<Group>,
    stdin: Option<File>,
    /// `None`: a line that is longer than an answer may be, after which there are no more.
    answers: Receiver<Option<String>>,
    words: Arc<Mutex<VecDeque<String>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum WorkerReply {
    Ok(Value),
    Error {
        kind: String,
        what: String,
        /// What to do, where the process knows better than its remedy.
        help: Option<String>,
        /// Whether it keeps memory that only its end gives back.
        #[serde(default)]
        spent: bool,
    },
}

impl Process {
    /// # Errors
    /// [`Kind::Device`] where it cannot be started.
    pub fn start(program: &Program) -> Result<Self> {
        match &program.place {
            ProgramHost::Python(interpreter) => {
                let failed = |error: std::io::Error| {
                    Error::device(format!("cannot start Python: {error}"))
                        .at(interpreter.display().to_string())
                        .hint(format!("install Python 3.10 or later and {}", program.remedy))
                };
                Self::child(program, interpreter::command(interpreter, program.text)).map_err(failed)
            }
            ProgramHost::Command(words) => {
                let mut command = Command::new(words.first().map_or("", String::as_str));
                command.args(words.iter().skip(1));
                let failed = |error: std::io::Error| {
                    Error::device(format!("cannot start {}: {error}", program.name)).hint(&program.remedy)
                };
                Self::child(program, command).map_err(failed)
            }
            ProgramHost::Parent(pipes) => Self::parent(program, *pipes),
        }
    }

    fn child(program: &Program, mut command: Command) -> std::io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(if program.is_heard { Stdio::inherit() } else { Stdio::piped() });
        for (variable, value) in &program.environment {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        // Ctrl-C does not reach the group; it is batchstep's to handle: it finishes the visit under way.
        let mut group = Group::start(&mut command)?;
        let leader = group.leader();
        let stdin = leader.stdin.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let stdout = leader.stdout.take().map(|pipe| File::from(OwnedFd::from(pipe)));
        let stderr = leader.stderr.take();
        let mut process = Self::of(program, stdin, stdout, stderr);
        process.group = Some(group);
        Ok(process)
    }

    fn parent(program: &Program, pipes: Pipes) -> Result<Self> {
        let path = |number: u32| PathBuf::from(format!("/dev/fd/{number}"));
        let failed = |number: u32| move |error| Error::io("open the pipe", &path(number), &error);
        let requests = File::options().write(true).open(path(pipes.requests)).map_err(failed(pipes.requests))?;
        let answers = File::open(path(pipes.answers)).map_err(failed(pipes.answers))?;
        let mut process = Self::of(program, Some(requests), Some(answers), None);
        process.ask(&json!({"do": "become", "text": program.text}), GRACE)?;
        Ok(process)
    }

    fn of(program: &Program, stdin: Option<File>, stdout: Option<File>, stderr: Option<ChildStderr>) -> Self {
        let (send, answers) = sync_channel(MOST_ANSWERS);
        if let Some(stdout) = stdout {
            let mut stdout = BufReader::new(stdout);
            thread::spawn(move || {
                while let Some(line) = child::line(&mut stdout, LONGEST_ANSWER) {
                    let answer = line.whole.then_some(line.text);
                    let is_last = answer.is_none();
                    if send.send(answer).is_err() || is_last {
                        return;
                    }
                }
            });
        }
        let words = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(stderr) = stderr {
            let (words, mut stderr) = (Arc::clone(&words), BufReader::new(stderr));
            thread::spawn(move || {
                while let Some(line) = child::line(&mut stderr, LONGEST_WORDS) {
                    keep(&words, line.text);
                }
            });
        }
        let (name, remedy) = (program.name.clone(), program.remedy.clone());
        Self { name, remedy, group: None, stdin, answers, words }
    }

    /// Ends it, where it is ours.
    fn end(&mut self) {
        if let Some(group) = &mut self.group {
            group.end();
        }
    }

    /// How it ended, once it has.
    fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        self.group.as_mut().and_then(|group| group.wait(patience))
    }

    /// Sends a request and waits for its answer. After an error of [`Kind::Engine`] that the process did not report
    /// itself, it can no longer be used.
    ///
    /// # Errors
    /// The error that the process reports; [`Kind::Engine`] if it ends or stays silent for longer than `patience`;
    /// [`Kind::OutOfMemory`] if the system killed it, as it does when memory runs out.
    pub fn ask(&mut self, request: &Value, patience: Duration) -> Result<Value> {
        self.send(request);
        self.answer(patience).unwrap_or_else(|| Err(self.silent(patience)))
    }

    /// Sends a request whose answer is fetched later.
    pub fn send(&mut self, request: &Value) {
        // If the process has ended, the missing answer reports it.
        let line = format!("{request}\n");
        // In one piece: a pipe has no buffer of its own, and each piece wakes the process.
        let sent = self.stdin.as_mut().map(|stdin| stdin.write_all(line.as_bytes()));
        drop(sent);
    }

    /// The answer to the oldest open request; `None` if it does not come within `patience`.
    ///
    /// # Errors
    /// As [`Process::ask`].
    pub fn answer(&mut self, patience: Duration) -> Option<Result<Value>> {
        Some(self.line(patience)?.and_then(|line| self.read(line)))
    }

    fn read(&mut self, line: Option<String>) -> Result<Value> {
        let Some(line) = line else {
            self.end();
            let what = format!("the {} process wrote a line of more than {} MB", self.name, LONGEST_ANSWER >> 20);
            return Err(Error::engine(what));
        };
        match serde_json::from_str(&line) {
            Ok(WorkerReply::Ok(value)) => Ok(value),
            Ok(WorkerReply::Error { kind, what, help, spent }) => {
                if spent {
                    self.end();
                }
                Err(self.stated(&kind, &what, help.as_deref()))
            }
            Err(_) => Err(Error::engine(format!("the {} process answered `{}`", self.name, foreign::name(&line)))
                .hint(format!("check that {} names Python 3.10 or later", interpreter::VARIABLE))),
        }
    }

    /// The next line that it writes; `None` if it does not come within `patience`.
    fn line(&mut self, patience: Duration) -> Option<Result<Option<String>>> {
        let start = Instant::now();
        loop {
            let left = patience.saturating_sub(start.elapsed());
            match self.answers.recv_timeout(left.min(TURN)) {
                Ok(line) => return Some(Ok(line)),
                Err(RecvTimeoutError::Disconnected) => return Some(Err(self.ended())),
                // Something that it started may hold its pipe. What it wrote itself is there.
                Err(RecvTimeoutError::Timeout) if self.wait(Duration::ZERO).is_some() => {
                    return Some(self.answers.recv_timeout(TURN).map_err(|_| self.ended()));
                }
                Err(RecvTimeoutError::Timeout) if left.is_zero() => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Whether the process itself is over.
    pub fn has_ended(&self) -> bool {
        self.group.as_ref().is_some_and(Group::is_over)
    }

    /// Its number in the system, where it was started here.
    pub fn id(&self) -> Option<u32> {
        self.group.as_ref().map(Group::id)
    }

    fn stated(&self, kind: &str, what: &str, help: Option<&str>) -> Error {
        let (what, help) = (foreign::line(what), help.map(foreign::line));
        let with_help = |error: Error| match help {
            Some(help) => error.hint(help),
            None => error,
        };
        match kind {
            "out_of_memory" => Error::new(Kind::OutOfMemory, what).hint("use a smaller batch or input"),
            "device" => with_help(Error::device(what)).hint(self.remedy.clone()),
            "spec" => with_help(Error::spec(what)),
            _ => Error::engine(what),
        }
    }

    /// That it did not answer.
    pub fn silent(&self, patience: Duration) -> Error {
        let words = self.last_words();
        Error::engine(format!("{} gave no answer for {:.0} s{words}", self.name, patience.as_secs_f64())).hint(format!(
            "another process may hold the device; this cell is left out, and {} is started again",
            self.name
        ))
    }

    fn ended(&mut self) -> Error {
        let status = self.wait(GRACE);
        let words = self.last_words();
        let killed = status.is_some_and(|status| status.signal() == Some(libc::SIGKILL));
        if killed {
            return Error::new(Kind::OutOfMemory, format!("the system killed the {} process{words}", self.name))
                .hint("memory ran out, or someone killed it: use a smaller batch or input");
        }
        let how = status.map_or("ended".to_owned(), |status: ExitStatus| format!("ended ({status})"));
        Error::engine(format!("the {} process {how}{words}", self.name))
    }

    /// What it wrote to stderr last, as the end of a sentence.
    fn last_words(&self) -> String {
        // The thread that reads them may be a moment behind.
        thread::sleep(Duration::from_millis(50));
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let text: Vec<String> = words.iter().map(|line| foreign::line(line).into_owned()).collect();
        if text.is_empty() { String::new() } else { format!("; its last output: {}", text.join(" | ")) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // A busy process does not notice that its input has closed.
        if self.wait(Duration::from_millis(500)).is_none() {
            self.end();
        }
    }
}

fn keep(words: &Mutex<VecDeque<String>>, line: String) {
    let mut words = words.lock().unwrap_or_else(PoisonError::into_inner);
    if !line.is_empty() {
        words.push_back(line);
    }
    if words.len() > LAST_WORDS {
        words.pop_front();
    }
}
