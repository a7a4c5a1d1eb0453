//! A library's calls in place of kernels of our own that fail: those that computed the part of the step at fault; where no part is, all that there are.

use super::fault::Fault;
use super::{Checking, Subject};
use crate::engine::Replacement;
use crate::error::{Kind, Result};

impl Checking<'_> {
    /// Whether there is something to replace; it is in force from the next check on, which says whether it mends the step.
    pub(super) fn replaces(&mut self, subject: &Subject, fault: &Fault) -> Result<bool> {
        // Wrong numbers may come from any kernel of ours. A refusal concerns a kernel only if a part that it computes is refused for a reason of that kernel,
        // not because memory is short or a graph cannot be captured.
        let has_place = fault.error.kind() == Kind::Device || fault.operators.is_some();
        if fault.error.is_no_kernels_fault() || !has_place {
            return Ok(false);
        }
        let workload = subject.workload(subject.sizes[1]);
        let engine = self.engines.get(subject.engine)?;
        let mut operators = engine.replaceable(&workload);
        operators.retain(|operator| fault.operators.as_ref().is_none_or(|own| own.contains(operator)));
        // After a fault of a kernel CUDA refuses every call, and nothing can be learnt any more.
        if operators.is_empty() || engine.still_works().is_err() {
            return Ok(false);
        }
        let replacement = |operator| Replacement { operator, why: fault.why.clone() };
        self.replaced.extend(operators.into_iter().map(replacement));
        Ok(true)
    }

    /// Says what is replaced, once it is known to mend the step.
    pub(super) fn say_replaced(&mut self) {
        for Replacement { operator, why } in &self.replaced {
            let what = format!(
                "{operator}: a library computes it in this run, since the step failed with batchstep's own kernels: {why}"
            );
            self.witness.notes(&what);
        }
    }
}

/// ` with a library in place of batch_norm`, for messages; nothing where nothing is replaced.
pub(super) fn with(replaced: &[Replacement]) -> String {
    let operators: Vec<&str> = replaced.iter().map(|replacement| replacement.operator).collect();
    if operators.is_empty() { String::new() } else { format!(" with a library in place of {}", operators.join(", ")) }
}
