//! Each call of the driver, cuDNN, cuBLASLt and NVRTC that a run makes fails once, in turn, with each code that is plausible for
//! it. Whatever fails, there is no panic and no hang, and the message says what, where and what to do; stored rows stay, and `--resume` continues.
//!
//! `docs/gpu-faults.md` lists the result of each fault; the test fails if it is not up to date.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};
use tempfile::TempDir;

use super::checked::Check;
use super::table::{self, FaultRow};
use super::{Ended, Recorded};
use crate::device::fake::Fake;
use crate::engine::cudnn::recorded::{self, Called, Fault, Library};
use crate::store::{Begin, Table, files};

/// Where a child, in which calls are recorded, puts what it finds, and which of the faults are its own: the first, or the second of two.
const FOLDER: &str = "BATCHSTEP_TEST_FAULTS";
const SHARE: &str = "BATCHSTEP_TEST_FAULTS_SHARE";
/// Children: each takes a minute of a core, so that two are no longer than the tests beside them.
const CHILDREN: usize = 2;
const NAME: &str = "run::tests::faults::every_call_that_fails_gives_a_message_and_the_run_can_continue";
/// Where the table is written instead of compared.
const WRITE: &str = "BATCHSTEP_WRITE_FAULTS";

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
const WAYS: [(&str, &str); 3] = [
    (
        "one CUDA graph, two streams, prefetched batches",
        "[train]\nprecision = \"fp32\"\ndata = \"prefetch\"\n[engine]\nname = \"cudnn\"\nlaunch = \"graph\"\nstreams = 2\n",
    ),
    (
        "eager, algorithms measured",
        "[train]\nprecision = \"fp32\"\n[engine]\nname = \"cudnn\"\nalgorithms = \"autotune\"\n",
    ),
    (
        "eager, non-fused Winograd",
        "[train]\nprecision = \"fp32\"\n[engine]\nname = \"cudnn\"\nwinograd = \"nonfused\"\n",
    ),
];

/// The codes that are plausible for a call, and whether the GPU works no more after it.
fn codes(call: &Called) -> Vec<(u32, bool)> {
    let executes =
        call.name.contains("Execute") || call.name == "cublasLtMatmul" || call.name.starts_with("cudnnConvolution");
    match call.library {
        // Out of memory; an illegal address of a kernel, which CUDA reports at any later call; the library is being unloaded.
        Library::Driver if call.captured => vec![(2, false), (700, true), (4, true), (901, false)],
        Library::Driver => vec![(2, false), (700, true), (4, true)],
        // A part of the library does not load; no device memory; refused.
        Library::Cudnn => vec![(1008, false), (4004, false), (if executes { 5000 } else { 3000 }, false)],
        Library::CublasLt if executes => vec![(1, false), (3, false), (13, false), (15, false)],
        Library::CublasLt => vec![(1, false), (3, false)],
        // No host memory; the source; its builtins are missing.
        Library::Nvrtc if call.name == "nvrtcCompileProgram" => vec![(1, false), (6, false), (7, false)],
        Library::Nvrtc => vec![(1, false), (7, false)],
    }
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
    sweep.go(begin, |_| Box::new(Fake::steady(1e9)))
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

    /// The result of one fault.
    fn meets(&self, fault: &Fault) -> FaultRow {
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
        let message = [&said[..], &Vec::from_iter(ended.clone()), &Vec::from_iter(lost.clone())].concat();

        // A run that is complete has nothing to resume.
        if !result.as_ref().is_ok_and(|outcome| outcome.complete) {
            recorded::begin(None);
            let resumed = go(&sweep, Begin::Resume);
            let outcome = resumed.result.unwrap_or_else(|error| panic!("--resume: {error}"));
            assert!(outcome.complete && resumed.said.is_empty(), "--resume: {:?}", resumed.said);
        }
        let after = Stored::read(&sweep.path);
        assert_eq!(after.failed(), stored.failed(), "--resume leaves out what has failed and nothing else");
        assert!(stored.failed().len() <= 1, "one fault takes one cell away: {:?}", stored.failed());
        for size in [2, 3] {
            let is_whole = after.visits(size) == 2 || after.failed().iter().any(|(failed, _)| *failed == size);
            assert!(is_whole, "every visit of the others is there after --resume: {after:?}");
            assert!(after.visits(size) >= stored.visits(size), "what was stored stays");
        }
        let outcome = match (&ended, &lost, stored.failed().into_iter().next()) {
            (Some(_), ..) if stored.steps.is_empty() => "nothing is measured; the run ends",
            (Some(_), ..) => "the run ends",
            (_, Some(_), Some(_)) => "the run ends; `--resume` goes on without the cell",
            (_, Some(_), None) => "the run ends; `--resume` goes on",
            (.., Some((_, status))) if status == "out_of_memory" => "the cell is left out, as out of memory",
            (.., Some(_)) => "the cell is left out",
            _ => self.less_than_failure(&stored),
        };
        if lost.is_none() && ended.is_none() {
            assert!(held == 0 || !table::frees(fault), "{held} bytes are not freed");
            if stored.failed().is_empty() && stored.layers == self.stored.layers {
                // Whatever failed, later convolutions run on their own streams.
                let tail = |streams: &[usize]| streams[streams.len().saturating_sub(12)..].to_vec();
                assert_eq!(tail(&streams), tail(&self.streams));
            }
        }
        if outcome.contains("ends") || outcome.contains("left out") {
            table::is_clear(&message);
        } else {
            assert_eq!(message, Vec::<String>::new());
        }
        FaultRow::new(fault, outcome, message.first().map(String::as_str))
    }

    fn less_than_failure(&self, stored: &Stored) -> &'static str {
        assert_eq!(stored.steps.len(), self.stored.steps.len());
        let column = |of: &Stored, pick: fn(&(String, String, bool)) -> String| -> Vec<String> {
            of.layers.iter().map(pick).collect()
        };
        let differs = |pick: fn(&(String, String, bool)) -> String| column(stored, pick) != column(&self.stored, pick);
        match () {
            () if differs(|(algorithm, ..)| algorithm.clone()) => "another algorithm is taken, and recorded",
            () if differs(|(_, kernel, _)| kernel.clone()) => "`layers.parquet` lacks a kernel",
            () if differs(|(.., timed)| timed.to_string()) => "`layers.parquet` lacks a time",
            () => "nothing changes",
        }
    }
}

