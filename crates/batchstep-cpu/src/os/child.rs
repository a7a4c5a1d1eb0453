//! A process whose output is read. It leads its own process group, which ends with it. The size of its output is bounded, and so is the time to
//! wait for it. Descendants that keep its output open are not waited for.

use std::collections::BTreeSet;
use std::io::{self, BufRead, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time in which a killed process must end: a process that waits for a lost device within the kernel does not end.
const GOING: Duration = Duration::from_secs(5);
/// The time that a pipe gets to close after the process at its other end is over: only a descendant that left the group can hold it.
const CLOSING: Duration = Duration::from_millis(500);

/// The groups that may have members. A program that exits drops nothing.
static LIVING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn living() -> MutexGuard<'static, BTreeSet<u32>> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Kills every group, just before this program exits: no process starts after that.
pub fn end_all() {
    let living = living();
    living.iter().for_each(|id| kill(*id));
    // Whoever starts a process waits for it.
    std::mem::forget(living);
}

/// Only while the leader was not waited for: after that, its number can be another's.
fn kill(group: u32) {
    // SAFETY: a call without memory. An error means that no process is left.
    unsafe { libc::killpg(group as libc::pid_t, libc::SIGKILL) };
}

/// A process and the group that it leads, whose members are what it started. All of it is killed when this is dropped.
#[derive(Debug)]
pub struct Group {
    leader: Child,
    /// How the leader ended; known from when its group was killed.
    status: Option<ExitStatus>,
    /// When it was seen to have ended.
    ended: Option<Instant>,
}

impl Group {
    /// Starts the process. It does not receive the signals that a terminal sends to this process, such as Ctrl-C.
    ///
    /// # Errors
    /// The system's error if the process cannot be started.
    pub fn start(command: &mut Command) -> io::Result<Self> {
        let mut living = living();
        let leader = command.process_group(0).spawn()?;
        living.insert(leader.id());
        Ok(Self { leader, status: None, ended: None })
    }

    /// The process, to take its pipes from.
    pub fn leader(&mut self) -> &mut Child {
        &mut self.leader
    }

    /// The process ID of the leader, which is also the ID of the group.
    pub fn id(&self) -> u32 {
        self.leader.id()
    }

    /// Whether the leader is over.
    pub fn is_over(&self) -> bool {
        if self.status.is_some() {
            return true;
        }
        // SAFETY: `info` is plain data that zeros are valid for, and lives as long as the call.
        let (answer, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            // The process is not reaped here, so that its ID, which is its group's, stays taken until the group was killed.
            let how = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT;
            (libc::waitid(libc::P_PID, self.id(), &raw mut info, how), info)
        };
        // While the process runs, the signal stays 0; an error means that we can no longer wait for the process.
        answer != 0 || info.si_signo != 0
    }

    /// How the leader ended, once it has, with its group killed; `None` where it runs on for longer than `patience`.
    pub fn wait(&mut self, patience: Duration) -> Option<ExitStatus> {
        let start = Instant::now();
        while !self.is_over() {
            if start.elapsed() >= patience {
                return None;
            }
            self.sleep_until_over(patience.saturating_sub(start.elapsed()));
        }
        self.ended.get_or_insert_with(Instant::now);
        if self.status.is_none() {
            kill(self.id());
            living().remove(&self.id());
            self.status = self.leader.wait().ok();
        }
        self.status
    }

    /// Sleeps until the leader ends, for `most` at the longest; without descriptors of processes (before Linux 5.3, and elsewhere) for 5 ms.
    fn sleep_until_over(&self, most: Duration) {
        #[cfg(target_os = "linux")]
        {
            use rustix::event::{PollFd, PollFlags, poll};
            use rustix::process::{Pid, PidfdFlags, pidfd_open};
            let descriptor = Pid::from_raw(self.id() as i32).and_then(|id| pidfd_open(id, PidfdFlags::empty()).ok());
            if let (Some(descriptor), Ok(most)) = (descriptor, most.try_into()) {
                // Where it is woken early, it is called again.
                let _ = poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&most));
                return;
            }
        }
        thread::sleep(most.min(Duration::from_millis(5)));
    }

    /// Asks the leader to end in its own time (SIGTERM), where it runs.
    pub fn ask_to_end(&self) {
        if self.status.is_none() {
            // SAFETY: a call without memory; the process was not reaped, so that the number is its own.
            unsafe { libc::kill(self.id() as libc::pid_t, libc::SIGTERM) };
        }
    }

    /// Kills the group, and waits until its leader is gone.
    pub fn end(&mut self) {
        if self.status.is_none() {
            kill(self.id());
            self.wait(GOING);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.end();
    }
}

