//! The nearest Python: where its packages are, and which PyTorch it has.
//!
//! Python itself is asked, since environments hide behind links, shims and path files that only it resolves. PyTorch is
//! not imported, which would take seconds; only its `version.py` is run.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::OnceLock;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::device::interpreter::{command, interpreter};
use crate::os::child::{self, Failure};

/// Longer than a first start from a cold disk or a network drive: if the answer came too late, an existing PyTorch and
/// CUDA libraries would not be found. A Python that hangs is rare. (A warm start behind a shim took 0.4 s.)
const PATIENCE: Duration = Duration::from_secs(30);
/// The most bytes of an answer, which is mostly a list of folders.
const LONGEST_ANSWER: usize = 1 << 20;

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
    "folders": [
        path for path in sys.path
        if path.endswith("-packages") or path in os.environ.get("PYTHONPATH", "").split(os.pathsep)
    ],
    "torch": torch.get("__version__") and str(torch.get("__version__")),
    "torch_cuda": torch.get("cuda"),
}))
"#;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Python {
    pub executable: PathBuf,
    /// `3.11.7`.
    pub version: String,
    /// Where packages lie: `site-packages`, `dist-packages`, and what `PYTHONPATH` names. All are absolute.
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
    PYTHON.get_or_init(|| ask(&interpreter(), PATIENCE)).as_ref().map_err(String::as_str)
}

fn ask(program: &Path, patience: Duration) -> Result<Python, String> {
    let name = program.display();
    let mut question = command(program, QUESTION);
    let ended = child::run(question.stderr(Stdio::null()), Some(patience), LONGEST_ANSWER);
    let ended = ended.map_err(|failure| match failure {
        Failure::NotStarted(error) if error.kind() == ErrorKind::NotFound => format!("{name} was not found"),
        Failure::NotStarted(error) => format!("{name} does not start: {error}"),
        Failure::Late(_) => format!("{name} did not answer within {} s", patience.as_secs()),
        Failure::TooLong => format!("{name} gives an answer without an end"),
    })?;
    if !ended.status.success() {
        return Err(format!("{name} failed: {}", ended.status));
    }
    let answer: Python = serde_json::from_str(ended.stdout.trim())
        .map_err(|_| format!("{name} gives another answer than a Python 3"))?;
    Ok(Python { folders: answer.folders.into_iter().filter(|folder| folder.is_absolute()).collect(), ..answer })
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::device::interpreter::tests::script;

    #[test]
    fn an_answer_is_understood() {
        let (_guard, python) = script(
            r#"echo '{"executable": "/usr/bin/python3", "version": "3.12.3", "folders": ["/p/site-packages", "", "lib"],
               "torch": "2.11.0+cu130", "torch_cuda": "13.0"}'"#,
        );
        let python = ask(&python, PATIENCE).unwrap();
        assert_eq!(python.version, "3.12.3");
        assert_eq!(python.folders, [PathBuf::from("/p/site-packages")]);
        assert_eq!((python.torch.as_deref(), python.torch_cuda.as_deref()), (Some("2.11.0+cu130"), Some("13.0")));
    }

    #[test]
    fn a_python_that_fails_or_babbles_or_is_missing_says_so() {
        let (_guard, fails) = script("exit 3");
        let (_guard_2, babbles) = script("echo Python 2.7");
        let (_guard_3, endless) = script("exec yes");
        let reasons = [
            (endless.as_path(), "gives an answer without an end"),
            (&fails, "failed: exit status: 3"),
            (&babbles, "gives another answer than a Python 3"),
            (Path::new("/nonexistent/python3"), "was not found"),
        ];
        for (name, reason) in reasons {
            assert_eq!(ask(name, PATIENCE), Err(format!("{} {reason}", name.display())));
        }
    }

    /// As on a cold disk, where a first start took longer than an earlier limit of 1.5 s; and behind a shim that starts a
    /// server.
    #[test]
    fn a_python_that_is_slow_is_waited_for_and_a_process_that_it_leaves_behind_is_not() {
        for first in ["sleep 2;", "sleep 600 &"] {
            let (_guard, python) = script(&format!(
                r#"{first} echo '{{"executable": "/usr/bin/python3", "version": "3.12.3", "folders": [], "torch": null,
                   "torch_cuda": null}}'"#
            ));
            let start = Instant::now();
            assert_eq!(ask(&python, PATIENCE).map(|python| python.version), Ok("3.12.3".to_owned()));
            assert!(start.elapsed() < PATIENCE);
        }
    }

    #[test]
    fn a_python_that_hangs_is_given_up() {
        let (_guard, hangs) = script("exec sleep 30");
        let start = Instant::now();
        let reason = format!("{} did not answer within 1 s", hangs.display());
        assert_eq!(ask(&hangs, Duration::from_secs(1)), Err(reason));
        assert!(start.elapsed() < Duration::from_secs(5));
    }
}
