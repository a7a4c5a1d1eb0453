//! The PyTorch engine against the CPU engine, and against interpreters that misbehave. Tests that need PyTorch are
//! skipped, with a notice, if it cannot be imported; the others need only a shell.

mod layers;
mod parallel;

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use super::*;
use crate::device::interpreter::tests::script;
use crate::engine::cpu::CpuEngine;
use crate::network::{Builder, Conv2d, Dense, Extent, MaxPool2d, NAMES, Network, Operation, Padding, Shape};
use crate::settings::*;

fn settings() -> Settings {
    Settings {
        optimizer: Optimizer::Sgd,
        learning_rate: 1e-3,
        precision: Precision::Fp32,
        // Tests run at the same time, and PyTorch's threads wait in busy loops.
        threads: Some(1),
        seed: 3,
        ..Settings::default()
    }
}

fn network(name: &str) -> Arc<Network> {
    let input = match name {
        "mlp" => Shape::Flat(2),
        "mnist_cnn" => Shape::Maps { channels: 1, height: 28, width: 28 },
        _ => Shape::Maps { channels: 3, height: 64, width: 64 },
    };
    without_dropout(Network::by_name(name, input, 5).unwrap())
}

/// PyTorch draws its own masks, so dropout is left out of the comparison.
fn without_dropout(mut network: Network) -> Arc<Network> {
    for layer in &mut network.layers {
        if let Operation::Dropout { rate } = &mut layer.operation {
            *rate = 0.0;
        }
    }
    Arc::new(network)
}

/// PyTorch on the CPU, if it can be imported.
fn pytorch() -> Option<TorchEngine> {
    match TorchEngine::open("cpu") {
        Ok(engine) => Some(engine),
        Err(error) => {
            crate::needs::missing("torch", error);
            None
        }
    }
}

fn losses(engine: &mut dyn Engine, workload: &Workload) -> Vec<f64> {
    let mut step = engine.prepare(workload).unwrap();
    (0..3).map(|_| step.run().unwrap().loss.unwrap()).collect()
}

/// Both engines start from the same numbers and compute the same, up to the rounding of float32.
fn agree(torch: &mut TorchEngine, workload: &Workload, tolerance: f64) {
    // The CPU engine has one layout; the numbers do not depend on it.
    let settings = Settings { layout: Layout::Nchw, ..workload.settings.clone() };
    let expected = losses(&mut CpuEngine::cpu(None), &Workload { settings, ..workload.clone() });
    let found = losses(torch, workload);
    let name = &workload.network.name;
    let moved = (expected[2] - expected[0]).abs() / expected[0];
    for (a, b) in found.iter().zip(&expected) {
        let apart = (a - b).abs() / expected[0];
        assert!(apart < tolerance, "{name}: {found:?}, and the CPU engine has {expected:?}");
        assert!(moved > 10.0 * apart, "{name}: {apart} apart after moving by {moved} proves nothing");
    }
}

#[test]
fn every_network_follows_the_cpu_engine() {
    let Some(mut torch) = pytorch() else { return };
    for name in NAMES {
        // As in the selftest: tens of batch norms make a fresh network so steep that each rounding grows.
        let steep = name.starts_with("resnet") || *name == "mobilenet";
        let (learning_rate, tolerance) = if steep { (1e-7, 1e-3) } else { (1e-3, 1e-4) };
        let settings = Settings { learning_rate, ..settings() };
        agree(&mut torch, &Workload { network: network(name), batch_size: 8, settings }, tolerance);
    }
}

#[test]
fn every_optimizer_and_loss_follows_the_cpu_engine() {
    let Some(mut torch) = pytorch() else { return };
    for &optimizer in Optimizer::ALL {
        for &loss in Loss::ALL {
            let settings = Settings { optimizer, loss, learning_rate: 1e-4, ..settings() };
            // The first updates of the other optimizers are about the signs of the gradients, and the sign of a
            // gradient that is only rounding noise is arbitrary.
            let tolerance = match optimizer {
                Optimizer::Sgd | Optimizer::Momentum => 1e-4,
                Optimizer::RmsProp | Optimizer::Adam | Optimizer::AdamW => 1e-3,
            };
            agree(&mut torch, &Workload { network: network("mnist_cnn"), batch_size: 8, settings }, tolerance);
        }
    }
}

