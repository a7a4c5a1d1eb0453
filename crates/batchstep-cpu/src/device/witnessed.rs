//! What the kernel saw of the threads of one step.

/// Switches and page faults of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Events {
    pub voluntary_switches: f64,
    pub involuntary_switches: f64,
    pub page_faults: f64,
}

impl Events {
    /// Context switches of both kinds.
    pub fn switches(&self) -> f64 {
        self.voluntary_switches + self.involuntary_switches
    }
}

/// The longest wait for an idle processor when a thread is woken: interrupting an idle processor of a virtual machine takes up to 50 us. A thread
/// that sleeps between pieces of work has many such waits, and no other program causes them.
const WAKE_S: f64 = 50e-6;
/// What an involuntary switch counts for where the kernel does not say how long a thread waited: the shortest slice that Linux gives
/// (kernel/sched/fair.c, `base_slice_ns`: 0.7 ms for one processor, more for several).
const SLICE_S: f64 = 0.7e-3;

/// A helper that works for a part of the step is a part of a thread; more parts than this beside as many threads as processors are one too many.
const CROWDED: f64 = 0.5;
/// They wait for each other only if together they have this share of the processors' time; else another program has it.
const OWN: f64 = 0.75;

/// What happened to one thread between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Span {
    /// Seconds on a processor.
    pub run_s: f64,
    /// Seconds in which it was ready and had none. `None`: the kernel does not count them.
    pub wait_s: Option<f64>,
    /// How often it was given a processor.
    pub times: f64,
}

/// What happened to the threads of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Witnessed {
    /// Seconds on a processor, over all threads together.
    pub processor_s: f64,
    /// Seconds in which a thread was ready and had no processor, over all threads together. `None`: the kernel does not count them.
    pub wait_s: Option<f64>,
    /// The same for the thread that waited longest.
    pub longest_wait_s: Option<f64>,
    /// How much earlier the step would have ended if no thread had waited: the longest wait of a thread that also ran, unless more is known, see [`Witnessed::by_team`].
    /// `None`: the kernel counts no waits.
    pub delay_s: Option<f64>,
    /// How long another program held a thread up: the longest wait beyond the time for waking, or, if waits are not counted, an estimate from the
    /// involuntary switches. `None`: more threads were ready than there are processors, so they waited for each other.
    pub interrupted_s: Option<f64>,
    /// `None`: nobody counted them.
    pub events: Option<Events>,
}

impl Witnessed {
    /// The sum over a step's threads, which may use `processors` processors.
    pub fn of(threads: &[Span], events: Option<Events>, processors: usize) -> Self {
        let waits = || threads.iter().map(|thread| thread.wait_s);
        let ready = || threads.iter().map(|thread| thread.run_s + thread.wait_s.unwrap_or(0.0));
        let longest = ready().fold(0.0, f64::max);
        let processor_s: f64 = threads.iter().map(|thread| thread.run_s).sum();
        let most_s = processors as f64 * longest;
        let crowded = ready().sum::<f64>() > most_s + CROWDED * longest && processor_s > OWN * most_s;
        let beyond = |thread: &Span| Some((thread.wait_s? - thread.times * WAKE_S).max(0.0));
        let switches = events.map(|events| events.involuntary_switches);
        let mut waits_of_those_that_ran =
            threads.iter().filter(|thread| thread.run_s > 0.0).map(|thread| thread.wait_s);
        let interrupted: Option<f64> = threads.iter().map(beyond).try_fold(0.0, |most, one| Some(f64::max(most, one?)));
        Self {
            processor_s,
            wait_s: waits().sum(),
            longest_wait_s: waits().try_fold(0.0, |most, one| Some(f64::max(most, one?))),
            delay_s: waits_of_those_that_ran.try_fold(0.0, |most, one| Some(f64::max(most, one?))),
            interrupted_s: interrupted.or(switches.map(|number| number * SLICE_S)).filter(|_| !crowded),
            events,
        }
    }

