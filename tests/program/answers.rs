//! What the detector says of each stored run: a change of the code that changes an answer is seen, and a person agrees or not.

use std::fmt::Write as _;

use batchstep::analysis::{Query, analyse};

use crate::support::root;

const WRITE: &str = "BATCHSTEP_WRITE_ANSWERS";

/// The jumps of each series, up and down, with the period and the number of kinks.
#[test]
#[ignore = "slow"]
fn the_answers_of_the_stored_runs_change_only_where_a_person_agrees() {
    let folder = root().join("experiments/runs");
    let mut runs: Vec<_> = std::fs::read_dir(&folder).expect("runs").map(|run| run.expect("a run").path()).collect();
    runs.sort();
    let mut text = String::new();
    for run in runs.iter().filter(|run| run.join("steps.parquet").is_file()) {
        let _ = writeln!(text, "{}", run.file_name().expect("a name").to_string_lossy());
        for found in analyse(run, &Query::default(), None).expect("a run") {
            let findings = &found.findings;
            let jump =
                |jump: &batchstep::detect::Jump| format!(" {}{}", if jump.size > 0.0 { '+' } else { '-' }, jump.after);
            let jumps: String = findings.jumps.iter().map(jump).collect();
            let period = findings.period.as_ref().map_or(String::new(), |period| format!(", period {}", period.value));
            let kinks =
                if findings.kinks.is_empty() { String::new() } else { format!(", kinks {}", findings.kinks.len()) };
            let _ = writeln!(text, "  {}:{jumps}{period}{kinks}", found.series.label());
        }
    }
    let path = root().join("tests/fixtures/answers.txt");
    if std::env::var_os(WRITE).is_some() {
        return std::fs::write(&path, &text).expect("written");
    }
    let stored = std::fs::read_to_string(&path).expect("the answers");
    let unlike = stored.lines().zip(text.lines()).find(|(stored, today)| stored != today);
    assert!(stored == text, "{unlike:?}: if that is right, {WRITE}=1 writes {} anew", path.display());
}
