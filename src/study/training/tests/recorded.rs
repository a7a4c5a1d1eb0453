//! A study on the GPU's engine, its calls recorded ([`crate::engine::cudnn::recorded`]): numbers that are read back are zeros, so that
//! what is tested is the way of the batches. What a training computes is tested on the emulator.

use super::*;
use crate::engine::cudnn::engine::CudnnEngine;
use crate::engine::cudnn::recorded;
use crate::settings::{EngineName, Value};

const NAME: &str = "study::training::tests::recorded::a_loaders_batches_reach_a_gpu_from_page_locked_memory";

const BODY: &str = "[sweep]\nbatch_size = [20]\n[train]\noptimizer = \"adam\"\nprecision = \"fp32\"\n[engine]\nname = \"cudnn\"\n\
    [data]\nsource = \"digits\"\nexamples = 100\ntest_examples = 30\n[loader]\nworkers = [0, 2]\n[measure]\nrepetitions = 2\nepochs = 2\nwarmup_steps = 2";

fn engines() -> Engines {
    recorded::begin(None);
    Engines::of(EngineName::Cudnn, Box::new(CudnnEngine::recorded().expect("an engine")))
}

fn calls(name: &str) -> usize {
    recorded::called().iter().filter(|(call, _)| call.name == name).map(|(_, count)| count).sum()
}

/// Whether that way of the batch is stored.
fn is_data(row: &TrainingRow, name: &str) -> bool {
    row.axes.of_key("data").is_some_and(|value| matches!(value, Value::Name(own) if own == name))
}

/// In a process of its own.
fn look() {
    let Ran { rows: epochs, outcome, said, .. } = run_with(&spec(BODY), engines(), &[]);
    assert!(outcome.complete && said.is_empty(), "{said:?}");
    assert_eq!(epochs.len(), 2 * 2 * 3, "two cells, twice, with a warm-up and two epochs each");
    for row in &epochs {
        assert!(row.error.is_none() && is_data(row, "pinned"), "{row:?}");
        let copied = row.copy_time_s.expect("timed");
        assert!(copied > 0.0 && row.forward_time_s.is_some() && row.wait_time_s.is_some());
    }
    let counted: Vec<&TrainingRow> = epochs.iter().filter(|row| !row.warmup).collect();
    assert!(counted.iter().all(|row| (row.examples, row.steps, row.dropped) == (100, 5, 0)));
    assert!(counted.iter().all(|row| row.test_accuracy.is_some() && row.test_time_s.is_some()));
    // Inputs and targets in each of 4 visits' 2 + 2 x 5 steps. Both buffers of a visit are page-locked.
    assert_eq!(calls("cuMemcpyHtoDAsync_v2"), 4 * 12 * 2);
    assert!(calls("cuMemHostAlloc") >= 4 * 2);
    // Pageable, where the spec says so.
    let pageable = BODY.replace("precision", "data = \"pageable\"\nprecision").replace("[0, 2]", "[0]");
    let rows = run_with(&spec(&pageable), engines(), &[]).rows;
    assert!(rows.iter().all(|row| row.error.is_none() && is_data(row, "pageable")));
    refusals();
}

fn refusals() {
    let mut engines = engines();
    let mut refusal = |from: &str, to: &str| {
        let spec = spec(&BODY.replace(from, to));
        let data = data::open(&spec.data, 1).expect("data");
        spec.plan(&data, &mut engines).expect_err("refused").to_string()
    };
    let part = refusal("[20]", "[30]");
    assert!(part.contains("30 examples, and 100 examples are no multiple") && part.contains("drop_last"), "{part}");
    let skips = refusal("workers = [0, 2]", "workers = 0\non_error = \"skip\"");
    assert!(skips.contains("makes smaller batches"), "{skips}");
    // What is refused of an engine that was named is left out of one that is optional.
    let narrowed = |examples: &str, more: &str| {
        let body = BODY.replace("name = \"cudnn\"", "name = [\"cpu\", \"cudnn\"]\noptional = \"cudnn\"");
        let spec = spec(&body.replace("examples = 100", examples).replace("workers = [0, 2]", more));
        let data = data::open(&spec.data, 1).expect("data");
        crate::study::without_unfit(&spec, &data, &mut self::engines())
    };
    let (kept, left_out) = narrowed("examples = 90", "workers = 0");
    assert_eq!((kept.subject.engine.name, kept.subject.engine.optional), (vec![EngineName::Cpu], Vec::new()));
    assert!(left_out.len() == 1 && left_out[0].contains("no multiple of that; set `drop_last = true`"), "{left_out:?}");
    for (examples, more) in [("examples = 100", "workers = 0"), ("examples = 90", "workers = 0\ndrop_last = true")] {
        let (kept, left_out) = narrowed(examples, more);
        assert!(
            left_out.is_empty()
                && kept.subject.engine.name.len() == 2
                && kept.subject.engine.optional == [EngineName::Cudnn],
            "{left_out:?}"
        );
    }
}

#[test]
fn a_loaders_batches_reach_a_gpu_from_page_locked_memory() {
    if recorded::is_apart(NAME) {
        look();
    }
}