    /// The same for `threads` threads that share the work of a step of `step_s` seconds and, over all of them, only polled for `polled_s` seconds. Without waits each would do an equal part of
    /// the work, so serial parts count as delay, too. It is known also where the kernel counts no waits.
    pub fn by_team(self, step_s: f64, threads: usize, polled_s: f64) -> Self {
        let work_s = (self.processor_s - polled_s) / threads as f64;
        Self { delay_s: Some(step_s - work_s), ..self }
    }

    /// What its waits come from: `schedstat`, or `switches` where the kernel counts no waits.
    pub fn source(&self) -> &'static str {
        if self.wait_s.is_some() { "schedstat" } else { "switches" }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(run_s: f64, wait_s: f64) -> Span {
        Span { run_s, wait_s: Some(wait_s), times: 1.0 }
    }

    /// A thread that sleeps between pieces of work is woken many times.
    #[test]
    fn waking_is_no_interruption() {
        let threads = [Span { times: 10.0, ..span(1e-3, 0.4e-3) }, span(1e-3, 0.0)];
        let seen = Witnessed::of(&threads, Some(Events::default()), 2);
        assert_eq!((seen.longest_wait_s, seen.interrupted_s), (Some(0.4e-3), Some(0.0)));
    }

    #[test]
    fn threads_that_wait_for_each_other_say_nothing_about_other_programs() {
        let interrupted =
            |threads: &[Span], processors| Witnessed::of(threads, Some(Events::default()), processors).interrupted_s;
        let threads = [span(0.5, 0.5), span(0.5, 0.5), span(0.5, 0.5), span(0.5, 0.5)];
        assert_eq!(interrupted(&threads, 2), None);
        assert!(interrupted(&threads, 4).is_some());
        // The thread that hands work out runs for a moment.
        assert!(interrupted(&[span(0.9, 0.1), span(1.0, 0.0), span(0.1, 0.0)], 2).is_some());
        // Another program has the second processor: three threads are ready, and one of them works.
        assert!(interrupted(&[span(1.0, 0.0), span(0.0, 1.0), span(0.0, 1.0)], 2).is_some());
    }

    /// The work of a thread that did not run was done by others.
    #[test]
    fn a_delay_is_the_longest_wait_of_a_thread_that_ran() {
        let delay = |threads: &[Span]| Witnessed::of(threads, None, 2).delay_s.expect("waits are counted");
        assert_eq!(delay(&[span(0.5, 0.25)]), 0.25);
        assert_eq!(delay(&[span(0.5, 0.0), span(0.5, 0.75)]), 0.75);
        assert_eq!(delay(&[span(1.0, 0.0), span(0.0, 1.0)]), 0.0);
        assert_eq!(Witnessed::of(&[Span { run_s: 1.0, ..Span::default() }], None, 2).delay_s, None);
    }

    /// Two threads share work of 2 s. In the first step one waits for 1 s and the other polls meanwhile; in the second the other does all the work.
    #[test]
    fn what_a_team_did_says_how_long_its_step_would_have_taken() {
        let delay = |threads: &[Span], polled_s: f64| Witnessed::of(threads, None, 2).by_team(2.0, 2, polled_s).delay_s;
        assert_eq!(delay(&[span(2.0, 0.0), span(1.0, 1.0)], 1.0), Some(1.0));
        assert_eq!(delay(&[span(2.0, 0.0), span(0.0, 2.0)], 0.0), Some(1.0));
        let unknown = Witnessed::of(&[Span { run_s: 2.0, ..Span::default() }], None, 2);
        assert_eq!(unknown.by_team(1.25, 2, 0.0).delay_s, Some(0.25));
    }

    #[test]
    fn involuntary_switches_replace_waits_that_nobody_counts() {
        let events = Events { involuntary_switches: 2.0, ..Events::default() };
        let seen = Witnessed::of(&[Span { run_s: 0.5, ..Span::default() }], Some(events), 2);
        assert_eq!((seen.source(), seen.interrupted_s), ("switches", Some(2.0 * SLICE_S)));
    }
}
