//! Running the program as a user does.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The program, in a working folder.
pub fn batchstep(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_batchstep"));
    command.current_dir(folder);
    command
}

/// Runs it to its end.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    batchstep(folder).args(arguments).output().expect("the program starts")
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file with that text.
pub fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("writable");
    path
}

/// A spec of the repository.
pub fn experiment(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments").join(name);
    path.to_str().expect("UTF-8 path").to_string()
}
