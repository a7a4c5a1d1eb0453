use std::path::{Path, PathBuf};

use super::*;
use crate::error::Kind;

const SPEC: &str = "version = 1\nname = \"t\"\n";

fn row(visit: i64, step: i64) -> StepRow {
    StepRow {
        run_id: "t-1".into(),
        model: "mlp".into(),
        batch_size: 3,
        visit,
        step,
        step_time_s: Some(0.25),
        throttle_reasons: None,
        ..StepRow::default()
    }
}

fn open(path: &Path, begin: Begin) -> Opened {
    RunDirectory::open(path, SPEC, begin).expect("opens")
}

/// A run that has begun, with its path and the folder around it.
fn begun() -> (tempfile::TempDir, PathBuf, Opened) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run");
    let opened = open(&path, Begin::Anew);
    opened.directory.write_text(files::ENVIRONMENT, "{}").expect("written");
    (folder, path, opened)
}

fn stored(opened: &Opened) -> Vec<StepRow> {
    opened.directory.all(&mut Vec::new()).expect("read")
}

/// Stores visits of one step each.
fn store(opened: &Opened, visits: impl IntoIterator<Item = i64>) {
    visits.into_iter().for_each(|visit| opened.directory.append(&[row(visit, 0)]).expect("stored"));
}

fn seal(opened: &Opened, complete: bool) -> Sealed {
    opened.directory.seal(&Flagging, &[], complete).expect("sealed")
}

#[test]
fn every_column_has_a_name_a_meaning_and_a_place_in_the_contract() {
    // The columns that the documentation of the run directory promises, in its order.
    let promised = "run_id, engine, device, device_name, model, precision, layout, optimizer, loss_name, data, algorithms, \
        launch, batch_size, block, order, visit, step, warmup, status, step_time_s, gpu_time_s, enqueue_time_s, h2d_time_s, \
        forward_time_s, backward_time_s, optimizer_time_s, loss, pcie_link_width, pcie_link_generation, pcie_link_width_max, \
        pcie_link_generation_max, pcie_replay_counter, sm_clock_hz, memory_clock_hz, throttle_reasons, temperature_c, \
        power_w, energy_j, memory_used_bytes, outlier";
    let promised: Vec<&str> = promised.split(", ").map(str::trim).collect();
    let columns = StepRow::columns();
    let names: Vec<&str> = columns.iter().map(|column| column.name).filter(|name| promised.contains(name)).collect();
    assert_eq!(names, promised);
    assert!(columns.iter().all(|column| column.meaning.ends_with('.')));
}

#[test]
fn parts_and_seal_hold_the_same_rows_and_each_visit_once() {
    let (_folder, path, opened) = begun();
    // With nulls, and with a value that is no number and so is equal to nothing.
    let sparse = StepRow { step_time_s: None, loss: Some(f64::NAN), outlier: Some(true), ..row(0, 1) };
    let text = |rows: &[StepRow]| format!("{rows:?}");
    let visits = [vec![row(0, 0), sparse], vec![row(1, 0)]];
    visits.iter().for_each(|visit| opened.directory.append(visit).expect("stored"));
    let rows = visits.concat();
    assert_eq!(text(&stored(&opened)), text(&rows));

    // Killed after sealing, before the parts were cleared: the visits are there twice, and are read once.
    let part = std::fs::read(path.join("parts/visit-00000001.parquet")).expect("a part");
    assert!(seal(&opened, false).notices.is_empty());
    assert!(!path.join("parts").exists());
    std::fs::create_dir(path.join("parts")).expect("made");
    std::fs::write(path.join("parts/visit-00000001.parquet"), part).expect("written");
    drop(opened);
    let again = open(&path, Begin::Resume);
    let flagged: Vec<StepRow> = rows.into_iter().map(|row| StepRow { outlier: Some(true), ..row }).collect();
    assert_eq!((text(&stored(&again)), again.complete), (text(&flagged), false));
}

struct Flagging;

impl EndOfRun for Flagging {
    fn step(&self, row: &mut StepRow) {
        row.outlier = Some(true);
    }

    fn layer(&self, row: &mut LayerRow, place: usize) {
        row.device_time_s = Some(place as f64);
    }
}

