//! `batchstep plot`: draws the charts from the stored data, and for several runs also one picture of all.

use std::path::{Path, PathBuf};

use batchstep::analysis::{Query, run_names};
use batchstep::chart::chart_data::{self, AnalysedRun, Destination};
use batchstep::chart::{Chart, Paper};
use batchstep::error::{Error, Result};
use batchstep::study::told;
use batchstep::table::is_stdin;

use super::evidence::Evidence;
use super::jumps::{read_as, warn};
use super::{Exit, folder_beside, notice, print, print_aside, query, stem_of};
use crate::cli::PlotArgs;

pub fn plot(args: &PlotArgs) -> Result<Exit> {
    let query = query(&args.columns);
    let names = run_names(&args.paths);
    let (mut sweeps, mut exit) = (Vec::new(), Exit::Done);
    for (path, name) in args.paths.iter().zip(&names) {
        let folder = args.out.clone().unwrap_or_else(|| beside(path));
        // Charts of several runs in one folder are distinguished by the runs' names.
        let several = args.out.is_some() && args.paths.len() > 1 && !is_stdin(path);
        let stem = if several { Some(name.replace('/', "-")) } else { stem(path) };
        let destination = destination(folder, stem, args)?;
        let Some(Evidence { seen, .. }) = draw(path, &query, &destination)? else { continue };
        print_aside(&read_as(seen.found.first().map(|found| &found.series)));
        exit = exit.worse(warn(seen.warnings.iter()));
        sweeps.push(AnalysedRun { path: seen.path, found: seen.found });
    }
    if sweeps.len() > 1 {
        let folder = args.out.clone().unwrap_or_else(|| PathBuf::from("."));
        all(&sweeps, &destination(folder, None, args)?)?;
    }
    Ok(exit)
}

/// The shortest and the longest column, in points: a finger's width, and the long side of A3.
const WIDTHS: std::ops::RangeInclusive<f64> = 100.0..=1200.0;

fn paper(args: &PlotArgs) -> Result<Paper> {
    let width = args.width.as_ref().map(|text| points(text).filter(|points| WIDTHS.contains(points)).ok_or(text));
    let width = width.transpose().map_err(|text| {
        Error::spec(format!("`{text}` is not the width of a figure"))
            .at("--width")
            .hint("for example 3.3in, 84mm, 8.4cm or 240pt")
    })?;
    Ok(Paper { title: args.title.clone(), width })
}

/// A length in points of 1/72 inch.
fn points(text: &str) -> Option<f64> {
    let units = [("in", 72.0), ("mm", 72.0 / 25.4), ("cm", 72.0 / 2.54), ("pt", 1.0)];
    units.iter().find_map(|(unit, points)| {
        let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * points)
    })
}

fn destination(folder: PathBuf, stem: Option<String>, args: &PlotArgs) -> Result<Destination> {
    std::fs::create_dir_all(&folder).map_err(|e| Error::io("make the folder for the charts", &folder, &e))?;
    Ok(Destination { folder, stem, extension: args.format.clone(), paper: paper(args)? })
}

/// Draws the charts of one run or file; returns the evidence of a sweep or a file of steps.
fn draw(path: &Path, query: &Query, destination: &Destination) -> Result<Option<Evidence>> {
    let (sweep, drawn) = match told(path)? {
        Some(told) => (None, vec![destination.write(&told.drawing.chart, told.drawing.name)?]),
        None => {
            let evidence = Evidence::read(path, query)?;
            let mut drawn = evidence.figures.draw(destination)?;
            for drawing in &evidence.drawings {
                drawn.push(destination.write(&drawing.chart, drawing.name)?);
            }
            (Some(evidence), drawn)
        }
    };
    drawn.iter().for_each(|figure| print(&format!("{}\n", figure.display())));
    Ok(sweep)
}

/// One picture of all. If there can't be one, because the runs measured different things, this is not a failure: each has its own charts.
fn all(sweeps: &[AnalysedRun], destination: &Destination) -> Result<()> {
    let together = match chart_data::together(sweeps) {
        Ok(together) => together,
        Err(reason) => {
            notice(reason);
            return Ok(());
        }
    };
    for path in &together.left_out {
        let first = sweeps[0].path.display();
        notice(format!(
            "{}: not in the combined picture, as its sizes or values are of a different kind from those of {first}",
            path.display()
        ));
    }
    let path = destination.write(&Chart::Runs(together.chart), "runs")?;
    // A folder that was not named is not shown.
    print(&format!("{}\n", path.strip_prefix(".").unwrap_or(&path).display()));
    Ok(())
}

fn beside(path: &Path) -> PathBuf {
    if path.is_dir() { path.to_path_buf() } else { folder_beside(path) }
}

/// Charts of a run directory have plain names; charts of a file are named after it.
fn stem(path: &Path) -> Option<String> {
    if path.is_dir() { None } else { Some(stem_of(path)) }
}
