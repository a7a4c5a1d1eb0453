//! `batchstep report`: one self-contained HTML page about one run or several.

use std::path::{Path, PathBuf};

use batchstep::analysis::Query;
use batchstep::error::{Error, Result};
use batchstep::page::{self, RunPage};
use batchstep::study::{Told, told};

use super::evidence::Evidence;
use super::jumps::warn;
use super::{Exit, folder_beside, print, query, stem_of};
use crate::cli::ReportArgs;

pub fn report(args: &ReportArgs) -> Result<Exit> {
    let query = query(&args.columns);
    let subjects: Vec<PageSubject> =
        args.paths.iter().map(|path| PageSubject::read(path, &query)).collect::<Result<_>>()?;
    let runs: Vec<RunPage> = subjects.iter().map(PageSubject::page).collect::<Result<_>>()?;
    let path = args.out.clone().unwrap_or_else(|| place(&args.paths));
    refuse_data(&path, &args.paths)?;
    page::write(&runs, &path)?;
    print(&format!("{}\n", path.display()));
    Ok(warn(runs.iter().flat_map(|run| &run.warnings)))
}

/// A page does not take the place of what it is about: a table, or a file of a run directory.
fn refuse_data(out: &Path, paths: &[PathBuf]) -> Result<()> {
    let Ok(whole) = out.canonicalize() else { return Ok(()) };
    let is_data = |path: &PathBuf| path.canonicalize().is_ok_and(|path| whole.starts_with(path));
    let is_page = whole.extension().is_some_and(|end| end.eq_ignore_ascii_case("html"));
    if is_page || !paths.iter().any(is_data) {
        return Ok(());
    }
    let message = format!("`{}` is what the page is about, and would be overwritten", out.display());
    Err(Error::spec(message).at("--out").hint("name the page, for example `report.html`"))
}

/// What a page is about.
enum PageSubject {
    Sweep(Box<Evidence>),
    Study(Box<Told>),
}

impl PageSubject {
    fn read(path: &Path, query: &Query) -> Result<Self> {
        match told(path)? {
            Some(told) => Ok(Self::Study(Box::new(told))),
            None => Ok(Self::Sweep(Box::new(Evidence::read(path, query)?))),
        }
    }

    fn page(&self) -> Result<RunPage<'_>> {
        match self {
            Self::Sweep(evidence) => evidence.page(),
            Self::Study(told) => told.page(),
        }
    }
}

/// In the run directory, beside the file, or here for several.
fn place(paths: &[PathBuf]) -> PathBuf {
    match paths {
        [run] if run.is_dir() => run.join(page::NAME),
        [file] => folder_beside(file).join(format!("{}-{}", stem_of(file), page::NAME)),
        _ => PathBuf::from(page::NAME),
    }
}
