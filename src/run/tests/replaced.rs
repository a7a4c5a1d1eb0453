//! A sweep on a GPU whose max-pooling is wrong: checked, measured with a library's calls, and stored with the reason.

use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::AtomicBool;

use super::Said;
use crate::cache::Cache;
use crate::device::fake::Fake;
use crate::engine::cudnn::emulated::{EmulatedEngine, Fault, REPLACEABLE_NETWORK, emulator};
use crate::engine::cudnn::engine::CudnnEngine;
use crate::engine::cudnn::recorded;
use crate::engine::cudnn::replacement::{MAX_POOL, REPLACEABLE};
use crate::engine::open::Engines;
use crate::engine::{Engine, Replacement};
use crate::plan::Plan;
use crate::qualification::{self, Asked, Witness};
use crate::run::environment::RunEnvironment;
use crate::run::{Bench, History, RunFacts, run};
use crate::settings::EngineName;
use crate::spec::Experiment;
use crate::store::{Begin, RunDirectory, Table, files};

const SPEC: &str = "version = 1\nname = \"replaced\"\n[model]\nname = \"small\"\ninput = [3, 8, 8]\nclasses = 4\n\
                    [[model.layers]]\ntype = \"conv2d\"\nout_channels = 4\nkernel = 3\npadding = 1\n\
                    [[model.layers]]\ntype = \"relu\"\n\
                    [[model.layers]]\ntype = \"max_pool2d\"\nkernel = 2\n\
                    [[model.layers]]\ntype = \"flatten\"\n\
                    [[model.layers]]\ntype = \"dense\"\nout_features = 4\n\
                    [sweep]\nbatch_size = [2, 3]\n[engine]\nname = \"cudnn\"\n\
                    [measure]\nlayers = true\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 1\n";

struct Silent;

impl Witness for Silent {
    fn begins(&mut self, _: &str) {}

    fn notes(&mut self, _: &str) {}
}

#[test]
fn the_rows_of_a_layer_say_which_kernels_a_library_took_the_place_of_and_why() {
    if emulator().is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().as_os_str().to_owned();
    let cache = Cache::of_user("qualified", &move |name| (name == "XDG_CACHE_HOME").then(|| home.clone()));
    let experiment = Experiment::parse(SPEC, "replaced.toml").unwrap();
    let plan = Plan::new(&experiment).unwrap();
    let engine = EmulatedEngine::with(&[(MAX_POOL, Fault::Zeros)]);
    let mut engines = Engines::of(EngineName::Cudnn, Box::new(engine));
    let qualified = qualification::settle(&plan, &mut engines, Asked::Gpu, &cache, &mut Silent).unwrap();

    let path = folder.path().join("run");
    let directory = RunDirectory::open(&path, &experiment.to_toml(), Begin::Anew).unwrap().directory;
    let mut device = Fake::steady(1e9);
    let environment = RunEnvironment::begin("replaced", &plan, &mut engines, &mut device);
    directory.write_text(files::ENVIRONMENT, &environment.to_json()).unwrap();
    let facts = RunFacts::new(environment.run_id, &plan, &mut engines).unwrap();
    let mut said = Said::default();
    let bench = Bench {
        plan: &plan,
        measure: &experiment.measure,
        facts: facts.with_qualified(qualified.cells),
        engines: &mut engines,
        device: &mut device,
        witness: None,
        ledger: &directory,
        observer: &mut said,
        interrupted: &AtomicBool::new(false),
        hung: &|error| panic!("{error}"),
    };
    let outcome = run(bench, History::new(&plan)).unwrap();
    let sealed = directory.seal(&outcome, &outcome.cells, outcome.complete).unwrap();
    assert_eq!(sealed.complete, outcome.complete);

    let layers = RunDirectory::layers_of(&path).unwrap();
    let (pooled, others): (Vec<_>, Vec<_>) = layers.iter().partition(|row| row.operation == "max_pool2d");
    // Forward, and the gradient of the input, at two batch sizes.
    assert_eq!(pooled.len(), 4);
    for row in pooled {
        let why = row.replaced.as_deref().unwrap_or_default();
        assert!(why.starts_with("max_pool2d: max_pool2d_3 (") && why.contains("off by"), "{why}");
    }
    assert!(others.iter().all(|row| row.replaced.is_none()) && !others.is_empty());
    let steps = Table::read(&path.join(files::STEPS), &["qualified"]).unwrap();
    assert!(steps.numbers("qualified").unwrap().iter().all(|qualified| *qualified == 1.0));
}

/// In a process of its own, as every recording.
#[test]
fn the_gpus_engine_calls_cudnn_and_none_of_the_kernels_that_are_replaced() {
    const NAME: &str = "run::tests::replaced::the_gpus_engine_calls_cudnn_and_none_of_the_kernels_that_are_replaced";
    const CHILD: &str = "BATCHSTEP_TEST_REPLACED";
    if std::env::var_os(CHILD).is_none() {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.args([NAME, "--exact", "--nocapture"]).env(CHILD, "1").output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        return;
    }
    recorded::begin(None);
    let rest =
        "[sweep]\nbatch_size = [3]\n[train]\nprecision = \"fp32\"\n[engine]\nname = \"cudnn\"\nlaunch = \"graph\"\n";
    let spec = format!("{REPLACEABLE_NETWORK}{rest}");
    let plan = Plan::new(&Experiment::parse(&spec, "all.toml").unwrap()).unwrap();
    let mut workload = plan.cells[0].workload.clone();
    let mut engine = CudnnEngine::recorded().unwrap();
    workload.settings = engine.in_force(&workload.settings).unwrap();
    assert_eq!(engine.replaceable(&workload), REPLACEABLE);
    let replaced = |operator| Replacement { operator, why: "it is off by 1".to_owned() };
    engine.replace(&REPLACEABLE.map(replaced));
    assert!(engine.replaceable(&workload).is_empty(), "our own kernels still run");
    let mut step = engine.prepare(&workload).unwrap();
    step.run().unwrap();
    let called: BTreeSet<&str> = recorded::called().keys().map(|call| call.name).collect();
    let wanted = [
        "cudnnPoolingForward",
        "cudnnPoolingBackward",
        "cudnnBatchNormalizationForwardTraining",
        "cudnnBatchNormalizationBackward",
    ];
    assert!(wanted.iter().all(|name| called.contains(name)), "{called:?}");
    let layers = step.layers();
    let of = |operation: &str, direction: &str| {
        let mut rows = layers.iter().filter(|row| row.operation == operation && row.direction == direction);
        rows.next_back().map(|row| (row.algorithm.clone().unwrap_or_default(), row.replaced.clone())).unwrap()
    };
    let because = |operator: &str| Some(format!("{operator}: it is off by 1"));
    assert_eq!(of("max_pool2d", "forward"), ("cudnn:cudnnPoolingForward".into(), because(MAX_POOL)));
    let (algorithm, replaced) = of("batch_norm", "backward_data");
    assert_eq!((algorithm.as_str(), replaced), ("cudnn:cudnnBatchNormalizationBackward", because("batch_norm")));
    let (algorithm, replaced) = of("depthwise_conv2d", "forward");
    assert!(!algorithm.contains("kernel:depthwise") && replaced == because("depthwise_conv2d"), "{algorithm}");
    assert_eq!(of("dense", "forward").1, None);
}