#[test]
fn a_surface_matches_the_cpu_engine() {
    let Some(mut torch) = pytorch() else { return };
    let network = Arc::new(Network::by_name("mlp", Shape::Flat(2), 1).unwrap());
    // 37 is not a square number.
    for batch_size in [1, 37, 400] {
        let (optimizer, loss) = (Optimizer::Adam, Loss::MeanSquaredError);
        let settings = Settings { optimizer, loss, learning_rate: 0.08, examples: Examples::Peaks, ..settings() };
        agree(&mut torch, &Workload { network: network.clone(), batch_size, settings }, 1e-4);
    }
}

#[test]
fn odd_shapes_settings_and_a_batch_of_one_go_the_way_of_the_cpu_engine() {
    let Some(mut torch) = pytorch() else { return };
    let network = Arc::new(crooked());
    for (batch_size, layout, data) in [
        (1, Layout::Nchw, DataPath::Resident),
        (17, Layout::Nchw, DataPath::Pageable),
        (17, Layout::Nhwc, DataPath::Pageable),
    ] {
        let settings = Settings { layout, data, ..settings() };
        agree(&mut torch, &Workload { network: Arc::clone(&network), batch_size, settings }, 1e-4);
    }
}

/// A network with sides that differ, groups, a layer added to itself, an output that is read twice, and a pool that is
/// mostly padding.
fn crooked() -> Network {
    let mut b = Builder::new("crooked", Shape::Maps { channels: 3, height: 13, width: 11 }).unwrap();
    let lone = Padding { bottom: 1, right: 1, ..Padding::NONE };
    b.then("a", Conv2d { stride: Extent::new(2, 1), padding: lone, groups: 3, ..Conv2d::square(6, 3) }).unwrap();
    let norm = b.then("n", crate::network::BatchNorm::default()).unwrap();
    let relu = b.then("r", Operation::Relu6).unwrap();
    let twice = b.add("t", Operation::Add, &[relu, relu]).unwrap();
    b.add("s", Operation::Add, &[norm, twice]).unwrap();
    b.then("p", MaxPool2d { kernel: Extent::new(3, 2), stride: Extent::square(2), padding: lone }).unwrap();
    let last = b.then("c", Conv2d { padding: Padding::all(1), ..Conv2d::square(6, 3) }).unwrap();
    let left = b.then("l", Operation::Relu).unwrap();
    b.add("u", Operation::Add, &[last, left]).unwrap();
    b.then("g", Operation::GlobalAveragePool).unwrap();
    b.then("d", Dense { out_features: 5, bias: false }).unwrap();
    b.finish().unwrap()
}

#[test]
fn a_visit_repeats_and_says_what_it_did() {
    let Some(mut torch) = pytorch() else { return };
    let workload = Workload { network: network("mnist_cnn"), batch_size: 4, settings: settings() };
    let first = losses(&mut torch, &workload);
    assert_eq!(losses(&mut torch, &workload), first);
    let mut step = torch.prepare(&workload).unwrap();
    let times = step.run().unwrap();
    let phases = times.forward_s.unwrap() + times.backward_s.unwrap() + times.optimizer_s.unwrap();
    assert!(phases > 0.0 && phases <= times.step_s, "{times:?}");
    assert_eq!((times.gpu_s, times.enqueue_s, times.h2d_s), (None, None, None));
    let layers = step.layers();
    assert!(layers.iter().any(|layer| layer.operation == "conv2d" && layer.flops > 0.0 && layer.algorithm.is_none()));
    // Two steps that exist at once have separate parameters.
    let mut second = torch.prepare(&workload).unwrap();
    assert_eq!(second.run().unwrap().loss, Some(first[0]));
    assert_eq!(step.run().unwrap().loss, Some(first[1]));
}

