//! Each call of the driver, cuDNN, cuBLASLt and NVRTC that a run makes fails once, in turn, with each code that is plausible for
//! it. Whatever fails, there is no panic and no hang, and the message says what, where and what to do; stored rows stay, and `--resume` continues.
//!
//! What is lost is what docs/gpu.md ("When something fails") says; after 700 and 4 every later call fails as well, as CUDA documents.

use std::collections::BTreeSet;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::checked::Check;
use super::{DESCRIBING, Ended, OPENING, PREPARING, Recorded, STEP, TIMING};
use crate::device::fake::Fake;
use crate::engine::cudnn::recorded::{self, Called, Fault, Library};
use crate::store::{Begin, Table, files};

/// Where a child, in which calls are recorded, puts what it finds, and which of the faults are its own: the first, or the second of two.
const FOLDER: &str = "BATCHSTEP_TEST_FAULTS";
const SHARE: &str = "BATCHSTEP_TEST_FAULTS_SHARE";
/// Children: each takes a minute of a core, so that two are no longer than the tests beside them.
const CHILDREN: usize = 2;
const NAME: &str = "run::tests::faults::every_call_that_fails_gives_a_message_and_the_run_can_continue";

const NETWORK: &str = "version = 1\nname = \"recorded\"\n[model]\nname = \"small\"\ninput = [3, 8, 8]\nclasses = 4\n\
                       [[model.layers]]\ntype = \"conv2d\"\nout_channels = 4\nkernel = 3\npadding = 1\n\
                       [[model.layers]]\ntype = \"relu\"\n\
                       [[model.layers]]\ntype = \"conv2d\"\nout_channels = 4\nkernel = 3\npadding = 1\n\
                       [[model.layers]]\ntype = \"max_pool2d\"\nkernel = 2\n\
                       [[model.layers]]\ntype = \"flatten\"\n\
                       [[model.layers]]\ntype = \"dense\"\nout_features = 4\n\
                       [sweep]\nbatch_size = [2, 3]\n\
                       [measure]\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 1\nlayers = true\n";

/// The ways in which the network is run: together they make nearly every call. A later one is for the calls that no earlier one
/// makes.
const WAYS: [&str; 3] = [
    "[train]\nprecision = \"fp32\"\ndata = \"prefetch\"\n[engine]\nname = \"cudnn\"\nlaunch = \"graph\"\nstreams = 2\n",
    "[train]\nprecision = \"fp32\"\n[engine]\nname = \"cudnn\"\nalgorithms = \"autotune\"\n",
    "[train]\nprecision = \"fp32\"\n[engine]\nname = \"cudnn\"\nwinograd = \"nonfused\"\n",
];

/// What a code means.
#[derive(Clone, Copy, PartialEq)]
enum Meaning {
    NoMemory,
    /// The GPU works no more.
    Lost,
    Other,
}

/// The codes that are plausible for a call.
fn codes(call: &Called) -> Vec<(u32, Meaning)> {
    use Meaning::{Lost, NoMemory, Other};
    let executes =
        call.name.contains("Execute") || call.name == "cublasLtMatmul" || call.name.starts_with("cudnnConvolution");
    match call.library {
        // An illegal address of a kernel, which CUDA reports at any later call; the library is being unloaded.
        Library::Driver if call.captured => vec![(2, NoMemory), (700, Lost), (4, Lost), (901, Other)],
        Library::Driver => vec![(2, NoMemory), (700, Lost), (4, Lost)],
        // A part of the library does not load; refused.
        Library::Cudnn => vec![(1008, Other), (4004, NoMemory), (if executes { 5000 } else { 3000 }, Other)],
        Library::CublasLt if executes => vec![(1, Other), (3, NoMemory), (13, Other), (15, Other)],
        Library::CublasLt => vec![(1, Other), (3, NoMemory)],
        // The source; its builtins are missing.
        Library::Nvrtc if call.name == "nvrtcCompileProgram" => vec![(1, NoMemory), (6, Other), (7, Other)],
        Library::Nvrtc => vec![(1, NoMemory), (7, Other)],
    }
}

/// Whether a message names the library that refused.
pub(super) fn names_a_library(message: &str) -> bool {
    ["the CUDA driver", "cuDNN", "cuBLASLt", "NVRTC"].iter().any(|who| message.contains(who))
}

/// Whether all memory is freed though a call failed: where the GPU cannot be made the thread's own, or does not free, memory is lost with the
/// process.
pub(super) fn frees(fault: &Fault) -> bool {
    !fault.lasts && !["cuCtxSetCurrent", "cuMemFree_v2", "cuMemFreeHost"].contains(&fault.call.name)
}

/// What, where, and what to do: the library that refused, the cell or the GPU, a remedy.
fn is_clear(message: &str) -> bool {
    let place = message.contains("at batch size ") || message.starts_with("cuda:0: ");
    names_a_library(message) && place && message.contains("\n  help: ")
}

