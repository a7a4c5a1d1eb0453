//! The report of a process on a step, and on the threads that computed it.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::device::witness::{Span, Witnessed};
use crate::device::witnessed::Events;
use crate::engine::{StepTimes, processor};

/// Asking takes longer than a short step.
pub(super) static CORES: LazyLock<usize> = LazyLock::new(processor::cores);

/// The times of a step, as a process answers them.
#[derive(Deserialize)]
pub struct AnsweredTimes {
    #[serde(flatten)]
    times: StepTimes,
    /// A text, since JSON cannot represent not-a-number.
    loss: Option<String>,
    #[serde(flatten)]
    accounts: Accounts,
}

impl AnsweredTimes {
    pub fn times(self) -> StepTimes {
        let loss = self.loss.and_then(|loss| loss.parse().ok());
        StepTimes { loss, witnessed: self.accounts.witnessed(), ..self.times }
    }
}

/// As `python/witness.py` writes it, or a person's own program, which need not know all of it.
#[derive(Debug, Default, Deserialize)]
struct Accounts {
    /// For each thread seconds on a processor, seconds of waiting for one, and how often it was given one.
    threads: Option<Vec<(f64, f64, f64)>>,
    /// Processor time of all threads together, where they are not known one by one.
    cpu_s: Option<f64>,
    page_faults: Option<f64>,
    voluntary_switches: Option<f64>,
    involuntary_switches: Option<f64>,
}

impl Accounts {
    /// `None` if the report does not contain processor time.
    fn witnessed(&self) -> Option<Witnessed> {
        let span = |&(run_s, wait_s, times): &(f64, f64, f64)| Span { run_s, wait_s: Some(wait_s), times };
        let threads: Vec<Span> = match (&self.threads, self.cpu_s) {
            (Some(threads), _) if !threads.is_empty() => threads.iter().map(span).collect(),
            (_, Some(run_s)) => vec![Span { run_s, ..Span::default() }],
            _ => return None,
        };
        let events = Events {
            voluntary_switches: self.voluntary_switches.unwrap_or(0.0),
            involuntary_switches: self.involuntary_switches.unwrap_or(0.0),
            page_faults: self.page_faults.unwrap_or(0.0),
        };
        // It may use the processors that this process may.
        Some(Witnessed::of(&threads, Some(events), *CORES))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn witnessed(text: &str) -> Option<Witnessed> {
        serde_json::from_str::<Accounts>(text).expect("accounts").witnessed()
    }

    #[test]
    fn a_program_reports_what_it_knows_about_its_threads() {
        let seen = witnessed(r#"{"threads": [[0.5, 0.25, 1], [0.5, 0.0, 1]], "page_faults": 3}"#).expect("threads");
        assert_eq!((seen.processor_s, seen.wait_s, seen.longest_wait_s), (1.0, Some(0.25), Some(0.25)));
        assert_eq!((seen.source(), seen.events.map(|events| events.page_faults)), ("schedstat", Some(3.0)));
        let seen = witnessed(r#"{"cpu_s": 0.5, "involuntary_switches": 2}"#).expect("a sum");
        assert_eq!((seen.processor_s, seen.wait_s, seen.source()), (0.5, None, "switches"));
        assert!(seen.interrupted_s > Some(0.0));
        assert_eq!(witnessed("{}"), None);
    }
}
