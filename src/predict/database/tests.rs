//! Collects the stored runs of the repository, twice; what does not belong is refused.

use std::path::{Path, PathBuf};

use super::*;
use crate::error::{Error, Kind};

fn stored(run: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/runs").join(run)
}

fn taken(paths: &[PathBuf], into: &Path) -> Vec<Outcome> {
    let mut outcomes = Vec::new();
    collect(paths, into, &mut |_, outcome| outcomes.push(outcome)).expect("collected");
    outcomes
}

fn refused(path: PathBuf) -> Error {
    let folder = tempfile::tempdir().expect("a folder");
    match taken(&[path], folder.path()).pop() {
        Some(Outcome::Refused(error)) => error,
        other => panic!("{other:?}"),
    }
}

/// Every file below a folder with its bytes.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in folder.read_dir().expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => found.extend(contents(&path)),
            false => found.push((path.clone(), std::fs::read(&path).expect("readable"))),
        }
    }
    found.sort();
    found
}

fn copied(run: &str, to: &Path) -> PathBuf {
    std::fs::create_dir_all(to).expect("made");
    for entry in stored(run).read_dir().expect("a run") {
        let path = entry.expect("an entry").path();
        std::fs::copy(&path, to.join(path.file_name().expect("a name"))).expect("copied");
    }
    to.to_path_buf()
}

#[test]
#[ignore = "slow"]
fn every_stored_run_is_taken_and_a_second_time_nothing_changes() {
    let folder = tempfile::tempdir().expect("a folder");
    let all = [stored("")];
    let first = taken(&all, folder.path());
    let added = |outcome: &&Outcome| matches!(outcome, Outcome::Added { .. });
    assert!(first.iter().filter(added).count() >= 10, "{first:?}");
    // A pipeline, a fit and a training are not sweeps.
    for other in first.iter().filter(|outcome| !added(outcome)) {
        assert!(
            matches!(other, Outcome::Refused(error) if ["the steps of sweeps", "is a training"].iter().any(|why| error.to_string().contains(why))),
            "{first:?}"
        );
    }
    let before = contents(folder.path());
    let second = taken(&all, folder.path());
    let refused = |outcome: &Outcome| matches!(outcome, Outcome::Refused(_));
    assert!(second.iter().all(|outcome| refused(outcome) || matches!(outcome, Outcome::Unchanged)), "{second:?}");
    assert!(before == contents(folder.path()));

    let database = Database::open(folder.path()).expect("a database");
    let several = database.device("epyc").expect_err("of one core and of two").to_string();
    assert!(several.contains("AMD EPYC (1 core), AMD EPYC (2 cores)"), "{several}");
    let epyc = database.device("AMD EPYC (2").expect("one");
    assert_eq!(epyc, "AMD EPYC (2 cores)");
    let network = "three_dense at 3x8x8 to 512";
    assert!(database.networks(epyc).expect("listed").iter().any(|name| name == network));
    let cells = database.cells(epyc, network).expect("read");
    // experiments/runs/2026-11-23-epyc-2-cores-quickstart/jumps.json: a jump of 97.9 µs after 16.
    let jumps: Vec<_> = cells.iter().filter(|cell| cell.batch_size == 16).filter_map(|cell| cell.jump_s).collect();
    assert!(jumps.iter().any(|jump| (jump - 9.788712973409771e-5).abs() < 1e-12), "{jumps:?}");
    assert!(cells.iter().all(|cell| cell.searched));
    // 192 features to 512 to 512 to 512, with biases.
    assert_eq!(cells[0].parameters, 192 * 512 + 512 + 2 * (512 * 512 + 512));
    let layers = database.layers(epyc, network).expect("read");
    assert!(layers.iter().any(|layer| layer.operation == "dense" && layer.device_time_s.is_some()));
    assert!(database.runs(epyc).expect("read").iter().all(|run| run.environment.contains("run_id")));
}

#[test]
fn a_run_that_has_gone_on_takes_the_place_of_its_earlier_state() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = copied("2026-11-23-epyc-2-cores-quickstart", &folder.path().join("run"));
    let into = folder.path().join("database");
    taken(std::slice::from_ref(&run), &into);
    std::fs::remove_file(run.join("jumps.json")).expect("removed");
    let outcomes = taken(std::slice::from_ref(&run), &into);
    assert!(matches!(outcomes[..], [Outcome::Replaced { cells: 70 }]), "{outcomes:?}");
    let database = Database::open(&into).expect("a database");
    let cells = database.cells("AMD EPYC (2 cores)", "three_dense at 3x8x8 to 512").expect("read");
    assert!(cells.len() == 70 && cells.iter().all(|cell| !cell.searched && cell.jump_s.is_none()));
    assert_eq!(database.runs("AMD EPYC (2 cores)").expect("read").len(), 1);
}

