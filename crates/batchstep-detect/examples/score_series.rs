//! Runs the jump detector over folders of labelled series and writes what it found, for a scorer to judge.
//!
//! ```text
//! cargo run --release --example score_series -- predictions.json DIR...
//! ```
//!
//! Each DIR holds `series/<id>.csv` with the columns batch_size, rep, order, time_ms. The output is one JSON object from
//! `<id>` (with more than one DIR: `<DIR's name>/<id>`) to a list of jumps, and `_meta` with the seconds that each took.

use std::error::Error;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use batchstep_detect::detect::{Findings, Observation, Settings, detect};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let target = arguments.next().ok_or("usage: score_series PREDICTIONS.json DIR...")?;
    let folders: Vec<PathBuf> = arguments.map(PathBuf::from).collect();
    let (mut found, mut seconds) = (Vec::new(), Vec::new());
    for folder in &folders {
        for path in csv_files(&folder.join("series"))? {
            let id = identifier(folder, &path, folders.len() > 1);
            let observations = read(&path)?;
            let started = Instant::now();
            let findings = detect(&observations, &Settings::default());
            seconds.push(format!("{id:?}: {:.6}", started.elapsed().as_secs_f64()));
            found.push(format!("{id:?}: [{}]", jumps(&findings)?));
        }
    }
    let meta = format!("\"_meta\": {{\"method\": \"batchstep\", \"runtime_s\": {{{}}}}}", seconds.join(", "));
    found.push(meta);
    std::fs::write(target, format!("{{{}}}\n", found.join(",\n")))?;
    Ok(())
}

fn csv_files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.retain(|p| p.extension().is_some_and(|e| e == "csv"));
    paths.sort();
    Ok(paths)
}

fn identifier(folder: &Path, path: &Path, several: bool) -> String {
    let name = |p: &Path| p.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if several { format!("{}/{}", name(folder), name(path)) } else { name(path) }
}

fn read(path: &Path) -> Result<Vec<Observation>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let row = |line: &str| -> Result<Observation, Box<dyn Error>> {
        let cells: Vec<f64> = line.split(',').map(str::parse).collect::<Result<_, _>>()?;
        let [x, _, order, y] = cells[..] else { return Err(format!("four columns expected: {line}").into()) };
        Ok(Observation { order: Some(order), ..Observation::new(x, y) })
    };
    text.lines().skip(1).map(row).collect()
}

fn jumps(findings: &Findings) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    for (i, jump) in findings.jumps.iter().enumerate() {
        let comma = if i > 0 { ", " } else { "" };
        write!(text, "{comma}{{\"after\": {}, \"size_ms\": {}, ", jump.after, jump.size)?;
        write!(text, "\"low\": {}, \"high\": {}, \"p_value\": {:e}}}", jump.low, jump.high, jump.p_value)?;
    }
    Ok(text)
}
