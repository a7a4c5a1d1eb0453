//! The specs that are built into the program, on a machine with only the program.

use crate::support::{experiment, run, stderr, stdout};

#[test]
fn a_spec_of_the_programs_own_is_listed_printed_and_run_by_its_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let listed = stdout(&run(folder.path(), &["specs"]));
    assert!(listed.contains("quickstart") && listed.contains("What does batchstep do?"), "{listed}");

    let printed = stdout(&run(folder.path(), &["specs", "synthetic"]));
    assert_eq!(printed, std::fs::read_to_string(experiment("method/synthetic.toml")).expect("a spec"));

    let output = run(folder.path(), &["run", "synthetic"]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    assert!(folder.path().join("results/synthetic/step_time.png").exists());
}

#[test]
fn a_file_of_that_name_comes_first_and_an_unknown_name_says_where_to_look() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("quickstart"), "version = 2\n").expect("writable");
    let output = run(folder.path(), &["run", "quickstart", "--dry-run"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the key `name` is missing"), "{}", stderr(&output));

    let output = run(folder.path(), &["run", "quickstrat"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("`batchstep specs` lists"), "{}", stderr(&output));
    let output = run(folder.path(), &["specs", "quickstrat"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no spec `quickstrat`"), "{}", stderr(&output));
}
