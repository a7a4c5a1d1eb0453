//! How many of the plain steps in published measurements the detector finds.
//!
//! ```text
//! git clone https://github.com/microsoft/vidur
//! cargo run --release --example plain_steps -- vidur [--held-out | --missed]
//! ```
//!
//! The layers of language models on A40, A100 and H100 over the number of tokens, in two ranges of about 130 values (MIT licence;
//! `data/profiling/compute/*/*/*/mlp.csv`, medians of 20 steps, rounded to a microsecond). A step is plain where a rule that knows nothing of the
//! detector says so ([`plain`]). Phi-2, Llama-2-7b, Llama-3-8B and internlm-20b are for development; with `--held-out` only sums over the other
//! models are printed. `--missed` lists what is missed.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};

use batchstep_detect::stats::regression::{Line, line};
use batchstep_detect::{Observation, Settings, detect};

const FOR_DEVELOPMENT: [&str; 4] = ["phi-2", "Llama-2-7b-hf", "Meta-Llama-3-8B", "internlm-20b"];
/// Tokens from and up to which a curve is cut, so that it is not judged in windows.
const RANGES: [(f64, f64); 2] = [(1.0, 1024.0), (1025.0, 4096.0)];
/// The unit to which times are rounded, in ms.
const UNIT: f64 = 1e-3;

/// Tokens and milliseconds, ascending.
type Values = Vec<(f64, f64)>;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (folder, flag) = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [folder] => (folder, ""),
        [folder, flag @ ("--held-out" | "--missed")] => (folder, flag),
        _ => return Err("usage: plain_steps VIDUR [--held-out | --missed]".into()),
    };
    let (mut curves, mut labelled, mut found, mut hits, mut wrong) = (0, 0, 0, 0, 0);
    for path in tables(&Path::new(folder).join("data/profiling/compute"))? {
        let model = path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().into_owned();
        if FOR_DEVELOPMENT.contains(&model.as_str()) == (flag == "--held-out") {
            continue;
        }
        for (name, curve) in read(&path)? {
            for (from, to) in RANGES {
                let part: Values = curve.iter().copied().filter(|(x, _)| (from..=to).contains(x)).collect();
                if part.len() < 20 {
                    continue;
                }
                let observations: Vec<Observation> = part.iter().map(|&(x, y)| Observation::new(x, y)).collect();
                let jumps = detect(&observations, &Settings { resamples: 0, ..Settings::default() }).jumps;
                let steps = plain(&part);
                (curves, labelled, found) = (curves + 1, labelled + steps.len(), found + jumps.len());
                for (after, change) in steps {
                    match jumps.iter().find(|jump| jump.after == after) {
                        Some(jump) if jump.size * change > 0.0 => hits += 1,
                        Some(_) => wrong += 1,
                        None if flag == "--missed" => {
                            println!("{} {name} after {after}: {:+.1} %", path.display(), 100.0 * change);
                        }
                        None => {}
                    }
                }
            }
        }
    }
    println!(
        "{curves} curves: {labelled} plain steps, {hits} found at their place, {wrong} with the wrong sign; {found} jumps found in all"
    );
    Ok(())
}

/// The x after which a step of 5 % or more is plain, and its size as a logarithm: three or four points on each side change by at most a quarter of
/// it from one to the next and lie on a line within a sixth of it, and both lines are apart by more than half of it between the two points.
fn plain(curve: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let step = |k: usize| -> Option<(f64, f64)> {
        let ((x, y), (next_x, next)) = (curve[k], curve[k + 1]);
        let (change, size) = ((next / y).ln(), (next - y).abs());
        if change.abs() < 0.05 || size < 5.0 * UNIT {
            return None;
        }
        let side = |points: [&[(f64, f64)]; 2]| {
            let is_calm = |points: &&[(f64, f64)]| {
                points.windows(2).all(|pair| (pair[1].1 / pair[0].1).ln().abs() <= 0.25 * change.abs())
            };
            let points = points.into_iter().find(is_calm)?;
            let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
            let Line { intercept, slope } = line(&xs, &ys, &vec![1.0; points.len()]);
            let is_straight = points.iter().all(|(x, y)| (y - intercept - slope * x).abs() <= size / 6.0);
            is_straight.then_some(intercept + slope * 0.5 * (x + next_x))
        };
        let before = side([&curve[(k + 1).checked_sub(4)?..=k], &curve[k - 2..=k]])?;
        let after = side([curve.get(k + 1..k + 5)?, &curve[k + 1..k + 4]])?;
        let gap = after - before;
        (gap * change > 0.0 && gap.abs() >= 0.6 * size).then_some((x, change))
    };
    (0..curve.len() - 1).filter_map(step).collect()
}

/// All tables `mlp.csv` under `folder`, in order.
fn tables(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        for path in entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()? {
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with("mlp.csv") {
                found.insert(path);
            }
        }
    }
    Ok(found.into_iter().collect())
}

/// The curve of each operation and number of tensor-parallel workers.
fn read(path: &Path) -> Result<BTreeMap<String, Values>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| {
        names.iter().position(|n| *n == name).ok_or_else(|| format!("{}: no column {name}", path.display()))
    };
    let (tokens, workers) = (column("num_tokens")?, column("num_tensor_parallel_workers")?);
    let mut curves: BTreeMap<String, BTreeMap<u64, f64>> = BTreeMap::new();
    for line in lines {
        let cells: Vec<&str> = line.split(',').collect();
        for (i, name) in names.iter().enumerate() {
            let operation = name.strip_prefix("time_stats.").and_then(|name| name.strip_suffix(".median"));
            if let (Some(operation), Ok(time)) = (operation, cells[i].parse()) {
                let curve = curves.entry(format!("{operation}, {} workers", cells[workers])).or_default();
                curve.entry(cells[tokens].parse()?).or_insert(time);
            }
        }
    }
    let of = |curve: BTreeMap<u64, f64>| curve.into_iter().map(|(x, y)| (x as f64, y)).collect();
    Ok(curves.into_iter().map(|(name, curve)| (name, of(curve))).collect())
}
