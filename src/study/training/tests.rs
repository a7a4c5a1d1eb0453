mod recorded;

use super::*;
use crate::engine::refusing::Refusing;
use crate::settings::EngineName;
use crate::study::tests::{Ran, in_memory, on_cpu, parse};

fn spec(body: &str) -> Training {
    let model = "[model]\nname = \"small\"\n[[model.layers]]\ntype = \"conv2d\"\nout_channels = 4\nkernel = 3\n\
         [[model.layers]]\ntype = \"batch_norm\"\n[[model.layers]]\ntype = \"relu\"\n[[model.layers]]\ntype = \"max_pool2d\"\nkernel = 4\n\
         [[model.layers]]\ntype = \"flatten\"\n[[model.layers]]\ntype = \"dropout\"\nrate = 0.1\n[[model.layers]]\ntype = \"dense\"\nout_features = 10\n";
    parse("training", &[model, body].concat(), Training::of).expect("valid")
}

/// Runs a study in memory, continuing after the rows in `stored`.
fn run_study(spec: &Training, stored: &[TrainingRow]) -> Ran<Training> {
    run_with(spec, on_cpu(spec), stored)
}

/// The same on engines that are open, all cells checked before.
fn run_with(spec: &Training, engines: Engines, stored: &[TrainingRow]) -> Ran<Training> {
    let scratch = tempfile::tempdir().expect("a folder");
    in_memory(spec, engines, &RawFiles::new(scratch.path().into()), stored)
}

const BODY: &str = "[sweep]\nbatch_size = [32]\n[train]\noptimizer = \"adam\"\nlearning_rate = 0.01\n[engine]\nname = [\"cpu\", \"candle\"]\nthreads = 1\n\
    [data]\nsource = \"digits\"\nexamples = 200\ntest_examples = 100\n[loader]\nworkers = [0, 1, 3]\n[measure]\nrepetitions = 2\nepochs = 2\nwarmup_steps = 2";

#[test]
#[ignore = "slow"]
fn the_loss_curve_is_the_same_whatever_the_workers_and_in_every_repetition() {
    let Ran { rows: epochs, details: batches, outcome, .. } = run_study(&spec(BODY), &[]);
    assert!(outcome.complete);
    // 2 engines x 3 numbers of workers, twice, each with a warm-up and two epochs.
    assert_eq!(epochs.len(), 6 * 2 * 3);
    for engine in ["cpu", "candle"] {
        let visits: Vec<i64> =
            epochs.iter().filter(|row| row.engine == engine && row.warmup).map(|row| row.visit).collect();
        let curve = |visit: i64| -> Vec<f64> {
            batches.iter().filter(|row| row.visit == visit && !row.warmup).filter_map(|row| row.loss).collect()
        };
        let first = curve(visits[0]);
        // 200 = 6 x 32 + 8: seven steps in each of two epochs.
        assert_eq!((visits.len(), first.len()), (6, 14));
        assert!(visits.iter().all(|&visit| curve(visit) == first), "{engine}");
        assert!(first[13] < 0.8 * first[0], "{engine} learns: {first:?}");
        let counted: Vec<&TrainingRow> = epochs.iter().filter(|row| row.engine == engine && !row.warmup).collect();
        assert!(counted.iter().all(|row| (row.examples, row.steps, row.dropped) == (200, 7, 0)));
        let accuracy = counted[1].test_accuracy.expect("evaluated");
        assert!(
            accuracy > 0.2
                && counted.iter().all(|row| row.epoch != counted[1].epoch || row.test_accuracy == Some(accuracy))
        );
        for row in counted {
            let whole = row.epoch_time_s.expect("timed");
            let parts = row.compute_time_s.expect("timed") + row.wait_time_s.expect("timed");
            assert!(parts <= whole && row.counters.get("task_clock_s").is_some_and(|clock| clock > 0.0));
        }
        let warm: Vec<f64> =
            batches.iter().filter(|row| row.visit == visits[0] && row.warmup).filter_map(|row| row.loss).collect();
        assert_eq!(warm, first[..2], "the warm-up starts from the same parameters, and leaves none of its own");
    }
    // Both engines compute the same network from the same numbers.
    let first = |engine: &str| {
        batches
            .iter()
            .find(|row| epochs.iter().any(|e| e.visit == row.visit && e.engine == engine))
            .and_then(|row| row.loss)
    };
    let (cpu, candle) = (first("cpu").expect("a loss"), first("candle").expect("a loss"));
    assert!((cpu / candle - 1.0).abs() < 1e-4, "{cpu} {candle}");
}

