//! The same experiment twice gives the same answer.

use crate::support::{run, stderr, stdout, write};
use serde_json::Value;

/// A run as long as the quickstart, with planted jumps and a device that gets warm; only the noise differs.
fn spec(name: &str, seed: u32) -> String {
    format!(
        "version = 1\nname = \"{name}\"\n[sweep]\nbatch_size = \"1..=70\"\n[engine]\nname = \"synthetic\"\n[synthetic]\nbase = \"20ms\"\nslope = \"2ms\"\njumps = [{{ after = 16, size = \"4ms\" }}, {{ after = 32, size = \"5ms\" }}, {{ after = 48, size = \"6ms\" }}]\nnoise = {{ sd = \"0.2%\", visits = \"0.1%\" }}\nseed = {seed}\n[measure]\nblocks = {{ min = 10, max = 10 }}\nsteps_per_visit = 3\n"
    )
}

/// After, size, low, high.
fn jumps(folder: &std::path::Path, name: &str) -> Vec<[f64; 4]> {
    let text = std::fs::read_to_string(folder.join("results").join(name).join("jumps.json")).expect("a file");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let number = |jump: &Value, key: &str| jump[key].as_f64().expect("a number");
    let jump = |jump: &Value| ["after", "size", "low", "high"].map(|key| number(jump, key));
    document["series"][0]["jumps"].as_array().expect("a list").iter().map(jump).collect()
}

#[test]
fn two_runs_give_the_same_jumps_and_compare_says_same() {
    let folder = tempfile::tempdir().expect("a folder");
    write(folder.path(), "a.toml", &spec("a", 1));
    write(folder.path(), "b.toml", &spec("b", 2));
    let output = run(folder.path(), &["run", "a.toml", "b.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let (a, b) = (jumps(folder.path(), "a"), jumps(folder.path(), "b"));
    let places = |jumps: &[[f64; 4]]| jumps.iter().map(|jump| jump[0]).collect::<Vec<_>>();
    assert_eq!(places(&a), [16.0, 32.0, 48.0]);
    assert_eq!(places(&a), places(&b));
    // With 95 % intervals, one of two estimates lies in the other's interval in 83 of 100 cases; the limit is twice its
    // width.
    for ([_, size, low, high], [_, again, ..]) in a.iter().zip(&b) {
        assert!((again - size).abs() <= high - low, "{a:?} {b:?}");
    }
    let output = run(folder.path(), &["compare", "results/a", "results/b", "--fail-on", "slower"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stdout(&output).contains("70 SAME, 0 FASTER, 0 SLOWER, 0 AMBIGUOUS"), "{}", stdout(&output));
}
