//! The whole selftest on the emulator, and docs/gpu-selftest.md, which lists its checks, their limits and their
//! results.
//!
//! A test that computes nothing compares the listed checks and limits with the code; with `BATCHSTEP_WRITE_SELFTEST=1`
//! they are written anew. Computing the results takes an hour; with the same variable their rows are written as well.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::PathBuf;

use super::{EmulatedEngine, emulator};
use crate::check::selftest::{self, Check, CheckFilter, Depth, Errors};
use crate::engine::open::Engines;
use crate::engine::{Engine, Settings};
use crate::network::operators::operators;
use crate::settings::{Optimizer, Precision};

const WRITE: &str = "BATCHSTEP_WRITE_SELFTEST";

fn is_written() -> bool {
    std::env::var_os(WRITE).is_some()
}

/// The page, and where the text under each heading lies in it.
struct Page {
    path: PathBuf,
    text: String,
}

impl Page {
    fn read() -> Self {
        let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("docs/gpu-selftest.md");
        let text = std::fs::read_to_string(&path).unwrap();
        Self { path, text }
    }

    /// The table under a heading: its lines that begin with `|`.
    fn table(&self, heading: &str) -> std::ops::Range<usize> {
        let heading = format!("\n## {heading}\n");
        let start = self.text.find(&heading).unwrap_or_else(|| panic!("the page has no {heading}")) + heading.len();
        let start = start + self.text[start..].find("\n|").expect("a table") + 1;
        let lines = self.text[start..].split_inclusive('\n').take_while(|line| line.starts_with('|'));
        start..start + lines.map(str::len).sum::<usize>()
    }

    /// Checks that the table under a heading is this one, or writes it.
    fn holds(&mut self, heading: &str, table: &str) {
        let range = self.table(heading);
        if is_written() {
            self.text.replace_range(range, table);
            return std::fs::write(&self.path, &self.text).unwrap();
        }
        assert_eq!(&self.text[range], table, "docs/gpu-selftest.md, {heading}: write it with {WRITE}=1");
    }

    /// The rows under a heading, by way of computing, as they are written.
    fn rows(&self, heading: &str) -> BTreeMap<String, String> {
        let lines = self.text[self.table(heading)].split_inclusive('\n').skip(2);
        lines.map(|line| (cells(line)[0].to_owned(), line.to_owned())).collect()
    }
}

fn cells(line: &str) -> Vec<&str> {
    line.trim().trim_matches('|').split('|').map(str::trim).collect()
}

/// A way of computing without the optimizer: its name, what is checked in this way, and whether the emulator can
/// compute it.
struct Way {
    name: String,
    is_emulated: bool,
    operators: usize,
    /// The number of networks, with SGD.
    networks: usize,
    /// How many checks each of its rows represents, by the way with the optimizer.
    checks: Vec<(String, usize)>,
}

fn ways() -> Vec<Way> {
    let operators = operators().unwrap();
    let way = |settings: Settings| {
        let is_emulated = EmulatedEngine::default().in_force(&settings).unwrap() == settings;
        let workloads = selftest::workloads(&settings).unwrap();
        let is_operator = |name: &str| operators.iter().any(|network| network.name == name);
        let (mut checks, mut own): (Vec<(String, usize)>, usize) = (Vec::new(), 0);
        for workload in &workloads {
            let name = selftest::way(workload);
            own += usize::from(is_operator(&workload.network.name));
            match checks.iter_mut().find(|(known, _)| *known == name) {
                Some((_, count)) => *count += 1,
                None => checks.push((name, 1)),
            }
        }
        // SGD comes first.
        let (name, with_sgd) = &checks[0];
        Way { name: name.replace(" sgd", ""), is_emulated, operators: own, networks: with_sgd - own, checks }
    };
    selftest::all_settings().into_iter().map(way).collect()
}

