//! Which curves get another answer from another unit, another order of rows, or a jitter far below the noise.
//!
//! ```text
//! cargo run --release --example invariance -- DIR [SEEDS]
//! ```
//!
//! DIR holds tables of two columns, x and y, with a line of names. Each is judged as it is, with y times 1000 and divided by 7, with x
//! times 8, with its rows shuffled, with a jitter of 1e-5 (as often as SEEDS says; 10 where not said), and with the
//! rate 1 / y in place of the time y.

use std::error::Error;
use std::path::Path;

use batchstep_detect::random::Rng;
use batchstep_detect::{Observation, Settings, detect};

/// Places of jumps up and of jumps down.
type Answer = Vec<(f64, bool)>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("usage: invariance DIR [SEEDS]")?;
    let seeds: u64 = arguments.next().map_or(Ok(10), |seeds| seeds.parse())?;
    let mut paths: Vec<_> = std::fs::read_dir(folder)?.map(|e| e.map(|e| e.path())).collect::<Result<_, _>>()?;
    paths.sort();
    let mut changed = std::collections::BTreeMap::new();
    for path in &paths {
        let curve = read(path)?;
        let own = answer(&curve, 1.0, 1.0);
        println!("{:<40} {own:?}", path.file_stem().unwrap_or_default().to_string_lossy());
        let mut compare = |kind: &'static str, answers: Vec<Answer>| {
            let unlike: Vec<&Answer> = answers.iter().filter(|answer| **answer != own).collect();
            *changed.entry(kind).or_insert(0) += usize::from(!unlike.is_empty());
            if let Some(first) = unlike.first() {
                println!("    {kind}, {} of {}: {first:?}", unlike.len(), answers.len());
            }
        };
        compare("y scaled", [1000.0, 1.0 / 7.0].map(|factor| answer(&curve, 1.0, factor)).to_vec());
        compare("x scaled", vec![answer(&curve, 8.0, 1.0)]);
        let each = |of: &dyn Fn(&mut Rng) -> Vec<(f64, f64)>| -> Vec<Answer> {
            (0..seeds).map(|seed| answer(&of(&mut Rng::new(seed)), 1.0, 1.0)).collect()
        };
        let shuffled = |rng: &mut Rng| {
            let mut curve = curve.clone();
            rng.shuffle(&mut curve);
            curve
        };
        compare("shuffled", each(&shuffled));
        compare("jitter", each(&|rng| curve.iter().map(|(x, y)| (*x, y * (1.0 + 1e-5 * rng.normal()))).collect()));
        let inverse: Vec<(f64, f64)> = curve.iter().map(|(x, y)| (*x, 1.0 / y)).collect();
        compare("inverse", vec![jumps(&inverse, 1.0, 1.0, true).into_iter().map(|(x, up)| (x, !up)).collect()]);
    }
    println!("{} curves; changed: {changed:?}", paths.len());
    Ok(())
}

fn answer(curve: &[(f64, f64)], x_factor: f64, y_factor: f64) -> Answer {
    jumps(curve, x_factor, y_factor, false)
}

fn jumps(curve: &[(f64, f64)], x_factor: f64, y_factor: f64, is_rate: bool) -> Answer {
    let observations: Vec<Observation> =
        curve.iter().map(|(x, y)| Observation::new(x * x_factor, y * y_factor)).collect();
    let findings = detect(&observations, &Settings { resamples: 0, is_rate, ..Settings::default() });
    findings.jumps.iter().map(|jump| (jump.after / x_factor, jump.size > 0.0)).collect()
}

fn read(path: &Path) -> Result<Vec<(f64, f64)>, Box<dyn Error>> {
    let text = std::fs::read_to_string(path)?;
    let row = |line: &str| -> Result<(f64, f64), Box<dyn Error>> {
        let (x, y) = line.split_once(',').ok_or_else(|| format!("{}: two columns expected", path.display()))?;
        Ok((x.trim().parse()?, y.trim().parse()?))
    };
    text.lines().skip(1).map(row).collect()
}