#[test]
fn bf16_and_dropout_run_and_learn() {
    let Some(mut torch) = pytorch() else { return };
    let input = Shape::Maps { channels: 1, height: 28, width: 28 };
    let network = Arc::new(Network::by_name("mnist_cnn", input, 5).unwrap());
    let settings = Settings { precision: Precision::Bf16, learning_rate: 0.05, ..settings() };
    let mut step = torch.prepare(&Workload { network, batch_size: 16, settings }).unwrap();
    let losses: Vec<f64> = (0..30).map(|_| step.run().unwrap().loss.unwrap()).collect();
    assert!(losses[29] < 0.8 * losses[0], "{losses:?}");
}

#[test]
fn what_a_cpu_does_not_have_is_refused_and_tf32_becomes_fp32() {
    let Some(torch) = pytorch() else { return };
    let in_force = torch.in_force(&Settings { precision: Precision::Tf32, ..settings() }).unwrap();
    assert_eq!(in_force.precision, Precision::Fp32);
    for asked in [
        Settings { launch: Launch::Graph, ..settings() },
        Settings { data: DataPath::Pinned, ..settings() },
        Settings { algorithms: Algorithms::Autotune, ..settings() },
        Settings { algorithms: Algorithms::Fixed, ..settings() },
        Settings { precision: Precision::Fp16, ..settings() },
        Settings { threads: Some(0), ..settings() },
    ] {
        let error = torch.in_force(&asked).unwrap_err();
        assert_eq!(error.kind(), Kind::Spec);
        assert!(error.to_string().contains("help: "), "{error}");
    }
}

#[test]
fn a_gpu_that_is_not_there_is_a_device_error() {
    let Some(_) = pytorch() else { return };
    let error = TorchEngine::open("cuda:99").unwrap_err();
    assert_eq!(error.kind(), Kind::Device);
    assert!(error.to_string().contains("PyTorch"), "{error}");
}

#[test]
fn a_cell_beyond_all_memory_is_out_of_memory() {
    let Some(mut torch) = pytorch() else { return };
    let workload = Workload { network: network("vgg16"), batch_size: 1 << 20, settings: settings() };
    assert!(torch.prepare(&workload).err().unwrap().is_out_of_memory());
    losses(&mut torch, &Workload { network: network("mlp"), batch_size: 1, settings: settings() });
}

// Interpreters that misbehave.

/// Only their steps hang.
const QUICK: Patience = Patience { step: Duration::from_millis(300), ..Patience::USUAL };

/// The first answer of a healthy interpreter, after the request to open.
const OPENS: &str =
    r#"read -r line; echo '{"ok": {"torch": "2.9", "device": "cpu", "device_name": null, "capability": null}}';"#;
const AGREES: &str = r#"read -r line; echo '{"ok": {}}';"#;

/// Runs a program with that shell text instead of Python.
fn with_interpreter<T>(text: &str, test: impl FnOnce(&Path) -> T) -> T {
    let (_guard, path) = script(text);
    test(&path)
}

fn open(interpreter: &Path) -> Result<TorchEngine> {
    open_within(interpreter, QUICK)
}

fn open_within(interpreter: &Path, patience: Patience) -> Result<TorchEngine> {
    // Another test's fork can hold a newly written script open for writing; starting it then fails, but succeeds a
    // moment later.
    for _ in 0..50 {
        match TorchEngine::open_with(interpreter.to_owned(), "cpu", patience) {
            Err(error) if error.to_string().contains("Text file busy") => std::thread::sleep(Duration::from_millis(20)),
            other => return other,
        }
    }
    TorchEngine::open_with(interpreter.to_owned(), "cpu", patience)
}

/// What the preparation of a step fails with.
fn failure(python: &Path) -> Error {
    open(python).unwrap().prepare(&mlp()).err().unwrap()
}

fn mlp() -> Workload {
    Workload { network: network("mlp"), batch_size: 2, settings: settings() }
}

#[test]
fn no_python_or_no_pytorch_is_an_error_with_the_remedy() {
    let error = TorchEngine::open_with("/nonexistent/python3".into(), "cpu", QUICK).unwrap_err();
    assert_eq!(error.kind(), Kind::Device);
    for part in ["/nonexistent/python3", "pip install torch", "BATCHSTEP_PYTHON"] {
        assert!(error.to_string().contains(part), "{error}");
    }
    let missing = r#"read -r line; echo '{"error": {"kind": "device", "what": "p cannot import torch: none"}}'"#;
    for (program, words) in [
        (missing, ["cannot import torch", "pip install"]),
        ("read -r line; echo Python 2.7", ["starting PyTorch", "Python 2.7"]),
        ("echo why >&2; exit 3", ["starting PyTorch", "exit status: 3"]),
    ] {
        let error = with_interpreter(program, |python| open(python).unwrap_err());
        assert_eq!(error.kind(), Kind::Device, "{error}");
        assert!(words.iter().all(|words| error.to_string().contains(words)), "{error}");
    }
}

