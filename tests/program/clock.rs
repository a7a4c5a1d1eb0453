//! Work or clock: verdicts on a simulated device that throttles.

use crate::support::{Folder, ends, parsed, planted, read};
use serde_json::Value;

/// After 16 the device does more work; after 32 it lowers its clock.
fn verdicts(lines: &str) -> Vec<(i64, Option<String>)> {
    let truth = "base = \"20ms\"\nslope = \"1ms\"\njumps = [{ after = 16, size = \"4ms\" }]\nnoise = { sd = \"0.3%\" }";
    let spec = planted("clock", "\"1..=48\"", &format!("{truth}\n{lines}"), "blocks = { min = 6, max = 6 }");
    let folder = Folder::with("clock.toml", &spec);
    let throttled = lines.contains("throttle") && lines.contains("clock =");
    ends(i32::from(throttled), &folder, &["run", "clock.toml"]);
    let document = parsed(&read(&folder, "results/clock/jumps.json"));
    let jumps = document["series"][0]["jumps"].as_array().expect("a list");
    let verdict = |jump: &Value| {
        (jump["after"].as_i64().expect("a place"), jump.get("verdict").map(|verdict| verdict.to_string()))
    };
    jumps.iter().map(verdict).collect()
}

const THROTTLE: &str = "throttle = { after = 32, size = \"10%\" }";

#[test]
#[ignore = "slow"]
fn a_clock_that_moves_distinguishes_work_from_clock() {
    // Of a processor, and of a GPU's multiprocessors.
    for clock in
        ["clock = { hz = 2e9, noise = \"0.2%\" }", "clock = { hz = 1.98e9, noise = \"0.2%\" }\ndevice_clock = true"]
    {
        let expected = [(16, "work"), (32, "clock")].map(|(after, verdict)| (after, Some(format!("\"{verdict}\""))));
        assert_eq!(verdicts(&format!("{THROTTLE}\n{clock}")), expected, "{clock}");
    }
}

#[test]
#[ignore = "slow"]
fn without_a_clock_or_with_one_that_never_moves_there_is_no_verdict() {
    assert_eq!(verdicts(THROTTLE), [(16, None), (32, None)]);
    assert_eq!(verdicts("clock = { hz = 2e9 }"), [(16, None)]);
}
