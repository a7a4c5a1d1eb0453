//! `batchstep report`: one self-contained HTML page about one run or several.

use std::path::{Path, PathBuf};

use batchstep::analysis::Query;
use batchstep::analysis::epochs::EpochStudy;
use batchstep::chart::Training;
use batchstep::error::Result;
use batchstep::figures;
use batchstep::page::{self, Charts, Files, Run};
use batchstep::report::{self, Warning};
use batchstep::store::{EpochRow, FitRow, PipelineRow, holds};
use serde_json::json;

use super::evidence::Evidence;
use super::jumps::warn;
use super::pictured::Pictured;
use super::{Exit, print, query};
use crate::cli::ReportArgs;

/// The page's name in a run directory.
pub const PAGE: &str = "report.html";

pub fn report(args: &ReportArgs) -> Result<Exit> {
    let query = query(&args.columns);
    let subjects: Vec<Subject> = args.paths.iter().map(|path| Subject::read(path, &query)).collect::<Result<_>>()?;
    let runs: Vec<Run> = subjects.iter().map(Subject::page).collect::<Result<_>>()?;
    let path = args.out.clone().unwrap_or_else(|| place(&args.paths));
    page::write(&runs, &path)?;
    print(&format!("{}\n", path.display()));
    Ok(warn(runs.iter().flat_map(|run| &run.warnings)))
}

/// What a page is about.
enum Subject {
    Sweep(Box<Evidence>),
    Training(Box<Trained>),
    Pictured(Box<Pictured>),
}

impl Subject {
    fn read(path: &Path, query: &Query) -> Result<Self> {
        if holds::<EpochRow>(path)? {
            let study = EpochStudy::read(path)?;
            let (chart, warnings) = (figures::training(path, &study), report::training_warnings(&study));
            return Ok(Self::Training(Box::new(Trained { path: path.to_path_buf(), study, chart, warnings })));
        }
        if holds::<PipelineRow>(path)? {
            return Ok(Self::Pictured(Box::new(Pictured::pipeline(path)?)));
        }
        if holds::<FitRow>(path)? {
            return Ok(Self::Pictured(Box::new(Pictured::fit(path)?)));
        }
        Ok(Self::Sweep(Box::new(Evidence::read(path, query)?)))
    }

    fn page(&self) -> Result<Run<'_>> {
        match self {
            Self::Sweep(evidence) => evidence.page(&evidence.pairs()),
            Self::Training(trained) => Ok(trained.page()),
            Self::Pictured(pictured) => pictured.page(),
        }
    }
}

/// A study of whole epochs with its chart.
pub struct Trained {
    pub path: PathBuf,
    pub study: EpochStudy,
    pub chart: Training,
    pub warnings: Vec<Warning>,
}

impl Trained {
    /// The study as its page shows it.
    pub fn page(&self) -> Run<'_> {
        Run {
            source: &self.path,
            charts: Charts::Training(&self.chart),
            answers: report::training_answer(&self.study).into_iter().collect(),
            advice: Vec::new(),
            warnings: self.warnings.clone(),
            tables: vec![report::training(&self.study)],
            why: Vec::new(),
            beside: Vec::new(),
            pictures: Vec::new(),
            documents: json!({"source": self.path.display().to_string()}),
            files: Files::of(&self.path),
        }
    }
}

/// In the run directory, beside the file, or here for several.
fn place(paths: &[PathBuf]) -> PathBuf {
    match paths {
        [run] if run.is_dir() => run.join(PAGE),
        [file] => {
            let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            file.with_file_name(format!("{stem}-{PAGE}"))
        }
        _ => PathBuf::from(PAGE),
    }
}
