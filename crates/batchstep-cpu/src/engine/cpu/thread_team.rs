//! The threads of a step; they share one piece of work after another.
//!
//! A step hands out work some hundred times. Waking a thread that waits in the kernel's queue takes ten to fifty
//! microseconds: on images of 32 x 32 that was most of what two threads could save (docs/cpu-engine.md). Like OpenMP's threads,
//! these poll for a while before they sleep. Unlike in OpenMP, no thread waits for another that has not arrived: each
//! thread that joins takes pieces until none is left, and if none joins, the thread that handed out the work takes all
//! pieces.

use std::any::Any;
use std::cell::{Cell, OnceCell, UnsafeCell};
use std::hint::spin_loop;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use rustix::thread::{sched_getaffinity, sched_getcpu, sched_setaffinity};

use super::meeting::Meeting;
use crate::engine::processor;
use crate::engine::threads::{allowed_processors, keep_on};
use crate::error::{Error, Result};

/// How often a waiting thread polls without a pause, for about 20 us; after that it yields its processor between polls.
const LOOKS: usize = 500;
/// The same where each thread has its own processor, for about a millisecond: beside another program, a thread that yields is given its processor again after 4 ms at best.
const OWN_LOOKS: usize = 50 * LOOKS;
/// More than one look takes, and less than another program keeps the processor that it takes.
const LOOK: Duration = Duration::from_micros(20);
/// How long it polls in all: longer than the serial parts of a step, and longer than the gap between two steps.
const PATIENCE: Duration = Duration::from_micros(200);

/// Some threads; the first is the one that calls [`Team::install`].
#[derive(Debug)]
pub struct Team {
    shared: Arc<TeamState>,
    helpers: Vec<JoinHandle<()>>,
    /// The processor of the first thread, where each thread has its own.
    home: Option<usize>,
    /// Work is handed out by one thread at a time.
    one_thread: std::marker::PhantomData<Cell<()>>,
}

/// The state that the threads of a team share.
#[derive(Debug)]
struct TeamState {
    round: CachePadded<AtomicU64>,
    /// Helpers that have finished the work of this round.
    done: CachePadded<AtomicUsize>,
    /// The work of this round; its lifetime ends when all helpers that joined have finished.
    work: UnsafeCell<*const (dyn Fn() + Sync)>,
    /// Whether each helper is asleep.
    asleep: Box<[CachePadded<AtomicBool>]>,
    panicked: Mutex<Option<Box<dyn Any + Send>>>,
    ends: AtomicBool,
    /// How often a thread polls before it yields its processor.
    looks: usize,
    /// Nanoseconds of processor time in which each thread only polled, first the helpers and then the thread that hands out work.
    polled_ns: Box<[CachePadded<AtomicU64>]>,
}

/// A wait that polls.
#[derive(Debug, Default)]
struct Polling {
    looks: usize,
    /// When it last looked.
    at: Option<Instant>,
}

// SAFETY: `work` is written by the thread that hands it out while no helper may join, and read by those that have joined.
unsafe impl Sync for TeamState {}
// SAFETY: as for `Sync`; the thread that hands out work outlives it.
unsafe impl Send for TeamState {}

/// Two cache lines, which processors fetch together, so that writes of other values do not disturb the readers of this
/// one.
#[derive(Debug, Default)]
#[repr(align(128))]
struct CachePadded<T>(T);

/// The parts of a round's number: how many helpers may still join (lowest bits), how many have joined, and how many
/// rounds there were.
const PLACES: u64 = 0xffff;
const JOINED: u64 = 1 << 16;
const ROUND: u64 = 1 << 32;

impl TeamState {
    fn may_join(state: u64, last: u64) -> bool {
        state & PLACES != 0 && state / ROUND != last
    }

