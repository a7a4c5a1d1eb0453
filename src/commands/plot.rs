//! `batchstep plot`: the charts, from the stored data alone.

use std::path::{Path, PathBuf};

use batchstep::analysis::crossover::crossovers;
use batchstep::analysis::epochs::EpochStudy;
use batchstep::analysis::feeding::FeedingStudy;
use batchstep::analysis::{Series, analyse};
use batchstep::error::{Error, Result};
use batchstep::figures::{self, Figures};
use batchstep::store::RunDirectory;

use super::{Exit, print, query};
use crate::cli::{Picture, PlotArgs};

pub fn plot(args: &PlotArgs) -> Result<Exit> {
    let query = query(&args.columns);
    for path in &args.paths {
        let folder = args.out.clone().unwrap_or_else(|| beside(path));
        std::fs::create_dir_all(&folder).map_err(|e| Error::io("make the folder for the charts", &folder, &e))?;
        let destination = figures::Destination { folder, stem: stem(path), extension: extension(args.format) };
        let drawn = if RunDirectory::is_training(path) {
            figures::draw_training(&figures::training(path, &EpochStudy::read(path)?), &destination)?
        } else if RunDirectory::is_pipeline(path) {
            figures::draw_feeding(path, &FeedingStudy::read(path)?, &destination)?
        } else {
            let found = analyse(path, &query, None)?;
            let series: Vec<Series> = found.iter().map(|found| found.series.clone()).collect();
            let mut drawn = Figures::of(path, &found).draw(&destination)?;
            drawn.extend(figures::draw_crossover(path, &found, &crossovers(&series), &destination)?);
            drawn
        };
        drawn.iter().for_each(|figure| print(&format!("{}\n", figure.display())));
    }
    Ok(Exit::Done)
}

fn extension(picture: Picture) -> &'static str {
    match picture {
        Picture::Png => "png",
        Picture::Svg => "svg",
    }
}

fn beside(path: &Path) -> PathBuf {
    if path.is_dir() { path.to_path_buf() } else { path.parent().map_or_else(PathBuf::new, Path::to_path_buf) }
}

/// Charts of a run directory have plain names; charts of a file are named after it.
fn stem(path: &Path) -> Option<String> {
    if path.is_dir() { None } else { path.file_stem().map(|stem| stem.to_string_lossy().into_owned()) }
}
