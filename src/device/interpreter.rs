//! Which Python runs PyTorch, and how it is started: it imports nothing from the working folder, which may belong to
//! someone else.

use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names a Python to use instead of the one on the `PATH`.
pub const VARIABLE: &str = "BATCHSTEP_PYTHON";

/// Runs before the first import that reads a file: `python -c` searches the working folder first, which may hold a file
/// named json.py.
const PRELUDE: &str = "import sys\nsys.path[:] = [path for path in sys.path if path[:1] == '/']\n";
/// Environment variables with lists of folders from which Python and its child processes load code.
const LISTS: [&str; 6] =
    ["PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX", "PATH", "LD_LIBRARY_PATH"];

/// The command that runs `program`, a text, with that Python. It loads no code from the working folder or from relative
/// folders.
pub fn command(interpreter: &Path, program: &str) -> Command {
    let mut command = Command::new(interpreter);
    command.arg("-c").arg(format!("{PRELUDE}{program}"));
    // From 3.11 on this does the same as the prelude, also for child processes.
    command.env("PYTHONSAFEPATH", "1");
    let here = env::current_dir().ok();
    for name in LISTS {
        let Some(list) = env::var_os(name) else { continue };
        // A program or a library in the working folder was installed there; a module can be any file.
        let unwanted = here.as_deref().filter(|_| name == "PYTHONPATH");
        let kept = without_relative(&list, unwanted);
        match kept.is_empty() {
            true => command.env_remove(name),
            false if kept == list => &mut command,
            false => command.env(name, kept),
        };
    }
    command
}

/// The absolute folders of a list, except `unwanted`. An empty entry means the working folder.
fn without_relative(list: &OsStr, unwanted: Option<&Path>) -> OsString {
    let is_unwanted = |folder: &Path| unwanted.is_some_and(|here| folder.canonicalize().is_ok_and(|it| it == here));
    let kept = env::split_paths(list).filter(|folder| folder.is_absolute() && !is_unwanted(folder));
    // They come from such a list, so joining them cannot fail.
    env::join_paths(kept).unwrap_or_default()
}

/// The Python that lists packages and runs PyTorch: the one that `BATCHSTEP_PYTHON` names, else `python3` on the
/// `PATH`, else the one of the active virtual environment. It need not exist; starting it then fails with a message.
pub fn interpreter() -> PathBuf {
    choose(env::var_os(VARIABLE).as_deref(), env::var_os("PATH").as_deref(), env::var_os("VIRTUAL_ENV").as_deref())
}

fn choose(named: Option<&OsStr>, path: Option<&OsStr>, environment: Option<&OsStr>) -> PathBuf {
    if let Some(named) = named.filter(|named| !named.is_empty()) {
        return PathBuf::from(named);
    }
    let is_there = |folder: PathBuf| folder.is_absolute() && folder.join("python3").is_file();
    let on_path = path.is_some_and(|path| env::split_paths(path).any(is_there));
    let environment = environment.map(Path::new).filter(|folder| folder.is_absolute());
    match environment.map(|folder| folder.join("bin/python")) {
        Some(own) if !on_path && own.is_file() => own,
        _ => PathBuf::from("python3"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A program with that shell text, in a folder that is removed with the guard.
    pub(crate) fn script(text: &str) -> (tempfile::TempDir, PathBuf) {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("python3");
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    }

    #[test]
    fn the_variable_wins_then_the_path_then_the_environment() {
        let folder = tempfile::tempdir().unwrap();
        let (with, without, own) = (folder.path().join("a"), folder.path().join("b"), folder.path().join("v"));
        for file in [with.join("python3"), without.join("other"), own.join("bin/python")] {
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let text = |path: &PathBuf| path.clone().into_os_string();
        let (with, without, venv) = (text(&with), text(&without), text(&own));
        assert_eq!(choose(Some(OsStr::new("/p")), Some(&with), Some(&venv)), PathBuf::from("/p"));
        assert_eq!(choose(Some(OsStr::new("")), Some(&with), Some(&venv)), PathBuf::from("python3"));
        assert_eq!(choose(None, Some(&without), Some(&venv)), own.join("bin/python"));
        assert_eq!(choose(None, Some(&without), None), PathBuf::from("python3"));
        assert_eq!(choose(None, Some(&without), Some(OsStr::new("venv"))), PathBuf::from("python3"), "a relative one");
    }

    #[test]
    fn of_a_list_the_working_folder_and_relative_folders_are_left_out() {
        let here = tempfile::tempdir().unwrap();
        let here = here.path().canonicalize().unwrap();
        for (list, expected) in [
            (String::new(), ""),
            (":.:lib:./x:/a".to_owned(), "/a"),
            ("/a::/b".to_owned(), "/a:/b"),
            (format!("{0}:{0}/sub:{0}/../{1}", here.display(), here.file_name().unwrap().display()), "sub"),
        ] {
            let kept = without_relative(OsStr::new(&list), Some(&here));
            let expected = if expected == "sub" { here.join("sub").into_os_string() } else { expected.into() };
            assert_eq!(kept, expected, "{list}");
        }
        assert_eq!(without_relative(here.as_os_str(), None), here, "of programs and libraries an absolute one stays");
    }

    /// This test starts itself again in a folder with foreign modules and starts Python there.
    #[test]
    fn nothing_is_imported_from_the_working_folder() {
        const NAME: &str = "device::interpreter::tests::nothing_is_imported_from_the_working_folder";
        const INSIDE: &str = "BATCHSTEP_TEST_STRANGERS_FOLDER";
        const PROGRAM: &str =
            "import json, inspect, os\nos.stat('ran') if os.path.exists('ran') else print(json.dumps(sys.path))";
        if env::var_os(INSIDE).is_some() {
            let asked = crate::os::child::run(&mut command(&interpreter(), PROGRAM), None, 1 << 20);
            let path: Vec<PathBuf> = match asked {
                Ok(ended) => serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{ended:?}")),
                Err(failure) => return crate::needs::missing("python3", format!("{failure:?}")),
            };
            let here = env::current_dir().unwrap();
            assert!(path.iter().all(|folder| folder.is_absolute() && *folder != here), "{path:?}");
            return;
        }
        let folder = tempfile::tempdir().unwrap();
        for module in ["json.py", "inspect.py", "sitecustomize.py", "usercustomize.py", "lib/sitecustomize.py"] {
            let path = folder.path().join(module);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "open('ran', 'w')\n").unwrap();
        }
        let mut again = Command::new(env::current_exe().unwrap());
        again.args([NAME, "--exact", "--nocapture"]).current_dir(folder.path()).env(INSIDE, "1");
        again.env("PYTHONPATH", format!(":lib:.:{}", folder.path().display()));
        let output = again.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        assert!(!folder.path().join("ran").exists(), "a module of the working folder ran");
    }
}
