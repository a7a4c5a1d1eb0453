//! The worker by itself: its tests are in Python, where it is.

use std::path::Path;
use std::process::Command;

/// The order of calls, every message, and stand-ins for frameworks: `tests/own_worker.py`.
#[test]
#[ignore = "slow"]
fn the_worker_passes_its_own_tests() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/own_worker.py");
    match Command::new(crate::device::interpreter::interpreter()).arg(tests).output() {
        Ok(output) => assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr)),
        Err(error) => crate::needs::missing("python", error),
    }
}

#[test]
fn notices_of_one_kind_are_alike() {
    let one = "my_step.py: torch compiled 3 graphs for 70 sizes; the first visited (18) has its own";
    assert!(super::are_alike(one, &one.replace("18", "7")));
    assert!(!super::are_alike(one, "my_step.py: the model is compiled: its layers cannot be timed separately"));
}
