//! Batch sizes left out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use batchstep::analysis::{self, Query, Series};
use batchstep::detect::{Findings, Settings, detect};
use batchstep::predict::model::curve::{Breaks, Curve, Level};
use batchstep::predict::model::repeats::{Pooled, between_runs, pooled};
use batchstep::random::Rng;
use batchstep::stats::quantile::{median, quantile};
use batchstep::stats::regression::line;

use super::Failure;
use super::table::{Case, head, plain, row};

/// The number of parts into which the batch sizes are divided; each is left out in turn.
const FOLDS: usize = 5;
/// The share of the batch sizes that is known where a range beyond is left out.
const KNOWN: f64 = 2.0 / 3.0;

/// The level of each batch size: the median over its visits of the fastest step.
fn levels(series: &Series) -> Vec<Level> {
    let mut visits: BTreeMap<(u64, u32), f64> = BTreeMap::new();
    for observation in series.observations() {
        let visit = visits.entry((observation.x as u64, observation.block.unwrap_or(0))).or_insert(f64::INFINITY);
        *visit = visit.min(observation.y);
    }
    let mut by_batch: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    visits.into_iter().for_each(|((batch, _), fastest)| by_batch.entry(batch).or_default().push(fastest));
    let level = |(batch, mut fastest): (u64, Vec<f64>)| Level { batch: batch as f64, seconds: median(&mut fastest) };
    by_batch.into_iter().map(level).collect()
}

fn breaks(found: &Findings) -> Breaks {
    Breaks {
        jumps: found.jumps.iter().map(|jump| jump.after).collect(),
        kinks: found.kinks.iter().map(|kink| kink.at).collect(),
        period: found.period.as_ref().map(|period| period.value),
    }
}

/// The curve that would be known without some batch sizes: the detector does not see their steps either.
fn without(series: &Series, levels: &[Level], out: &BTreeSet<u64>, noise: f64) -> Option<Curve> {
    let kept: Vec<_> = series.observations().into_iter().filter(|o| !out.contains(&(o.x as u64))).collect();
    let found = detect(&kept, &Settings { hardware: series.hardware(), ..Settings::default() });
    let known = levels.iter().copied().filter(|level| !out.contains(&(level.batch as u64))).collect();
    Curve::new(known, breaks(&found), noise)
}

/// A straight line through all known levels, by their relative errors.
fn straight(levels: &[Level], out: &BTreeSet<u64>, batch: f64) -> f64 {
    let known: Vec<&Level> = levels.iter().filter(|level| !out.contains(&(level.batch as u64))).collect();
    let x: Vec<f64> = known.iter().map(|level| level.batch).collect();
    let y: Vec<f64> = known.iter().map(|level| level.seconds).collect();
    let weights: Vec<f64> = y.iter().map(|y| y.powi(-2)).collect();
    let line = line(&x, &y, &weights);
    line.intercept + line.slope * batch
}

/// Time in proportion to the batch, as FLOPs are, at the best rate seen.
fn proportional(levels: &[Level], out: &BTreeSet<u64>, batch: f64) -> f64 {
    let known = levels.iter().filter(|level| !out.contains(&(level.batch as u64)));
    known.map(|level| level.seconds / level.batch).fold(f64::INFINITY, f64::min) * batch
}

pub fn batch_sizes(dense: &Path, again: &Path) -> Result<(), Failure> {
    let (first, second) = (analysis::series(dense, &Query::default())?, analysis::series(again, &Query::default())?);
    let engines: BTreeSet<&str> = first.iter().filter_map(engine).collect();
    for name in engines {
        let of = |all: &[Series]| all.iter().filter(|series| engine(series) == Some(name)).cloned().collect::<Vec<_>>();
        println!("\n## The engine `{name}`\n");
        batch_sizes_of(&of(&first), &of(&second));
    }
    Ok(())
}

fn engine(series: &Series) -> Option<&str> {
    let varied = series.group.iter().find(|(column, _)| column == "engine").map(|(_, value)| value.as_str());
    varied.or_else(|| series.facts.get("engine").map(String::as_str))
}

