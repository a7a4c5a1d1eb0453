//! The same experiment twice gives the same answer.

use crate::support::{Folder, ends, has, jumps, planted, stdout, write};

/// A run as long as the quickstart, with planted jumps and a device that gets warm; only the noise differs.
fn spec(name: &str, seed: u32) -> String {
    let jumps =
        [(16, 4), (32, 5), (48, 6)].map(|(after, ms)| format!("{{ after = {after}, size = \"{ms}ms\" }}")).join(", ");
    let noise = "{ sd = \"0.2%\", visits = \"0.1%\" }";
    let truth = format!("base = \"20ms\"\nslope = \"2ms\"\njumps = [{jumps}]\nnoise = {noise}\nseed = {seed}");
    planted(name, "\"1..=70\"", &truth, "blocks = { min = 10, max = 10 }\nsteps_per_visit = 3")
}

#[test]
#[ignore = "slow"]
fn two_runs_give_the_same_jumps_and_compare_says_same() {
    let folder = Folder::with("a.toml", &spec("a", 1));
    write(&folder, "b.toml", &spec("b", 2));
    ends(0, &folder, &["run", "a.toml", "b.toml"]);
    let (a, b) = (jumps(&folder, "a"), jumps(&folder, "b"));
    let places = |jumps: &[[f64; 4]]| jumps.iter().map(|jump| jump[0]).collect::<Vec<_>>();
    assert_eq!(places(&a), [16.0, 32.0, 48.0]);
    assert_eq!(places(&a), places(&b));
    // With 95 % intervals, one of two estimates lies in the other's interval in 83 of 100 cases; the limit is twice its
    // width.
    for ([_, size, low, high], [_, again, ..]) in a.iter().zip(&b) {
        assert!((again - size).abs() <= high - low, "{a:?} {b:?}");
    }
    has(
        &stdout(&ends(0, &folder, &["compare", "results/a", "results/b", "--fail-on", "slower"])),
        &["70 SAME, 0 DIFFERS, 0 AMBIGUOUS"],
    );
}
