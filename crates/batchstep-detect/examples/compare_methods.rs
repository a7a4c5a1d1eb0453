//! The table of all methods on series with a known truth: how well each finds the jumps, and how long it takes.
//!
//! ```text
//! cargo run --release --example compare_methods -- shapes [--seeds 0..20] [--only WORD,...] [--methods ours,pelt,...] [--errors] [--markdown]
//! cargo run --release --example compare_methods -- DIR...
//! ```
//!
//! `shapes` draws the families of `batchstep_detect::shapes`; the words `development` and `held-out` stand for those of `SPLIT.md`. Held-out families
//! appear in sums only: no other word chooses one, and none is printed by name. Each DIR holds `truth.json` and `series/<id>.csv` with the columns batch_size, rep,
//! order, time_ms; `--errors` lists the series with
//! a wrong or missing jump; `--markdown` prints one table of all methods. F1 is pooled within a family and averaged over the families that have jumps, clean
//! shares over those that have series without (in DIR, short staircases are a family of their own, so that their many steps do not drown the
//! rest). A jump that the truth calls not required costs nothing, found or missed. The time of ours includes 1,000 resamples; the
//! others have none.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use batchstep_detect::detect::baseline::{self, Baseline};
use batchstep_detect::detect::{Findings, Observation, Settings, detect};
use batchstep_detect::shapes::tally::Tally;
use batchstep_detect::shapes::truth::Change;
use batchstep_detect::shapes::{Family, Labelled};
use serde_json::Value;

type Failure = Box<dyn Error>;

/// `None` is ours.
type Method = Option<Baseline>;

struct Options {
    seeds: std::ops::Range<u64>,
    only: Vec<String>,
    methods: Vec<String>,
    /// Lists the series with an error.
    errors: bool,
    markdown: bool,
    folders: Vec<PathBuf>,
}

fn main() -> Result<(), Failure> {
    let options = options()?;
    let all = if options.folders == [PathBuf::from("shapes")] {
        let wanted = |family: &Family| {
            let is = |word: &String| match word.as_str() {
                "development" => family.for_development(),
                "held-out" => !family.for_development(),
                word => family.for_development() && family.name.contains(word),
            };
            options.only.is_empty() || options.only.iter().any(is)
        };
        let families = Family::all().filter(wanted);
        families.flat_map(|family| options.seeds.clone().map(move |seed| family.series(seed))).collect()
    } else {
        let read: Result<Vec<Vec<Labelled>>, Failure> = options.folders.iter().map(|folder| read(folder)).collect();
        read?.concat()
    };
    if all.is_empty() {
        return Err("usage: compare_methods shapes [--seeds A..B] [--only WORD,...] [--methods ...] | DIR...".into());
    }
    let quiet = all.iter().filter(|series| series.quiet).count();
    println!("{} series, {quiet} of them without a jump", all.len());
    let asked = |&m: &Method| options.methods.is_empty() || options.methods.iter().any(|asked| asked == name(m));
    let mut columns = Vec::new();
    for method in std::iter::once(None).chain(Baseline::ALL.map(Some)).filter(asked) {
        let column = tallies(&all, method, &options);
        print(&column);
        columns.push(column);
    }
    if options.markdown {
        print_markdown(&columns);
    }
    Ok(())
}

/// What one method reached.
struct Column {
    method: &'static str,
    families: Vec<(String, Tally)>,
    all: Tally,
}

impl Column {
    fn held_out(&self) -> Vec<&Tally> {
        self.families.iter().filter(|(family, _)| is_held_out(family)).map(|(_, tally)| tally).collect()
    }
}

fn is_held_out(name: &str) -> bool {
    Family::all().any(|family| family.name == name && !family.for_development())
}

/// The mean over the families that have jumps.
fn mean(families: &[&Tally], figure: fn(&Tally) -> f64) -> f64 {
    let with: Vec<f64> = families.iter().filter(|tally| tally.has_jumps()).map(|tally| figure(tally)).collect();
    with.iter().sum::<f64>() / with.len() as f64
}

