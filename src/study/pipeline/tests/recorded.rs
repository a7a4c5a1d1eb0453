//! A study on the GPU's engine, its calls recorded ([`crate::engine::cudnn::recorded`]): what is tested is the way of the batches, and that a
//! GPU's times are not taken for those of the processor.

use super::*;
use crate::engine::cudnn::engine::CudnnEngine;
use crate::engine::cudnn::recorded;
use crate::settings::{EngineName, Value};
use crate::study::pipeline::results::Results;

const NAME: &str = "study::pipeline::tests::recorded::batches_reach_a_gpu_from_pageable_and_from_page_locked_memory";

const BODY: &str = "[sweep]\nbatch_size = [4]\n\
    [train]\noptimizer = \"sgd\"\nprecision = \"fp32\"\ndata = [\"pageable\", \"pinned\"]\n[engine]\nname = \"cudnn\"\n\
    [data]\nimages = 12\nsize = 16\nformat = \"png\"\ncache = \"warm\"\n[loader]\nworkers = [0, 2]\n\
    [measure]\nrepetitions = 1\nstage_time = \"4ms\"\ntogether_time = \"8ms\"\n";

fn engines() -> Engines {
    recorded::begin(None);
    Engines::of(EngineName::Cudnn, Box::new(CudnnEngine::recorded().expect("an engine")))
}

fn data(row: &PipelineRow) -> Option<Value> {
    row.axes.of_key("data")
}

/// In a process of its own.
fn look() {
    let Ran { rows, outcome, said: warnings, .. } = run_with(&spec(BODY), engines(), &[]);
    assert!(outcome.complete && warnings.is_empty(), "{warnings:?}");
    assert!(rows.iter().all(|row| row.status == Status::Ok && row.engine == "cudnn"), "{rows:?}");
    for way in ["pageable", "pinned"] {
        let own: Vec<&PipelineRow> = rows.iter().filter(|row| data(row) == Some(Value::Name(way))).collect();
        let copies: Vec<&&PipelineRow> = own.iter().filter(|row| row.stage == "copy").collect();
        // Without workers and with two.
        assert!(copies.len() == 2 && copies.iter().all(|row| row.elapsed_s.is_some_and(|time| time > 0.0)), "{own:?}");
        let together: Vec<&&PipelineRow> = own.iter().filter(|row| row.stage == "together").collect();
        // A thread that waits for the GPU is not one that waits for a core.
        assert!(together.len() == 2 && together.iter().all(|row| row.delay_time_s.is_none()), "{together:?}");
    }
    let study = Results::of(&rows);
    let series: BTreeSet<&str> = study.cells.iter().map(|cell| cell.series.as_str()).collect();
    assert_eq!((series, study.within().of), (BTreeSet::from(["pageable", "pinned"]), 4));
    for cell in &study.cells {
        // The recorded clock of the device says that a copy takes longer than the whole step does here, so that all of it is copy.
        let copy = cell.demands.stages.iter().find(|stage| stage.name == "copy").expect("a stage");
        let is_own = |row: &&PipelineRow| {
            row.workers == cell.workers as i64 && data(row).is_some_and(|way| way.to_string() == cell.series)
        };
        let row = rows.iter().filter(is_own).find(|row| row.stage == "copy").expect("a row");
        let each = row.elapsed_s.expect("timed") / row.images as f64;
        assert!((copy.seconds / each - 1.0).abs() < 1e-9, "a GPU's demand is the time on the clock: {copy:?}");
    }
    // Page-locked where the spec leaves it open; a batch that is not whole is refused beforehand.
    let open = BODY.replace("data = [\"pageable\", \"pinned\"]\n", "").replace("[0, 2]", "0");
    let rows = run_with(&spec(&open), engines(), &[]).rows;
    assert!(rows.iter().all(|row| data(row) == Some(Value::Name("pinned"))), "{rows:?}");
    let skips = spec(&BODY.replace("[loader]", "[loader]\non_error = \"skip\""));
    let mut engines = engines();
    let error = skips.plan(&(), &mut engines).expect_err("refused").to_string();
    assert!(error.contains("makes smaller batches") && error.contains("help: "), "{error}");
}

#[test]
fn batches_reach_a_gpu_from_pageable_and_from_page_locked_memory() {
    if recorded::is_apart(NAME) {
        look();
    }
}
