//! Work or clock: verdicts on a simulated device that throttles.

use crate::support::{self, run, stderr};
use serde_json::Value;

/// After 16 the device does more work; after 32 it lowers its clock.
fn verdicts(lines: &str) -> Vec<(i64, Option<String>)> {
    let folder = tempfile::tempdir().expect("a folder");
    let spec = format!(
        "version = 1\nname = \"clock\"\n[sweep]\nbatch_size = \"1..=48\"\n[engine]\nname = \"synthetic\"\n[synthetic]\nbase = \"20ms\"\nslope = \"1ms\"\njumps = [{{ after = 16, size = \"4ms\" }}]\nnoise = {{ sd = \"0.3%\" }}\n{lines}\n[measure]\nblocks = {{ min = 6, max = 6 }}\n"
    );
    support::write(folder.path(), "clock.toml", &spec);
    let output = run(folder.path(), &["run", "clock.toml"]);
    let throttled = lines.contains("throttle") && lines.contains("clock =");
    assert_eq!(output.status.code(), Some(i32::from(throttled)), "{}", stderr(&output));
    let text = std::fs::read_to_string(folder.path().join("results/clock/jumps.json")).expect("a file");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let jumps = document["series"][0]["jumps"].as_array().expect("a list");
    let verdict = |jump: &Value| {
        (jump["after"].as_i64().expect("a place"), jump.get("verdict").map(|verdict| verdict.to_string()))
    };
    jumps.iter().map(verdict).collect()
}

fn expected(first: &str, second: &str) -> Vec<(i64, Option<String>)> {
    [(16, first), (32, second)].map(|(after, verdict)| (after, Some(format!("\"{verdict}\"")))).into()
}

const THROTTLE: &str = "throttle = { after = 32, size = \"10%\" }";

#[test]
fn a_cpu_whose_clock_moves_distinguishes_work_from_clock() {
    let lines = format!("{THROTTLE}\nclock = {{ hz = 2e9, noise = \"0.2%\" }}");
    assert_eq!(verdicts(&lines), expected("work", "clock"));
}

#[test]
fn a_gpu_distinguishes_work_from_clock_by_its_sm_clock() {
    let lines = format!("{THROTTLE}\nclock = {{ hz = 1.98e9, noise = \"0.2%\" }}\ndevice_clock = true");
    assert_eq!(verdicts(&lines), expected("work", "clock"));
}

#[test]
fn without_a_clock_there_is_no_verdict() {
    assert_eq!(verdicts(THROTTLE), [(16, None), (32, None)]);
}

#[test]
fn a_cpu_clock_that_never_moves_is_no_reading() {
    let found = verdicts("clock = { hz = 2e9 }");
    assert_eq!(found, [(16, None)]);
}