/// The mean over the families that have series without a jump.
fn clean(families: &[&Tally]) -> f64 {
    let shares: Vec<f64> = families.iter().filter_map(|tally| tally.clean_share()).collect();
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

/// Prints F1 of all methods for each family and, if it has series without a jump, the clean share.
fn print_markdown(columns: &[Column]) {
    let Some(first) = columns.first() else { return };
    let methods: Vec<&str> = columns.iter().map(|column| column.method).collect();
    println!("\n| family | jumps | {} |\n|---|---|{}", methods.join(" | "), "---|".repeat(methods.len()));
    for (place, (family, tally)) in first.families.iter().enumerate().filter(|(_, (family, _))| !is_held_out(family)) {
        let cell = |column: &Column| {
            let tally = &column.families[place].1;
            let clean = tally.clean_share().map_or(String::new(), |share| format!(", {:.0} %", 100.0 * share));
            format!("{:.3}{clean}", tally.exact.f1())
        };
        let cells: Vec<String> = columns.iter().map(cell).collect();
        println!("| {family} | {} | {} |", tally.exact.found + tally.exact.missed, cells.join(" | "));
    }
    let held_out = first.held_out();
    if !held_out.is_empty() {
        let of = |column: &Column| {
            let held_out = column.held_out();
            format!("{:.3}, {:.1} %", mean(&held_out, |tally| tally.exact.f1()), 100.0 * clean(&held_out))
        };
        let jumps: usize = held_out.iter().map(|tally| tally.exact.found + tally.exact.missed).sum();
        let cells: Vec<String> = columns.iter().map(of).collect();
        println!("| mean of the {} held-out families | {jumps} | {} |", held_out.len(), cells.join(" | "));
    }
}

fn options() -> Result<Options, Failure> {
    let mut options =
        Options { seeds: 0..20, only: vec![], methods: vec![], errors: false, markdown: false, folders: vec![] };
    let mut arguments = std::env::args().skip(1);
    let words = |text: String| text.split(',').map(str::to_string).collect::<Vec<_>>();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument}: a value is missing"));
        match argument.as_str() {
            "--seeds" => {
                let text = value()?;
                let (first, end) = text.split_once("..").ok_or("--seeds: such as 0..20")?;
                options.seeds = first.parse()?..end.parse()?;
            }
            "--only" => options.only = words(value()?),
            "--methods" => options.methods = words(value()?),
            "--markdown" => options.markdown = true,
            "--errors" => options.errors = true,
            _ => options.folders.push(argument.into()),
        }
    }
    Ok(options)
}

fn name(method: Method) -> &'static str {
    method.map_or("ours", Baseline::name)
}

/// The figures of one method, family by family in the order of their first series.
fn tallies(labelled: &[Labelled], method: Method, options: &Options) -> Column {
    let mut families: Vec<(String, Tally)> = Vec::new();
    let mut all = Tally::default();
    for (index, series) in labelled.iter().enumerate() {
        let started = Instant::now();
        let found = findings(method, &series.observations);
        let seconds = started.elapsed().as_secs_f64();
        let claims = found.jumps;
        let place = families.iter().position(|(family, _)| *family == series.family).unwrap_or_else(|| {
            families.push((series.family.clone(), Tally::default()));
            families.len() - 1
        });
        families[place].1.take(series, &claims, seconds);
        let before = all.exact;
        all.take(series, &claims, seconds);
        let right = before.invented == all.exact.invented && before.missed == all.exact.missed;
        if options.errors && !right && !is_held_out(&series.family) {
            let seed = options.seeds.start + index as u64 % (options.seeds.end - options.seeds.start);
            let required = series.changes.iter().filter(|c| c.required).map(|c| (series.x[c.at], c.size));
            println!("{} {seed}: required {:?}", series.family, required.collect::<Vec<_>>());
            println!("    found {:?}", claims.iter().map(|c| (c.after, c.size)).collect::<Vec<_>>());
        }
    }
    Column { method: name(method), families, all }
}

fn findings(method: Method, observations: &[Observation]) -> Findings {
    match method {
        None => detect(observations, &Settings::default()),
        Some(method) => baseline::detect(method, observations, &Settings { resamples: 0, ..Settings::default() }),
    }
}

