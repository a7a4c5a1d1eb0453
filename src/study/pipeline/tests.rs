mod recorded;

use std::collections::BTreeSet;

use super::*;
use crate::engine::refusing::Refusing;
use crate::settings::EngineName;
use crate::store::Status;
use crate::study::pipeline::spec::Format;
use crate::study::tests::{Ran, in_memory, on_cpu, parse};

fn spec(body: &str) -> Pipeline {
    let model = "[model]\nname = \"small\"\n[[model.layers]]\ntype = \"max_pool2d\"\nkernel = 4\n[[model.layers]]\ntype = \"flatten\"\n\
         [[model.layers]]\ntype = \"dense\"\nout_features = 10\n";
    let engine = if body.contains("[engine]") { "" } else { "[engine]\nname = \"cpu\"\nthreads = 1\n" };
    parse("pipeline", &[model, engine, body].concat(), Pipeline::of).expect("valid")
}

/// Runs a study in memory, continuing after the rows in `stored`.
fn run_study(spec: &Pipeline, stored: &[PipelineRow]) -> Ran<Pipeline> {
    run_with(spec, on_cpu(spec), stored)
}

/// On engines that are open, all cells checked before.
fn run_with(spec: &Pipeline, engines: Engines, stored: &[PipelineRow]) -> Ran<Pipeline> {
    run_on(spec, engines, stored, |_| ())
}

/// The same, with something done to the images before.
fn run_on(spec: &Pipeline, engines: Engines, stored: &[PipelineRow], spoil: impl FnOnce(&Made)) -> Ran<Pipeline> {
    let folder = crate::needs::on_disk();
    let made = Made::new(&folder.path().join("images"), &spec.data, spec.measure.seed).expect("made");
    spoil(&made);
    in_memory(spec, engines, &Supplies { made, storage: "a disk".to_owned() }, stored)
}

const QUICK: &str = "[measure]\nrepetitions = 1\nstage_time = \"4ms\"\ntogether_time = \"8ms\"\n";

#[test]
#[ignore = "slow"]
fn every_stage_is_measured_by_itself_and_all_together_in_every_cell() {
    let body = "[sweep]\nbatch_size = [4]\n[data]\nimages = 12\nsize = [16]\n[loader]\nworkers = [0, 2]\n";
    let Ran { rows, outcome, said: warnings, .. } = run_study(&spec(&format!("{body}{QUICK}")), &[]);
    assert!(outcome.complete && warnings.is_empty(), "{warnings:?}");
    // 3 formats x 2 caches x 2 numbers of workers.
    assert_eq!(rows.iter().map(|row| row.cell).collect::<BTreeSet<_>>().len(), 12);
    for cell in 0..12 {
        let own: Vec<&PipelineRow> = rows.iter().filter(|row| row.cell == cell).collect();
        let stages: Vec<(&str, i64)> = own.iter().map(|row| (row.stage.as_str(), row.stage_threads)).collect();
        let one = [("read", 1), ("decode", 1), ("transform", 1), ("batch", 1)];
        let all = [("read", 2), ("decode", 2), ("transform", 2), ("batch", 2)];
        let sides = [("copy", 1), ("step", 1), ("loader", own[0].workers.max(1))];
        let beside = [("loader_beside", own[0].workers.max(1)), ("step_beside", 1)];
        let half = [("loader_half", 1), ("step_half", 1)];
        let end = [("together", own[0].workers)];
        let expected = match own[0].workers {
            0 => [&one[..], &sides[..], &beside[..], &end[..]].concat(),
            _ => [&one[..], &all[..], &sides[..], &beside[..], &half[..], &end[..]].concat(),
        };
        assert_eq!(stages, expected);
        assert!(own.iter().all(|row| row.images > 0 && row.elapsed_s.is_some_and(|time| time > 0.0)), "{own:?}");
        let together = own.last().expect("a row");
        // Whole rounds of batches of 4.
        assert_eq!(together.images % (4 * together.workers.max(1)), 0);
        assert!(together.wait_time_s < together.elapsed_s);
        let read = own[0];
        assert_eq!(read.cache == "warm", read.read_method == "page_cache");
        // A raw image has 16 x 16 x 3 bytes.
        assert!(read.format != "raw" || read.file_bytes == Some(768 * read.images), "{read:?}");
    }
}

