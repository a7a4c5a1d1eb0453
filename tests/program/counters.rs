//! `[measure] counters = true`: columns of a sweep and of a training, and what `doctor` says about missing counters.

use std::path::Path;

use batchstep::store::Table;

use crate::support::{Folder, run, stdout, succeeds, write};

/// The processor's counters, which most virtual machines do not have.
const PROCESSOR: [&str; 5] = ["cycles", "instructions", "cache_references", "cache_misses", "branch_misses"];
/// The kernel's counters, which always work.
const KERNEL: [&str; 3] = ["page_faults", "context_switches", "task_clock_s"];

const SWEEP: &str = "version = 1\nname = \"counted\"\n[model]\nname = \"mlp\"\n[sweep]\nbatch_size = [1, 64]\n[train]\nprecision = \"fp32\"\n\
    [engine]\nname = \"cpu\"\nthreads = 2\n[measure]\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 3\n";
const TRAINING: &str = "version = 1\nkind = \"training\"\nname = \"trained\"\n[model]\nname = \"small\"\n[[model.layers]]\ntype = \"flatten\"\n\
    [[model.layers]]\ntype = \"dense\"\nout_features = 10\n[train]\nprecision = \"fp32\"\n[engine]\nname = \"cpu\"\n\
    [data]\nsource = \"digits\"\nexamples = 200\ntest_examples = 10\n[loader]\nworkers = [0, 2]\n[measure]\nrepetitions = 2\n";

/// A run with such a line in `[measure]`; the numbers of a column of its table.
fn measured(folder: &Path, spec: &str, line: &str) -> impl Fn(&str) -> Vec<f64> {
    write(folder, "spec.toml", &format!("{spec}{line}\n"));
    succeeds(folder, &["run", "spec.toml", "--out", "out", "--device", "cpu"]);
    let table = if spec == SWEEP { "out/steps.parquet" } else { "out/epochs.parquet" };
    let table = Table::read(&folder.join(table), &[&PROCESSOR[..], &KERNEL[..]].concat()).expect("a table");
    std::fs::remove_dir_all(folder.join("out")).expect("removed");
    move |column| table.numbers(column).expect("a column")
}

#[test]
#[ignore = "slow"]
fn available_counters_are_in_the_table_and_others_are_null_with_doctors_reason() {
    let folder = Folder::new();
    let doctor = stdout(&run(&folder, &["doctor"]));
    let counts_cycles = doctor.contains("cycles and instructions can be counted");
    if !counts_cycles {
        assert!(doctor.contains("cycles cannot be counted: "), "{doctor}");
        assert!(doctor.contains("pmu=on") || doctor.contains("perf_event_paranoid=1"), "a remedy: {doctor}");
    }
    for (spec, line) in [(SWEEP, "counters = true"), (TRAINING, "")] {
        let numbers = measured(&folder, spec, line);
        for column in KERNEL {
            let values = numbers(column);
            assert!(!values.is_empty() && values.iter().all(|value| *value >= 0.0), "{column}: {values:?}");
        }
        assert!(numbers("task_clock_s").iter().sum::<f64>() > 0.0);
        assert_eq!(numbers("cycles").iter().all(|value| *value > 0.0), counts_cycles, "cycles, and doctor: {doctor}");
        let all_or_none = |column: &&str| {
            let known = numbers(column).iter().filter(|value| !value.is_nan()).count();
            known == 0 || known == numbers(column).len()
        };
        assert!(PROCESSOR.iter().all(all_or_none), "null, and never 0 in place of unknown");
    }
    for (spec, line) in [(SWEEP, ""), (TRAINING, "counters = false")] {
        let numbers = measured(&folder, spec, line);
        // A sweep has its page faults from its witness of other programs.
        let none = |column: &str| {
            numbers(column).iter().all(|value| value.is_nan()) || spec == SWEEP && column == "page_faults"
        };
        assert!(PROCESSOR.into_iter().chain(KERNEL).all(none), "not asked for, not there");
    }
}
