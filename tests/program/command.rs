//! A command as a step: what it prints, or lines that it answers. What it takes is planted.

use std::path::Path;

use crate::support::{Folder, read, run, stderr, stdout, write};

/// A spec with these lines in [engine].
fn spec(folder: &Path, engine: &str) {
    spec_of(folder, engine, "1..=24", "smallest_jump = \"20%\"");
}

/// With these batch sizes, and these lines in [measure]. No run here ends because its time is over: a busy machine takes many times as long to start
/// a shell.
fn spec_of(folder: &Path, engine: &str, sizes: &str, measure: &str) {
    let sweep = format!("[sweep]\nbatch_size = \"{sizes}\"\npad = [8, 16]\n");
    let text = format!(
        "version = 1\nname = \"it\"\n[engine]\n{engine}\n{sweep}[measure]\n{measure}\ntime_limit = \"30min\"\n"
    );
    write(folder, "it.toml", &text);
}

/// Prints 100 µs and 1 µs for each example, and 50 µs more above `pad`, three times.
const PRINTS: &str = r#"command = ["sh", "-c", "for i in 1 2 3; do echo took $((100 + {batch_size} + ({batch_size} > {pad} ? 50 : 0))) us; done"]"#;

#[test]
#[ignore = "slow"]
fn the_jumps_of_times_that_a_command_prints_are_found() {
    let folder = Folder::new();
    let engine = format!("{PRINTS}\nseconds = {{ pattern = 'took ([0-9.]+) us', unit = \"us\" }}");
    spec_of(&folder, &engine, "4..=21", "smallest_jump = \"20%\"");
    let output = run(&folder, &["run", "it.toml"]);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert!(said.contains("sh, pad=8: 1 jump after 8") && said.contains("sh, pad=16: 1 jump after 16"), "{said}");
    assert!(said.contains("runs `sh -c for i in"), "{said}");
    // 50 µs of 108 µs and of 116 µs.
    assert!(said.contains("+50.0 µs") && said.contains("+46 %") && said.contains("+43 %"), "{said}");
    let again = run(&folder, &["jumps", "results/it"]);
    assert!(stdout(&again).contains("after 8"), "{}", stdout(&again));
}

#[test]
fn errors_in_a_command_are_reported_before_it_runs() {
    let seconds = "seconds = { pattern = 'took ([0-9.]+) us', unit = \"us\" }";
    for (engine, expected) in [
        ("command = \"sh -c x\"".to_owned(), "expected a list of words, the program first"),
        (PRINTS.replace("{pad}", "{pda}"), "`{pda}` is not an argument: [sweep] gives batch_size, pad"),
        ("command = [\"sh\", \"{batch_size}\"]".to_owned(), "no word of the command has `{pad}`"),
        (format!("{PRINTS}\nstep = \"a.py\""), "one of them is enough"),
        (format!("{PRINTS}\nseconds = {{ pattern = '(' }}"), "is not a regular expression"),
        (format!("{PRINTS}\nseconds = {{ pattern = 'x', unit = \"h\" }}"), "ms"),
        (format!("{PRINTS}\nprotocol = \"lines\""), "gets its arguments with each request"),
        (format!("command = [\"sh\"]\nprotocol = \"lines\"\n{seconds}"), "`seconds` is of no use beside `protocol`"),
        (format!("{PRINTS}\nprecision = \"bf16\""), "the command sh has no `precision`"),
        (PRINTS.replace("\"sh\"", "\"no-such-program\""), "cannot start no-such-program"),
    ] {
        let folder = Folder::new();
        spec(&folder, &engine);
        let output = run(&folder, &["run", "it.toml"]);
        assert!(stderr(&output).contains(expected), "{engine}: {}", stderr(&output));
        assert!(!folder.join("results/it/steps.parquet").exists(), "{engine}");
    }
}

#[test]
#[ignore = "slow"]
fn a_command_that_fails_costs_its_size_and_says_its_last_line() {
    let folder = Folder::new();
    let fails = r#"command = ["sh", "-c", "if [ {batch_size} -gt 20 ]; then echo CUDA out of memory >&2; exit 3; fi; echo 0.{pad}{batch_size}1"]"#;
    let measure = "decide = \"cells\"\nblocks = { min = 2, max = 2 }\nsteps_per_visit = 1";
    spec_of(&folder, &format!("{fails}\nseconds = {{ pattern = '[0-9.]+' }}"), "19..=24", measure);
    let output = run(&folder, &["run", "it.toml"]);
    assert!(stderr(&output).contains("sh ended with code 3: CUDA out of memory"), "{}", stderr(&output));
    assert!(stderr(&output).contains("8 cells did not fit in memory"), "{}", stderr(&output));
}

/// examples/own/padded.c pads its rows to multiples of 8. Here its clock is that of its own thread, which stands still while other programs have the
/// processor.
#[test]
#[ignore = "slow"]
fn a_c_program_that_answers_lines_is_measured() {
    let folder = Folder::new();
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/own");
    let (source, toml) = (read(&own, "padded.c"), read(&own, "padded.toml"));
    assert!(source.contains("CLOCK_MONOTONIC") && toml.contains("\"1..=40\""), "the example is another one");
    let source = write(&folder, "padded.c", &source.replace("CLOCK_MONOTONIC", "CLOCK_THREAD_CPUTIME_ID"));
    write(&folder, "padded.toml", &toml.replace("1..=40", "1..=16"));
    let program = folder.join("padded");
    let mut compiler = std::process::Command::new("cc");
    let compiled = compiler.args(["-O2", "-o"]).arg(&program).arg(source).output();
    if !compiled.is_ok_and(|output| output.status.success()) {
        crate::needs::missing("cc", "there is no C compiler called cc");
        return;
    }
    let output = run(&folder, &["run", "padded.toml", "--time", "30min", "--smallest-jump", "20%"]);
    let said = format!("{}{}", stdout(&output), stderr(&output));
    assert!(said.contains("after 8"), "{said}");
    let environment = read(&folder, "results/padded/environment.json");
    assert!(environment.contains("\"version\": \"padded 1.0\"") && environment.contains("\"sha256\""), "{environment}");
}
