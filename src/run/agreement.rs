//! Where the tests during a run and the analysis of all its steps differ.
//!
//! The tests decide at each boundary from cells of the neighbourhood, the detector from the whole curve with its bends and periods. Both are
//! right with the stated rates, so that they differ now and then; a jump that only one of them shows is not proven.

use super::Decision;
use crate::detect::Jump;

/// Places along the axis of a series after which only one of the two shows a jump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Disagreement {
    pub only_the_tests: Vec<usize>,
    pub only_the_analysis: Vec<usize>,
}

impl Disagreement {
    /// Compares the decisions at the boundaries after the places `x` with the jumps that were found. The tests look only for jumps of
    /// `smallest_jump` or more.
    pub fn between(decisions: &[(usize, Decision)], x: &[f64], found: &[Jump], smallest_jump: f64) -> Self {
        let mut own = Self::default();
        let position = |after: f64| x.iter().position(|x| *x == after);
        // Two places one boundary apart are the same jump.
        let is_near = |k: usize| move |jump: &Jump| position(jump.after).is_some_and(|j| j.abs_diff(k) <= 1);
        for &(k, decision) in decisions {
            let shown = |jump: &Jump| jump.after == x[k] && jump.relative.abs() >= smallest_jump;
            match decision {
                Decision::Jump if !found.iter().any(is_near(k)) => own.only_the_tests.push(k),
                Decision::NoJump if found.iter().any(shown) => own.only_the_analysis.push(k),
                _ => {}
            }
        }
        own
    }

    pub fn is_none(&self) -> bool {
        self.only_the_tests.is_empty() && self.only_the_analysis.is_empty()
    }
}