/// The layers of a cell that was sealed before, and the layers of a new cell.
#[test]
fn the_end_of_a_run_sees_each_layer_with_its_place_in_its_cell() {
    let layers = |cell: i64| vec![LayerRow { cell, ..LayerRow::default() }; 3];
    let (_folder, path, opened) = begun();
    opened.directory.append(&layers(4)).expect("stored");
    assert!(seal(&opened, false).notices.is_empty());
    drop(opened);
    let opened = open(&path, Begin::Resume);
    opened.directory.append(&layers(5)).expect("stored");
    assert!(seal(&opened, true).complete);
    let three = |cell: i64| [(cell, Some(0.0)), (cell, Some(1.0)), (cell, Some(2.0))];
    let layers = sealed::<LayerRow>(&path.join(files::LAYERS)).expect("layers");
    let times: Vec<_> = layers.iter().map(|row| (row.cell, row.device_time_s)).collect();
    assert_eq!(times, [three(4), three(5)].concat());
}

#[test]
fn a_folder_of_a_run_that_never_began_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::create_dir(folder.path().join("parts")).expect("made");
    std::fs::write(folder.path().join(".lock"), "1").expect("written");
    std::fs::write(folder.path().join(".tmp-7-spec.toml"), "vers").expect("written");
    for begin in [Begin::Resume, Begin::Anew] {
        let opened = open(folder.path(), begin);
        assert!(stored(&opened).is_empty());
        drop(opened);
        std::fs::remove_file(folder.path().join("spec.toml")).expect("removed");
    }
}

#[test]
fn a_newer_schema_is_refused() {
    let (_folder, path, opened) = begun();
    store(&opened, [0]);
    assert!(seal(&opened, true).complete);
    drop(opened);
    let metadata = Metadata::from([("batchstep.schema_version".to_string(), "99".to_string())]);
    written::write(&path.join("steps.parquet"), &metadata, false, |put| put(row(0, 0))).expect("written");
    let error = RunDirectory::open(&path, SPEC, Begin::Resume).expect_err("refused");
    assert!(error.to_string().contains("schema version 99 is newer"), "{error}");
}

/// The runs under `experiments/runs` are of version 1, whose `candle` is the engine `cpu` of today.
#[test]
fn an_earlier_version_is_read_with_its_own_meaning() {
    let run = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/runs/2026-11-21-xeon-2-cores-vgg16-small");
    let (_, metadata) = parquet::describe(&run.join(files::STEPS)).expect("described");
    assert_eq!(metadata["batchstep.schema_version"], "1");
    let engines = Table::read(&run, &["engine"]).expect("read").distinct("engine").expect("texts").distinct;
    assert_eq!(engines, ["cpu"]);
    assert!(sealed::<LayerRow>(&run.join(files::LAYERS)).expect("layers").iter().all(|row| row.engine == "cpu"));
}

/// What a scheduler does that takes a machine for lost, while the run there goes on.
#[test]
fn a_run_that_was_taken_over_stores_nothing_more_that_counts() {
    let (_folder, path, first) = begun();
    let refused = RunDirectory::open(&path, SPEC, Begin::Resume).expect_err("it is in use");
    assert!(
        refused.kind() == Kind::Conflict && refused.to_string().contains(&format!("process {}", std::process::id()))
    );
    store(&first, 0..3);
    let part = std::fs::read(path.join("parts/visit-00000002.parquet")).expect("a part");

    // The first process releases its lock only once it has seen the second one.
    let stops = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(200));
        let error = first.directory.append(&[row(3, 0)]).expect_err("refused");
        assert!(error.kind() == Kind::Conflict && error.to_string().contains("taken this run over"), "{error}");
        assert!(first.directory.seal(&Flagging, &[], false).is_err());
    });
    let second = open(&path, Begin::TakeOver);
    stops.join().expect("it stopped");
    assert_eq!(stored(&second), [row(0, 0), row(1, 0), row(2, 0)]);
    second.directory.append(&[StepRow { loss: Some(2.0), ..row(3, 0) }]).expect("stored");

    // A visit of the first that was on its way to the disk when it was taken over: not read, whatever its name would have been.
    for late in ["visit-00000003.parquet", "visit-00000004.parquet"] {
        std::fs::write(path.join("parts").join(late), &part).expect("written");
    }
    let expected = [row(0, 0), row(1, 0), row(2, 0), StepRow { loss: Some(2.0), ..row(3, 0) }];
    assert_eq!(stored(&second), expected);
    assert_eq!(Table::read(&path, &["visit"]).expect("read").numbers("visit").expect("numbers"), [0.0, 1.0, 2.0, 3.0]);

    assert!(!seal(&second, false).complete);
    assert!(!path.join("parts").exists());
    drop(second);
    let third = open(&path, Begin::Resume);
    assert_eq!(stored(&third).len(), 4);
    store(&third, [4]);
    assert_eq!(stored(&third).len(), 5);
}

