//! What is printed fits into the terminal, streams that cannot be written do not end a run, and options that would be ignored are refused.

use crate::support::{Folder, batchstep, experiment, run, stderr, stdout};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

const SPEC: &str = "version = 1\nname = \"t\"\n[sweep]\nbatch_size = \"1..=20\"\n[engine]\nname = \"synthetic\"\n[synthetic]\n\
                    noise = { sd = \"1%\" }\n[measure]\nblocks = { min = 5, max = 5 }\nsteps_per_visit = 3\n";

#[cfg(target_os = "linux")]
#[test]
#[ignore = "slow"]
fn a_run_ends_well_where_stderr_is_full_or_its_reader_has_gone() {
    let folder = Folder::with("t.toml", SPEC);
    let full = || File::options().write(true).open("/dev/full").expect("a device");
    let mut command = batchstep(&folder);
    let full = command.args(["run", "t.toml", "--out", "full"]).stdout(full()).stderr(full()).status();

    let mut command = batchstep(&folder);
    command.args(["run", "t.toml", "--out", "gone"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("starts");
    let mut first = String::new();
    BufReader::new(child.stderr.take().expect("a pipe")).read_line(&mut first).expect("a line");
    let gone = child.wait();

    let quiet = run(&folder, &["run", "t.toml", "--out", "heard"]).status.code();
    for (run, status) in [("full", full), ("gone", gone)] {
        assert_eq!(status.expect("it ends").code(), quiet, "{run}");
        assert!(folder.join(run).join("steps.parquet").is_file(), "{run}");
    }

    // A command that fails still says so by its exit code.
    let mut command = batchstep(&folder);
    let stderr = File::options().write(true).open("/dev/full").expect("a device");
    assert_eq!(command.args(["run", "missing.toml"]).stderr(stderr).status().expect("it ends").code(), Some(2));
}

/// What a full disk took is no success; a reader that has enough, such as `head`, took all that it wants.
#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let folder = Folder::with("t.toml", SPEC);
    let [stored, again] =
        ["", "-again"].map(|end| experiment(&format!("runs/2026-11-23-epyc-2-cores-quickstart{end}")));
    let commands: [&[&str]; 8] = [
        &["jumps", &stored, "--format", "json"],
        &["advise", &stored, "--format", "json"],
        &["explain", &stored],
        &["status", &stored, "--format", "json"],
        &["compare", &stored, &again],
        &["specs", "quickstart"],
        &["completions", "bash"],
        &["run", "t.toml", "--dry-run"],
    ];
    for arguments in commands {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let output = batchstep(&folder).args(arguments).stdout(full).output().expect("it runs");
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("batchstep: the output could not be written: "), "{arguments:?}: {said}");
    }
    let mut command = batchstep(&folder);
    let mut child = command.args(["completions", "bash"]).stdout(Stdio::piped()).spawn().expect("starts");
    drop(child.stdout.take());
    assert_eq!(child.wait().expect("an end").code(), Some(0));
}