/// A folder in the place of a table cannot be read by anyone, and no file system has a name that long.
#[test]
fn a_run_that_cannot_be_read_keeps_no_other_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let unreadable = copied("2026-11-23-epyc-2-cores-quickstart", &folder.path().join("unreadable"));
    std::fs::remove_file(unreadable.join("layers.parquet")).expect("removed");
    std::fs::create_dir(unreadable.join("layers.parquet")).expect("made");
    let [first, last] = ["quickstart", "quickstart-again"].map(|run| stored(&format!("2026-11-23-epyc-2-cores-{run}")));
    let into = folder.path().join("database");
    let outcomes = taken(&[first, unreadable, folder.path().join("n".repeat(5000)), last], &into);
    let [Outcome::Added { .. }, Outcome::Refused(table), Outcome::Refused(name), Outcome::Added { .. }] = &outcomes[..]
    else {
        panic!("{outcomes:?}")
    };
    assert!(table.kind() == Kind::Io && table.to_string().contains("layers.parquet"), "{table}");
    assert_eq!(name.kind(), Kind::Io, "{name}");
    assert_eq!(Database::open(&into).expect("a database").runs("AMD EPYC (2 cores)").expect("read").len(), 2);
}

/// The environment of `run` with one more engine on a device of its own, and two more peaks.
fn with_other_peaks(run: &Path) {
    let path = run.join("environment.json");
    let text = std::fs::read_to_string(&path).expect("readable");
    let mut environment: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let peak = |engine: &str, precision: &str, flops: f64, bytes: f64| {
        serde_json::json!({"engine": engine, "precision": precision, "threads": null,
            "flops_per_s": flops, "bytes_per_s": bytes})
    };
    let mut engine = environment["engines"][0].clone();
    for (key, value) in [("name", "cudnn"), ("device", "cuda"), ("device_name", "NVIDIA H200")] {
        engine[key] = value.into();
    }
    environment["engines"].as_array_mut().expect("engines").push(engine);
    let peaks = environment["peaks"].as_array_mut().expect("peaks");
    peaks.push(peak("cpu", "bf16", 9e11, 5e10));
    peaks.push(peak("cudnn", "fp32", 5e13, 4e12));
    std::fs::write(&path, environment.to_string()).expect("written");
}

#[test]
fn the_peaks_of_a_device_are_its_own_and_in_float32() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = copied("2026-11-23-epyc-2-cores-quickstart", &folder.path().join("run"));
    with_other_peaks(&run);
    let into = folder.path().join("database");
    taken(std::slice::from_ref(&run), &into);
    let runs = Database::open(&into).expect("a database").runs("AMD EPYC (2 cores)").expect("read");
    // The run's own environment.json has 215.9 GFLOP/s in float32; a copy is as fast in every precision.
    let [run] = &runs[..] else { panic!("{runs:?}") };
    assert!(run.peak_flops_per_s.is_some_and(|peak| (peak / 215_909_363_424.474 - 1.0).abs() < 1e-9), "{run:?}");
    assert_eq!(run.peak_bytes_per_s, Some(5e10));
}

#[test]
fn what_does_not_belong_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let unfinished = folder.path().join("unfinished");
    std::fs::create_dir(&unfinished).expect("made");
    std::fs::write(unfinished.join("spec.toml"), "").expect("written");
    assert!(refused(unfinished.clone()).to_string().contains("has not ended"));
    std::fs::write(unfinished.join("epochs.parquet"), "").expect("written");
    assert!(refused(unfinished).to_string().contains("is a training"));
    let empty = folder.path().join("empty");
    std::fs::create_dir(&empty).expect("made");
    assert!(refused(empty).to_string().contains("neither a run directory"));

    let control = copied("2026-11-23-epyc-2-cores-quickstart", &folder.path().join("control"));
    let spec = std::fs::read_to_string(control.join("spec.toml")).expect("readable");
    std::fs::write(control.join("spec.toml"), spec.replace("[sweep]", "[sweep]\nexecutes = 8")).expect("written");
    assert!(refused(control.clone()).to_string().contains("A/A run"));
    std::fs::write(control.join("spec.toml"), spec.replace("1..=70", "1..=69")).expect("written");
    assert!(refused(control).to_string().contains("not in the plan of the run's own spec"));

    // A table without a statement of who measured it.
    let table = stored("2026-11-23-epyc-2-cores-quickstart").join("cells.parquet");
    assert!(refused(table).to_string().contains("neither who measured"));
}

#[test]
fn a_folder_of_something_else_and_a_database_of_another_version_are_not_touched() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("thesis.txt"), "").expect("written");
    let error = collect(&[], folder.path(), &mut |_, _| {}).unwrap_err().to_string();
    assert!(error.contains("neither empty nor a database of runs") && error.contains("--into"), "{error}");

    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("database.json"), "{\"version\": 7}").expect("written");
    for error in [collect(&[], folder.path(), &mut |_, _| {}).unwrap_err(), Database::open(folder.path()).unwrap_err()]
    {
        assert!(error.to_string().contains("of version 7, and version 2 is read here"), "{error}");
    }
    let nowhere = Database::open(&folder.path().join("nowhere")).unwrap_err().to_string();
    assert!(nowhere.contains("batchstep collect"), "{nowhere}");
}

#[test]
fn an_unknown_device_is_answered_with_those_that_are_there() {
    let folder = tempfile::tempdir().expect("a folder");
    taken(&[stored("2026-11-23-epyc-2-cores-quickstart")], folder.path());
    let error = Database::open(folder.path()).expect("a database").device("h100").unwrap_err().to_string();
    assert!(error.contains("`h100`") && error.contains("AMD EPYC (2 cores)") && error.contains("collect"), "{error}");
}
