mod later;
mod memory;
mod parts;
mod refused;

use super::*;
use crate::engine::cpu::CpuEngine;
use crate::engine::{DeviceName, Step};
use crate::spec::Experiment;

const SPEC: &str = "version = 1\nname = \"a\"\n[model]\nname = \"mnist_cnn\"\n[sweep]\nbatch_size = \"1..=3\"\n[train]\noptimizer = \"adam\"\n\
                    [engine]\nname = \"cpu\"";

fn plan(spec: &str) -> Plan {
    Plan::new(&Experiment::parse(spec, "a.toml").unwrap()).unwrap()
}

#[derive(Default)]
struct Heard(Vec<String>);

impl Witness for Heard {
    fn begins(&mut self, what: &str) {
        self.0.push(what.to_owned());
    }

    fn notes(&mut self, what: &str) {
        self.0.push(what.to_owned());
    }
}

fn cache(folder: &tempfile::TempDir) -> Cache {
    let home = folder.path().as_os_str().to_owned();
    Cache::of_user("qualified", &move |name| (name == "XDG_CACHE_HOME").then(|| home.clone()))
}

/// The CPU's engine with another learning rate than it was asked for, or with other bits each time, or that refuses, or that has no memory.
enum Bad {
    HalfTheRate,
    /// Every second preparation begins from other parameters.
    OtherBits(usize),
    /// A part is refused: by a library, or by the driver for want of a graph.
    Part(&'static str),
    Refuses,
    NoMemory,
}

struct BadEngine(CpuEngine, Bad);

fn bad(what: Bad) -> Engines {
    Engines::of(EngineName::Cpu, Box::new(BadEngine(CpuEngine::cpu(None), what)))
}

impl Engine for BadEngine {
    fn device(&self) -> &DeviceName {
        self.0.device()
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        self.0.in_force(asked)
    }

    fn take_apart(&mut self, _: &Workload, _: &mut dyn part::See) -> std::result::Result<(), part::Fault> {
        match self.1 {
            Bad::Part(why) => {
                let error = Error::engine(why).no_kernels_fault();
                Err(part::Fault { operators: Some(vec!["max_pool2d"]), error })
            }
            _ => Ok(()),
        }
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        let mut workload = workload.clone();
        match self.1 {
            Bad::HalfTheRate => workload.settings.learning_rate *= 0.5,
            Bad::OtherBits(ref mut prepared) => {
                *prepared += 1;
                workload.settings.seed += (*prepared + 1) as u64 % 2;
            }
            Bad::Part(_) => {}
            Bad::Refuses => return Err(Error::engine("no plan")),
            Bad::NoMemory => return Err(Error::new(Kind::OutOfMemory, "the step needs 9 GB")),
        }
        self.0.prepare(&workload)
    }
}

/// What was checked, or the error; and what the user reads.
type Answer = (Result<Vec<Option<bool>>, String>, Vec<String>);

fn asked_of(plan: &Plan, engines: &mut Engines, asked: Asked, cache: &Cache) -> Answer {
    let mut heard = Heard::default();
    let answer = qualify(plan, engines, asked, cache, &mut heard);
    (answer.map(|found| found.cells).map_err(|error| error.to_string()), heard.0)
}

fn asked(engines: &mut Engines, cache: &Cache) -> Answer {
    asked_of(&plan(SPEC), engines, Asked::Every, cache)
}

#[test]
fn a_right_engine_passes_once_and_is_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let mut engines = Engines::of(EngineName::Cpu, Box::new(CpuEngine::cpu(None)));
    let (first, said) = asked(&mut engines, &cache(&folder));
    assert_eq!(first, Ok(vec![Some(true); 3]));
    // One comparison for all three batch sizes, at the largest two.
    assert_eq!(said.len(), 1);
    assert!(said[0].contains("cpu's step of mnist_cnn at batch sizes 2 and 3"), "{said:?}");
    assert_eq!(asked(&mut engines, &cache(&folder)), (Ok(vec![Some(true); 3]), Vec::new()));
}

#[test]
fn a_wrong_engine_is_refused_with_the_number_and_tried_again_the_next_time() {
    let folder = tempfile::tempdir().unwrap();
    let mut engines = bad(Bad::HalfTheRate);
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
    let mut engines = bad(Bad::OtherBits(0));
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
    let parts = [
        "cuBLASLt refused to multiply",
        "the CUDA driver refused to end a graph: CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
    ];
    let engines = [(Bad::Refuses, "no plan"), (Bad::NoMemory, "the step needs 9 GB")];
    for (what, why) in engines.into_iter().chain(parts.map(|why| (Bad::Part(why), why))) {
        let folder = tempfile::tempdir().unwrap();
        let (answer, said) = asked(&mut bad(what), &cache(&folder));
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
        let answer = asked_of(&plan(SPEC), &mut bad(Bad::Refuses), asked, &cache(&folder));
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
