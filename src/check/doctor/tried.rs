//! The GPU's engine opened and checked in a process of its own: a kernel that never ends, or a library that ends its process, must
//! not take the bundle with it.

use std::process::Command;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::os::child::{self, Failure};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tried {
    /// The engine's software if the engine can be opened; else why it cannot, or why that is not known.
    pub engine: Result<String, String>,
    pub checked: Checked,
    /// The algorithms that a library refused when they ran; others took their places.
    #[serde(default)]
    pub refusals: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Checked {
    /// Not asked, or nothing to ask, and why.
    Not(String),
    /// The number of checks that passed; none failed in the given time.
    Passed(usize),
    /// The first that failed, with its inputs, after so many that passed.
    Failed { after: usize, check: Value },
}

/// Bytes that the process may print: what libraries say, and the first check that failed with its inputs.
const LONGEST: usize = 64 << 20;

impl Tried {
    /// Not done, or not to its end.
    pub fn not(why: &str) -> Self {
        Self { engine: Err(why.to_owned()), checked: Checked::Not(why.to_owned()), refusals: Vec::new() }
    }

    /// The answer of a process that tries the engine and writes a [`Tried`] as JSON, as the last line that it prints.
    pub fn by(mut command: Command, patience: Duration) -> Self {
        let ended = match child::run(&mut command, Some(patience), LONGEST) {
            Ok(ended) => ended,
            Err(Failure::NotStarted(error)) => return Self::not(&format!("the checks could not be started: {error}")),
            Err(Failure::Late(_)) => {
                return Self::not(&format!("the checks did not end within {} s and were ended", patience.as_secs()));
            }
            Err(Failure::TooLong) => return Self::not("the checks printed without end and were ended"),
        };
        let last = ended.stdout.lines().last().and_then(|line| serde_json::from_str(line).ok());
        let none = || Self::not(&format!("the process of the checks ended without an answer: {}", ended.status));
        last.unwrap_or_else(none)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn by(script: &str, patience: Duration) -> Tried {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        Tried::by(shell, patience)
    }

    fn why(tried: Tried) -> String {
        assert!(tried.engine.is_err());
        match tried.checked {
            Checked::Not(why) => why,
            other => panic!("{other:?}"),
        }
    }

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn an_answer_is_taken_also_one_that_is_larger_than_a_pipe() {
        let check = Value::String("x".repeat(300_000));
        let tried = Tried {
            engine: Ok("cuDNN 9.19.0".into()),
            checked: Checked::Failed { after: 3, check },
            refusals: vec!["eng1".into()],
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answer");
        std::fs::write(&path, serde_json::to_string(&tried).unwrap()).unwrap();
        assert_eq!(by(&format!("echo what a library says; cat {}", path.display()), SOON), tried);
    }

    #[test]
    fn a_process_that_crashes_hangs_or_stays_silent_is_reported() {
        assert!(why(by("echo '{\"engine\": '; kill -SEGV $$", SOON)).contains("signal: 11"));
        assert!(why(by("exit 3", SOON)).contains("exit status: 3"));
        let begun = Instant::now();
        assert!(why(by("exec sleep 60", Duration::from_millis(200))).contains("did not end within"));
        assert!(why(by("exec yes", SOON)).contains("printed without end"));
        assert!(begun.elapsed() < SOON);
        let none = Tried::by(Command::new("/nonexistent/batchstep"), SOON);
        assert!(why(none).contains("could not be started"));
    }
}
