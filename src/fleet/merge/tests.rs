//! Merges runs that are simulated into folders.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use super::*;
use crate::device::Device;
use crate::engine::open::{DeviceChoice, Engines};
use crate::fleet::status::{self, RunState};
use crate::run::{History, Observer, RowContext, Sweep};
use crate::spec::Experiment;
use crate::spec::plan::Plan;
use crate::store::{Begin, CellRow, LayerRow, RunDirectory, Status, Table, files, sealed};

struct Silent;

impl Observer for Silent {
    fn warn(&mut self, _message: &str) {}
}

fn spec(more: &str, measure: &str) -> String {
    format!(
        "version = 1\nname = \"m\"\n[sweep]\nbatch_size = \"1..=8\"\n[engine]\nname = \"synthetic\"\n{more}\
         [synthetic]\nmachines = {{ sd = \"10%\" }}\nnoise = {{ visits = \"0.2%\" }}\n\
         [measure]\nblocks = {{ min = 9, max = 9 }}\nsteps_per_visit = 2\n{measure}"
    )
}

/// Measures a shard into a folder; `visits` ends it early and unsealed.
fn measure(folder: &Path, name: &str, text: &str, visits: Option<usize>) -> PathBuf {
    let experiment = Experiment::parse(text, "m.toml").expect("valid");
    let own = experiment.own_part().expect("a part");
    let plan = Plan::new(&own).expect("plans");
    let mut engines = Engines::open(&own.engine.name, DeviceChoice::Cpu, own.truth().as_ref()).expect("opens");
    let mut device: Box<dyn Device> = engines.open_device();
    let path = folder.join(name);
    let opened = RunDirectory::open(&path, &experiment.to_toml(), Begin::Anew).expect("opens");
    let mut environment = RunEnvironment::begin(name, &plan, &mut engines, device.as_mut());
    environment.run_id = name.to_owned();
    opened.directory.write_text(files::ENVIRONMENT, &environment.to_json()).expect("written");
    let facts = RowContext::new(name.to_owned(), &plan, &mut engines).expect("facts").with_node(format!("host-{name}"));
    let outcome = crate::run::run(
        Sweep {
            plan: &plan,
            measure: &own.measure,
            facts,
            engines: &mut engines,
            device: device.as_mut(),
            witness: None,
            sink: &opened.directory,
            observer: &mut Silent,
            interrupted: &AtomicBool::new(false),
            hung: &|_| (),
        },
        History::new(&plan),
    )
    .expect("runs");
    match visits {
        None => {
            let sealed = opened.directory.seal(&outcome, &outcome.cells, outcome.complete).expect("sealed");
            assert_eq!(sealed.complete, outcome.complete);
        }
        Some(visits) => {
            let parts = path.join("parts").read_dir().expect("parts").flatten().map(|entry| entry.path());
            let late = |path: &PathBuf| {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                name.strip_prefix("visit-").is_some_and(|name| name[..8].parse::<usize>().expect("a number") >= visits)
            };
            parts.filter(late).for_each(|path| std::fs::remove_file(path).expect("removed"));
        }
    }
    path
}

fn shards(folder: &Path, more: &str, by: &str, count: usize) -> Vec<PathBuf> {
    let shard = |number| {
        let text = spec(more, &format!("shard = \"{number}/{count}\"\nshard_by = \"{by}\"\n"));
        measure(folder, &format!("{by}-{number}"), &text, None)
    };
    (1..=count).map(shard).collect()
}

/// The numbers of a table, row by row.
fn rows(run: &Path, names: &[&str]) -> Vec<Vec<i64>> {
    let table = Table::read(run, names).expect("read");
    let columns: Vec<Vec<f64>> = names.iter().map(|name| table.numbers(name).expect("numbers")).collect();
    (0..table.rows()).map(|row| columns.iter().map(|column| column[row] as i64).collect()).collect()
}

fn refusal(folder: &Path, runs: &[PathBuf]) -> String {
    merge(&folder.join("refused"), runs).expect_err("refused").to_string()
}