    /// Hands out `work` to up to `places` helpers, takes part in it, and returns when all have finished.
    fn run(&self, places: usize, helpers: &[JoinHandle<()>], work: &(dyn Fn() + Sync)) {
        // SAFETY: the references differ only in the lifetime, and none is used after this function, which waits for all
        // helpers that joined.
        let unbound = unsafe { std::mem::transmute::<*const (dyn Fn() + Sync), *const (dyn Fn() + Sync)>(work) };
        // SAFETY: the last round is closed, and all helpers that joined it have finished, so none reads.
        unsafe { *self.work.get() = unbound };
        self.done.0.store(0, Ordering::Relaxed);
        let number = self.round.0.load(Ordering::Relaxed) / ROUND + 1;
        // Sequentially consistent, like the helper's two operations: one of the two threads sees the other's write.
        self.round.0.store((number << 32) | places as u64 & PLACES, Ordering::SeqCst);
        for (asleep, helper) in self.asleep.iter().zip(helpers).take(places) {
            if asleep.0.load(Ordering::SeqCst) && asleep.0.swap(false, Ordering::SeqCst) {
                helper.thread().unpark();
            }
        }
        let own = catch_unwind(AssertUnwindSafe(work));
        let joined = ((self.round.0.fetch_and(!PLACES, Ordering::AcqRel) / JOINED) & PLACES) as usize;
        let mut polling = Polling::default();
        while self.done.0.load(Ordering::Acquire) < joined {
            self.look_again(&mut polling, self.asleep.len());
        }
        if let Err(panic) = own {
            resume_unwind(panic);
        }
        if joined > 0
            && let Some(panic) = self.panicked.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            resume_unwind(panic);
        }
    }

    /// The loop of helper `number`, until the team ends.
    fn serve(&self, number: usize) {
        let mut last = 0;
        while let Some(state) = self.next(number, last) {
            let taken = state - 1 + JOINED;
            if self.round.0.compare_exchange(state, taken, Ordering::AcqRel, Ordering::Relaxed).is_err() {
                continue;
            }
            last = state / ROUND;
            // SAFETY: the thread that handed out the work wrote it before, and waits until this helper has finished.
            let work = unsafe { &**self.work.get() };
            if let Err(panic) = catch_unwind(AssertUnwindSafe(work)) {
                *self.panicked.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
            }
            self.done.0.fetch_add(1, Ordering::Release);
        }
    }

    /// Waits for a round that has a free place and is not the `last` one; `None` when the team ends.
    fn next(&self, number: usize, last: u64) -> Option<u64> {
        let (mut polling, mut since) = (Polling::default(), None);
        loop {
            let state = self.round.0.load(Ordering::SeqCst);
            if self.ends.load(Ordering::SeqCst) {
                return None;
            }
            if Self::may_join(state, last) {
                return Some(state);
            }
            self.look_again(&mut polling, number);
            if polling.looks > LOOKS && since.get_or_insert_with(Instant::now).elapsed() > PATIENCE {
                self.sleep(number, last);
                (polling, since) = (Polling::default(), None);
            }
        }
    }

    fn sleep(&self, number: usize, last: u64) {
        let asleep = &self.asleep[number].0;
        asleep.store(true, Ordering::SeqCst);
        let wanted = Self::may_join(self.round.0.load(Ordering::SeqCst), last) || self.ends.load(Ordering::SeqCst);
        if !wanted {
            thread::park();
        }
        asleep.store(false, Ordering::SeqCst);
    }

    /// Waits for a moment, as thread `number`.
    fn look_again(&self, polling: &mut Polling, number: usize) {
        polling.looks += 1;
        if polling.looks > self.looks {
            thread::yield_now()
        } else {
            spin_loop()
        }
        let now = Instant::now();
        let since = polling.at.replace(now).map_or(Duration::ZERO, |at| now - at);
        if since < LOOK {
            let polled_ns = &self.polled_ns[number].0;
            polled_ns.store(polled_ns.load(Ordering::Relaxed) + since.as_nanos() as u64, Ordering::Relaxed);
        }
    }
}

thread_local! {
    /// The team to which this thread hands out work; null inside a piece of work, and for helpers.
    static CURRENT: Cell<*const Team> = const { Cell::new(std::ptr::null()) };
}

/// Makes a team the current one of this thread until dropped.
struct Current(*const Team);

impl Current {
    fn set(team: *const Team) -> Self {
        Self(CURRENT.replace(team))
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        CURRENT.set(self.0);
    }
}

/// The number of threads that share this thread's work: those of the installed team; 1 without a team, and inside a
/// piece of work.
pub fn threads() -> usize {
    // SAFETY: a team is not dropped while it is installed.
    unsafe { CURRENT.get().as_ref() }.map_or(1, Team::threads)
}