/// On a file system without locks two processes may open a run at the same moment.
#[test]
fn of_two_that_open_a_run_at_once_the_later_one_has_it() {
    let (_folder, path, first) = begun();
    store(&first, [0]);
    drop(first);
    let claims = [claim::Claim::make(&path).expect("claimed"), claim::Claim::make(&path).expect("claimed")];
    claims.iter().for_each(|claim| claim.begin_at(1).expect("noted"));
    assert!(claims[0].check().is_err() && claims[1].check().is_ok());
    assert_eq!(claims[1].part_name("visit-", 7), Path::new("visit-00000007.3.parquet"));
    let claim_of = |name: &str| claim::claim_of(Path::new(name));
    assert_eq!(claim_of("visit-00000007.3.parquet"), Some(3));
    assert_eq!(claim_of("visit-00000007.parquet"), Some(1));
    // Under way, beside its place.
    assert_eq!(claim_of(".tmp-12-visit-00000007.3.parquet"), Some(3));
    assert_eq!(claim_of(".tmp-12-visit-00000007.parquet"), Some(1));
    assert_eq!(claim_of("visit-00000007.damaged"), None);
}

#[test]
fn no_folder_holds_more_than_some_thousand_parts() {
    let (_folder, path, opened) = begun();
    let numbers = [0, 999, 1000, 1001, 12_345];
    store(&opened, numbers);
    assert_eq!(path.join("parts/00001").read_dir().expect("a folder").count(), 2);
    assert!(path.join("parts/00012/visit-00012345.parquet").is_file());
    assert_eq!(stored(&opened).iter().map(|row| row.visit).collect::<Vec<_>>(), numbers);
    let mut seen = Vec::new();
    let mut see = |visit: Vec<StepRow>| {
        seen.push(visit[0].visit);
        Ok(())
    };
    visits_of(&path, &mut Vec::new(), &mut see).expect("read");
    assert_eq!(seen, numbers);
    assert!(seal(&opened, true).complete);
    assert!(!path.join("parts").exists());
    assert_eq!(stored(&opened).len(), 5);
}

/// Written whole, and then overwritten: what a power failure may leave.
#[test]
fn a_damaged_part_is_kept_and_named_and_the_run_is_not_complete() {
    let (_folder, path, opened) = begun();
    store(&opened, 0..3);
    let part = path.join("parts/visit-00000001.parquet");
    std::fs::write(&part, "PAR1 nothing of use PAR1").expect("written");
    let sealed = seal(&opened, true);
    assert!(!sealed.complete);
    let kept = path.join("damaged/visit-00000001.damaged");
    assert_eq!(std::fs::read(&kept).expect("kept"), b"PAR1 nothing of use PAR1");
    let [notice] = &sealed.notices[..] else { panic!("{:?}", sealed.notices) };
    assert!(notice.contains(&kept.display().to_string()) && notice.contains("measured again"), "{notice}");
    assert_eq!(stored(&opened).iter().map(|row| row.visit).collect::<Vec<_>>(), [0, 2]);
    drop(opened);
    let again = open(&path, Begin::Resume);
    assert!(!again.complete && again.notices[0].contains("damaged"), "{:?}", again.notices);
    // A second one of that number does not take the place of the first.
    store(&again, [3]);
    std::fs::write(path.join("parts/visit-00000003.2.parquet"), "").expect("written");
    std::fs::create_dir_all(path.join("damaged")).expect("made");
    std::fs::write(path.join("damaged/visit-00000003.2.damaged"), "earlier").expect("written");
    assert!(!seal(&again, true).complete);
    assert_eq!(std::fs::read(path.join("damaged/visit-00000003.2.damaged")).expect("kept"), b"earlier");
    assert!(path.join("damaged/visit-00000003.2.2.damaged").is_file());
}

/// If the last part is damaged, or a part came too late, the repeated visits count.
#[test]
fn visits_that_replace_damaged_and_late_ones_count() {
    let (_folder, path, first) = begun();
    store(&first, 0..4);
    drop(first);
    std::fs::write(path.join("parts/visit-00000003.parquet"), "").expect("written");
    let second = open(&path, Begin::Resume);
    assert_eq!(stored(&second).len(), 3);
    store(&second, 3..5);
    assert_eq!(stored(&second).len(), 5);
    drop(second);
    // A late part of the first claim, which was being written when the second claim began.
    std::fs::copy(path.join("parts/visit-00000000.parquet"), path.join("parts/visit-00000007.parquet"))
        .expect("copied");
    let third = open(&path, Begin::Resume);
    assert_eq!(stored(&third).len(), 5);
    store(&third, 5..9);
    assert_eq!(stored(&third).iter().map(|row| row.visit).collect::<Vec<_>>(), (0..9).collect::<Vec<_>>());
}

