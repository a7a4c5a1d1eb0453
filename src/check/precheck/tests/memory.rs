//! What a pass is remembered by: whatever of it changes, the step is checked again.

use super::*;
use crate::settings::{Launch, Layout, Precision, Winograd};

/// The CPU's engine under other names, which takes every setting and computes as it always does.
struct Named {
    cpu: CpuEngine,
    device: DeviceName,
    version: &'static str,
    algorithms: &'static str,
    /// What takes the place of those algorithms once a step has been prepared.
    after: Option<&'static str>,
}

fn named() -> Named {
    let device = DeviceName { id: "cuda:0".into(), name: "a GPU".into(), multiprocessors: None };
    Named { cpu: CpuEngine::cpu(None), device, version: "1", algorithms: "eng1", after: None }
}

impl Engine for Named {
    fn device(&self) -> &DeviceName {
        &self.device
    }

    fn version(&self) -> Option<String> {
        Some(self.version.to_owned())
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        Ok(asked.clone())
    }

    fn algorithms(&mut self, _: &Workload) -> Result<Vec<(usize, String)>> {
        match self.algorithms {
            "" => Err(Error::engine("no plan")),
            name => Ok(vec![(1, name.to_owned())]),
        }
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        self.algorithms = self.after.unwrap_or(self.algorithms);
        let Settings { optimizer, learning_rate, loss, seed, examples, .. } = workload.settings;
        let settings = Settings { optimizer, learning_rate, loss, seed, examples, ..Settings::default() };
        self.cpu.prepare(&Workload { settings, ..workload.clone() })
    }
}

/// A plan at the two batch sizes that are checked, with a change of its settings.
fn plan_with(change: fn(&mut Settings)) -> Plan {
    let mut plan = plan(
        "version = 1\nname = \"a\"\n[model]\nname = \"mlp\"\n[sweep]\nbatch_size = [2, 3]\n[engine]\nname = \"candle\"",
    );
    plan.cells.iter_mut().for_each(|cell| change(&mut cell.workload.settings));
    plan
}

/// How often something is checked.
fn checks(engine: Named, plan: &Plan, cache: &Cache) -> usize {
    let mut engines = Engines::of(EngineName::Candle, Box::new(engine));
    let (cells, said) = asked_of(plan, &mut engines, Asked::Every, cache);
    assert_eq!(cells, Ok(vec![Some(true); 2]), "{said:?}");
    said.iter().filter(|line| line.starts_with("checking")).count()
}

fn as_before(_: &mut Settings) {}

#[test]
fn unchecked_algorithms_are_checked_and_checked_ones_are_not() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan_with(as_before);
    let checks = |algorithms| checks(Named { algorithms, ..named() }, &plan, &cache(&folder));
    assert_eq!([checks("eng1"), checks("eng1")], [1, 0]);
    assert_eq!([checks("eng2"), checks("eng2"), checks("eng1")], [1, 0, 0]);
}

/// A library refuses the first algorithm when it runs, so the check applies to its replacement.
#[test]
fn a_pass_belongs_to_the_algorithms_that_were_in_force_after_the_check() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan_with(as_before);
    let checks = |algorithms, after| checks(Named { algorithms, after, ..named() }, &plan, &cache(&folder));
    assert_eq!(checks("eng1", Some("eng2")), 1);
    assert_eq!(checks("eng2", None), 0);
    assert_eq!(checks("eng1", None), 1);
}

/// If an engine cannot report the algorithms that it would run, no pass is remembered, and no earlier pass is used.
#[test]
fn nothing_is_remembered_of_a_step_whose_algorithms_are_not_known() {
    let folder = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let mut engines = Engines::of(EngineName::Candle, Box::new(Named { algorithms: "", ..named() }));
        let (cells, said) = asked_of(&plan_with(as_before), &mut engines, Asked::Every, &cache(&folder));
        assert_eq!(cells, Ok(vec![Some(false); 2]));
        assert!(said[0].starts_with("checking"), "{said:?}");
    }
}

#[test]
fn every_setting_library_and_device_is_part_of_a_remembered_check() {
    type Change = fn(&mut Settings);
    let settings: [(&str, Change); 10] = [
        ("precision", |settings| settings.precision = Precision::Bf16),
        ("layout", |settings| settings.layout = Layout::Nhwc),
        ("launch", |settings| settings.launch = Launch::Graph),
        ("streams", |settings| settings.streams = 2),
        ("winograd", |settings| settings.winograd = Winograd::Never),
        ("workspace", |settings| settings.workspace_limit = Some(1)),
        ("learning rate", |settings| settings.learning_rate *= 2.0),
        ("optimizer", |settings| settings.optimizer = crate::settings::Optimizer::Momentum),
        ("seed", |settings| settings.seed += 1),
        ("algorithms", |settings| settings.algorithms = crate::settings::Algorithms::Autotune),
    ];
    let folder = tempfile::tempdir().unwrap();
    let cache = cache(&folder);
    assert_eq!(checks(named(), &plan_with(as_before), &cache), 1);
    for (name, change) in settings {
        let of = |change: Change| plan_with(change).cells[0].workload.settings.clone();
        assert_ne!(of(change), of(as_before), "another {name}");
        let again = [(); 2].map(|()| checks(named(), &plan_with(change), &cache));
        assert_eq!(again, [1, 0], "another {name}");
    }
    type Other = fn() -> Named;
    let engines: [(&str, Other); 3] = [
        ("version of the libraries", || Named { version: "2", ..named() }),
        ("index", || Named { device: DeviceName { id: "cuda:1".into(), ..named().device }, ..named() }),
        ("name", || Named { device: DeviceName { name: "another GPU".into(), ..named().device }, ..named() }),
    ];
    for (name, engine) in engines {
        let again = [(); 2].map(|()| checks(engine(), &plan_with(as_before), &cache));
        assert_eq!(again, [1, 0], "another {name}");
    }
    // The first is still known.
    assert_eq!(checks(named(), &plan_with(as_before), &cache), 0);
}

/// What a test cannot change: this program and the driver of this machine.
#[test]
fn the_program_and_the_driver_are_part_of_a_remembered_check() {
    let plan = plan_with(as_before);
    let Cell { workload, .. } = &plan.cells[0];
    let (network, settings) = (workload.network.clone(), workload.settings.clone());
    let subject = ComparedStep { engine: EngineName::Candle, network, settings, sizes: [2, 3] };
    let facts = subject.facts_of_step(&mut named()).unwrap();
    assert!(facts[0].starts_with(&format!("batchstep {}, ", env!("CARGO_PKG_VERSION"))), "{facts:?}");
    assert_eq!(facts[3], nvml::driver().version.unwrap_or_default());
    assert_eq!(facts[facts.len() - 2..], ["1 eng1", "1 eng1"]);
}