/// What a run leaves in its tables.
#[derive(Clone, Debug, Default, PartialEq)]
struct Stored {
    /// Batch size, visit and status of each row of steps that counts or failed.
    steps: Vec<(usize, usize, String)>,
    /// For each layer of each cell: the algorithm, the kernel, and whether a time is known.
    layers: Vec<(String, String, bool)>,
}

impl Stored {
    /// Nothing where nothing is stored yet.
    fn read(path: &Path) -> Self {
        let Ok(steps) = Table::read(path, &["batch_size", "visit", "status", "warmup"]) else { return Self::default() };
        let numbers = |table: &Table, name: &str| table.numbers(name).unwrap();
        let (sizes, visits) = (numbers(&steps, "batch_size"), numbers(&steps, "visit"));
        let rows = sizes.into_iter().zip(visits).zip(steps.texts("status").unwrap());
        let rows = rows.map(|((size, visit), status)| (size as usize, visit as usize, status)).collect();
        let mut layers = Vec::new();
        if let Ok(table) = Table::read(&path.join(files::LAYERS), &["algorithm", "kernel", "device_time_s"]) {
            let texts = |name: &str| table.texts(name).unwrap();
            let times = numbers(&table, "device_time_s").into_iter().map(|time| !time.is_nan());
            let names = texts("algorithm").into_iter().zip(texts("kernel"));
            layers = names.zip(times).map(|((algorithm, kernel), timed)| (algorithm, kernel, timed)).collect();
        }
        Self { steps: rows, layers }
    }

    fn failed(&self) -> BTreeSet<(usize, String)> {
        let failed = self.steps.iter().filter(|(_, _, status)| status != "ok");
        failed.map(|(size, _, status)| (*size, status.clone())).collect()
    }

    /// Visits in which a cell's steps are ok.
    fn visits(&self, size: usize) -> usize {
        let ok = self.steps.iter().filter(|(of, _, status)| *of == size && status == "ok");
        ok.map(|(_, visit, _)| visit).collect::<BTreeSet<_>>().len()
    }
}

/// A way with its fault-free run.
struct FaultFreeRun {
    spec: String,
    calls: Vec<(Called, usize)>,
    stored: Stored,
    /// On which stream each convolution ran.
    streams: Vec<usize>,
}

fn go(sweep: &Recorded, begin: Begin) -> Ended {
    sweep.go(begin, Box::new(Fake::steady(1e9)))
}

/// Each run compiles its kernels anew.
pub(super) fn without_cache() {
    let home = std::env::var_os("XDG_CACHE_HOME").unwrap();
    let _ = std::fs::remove_dir_all(home);
}

impl FaultFreeRun {
    fn new(spec: String) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sweep = Recorded::new(&spec, folder.path());
        without_cache();
        recorded::begin(None);
        let Ended { result, said } = go(&sweep, Begin::Anew);
        let outcome = result.unwrap_or_else(|error| panic!("{error}"));
        assert!(outcome.complete && said.is_empty(), "{said:?}");
        assert_eq!(recorded::held_bytes(), 0, "all memory is freed");
        let stored = Stored::read(&sweep.path);
        assert_eq!((stored.failed(), stored.visits(2), stored.visits(3)), (BTreeSet::new(), 2, 2), "{stored:?}");
        let mut calls: Vec<_> = recorded::called().into_iter().collect();
        calls.sort();
        Self { spec, calls, stored, streams: recorded::cudnn_streams() }
    }

    /// One fault takes at most its cell away; a run ends only where the GPU cannot be opened, or works no more.
    fn meets(&self, fault: &Fault, meaning: Meaning) {
        let folder = tempfile::tempdir().unwrap();
        let sweep = Recorded::new(&self.spec, folder.path());
        without_cache();
        recorded::begin(Some(fault.clone()));
        let Ended { result, said } = go(&sweep, Begin::Anew);
        assert!(recorded::has_failed(), "the call was not made");
        let (held, streams) = (recorded::held_bytes(), recorded::cudnn_streams());
        let stored = Stored::read(&sweep.path);
        let lost = result.as_ref().ok().and_then(|outcome| outcome.lost.as_ref()).map(ToString::to_string);
        let ended = result.as_ref().err().map(ToString::to_string);
        let messages = [&said[..], &Vec::from_iter(ended.clone()), &Vec::from_iter(lost.clone())].concat();
        assert!(messages.iter().all(|message| is_clear(message)), "not clear: {messages:#?}");

        // A run that is complete has nothing to resume.
        if !result.as_ref().is_ok_and(|outcome| outcome.complete) {
            recorded::begin(None);
            let resumed = go(&sweep, Begin::Resume);
            let outcome = resumed.result.unwrap_or_else(|error| panic!("--resume: {error}"));
            assert!(outcome.complete && resumed.said.is_empty(), "--resume: {:?}", resumed.said);
        }
        let after = Stored::read(&sweep.path);
        assert_eq!(after.failed(), stored.failed(), "--resume leaves out what has failed and nothing else");
        for size in [2, 3] {
            let is_whole = after.visits(size) == 2 || after.failed().iter().any(|(failed, _)| *failed == size);
            assert!(is_whole, "every visit of the others is there after --resume: {after:?}");
            assert!(after.visits(size) >= stored.visits(size), "what was stored stays");
        }

        let when = fault.call.when;
        let failed = Vec::from_iter(stored.failed());
        if ended.is_some() {
            assert!(
                stored.steps.is_empty() && (when == OPENING || meaning == Meaning::Lost),
                "the run ended: {ended:?}"
            );
        }
        assert!(lost.is_none() || meaning == Meaning::Lost, "the GPU is given up: {lost:?}");
        match &failed[..] {
            [] => assert_eq!(messages.is_empty(), ended.is_none() && lost.is_none(), "{messages:?}"),
            [(_, status)] => {
                assert!([PREPARING, STEP, TIMING].contains(&when) && !messages.is_empty(), "the cell is lost {when}");
                let is_memory = status == "out_of_memory";
                assert!(meaning == Meaning::Lost || is_memory == (meaning == Meaning::NoMemory), "{status}");
            }
            _ => panic!("one fault takes one cell away: {failed:?}"),
        }
        if lost.is_none() && ended.is_none() {
            assert!(held == 0 || !frees(fault), "{held} bytes are not freed");
            if failed.is_empty() {
                assert_eq!(stored.steps.len(), self.stored.steps.len());
                let is_same = stored.layers == self.stored.layers;
                assert!(is_same || [PREPARING, DESCRIBING].contains(&when), "other layers: {:?}", stored.layers);
                // Whatever failed, later convolutions run on their own streams.
                let tail = |streams: &[usize]| streams[streams.len().saturating_sub(12)..].to_vec();
                assert!(!is_same || tail(&streams) == tail(&self.streams));
            }
        }
    }
}

