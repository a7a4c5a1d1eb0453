//! Which of our own operators makes a step fail: the step is checked with a library's calls in place of each of them, one operator after another, then of
//! all. What the step needs to pass is replaced, and nothing else.

use super::{Answer, Checking, Fault, Subject};
use crate::engine::{Replacement, Workload};
use crate::error::Result;

impl Checking<'_> {
    /// Whether calls of a library make a step pass that fails; they are in force from then on.
    pub(super) fn replaces(&mut self, subject: &Subject, fault: &Fault) -> Result<bool> {
        let batch_size = subject.sizes[1];
        let workload = Workload { network: subject.network.clone(), batch_size, settings: subject.settings.clone() };
        let mut candidates = self.engines.get(subject.engine)?.replaceable(&workload);
        candidates.retain(|operator| self.replaced.iter().all(|before| before.operator != *operator));
        let needed = self.needed(subject, &candidates, fault)?;
        for operator in &needed {
            self.witness.notes(&format!(
                "{operator}: the kernels of batchstep's own failed ({}); a library computes it in this run",
                fault.why
            ));
        }
        self.replaced = self.with(&needed, fault);
        let replaced = self.replaced.clone();
        self.engines.get(subject.engine)?.replace(&replaced);
        Ok(!needed.is_empty())
    }

    /// One operator that suffices; else all, but for those that the step passes without. Empty where all do not suffice.
    fn needed(&mut self, subject: &Subject, candidates: &[&'static str], fault: &Fault) -> Result<Vec<&'static str>> {
        for &operator in candidates {
            if self.passes_with(subject, &[operator], fault)? {
                return Ok(vec![operator]);
            }
        }
        if candidates.len() < 2 || !self.passes_with(subject, candidates, fault)? {
            return Ok(Vec::new());
        }
        let mut needed = candidates.to_vec();
        for operator in candidates.iter().filter(|_| candidates.len() > 2) {
            let fewer: Vec<&'static str> = needed.iter().copied().filter(|other| other != operator).collect();
            if fewer.len() > 1 && self.passes_with(subject, &fewer, fault)? {
                needed = fewer;
            }
        }
        Ok(needed)
    }

    fn passes_with(&mut self, subject: &Subject, operators: &[&'static str], fault: &Fault) -> Result<bool> {
        let replaced = self.with(operators, fault);
        Ok(matches!(self.answer(subject, &replaced)?, Answer::Passed))
    }

    /// Those that are replaced already, and these.
    fn with(&self, operators: &[&'static str], fault: &Fault) -> Vec<Replacement> {
        let more = operators.iter().map(|&operator| Replacement { operator, why: fault.why.clone() });
        self.replaced.iter().cloned().chain(more).collect()
    }
}

/// ` with a library in place of batch_norm`, for messages; nothing where nothing is replaced.
pub(super) fn with(replaced: &[Replacement]) -> String {
    let operators: Vec<&str> = replaced.iter().map(|replacement| replacement.operator).collect();
    if operators.is_empty() { String::new() } else { format!(" with a library in place of {}", operators.join(", ")) }
}
