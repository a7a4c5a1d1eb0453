//! The table of all methods on labelled series: how well each finds the jumps, and how long it takes.
//!
//! ```text
//! cargo run --release --example compare_methods -- DIR...
//! ```
//!
//! Each DIR holds `truth.json` and `series/<id>.csv` with the columns batch_size, rep, order, time_ms. F1 is pooled within a
//! family of series and averaged over families (short staircases are a family of their own, so that their many steps do
//! not drown the rest). A jump that the truth calls not required costs nothing, found or missed. The time of ours includes 1,000
//! resamples; the others have none.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::time::Instant;

use batchstep::detect::baseline::{self, Baseline};
use batchstep::detect::{Findings, Observation, Settings, detect, score::Score};
use serde_json::Value;

type Method = (&'static str, Box<dyn Fn(&[Observation]) -> Findings>);

struct Series {
    family: String,
    required: Vec<f64>,
    optional: Vec<f64>,
    observations: Vec<Observation>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut all = Vec::new();
    for folder in std::env::args().skip(1) {
        all.extend(read(Path::new(&folder))?);
    }
    if all.is_empty() {
        return Err("usage: compare_methods DIR...".into());
    }
    let mut methods: Vec<Method> = vec![("ours", Box::new(|o| detect(o, &Settings::default())))];
    for method in Baseline::ALL {
        let settings = Settings { resamples: 0, ..Settings::default() };
        methods.push((method.name(), Box::new(move |o| baseline::detect(method, o, &settings))));
    }
    let free = all.iter().filter(|s| s.required.is_empty() && s.optional.is_empty()).count();
    println!("{} series, {free} of them without a jump", all.len());
    println!("{:>12} {:>8} {:>12} {:>8} {:>10}", "method", "F1 exact", "F1 within 1", "clean", "ms/series");
    for (name, method) in &methods {
        println!("{name:>12} {}", row(&all, method));
    }
    Ok(())
}

/// The figures of one method.
fn row(all: &[Series], method: &dyn Fn(&[Observation]) -> Findings) -> String {
    let mut families: BTreeMap<&str, [Score; 2]> = BTreeMap::new();
    let (mut clean, mut free) = (0, 0);
    let started = Instant::now();
    let found: Vec<Vec<f64>> =
        all.iter().map(|s| method(&s.observations).jumps.iter().map(|j| j.after).collect()).collect();
    let milliseconds = 1e3 * started.elapsed().as_secs_f64() / all.len() as f64;
    for (series, claimed) in all.iter().zip(&found) {
        let scores = families.entry(&series.family).or_default();
        for (score, tolerance) in scores.iter_mut().zip([0.0, 1.0]) {
            *score = score.plus(judged(series, claimed, tolerance));
        }
        if series.required.is_empty() && series.optional.is_empty() {
            free += 1;
            clean += usize::from(claimed.is_empty());
        }
    }
    // A family without a jump has no F1; its alarms are in the share of clean series.
    let with: Vec<&[Score; 2]> = families.values().filter(|s| s[0].found + s[0].missed > 0).collect();
    let mean = |which: usize| with.iter().map(|s| s[which].f1()).sum::<f64>() / with.len() as f64;
    let share = f64::from(clean as u32) / f64::from(free.max(1) as u32);
    format!("{:>8.3} {:>12.3} {share:>8.3} {milliseconds:>10.2}", mean(0), mean(1))
}

/// The score of one series; claims next to a jump that is not required, and not right otherwise, are dropped.
fn judged(series: &Series, claimed: &[f64], tolerance: f64) -> Score {
    let near = |jumps: &[f64], claim: f64, within: f64| jumps.iter().any(|j| (j - claim).abs() <= within);
    let counted: Vec<f64> = claimed
        .iter()
        .copied()
        .filter(|&c| near(&series.required, c, tolerance) || !near(&series.optional, c, 1.0))
        .collect();
    Score::of(&counted, &series.required, tolerance)
}

fn read(folder: &Path) -> Result<Vec<Series>, Box<dyn Error>> {
    let truth: Value = serde_json::from_str(&std::fs::read_to_string(folder.join("truth.json"))?)?;
    let truth = truth.as_object().ok_or("truth.json: an object is expected")?;
    truth.iter().map(|(id, truth)| one(&folder.join("series").join(format!("{id}.csv")), truth)).collect()
}

fn one(path: &Path, truth: &Value) -> Result<Series, Box<dyn Error>> {
    let jumps = truth["jumps"].as_array().ok_or("jumps: a list is expected")?;
    let places = |required: bool| -> Vec<f64> {
        let chosen = jumps.iter().filter(|j| j["required"].as_bool() == Some(required));
        chosen.filter_map(|j| j["after"].as_f64()).collect()
    };
    let family = truth["family"].as_str().unwrap_or_default();
    let family = match truth["period"].as_f64() {
        Some(period) if period < 5.0 => format!("{family}, short"),
        _ => family.to_string(),
    };
    let text = std::fs::read_to_string(path)?;
    let row = |line: &str| -> Result<Observation, Box<dyn Error>> {
        let cells: Vec<f64> = line.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let [x, _, order, y] = cells[..] else { return Err(format!("four columns expected: {line}").into()) };
        Ok(Observation { order: Some(order), ..Observation::new(x, y) })
    };
    let observations = text.lines().skip(1).map(row).collect::<Result<_, _>>()?;
    Ok(Series { family, required: places(true), optional: places(false), observations })
}
