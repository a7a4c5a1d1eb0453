mod later;
mod memory;
mod parts;
mod refused;

use super::*;
use crate::engine::cpu::CpuEngine;
use crate::engine::refusing::preparing;
use crate::engine::{DeviceName, Step};
use crate::spec::Experiment;

const SPEC: &str = "version = 1\nname = \"a\"\n[model]\nname = \"mnist_cnn\"\n[sweep]\nbatch_size = \"1..=3\"\n[train]\noptimizer = \"adam\"\n\
                    [engine]\nname = \"cpu\"";

fn plan(spec: &str) -> Plan {
    Plan::new(&Experiment::parse(spec, "a.toml").unwrap()).unwrap()
}

fn cache(folder: &tempfile::TempDir) -> Cache {
    let home = folder.path().as_os_str().to_owned();
    Cache::of_user("qualified", &move |name| (name == "XDG_CACHE_HOME").then(|| home.clone()))
}

/// The CPU's engine, except that `prepare` prepares its steps.
fn bad(prepare: impl FnMut(&mut CpuEngine, &Workload) -> Result<Box<dyn Step>> + 'static) -> Engines {
    Engines::of(EngineName::Cpu, Box::new(preparing(prepare)))
}

fn refusing(error: fn() -> Error) -> Engines {
    bad(move |_, _| Err(error()))
}

/// The CPU's engine, of which a part is refused: by a library, or by the driver for want of a graph.
struct WithoutPart(CpuEngine, &'static str);

impl Engine for WithoutPart {
    fn device(&self) -> &DeviceName {
        self.0.device()
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        self.0.in_force(asked)
    }

    fn take_apart(&mut self, _: &Workload, _: &mut dyn part::See) -> std::result::Result<(), part::Fault> {
        let error = Error::engine(self.1).no_kernels_fault();
        Err(part::Fault { operators: Some(vec!["max_pool2d"]), error })
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        self.0.prepare(workload)
    }
}

/// What was checked, or the error; and what the user reads.
type Answer = (Result<Vec<Option<bool>>, String>, Vec<String>);

fn asked_of(plan: &Plan, engines: &mut Engines, asked: Asked, cache: &Cache) -> Answer {
    let mut heard = Vec::new();
    let answer = qualify(plan, engines, asked, cache, &mut |what| heard.push(what.to_owned()));
    (answer.map_err(|error| error.to_string()), heard)
}

fn asked(engines: &mut Engines, cache: &Cache) -> Answer {
    asked_of(&plan(SPEC), engines, Asked::Every, cache)
}

#[test]
fn a_wrong_engine_is_refused_with_the_number_and_tried_again_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut engines = bad(|cpu, workload| {
        let mut workload = workload.clone();
        workload.settings.learning_rate *= 0.5;
        cpu.prepare(&workload)
    });
    for _ in 0..2 {
        let (answer, said) = asked(&mut engines, &cache(&folder));
        let error = answer.unwrap_err();
        assert!(error.contains("cpu computes mnist_cnn (fp32 nchw adam) wrongly at batch size 2"), "{error}");
        // Half of Adam's update: off by a half.
        assert!(error.contains("an update is off by 5.0e-1") && !error.contains("gradients"), "{error}");
        assert!(error.contains("--qualify never") && error.contains("name = \"torch\""), "{error}");
        assert_eq!(said.len(), 1);
        let last = last_failure(&cache(&folder)).unwrap();
        assert!(
            last.starts_with("batchstep ") && last.contains("mnist_cnn (fp32 nchw adam) at batch size 2"),
            "{last}"
        );
        assert!(last.contains("an update is off by 5.0e-1"), "{last}");
    }
}

