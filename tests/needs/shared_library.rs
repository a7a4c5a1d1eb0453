//! Small shared libraries in C, for tests of loading and of a library's answers.

use std::path::Path;
use std::process::{Command, Stdio};

/// Compiles C to a shared library whose soname is the file's name; false, and the test is recorded as skipped, where there is
/// no compiler.
///
/// # Panics
/// Where the source does not compile.
pub fn shared_library(source: &str, path: &Path) -> bool {
    let Some(compiler) = compiler() else {
        super::missing("cxx", "there is no C compiler ($CC, cc, gcc, clang) to build a library with");
        return false;
    };
    std::fs::create_dir_all(path.with_file_name("")).expect("a folder");
    let name = path.file_name().and_then(|name| name.to_str()).expect("a name");
    // Not next to the library: the search would mistake it for another library.
    let folder = tempfile::tempdir().expect("a folder");
    let input = folder.path().join("library.c");
    std::fs::write(&input, source).expect("writable");
    let mut command = Command::new(&compiler[0]);
    command.args(&compiler[1..]).args(["-shared", "-fPIC", "-O1", &format!("-Wl,-soname,{name}")]);
    let result = command.arg(&input).arg("-o").arg(path).output().expect("the compiler starts");
    assert!(result.status.success(), "{name}: {}", String::from_utf8_lossy(&result.stderr));
    true
}

fn compiler() -> Option<Vec<String>> {
    let named = std::env::var("CC").ok().into_iter();
    let mut names = named.chain(["cc", "gcc", "clang"].map(String::from));
    names.find_map(|name| {
        let words: Vec<String> = name.split_whitespace().map(String::from).collect();
        let (program, rest) = words.split_first()?;
        let mut probe = Command::new(program);
        probe.args(rest).arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| status.success()).then_some(words)
    })
}
