//! Tests that measure real time.

use std::time::Instant;

use super::missing;

/// Why an attempt did not succeed.
pub enum Failure {
    /// The measurement itself reports that the machine's noise hides the requested result.
    Noise(String),
    Wrong(String),
}

impl From<String> for Failure {
    fn from(what: String) -> Self {
        Self::Wrong(what)
    }
}

/// Lets `attempt` measure real time, at most twice: one attempt must succeed. The test is skipped if neither does and
/// if, in both, the measurement reports too much noise or other processes took more than a tenth of a core.
///
/// # Panics
/// With the attempts' messages, if one of them failed on a quiet machine.
pub fn quiet(mut attempt: impl FnMut() -> Result<(), Failure>) {
    let (mut noises, mut wrongs) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let (before, watch) = (ticks(), Instant::now());
        let Err(failure) = attempt() else { return };
        let seconds = watch.elapsed().as_secs_f64();
        let others = before.zip(ticks()).map_or(0.0, |(before, after)| taken_by_others(before, after, seconds));
        match failure {
            Failure::Noise(what) => noises.push(what),
            Failure::Wrong(_) if others > 0.1 => {
                noises.push(format!("others took {:.0} % of a core's time", 100.0 * others))
            }
            Failure::Wrong(what) => wrongs.push(what),
        }
    }
    assert!(wrongs.is_empty(), "{}", wrongs.join("\n"));
    missing("quiet", noises.join("; "));
}

/// The time for which this machine's processors were busy so far, and the processor time of this process and its ended
/// children, in clock ticks; proc(5).
fn ticks() -> Option<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> = stat.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal.
    let [user, nice, system, _, _, irq, softirq, steal, ..] = fields[..] else { return None };
    let own = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which is in brackets: utime, stime, cutime and cstime are the 14th to the 17th field, from 1.
    let own = own.rsplit_once(") ")?.1.split(' ').skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum();
    Some((user + nice + system + irq + softirq + steal, own))
}

/// The share of one core's time that other processes took between two readings, the second `seconds` after the first.
fn taken_by_others(before: (u64, u64), after: (u64, u64), seconds: f64) -> f64 {
    let others = (after.0 - before.0).saturating_sub(after.1 - before.1);
    // USER_HZ is 100 wherever Linux runs.
    others as f64 / 100.0 / seconds
}
