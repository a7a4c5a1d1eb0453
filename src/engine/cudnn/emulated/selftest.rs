//! The whole selftest on the emulator, and docs/gpu-selftest.md, which lists its checks and their limits. A test that computes
//! nothing compares these with the code; with `BATCHSTEP_WRITE_SELFTEST=1` they are written anew.

use std::fmt::Write as _;
use std::path::Path;

use super::{EmulatedEngine, emulator};
use crate::check::selftest::{self, CheckFilter, Depth, Errors};
use crate::engine::open::Engines;
use crate::engine::{Engine, Settings};
use crate::network::operators::operators;
use crate::settings::{Optimizer, Precision};

const WRITE: &str = "BATCHSTEP_WRITE_SELFTEST";

/// Checks that the table under a heading of the page is this one, or writes it.
fn page_holds(heading: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/gpu-selftest.md");
    let mut text = std::fs::read_to_string(&path).unwrap();
    let under = text.find(&format!("\n## {heading}\n")).unwrap_or_else(|| panic!("the page has no {heading}"));
    let start = under + text[under..].find("\n|").expect("a table") + 1;
    let lines = text[start..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
    let range = start..start + lines.map(str::len).sum::<usize>();
    if std::env::var_os(WRITE).is_some() {
        text.replace_range(range, table);
        return std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(&text[range], table, "docs/gpu-selftest.md, {heading}: write it with {WRITE}=1");
}

/// A way of computing without the optimizer: its name, the number of operators and of networks that are checked with SGD, that of
/// other optimizers, and whether the emulator can compute it.
fn way(settings: &Settings) -> (String, usize, usize, usize, bool) {
    let workloads = selftest::workloads(settings).unwrap();
    let mut names: Vec<String> = workloads.iter().map(selftest::way).collect();
    // SGD comes first.
    let first = names[0].clone();
    let with_sgd = names.iter().filter(|name| **name == first).count();
    names.sort_unstable();
    names.dedup();
    let all = operators().unwrap();
    let own = workloads.iter().filter(|workload| all.iter().any(|one| one.name == workload.network.name)).count();
    let is_emulated = EmulatedEngine::default().in_force(settings).unwrap() == *settings;
    (first.replace(" sgd", ""), own, with_sgd - own, names.len() - 1, is_emulated)
}

/// For each precision and depth, with the optimizers whose limits differ.
fn limits() -> String {
    let depths =
        [(Depth::Operator, "an operator"), (Depth::Network, "a network"), (Depth::Steep, "tens of batch norms")];
    let mut table = "| precision | depth | optimizers | output | gradients | updates | first loss | later losses |\n\
                     |---|---|---|---:|---:|---:|---:|---:|\n"
        .to_owned();
    for precision in [Precision::Fp32, Precision::Tf32, Precision::Bf16, Precision::Fp16] {
        for (depth, words) in depths {
            let mut known: Vec<(String, Vec<&str>)> = Vec::new();
            for &optimizer in Optimizer::ALL {
                let settings = Settings { precision, optimizer, ..Settings::default() };
                let Errors { output, gradients, updates, first_loss, losses } = selftest::limits(&settings, depth);
                let number = |limit: f64| if limit.is_finite() { format!("{limit:e}") } else { "none".to_owned() };
                let numbers = [output, gradients, updates, first_loss, losses].map(number).join(" | ");
                match known.iter_mut().find(|(others, _)| *others == numbers) {
                    Some((_, names)) => names.push(optimizer.name()),
                    None => known.push((numbers, vec![optimizer.name()])),
                }
            }
            for (numbers, names) in known {
                let names = if names.len() == Optimizer::ALL.len() { "all".to_owned() } else { names.join(", ") };
                let _ = writeln!(table, "| {precision} | {words} | {names} | {numbers} |");
            }
        }
    }
    table
}

#[test]
fn the_page_lists_the_ways_and_the_limits_of_the_selftest() {
    let ways: Vec<_> = selftest::all_settings().iter().map(way).collect();
    // By hand: 15 operators at three batch sizes; seven networks, one of them with four more optimizers.
    assert_eq!(ways[0], ("fp32 nchw".to_owned(), 45, 7, 4, true));
    let mut table =
        "| way | operators | networks | other optimizers | on the emulator |\n|---|---:|---:|---:|---|\n".to_owned();
    for (name, operators, networks, others, is_emulated) in ways {
        let run = if is_emulated { "run" } else { "not run" };
        let _ = writeln!(table, "| {name} | {operators} | {networks} | {others} | {run} |");
    }
    page_holds("Ways", &table);
    page_holds("Limits", &limits());
}

/// Runs every check that `batchstep selftest` makes on a GPU, except those of graphs and algorithms.
/// `BATCHSTEP_SELFTEST_ONLY="fp32 nchw"` runs only a part.
#[test]
#[ignore = "takes an hour or more, with BATCHSTEP_LONG=1"]
fn the_whole_selftest_on_the_emulator() {
    if std::env::var_os("BATCHSTEP_LONG").is_none() || emulator().is_none() {
        return;
    }
    let only: Vec<String> = std::env::var("BATCHSTEP_SELFTEST_ONLY").ok().into_iter().collect();
    let choice = CheckFilter { only, skip: Vec::new() };
    let mut reference = Engines::reference();
    let checks = selftest::run(&mut EmulatedEngine::default(), reference.as_mut(), &choice, |check| {
        eprintln!("{check:?}");
    });
    let failed: Vec<_> = checks.unwrap().into_iter().filter(|check| !check.passed()).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}
