//! The accounts of the threads of a process.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Instant;

use super::Span;
use crate::device::root::FilesystemRoot;

/// What the scheduler has counted of one thread since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Nanoseconds on a processor, as of the last tick.
    pub run_ns: u64,
    /// Nanoseconds in which it was ready and had none.
    pub wait_ns: u64,
    /// How often the thread was given a processor.
    pub times: u64,
}

impl Account {
    /// The account of the thread whose folder in `/proc` is `thread`; `None` if the kernel keeps no accounts.
    pub fn of(thread: &Path) -> Option<Self> {
        Self::parse(&fs::read(thread.join("schedstat")).ok()?)
    }

    /// A kernel whose accounting is switched off writes three zeros.
    fn parse(text: &[u8]) -> Option<Self> {
        let mut numbers = std::str::from_utf8(text).ok()?.split_ascii_whitespace().map(|number| number.parse().ok());
        let account = Self { run_ns: numbers.next()??, wait_ns: numbers.next()??, times: numbers.next()?? };
        (account.times > 0 || account.run_ns > 0).then_some(account)
    }
}

/// A thread, with its account at the last reading.
#[derive(Debug)]
struct Thread {
    number: i32,
    schedstat: Option<File>,
    state: PathBuf,
    account: Option<Account>,
    run_ns: u64,
    /// Seconds of its present wait that earlier steps have.
    told_s: f64,
    /// Whether it has computed in a step: only such threads are read after each step.
    computes: bool,
}

impl Thread {
    fn open(folder: &Path, number: i32) -> Self {
        let own = folder.join(number.to_string());
        let schedstat = File::open(own.join("schedstat")).ok();
        Self { number, schedstat, state: own.join("stat"), account: None, run_ns: 0, told_s: 0.0, computes: false }
    }

    /// Its account now; `None` where the kernel keeps none. The thread may be over, which is an error.
    fn read(&self) -> Result<(Option<Account>, u64), ()> {
        let mut text = [0; 96];
        let account = match &self.schedstat {
            Some(file) => match file.read_at(&mut text, 0) {
                Ok(length) if length > 0 => Account::parse(&text[..length]),
                _ => return Err(()),
            },
            None => None,
        };
        let run_ns = run_ns(self.number).or(account.map(|account| account.run_ns)).ok_or(())?;
        Ok((account, run_ns))
    }

    /// What came since the last reading, which took place `elapsed_s` ago.
    fn step(&mut self, elapsed_s: f64) -> Result<Span, ()> {
        let (account, run_ns) = self.read()?;
        let run_s = run_ns.saturating_sub(std::mem::replace(&mut self.run_ns, run_ns)) as f64 * 1e-9;
        let before = std::mem::replace(&mut self.account, account);
        let since = account.map(|now| {
            let before = before.unwrap_or_default();
            (now.wait_ns.saturating_sub(before.wait_ns) as f64 * 1e-9, now.times.saturating_sub(before.times) as f64)
        });
        let (wait_s, times) = since.unzip();
        Ok(Span {
            run_s,
            wait_s: wait_s.map(|wait_s| self.waited(run_s, wait_s, elapsed_s)),
            times: times.unwrap_or(0.0),
        })
    }

    /// A wait that goes on is not in the account yet, and comes there as a whole.
    fn waited(&mut self, run_s: f64, wait_s: f64, elapsed_s: f64) -> f64 {
        if self.computes && run_s == 0.0 && wait_s == 0.0 && self.is_ready() {
            self.told_s += elapsed_s;
            return elapsed_s;
        }
        (wait_s - std::mem::take(&mut self.told_s)).max(0.0)
    }

    /// Whether it runs or would, if it had a processor.
    fn is_ready(&self) -> bool {
        // `17 (step-1) R ...`; a name may hold brackets itself.
        let text = fs::read_to_string(&self.state).unwrap_or_default();
        text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R'))
    }
}

/// Nanoseconds that a thread of this process has been on a processor; `None` where it is over, or is of another process.
fn run_ns(thread: i32) -> Option<u64> {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // The clock of a thread by its number, as pthread_getcpuclockid(3) makes it: include/linux/posix-timers.h.
    let clock = (!thread << 3) | 6;
    // SAFETY: the structure outlives the call.
    let answer = unsafe { libc::clock_gettime(clock, &raw mut time) };
    (answer == 0).then(|| time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[derive(Debug)]
pub(super) struct Threads {
    folder: PathBuf,
    /// The folder, whose number of links equals the number of threads.
    open: Option<File>,
    links: u64,
    threads: Vec<Thread>,
    spans: Vec<Span>,
    read_at: Instant,
}

impl Threads {
    /// Those of the process with that number, or of this one.
    pub fn open(root: &FilesystemRoot, process: Option<u32>) -> Self {
        let process = process.map_or_else(|| "self".to_owned(), |number| number.to_string());
        let folder = root.path(format!("/proc/{process}/task"));
        let open = File::open(&folder).ok();
        let mut threads =
            Self { folder, open, links: 0, threads: Vec::new(), spans: Vec::new(), read_at: Instant::now() };
        threads.begin();
        threads
    }

    /// Reads all threads: a thread that computes in the first step that follows may be any of them.
    pub fn begin(&mut self) {
        self.spans.clear();
        self.refresh(false);
        self.threads.retain_mut(|thread| match thread.read() {
            Ok((account, run_ns)) => {
                (thread.account, thread.run_ns, thread.told_s) = (account, run_ns, 0.0);
                true
            }
            Err(()) => false,
        });
        self.read_at = Instant::now();
    }

    /// The times since the last reading, for each thread that computes. The first reading after [`Threads::begin`] finds out which threads do.
    pub fn step(&mut self) -> &[Span] {
        let is_first = std::mem::take(&mut self.spans).is_empty();
        self.refresh(true);
        let elapsed_s = self.read_at.elapsed().as_secs_f64();
        let (spans, mut over) = (&mut self.spans, false);
        for thread in self.threads.iter_mut().filter(|thread| is_first || thread.computes) {
            match thread.step(elapsed_s) {
                Ok(span) => {
                    thread.computes |= span.run_s > 0.0 || span.wait_s > Some(0.0);
                    spans.push(span);
                }
                Err(()) => over = true,
            }
        }
        // If another thread began in its place, the number of links is unchanged.
        self.links = if over { 0 } else { self.links };
        self.read_at = Instant::now();
        &self.spans
    }

    /// Lists the threads again where some came or went. Those that came in a step compute in it.
    fn refresh(&mut self, in_a_step: bool) {
        let links = self.open.as_ref().and_then(|folder| folder.metadata().ok()).map_or(0, |facts| facts.nlink());
        if links == self.links && links != 0 {
            return;
        }
        self.links = links;
        let listed = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let numbers: Vec<i32> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        self.threads.retain(|thread| numbers.contains(&thread.number));
        let known: Vec<i32> = self.threads.iter().map(|thread| thread.number).collect();
        let new = numbers.iter().filter(|number| !known.contains(number));
        self.threads.extend(new.map(|&number| Thread { computes: in_a_step, ..Thread::open(&self.folder, number) }));
    }
}