/// Runs `work` on this thread and on those other threads of its team that arrive in time, on at most `workers` in all.
/// The calls must share one list of tasks and return when no task is left.
pub fn share(workers: usize, work: &(dyn Fn() + Sync)) {
    let team = CURRENT.get();
    let _none = Current::set(std::ptr::null());
    // SAFETY: a team is not dropped while it is installed.
    match unsafe { team.as_ref() } {
        Some(team) if workers > 1 => team.shared.run((workers - 1).min(team.helpers.len()), &team.helpers, work),
        _ => work(),
    }
}

impl Team {
    /// A team of `threads` threads, including this one. If the process may use as many processors, each thread gets its
    /// own.
    ///
    /// # Errors
    /// [`crate::error::Kind::Engine`] where the system does not give the threads.
    pub fn new(threads: usize) -> Result<Self> {
        let processors = allowed_processors();
        let one_each = processors.len() == threads;
        let shared = Arc::new(TeamState {
            round: CachePadded::default(),
            done: CachePadded::default(),
            work: UnsafeCell::new(&|| ()),
            asleep: (1..threads).map(|_| CachePadded::default()).collect(),
            panicked: Mutex::new(None),
            ends: AtomicBool::new(false),
            looks: if one_each { OWN_LOOKS } else { LOOKS },
            polled_ns: (0..threads).map(|_| CachePadded::default()).collect(),
        });
        let mut team = Self {
            shared,
            helpers: Vec::new(),
            home: processors.first().copied().filter(|_| one_each && threads > 1),
            one_thread: std::marker::PhantomData,
        };
        for number in 1..threads {
            let shared = team.shared.clone();
            let processor = processors.get(number).copied().filter(|_| one_each);
            let serve = move || {
                processor.into_iter().for_each(keep_on);
                shared.serve(number - 1);
            };
            let helper = thread::Builder::new().name(format!("step-{number}")).spawn(serve);
            let helper = helper.map_err(|error| Error::engine(format!("cannot start {threads} threads: {error}")))?;
            team.helpers.push(helper);
        }
        Ok(team)
    }

    /// The number of threads, including the one that installs the team.
    pub fn threads(&self) -> usize {
        self.shared.asleep.len() + 1
    }

    /// Seconds of processor time since it began in which a thread of it only polled, over all threads.
    pub fn polled_s(&self) -> f64 {
        self.shared.polled_ns.iter().map(|one| 1e-9 * one.0.load(Ordering::Relaxed) as f64).sum()
    }

    /// Runs `work`; its kernels share their work with this team.
    pub fn install<R>(&self, work: impl FnOnce() -> R) -> R {
        self.go_home();
        let _current = Current::set(self);
        work()
    }

    /// Lets all threads sleep, and gives this one back when all are on their processors at once: the work that follows begins on all of them. Gives up where other programs
    /// keep the processors for too long.
    pub fn gather(&self) {
        let free = self.home.and_then(|home| {
            let free = sched_getaffinity(None).ok()?;
            keep_on(home);
            Some(free)
        });
        let (meeting, caller) = (Meeting::of(self.helpers.len()), thread::current().id());
        self.install(|| {
            share(self.threads(), &|| match thread::current().id() == caller {
                true => meeting.lead(),
                false => meeting.follow(),
            });
        });
        if let Some(free) = free {
            let _ = sched_setaffinity(None, &free);
        }
    }

    /// Moves this thread to the processor that no helper has. It may be moved again afterwards, so that the threads and
    /// processes that it starts later are free to move too.
    fn go_home(&self) {
        if let Some(home) = self.home
            && sched_getcpu() != home
            && let Ok(free) = sched_getaffinity(None)
        {
            keep_on(home);
            let _ = sched_setaffinity(None, &free);
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::SeqCst);
        for helper in self.helpers.drain(..) {
            helper.thread().unpark();
            // A helper does not panic: it catches panics of the work.
            let _ = helper.join();
        }
    }
}

