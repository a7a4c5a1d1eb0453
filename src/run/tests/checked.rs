//! The check before the first timed step ([`crate::check::precheck`]), whose calls fail like the calls of the run. The recorder computes nothing, so the parts
//! are accepted without comparison, and the numbers of whole steps come from the CPU engine.

use std::collections::BTreeMap;

use super::faults::{frees, names_a_library};
use crate::check::precheck::{Asked, qualify};
use crate::engine::cudnn::engine::CudnnEngine;
use crate::engine::cudnn::recorded::{self, Called, Fault};
use crate::engine::open::Engines;
use crate::engine::part::{self, Part, See};
use crate::engine::{Computed, DeviceName, Engine, LayerExecution, Settings, Step, StepTimes, Workload};
use crate::error::Result;
use crate::os::cache::Cache;
use crate::settings::EngineName;
use crate::spec::Experiment;
use crate::spec::plan::Plan;

const CHECKING: &str = "checking the step";
const OPENING: &str = "opening the GPU, to check";

/// A plan that is checked.
pub struct Check {
    plan: Plan,
    pub calls: Vec<(Called, usize)>,
}

/// What a check came to.
struct Ended {
    result: Result<Vec<Option<bool>>>,
    notes: Vec<String>,
    /// What the engine says that it runs at the first batch size, where nothing fails any more.
    algorithms: Vec<(usize, String)>,
    /// The algorithms that were refused when they ran.
    refusals: Vec<String>,
}

impl Check {
    pub fn new(spec: &str) -> Self {
        let plan = Plan::new(&Experiment::parse(spec, "recorded.toml").unwrap()).unwrap();
        let mut check = Self { plan, calls: Vec::new() };
        let folder = tempfile::tempdir().unwrap();
        let ended = check.ask(&folder, None);
        check.passes(&ended);
        assert_eq!(recorded::held_bytes(), 0, "all memory is freed");
        let calls: BTreeMap<_, _> = recorded::called().into_iter().collect();
        check.calls = calls.into_iter().filter(|(call, _)| call.when == CHECKING).collect();
        assert!(!check.calls.is_empty());
        check.refused_product();
        check
    }

    /// cuBLASLt refuses the first product when it runs: the second proposal computes it, is checked, and is what the engine says that it runs.
    fn refused_product(&self) {
        let folder = tempfile::tempdir().unwrap();
        let call =
            Called { library: recorded::Library::CublasLt, name: "cublasLtMatmul", when: CHECKING, captured: false };
        let ended = self.ask(&folder, Some(Fault { call, occurrence: 0, code: 15, lasts: false }));
        self.passes(&ended);
        let [refusal] = &ended.refusals[..] else { panic!("{:?}", ended.refusals) };
        assert!(refusal.starts_with("product 2x64 by 64x4 (second transposed), bias, f32: cublaslt:0{"), "{refusal}");
        assert!(refusal.contains("CUBLAS_STATUS_NOT_SUPPORTED"), "{refusal}");
        let products = ended.algorithms.iter().filter(|(_, name)| name.contains("cublaslt:"));
        let forward: Vec<&String> = products.map(|(_, name)| name).filter(|name| name.starts_with("forward")).collect();
        assert!(forward.len() == 1 && forward[0].starts_with("forward cublaslt:1{"), "{:?}", ended.algorithms);
        let others = ended.algorithms.iter().filter(|(_, name)| name.contains("cublaslt:0{")).count();
        assert_eq!(others, 2, "both gradients have their own: {:?}", ended.algorithms);
    }

    fn passes(&self, Ended { result, notes, .. }: &Ended) {
        let found = result.as_ref().unwrap_or_else(|error| panic!("{error}"));
        assert!(notes.is_empty(), "{notes:?}");
        assert_eq!(*found, vec![Some(true); self.plan.cells.len()]);
    }