#[test]
fn a_process_that_the_system_kills_ran_out_of_memory() {
    let killed = format!("{OPENS} read -r line; kill -9 $$");
    let error = with_interpreter(&killed, failure);
    assert!(error.is_out_of_memory(), "{error}");
}

#[test]
fn a_process_that_hangs_is_given_up_and_not_left_behind() {
    let hangs = format!("{OPENS} {AGREES} echo $$ > $0.pid; exec sleep 600");
    with_interpreter(&hangs, |python| {
        let start = Instant::now();
        let mut torch = open(python).unwrap();
        let error = torch.prepare(&mlp()).unwrap().run().unwrap_err();
        assert!(error.to_string().contains("no answer"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(300));
        let id = fs::read_to_string(python.with_file_name("python3.pid")).unwrap();
        assert!(!Path::new("/proc").join(id.trim()).exists(), "process {id} is left, or a zombie");
    });
}

#[test]
fn an_answer_without_an_end_is_refused_and_its_writer_ended() {
    let endless = format!("{OPENS} read -r line; echo $$ > $0.pid; exec tr '\\0' a < /dev/zero");
    with_interpreter(&endless, |python| {
        let error = failure(python);
        assert!(error.to_string().contains("a line of more than 128 MB"), "{error}");
        assert!(is_gone(python));
    });
}

#[test]
fn what_a_process_started_ends_with_it() {
    // It leaves one process in its group, and one outside the group that holds the pipe of the answers open.
    let leaves = format!("{OPENS} read -r line; sleep 600 & echo $! > $0.pid; setsid sleep 120 & sleep 0.3; exit 7");
    with_interpreter(&leaves, |python| {
        let start = Instant::now();
        let error = failure(python);
        assert!(error.to_string().contains("exit status: 7"), "{error}");
        assert!(start.elapsed() < Duration::from_secs(110), "the process that holds the pipe was waited for");
        assert!(is_gone(python));
    });
}

#[test]
fn what_a_process_says_is_harmless() {
    let says = r#"read -r line; printf '\033[2Jwhy\202\n' >&2; printf '{"error": {"kind": "device", "what": "a\\nb\\u001b[2J"}}\n'"#;
    let error = with_interpreter(says, |python| open(python).unwrap_err()).to_string();
    assert!(error.contains("a\\nb\\u001b[2J") && !error.contains('\u{1b}'), "{error:?}");
    let error = with_interpreter("printf '\\033[2Jwhy\\n' >&2; exit 3", |python| open(python).unwrap_err()).to_string();
    assert!(error.contains("\\u001b[2Jwhy") && !error.contains('\u{1b}'), "{error:?}");
}

/// Whether the process that wrote its number next to the interpreter ends soon.
fn is_gone(python: &Path) -> bool {
    let id = fs::read_to_string(python.with_file_name("python3.pid")).unwrap();
    let cmdline = Path::new("/proc").join(id.trim()).join("cmdline");
    // The command line of a zombie is empty: its new parent has not collected it yet.
    let is_there = || fs::read(&cmdline).is_ok_and(|line| !line.is_empty());
    let start = Instant::now();
    while is_there() && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(5));
    }
    !is_there()
}

#[test]
fn memory_that_runs_out_leaves_the_process_in_use() {
    let full = r#"{"error": {"kind": "out_of_memory", "what": "OutOfMemoryError: CUDA out of memory"}}"#;
    let short = format!("{OPENS} read -r line; echo '{full}'; {AGREES} {AGREES} exit 1");
    with_interpreter(&short, |python| {
        let mut torch = open(python).unwrap();
        assert!(torch.prepare(&mlp()).err().unwrap().is_out_of_memory());
        // The second answer was to the release: this one is the third, from the same process.
        drop(torch.prepare(&mlp()).unwrap());
    });
}