/// Runs `work` with a team of all cores that the process may use. Each calling thread has one such team; where none can
/// be started, `work` runs on the calling thread only.
pub fn with_all_cores<R>(work: impl FnOnce() -> R) -> R {
    thread_local! {
        static TEAM: OnceCell<Option<Team>> = const { OnceCell::new() };
    }
    TEAM.with(|team| match team.get_or_init(|| Team::new(processor::cores()).ok()) {
        Some(team) => team.install(work),
        None => work(),
    })
}

/// Runs the work of a test with three threads, not all of which have their own processor.
#[cfg(test)]
pub fn by_three<R>(work: impl FnOnce() -> R) -> R {
    Team::new(3).expect("a team").install(work)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds up `0..tasks`, where one thread takes each task, and counts the threads.
    fn sum(tasks: usize) -> usize {
        let (next, total) = (AtomicUsize::new(0), AtomicUsize::new(0));
        share(threads(), &|| {
            loop {
                let task = next.fetch_add(1, Ordering::Relaxed);
                if task >= tasks {
                    break;
                }
                total.fetch_add(task, Ordering::Relaxed);
            }
        });
        total.into_inner()
    }

    #[test]
    fn every_task_is_done_once_in_every_round() {
        for size in [1, 2, 3, 7] {
            let team = Team::new(size).expect("a team");
            team.install(|| {
                assert_eq!(threads(), size);
                assert!((0..20_000).all(|round| sum(round % 10) == (round % 10) * (round % 10).saturating_sub(1) / 2));
            });
        }
        assert_eq!((threads(), sum(5)), (1, 10), "without a team");
    }

    #[test]
    fn helpers_that_sleep_are_woken() {
        let team = Team::new(2).expect("a team");
        for _ in 0..3 {
            let is_asleep = || team.shared.asleep[0].0.load(Ordering::SeqCst);
            while !is_asleep() {
                thread::sleep(PATIENCE);
            }
            // The first thread waits for the other one, so this ends only if that arrives.
            let both = std::sync::Barrier::new(2);
            let wait = || {
                both.wait();
            };
            team.install(|| share(2, &wait));
        }
    }

    /// With more threads than processors they may never meet, and the work goes on all the same.
    #[test]
    fn threads_that_met_work_as_before() {
        for size in [1, 2, 5] {
            let team = Team::new(size).expect("a team");
            for _ in 0..3 {
                team.gather();
                assert_eq!(team.install(|| sum(100)), 4950);
            }
        }
    }

    /// The other thread's work takes 5 ms, and the caller's none.
    #[test]
    fn a_thread_that_waits_for_another_polls() {
        let team = Team::new(2).expect("a team");
        let caller = thread::current().id();
        let both = std::sync::Barrier::new(2);
        let before = team.polled_s();
        team.install(|| {
            share(2, &|| {
                both.wait();
                if thread::current().id() != caller {
                    let start = Instant::now();
                    while start.elapsed() < Duration::from_millis(5) {
                        spin_loop();
                    }
                }
            });
        });
        let polled_s = team.polled_s() - before;
        assert!(polled_s > 0.0 && polled_s < 60.0, "{polled_s}");
    }

    #[test]
    fn inside_of_a_piece_of_work_there_is_one_thread() {
        let team = Team::new(3).expect("a team");
        let others = AtomicUsize::new(0);
        team.install(|| {
            share(3, &|| {
                others.fetch_add(threads() - 1, Ordering::Relaxed);
                share(3, &|| {
                    others.fetch_add(threads() - 1, Ordering::Relaxed);
                });
            });
            assert_eq!(threads(), 3);
        });
        assert_eq!(others.into_inner(), 0);
    }

    #[test]
    fn a_panic_of_any_thread_reaches_the_caller_and_the_team_continues() {
        let team = Team::new(2).expect("a team");
        let main = thread::current().id();
        for helper_fails in [true, false] {
            let both = std::sync::Barrier::new(2);
            let work = || {
                both.wait();
                assert!((thread::current().id() == main) == helper_fails, "as asked for");
            };
            let failed = catch_unwind(AssertUnwindSafe(|| team.install(|| share(2, &work))));
            let panic = failed.expect_err("one of both panicked");
            assert!(panic.downcast_ref::<&str>().is_some_and(|text| text.contains("as asked for")));
            assert_eq!(team.install(|| sum(10)), 45);
        }
        assert_eq!(threads(), 1);
    }
}