/// What a process that has ended wrote.
#[derive(Debug)]
pub struct Ended {
    pub status: ExitStatus,
    pub stdout: String,
    /// Where the command pipes it; else empty.
    pub stderr: String,
    /// From before it was started until it had ended.
    pub took: Duration,
}

/// Why there is nothing of a process.
#[derive(Debug)]
pub enum Failure {
    NotStarted(io::Error),
    /// It did not end in time, and was killed; with what it had written to its standard output.
    Late(String),
    /// It wrote more than it may, and was killed.
    TooLong,
}

/// Has the kernel send the process that signal when the thread that starts it is gone; on Linux.
pub fn signal_at_our_end(command: &mut Command, signal: i32) {
    #[cfg(target_os = "linux")]
    // SAFETY: between fork and exec only a system call is made, which touches no memory.
    unsafe {
        command.pre_exec(move || {
            libc::prctl(libc::PR_SET_PDEATHSIG, signal);
            Ok(())
        });
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (command, signal);
}

/// Runs a command to its end, without input, and gives what it writes: at most `most` bytes to each stream, within `patience`, where there is
/// one. It ends with this process.
///
/// # Errors
/// See [`Failure`].
pub fn run(command: &mut Command, patience: Option<Duration>, most: usize) -> Result<Ended, Failure> {
    signal_at_our_end(command, libc::SIGKILL);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    let start = Instant::now();
    let mut group = Group::start(command).map_err(Failure::NotStarted)?;
    let leader = group.leader();
    let stdout = leader.stdout.take().map(|pipe| Reading::of(pipe, most));
    let stderr = leader.stderr.take().map(|pipe| Reading::of(pipe, most));
    let status = loop {
        if let Some(status) = group.wait(Duration::from_millis(20)) {
            break status;
        }
        if [&stdout, &stderr].into_iter().flatten().any(Reading::is_too_long) {
            return Err(Failure::TooLong);
        }
        if patience.is_some_and(|patience| start.elapsed() >= patience) {
            drop(group);
            let written = stdout.map_or_else(String::new, |stdout| stdout.text().unwrap_or_default());
            return Err(Failure::Late(written));
        }
    };
    let took = group.ended.map_or_else(|| start.elapsed(), |ended| ended - start);
    let text = |reading: Option<Reading>| reading.map_or(Ok(String::new()), Reading::text);
    Ok(Ended { status, stdout: text(stdout)?, stderr: text(stderr)?, took })
}

/// A stream that a thread reads, so that no pipe fills up.
struct Reading {
    bytes: Arc<Mutex<Vec<u8>>>,
    most: usize,
    /// Closes with the stream.
    closed: Receiver<()>,
}

impl Reading {
    fn of(pipe: impl Read + Send + 'static, most: usize) -> Self {
        let (bytes, (open, closed)) = (Arc::new(Mutex::new(Vec::new())), channel());
        let into = Arc::clone(&bytes);
        thread::spawn(move || {
            let mut piece = [0; 8192];
            let mut pipe = pipe.take(most as u64 + 1);
            while let Ok(length @ 1..) = pipe.read(&mut piece) {
                into.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(&piece[..length]);
            }
            drop::<std::sync::mpsc::Sender<()>>(open);
        });
        Self { bytes, most, closed }
    }

    fn is_too_long(&self) -> bool {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).len() > self.most
    }

    /// What came until the stream closed, or did not close in time.
    fn text(self) -> Result<String, Failure> {
        let _ = self.closed.recv_timeout(CLOSING);
        if self.is_too_long() {
            return Err(Failure::TooLong);
        }
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// A line of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputLine {
    /// Without its end.
    pub text: String,
    /// False for a piece of a longer line.
    pub whole: bool,
}

/// The next line of a stream, or the next `most` bytes of a longer line; `None` at the end.
pub fn line(stream: &mut impl BufRead, most: usize) -> Option<OutputLine> {
    let mut line = Vec::new();
    let read = stream.by_ref().take(most as u64).read_until(b'\n', &mut line).ok()?;
    let whole = line.ends_with(b"\n") || read < most;
    line.truncate(line.trim_ascii_end().len());
    // Invalid UTF-8 must not end the reading: the process would block on a full pipe.
    let text = String::from_utf8(line).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    (read > 0).then_some(OutputLine { text, whole })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOON: Duration = Duration::from_secs(120);

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    fn is_there(process: &str) -> bool {
        // A zombie is over; it has nothing in its memory.
        std::fs::read_to_string(format!("/proc/{}/cmdline", process.trim())).is_ok_and(|line| !line.is_empty())
    }

    fn is_gone_soon(process: &str) -> bool {
        let start = Instant::now();
        while is_there(process) && start.elapsed() < SOON {
            thread::sleep(Duration::from_millis(5));
        }
        !is_there(process)
    }

    #[test]
    fn both_streams_are_read_also_where_they_are_larger_than_a_pipe() {
        let script = "head -c 200000 /dev/zero | tr '\\0' a; head -c 100000 /dev/zero | tr '\\0' b >&2; exit 3";
        let ended = run(shell(script).stderr(Stdio::piped()), Some(SOON), 1 << 20).unwrap();
        assert_eq!((ended.stdout.len(), ended.stderr.len(), ended.status.code()), (200_000, 100_000, Some(3)));
    }

    #[test]
    fn a_process_that_writes_without_end_is_ended() {
        assert!(matches!(run(&mut shell("exec yes"), Some(SOON), 1 << 20), Err(Failure::TooLong)));
        let quick = run(&mut shell("head -c 2000 /dev/zero"), Some(SOON), 1000);
        assert!(matches!(quick, Err(Failure::TooLong)), "{quick:?}");
    }

    #[test]
    fn what_a_process_leaves_behind_is_not_waited_for_and_ends_with_it() {
        let ended = run(&mut shell("sleep 600 & echo $!"), Some(SOON), 1000).unwrap();
        assert!(ended.status.success() && is_gone_soon(&ended.stdout), "{ended:?}");
        // A process that leaves the group keeps the pipe open.
        let ended = run(&mut shell("setsid sleep 30 & echo answer; sleep 0.2"), Some(SOON), 1000).unwrap();
        assert_eq!(ended.stdout, "answer\n");
    }

    #[test]
    fn a_process_that_hangs_is_ended_with_all_that_it_started() {
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("note");
        let script = format!("sleep 600 & echo $! > {}; wait", note.display());
        assert!(matches!(run(&mut shell(&script), Some(Duration::from_secs(1)), 1000), Err(Failure::Late(_))));
        assert!(is_gone_soon(&std::fs::read_to_string(note).unwrap()));
        let none = run(&mut Command::new("/nonexistent/program"), None, 1000);
        assert!(matches!(none, Err(Failure::NotStarted(_))), "{none:?}");
    }

    /// This test starts itself again: the inner one exits as a program does, which would take the processes of other tests along.
    #[test]
    fn a_program_that_exits_at_once_leaves_no_process_behind() {
        const NAME: &str = "os::child::tests::a_program_that_exits_at_once_leaves_no_process_behind";
        const INSIDE: &str = "BATCHSTEP_TEST_EXITS_AT_ONCE";
        if let Some(note) = std::env::var_os(INSIDE) {
            let script = format!("sleep 600 & echo $! > '{}'; wait", note.display());
            let _group = Group::start(shell(&script).stdout(Stdio::null()).stderr(Stdio::null())).unwrap();
            let is_noted = || std::fs::read_to_string(&note).is_ok_and(|text| !text.is_empty());
            let start = Instant::now();
            while !is_noted() && start.elapsed() < SOON {
                thread::sleep(Duration::from_millis(5));
            }
            end_all();
            std::process::exit(3);
        }
        let folder = tempfile::tempdir().unwrap();
        let note = folder.path().join("note");
        let mut again = Command::new(std::env::current_exe().unwrap());
        let output = again.args([NAME, "--exact", "--nocapture"]).env(INSIDE, &note).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(is_gone_soon(&std::fs::read_to_string(note).unwrap()));
    }

    #[test]
    fn a_long_line_is_read_in_pieces() {
        let mut stream = &b"ab\nabcdef\n\xff"[..];
        let lines: Vec<(String, bool)> =
            std::iter::from_fn(|| line(&mut stream, 4)).map(|line| (line.text, line.whole)).collect();
        let expected = [("ab", true), ("abcd", false), ("ef", true), ("\u{fffd}", true)];
        assert_eq!(lines, expected.map(|(text, whole)| (text.to_owned(), whole)));
    }
}