/// Runs a command with a terminal as its stderr, or as its stdout; gives what came to the terminal, and to the other of the two.
#[cfg(target_os = "linux")]
fn on_a_terminal(mut command: Command, as_stderr: bool) -> [String; 2] {
    use std::os::fd::{AsRawFd, FromRawFd};
    let mut outside = File::options().read(true).write(true).open("/dev/ptmx").expect("a terminal");
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: two calls without memory, on a descriptor that is open.
    let inside = unsafe {
        assert_eq!(libc::unlockpt(outside.as_raw_fd()), 0);
        libc::ioctl(outside.as_raw_fd(), libc::TIOCGPTPEER, flags)
    };
    assert!(inside >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: it was just opened, and nothing else owns it.
    let inside = unsafe { File::from_raw_fd(inside) };
    let (terminal, other) = (Stdio::from(inside), Stdio::piped());
    let (to_stdout, to_stderr) = if as_stderr { (other, terminal) } else { (terminal, other) };
    let child = command.stdout(to_stdout).stderr(to_stderr).stdin(Stdio::null()).spawn().expect("starts");
    // It holds the inside of the terminal, whose outside ends with the last who does.
    drop(command);
    let reading = std::thread::spawn(move || {
        let mut said = Vec::new();
        // The end of a terminal is an error.
        let _ = outside.read_to_end(&mut said);
        String::from_utf8_lossy(&said).into_owned()
    });
    let output = child.wait_with_output().expect("an end");
    let other = if as_stderr { stdout(&output) } else { stderr(&output) };
    [reading.join().expect("read"), other]
}

/// A bar needs a cursor that moves.
#[cfg(target_os = "linux")]
#[test]
#[ignore = "slow"]
fn on_a_terminal_that_shows_no_bar_every_line_is_printed() {
    let folder = Folder::with("t.toml", &SPEC.replace("[synthetic]\n", "[synthetic]\nfails = [13]\n"));
    for (run, term) in [("dumb", Some("dumb")), ("none", None)] {
        let mut command = batchstep(&folder);
        command.args(["run", "t.toml", "--out", run]).env_remove("TERM").envs(term.map(|term| ("TERM", term)));
        let [said, _] = on_a_terminal(command, true);
        assert!(said.contains("at batch size 13: ") && said.contains("visits to 20 cells"), "{run}: {said}");
        assert!(said.contains("warning: 1 cell failed") && !said.contains('\u{1b}'), "{run}: {said}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_warning_looks_as_its_own_stream_can() {
    let rows: String = (1..=24).map(|n| format!("{n},{}\n", 10 + n)).collect();
    let folder = Folder::with("a.csv", &format!("batch,time_ms\n{rows}32,OOM\n"));
    let jumps = |as_stderr| {
        let mut command = batchstep(&folder);
        command.args(["jumps", "a.csv"]).env("TERM", "xterm").env_remove("NO_COLOR");
        on_a_terminal(command, as_stderr)
    };
    let [warned, answer] = jumps(true);
    assert!(warned.contains("\u{1b}[33mwarning\u{1b}[0m: ") && !answer.contains('\u{1b}'), "{warned}{answer}");
    let [_, warned] = jumps(false);
    assert!(warned.contains("warning: ") && !warned.contains('\u{1b}'), "{warned}");
}

/// What would be left out silently is refused.
#[test]
fn options_that_exclude_each_other_are_refused() {
    let folder = Folder::with("mine.py", "def step(batch_size):\n    return lambda: None\n");
    let tried: &[&str] = &["run", "mine.py", "--try", "3"];
    let ignored: [&[&str]; 7] = [
        &["--dry-run"],
        &["--resume"],
        &["--out", "x"],
        &["--shard", "1/2"],
        &["--time", "1s"],
        &["--qualify", "never"],
        &["--details"],
    ];
    let tries = ignored.map(|ignored| [tried, ignored].concat());
    let doctors = [vec!["doctor", "--fix", "--format", "json"], vec!["doctor", "--bundle", "b", "--format", "json"]];
    for arguments in tries.into_iter().chain(doctors) {
        let output = run(&folder, &arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
    }
    let output = run(&folder, &["run", "mine.py", "--try", "0"]);
    assert!(output.status.code() == Some(2) && stderr(&output).contains("0 is not in 1"));
}

/// A line of one word, such as a path, may be longer.
#[test]
#[ignore = "slow"]
fn what_is_printed_fits_into_the_terminal() {
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/runs");
    let [once, again] = ["", "-again"].map(|end| runs.join(format!("2026-11-23-epyc-2-cores-quickstart{end}")));
    let [once, again] = [&once, &again].map(|path| path.to_str().expect("text"));
    let commands: [&[&str]; 8] = [
        &["--help"],
        &["specs"],
        &["jumps", once],
        &["jumps", once, "--details"],
        &["advise", once],
        &["explain", once],
        &["compare", once, again],
        &["compare", once, again, once],
    ];
    for width in [80, 100, 120] {
        for arguments in commands {
            let mut command = batchstep(&runs);
            let output = command.args(arguments).env("COLUMNS", width.to_string()).output().expect("it runs");
            let text = stdout(&output);
            assert!(!text.is_empty(), "{arguments:?}");
            for line in text.lines().filter(|line| line.trim().contains(' ')) {
                assert!(line.chars().count() <= width, "{arguments:?} at {width}: {line}\n{text}");
            }
        }
    }
}