/// The child's part: its faults, one after another.
fn find(folder: &Path, share: usize) {
    let ways: Vec<FaultFreeRun> = WAYS.iter().map(|lines| FaultFreeRun::new(format!("{NETWORK}{lines}"))).collect();
    let check = Check::new(&format!("{NETWORK}{}", WAYS[0]));
    let mut trials = Trials { folder, share, count: 0, known: BTreeSet::new(), wrong: Vec::new() };
    std::panic::set_hook(Box::new(|_| {}));
    for way in &ways {
        trials.all(&way.calls, |fault, meaning| way.meets(fault, meaning));
    }
    trials.all(&check.calls, |fault, _| check.meets(fault));
    let _ = std::panic::take_hook();
    std::fs::write(folder.join("wrong"), trials.wrong.join("\n")).unwrap();
}

/// The faults so far.
struct Trials<'a> {
    folder: &'a Path,
    share: usize,
    /// Faults of all children.
    count: usize,
    known: BTreeSet<Called>,
    wrong: Vec<String>,
}

impl Trials<'_> {
    /// Each call that is not known yet fails, with each of its codes, at its first occurrence and at its last.
    fn all(&mut self, calls: &[(Called, usize)], meets: impl Fn(&Fault, Meaning)) {
        let fresh: Vec<_> = calls.iter().filter(|(call, _)| !self.known.contains(call)).collect();
        for (call, count) in &fresh {
            let places: BTreeSet<usize> = [0, count - 1].into_iter().collect();
            for (code, meaning) in codes(call) {
                for &occurrence in &places {
                    if self.count % CHILDREN == self.share {
                        let lasts = meaning == Meaning::Lost;
                        let fault = Fault { call: call.clone(), occurrence, code, lasts };
                        self.one(&fault, || meets(&fault, meaning));
                    }
                    self.count += 1;
                }
            }
        }
        self.known.extend(fresh.into_iter().map(|(call, _)| call.clone()));
    }

    fn one(&mut self, fault: &Fault, meets: impl Fn()) {
        let text = format!("{fault:?}");
        std::fs::write(self.folder.join("now"), &text).unwrap();
        if let Err(panic) = std::panic::catch_unwind(AssertUnwindSafe(meets)) {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
            self.wrong.push(format!("{text}: {}", said.unwrap_or_default()));
        }
    }
}

#[test]
#[ignore = "slow"]
fn every_call_that_fails_gives_a_message_and_the_run_can_continue() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return find(&PathBuf::from(folder), std::env::var(SHARE).unwrap().parse().unwrap());
    }
    let folders = [(); CHILDREN].map(|()| tempfile::tempdir().unwrap());
    let start = |(share, folder): (usize, &TempDir)| {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args([NAME, "--exact", "--nocapture"]).env(FOLDER, folder.path()).env(SHARE, share.to_string());
        child.env("XDG_CACHE_HOME", folder.path().join("cache")).stdout(Stdio::null()).stderr(Stdio::piped());
        child.spawn().unwrap()
    };
    let children: Vec<Child> = folders.iter().enumerate().map(start).collect();
    for (child, folder) in children.into_iter().zip(&folders) {
        let output = child.wait_with_output().unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        assert!(output.status.success(), "{}: {}", read("now"), String::from_utf8_lossy(&output.stderr));
        assert_eq!(read("wrong"), "");
    }
}
