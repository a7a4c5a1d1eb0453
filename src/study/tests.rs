//! Runs studies in memory.

use std::cell::RefCell;
use std::sync::atomic::AtomicBool;

use super::*;
use crate::device::Covariates;
use crate::device::fake::Fake;

/// What a study left.
pub struct Ran<S: Study> {
    pub rows: Vec<S::Row>,
    pub details: Vec<S::Detail>,
    pub outcome: Outcome,
    /// What the user reads.
    pub said: Vec<String>,
}

struct StoredVisit<S: Study>(RefCell<Visit<S>>);

impl<S: Study> RowSink<S> for StoredVisit<S> {
    fn append(&self, visit: &Visit<S>) -> Result<()> {
        let mut all = self.0.borrow_mut();
        all.rows.extend_from_slice(&visit.rows);
        all.details.extend_from_slice(&visit.details);
        Ok(())
    }
}

#[derive(Default)]
struct Silent(Vec<String>);

impl Observer for Silent {
    fn visited(&mut self, _: &str, _: Progress) {}

    fn warn(&mut self, message: &str) {
        self.0.push(message.to_owned());
    }
}

/// Runs a study on open engines, all cells checked before, continuing after the rows in `stored`.
pub fn in_memory<S: Study>(spec: &S, mut engines: Engines, supplies: &S::Supplies, stored: &[S::Row]) -> Ran<S> {
    let data = spec.data().expect("data");
    let plan = spec.plan(&data, &mut engines).expect("a plan");
    let facts = RowContext::new("t".into(), &plan.steps, &mut engines).expect("facts");
    let (mut observer, mut device) = (Silent::default(), Fake::new(Covariates::default()));
    let bench = Bench {
        spec,
        plan: &plan,
        data: &data,
        supplies,
        facts: facts.with_qualified(vec![Some(true); plan.cells.len()]),
        engines: &mut engines,
        device: &mut device,
        observer: &mut observer,
        interrupted: &AtomicBool::new(false),
    };
    let memory = StoredVisit(RefCell::new(Visit { rows: Vec::new(), details: Vec::new() }));
    let outcome = carry_out(bench, &memory, stored).expect("it runs");
    let Visit { rows, details } = memory.0.into_inner();
    Ran { rows, details, outcome, said: observer.0 }
}