#[test]
#[ignore = "slow"]
fn damaged_images_fail_the_cell_stop_the_run_or_are_left_out() {
    let body = "[sweep]\nbatch_size = [4]\n[data]\nimages = 12\ndamaged = 3\nsize = [16]\ncache = \"warm\"\n[loader]\nworkers = [0, 2]\n";
    let with = |on_error: &str| run_study(&spec(&format!("{body}on_error = \"{on_error}\"\n{QUICK}")), &[]);
    let failed = with("fail");
    assert!(failed.outcome.complete && failed.rows.len() == 6 && failed.said.len() == 6);
    for row in &failed.rows {
        let error = row.error.as_deref().unwrap_or_default();
        assert!(
            row.status == Status::Failed
                && error.contains(".raw: ") | error.contains(".png: ") | error.contains(".jpeg: "),
            "{error}"
        );
        assert!(error.contains("the image cannot be read"), "{error}");
    }
    let stopped = with("stop");
    assert!(!stopped.outcome.complete && stopped.rows.len() == 1 && stopped.outcome.stopped.is_some());
    // Going on makes the visit that failed again.
    let again = run_study(&spec(&format!("{body}on_error = \"stop\"\n{QUICK}")), &stopped.rows).rows;
    let place = |row: &PipelineRow| (row.cell, row.block);
    assert_eq!(again.iter().map(place).collect::<Vec<_>>(), stopped.rows.iter().map(place).collect::<Vec<_>>());
    assert_eq!((stopped.rows[0].visit, again[0].visit), (0, 1));
    let skipped = with("skip");
    let together: Vec<&PipelineRow> = skipped.rows.iter().filter(|row| row.stage == "together").collect();
    assert!(together.len() == 6 && together.iter().all(|row| row.status == Status::Ok && row.skipped > 0));
    // Three of twelve, each counted once and named, however often its turn comes.
    for row in together {
        let named: Vec<&str> = row.error.as_deref().expect("why").lines().collect();
        assert!(row.skipped == named.len() as i64 && row.skipped <= 3, "{row:?}");
        assert!(named.iter().all(|why| why.contains(": the image cannot be read")), "{named:?}");
    }
    assert!(skipped.said[0].contains("were left out: ") && skipped.said[0].contains(".raw: "), "{:?}", skipped.said);
}

#[test]
fn images_that_cannot_be_opened_are_named_and_left_out_or_fail_the_cell() {
    let body =
        "[sweep]\nbatch_size = [4]\n[data]\nimages = 12\nsize = [16]\nformat = \"raw\"\n[loader]\nworkers = [0, 2]\n";
    // Also for the superuser, whom no permission keeps from reading: one file is gone, and a folder has the name of another.
    let spoil = |made: &Made| {
        let files = &made.set(Format::Raw, 16).expect("a set").files;
        std::fs::remove_file(&files[2]).expect("removed");
        std::fs::remove_file(&files[5]).expect("removed");
        std::fs::create_dir(&files[5]).expect("a folder");
    };
    let with = |on_error: &str| {
        let spec = spec(&format!("{body}on_error = \"{on_error}\"\n{QUICK}"));
        run_on(&spec, on_cpu(&spec), &[], spoil)
    };
    let skipped = with("skip").rows;
    let together: Vec<&PipelineRow> = skipped.iter().filter(|row| row.stage == "together").collect();
    assert!(together.len() == 4 && together.iter().all(|row| row.status == Status::Ok), "{together:?}");
    let why: BTreeSet<&str> = together.iter().filter_map(|row| row.error.as_deref()).flat_map(str::lines).collect();
    let named = |name: &str| why.iter().filter(|why| why.contains(name)).count();
    assert!(
        why.len() == named("000002.raw") + named("000005.raw") && named("000002.raw") > 0 && named("000005.raw") > 0,
        "{why:?}"
    );
    let failed = with("fail").rows;
    assert!(failed.len() == 4 && failed.iter().all(|row| row.status == Status::Failed), "{failed:?}");
    assert!(failed.iter().all(|row| row.error.as_deref().is_some_and(|why| why.contains("000002.raw"))), "{failed:?}");
}

#[test]
fn a_way_of_the_data_that_an_engine_has_none_of_is_refused_before_anything_is_made() {
    let spec = spec(&format!("[train]\nprecision = \"fp32\"\ndata = \"pageable\"\n{QUICK}"));
    let mut engines = on_cpu(&spec);
    let error = spec.plan(&(), &mut engines).expect_err("refused").to_string();
    assert!(error.contains("each batch comes from the loader") && error.contains("engine `cpu`"), "{error}");
}

#[test]
fn a_pipeline_on_the_replacement_of_a_refused_algorithm_is_not_marked_as_checked() {
    let body = "[sweep]\nbatch_size = [4, 6]\n[data]\nimages = 12\nsize = 16\nformat = \"png\"\ncache = \"warm\"\n[loader]\nworkers = [0, 2]\n";
    let engines = Engines::of(EngineName::Cpu, Box::new(Refusing::at(6)));
    let Ran { rows, outcome, said: warnings, .. } = run_with(&spec(&format!("{body}{QUICK}")), engines, &[]);
    assert!(outcome.complete && rows.iter().all(|row| row.status == Status::Ok));
    for size in [4, 6] {
        let mut own = rows.iter().filter(|row| row.batch_size == size).peekable();
        assert!(own.peek().is_some() && own.all(|row| row.qualified == Some(size == 4)), "at {size}");
    }
    assert!(warnings.len() == 1 && warnings[0].contains(Refusing::SAID), "{warnings:?}");
}
