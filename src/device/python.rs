//! What the nearest Python knows: where its packages lie, and which PyTorch it has.
//!
//! Python itself is asked, since environments hide behind links, shims and path files that only it resolves. PyTorch is
//! not imported, which takes seconds; its own `version.py` is run alone.

use std::ffi::OsStr;
use std::io::{ErrorKind, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::device::interpreter::interpreter;

/// Longer than a first start from a cold disk or a network's takes: an answer that comes too late is a PyTorch, and CUDA libraries,
/// that are not found. A Python that is there and hangs is rare. (A warm start behind a shim took 0.4 s.)
const PATIENCE: Duration = Duration::from_secs(30);

/// Prints one line of JSON. `find_spec` of a top-level package finds it without importing it.
const QUESTION: &str = r#"
import json, os, platform, sys
torch = {}
try:
    import importlib.util, runpy
    origin = importlib.util.find_spec("torch").origin
    torch = runpy.run_path(os.path.join(os.path.dirname(origin), "version.py"))
except BaseException:
    pass
print(json.dumps({
    "executable": sys.executable,
    "version": platform.python_version(),
    "folders": [path for path in sys.path if path.endswith("-packages") or path in os.environ.get("PYTHONPATH", "")],
    "torch": torch.get("__version__") and str(torch.get("__version__")),
    "torch_cuda": torch.get("cuda"),
}))
"#;

/// One Python.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Python {
    pub executable: PathBuf,
    /// `3.11.7`.
    pub version: String,
    /// Where packages lie: `site-packages`, `dist-packages`, and what `PYTHONPATH` names.
    pub folders: Vec<PathBuf>,
    /// `2.11.0+cu130`; `None`: not installed.
    pub torch: Option<String>,
    /// The CUDA that PyTorch was built for; `None`: none.
    pub torch_cuda: Option<String>,
}

/// The interpreter of [`interpreter`], asked at the first call.
///
/// # Errors
/// One clause: there is none, it fails, or it does not answer in time.
pub fn python() -> Result<&'static Python, &'static str> {
    static PYTHON: OnceLock<Result<Python, String>> = OnceLock::new();
    PYTHON.get_or_init(|| ask(interpreter(), PATIENCE)).as_ref().map_err(String::as_str)
}

fn ask(program: impl AsRef<OsStr>, patience: Duration) -> Result<Python, String> {
    let name = program.as_ref().to_string_lossy().into_owned();
    let question = Command::new(program)
        .args(["-c", QUESTION])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = question.map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("{name} was not found"),
        _ => format!("{name} does not start: {error}"),
    })?;
    // The answer is far smaller than a pipe's buffer, so the child never waits for a reader.
    match ended(&mut child, patience) {
        None => return Err(format!("{name} did not answer within {} s", patience.as_secs())),
        Some(status) if !status.success() => return Err(format!("{name} failed: {status}")),
        Some(_) => {}
    }
    let mut answer = String::new();
    let read = child.stdout.take().map(|mut output| output.read_to_string(&mut answer));
    match (read, serde_json::from_str(answer.trim())) {
        (Some(Ok(_)), Ok(python)) => Ok(python),
        _ => Err(format!("{name} gives another answer than a Python 3")),
    }
}

/// How it ended; `None` where it had to be given up.
fn ended(child: &mut Child, patience: Duration) -> Option<ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if start.elapsed() < patience => std::thread::sleep(Duration::from_millis(5)),
            _ => break,
        }
    }
    // It is given up either way; a failing kill means that it has just ended.
    let _ = child.kill();
    let _ = child.wait();
    None
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A program of that shell text, in a folder that vanishes with the guard.
    fn program(text: &str) -> (tempfile::TempDir, String) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("python3");
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let name = path.to_str().unwrap().to_string();
        (folder, name)
    }

    #[test]
    fn an_answer_is_understood() {
        let (_guard, name) = program(
            r#"echo '{"executable": "/usr/bin/python3", "version": "3.12.3", "folders": ["/p/site-packages"],
               "torch": "2.11.0+cu130", "torch_cuda": "13.0"}'"#,
        );
        let python = ask(&name, PATIENCE).unwrap();
        assert_eq!(python.version, "3.12.3");
        assert_eq!(python.folders, [PathBuf::from("/p/site-packages")]);
        assert_eq!((python.torch.as_deref(), python.torch_cuda.as_deref()), (Some("2.11.0+cu130"), Some("13.0")));
    }

    #[test]
    fn a_python_that_fails_or_babbles_or_is_missing_says_so() {
        let (_guard, fails) = program("exit 3");
        let (_guard_2, babbles) = program("echo Python 2.7");
        let reasons = [
            (fails.as_str(), "failed: exit status: 3"),
            (&babbles, "gives another answer than a Python 3"),
            ("/nonexistent/python3", "was not found"),
        ];
        for (name, reason) in reasons {
            assert_eq!(ask(name, PATIENCE), Err(format!("{name} {reason}")));
        }
    }

    /// As on a cold disk, where a first start took longer than the 1.5 s that were once waited.
    #[test]
    fn a_python_that_is_slow_is_waited_for() {
        let (_guard, slow) = program(
            r#"sleep 2; echo '{"executable": "/usr/bin/python3", "version": "3.12.3", "folders": [], "torch": null,
               "torch_cuda": null}'"#,
        );
        assert_eq!(ask(&slow, PATIENCE).map(|python| python.version), Ok("3.12.3".to_owned()));
    }

    #[test]
    fn a_python_that_hangs_is_given_up() {
        let (_guard, hangs) = program("exec sleep 30");
        let start = Instant::now();
        assert_eq!(ask(&hangs, Duration::from_secs(1)), Err(format!("{hangs} did not answer within 1 s")));
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
