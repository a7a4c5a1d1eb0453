//! A test that lacks something it needs is recorded as skipped, or fails if that is required.

use std::process::{Command, Output};

use crate::needs;

const NAME: &str = "skips::a_skip_is_recorded_and_fails_where_it_is_required";
const LACKS: &str = "BATCHSTEP_TEST_LACKS";

/// Runs this test in a separate process, as a test that lacks a C++ compiler.
fn lacking(required: &str) -> Output {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.args([NAME, "--exact", "--nocapture"]).env(LACKS, "cxx").env("BATCHSTEP_REQUIRE", required);
    command.output().expect("it starts")
}

#[test]
fn a_skip_is_recorded_and_fails_where_it_is_required() {
    if let Ok(need) = std::env::var(LACKS) {
        return needs::missing(&need, "there is no C++ compiler");
    }
    let record = needs::record_of(std::process::id());
    let recorded = || std::fs::read_to_string(&record).unwrap_or_default();
    assert!(lacking("nvrtc, torch").status.success());
    assert_eq!(recorded(), format!("cxx\tthere is no C++ compiler\t{NAME}\n"));

    let refused = |required| {
        let output = lacking(required);
        assert!(!output.status.success(), "{required}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused("nvrtc,cxx").contains("BATCHSTEP_REQUIRE names `cxx`: there is no C++ compiler"));
    assert!(refused("c++").contains("`c++` is none of nvrtc, cxx, torch"));
    assert_eq!(recorded().lines().count(), 1, "a failure is not a skip");
    let _ = std::fs::remove_file(record);
}