/// A convolutional network on 90 drawn digits in batches of 20: the last batch has 10.
#[test]
fn a_training_goes_the_same_way_through_pytorchs_loader_and_ours() {
    use crate::data::digits::{SHAPE, TrainOrTest, draw};
    use crate::data::loader::{Loader, Options};
    use crate::data::{Examples, Normal};
    use crate::engine::train::{Batch, Feed, RawExamples, Score};

    let Some(mut torch) = pytorch() else { return };
    let folder = tempfile::tempdir().unwrap();
    let digits = draw(5, TrainOrTest::Train, 90);
    let normal = Normal::of(&digits, 1);
    let [pixels, labels] = ["pixels", "labels"].map(|name| folder.path().join(name));
    fs::write(&pixels, &digits.pixels).unwrap();
    fs::write(&labels, &digits.labels).unwrap();
    let raw = RawExamples { pixels, labels, count: 90 };
    let examples = Arc::new(Examples::new(Box::new(digits), normal.clone(), SHAPE));
    let network = without_dropout(Network::by_name("mnist_cnn", SHAPE, 10).unwrap());
    let settings = Settings { optimizer: Optimizer::Adam, learning_rate: 1e-3, ..settings() };
    let workload = Workload { network, batch_size: 20, settings };
    let mut shuffled = Vec::new();
    for workers in [0, 2] {
        let feed = Feed {
            train: raw.clone(),
            test: Some(raw.clone()),
            shape: SHAPE,
            mean: normal.mean.clone(),
            sd: normal.sd.clone(),
            workers,
            prefetch: 2,
            shuffle: false,
            drop_last: false,
        };
        let mut theirs = torch.train_alone(&workload, &feed).unwrap();
        let warm = theirs.epoch(0, Some(2)).unwrap();
        theirs.reset().unwrap();
        let epoch = theirs.epoch(0, None).unwrap();
        assert_eq!((epoch.examples, epoch.losses.len()), (90, 5));
        assert_eq!(warm.losses, epoch.losses[..2], "a reset brings the initial parameters and state back");
        assert!(epoch.wait_s > 0.0 && epoch.wait_s < epoch.epoch_s && epoch.user_s.is_some_and(|user| user > 0.0));
        // On a CPU an epoch has steps, waiting, and some time that is neither.
        let between = epoch.epoch_s - epoch.wait_s - epoch.compute_s.unwrap();
        assert!(epoch.compute_s > Some(0.2 * epoch.epoch_s) && between > 0.0, "{epoch:?}");

        let mut engine = CpuEngine::cpu(Some(1));
        let mut ours = engine.train(&workload).unwrap();
        let options =
            Options { batch_size: 20, workers, prefetch: 2, shuffle: false, drop_last: false, seed: 3, skip: false };
        let mut loader = Loader::new(examples.clone(), options).unwrap();
        loader.begin(0);
        for theirs in &epoch.losses {
            let batch = loader.next_batch().unwrap().unwrap();
            let times = ours.step(Batch { inputs: &batch.inputs, labels: &batch.labels }).unwrap();
            let loss = times.loss.unwrap();
            assert!((loss / theirs - 1.0).abs() < 2e-3, "{loss} and {theirs}, of {:?}", epoch.losses);
        }
        // Running statistics, no dropout.
        loader.begin(0);
        let mut score = Score::default();
        while let Some(batch) = loader.next_batch().unwrap() {
            score = score.and(ours.evaluate(Batch { inputs: &batch.inputs, labels: &batch.labels }).unwrap());
        }
        let theirs = theirs.evaluate().unwrap();
        shuffled.push(
            torch.train_alone(&workload, &Feed { shuffle: true, ..feed }).unwrap().epoch(1, None).unwrap().losses,
        );
        assert_eq!((score.examples, theirs.examples), (90, 90));
        assert!((score.loss / theirs.loss - 1.0).abs() < 5e-3, "{score:?} {theirs:?}");
        assert!(score.correct.abs_diff(theirs.correct) <= 1, "{score:?} {theirs:?}");
    }
    assert_eq!(shuffled[0], shuffled[1], "the same order whatever the workers");
}