#[test]
fn the_shards_of_a_plan_together_are_the_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, out) = (folder.path(), folder.path().join("out"));
    let mut runs = shards(folder, "", "blocks", 3);
    runs.reverse();
    let merged = merge(&out, &runs).expect("merged");
    assert!(merged.statement.is_complete() && merged.notices.is_empty());
    assert_eq!((merged.statement.visits(), merged.cells, merged.statement.nodes().len()), (72, 8, 3));

    let plan = Plan::new(&Experiment::parse(&spec("", ""), "m.toml").expect("valid")).expect("plans");
    let mut planned: Vec<Vec<i64>> = (0..9)
        .flat_map(|block| plan.order(block).into_iter().map(move |cell| vec![block as i64, cell as i64]))
        .collect();
    let mut visits = rows(&out, &["visit", "block", "cell"]);
    visits.dedup();
    assert_eq!(visits.iter().map(|visit| visit[0]).collect::<Vec<_>>(), (0..72).collect::<Vec<_>>());
    let mut done: Vec<Vec<i64>> = visits.iter().map(|visit| visit[1..].to_vec()).collect();
    // Each shard keeps the order of its blocks.
    assert_eq!(done[..8], planned[..8]);
    done.sort();
    planned.sort();
    assert_eq!(done, planned);
    let orders: Vec<i64> = rows(&out, &["order"]).concat();
    assert_eq!(orders, (0..orders.len() as i64).collect::<Vec<_>>());

    // An ordinary run directory, whose cells combine the measurements of all machines.
    let cells = sealed::<CellRow>(&out.join(files::CELLS)).expect("cells");
    assert!(cells.iter().all(|cell| cell.blocks == 9 && cell.steps == 18 && cell.low_s.is_some()), "{cells:?}");
    let spec = std::fs::read_to_string(out.join("spec.toml")).expect("a spec");
    assert!(!spec.contains("shard"), "{spec}");
    // It can be made again, and it is refused as a folder for measurements.
    assert_eq!(merge(&out, &runs).expect("merged").rows, merged.rows);
    assert!(RunDirectory::open(&out, &spec, Begin::Resume).is_err());
}

#[test]
fn shards_by_cells_get_their_numbers_in_the_whole_plan_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, out) = (folder.path(), folder.path().join("out"));
    let runs = shards(folder, "threads = [1, 2, 3]\n", "cells", 2);
    let merged = merge(&out, &runs).expect("merged");
    assert_eq!((merged.statement.visits(), merged.cells), (3 * 8 * 9, 24));
    let by_cell = rows(&out, &["cell", "threads", "batch_size"]);
    assert!(by_cell.iter().all(|row| row[0] == (row[1] - 1) * 8 + row[2] - 1));
    let layers = sealed::<LayerRow>(&out.join(files::LAYERS)).expect("layers");
    assert!(layers.iter().all(|layer| layer.batch_size == layer.cell % 8 + 1) && !layers.is_empty());
}

#[test]
fn missing_and_unfinished_shards_are_reported_and_foreign_runs_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, out) = (folder.path(), folder.path().join("out"));
    let shard = |number: usize, of: usize| spec("", &format!("shard = \"{number}/{of}\"\n"));
    let first = measure(folder, "first", &shard(1, 3), None);
    let half = measure(folder, "half", &shard(2, 3), Some(10));
    let merged = merge(&out, &[half.clone(), first.clone()]).expect("merged");
    assert_eq!((merged.statement.missing.as_slice(), merged.statement.is_complete()), (&[3][..], false));
    assert_eq!(
        merged.statement.runs.iter().map(|run| (run.visits, run.complete)).collect::<Vec<_>>(),
        [(24, true), (10, false)]
    );

    // A part of the run is lost.
    std::fs::remove_file(half.join("parts/visit-00000004.parquet")).expect("removed");
    let merged = merge(&out, &[first.clone(), half.clone()]).expect("merged");
    assert_eq!(merged.statement.runs.iter().map(|run| run.lost).collect::<Vec<_>>(), [0, 1]);

    let again = measure(folder, "again", &shard(1, 3), None);
    let error = refusal(folder, &[first.clone(), again]);
    assert!(
        error.contains("shard 1/3 is given twice") && error.contains("first") && error.contains("again"),
        "{error}"
    );
    let other = measure(folder, "other", &shard(2, 3).replace("steps_per_visit = 2", "steps_per_visit = 3"), None);
    let error = refusal(folder, &[first.clone(), other]);
    assert!(error.contains("steps_per_visit = 2\n") && error.contains("steps_per_visit = 3"), "{error}");
    let fourth = measure(folder, "fourth", &shard(4, 4), None);
    assert!(refusal(folder, &[first.clone(), fourth]).contains("one of 4 shards by blocks"));
    assert!(refusal(folder, &[out, first.clone()]).contains("result of a merge"));
    assert!(refusal(folder, &[folder.join("nowhere")]).contains("contains no run"));
    std::fs::create_dir(folder.join("refused")).expect("made");
    std::fs::write(folder.join("refused/notes.txt"), "mine").expect("written");
    assert!(refusal(folder, &[first]).contains("something other than an earlier merge"));
}