/// Two runs of the same cells, without some batch sizes.
fn repeated(first: &[Series], second: &[Series], out: &BTreeSet<u64>) -> Vec<Pooled> {
    let kept = |series: &Series| {
        levels(series).into_iter().filter(|level| !out.contains(&(level.batch as u64))).collect::<Vec<_>>()
    };
    first.iter().zip(second).map(|(a, b)| pooled(&[kept(a), kept(b)])).collect()
}

/// How far runs differ as a whole, without what is left out.
fn noise_without(first: &[Series], second: &[Series], out: &BTreeSet<u64>) -> f64 {
    between_runs(repeated(first, second, out).iter()).unwrap_or(0.0)
}

/// Prints the noise of the machine, from two runs of the same cells.
fn say_noise(first: &[Series], second: &[Series]) {
    let curves = repeated(first, second, &BTreeSet::new());
    let noise = between_runs(curves.iter()).unwrap_or(0.0);
    let mut repeated: Vec<f64> = curves.iter().flat_map(|curve| curve.repeated.clone()).map(f64::exp_m1).collect();
    println!(
        "Networks: {}. The noise of the machine, from the same run done twice: levels of the same cell differ by {:.1} % (median) and {:.1} % (90th percentile); \
         runs as a whole by {:.1} % (standard deviation). A prediction of another run can hardly be better.",
        first.iter().map(Series::label).collect::<Vec<_>>().join(", "),
        100.0 * median(&mut repeated),
        100.0 * quantile(&mut repeated, 0.9),
        100.0 * noise,
    );
}

/// The batch sizes just after the jumps of a run, each left out with a fifth of the others.
pub fn after_jumps(run: &Path, again: &Path) -> Result<(), Failure> {
    let (first, second) = (analysis::series(run, &Query::default())?, analysis::series(again, &Query::default())?);
    println!("\n## Networks with jumps\n");
    say_noise(&first, &second);
    head("Batch sizes just after a jump, each left out with a fifth of the others, five times");
    let [mut same, mut repeated, mut lines] = [const { Vec::new() }; 3];
    for (series, other) in first.iter().zip(&second) {
        let (own, others) = (levels(series), levels(other));
        for jump in breaks(&series.find(&Settings::default())).jumps {
            let Some(behind) = own.iter().find(|level| level.batch > jump) else { continue };
            for seed in 0..FOLDS {
                let mut out: Vec<u64> = own[1..own.len() - 1].iter().map(|level| level.batch as u64).collect();
                Rng::new(seed as u64).shuffle(&mut out);
                let out: BTreeSet<u64> = out.into_iter().step_by(FOLDS).chain([behind.batch as u64]).collect();
                if let Some(curve) = without(series, &own, &out, 0.0) {
                    same.push(Case { estimate: curve.at(behind.batch), truth: behind.seconds });
                }
                let repeat = others.iter().find(|level| level.batch == behind.batch);
                let noise = noise_without(&first, &second, &out);
                if let Some((curve, repeat)) = without(series, &own, &out, noise).zip(repeat) {
                    repeated.push(Case { estimate: curve.at(behind.batch), truth: repeat.seconds });
                }
                lines.push(Case { estimate: plain(straight(&own, &out, behind.batch)), truth: behind.seconds });
            }
        }
    }
    row("curve, the same run", &same, true);
    row("curve, a repeated run", &repeated, true);
    row("straight line in the batch", &lines, false);
    Ok(())
}

