//! Running the program as a user does.

use std::ops::{Deref, RangeInclusive};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use batchstep::error::Result;
use batchstep::random::Rng;
use batchstep::store::Table;
use serde_json::Value;

use crate::needs;

/// A folder of its own for a test, gone at the test's end.
pub struct Folder(tempfile::TempDir);

impl Folder {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a folder"))
    }

    /// On a disk, also where temporary folders are in memory.
    pub fn on_disk() -> Self {
        Self(needs::on_disk())
    }

    /// With a file of that text.
    pub fn with(name: &str, text: &str) -> Self {
        let folder = Self::new();
        write(&folder, name, text);
        folder
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        self.0.path()
    }
}

impl AsRef<Path> for Folder {
    fn as_ref(&self) -> &Path {
        self
    }
}

/// The program, in a working folder.
pub fn batchstep(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_batchstep"));
    command.current_dir(folder);
    command
}

/// Starts it; what it prints is thrown away, and its warnings can be read at its end.
pub fn start(folder: &Path, arguments: &[&str]) -> Child {
    let mut command = batchstep(folder);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program starts")
}

/// Ends a process without a warning.
pub fn kill(mut child: Child) {
    child.kill().expect("killed");
    child.wait().expect("reaped");
}

/// Sends a signal.
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// Waits until `is_so` holds, five minutes at the longest.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(300), "not within five minutes: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The parts of a run whose names begin so; those of each thousand visits have a folder of their own.
pub fn parts(run: &Path, prefix: &str) -> usize {
    let files =
        |folder: &Path| folder.read_dir().into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    let all =
        files(&run.join("parts")).into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] });
    all.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix))).count()
}

/// Rows of a size, a block and a time in ms, a block after the other: the times of a formula with this share of noise.
pub fn rows(seed: u64, blocks: u32, sizes: RangeInclusive<u32>, noise: f64, ms: impl Fn(u32, u32) -> f64) -> String {
    let mut random = Rng::new(seed);
    let row = |(block, size)| format!("{size},{block},{:.6}\n", ms(size, block) * (1.0 + noise * random.normal()));
    (0..blocks).flat_map(|block| sizes.clone().map(move |size| (block, size))).map(row).collect()
}

/// A spec of steps with a planted truth.
pub fn planted(name: &str, sizes: &str, truth: &str, measure: &str) -> String {
    format!(
        "version = 1\nname = \"{name}\"\n[sweep]\nbatch_size = {sizes}\n[engine]\nname = \"synthetic\"\n[synthetic]\n{truth}\n\
         [measure]\n{measure}\n"
    )
}

/// Runs it to its end.
pub fn run(folder: &Path, arguments: &[&str]) -> Output {
    batchstep(folder).args(arguments).output().expect("the program starts")
}

/// Runs it to its end, which has that exit code.
pub fn ends(code: i32, folder: &Path, arguments: &[&str]) -> Output {
    exits(code, batchstep(folder).args(arguments))
}

/// Runs a command to its end, which has that exit code.
pub fn exits(code: i32, command: &mut Command) -> Output {
    let output = command.output().expect("the program starts");
    assert_eq!(output.status.code(), Some(code), "{command:?}: {}{}", stdout(&output), stderr(&output));
    output
}

/// Runs it to a result, perhaps with warnings that depend on the machine.
pub fn succeeds(folder: &Path, arguments: &[&str]) -> Output {
    let output = run(folder, arguments);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{arguments:?}: {}{}", stdout(&output), stderr(&output));
    output
}

/// Checks that it refuses, in a message with these parts.
pub fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    warns(2, folder, arguments, parts);
}

/// Checks that it ends with that exit code, and a message with these parts.
pub fn warns(code: i32, folder: &Path, arguments: &[&str], parts: &[&str]) {
    has(&stderr(&ends(code, folder, arguments)), parts);
}

/// Checks that its result has these parts, whatever it warns of.
pub fn prints(folder: &Path, arguments: &[&str], parts: &[&str]) {
    has(&stdout(&run(folder, arguments)), parts);
}

/// Checks that a text has these parts.
pub fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{text}\nlacks: {part}");
    }
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A text without the breaks of its lines.
pub fn tidy(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A file with that text.
pub fn write(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, text).expect("writable");
    path
}

/// The text of a file.
pub fn read(folder: &Path, name: impl AsRef<Path>) -> String {
    let path = folder.join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// A program of that name and text.
pub fn executable(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = write(folder, name, text);
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("permitted");
    path
}

/// The rows of some columns of numbers.
pub fn numbers<const N: usize>(run: &Path, names: [&str; N]) -> Result<Vec<[f64; N]>> {
    let table = Table::read(run, &names)?;
    let columns = names.map(|name| table.numbers(name).expect("numbers"));
    Ok((0..table.rows()).map(|row| columns.each_ref().map(|column| column[row])).collect())
}

/// A document of JSON.
pub fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Its result as JSON.
pub fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = run(folder, &[arguments, &["--format", "json"]].concat());
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)))
}

/// The jumps of the first series of a run in `results`: after, size, low, high.
pub fn jumps(folder: &Path, name: &str) -> Vec<[f64; 4]> {
    let document = parsed(&read(folder, format!("results/{name}/jumps.json")));
    let jump = |jump: &Value| ["after", "size", "low", "high"].map(|key| jump[key].as_f64().expect("a number"));
    document["series"][0]["jumps"].as_array().expect("a list").iter().map(jump).collect()
}

/// The run of the program's own spec `synthetic`, in `results/synthetic` of the folder; measured once for all tests that read it.
pub struct Synthetic {
    pub folder: PathBuf,
    pub output: Output,
}

pub fn synthetic() -> &'static Synthetic {
    static RUN: OnceLock<Synthetic> = OnceLock::new();
    extern "C" fn remove() {
        let _ = RUN.get().map(|run| std::fs::remove_dir_all(&run.folder));
    }
    RUN.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder").keep();
        let output = ends(0, &folder, &["run", "synthetic"]);
        // SAFETY: the function takes nothing, and is there as long as the process.
        unsafe { libc::atexit(remove) };
        Synthetic { folder, output }
    })
}

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A spec of the repository.
pub fn experiment(name: &str) -> String {
    root().join("experiments").join(name).to_str().expect("UTF-8 path").to_string()
}

/// A training of a small network, by the engine that the program chooses.
pub const TRAINING: &str = "version = 1\nkind = \"training\"\nname = \"training\"\n[model]\nname = \"small\"\n[[model.layers]]\ntype = \"flatten\"\n\
                            [[model.layers]]\ntype = \"dense\"\nout_features = 10\n[sweep]\nbatch_size = 20\n[train]\nprecision = \"fp32\"\n\
                            [engine]\nname = \"auto\"\n[data]\nsource = \"digits\"\nexamples = 40\ntest_examples = 20\n\
                            [measure]\nrepetitions = 1\nwarmup_steps = 0\n";

/// Its input pipeline, likewise.
pub const PIPELINE: &str = "version = 1\nkind = \"pipeline\"\nname = \"pipeline\"\n[model]\nname = \"small\"\n[[model.layers]]\ntype = \"flatten\"\n\
                            [[model.layers]]\ntype = \"dense\"\nout_features = 10\n[sweep]\nbatch_size = 4\n[train]\nprecision = \"fp32\"\n\
                            [engine]\nname = \"auto\"\n[data]\nimages = 8\nsize = 16\nformat = \"png\"\ncache = \"warm\"\n\
                            [measure]\nrepetitions = 1\nstage_time = \"4ms\"\ntogether_time = \"8ms\"\n";
