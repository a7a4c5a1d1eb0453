//! The GPU's engine opened and checked in a process of its own: a kernel that never ends, or a library that ends its process, must
//! not take the bundle with it.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::check::selftest::{CheckFilter, first_failure};
use crate::engine::open::{DeviceChoice, Engines};
use crate::os::child::{self, Failure};
use crate::settings::EngineName;

/// Bytes that the process may print: what libraries say, and the first check that failed with its inputs.
const LONGEST: usize = 64 << 20;

/// What the bundle says of the engine: its software if it can be opened, else why it cannot, or why that is not known; how many checks passed in the
/// given time, and the first that failed, or why there is none; and the algorithms that a library refused when they ran, whose places others took.
fn tried(engine: Result<&str, &str>, checks: Value, refusals: &[String]) -> Value {
    let engine = engine.map_or_else(|why| json!({"refused": why}), |software| json!({"opens": software}));
    json!({"gpu_engine": engine, "checks": checks, "refused_algorithms": refusals})
}

/// Not done, or not to its end.
pub fn not_tried(why: &str) -> Value {
    tried(Err(why), json!({"why_not": why}), &[])
}

/// Tries the engine in this process, and looks for a check that fails as long as `patience` lasts.
pub fn try_here(patience: Duration) -> Value {
    let mut engines = match Engines::open(&[EngineName::Cudnn], DeviceChoice::Cuda(0), None) {
        Ok(engines) => engines,
        Err(error) => {
            return tried(Err(&error.to_string()), json!({"why_not": "the GPU's engine cannot be opened"}), &[]);
        }
    };
    let engine = match engines.get(EngineName::Cudnn) {
        Ok(engine) => engine,
        Err(error) => return not_tried(&error.to_string()),
    };
    let (software, started) = (engine.version().unwrap_or_default(), Instant::now());
    let mut is_over = || started.elapsed() > patience;
    let found = first_failure(engine, Engines::reference().as_mut(), &CheckFilter::default(), &mut is_over);
    let checks = match found {
        Ok((passed, None)) => json!({"passed": passed}),
        Ok((passed, Some(check))) => json!({"passed": passed, "first_failure": check}),
        Err(error) => json!({"why_not": error.to_string()}),
    };
    tried(Ok(&software), checks, &engine.refusals())
}

/// The answer of a process that tries the engine, as the last line that it prints.
pub fn try_by(mut command: Command, patience: Duration) -> Value {
    let ended = match child::run(&mut command, Some(patience), LONGEST) {
        Ok(ended) => ended,
        Err(Failure::NotStarted(error)) => return not_tried(&format!("the checks could not be started: {error}")),
        Err(Failure::Late(_)) => {
            return not_tried(&format!("the checks did not end within {} s and were ended", patience.as_secs()));
        }
        Err(Failure::TooLong) => return not_tried("the checks printed without end and were ended"),
    };
    let last = ended.stdout.lines().last().and_then(|line| serde_json::from_str(line).ok());
    let none = || not_tried(&format!("the process of the checks ended without an answer: {}", ended.status));
    last.filter(|answer: &Value| answer["checks"].is_object()).unwrap_or_else(none)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(script: &str, patience: Duration) -> Value {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        try_by(shell, patience)
    }

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn an_answer_is_taken_also_one_that_is_larger_than_a_pipe() {
        let checks = json!({"passed": 3, "first_failure": "x".repeat(300_000)});
        let tried = tried(Ok("cuDNN 9.19.0"), checks, &["eng1".into()]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("answer");
        std::fs::write(&path, tried.to_string()).unwrap();
        assert_eq!(by(&format!("echo what a library says; cat {}", path.display()), SOON), tried);
    }

    #[test]
    fn a_process_that_crashes_hangs_or_stays_silent_is_reported() {
        let begun = Instant::now();
        for (tried, why) in [
            (by("echo '{\"engine\": '; kill -SEGV $$", SOON), "signal: 11"),
            (by("echo 17; exit 3", SOON), "exit status: 3"),
            (by("exec sleep 60", Duration::from_millis(200)), "did not end within"),
            (by("exec yes", SOON), "printed without end"),
            (try_by(Command::new("/nonexistent/batchstep"), SOON), "could not be started"),
        ] {
            let said = [&tried["gpu_engine"]["refused"], &tried["checks"]["why_not"]];
            assert!(said.iter().all(|said| said.as_str().is_some_and(|said| said.contains(why))), "{tried}");
        }
        assert!(begun.elapsed() < SOON);
    }
}