/// What a child finds.
#[derive(Serialize, Deserialize)]
struct Found {
    rows: Vec<FaultRow>,
    /// The functions that were called, by any child.
    called: BTreeMap<Library, BTreeSet<String>>,
}

/// The child's part: its faults, one after another.
fn find(folder: &Path, share: usize) {
    let ways: Vec<FaultFreeRun> =
        WAYS.iter().map(|(_, lines)| FaultFreeRun::new(format!("{NETWORK}{lines}"))).collect();
    let check = Check::new(&format!("{NETWORK}{}", WAYS[0].1));
    let mut trials = Trials { folder, share, count: 0, known: BTreeSet::new(), rows: Vec::new(), wrong: Vec::new() };
    std::panic::set_hook(Box::new(|_| {}));
    for way in &ways {
        trials.all(&way.calls, |fault| way.meets(fault));
    }
    trials.all(&check.calls, |fault| check.meets(fault));
    let _ = std::panic::take_hook();
    let Trials { known, rows, wrong, .. } = trials;
    let called = known.iter().fold(BTreeMap::new(), |mut all: BTreeMap<_, BTreeSet<_>>, call| {
        all.entry(call.library).or_default().insert(call.name.to_owned());
        all
    });
    std::fs::write(folder.join("wrong"), wrong.join("\n")).unwrap();
    std::fs::write(folder.join("found"), serde_json::to_vec(&Found { rows, called }).unwrap()).unwrap();
}

/// The faults so far.
struct Trials<'a> {
    folder: &'a Path,
    share: usize,
    /// Faults of all children.
    count: usize,
    known: BTreeSet<Called>,
    rows: Vec<FaultRow>,
    wrong: Vec<String>,
}

impl Trials<'_> {
    /// Each call that is not known yet fails, with each of its codes, at its first occurrence and at its last.
    fn all(&mut self, calls: &[(Called, usize)], meets: impl Fn(&Fault) -> FaultRow) {
        let fresh: Vec<_> = calls.iter().filter(|(call, _)| !self.known.contains(call)).collect();
        for (call, count) in &fresh {
            let places: BTreeSet<usize> = [0, count - 1].into_iter().collect();
            for (code, lasts) in codes(call) {
                for &occurrence in &places {
                    if self.count % CHILDREN == self.share {
                        self.one(&Fault { call: call.clone(), occurrence, code, lasts }, &meets);
                    }
                    self.count += 1;
                }
            }
        }
        self.known.extend(fresh.into_iter().map(|(call, _)| call.clone()));
    }

    fn one(&mut self, fault: &Fault, meets: impl Fn(&Fault) -> FaultRow) {
        let text = format!("{fault:?}");
        std::fs::write(self.folder.join("now"), &text).unwrap();
        match std::panic::catch_unwind(AssertUnwindSafe(|| meets(fault))) {
            Ok(row) => self.rows.push(row),
            Err(panic) => {
                let said = panic.downcast_ref::<String>().cloned();
                let said = said.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string));
                self.wrong.push(format!("{text}: {}", said.unwrap_or_default()));
            }
        }
    }
}

#[test]
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
    let mut rows = Vec::new();
    let mut called = BTreeMap::new();
    for (child, folder) in children.into_iter().zip(&folders) {
        let output = child.wait_with_output().unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default();
        assert!(output.status.success(), "{}: {}", read("now"), String::from_utf8_lossy(&output.stderr));
        assert_eq!(read("wrong"), "");
        let found: Found = serde_json::from_str(&read("found")).unwrap();
        rows.extend(found.rows);
        called = found.called;
    }
    let made = table::document(&WAYS.map(|(name, _)| name), &rows, &called);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/gpu-faults.md");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == made, "docs/gpu-faults.md is out of date: run this test with {WRITE}=1");
}