#[test]
fn a_study_continues_after_the_stored_rows() {
    let spec = spec(&BODY.replace("[\"cpu\", \"candle\"]", "\"cpu\"").replace("epochs = 2", "epochs = 1"));
    let whole = run_study(&spec, &[]).rows;
    let stored: Vec<TrainingRow> = whole.iter().filter(|row| row.visit < 4).cloned().collect();
    let Ran { rows: rest, outcome, .. } = run_study(&spec, &stored);
    let place = |row: &TrainingRow| (row.visit, row.block, row.cell, row.warmup, row.loss);
    assert!(outcome.complete);
    assert_eq!(
        rest.iter().map(place).collect::<Vec<_>>(),
        whole.iter().filter(|row| row.visit >= 4).map(place).collect::<Vec<_>>()
    );
}

#[test]
fn an_epoch_without_a_full_batch_is_refused_where_only_full_ones_count() {
    let body = BODY.replace("[32]", "[50, 256]").replace("[\"cpu\", \"candle\"]", "\"cpu\"");
    let refusal = |drop_last: bool| {
        let spec = spec(&body.replace("workers = [0, 1, 3]", &format!("workers = 0\ndrop_last = {drop_last}")));
        let mut engines = on_cpu(&spec);
        let data = data::open(&spec.data, 1).expect("data");
        spec.plan(&data, &mut engines).err().map(|error| error.to_string())
    };
    // 200 examples: one batch of them, where a batch need not be full.
    assert_eq!(refusal(false), None);
    let said = refusal(true).expect("refused");
    assert!(said.contains("no batch is full: 200 examples are fewer than the batch size 256"), "{said}");
    assert!(said.contains("help: lower `batch_size`"), "{said}");
}

/// Correct answers in percent of 1,000 test digits, after three epochs over 4,000 training digits.
fn accuracy(layers: &[&str]) -> f64 {
    let layers: String = layers.iter().map(|layer| format!("[[model.layers]]\ntype = {layer}\n")).collect();
    let body = format!(
        "[model]\nname = \"t\"\n{layers}[sweep]\nbatch_size = 50\n\
         [train]\noptimizer = \"adam\"\nlearning_rate = 0.002\nprecision = \"fp32\"\n[engine]\nname = \"cpu\"\nthreads = 2\n\
         [data]\nsource = \"digits\"\nexamples = 4000\ntest_examples = 1000\n\
         [measure]\nrepetitions = 1\nepochs = 3\nwarmup_steps = 0"
    );
    let Ran { rows, .. } = run_study(&parse("training", &body, Training::of).expect("valid"), &[]);
    100.0 * rows.last().and_then(|row| row.test_accuracy).expect("evaluated")
}

#[test]
#[ignore = "slow"]
fn drawn_digits_are_hard_for_a_linear_model_and_not_for_a_convolutional_one() {
    let end = ["\"flatten\"", "\"dense\"\nout_features = 10"];
    let [first, second] =
        [8, 16].map(|channels| format!("\"conv2d\"\nout_channels = {channels}\nkernel = 3\npadding = 1"));
    let (relu, pool) = ("\"relu\"", "\"max_pool2d\"\nkernel = 2");
    let blocks = [first.as_str(), relu, pool, second.as_str(), relu, pool];
    let (linear, deep) = (accuracy(&end), accuracy(&[&blocks[..], &end].concat()));
    // The standard error of a share of 1,000 is at most 1.6 points.
    assert!(deep > linear + 5.0 && deep > 93.0, "linear {linear} %, convolutional {deep} %");
}

#[test]
fn a_training_on_the_replacement_of_a_refused_algorithm_is_not_marked_as_checked() {
    let body =
        BODY.replace("[32]", "[20, 32]").replace("[\"cpu\", \"candle\"]", "\"cpu\"").replace("[0, 1, 3]", "[0, 1]");
    let engines = Engines::of(EngineName::Cpu, Box::new(Refusing::at(32)));
    let Ran { rows: epochs, outcome, said, .. } = run_with(&spec(&body), engines, &[]);
    assert!(outcome.complete && epochs.iter().all(|row| row.error.is_none()));
    // Whatever the workers: two cells of each batch size, twice, each with a warm-up and two epochs.
    for size in [20, 32] {
        let own: Vec<&TrainingRow> = epochs.iter().filter(|row| row.batch_size == size).collect();
        assert!(own.len() == 12 && own.iter().all(|row| row.qualified == Some(size == 20)), "at {size}");
    }
    assert!(said.len() == 1 && said[0].contains(Refusing::SAID) && said[0].contains("`qualified` = false"), "{said:?}");
}
