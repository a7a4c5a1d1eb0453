//! What is refused in the middle of a run: an algorithm by its library, a size by the step.

use super::Recorded;
use crate::device::fake::Fake;
use crate::engine::cpu::CpuEngine;
use crate::engine::open::Engines;
use crate::engine::refusing::Refusing;
use crate::engine::{DeviceName, Engine, Settings, Step, Workload};
use crate::error::{Error, Kind, Result};
use crate::run::History;
use crate::run::simulation::Listener;
use crate::settings::EngineName;
use crate::spec::Experiment;
use crate::spec::plan::Plan;
use crate::store::{Begin, Table, files};

const SPEC: &str = "version = 1\nname = \"refused\"\n[model]\nname = \"mlp\"\n[sweep]\nbatch_size = [2, 3]\n[train]\noptimizer = [\"sgd\", \"adam\"]\n\
                    [engine]\nname = \"cpu\"\n[measure]\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 1\n";

/// For each stored row: its batch size, whether it counts as checked and whether a step was timed.
type Rows = Vec<(f64, bool, bool)>;

/// The rows of a run, and the warnings that the user read.
fn rows_of(engine: impl Engine + 'static) -> Result<(Rows, Vec<String>)> {
    let folder = tempfile::tempdir().expect("a folder");
    let sweep = Recorded { during: |_| (), ..Recorded::new(SPEC, folder.path()) };
    let mut engines = Engines::of(EngineName::Cpu, Box::new(engine));
    let mut said = Listener::default();
    sweep.steps(Begin::Anew, &mut engines, &mut Fake::steady(1e9), Some(true), &mut said)?;
    let steps = Table::read(&sweep.path.join(files::STEPS), &["batch_size", "qualified", "step_time_s"]).expect("read");
    let [sizes, qualified, times] =
        ["batch_size", "qualified", "step_time_s"].map(|name| steps.numbers(name).expect("numbers"));
    let rows = sizes.into_iter().zip(qualified).zip(times);
    Ok((rows.map(|((size, qualified), time)| (size, qualified == 1.0, time.is_finite())).collect(), said.warnings))
}

/// The one line about the refusal.
fn refusal(said: &[String]) -> &str {
    let told: Vec<&String> = said.iter().filter(|line| line.contains(Refusing::SAID)).collect();
    let [told] = told.as_slice() else { panic!("{said:?}") };
    told
}

#[test]
fn what_takes_the_place_of_a_refused_algorithm_is_not_called_checked() {
    let (rows, said) = rows_of(Refusing::at(3)).expect("it runs");
    // With both optimizers, which have their layers in common.
    for (size, qualified, is_timed) in rows {
        assert!(is_timed && qualified == (size == 2.0), "at {size}");
    }
    assert!(refusal(&said).contains("`qualified` = false"), "{said:?}");
}

/// The step with the one optimizer fails once another algorithm has taken the place; the one with the other is measured with it.
#[test]
fn nor_is_it_where_the_step_that_met_the_refusal_fails() {
    let (rows, said) = rows_of(Refusing::at(3).with_full_memory()).expect("it runs");
    let timed = |at: f64| rows.iter().filter(move |(size, _, is_timed)| *size == at && *is_timed);
    assert!(timed(3.0).count() > 0 && timed(3.0).all(|(_, qualified, _)| !qualified), "{rows:?}");
    assert!(timed(2.0).count() > timed(3.0).count() && timed(2.0).all(|(_, qualified, _)| *qualified), "{rows:?}");
    assert!(refusal(&said).contains("`qualified` = false"), "{said:?}");
}

/// Refuses to prepare a step of 3 examples, as a person's `step` does that returns nothing at one size; or any step at all.
struct Partial {
    engine: CpuEngine,
    prepared: usize,
    refuses_all: bool,
}

impl Partial {
    fn new(refuses_all: bool) -> Self {
        Self { engine: CpuEngine::cpu(Some(1)), prepared: 0, refuses_all }
    }
}

impl Engine for Partial {
    fn device(&self) -> &DeviceName {
        self.engine.device()
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        self.engine.in_force(asked)
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        // Whichever size is visited first is prepared.
        if self.refuses_all || (workload.batch_size == 3 && self.prepared > 0) {
            return Err(Error::spec("step() returned NoneType"));
        }
        self.prepared += 1;
        self.engine.prepare(workload)
    }
}

#[test]
fn a_size_that_the_step_refuses_costs_only_that_size() {
    let (rows, said) = rows_of(Partial::new(false)).expect("it runs");
    let timed = |at: f64| rows.iter().filter(move |(size, _, is_timed)| *size == at && *is_timed).count();
    assert!(timed(2.0) > timed(3.0) && rows.iter().any(|(size, _, is_timed)| *size == 3.0 && !is_timed), "{rows:?}");
    assert!(said.iter().any(|line| line.contains("at batch size 3: step() returned NoneType")), "{said:?}");
}

#[test]
fn a_step_that_refuses_the_first_size_ends_the_run_and_says_which() {
    let error = rows_of(Partial::new(true)).expect_err("nothing runs");
    assert_eq!(error.kind(), Kind::Spec);
    let said = error.to_string();
    assert!(said.contains(" at batch size ") && said.contains(": step() returned NoneType"), "{said}");
}

#[test]
fn a_step_that_always_raises_is_not_tried_at_every_size() {
    let plan = Plan::new(&Experiment::parse(SPEC, "refused.toml").expect("a spec")).expect("a plan");
    let mut history = History::new(&plan);
    let ends: Vec<bool> = ["a", "a", "b", "b", "b", "b", "b"].iter().map(|what| history.all_fail_alike(what)).collect();
    assert_eq!(ends, [false, false, false, false, false, false, true]);
}
