//! Measurements of real GPUs that others published. `tests/fixtures/published/README.md` has their sources and how they
//! were labelled.

use std::path::Path;

use crate::support::{ends, parsed, stdout};
use serde_json::Value;

/// The one series of a published file.
fn series(file: &str) -> Value {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/published");
    let output = ends(0, &folder, &["jumps", file, "--x", "tokens", "--y", "time_ms", "--format", "json"]);
    let found = parsed(&stdout(&output));
    found["series"][0].clone()
}

/// The places of its jumps; a downward jump as a negative number.
fn jumps(series: &Value) -> Vec<i64> {
    let place = |jump: &Value| {
        let sign = if jump["direction"] == "down" { -1 } else { 1 };
        sign * jump["after"].as_i64().expect("a whole number")
    };
    series["jumps"].as_array().expect("jumps").iter().map(place).collect()
}

/// Checks that all of `required` are found, and nothing except them and `optional`.
fn judge(series: &Value, required: &[i64], optional: &[i64]) {
    let found = jumps(series);
    let missed: Vec<&i64> = required.iter().filter(|jump| !found.contains(jump)).collect();
    let false_alarms: Vec<&i64> =
        found.iter().filter(|jump| !required.contains(jump) && !optional.contains(&jump.abs())).collect();
    assert!(missed.is_empty() && false_alarms.is_empty(), "missed {missed:?}, false {false_alarms:?}");
    let p = series["p_value"].as_f64().expect("a p-value of the series");
    assert!(if required.is_empty() { p > 0.05 } else { p < 1e-6 }, "{p}");
}

#[test]
fn matrix_products_jump_where_their_tiles_and_algorithms_change() {
    let a100 = [80, 128, -160, 192, 256, 384, 512, 640, 768, 960];
    judge(&series("a100_up_proj.csv"), &a100, &[24, 64, 240, 1000]);
    judge(&series("a40_up_proj.csv"), &[32, -64, 256, 384, 512, 576, 800, 960], &[16, 128, 552, 840]);
}

#[test]
fn an_elementwise_kernel_jumps_at_twice_the_number_of_multiprocessors() {
    let series = series("a100_activation.csv");
    judge(&series, &[216, 432, 648, 864], &[104, 128, 248]);
    assert_eq!(series["period"]["value"], 216);
}

#[test]
fn a_smooth_curve_has_no_jump() {
    judge(&series("a40_embedding.csv"), &[], &[]);
}