/// A part named after one visit, with the rows of another: a copy by hand.
#[test]
fn a_part_of_another_visit_is_damaged() {
    let folder = tempfile::tempdir().expect("a folder");
    let opened = open(folder.path(), Begin::Anew);
    store(&opened, [0]);
    let parts = folder.path().join("parts");
    std::fs::copy(parts.join("visit-00000000.parquet"), parts.join("visit-00000001.parquet")).expect("copied");
    let mut notices = Vec::new();
    assert_eq!(opened.directory.all::<StepRow>(&mut notices).expect("read").len(), 1);
    assert!(notices[0].contains("this part contains a row of visit 0"), "{notices:?}");
}

#[cfg(unix)]
#[test]
fn nothing_is_written_or_removed_behind_a_link() {
    let folder = tempfile::tempdir().expect("a folder");
    let elsewhere = folder.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("made");
    std::fs::write(elsewhere.join("thesis"), "precious").expect("written");
    for (name, target) in [("parts", "elsewhere"), (".lock", "elsewhere/thesis"), ("damaged", "elsewhere")] {
        let path = folder.path().join(format!("run-{name}"));
        let opened = open(&path, Begin::Anew);
        store(&opened, [0]);
        drop(opened);
        let link = path.join(name);
        let _ = std::fs::remove_dir_all(&link).or_else(|_| std::fs::remove_file(&link));
        std::os::unix::fs::symlink(folder.path().join(target), &link).expect("linked");
        for begin in [Begin::Resume, Begin::TakeOver, Begin::Anew] {
            let error = RunDirectory::open(&path, SPEC, begin).expect_err("refused");
            assert!(error.kind() == Kind::Conflict && error.to_string().contains("symbolic link"), "{error}");
        }
    }
    let merged = folder.path().join("merged");
    std::fs::create_dir(&merged).expect("made");
    std::os::unix::fs::symlink(elsewhere.join("thesis"), merged.join(".lock")).expect("linked");
    assert!(
        MergedDirectory::begin(&merged, SPEC, "{}", true)
            .is_err_and(|error| error.to_string().contains("symbolic link"))
    );
    assert_eq!(std::fs::read(elsewhere.join("thesis")).expect("there"), b"precious");
    assert_eq!(elsewhere.read_dir().expect("there").count(), 1);
}

/// Files that the program did not make stay where it clears its own.
#[test]
fn a_run_that_was_killed_before_its_parts_were_cleared_is_tidied_by_a_resume() {
    let (_folder, path, opened) = begun();
    store(&opened, [0]);
    let part = std::fs::read(path.join("parts/visit-00000000.parquet")).expect("a part");
    assert!(seal(&opened, true).complete);
    drop(opened);
    let parts = path.join("parts");
    std::fs::create_dir(&parts).expect("made");
    for name in ["visit-00000000.parquet", ".tmp-12-visit-00000001.parquet", "notes.txt"] {
        std::fs::write(parts.join(name), &part).expect("written");
    }
    // A table that was being written, and a chart that another program may be writing.
    for name in [".tmp-12-3-layers.parquet", ".tmp-13-0-step_time.png"] {
        std::fs::write(path.join(name), &part).expect("written");
    }
    assert!(open(&path, Begin::Resume).complete);
    assert!(!path.join(".tmp-12-3-layers.parquet").exists() && path.join(".tmp-13-0-step_time.png").exists());
    let left: Vec<_> = parts.read_dir().expect("there").map(|entry| entry.expect("an entry").file_name()).collect();
    assert_eq!(left, ["notes.txt"]);
    // A visit that the table lacks is never removed, even if the table says that nothing is missing.
    std::fs::write(parts.join("visit-00000005.2.parquet"), &part).expect("written");
    let error = RunDirectory::open(&path, SPEC, Begin::Resume).expect_err("refused");
    assert!(error.to_string().contains("lacks a visit"), "{error}");
    assert!(parts.join("visit-00000005.2.parquet").is_file());
}

