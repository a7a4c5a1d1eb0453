//! The specs that are built into the program, on a machine with only the program.

use crate::support::{Folder, experiment, prints, refused, run, stdout, synthetic, write};

#[test]
fn a_spec_of_the_programs_own_is_listed_printed_and_run_by_its_name() {
    let folder = Folder::new();
    prints(&folder, &["specs"], &["quickstart", "What does batchstep do?"]);

    let printed = stdout(&run(&folder, &["specs", "synthetic"]));
    assert_eq!(printed, std::fs::read_to_string(experiment("method/synthetic.toml")).expect("a spec"));

    assert!(synthetic().folder.join("results/synthetic/step_time.png").exists());
}

#[test]
fn a_file_of_that_name_comes_first_and_an_unknown_name_says_where_to_look() {
    let folder = Folder::new();
    write(&folder, "quickstart", "version = 2\n");
    refused(&folder, &["run", "quickstart", "--dry-run"], &["the key `name` is missing"]);
    refused(&folder, &["run", "quickstrat"], &["`batchstep specs` lists"]);
}