fn print(column: &Column) {
    let Column { method, families, all } = column;
    println!("\n{method}");
    println!(
        "family                   series  jumps  precision  recall     F1 F1 +-1   clean   signs    size  covers  ms mean  ms most"
    );
    for (family, tally) in families.iter().filter(|(family, _)| !is_held_out(family)) {
        println!("{}", row(family, tally));
    }
    let held_out = column.held_out();
    if !held_out.is_empty() {
        println!("held-out families, {}: {}", held_out.len(), macros(&held_out));
    }
    let families: Vec<&Tally> = families.iter().map(|(_, tally)| tally).collect();
    println!(
        "macro: {} (of all series {:.3}), wrong signs {} of {}, size error {:.1} %, coverage {:.3}, {:.1} s in all",
        macros(&families),
        all.clean_share().unwrap_or(f64::NAN),
        all.wrong_signs,
        all.claims,
        100.0 * all.size_error().unwrap_or(f64::NAN),
        all.coverage(),
        all.seconds
    );
}

/// The means over families.
fn macros(families: &[&Tally]) -> String {
    format!(
        "precision {:.3}, recall {:.3}, F1 {:.3} (within 1: {:.3}), clean {:.3}",
        mean(families, |tally| tally.exact.precision()),
        mean(families, |tally| tally.exact.recall()),
        mean(families, |tally| tally.exact.f1()),
        mean(families, |tally| tally.near.f1()),
        clean(families),
    )
}

fn row(family: &str, tally: &Tally) -> String {
    let or_dash =
        |value: Option<f64>, digits: usize| value.map_or("-".to_string(), |value| format!("{value:.digits$}"));
    let found = |value: f64| tally.has_jumps().then_some(value);
    let exact = tally.exact;
    let mut line = format!("{family:<24}{:>7}{:>7}", tally.series, exact.found + exact.missed);
    let _ = write!(line, "{:>11}{:>8}", or_dash(found(exact.precision()), 3), or_dash(found(exact.recall()), 3));
    let _ = write!(line, "{:>7}{:>7}", or_dash(found(exact.f1()), 3), or_dash(found(tally.near.f1()), 3));
    let _ = write!(line, "{:>8}{:>8}", or_dash(tally.clean_share(), 3), tally.wrong_signs);
    let _ = write!(line, "{:>8}", or_dash(tally.size_error().map(|error| 100.0 * error), 1));
    let _ = write!(line, "{:>8}", or_dash(found(tally.coverage()), 3));
    let _ = write!(line, "{:>9.1}{:>9.1}", 1e3 * tally.seconds / tally.series as f64, 1e3 * tally.slowest);
    line
}

fn read(folder: &Path) -> Result<Vec<Labelled>, Failure> {
    let truth: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("truth.json"))?)?;
    let truth = truth.as_object().ok_or("truth.json: an object is expected")?;
    truth.iter().map(|(id, truth)| one(&folder.join("series").join(format!("{id}.csv")), truth)).collect()
}

fn one(path: &Path, truth: &Value) -> Result<Labelled, Failure> {
    let text = std::fs::read_to_string(path)?;
    let row = |line: &str| -> Result<Observation, Failure> {
        let cells: Vec<f64> = line.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let [x, _, order, y] = cells[..] else { return Err(format!("four columns expected: {line}").into()) };
        Ok(Observation { order: Some(order), ..Observation::new(x, y) })
    };
    let observations: Vec<Observation> = text.lines().skip(1).map(row).collect::<Result<_, _>>()?;
    let mut x: Vec<f64> = observations.iter().map(|o| o.x).collect();
    x.sort_by(f64::total_cmp);
    x.dedup();
    let jumps = truth["jumps"].as_array().ok_or("jumps: a list is expected")?;
    let changes = jumps.iter().map(|jump| change(jump, &x)).collect::<Option<Vec<_>>>();
    let family = truth["family"].as_str().unwrap_or_default();
    let family = match truth["period"].as_f64() {
        Some(period) if period < 5.0 => format!("{family}, short"),
        _ => family.to_string(),
    };
    let changes = changes.ok_or_else(|| format!("{}: a jump without after, size_ms or required", path.display()))?;
    Ok(Labelled { family, x, observations, quiet: changes.is_empty(), changes })
}

fn change(jump: &Value, x: &[f64]) -> Option<Change> {
    let after = jump["after"].as_f64()?;
    let index = |name: &str| {
        let place = jump[name].as_f64().unwrap_or(after);
        x.partition_point(|x| *x <= place).saturating_sub(1)
    };
    let size = jump["size_ms"].as_f64()?;
    Some(Change {
        at: index("after"),
        first: index("first"),
        last: index("last"),
        size,
        largest: size,
        required: jump["required"].as_bool()?,
        pattern: jump["pattern"].as_bool().unwrap_or(false),
    })
}