/// A person edits the copy of the spec in the folder, and resumes with that file.
#[test]
fn a_run_does_not_go_on_with_a_spec_that_was_changed_in_its_folder() {
    let (_folder, path, opened) = begun();
    let kept = serde_json::json!({"spec_digest": opened.directory.spec_digest().expect("read")}).to_string();
    opened.directory.write_text(files::ENVIRONMENT, &kept).expect("written");
    store(&opened, [0]);
    drop(opened);
    let changed = format!("{SPEC}seed = 2\n");
    std::fs::write(path.join("spec.toml"), &changed).expect("written");
    for begin in [Begin::Resume, Begin::TakeOver] {
        let error = RunDirectory::open(&path, &changed, begin).expect_err("refused");
        assert!(error.kind() == Kind::Conflict && error.to_string().contains("not the one that this run"), "{error}");
    }
    std::fs::write(path.join("spec.toml"), SPEC).expect("written");
    // The time limit decides nothing.
    for hours in 1..3 {
        let longer = format!("{SPEC}time_limit = \"{hours}h\"\n");
        assert!(RunDirectory::open(&path, &longer, Begin::Resume).is_ok());
    }
}

#[test]
fn an_environment_that_was_lost_is_read_from_the_sealed_table() {
    let (_folder, path, opened) = begun();
    opened.directory.write_text(files::ENVIRONMENT, "{\"run_id\": \"t-1\"}").expect("written");
    store(&opened, [0]);
    assert!(!seal(&opened, false).complete);
    drop(opened);
    std::fs::remove_file(path.join(files::ENVIRONMENT)).expect("removed");
    assert!(Beginning::of(&path).expect("read").environment.is_some_and(|text| text.contains("t-1")));
    assert!(open(&path, Begin::Resume).environment.is_some_and(|text| text.contains("t-1")));
}

/// A reader of a run under way, which removes nothing.
#[test]
fn what_reads_a_damaged_part_says_how_to_set_it_aside() {
    let (_folder, path, opened) = begun();
    store(&opened, 0..2);
    drop(opened);
    for name in ["visit-00000000.parquet", "visit-00000001.parquet"] {
        let part = path.join("parts").join(name);
        let whole = std::fs::read(&part).expect("a part");
        std::fs::write(&part, &whole[..whole.len() / 2]).expect("written");
        let errors =
            [Table::read(&path, &["visit"]).expect_err("refused"), rows_of::<StepRow>(&path).expect_err("refused")];
        for error in errors.map(|error| error.to_string()) {
            assert!(error.contains(&format!("{name}: this part is damaged: ")), "{error}");
            assert!(error.contains("`batchstep run SPEC --resume` sets it aside"), "{error}");
        }
        std::fs::write(&part, whole).expect("written");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_path_that_is_not_utf_8_is_a_path() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(std::ffi::OsStr::from_bytes(b"r\xffn"));
    for _ in 0..2 {
        let opened = open(&path, Begin::Anew);
        opened.directory.write_text(files::ENVIRONMENT, "{}").expect("written");
        store(&opened, [0]);
        assert!(seal(&opened, true).complete);
    }
    let mut names: Vec<_> =
        folder.path().read_dir().expect("there").map(|e| e.expect("an entry").file_name()).collect();
    names.sort();
    assert_eq!(names.iter().map(|name| name.as_bytes()).collect::<Vec<_>>(), [&b"r\xffn"[..], b"r\xffn.1"]);
}

/// Two processes find the folder empty; the one that locks it later finds a run there.
#[test]
fn a_run_that_began_meanwhile_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run");
    let begun = std::sync::Barrier::new(8);
    let open_at_once = &|number: usize| {
        begun.wait();
        RunDirectory::open(&path, &format!("{SPEC}# {number}\n"), Begin::Anew).map(|opened| (number, opened))
    };
    let opened: Vec<Result<_, _>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8).map(|number| scope.spawn(move || open_at_once(number))).collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let (won, lost): (Vec<_>, Vec<_>) = opened.into_iter().partition(Result::is_ok);
    assert!(lost.iter().all(|refused| refused.as_ref().is_err_and(|error| error.kind() == Kind::Conflict)));
    let [Ok((number, _))] = &won[..] else { panic!("{} have it", won.len()) };
    let spec = std::fs::read_to_string(path.join("spec.toml")).expect("a spec");
    assert_eq!(spec, format!("{SPEC}# {number}\n"));
}

/// The limits on reading a table from an unknown source.
#[test]
fn a_table_without_line_ends_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.csv");
    std::fs::write(&path, vec![b'1'; 20 << 20]).expect("written");
    let error = Table::read(&path, &["x"]).expect_err("refused");
    assert!(error.to_string().contains("its first line is longer than 1048576 bytes"), "{error}");
    std::fs::write(&path, [b"x,y\n1,2\n".to_vec(), vec![b'1'; 20 << 20]].concat()).expect("written");
    let error = Table::read(&path, &["x"]).expect_err("refused");
    assert!(error.to_string().contains("a line is longer than 16777216 bytes"), "{error}");
}
