//! A/A: the same batch size under every name, and what that says about other runs on the machine.

use crate::support::{Folder, ends, parsed, planted, read, run, stdout, tidy, write};
use serde_json::Value;

fn spec(name: &str, sweep: &str) -> String {
    let truth = "jumps = [{ after = 12, size = \"5ms\" }]\nnoise = { sd = \"1%\" }";
    planted(name, &format!("\"1..=24\"\n{sweep}"), truth, "blocks = { min = 5, max = 5 }\nsteps_per_visit = 3")
}

#[test]
#[ignore = "slow"]
fn the_rate_of_the_control_is_on_the_charts_and_in_the_json_of_other_runs() {
    let folder = Folder::with("before.toml", &spec("before", ""));
    write(&folder, "aa.toml", &spec("aa", "executes = 8"));
    write(&folder, "after.toml", &spec("after", ""));
    ends(0, &folder, &["run", "before.toml", "aa.toml", "after.toml"]);
    let rate = |name: &str| -> Value {
        let text = std::fs::read_to_string(folder.join("results").join(name).join("jumps.json")).expect("a file");
        parsed(&text)["series"][0]["aa_rate"].clone()
    };
    assert_eq!(rate("before"), Value::Null);
    let measured = rate("aa").as_f64().expect("a rate");
    // The stated rate is 1 %; for 200 labellings, three standard deviations above 2 are 6.
    assert!(measured <= 0.03, "{measured}");
    assert_eq!(rate("after"), rate("aa"));
    assert!(folder.join("results/after/aa.json").is_file(), "the run is complete in itself");

    // A run from before the control shows it when it is drawn again.
    ends(0, &folder, &["plot", "results/before", "--format", "svg"]);
    let chart = read(&folder, "results/before/step_time.svg");
    assert!(chart.contains("A/A runs:"), "{chart}");
    let said = stdout(&run(&folder, &["jumps", "results/before", "--details"]));
    let words = tidy(&said);
    assert!(words.contains("A/A runs of this machine in"), "{said}");
}
