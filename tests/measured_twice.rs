//! A real step, measured twice, gives the same answer. A binary of its own: `cargo test` runs one binary after the other, and
//! here nothing else may run beside the steps.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Training steps on one core, of 13 to 28 ms each. At batch size 6 the last convolution begins to be computed by Winograd's
/// algorithm, a jump that is found in some runs and just missed in others: the sweep begins behind it.
fn spec(name: &str) -> String {
    format!(
        "version = 1\nname = \"{name}\"\n[model]\nname = \"mnist_cnn\"\n[sweep]\nbatch_size = \"6..=13\"\n[train]\noptimizer = \"sgd\"\nprecision = \"fp32\"\n[engine]\nname = \"cpu\"\nthreads = 1\n[measure]\nblocks = {{ min = 16, max = 16 }}\nsteps_per_visit = 2\n"
    )
}

fn batchstep(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_batchstep")).current_dir(folder).args(arguments).output().expect("it starts")
}

/// After, size, low, high.
fn jumps(folder: &Path, name: &str) -> Vec<[f64; 4]> {
    let text = std::fs::read_to_string(folder.join("results").join(name).join("jumps.json")).expect("a file");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let number = |jump: &Value, key: &str| jump[key].as_f64().expect("a number");
    let jump = |jump: &Value| ["after", "size", "low", "high"].map(|key| number(jump, key));
    document["series"][0]["jumps"].as_array().expect("a list").iter().map(jump).collect()
}

/// Measures both and says what differs.
fn measure_twice(folder: &Path) -> Result<(), String> {
    let output = batchstep(folder, &["run", "a.toml", "b.toml", "--device", "cpu"]);
    // 1: done, with a warning, such as visits that never became steady.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", String::from_utf8_lossy(&output.stderr));
    let (a, b) = (jumps(folder, "a"), jumps(folder, "b"));
    let places = |jumps: &[[f64; 4]]| jumps.iter().map(|jump| jump[0]).collect::<Vec<_>>();
    if places(&a) != places(&b) {
        return Err(format!("jumps: {a:?} and {b:?}"));
    }
    let apart = |([_, size, low, high], [_, again, ..]): (&[f64; 4], &[f64; 4])| (again - size).abs() > high - low;
    if a.iter().zip(&b).any(apart) {
        return Err(format!("sizes: {a:?} and {b:?}"));
    }
    let arguments = ["compare", "results/a", "results/b", "--margin", "90%", "--fail-on", "slower"];
    let output = batchstep(folder, &arguments);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let same = output.status.code() == Some(0) && text.contains("8 SAME, 0 FASTER, 0 SLOWER, 0 AMBIGUOUS");
    if same { Ok(()) } else { Err(text) }
}

/// The time that this machine's processors were busy so far, and that of this process and its children that have ended, in
/// clock ticks; proc(5).
fn ticks() -> Option<(u64, u64)> {
    let stat = std::fs::read_to_string("/proc/stat").ok()?;
    let fields: Vec<u64> = stat.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    // user, nice, system, idle, iowait, irq, softirq, steal.
    let [user, nice, system, _, _, irq, softirq, steal, ..] = fields[..] else { return None };
    let own = std::fs::read_to_string("/proc/self/stat").ok()?;
    // After the name, which is in brackets: utime, stime, cutime and cstime are the 14th to the 17th field, from 1.
    let own = own.rsplit_once(") ")?.1.split(' ').skip(11).take(4).filter_map(|n| n.parse::<u64>().ok()).sum();
    Some((user + nice + system + irq + softirq + steal, own))
}

/// The share of one core's time that others took between two looks, of which the second is `seconds` later.
fn taken_by_others(before: (u64, u64), after: (u64, u64), seconds: f64) -> f64 {
    let others = (after.0 - before.0).saturating_sub(after.1 - before.1);
    // USER_HZ is 100 wherever Linux runs.
    others as f64 / 100.0 / seconds
}

/// The limits are generous: the same jumps, sizes no further apart than an interval is wide, and every cell SAME within 90 %; one
/// of two attempts must keep to them. Where neither does, and others took more than a tenth of a core during both, the machine
/// was not the same twice and nothing is asked of it.
#[test]
fn a_real_step_measured_twice_gives_the_same_jumps_and_compare_says_same() {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["a", "b"] {
        std::fs::write(folder.path().join(format!("{name}.toml")), spec(name)).expect("writable");
    }
    let mut failures = Vec::new();
    while failures.len() < 2 {
        let (before, watch) = (ticks(), std::time::Instant::now());
        let Err(what) = measure_twice(folder.path()) else { return };
        let seconds = watch.elapsed().as_secs_f64();
        let others = before.zip(ticks()).map_or(0.0, |(before, after)| taken_by_others(before, after, seconds));
        failures.push((others, what));
    }
    if let [(first, _), (second, _)] = failures[..]
        && first.min(second) > 0.1
    {
        eprintln!("not judged: others took {:.0} % of a core's time at least", 100.0 * first.min(second));
        return;
    }
    panic!("{}", failures.into_iter().map(|(_, what)| what).collect::<Vec<_>>().join("\n"));
}
