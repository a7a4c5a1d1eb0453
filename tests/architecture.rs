//! The rooms and who may use what: an outside crate lives in one place, and the data flows one way.

use std::path::{Path, PathBuf};

/// Each outside crate and the only places that may know it.
const CRATES: &[(&str, &[&str])] = &[
    ("candle_core", &["engine/cpu/"]),
    ("candle_nn", &["engine/cpu/"]),
    ("gemm", &["engine/cpu/"]),
    ("pulp", &["engine/cpu/", "detect/model/simd.rs"]),
    ("cudarc", &["engine/cudnn/", "device/cuda/", "measure/"]),
    ("nvml_wrapper", &["device/"]),
    ("polars", &["store/"]),
    ("plotters", &["chart/"]),
    ("notosans", &["chart/"]),
    ("comfy_table", &["report/"]),
    ("clap", &["cli.rs", "main.rs"]),
    ("indicatif", &["commands/"]),
    ("csv", &["store/"]),
    ("toml", &["spec/"]),
];

/// Rooms of our own and what they must not know.
const ARROWS: &[(&str, &[&str])] = &[
    ("network/", &["engine", "store", "detect", "run", "spec", "plan", "device", "chart", "report", "measure"]),
    (
        "stats/",
        &["engine", "store", "detect", "run", "spec", "plan", "device", "chart", "report", "measure", "network"],
    ),
    ("detect/", &["engine", "store", "run", "spec", "plan", "device", "chart", "report", "measure", "network"]),
    ("engine/", &["store", "detect", "run", "spec", "plan", "chart", "report"]),
    ("store/", &["engine", "detect", "run", "spec", "plan", "device", "chart", "report", "measure", "network"]),
    ("chart/", &["engine", "store", "run", "spec", "plan", "device", "measure", "network", "analysis"]),
    ("device/", &["store", "detect", "run", "spec", "plan", "chart", "measure", "network"]),
    ("measure/", &["store", "detect", "run", "spec", "plan", "chart", "report", "network"]),
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The lines of code, without comments and without tests, which may use and print what they like.
fn each_line(mut see: impl FnMut(&str, usize, &str)) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut paths = Vec::new();
    sources(&root, &mut paths);
    assert!(paths.len() > 30, "the sources were not found");
    for path in paths {
        let room = path.strip_prefix(&root).expect("inside").to_string_lossy().replace('\\', "/");
        if ["/tests/", "/emulated/", "/tests.rs"].iter().any(|tests| room.contains(tests)) {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("readable");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for (number, line) in code.lines().enumerate() {
            if !line.trim_start().starts_with("//") {
                see(&room, number + 1, line);
            }
        }
    }
}

#[test]
fn an_outside_crate_lives_in_one_place() {
    let mut wrong = Vec::new();
    each_line(|room, number, line| {
        for (name, homes) in CRATES {
            let used = line.contains(&format!("{name}::")) && !line.contains(&format!("crate::{name}::"));
            let path = line.find(&format!("{name}::")).is_some_and(|at| {
                let before = line[..at].chars().next_back();
                !before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':')
            });
            if used && path && !homes.iter().any(|home| room.starts_with(home)) {
                wrong.push(format!("src/{room}:{number}: {}", line.trim()));
            }
        }
    });
    assert!(wrong.is_empty(), "outside crates in the wrong room:\n{}", wrong.join("\n"));
}

#[test]
fn the_data_flows_one_way() {
    let mut wrong = Vec::new();
    each_line(|room, number, line| {
        for (home, forbidden) in ARROWS {
            let arrow = |other: &&&str| line.contains(&format!("crate::{other}::"));
            if room.starts_with(home) && forbidden.iter().any(|other| arrow(&other)) {
                wrong.push(format!("src/{room}:{number}: {}", line.trim()));
            }
        }
    });
    assert!(wrong.is_empty(), "forbidden arrows:\n{}", wrong.join("\n"));
}

#[test]
fn the_library_does_not_print_or_exit() {
    let mut wrong = Vec::new();
    each_line(|room, number, line| {
        let program = room == "main.rs" || room.starts_with("commands/");
        let talks = ["println!", "eprintln!", "print!(", "eprint!(", "process::exit", "dbg!("];
        if !program && talks.iter().any(|word| line.contains(word)) {
            wrong.push(format!("src/{room}:{number}: {}", line.trim()));
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
