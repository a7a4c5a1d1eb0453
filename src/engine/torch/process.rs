//! The process that runs PyTorch: one line of JSON in, one line out, and a time limit on every answer.
//!
//! Its output never reaches batchstep's own stdout; the last lines of its stderr are kept for error messages. The process
//! never outlives batchstep: it ends when its stdin closes, is killed if it does not, and is always waited for.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Kind, Result};

/// The Python program, passed to the interpreter as text, so that no file has to be installed.
const WORKER: &str = concat!(
    include_str!("worker/pipes.py"),
    include_str!("worker/numbers.py"),
    include_str!("worker/network.py"),
    include_str!("worker/clock.py"),
    include_str!("worker/layers.py"),
    include_str!("worker/feed.py"),
    include_str!("worker/step.py"),
    include_str!("worker/training.py"),
    include_str!("worker/parallel.py"),
    include_str!("worker/requests.py"),
);
/// Lines of stderr that are kept.
const LAST_WORDS: usize = 6;
/// The time that a process has to end before it is killed.
const GRACE: Duration = Duration::from_secs(5);

/// A running PyTorch process.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    answers: Receiver<String>,
    words: Arc<Mutex<VecDeque<String>>>,
}

/// One line of answer.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Ok(Value),
    Error { kind: String, what: String },
}

impl Process {
    /// Starts `interpreter` on the Python side.
    ///
    /// # Errors
    /// [`Kind::Device`] where it cannot be started.
    pub fn start(interpreter: &Path) -> Result<Self> {
        let mut child = Command::new(interpreter)
            .args(["-c", WORKER])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Ctrl-C is batchstep's to handle: it finishes the visit under way.
            .process_group(0)
            .spawn()
            .map_err(|error| {
                Error::device(format!("cannot start Python: {error}")).at(interpreter.display().to_string()).hint(
                    format!(
                        "install Python 3.10 or later and `pip install torch`, or name another Python in {}",
                        crate::device::interpreter::VARIABLE
                    ),
                )
            })?;
        let (send, answers) = channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || lines(stdout).try_for_each(|line| send.send(line)));
        }
        let words = Arc::new(Mutex::new(VecDeque::new()));
        if let Some(stderr) = child.stderr.take() {
            let words = Arc::clone(&words);
            thread::spawn(move || lines(stderr).for_each(|line| keep(&words, line)));
        }
        let stdin = child.stdin.take();
        Ok(Self { child, stdin, answers, words })
    }

    /// Sends a request and waits for its answer. After an error of [`Kind::Engine`] that the process did not state
    /// itself, it is of no further use.
    ///
    /// # Errors
    /// What the process answers; [`Kind::Engine`] where it ends or stays silent for longer than `patience`;
    /// [`Kind::OutOfMemory`] where the system killed it, as it does where memory runs out.
    pub fn ask(&mut self, request: &Value, patience: Duration) -> Result<Value> {
        self.send(request);
        self.answer(patience).unwrap_or_else(|| Err(self.silent(patience)))
    }

    /// Sends a request whose answer is fetched later.
    pub fn send(&mut self, request: &Value) {
        // If the process has ended, the missing answer reports it.
        let sent = self.stdin.as_mut().map(|stdin| writeln!(stdin, "{request}").and_then(|()| stdin.flush()));
        drop(sent);
    }

    /// The answer to the oldest request that has none yet; `None` where it does not come within `patience`.
    ///
    /// # Errors
    /// As [`Process::ask`].
    pub fn answer(&mut self, patience: Duration) -> Option<Result<Value>> {
        let line = match self.answers.recv_timeout(patience) {
            Ok(line) => line,
            Err(RecvTimeoutError::Timeout) => return None,
            Err(RecvTimeoutError::Disconnected) => return Some(Err(self.ended())),
        };
        Some(match serde_json::from_str(&line) {
            Ok(Answer::Ok(value)) => Ok(value),
            Ok(Answer::Error { kind, what }) => Err(stated(&kind, what)),
            Err(_) => Err(Error::engine(format!("the PyTorch process answered `{line}`"))
                .hint(format!("is {} a Python 3.10 or later?", crate::device::interpreter::VARIABLE))),
        })
    }

    /// Whether the process itself is over.
    pub fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Its number in the system.
    #[cfg(test)]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// That it did not answer.
    pub fn silent(&self, patience: Duration) -> Error {
        let words = self.last_words();
        Error::engine(format!("PyTorch gave no answer for {:.0} s{words}", patience.as_secs_f64()))
            .hint("another process may hold the device; this cell is left out, and PyTorch is started again")
    }

    fn ended(&mut self) -> Error {
        let status = wait(&mut self.child, GRACE);
        let words = self.last_words();
        let killed = status.is_some_and(|status| status.signal() == Some(libc::SIGKILL));
        if killed {
            return Error::new(Kind::OutOfMemory, format!("the system killed the PyTorch process{words}"))
                .hint("memory ran out, or someone killed it: use a smaller batch or input");
        }
        let how = status.map_or("ended".to_owned(), |status: ExitStatus| format!("ended ({status})"));
        Error::engine(format!("the PyTorch process {how}{words}"))
    }

    /// What it wrote to stderr last, as the end of a sentence.
    fn last_words(&self) -> String {
        // The thread that reads them may be a moment behind.
        thread::sleep(Duration::from_millis(50));
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        let text: Vec<&str> = words.iter().map(String::as_str).collect();
        if text.is_empty() { String::new() } else { format!("; it said last: {}", text.join(" | ")) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // A busy process does not notice that its input has closed.
        if wait(&mut self.child, Duration::from_millis(500)).is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn stated(kind: &str, what: String) -> Error {
    match kind {
        "out_of_memory" => Error::new(Kind::OutOfMemory, what).hint("use a smaller batch or input"),
        "device" => Error::device(what).hint(format!(
            "`pip install torch` (https://pytorch.org has the variants), or name a Python that has it in {}",
            crate::device::interpreter::VARIABLE
        )),
        "spec" => Error::spec(what),
        _ => Error::engine(what),
    }
}

fn lines(pipe: impl Read) -> impl Iterator<Item = String> {
    // Invalid UTF-8 must not end the reading: the process would block on a full pipe.
    let mut reader = BufReader::new(pipe);
    std::iter::from_fn(move || {
        let mut line = Vec::new();
        let read = reader.read_until(b'\n', &mut line).ok()?;
        (read > 0).then(|| String::from_utf8_lossy(&line).trim_end().to_owned())
    })
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

fn wait(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < patience => thread::sleep(Duration::from_millis(5)),
            _ => return None,
        }
    }
}
