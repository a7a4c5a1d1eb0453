//! What the nearest Python knows: where its packages lie, and which PyTorch it has.
//!
//! Python itself is asked, since environments hide behind links, shims and path files that only it resolves. PyTorch is
//! not imported, which takes seconds; its own `version.py` is run alone.

use std::ffi::OsStr;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::device::interpreter::interpreter;

/// Longer than a start behind a shim takes (0.4 s measured), short enough for someone who waits for `doctor`.
const PATIENCE: Duration = Duration::from_millis(1500);

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

/// The interpreter of [`interpreter`], asked at the first call; `None` where there is none, or it does not answer in time.
pub fn python() -> Option<&'static Python> {
    static PYTHON: OnceLock<Option<Python>> = OnceLock::new();
    PYTHON.get_or_init(|| ask(interpreter(), PATIENCE)).as_ref()
}

fn ask(program: impl AsRef<OsStr>, patience: Duration) -> Option<Python> {
    let question = Command::new(program)
        .args(["-c", QUESTION])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let mut child = question.ok()?;
    // The answer is far smaller than a pipe's buffer, so the child never waits for a reader.
    if !ends_well(&mut child, patience) {
        return None;
    }
    let mut answer = String::new();
    child.stdout.take()?.read_to_string(&mut answer).ok()?;
    serde_json::from_str(answer.trim()).ok()
}

fn ends_well(child: &mut Child, patience: Duration) -> bool {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return status.success(),
            Ok(None) if start.elapsed() < patience => std::thread::sleep(Duration::from_millis(5)),
            _ => break,
        }
    }
    // It is given up either way; a failing kill means that it has just ended.
    let _ = child.kill();
    let _ = child.wait();
    false
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
    fn a_python_that_fails_or_babbles_or_is_missing_is_none() {
        let (_guard, fails) = program("exit 3");
        let (_guard_2, babbles) = program("echo Python 2.7");
        for name in [&fails, &babbles, "/nonexistent/python3"] {
            assert_eq!(ask(name, PATIENCE), None, "{name}");
        }
    }

    #[test]
    fn a_python_that_hangs_is_given_up() {
        let (_guard, hangs) = program("exec sleep 30");
        let start = Instant::now();
        assert_eq!(ask(&hangs, Duration::from_millis(100)), None);
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