/// The first preparation is right; the second has other numbers, as after a race.
#[test]
fn a_step_that_gives_other_bits_when_it_is_prepared_again_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut prepared = 0;
    let mut engines = bad(move |cpu, workload| {
        let mut workload = workload.clone();
        workload.settings.seed += prepared % 2;
        prepared += 1;
        cpu.prepare(&workload)
    });
    let error = asked(&mut engines, &cache(&folder)).0.unwrap_err();
    assert!(error.contains("cpu computes mnist_cnn (fp32 nchw adam) wrongly at batch size 2"), "{error}");
    assert!(error.contains("it gives other bits when it is repeated") && error.contains("help: "), "{error}");
    assert!(last_failure(&cache(&folder)).unwrap().contains("other bits"));
    // It is not remembered as checked.
    assert!(asked(&mut engines, &cache(&folder)).0.is_err());
}

/// What an engine, a library or the driver refuses is no wrong number: the run goes on, and its rows say that they are not checked.
#[test]
fn what_refuses_or_has_no_memory_is_not_called_qualified() {
    let part = |why| Engines::of(EngineName::Cpu, Box::new(WithoutPart(CpuEngine::cpu(None), why)));
    let graph = "the CUDA driver refused to end a graph: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED";
    for (mut engines, why) in [
        (refusing(|| Error::engine("no plan")), "no plan"),
        (refusing(|| Error::new(Kind::OutOfMemory, "the step needs 9 GB")), "the step needs 9 GB"),
        (part("cuBLASLt refused to multiply"), "cuBLASLt refused to multiply"),
        (part(graph), graph),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let (answer, said) = asked(&mut engines, &cache(&folder));
        assert_eq!(answer, Ok(vec![Some(false); 3]), "{why}");
        assert!(said.last().unwrap().contains(why), "{said:?}");
    }
}

/// 10^12 parameters: 48 TB in the comparison. Without the check this would be a process that is killed.
#[test]
fn what_cannot_be_compared_in_this_memory_is_unchecked_with_a_word() {
    let folder = tempfile::tempdir().unwrap();
    let mut engines = Engines::of(EngineName::Cpu, Box::new(CpuEngine::cpu(None)));
    let spec = "version = 1\nname = \"a\"\n[model]\nname = \"huge\"\ninput = [1048576]\nclasses = 10\n\
                [[model.layers]]\ntype = \"dense\"\nout_features = 1048576\n[[model.layers]]\ntype = \"dense\"\nout_features = 10\n\
                [sweep]\nbatch_size = [1]\n[engine]\nname = \"cpu\"";
    let (cells, said) = asked_of(&plan(spec), &mut engines, Asked::Every, &cache(&folder));
    assert_eq!(cells, Ok(vec![Some(false)]));
    let last = said.last().unwrap();
    assert!(last.contains("huge is not checked: comparing its first steps takes about"), "{last}");
    assert!(last.contains("GiB are free") && last.contains("`qualified` = false"), "{last}");
}

#[test]
fn only_engines_that_are_asked_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    for asked in [Asked::Gpu, Asked::None] {
        let answer = asked_of(&plan(SPEC), &mut refusing(|| Error::engine("no plan")), asked, &cache(&folder));
        assert_eq!(answer, (Ok(vec![None; 3]), Vec::new()));
    }
}

/// VGG16 takes 31 GFLOP for an example forward (2 x 15.5 billion multiply-adds, Simonyan and Zisserman 2015 by the layers' shapes), three times that for a
/// step: three steps of three examples are 0.8e12.
#[test]
fn the_batch_sizes_are_the_largest_that_the_reference_can_afford() {
    let of = |model: &str, sizes: &str| {
        let plan = plan(&format!(
            "version = 1\nname = \"a\"\n[model]\nname = \"{model}\"\n[sweep]\nbatch_size = {sizes}\n[engine]\nname = \"cpu\""
        ));
        super::sizes(&plan, &plan.cells[0], AFFORDABLE)
    };
    assert_eq!(of("vgg16", "\"1..=70\""), [2, 3]);
    assert_eq!(of("mnist_cnn", "\"1..=70\""), [69, 70]);
    assert_eq!(of("mnist_cnn", "[1]"), [2, 3]);
    assert_eq!(of("mlp", "[64, 1000000]"), [999_999, 1_000_000]);
}