fn batch_sizes_of(first: &[Series], second: &[Series]) {
    say_noise(first, second);
    let mut tables: BTreeMap<&str, [Vec<Case>; 4]> = BTreeMap::new();
    for (series, other) in first.iter().zip(second) {
        let (own, others) = (levels(series), levels(other));
        let mut take = |name: &'static str, out: &BTreeSet<u64>| {
            // The same run: its own noise; the other run: with the noise between runs.
            let noise = noise_without(first, second, out);
            let (Some(same), Some(repeat)) = (without(series, &own, out, 0.0), without(series, &own, out, noise))
            else {
                return;
            };
            for level in own.iter().filter(|level| out.contains(&(level.batch as u64))) {
                let cases = tables.entry(name).or_default();
                cases[0].push(Case { estimate: same.at(level.batch), truth: level.seconds });
                if let Some(other) = others.iter().find(|other| other.batch == level.batch) {
                    cases[1].push(Case { estimate: repeat.at(level.batch), truth: other.seconds });
                }
                cases[2].push(Case { estimate: plain(straight(&own, out, level.batch)), truth: level.seconds });
                cases[3].push(Case { estimate: plain(proportional(&own, out, level.batch)), truth: level.seconds });
            }
        };
        let mut batches: Vec<u64> = own[1..own.len() - 1].iter().map(|level| level.batch as u64).collect();
        Rng::new(1).shuffle(&mut batches);
        for fold in 0..FOLDS {
            take("random", &batches.iter().copied().skip(fold).step_by(FOLDS).collect());
        }
        let known = own[(KNOWN * own.len() as f64) as usize - 1].batch;
        take("beyond", &own.iter().filter(|level| level.batch > known).map(|level| level.batch as u64).collect());
    }
    for (name, title) in [
        ("random", "Batch sizes left out: a fifth of them, at random, five times"),
        ("beyond", "Batch sizes left out: the upper third"),
    ] {
        head(title);
        let cases = tables.remove(name).unwrap_or_default();
        row("curve, the same run", &cases[0], true);
        row("curve, a repeated run", &cases[1], true);
        row("straight line in the batch", &cases[2], false);
        row("FLOPs over the best rate seen", &cases[3], false);
    }
}

/// Shares of the batch sizes that are known where the largest are left out.
const CUTS: [f64; 3] = [0.5, KNOWN, 0.8];
/// Fewest batch sizes of a series.
const FEWEST: usize = 12;

/// The largest batch sizes of every series of `runs` left out, as far as three times the largest that is known: by the curve, and by straight lines through the last part.
/// Series count alike, each with its median error, because the errors of a series share where it bends.
pub fn beyond(runs: &[PathBuf]) -> Result<(), Failure> {
    let mut all: Vec<(Series, Vec<Level>)> = Vec::new();
    for run in runs {
        let of_run = analysis::series(run, &Query::default())?;
        all.extend(of_run.into_iter().map(|series| (levels(&series), series)).map(|(levels, series)| (series, levels)));
    }
    all.retain(|(_, levels)| levels.len() >= FEWEST);
    let names = ["the curve", "line through the last quarter", "line through the last half", "line through all"];
    println!(
        "| known | series | prediction | mean over series | median | 90th percentile |\n|---|---:|---|---:|---:|---:|"
    );
    for known in CUTS {
        let mut errors: [Vec<f64>; 4] = Default::default();
        for (series, own) in &all {
            let last = own[(known * own.len() as f64) as usize - 1].batch;
            let out: BTreeSet<u64> =
                own.iter().filter(|level| level.batch > last).map(|level| level.batch as u64).collect();
            let kept: Vec<Level> = own.iter().copied().filter(|level| level.batch <= last).collect();
            let Some(curve) = without(series, own, &out, 0.0) else { continue };
            let line = |share: f64, batch: f64| {
                let count = ((share * kept.len() as f64).ceil() as usize).max(5.min(kept.len()));
                straight(&kept[kept.len() - count..], &BTreeSet::new(), batch)
            };
            let far: Vec<&Level> = own.iter().filter(|level| level.batch > last && level.batch <= 3.0 * last).collect();
            if far.is_empty() {
                continue;
            }
            let ways: [&dyn Fn(f64) -> f64; 4] =
                [&|batch| curve.at(batch).seconds, &|batch| line(0.25, batch), &|batch| line(0.5, batch), &|batch| {
                    line(1.0, batch)
                }];
            for (errors, way) in errors.iter_mut().zip(ways) {
                let mut own: Vec<f64> =
                    far.iter().map(|level| (way(level.batch) / level.seconds - 1.0).abs()).collect();
                errors.push(median(&mut own));
            }
        }
        for (name, errors) in names.iter().zip(&mut errors) {
            let mean = errors.iter().sum::<f64>() / errors.len() as f64;
            let [middle, most] = [0.5, 0.9].map(|share| quantile(errors, share));
            println!(
                "| {:.0} % | {} | {name} | {:.1} % | {:.1} % | {:.1} % |",
                100.0 * known,
                errors.len(),
                100.0 * mean,
                100.0 * middle,
                100.0 * most
            );
        }
    }
    Ok(())
}
