//! A/A: the same batch size under every name, and what that says about other runs on the machine.

use crate::support::{run, stderr, stdout, write};
use serde_json::Value;

fn spec(name: &str, sweep: &str) -> String {
    format!(
        "version = 1\nname = \"{name}\"\n[sweep]\nbatch_size = \"1..=24\"\n{sweep}\n[engine]\nname = \"synthetic\"\n[synthetic]\njumps = [{{ after = 12, size = \"5ms\" }}]\nnoise = {{ sd = \"1%\" }}\n[measure]\nblocks = {{ min = 5, max = 5 }}\nsteps_per_visit = 3\n"
    )
}

#[test]
fn the_rate_of_the_control_is_on_the_charts_and_in_the_json_of_other_runs() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "before.toml", &spec("before", ""));
    write(folder.path(), "aa.toml", &spec("aa", "executes = 8"));
    write(folder.path(), "after.toml", &spec("after", ""));
    let output = run(folder.path(), &["run", "before.toml", "aa.toml", "after.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let rate = |name: &str| -> Value {
        let text =
            std::fs::read_to_string(folder.path().join("results").join(name).join("jumps.json")).expect("a file");
        serde_json::from_str::<Value>(&text).expect("JSON")["series"][0]["aa_rate"].clone()
    };
    assert_eq!(rate("before"), Value::Null);
    let measured = rate("aa").as_f64().expect("a rate");
    // The stated rate is 1 %; for 200 labellings, three standard deviations above 2 are 6.
    assert!(measured <= 0.03, "{measured}");
    assert_eq!(rate("after"), rate("aa"));
    assert!(folder.path().join("results/after/aa.json").is_file(), "the run is complete in itself");

    // A run from before the control shows it when it is drawn again.
    let output = run(folder.path(), &["plot", "results/before", "--format", "svg"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let chart = std::fs::read_to_string(folder.path().join("results/before/step_time.svg")).expect("a chart");
    assert!(chart.contains("A/A runs:"), "{chart}");
    let said = stdout(&run(folder.path(), &["jumps", "results/before", "--details"]));
    let words = said.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("A/A runs of this machine in"), "{said}");
}
