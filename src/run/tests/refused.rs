//! A library that refuses an algorithm in the middle of a run.

use std::cell::Cell as Mutable;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use super::Said;
use crate::device::fake::Fake;
use crate::engine::cpu::CpuEngine;
use crate::engine::open::Engines;
use crate::engine::{DeviceName, Engine, Settings, Step, Workload};
use crate::error::Result;
use crate::plan::Plan;
use crate::run::{Bench, History, RunFacts, run};
use crate::settings::EngineName;
use crate::spec::Experiment;
use crate::store::{Begin, RunDirectory, Table, files};

const SPEC: &str = "version = 1\nname = \"refused\"\n[model]\nname = \"mlp\"\n[sweep]\nbatch_size = [2, 3]\n[train]\noptimizer = [\"sgd\", \"adam\"]\n\
                    [engine]\nname = \"cpu\"\n[measure]\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 1\n";

/// Refuses an algorithm when the first step of three examples is prepared.
struct Refusing(CpuEngine, Rc<Mutable<bool>>);

impl Engine for Refusing {
    fn device(&self) -> &DeviceName {
        self.0.device()
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        self.0.in_force(asked)
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        self.1.set(self.1.get() || workload.batch_size == 3);
        self.0.prepare(workload)
    }

    fn refusals(&self) -> Vec<String> {
        if self.1.get() { vec!["eng7 was refused when it was executed: NOT_SUPPORTED".to_owned()] } else { Vec::new() }
    }
}

#[test]
fn what_takes_the_place_of_a_refused_algorithm_is_not_called_checked() {
    let folder = tempfile::tempdir().expect("a folder");
    let experiment = Experiment::parse(SPEC, "refused.toml").expect("a spec");
    let plan = Plan::new(&experiment).expect("a plan");
    let engine = Refusing(CpuEngine::cpu(Some(1)), Rc::default());
    let mut engines = Engines::of(EngineName::Cpu, Box::new(engine));
    let path = folder.path().join("run");
    let directory = RunDirectory::open(&path, &experiment.to_toml(), Begin::Anew).expect("a run").directory;
    directory.write_text(files::ENVIRONMENT, "{}").expect("written");
    let facts = RunFacts::new("refused-1".to_owned(), &plan, &mut engines).expect("facts");
    let mut said = Said::default();
    let bench = Bench {
        plan: &plan,
        measure: &experiment.measure,
        facts: facts.with_qualified(vec![Some(true); plan.cells.len()]),
        engines: &mut engines,
        device: &mut Fake::steady(1e9),
        ledger: &directory,
        observer: &mut said,
        interrupted: &AtomicBool::new(false),
        hung: &|error| panic!("{error}"),
    };
    let outcome = run(bench, History::new(&plan)).expect("it runs");
    directory.seal(&outcome, &outcome.cells, outcome.complete).expect("sealed");
    let steps = Table::read(&path.join(files::STEPS), &["batch_size", "qualified"]).expect("read");
    let [sizes, qualified] = ["batch_size", "qualified"].map(|name| steps.numbers(name).expect("numbers"));
    // With both optimizers, which have their layers in common.
    for (size, qualified) in sizes.into_iter().zip(qualified) {
        assert_eq!(qualified, f64::from(u8::from(size == 2.0)), "at {size}");
    }
    let told: Vec<&String> = said.0.iter().filter(|line| line.contains("eng7 was refused")).collect();
    assert!(told.len() == 1 && told[0].contains("`qualified` = false"), "{:?}", said.0);
}
