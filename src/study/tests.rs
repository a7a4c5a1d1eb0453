//! Runs studies in memory.

use std::sync::atomic::AtomicBool;

use super::*;
use crate::device::Covariates;
use crate::device::fake::Fake;
use crate::engine::open::DeviceChoice;
use crate::spec::{Section, parse_as};

/// What a study left.
pub struct Ran<S: Study> {
    pub rows: Vec<S::Row>,
    pub details: Vec<S::Detail>,
    pub outcome: Outcome,
    /// What the user reads.
    pub said: Vec<String>,
}

/// A spec of that kind called `t`, with these lines.
pub fn parse<S>(kind: &str, body: &str, of: fn(Section, &str) -> Result<S>) -> Result<S> {
    let text = format!("version = 1\nkind = \"{kind}\"\nname = \"t\"\n{body}");
    parse_as(&text, "t.toml", |_, section| of(section, "t.toml"))
}

/// The resolved specs read back the same.
pub fn read_back<S: Study>(studies: impl IntoIterator<Item = Result<S>>, spec: fn(Box<S>) -> Spec) {
    for study in studies {
        let study = study.expect("valid");
        let text = study.to_toml();
        assert_eq!(Spec::parse(&text, "again.toml").expect(&text), spec(Box::new(study)), "{text}");
    }
}

/// The engines of a spec on the CPU.
pub fn on_cpu(spec: &impl Study) -> Engines {
    Engines::open(&spec.subject().engine.name, DeviceChoice::Cpu, None).expect("engines")
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
    let (mut rows, mut details) = (Vec::new(), Vec::new());
    let outcome = carry_out(bench, stored, |visit| {
        rows.extend_from_slice(&visit.rows);
        details.extend_from_slice(&visit.details);
        Ok(())
    });
    Ran { rows, details, outcome: outcome.expect("it runs"), said: observer.0 }
}