    fn ask(&self, folder: &tempfile::TempDir, fault: Option<Fault>) -> Ended {
        super::faults::without_cache();
        recorded::begin(fault);
        recorded::during(OPENING);
        let mut engines = Engines::of(EngineName::Cudnn, Box::new(Agreeing(CudnnEngine::recorded().unwrap())));
        recorded::during(CHECKING);
        let home = folder.path().as_os_str().to_owned();
        let cache = Cache::of_user("qualified", &move |name| (name == "XDG_CACHE_HOME").then(|| home.clone()));
        let mut notes = Vec::new();
        let mut say = |what: &str| notes.extend((!what.starts_with("checking ")).then(|| what.to_owned()));
        let result = qualify(&self.plan, &mut engines, Asked::Gpu, &cache, &mut say);
        let engine = engines.get(EngineName::Cudnn).unwrap();
        let refusals = engine.refusals();
        recorded::during(super::CLOSING);
        let algorithms = engine.algorithms(&self.plan.cells[0].workload).unwrap_or_default();
        Ended { result, notes, refusals, algorithms }
    }

    /// One fault ends a run only where the GPU works no more; else nothing changes, or the rows say that what they are of was not checked. Nothing that
    /// failed is remembered as checked.
    pub fn meets(&self, fault: &Fault) {
        let folder = tempfile::tempdir().unwrap();
        let Ended { result, notes, .. } = self.ask(&folder, Some(fault.clone()));
        assert!(recorded::has_failed(), "the call was not made");
        assert!(recorded::held_bytes() == 0 || !frees(fault), "{} bytes are not freed", recorded::held_bytes());
        match &result {
            Err(error) => {
                let message = error.to_string();
                assert!(names_a_library(&message) && message.contains("\n  help: "), "not clear: {message}");
                assert!(fault.lasts, "the run ends: {message}");
            }
            Ok(found) if found.iter().all(|cell| *cell == Some(true)) => assert_eq!(notes, Vec::<String>::new()),
            Ok(_) => {
                let says = |note: &String| names_a_library(note) && note.contains("`qualified` = false");
                assert!(!notes.is_empty() && notes.iter().all(says), "not clear: {notes:?}");
            }
        }
        self.passes(&self.ask(&folder, None));
    }
}

/// The engine, as if it computed what the CPU engine does.
struct Agreeing(CudnnEngine);

struct AgreeingStep {
    own: Box<dyn Step>,
    right: Box<dyn Step>,
}

/// Looks at the same parts as another observer, and accepts all of them.
struct Content<'a>(&'a mut dyn See);

impl See for Content<'_> {
    fn wants(&self, layer: Option<usize>) -> bool {
        self.0.wants(layer)
    }

    fn see(&mut self, _: Part) -> Result<()> {
        Ok(())
    }
}

impl Engine for Agreeing {
    fn device(&self) -> &DeviceName {
        self.0.device()
    }

    fn version(&self) -> Option<String> {
        self.0.version()
    }

    fn in_force(&self, asked: &Settings) -> Result<Settings> {
        self.0.in_force(asked)
    }

    fn refusals(&self) -> Vec<String> {
        self.0.refusals()
    }

    fn algorithms(&mut self, workload: &Workload) -> Result<Vec<(usize, String)>> {
        self.0.algorithms(workload)
    }

    fn take_apart(&mut self, workload: &Workload, see: &mut dyn See) -> std::result::Result<(), part::Fault> {
        self.0.take_apart(workload, &mut Content(see))
    }

    fn still_works(&mut self) -> Result<()> {
        self.0.still_works()
    }

    fn prepare(&mut self, workload: &Workload) -> Result<Box<dyn Step>> {
        let own = self.0.prepare(workload)?;
        let Settings { optimizer, learning_rate, loss, seed, examples, .. } = workload.settings;
        let settings = Settings { optimizer, learning_rate, loss, seed, examples, ..Settings::default() };
        let right = Engines::cpu_reference().prepare(&Workload { settings, ..workload.clone() })?;
        Ok(Box::new(AgreeingStep { own, right }))
    }
}

impl Step for AgreeingStep {
    fn run(&mut self) -> Result<StepTimes> {
        self.own.run()?;
        self.right.run()
    }

    fn layers(&self) -> Vec<LayerExecution> {
        self.own.layers()
    }

    fn computed(&self) -> Result<Option<Computed>> {
        self.own.computed()?;
        self.right.computed()
    }
}