const WAYS: &str = "Ways";
const LIMITS: &str = "Limits";
const RESULTS: &str = "What came of it";

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
fn the_page_lists_the_ways_and_the_limits_of_the_selftest_and_a_result_of_each_way_that_is_emulated() {
    let ways = ways();
    let mut table =
        "| way | operators | networks | other optimizers | on the emulator |\n|---|---:|---:|---:|---|\n".to_owned();
    for Way { name, operators, networks, checks, is_emulated } in &ways {
        let run = if *is_emulated { "run" } else { "not run" };
        let _ = writeln!(table, "| {name} | {operators} | {networks} | {} | {run} |", checks.len() - 1);
    }
    let mut page = Page::read();
    page.holds(WAYS, &table);
    page.holds(LIMITS, &limits());
    // By hand: 15 operators at three batch sizes; seven networks, one of them with four more optimizers.
    assert_eq!((ways[0].name.as_str(), ways[0].operators, ways[0].networks), ("fp32 nchw", 45, 7));
    assert_eq!(ways[0].checks[4], ("fp32 nchw adamw".to_owned(), 1));
    let rows = page.rows(RESULTS);
    let emulated = || ways.iter().filter(|way| way.is_emulated).flat_map(|way| &way.checks);
    assert_eq!(rows.keys().collect::<BTreeSet<_>>(), emulated().map(|(name, _)| name).collect());
    for (name, count) in emulated() {
        let row = cells(&rows[name]);
        let failed = if row[2] == "none" { 0 } else { row[2].split(", ").count() };
        let passed: usize = row[1].parse().expect("a number");
        assert_eq!(passed + failed, *count, "checks of {name}");
    }
}

/// The results of the checks of one way.
#[derive(Default)]
struct WayResults {
    passed: usize,
    failed: Vec<String>,
    /// The largest share of a limit that was reached: of outputs, gradients, updates, losses.
    shares: [f64; 4],
}

impl WayResults {
    fn add(&mut self, check: &Check) {
        let Errors { output, gradients, updates, first_loss, losses } = check.errors;
        let most = check.limits;
        let of_losses = (first_loss / most.first_loss).max(losses / most.losses);
        let shares = [output / most.output, gradients / most.gradients, updates / most.updates, of_losses];
        for (largest, share) in self.shares.iter_mut().zip(shares) {
            *largest = largest.max(share);
        }
        match check.passed() {
            true => self.passed += 1,
            false => self.failed.push(format!("{} batch {}", check.name, check.batch_size)),
        }
    }

    fn text(&self, way: &str) -> String {
        let [output, gradients, updates, losses] = self.shares.map(|share| format!("{:.1} %", 100.0 * share));
        let failed = if self.failed.is_empty() { "none".to_owned() } else { self.failed.join(", ") };
        format!("| {way} | {} | {failed} | {output} | {gradients} | {updates} | {losses} |\n", self.passed)
    }
}

const TABLE: &str =
    "| way | passed | failed | output | gradients | updates | losses |\n|---|---:|---|---:|---:|---:|---:|\n";

/// Runs every check that `batchstep selftest` makes on a GPU, except those of graphs and algorithms. The table has the
/// largest error of each way as a share of its limit. `BATCHSTEP_SELFTEST_ONLY="fp32 nchw"` runs only a part.
#[test]
#[ignore = "takes an hour or more; makes the table of docs/gpu-selftest.md"]
fn the_whole_selftest_on_the_emulator() {
    if emulator().is_none() {
        return;
    }
    let mut rows: BTreeMap<String, WayResults> = BTreeMap::new();
    let mut reference = Engines::reference();
    let only: Vec<String> = std::env::var("BATCHSTEP_SELFTEST_ONLY").ok().into_iter().collect();
    let choice = CheckFilter { only, skip: Vec::new() };
    let checks = selftest::run(&mut EmulatedEngine::default(), reference.as_mut(), &choice, |check| {
        eprintln!("{} {} batch {}: {}", check.name, check.way, check.batch_size, check.passed());
        rows.entry(check.way.clone()).or_default().add(check);
    });
    let count = checks.unwrap().len();
    let made: BTreeMap<String, String> = rows.iter().map(|(way, row)| (way.clone(), row.text(way))).collect();
    let table: String = made.values().map(String::as_str).collect();
    eprintln!("{TABLE}{table}\n{count} checks");
    if is_written() {
        let mut page = Page::read();
        let mut all = page.rows(RESULTS);
        all.extend(made);
        let rows: String = ways().iter().flat_map(|way| &way.checks).filter_map(|(name, _)| all.remove(name)).collect();
        page.holds(RESULTS, &format!("{TABLE}{rows}"));
    }
    assert!(rows.values().all(|row| row.failed.is_empty()), "{table}");
}