/// Runs of one spec that are not divided repeat each other, so their blocks are different blocks.
#[test]
fn the_same_experiment_from_several_machines_is_merged_block_by_block() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, out) = (folder.path(), folder.path().join("out"));
    let runs = ["a", "b"].map(|name| measure(folder, name, &spec("", ""), None));
    merge(&out, &runs).expect("merged");
    let mut blocks: Vec<i64> = rows(&out, &["block"]).concat();
    blocks.sort_unstable();
    blocks.dedup();
    assert_eq!(blocks, (0..18).collect::<Vec<_>>());
    let statuses = Table::read(&out, &["status"]).expect("read").distinct("status").expect("texts").distinct;
    assert_eq!(statuses, [Status::Ok.name()]);
    // A shard whose process has only made its folder.
    std::fs::create_dir(folder.join("late")).expect("made");
    let merged = merge(&folder.join("without"), &[runs[0].clone(), folder.join("late")]).expect("merges");
    assert!(merged.notices[0].contains("late has not begun"), "{:?}", merged.notices);
    // A copy is the same run.
    let copy = folder.join("copy");
    std::fs::create_dir(&copy).expect("made");
    for name in ["spec.toml", "environment.json", "steps.parquet"] {
        std::fs::copy(runs[0].join(name), copy.join(name)).expect("copied");
    }
    assert!(refusal(folder, &[runs[0].clone(), copy]).contains("are the same run"));
}

fn id_of(run: &Path) -> String {
    let text = std::fs::read_to_string(run.join("environment.json")).expect("an environment");
    RunEnvironment::from_json(&text).expect("valid").run_id
}

/// A database would take runs of one name for states of one run.
#[test]
fn merges_of_other_runs_have_other_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let runs = ["a", "b", "c"].map(|name| measure(folder, name, &spec("", ""), None));
    let merged = |out: &str, of: &[usize]| {
        let runs: Vec<PathBuf> = of.iter().map(|&run| runs[run].clone()).collect();
        merge(&folder.join(out), &runs).expect("merged");
        id_of(&folder.join(out))
    };
    let first = merged("first", &[0, 1]);
    assert!(first.starts_with("a-merged-of-2-"), "{first}");
    assert_eq!(merged("first", &[1, 0]), first);
    assert_ne!(merged("other", &[0, 2]), first);
}

/// The content of every file in a folder.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = folder.read_dir().expect("a folder").map(|entry| entry.expect("an entry").path());
    paths.map(|path| (path.clone(), std::fs::read(path).expect("readable"))).collect()
}

#[test]
fn a_merge_that_fails_leaves_the_earlier_one_and_one_that_was_cut_short_is_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, out) = (folder.path(), folder.path().join("out"));
    let runs = shards(folder, "", "blocks", 3);
    merge(&out, &runs).expect("merged");
    std::fs::write(out.join("jumps.json"), "{}").expect("written");
    let before = contents(&out);
    let cells = runs[2].join("cells.parquet");
    let whole = std::fs::read(&cells).expect("cells");
    std::fs::write(&cells, &whole[..whole.len() / 2]).expect("written");
    let error = merge(&out, &[runs[0].clone(), runs[2].clone()]).expect_err("refused").to_string();
    assert!(error.contains("cells.parquet"), "{error}");
    assert!(before == contents(&out), "{:?}", contents(&out).keys());

    // A process that is killed while it puts the tables in place leaves this, and tables of two merges.
    std::fs::write(out.join("merge.json"), "{}\n").expect("written");
    let read = Table::read(&out, &["block"]).map(drop);
    for error in [read.expect_err("refused"), status::Status::of(&out).map(drop).expect_err("refused")] {
        let error = error.to_string();
        assert!(error.contains("this merge was cut short") && error.contains("merge again"), "{error}");
    }
    // Its findings are not those of the next one.
    std::fs::write(&cells, whole).expect("written");
    merge(&out, &runs[..2]).expect("merged");
    assert!(!out.join("jumps.json").exists());
    let two = status::Status::of(&out).expect("a status");
    assert_eq!((two.state, two.visits), (RunState::Merged, 48));
    merge(&out, &runs).expect("merged");
    assert_eq!(status::Status::of(&out).expect("a status").state, RunState::Finished);
}

#[test]
fn a_run_that_lost_its_environment_is_not_taken_for_one_that_has_not_begun() {
    let folder = tempfile::tempdir().expect("a folder");
    let (folder, out) = (folder.path(), folder.path().join("out"));
    let whole = measure(folder, "whole", &spec("", ""), None);
    let half = measure(folder, "half", &spec("", ""), Some(10));
    for run in [&whole, &half] {
        std::fs::remove_file(run.join("environment.json")).expect("removed");
    }
    let error = refusal(folder, &[whole.clone(), half]);
    assert!(error.contains("half: its visits are there, but its environment.json is missing"), "{error}");
    // The sealed table has it, too.
    let merged = merge(&out, &[whole]).expect("merged");
    assert!(merged.notices.is_empty() && merged.statement.visits() == 72, "{:?}", merged.notices);
}
